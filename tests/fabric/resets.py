#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A device that is reset again and again: each use of it is told so, and nothing of the old device
stays, no descriptor and no thread.

Prints a line a failure, and last "N passed, N failed, N skipped". Exit status: 1 if a test failed,
77 if there can be no fabric here.
"""
import os
import re
import sys

from hosts import main, run_on_fabric

LIMIT_S = 60
WAYS = ("tcp", "udp", "listener", "wildcard", "queue-pair", "member", "loopback", "list", "stream",
        "datagrams")
N_RESETS = 5
RESET = "{}/tools/purecm fabric reset --dir $PURECM_FABRIC/../.. a"


def nothing_stays(way):
    def test(build):
        done = run_on_fabric(build, LIMIT_S, "--hosts", "1",
                             f"a:{build}/tests/fabric/resets {way} '{RESET.format(build)}' "
                             "10.77.0.1")
        fds, tasks = ([int(n) for n in re.findall(rf"(\d+) {what}", done.stdout)]
                      for what in ("descriptors", "threads"))
        if done.returncode or len(fds) != N_RESETS or \
                max(fds) > fds[0] or max(tasks) > tasks[0] or \
                (way == "list" and done.stdout.count("1 devices,") != N_RESETS):
            raise AssertionError(f"status {done.returncode}: {done.stdout}{done.stderr[-600:]}")
    test.__name__ = f"nothing_stays_of_{way}"
    return test


def reset_while_cmportd_is_replaced_is_noticed(build):
    """The program meets the next cmportd when the next device is there."""
    kill = ("for p in $(pidof cmportd); do tr '\\0' '\\n' </proc/$p/environ | "
            "grep -qx PURECM_SOCKET=$PURECM_SOCKET && kill -9 $p; done 2>/dev/null")
    script = f"kill -STOP $PPID; {kill}; {RESET.format(build)}; kill -CONT $PPID"
    done = run_on_fabric(build, LIMIT_S, "--hosts", "1",
                         f'a:{build}/tests/fabric/resets listener "$SCRIPT" 10.77.0.1',
                         env={**os.environ, "SCRIPT": script})
    assert not done.returncode, f"status {done.returncode}: {done.stdout}{done.stderr[-600:]}"


def nothing_stays_of_a_server_on_all_addresses(build):
    """It hears of each device by a connection only."""
    serve = "a&:rping -s -P >/dev/null & echo $! >$PURECM_FABRIC/../server; wait"
    connect = "until rping -c -a 10.77.0.1 -C 1; do sleep 0.1; done"
    count = ("for i in $(seq 200); do n=$(ls /proc/$(cat $PURECM_FABRIC/../server)/fd | wc -l); "
             "[ $n -le ${first:=$n} ] && break; sleep 0.1; done; echo $n descriptors")
    done = run_on_fabric(build, LIMIT_S, serve,
                         f"b:{connect}; sleep 1; {count}; for r in 1 2 3 4 5; do "
                         f"{RESET.format(build)}; {connect}; {count}; done")
    counts = [int(n) for n in re.findall(r"(\d+) descriptors", done.stdout)]
    if done.returncode or len(counts) != N_RESETS + 1 or max(counts) > counts[0]:
        raise AssertionError(f"status {done.returncode}: {done.stdout}{done.stderr[-600:]}")


if __name__ == "__main__":
    sys.exit(main(__doc__, [nothing_stays(way) for way in WAYS]
                  + [reset_while_cmportd_is_replaced_is_noticed,
                     nothing_stays_of_a_server_on_all_addresses]))
