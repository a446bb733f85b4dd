# SPDX-License-Identifier: BSD-2-Clause
"""What a host sees of the machine, in mount, UTS and IPC namespaces of its own: its name, the
addresses of the other hosts, its interfaces and its device in /sys, its device nodes in /dev, and
a /dev/shm that no other host shares."""
import os
from pathlib import Path
import socket

import namespaces
from namespaces import BIND, RECURSIVE, SLAVE, mount

SYS_CLASSES = ("infiniband", "infiniband_verbs")  # host/sysfs.c fills them
OPEN_FOLDER = os.O_PATH | os.O_DIRECTORY


def try_unshare(flag):
    """Return: whether this process has a new namespace of that kind."""
    try:
        namespaces.unshare(flag)
    except OSError:
        return False
    return True


def bind(source, target):
    """Show at @target the folder or file at @source; make @target if it is missing."""
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        Path(target).touch()
    mount(source, target, flags=BIND | RECURSIVE)


def make_writable(path):
    """Cover a folder in which nothing can be made with one that has the same in it."""
    old = os.open(path, OPEN_FOLDER)
    mount("tmpfs", path, kind="tmpfs", options="mode=755")
    for name in os.listdir(f"/proc/self/fd/{old}"):
        source = f"/proc/self/fd/{old}/{name}"
        try:
            if os.path.islink(source):
                os.symlink(os.readlink(source), f"{path}/{name}")
            else:
                bind(source, f"{path}/{name}")
        except OSError:  # it went away meanwhile, or is not for us
            pass
    os.close(old)


def make_empty(path, kept):
    """Cover a folder with an empty one, in which only these paths are what they were."""
    below = {name: os.open(name, OPEN_FOLDER) for name in kept if f"{name}/".startswith(f"{path}/")}
    mount("tmpfs", path, kind="tmpfs", options="mode=1777")
    for name, old in below.items():
        bind(f"/proc/self/fd/{old}", name)
        os.close(old)


def may_mount():
    """Return: whether mounts are possible, none of which the machine will see."""
    try:
        mount(None, "/", flags=SLAVE | RECURSIVE)
    except OSError:  # a security module of the container
        return False
    return True


def show_interfaces():
    """Mount /sys anew, which then has the interfaces of this network namespace."""
    groups = os.open("/sys/fs/cgroup", OPEN_FOLDER)
    try:
        mount("sysfs", "/sys", kind="sysfs")
        bind(f"/proc/self/fd/{groups}", "/sys/fs/cgroup")
    except OSError:  # parts of /sys are hidden here, as in most containers: so they stay
        pass
    os.close(groups)


def show_device(folder):
    """Show the device in /sys and /dev, where programs look that want more than libibverbs says.

    There is no umad: a librdmacm that found its node would talk to it rather than to libibumad.
    """
    classes = Path("/sys/class")
    if not all((classes / name).exists() for name in SYS_CLASSES):
        make_writable(str(classes))
    for name in SYS_CLASSES:
        (folder / "sys" / name).mkdir(parents=True, exist_ok=True)
        bind(str(folder / "sys" / name), str(classes / name))
    nodes = Path("/dev/infiniband")
    if not nodes.exists():
        make_writable("/dev")
        nodes.mkdir()
    mount("tmpfs", str(nodes), kind="tmpfs", options="mode=755")
    bind("/dev/null", str(nodes / "uverbs0"))  # a character device that may be opened


def name_hosts(hosts, folder):
    """Have the hosts' names mean their addresses, first of all that /etc/hosts has."""
    before = Path("/etc/hosts")
    if not before.exists():
        return
    # By IPv4 alone: a server that was given no address listens on nothing else.
    lines = [f"{host.addresses(0)[0].partition('/')[0]}\t{host.name}\n" for host in hosts]
    ours = folder / "etc-hosts"
    ours.write_text("".join(lines) + before.read_text(encoding="utf-8"), encoding="utf-8")
    bind(str(ours), str(before))


def furnish_here(folder):
    """Show a host on the machine's own network its device, where this process may."""
    uid, gid = os.geteuid(), os.getegid()
    if not try_unshare(namespaces.NEWNS | (namespaces.NEWUSER if uid else 0)):
        return
    if uid:
        namespaces.map_ids(uid, uid, gid, gid)
    if may_mount():
        show_device(folder)


def furnish(host, hosts, folder, kept, own_tmp):
    """Give this process what it may have of all that; what it may not have stays the machine's.

    @folder: the host's; @kept: what must stay visible wherever it is; @own_tmp: cover /tmp too.
    """
    try_unshare(namespaces.NEWIPC)
    if try_unshare(namespaces.NEWUTS):
        socket.sethostname(host.name)
    if not try_unshare(namespaces.NEWNS) or not may_mount():
        return
    here = os.getcwd()
    show_interfaces()
    show_device(folder)
    name_hosts(hosts, folder)
    for path in ["/dev/shm"] + ["/tmp"] * own_tmp:
        if os.path.isdir(path):
            make_empty(path, [str(folder.parents[1]), *kept, here])
    os.chdir(here)
