# SPDX-License-Identifier: BSD-2-Clause
"""Who has bound a UDP port of this network namespace: /proc/net/udp has the inode of each socket,
and a process's descriptors are links to such inodes. The kernel lets a user read those of his own
processes, unless they have more capabilities."""
import contextlib
import glob
import os
from pathlib import Path

INODE = 9  # the column


def printable(text):
    """The text without what may control a terminal: a process chooses its name."""
    return "".join(each if each.isprintable() else "?" for each in text)


def inodes_of(port):
    """Of the sockets that are bound to it, as descriptors name them."""
    found = set()
    for path in ("/proc/net/udp", "/proc/net/udp6"):
        with contextlib.suppress(OSError):
            for line in Path(path).read_text(encoding="ascii").splitlines()[1:]:
                columns = line.split()
                if int(columns[1].rpartition(":")[2], 16) == port:
                    found.add(f"socket:[{columns[INODE]}]")
    return found


def owners(port):
    """The processes that have such a socket, each as "process 1234 (name)"."""
    found, inodes = set(), inodes_of(port)
    for path in glob.glob("/proc/[0-9]*/fd/*") if inodes else ():
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if os.readlink(path) in inodes:
                pid = path.split("/")[2]
                comm = Path("/proc", pid, "comm").read_text(encoding="utf-8", errors="replace")
                found.add(f"process {pid} ({printable(comm.strip())})")
    return sorted(found)
