# SPDX-License-Identifier: BSD-2-Clause
"""The environment of a host, in mount, UTS and IPC namespaces of its own: its name, the addresses
of the other hosts, its interfaces and its device in /sys, its device nodes in /dev, and a private
/dev/shm."""
import os
from pathlib import Path
import socket

import namespaces
from namespaces import BIND, RECURSIVE, SLAVE, mount

SYS_CLASSES = ("infiniband", "infiniband_verbs", "infiniband_mad")  # host/sysfs.c fills them
OPEN_FOLDER = os.O_PATH | os.O_DIRECTORY


def try_unshare(flag):
    """Return: whether this process got a new namespace of that kind."""
    try:
        namespaces.unshare(flag)
    except OSError:
        return False
    return True


def bind(source, target):
    """Mount the folder or file @source at @target, which is created if missing."""
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        Path(target).touch()
    mount(source, target, flags=BIND | RECURSIVE)


def make_writable(path):
    """Cover a read-only folder with a writable one of the same content."""
    old = os.open(path, OPEN_FOLDER)
    mount("tmpfs", path, kind="tmpfs", options="mode=755")
    for name in os.listdir(f"/proc/self/fd/{old}"):
        source = f"/proc/self/fd/{old}/{name}"
        try:
            if os.path.islink(source):
                os.symlink(os.readlink(source), f"{path}/{name}")
            else:
                bind(source, f"{path}/{name}")
        except OSError:  # it has disappeared, or is not accessible
            pass
    os.close(old)


def make_empty(path, kept):
    """Cover a folder with an empty one, in which only the given paths stay visible."""
    below = {name: os.open(name, OPEN_FOLDER) for name in kept if f"{name}/".startswith(f"{path}/")}
    mount("tmpfs", path, kind="tmpfs", options="mode=1777")
    for name, old in below.items():
        bind(f"/proc/self/fd/{old}", name)
        os.close(old)


def may_mount():
    """Return: whether mounts are possible; the machine will not see them."""
    try:
        mount(None, "/", flags=SLAVE | RECURSIVE)
    except OSError:  # denied by a security module of the container
        return False
    return True


def show_interfaces():
    """Mount /sys again, so that it shows the interfaces of this network namespace."""
    groups = os.open("/sys/fs/cgroup", OPEN_FOLDER)
    try:
        mount("sysfs", "/sys", kind="sysfs")
        bind(f"/proc/self/fd/{groups}", "/sys/fs/cgroup")
    except OSError:  # parts of /sys are hidden here, as in most containers, and stay so
        pass
    os.close(groups)


def make_device(folder):
    """Make the folders of what show_device() mounts, or view/ shows, and a node for view/."""
    for name in SYS_CLASSES:
        (folder / "sys" / name).mkdir(parents=True, exist_ok=True)
    node = folder / "dev/infiniband/uverbs0"
    node.parent.mkdir(parents=True, exist_ok=True)
    if not node.is_symlink():
        node.symlink_to("/dev/null")


def show_device(folder):
    """Show the device in /sys and /dev, for programs that need more than libibverbs.

    There is no umad node, as none would take commands: libibumad is a substitute."""
    classes = Path("/sys/class")
    if not all((classes / name).exists() for name in SYS_CLASSES):
        make_writable(str(classes))
    for name in SYS_CLASSES:
        bind(str(folder / "sys" / name), str(classes / name))
    nodes = Path("/dev/infiniband")
    if not nodes.exists():
        make_writable("/dev")
        nodes.mkdir()
    mount("tmpfs", str(nodes), kind="tmpfs", options="mode=755")
    bind("/dev/null", str(nodes / "uverbs0"))  # a character device that can be opened


def show_owner(interface, folder):
    """Show the device at an interface, as drivers do, if /sys has the interface. IP over InfiniBand
    has no other way: a GID there names no interface."""
    path = os.path.realpath(f"/sys/class/net/{interface}")
    if os.path.isdir(path):
        make_writable(path)
        bind(str(folder / "sys/infiniband"), f"{path}/device/infiniband")


def name_hosts(hosts, folder):
    """Put the hosts' names before other entries of /etc/hosts."""
    before = Path("/etc/hosts")
    if not before.exists():
        return
    # IPv4 only, because a server without an address listens on that only.
    lines = [f"{host.addresses(0)[0].partition('/')[0]}\t{host.name}\n" for host in hosts]
    ours = folder / "etc-hosts"
    ours.write_text("".join(lines) + before.read_text(encoding="utf-8"), encoding="utf-8")
    bind(str(ours), str(before))


def furnish_here(folder):
    """Show a host on the machine's own network its device. Return: whether it is mounted."""
    uid, gid = os.geteuid(), os.getegid()
    make_device(folder)
    if not try_unshare(namespaces.NEWNS | (namespaces.NEWUSER if uid else 0)):
        return False
    if uid:
        namespaces.map_ids(uid, uid, gid, gid)
    if not may_mount():
        return False
    show_device(folder)
    return True


def furnish(host, hosts, folder, kept, own_tmp):
    """Set up as much of the environment as permitted; the rest stays the machine's.

    @folder: the host's; @kept: paths that must stay visible; @own_tmp: cover /tmp too. Return:
    whether the device is mounted."""
    make_device(folder)
    try_unshare(namespaces.NEWIPC)
    if try_unshare(namespaces.NEWUTS):
        socket.sethostname(host.name)
    if not try_unshare(namespaces.NEWNS) or not may_mount():
        return False
    here = os.getcwd()
    show_interfaces()
    show_device(folder)
    for i in range(host.ports):
        show_owner(host.slaves(i)[0], folder)
    name_hosts(hosts, folder)
    for path in ["/dev/shm"] + ["/tmp"] * own_tmp:
        if os.path.isdir(path):
            make_empty(path, [str(folder.parents[1]), *kept, here])
    os.chdir(here)
    return True
