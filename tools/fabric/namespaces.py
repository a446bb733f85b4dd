# SPDX-License-Identifier: BSD-2-Clause
"""Linux namespaces for the hosts of a fabric, created without privileges; and mounts in them."""
import ctypes
import os
import signal
import socket

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x40000000
BIND, RECURSIVE, SLAVE = 0x1000, 0x4000, 0x80000  # of mount(2)
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

REFUSED = 77  # exit status if namespaces are refused; Meson takes it as "skipped"

libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """This machine does not permit namespaces."""


def unshare(flags):
    """Leave the namespaces named by flags for new ones."""
    if libc.unshare(flags):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def mount(source, target, kind=None, flags=0, options=None):
    """mount(2)."""
    if libc.mount(*(text and text.encode() for text in (source, target, kind)),
                  ctypes.c_ulong(flags), options and options.encode()):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), target)


def write(path, value):
    with open(path, "w", encoding="ascii") as file:
        file.write(value)


def map_ids(uid, outer_uid, gid, outer_gid):
    """Map uid and gid of the new user namespace to outer_uid and outer_gid outside."""
    try:
        write("/proc/self/setgroups", "deny")
    except OSError:  # already denied by the parent namespace
        pass
    write("/proc/self/uid_map", f"{uid} {outer_uid} 1")
    write("/proc/self/gid_map", f"{gid} {outer_gid} 1")


def be_root_of_a_network():
    """Enter a new network namespace; for an ordinary user, as root of a new user namespace."""
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        try:
            unshare(NEWNET)
            return
        except OSError:  # root of a container: continue as an ordinary user
            pass
    try:
        unshare(NEWUSER | NEWNET)
        map_ids(0, uid, 0, gid)
    except OSError as error:
        raise Refused(f"no user and network namespaces can be made here ({error.strerror}): a "
                      "container's seccomp profile, /proc/sys/kernel/unprivileged_userns_clone or "
                      "/proc/sys/user/max_user_namespaces may say so. One host can be had "
                      "without: --here INTERFACE") from error


def ordinary(uid, gid):
    """Return: a user namespace of the user before be_root_of_a_network(), for be_ordinary(); None
    if this is one. It is common to all hosts, or their processes could not write to each other's
    memory: tools/fabric/wire/grants.h."""
    if os.geteuid() == uid:
        return None
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        try:
            ours.close()
            unshare(NEWUSER)
            map_ids(uid, 0, gid, 0)
            theirs.send(b"made")
            theirs.recv(1)  # until it is open in the parent
        finally:
            os._exit(0)
    theirs.close()
    if not ours.recv(4):
        raise OSError("no user namespace can be made for an ordinary user")
    namespace = os.open(f"/proc/{child}/ns/user", os.O_RDONLY)
    ours.close()
    os.waitpid(child, 0)
    return namespace


def be_ordinary(namespace):
    """Enter it, as a user without capabilities after exec."""
    if namespace is None:
        return
    if libc.setns(namespace, NEWUSER):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    os.close(namespace)


def die_with_parent():
    """To be called after the last change of ids, which would revert it."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def outlive_parent():
    """Revert die_with_parent()."""
    libc.prctl(PR_SET_PDEATHSIG, 0)


def adopt_orphans():
    """Become the parent of all descendants that lose theirs."""
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)


def children():
    """The child processes of this one."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        if parent == os.getpid():
            found.append(int(name))
    return found


def end_descendants():
    """Kill all descendants of this process, and wait for them."""
    while True:
        for pid in children():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            os.wait()
        except ChildProcessError:
            return
