# SPDX-License-Identifier: BSD-2-Clause
"""Whether a command of a host listens, or is connected: on TCP, or by librdmacm."""
import json
import os
from pathlib import Path
import subprocess
import time

POLL_S = 0.03
IDLE_LOOKS = 150  # at a command, of which none finds that it works: longer on a busy machine
STAT_S = 5  # a program that is stopped does not answer
TCP_STATES = ("0A", "01")  # in /proc/net/tcp: LISTEN, ESTABLISHED
ID_STATES = ("LISTEN", "CONNECT")  # in `purecm stat`


def tcp_sockets():
    """The inodes of this network's sockets that listen or are connected."""
    found = set()
    for name in ("tcp", "tcp6"):
        try:
            rows = Path("/proc/self/net", name).read_text(encoding="ascii").splitlines()[1:]
        except OSError:  # no IPv6
            continue
        found.update(row.split()[9] for row in rows if row.split()[3] in TCP_STATES)
    return found


def is_in(pid, session):
    try:
        return os.getsid(pid) == session
    except OSError:
        return False


def has_socket(pid, inodes):
    try:
        return any(os.readlink(f"/proc/{pid}/fd/{fd}")[8:-1] in inodes
                   for fd in os.listdir(f"/proc/{pid}/fd"))
    except OSError:  # it has ended, or is another user's
        return False


def members(session):
    return [name for name in os.listdir("/proc") if name.isdigit() and is_in(int(name), session)]


def listens_on_tcp(session):
    inodes = tcp_sockets()
    return bool(inodes) and any(has_socket(pid, inodes) for pid in members(session))


def work(session):
    """Return what changes when processes of the session work: which there are, and their CPU times;
    None while one is running, or waits for a CPU or a disk."""
    found = []
    for pid in members(session):
        try:
            state, *fields = Path("/proc", pid, "stat").read_text(
                encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except (OSError, ValueError):  # it has ended
            continue
        if state in "RD":
            return None
        found.append((pid, fields[10:14]))
    return found


def listens_by_cm(session, purecm, env):
    if not purecm or not os.path.exists(env["PURECM_SOCKET"]):
        return False
    try:
        rows = subprocess.run([purecm, "stat", "--json"], env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=STAT_S,
                              check=False).stdout.splitlines()
    except subprocess.TimeoutExpired:
        return False
    return any(row.get("id_state") in ID_STATES and is_in(row["pid"], session)
               for row in map(json.loads, rows))


def wait(session, purecm, env):
    """Wait until a process of the session listens or is connected, or all are idle. Return: whether
    one listens."""
    before, idle_looks = None, 0
    while not (listens_on_tcp(session) or listens_by_cm(session, purecm, env)):
        now = work(session)
        idle_looks = idle_looks + 1 if now == before and now is not None else 0
        if idle_looks == IDLE_LOOKS:
            return False
        before = now
        time.sleep(POLL_S)
    return True
