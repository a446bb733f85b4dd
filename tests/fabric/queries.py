#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a connection asks of a device: nothing, as long as nothing changes. To query a port, a P_Key
or a GID may be a command of the device's firmware. The soft fabric's devices write down each.

Prints a line a failure, and last "N passed, N failed, N skipped". Exit status: 1 if a test failed,
77 if there can be no fabric here.
"""
import collections
import sys

from hosts import main, run_on_fabric

LIMIT_S = 60
FEW, MANY = "1,9", "1,9,100"  # connections, those of a number at once
MORE = 100
LINKS = {"RoCE": (), "InfiniBand": ("--link", "ib", "--lmc", "1"),
         "a partition": ("--link", "ib", "--pkeys", "0x8001", "--ip-pkey", "0x8001"),
         "no fast path": ("--quirk", "no-fast-path", "--quirk", "second-port")}
WAYS = {"cmportd": "", "inline": "export PURECM_PORTD=inline; "}


def begin(build, way):
    """What each host does first. A cmportd that a program starts may write no file."""
    portd = f"{build}/tools/cmportd/cmportd --detach --idle 0 --confine=no"
    return (f"touch $PURECM_FABRIC/queries; {WAYS[way]}"
            + (f"{portd}; " if way == "cmportd" else ""))


def connections(build, link, way, n):
    """Make so many connections. Return: what was queried how often, by whom."""
    connect = f"{build}/tools/certify/connect"
    done = run_on_fabric(
        build, LIMIT_S, *LINKS[link], f"a&:{begin(build, way)}{connect} server >/dev/null",
        f"b:{begin(build, way)}for i in $(seq 50); do {connect} client -n {n} 10.77.0.1 "
        " >/dev/null && break; sleep 0.1; >$PURECM_FABRIC/queries; done; "
        "sleep 0.5; cat $PURECM_FABRIC/../*/queries")
    said = collections.Counter(done.stdout.splitlines())
    if done.returncode or not said:
        raise AssertionError(f"status {done.returncode}: {done.stdout[-600:]}{done.stderr[-600:]}")
    return said


def connections_query_nothing(build, way):
    for link in LINKS:
        few, many = (connections(build, link, way, n) for n in (FEW, MANY))
        more = {what: many[what] - few[what] for what in many if many[what] > few[what]}
        if sum(more.values()) > 3:  # a probe of the fast path, which may come late
            raise AssertionError(f"{link}: {MORE} more connections query {more}; "
                                 f"{FEW} have queried {dict(few)}")


def a_hundred_connections_query_no_more_than_ten(build):
    connections_query_nothing(build, "cmportd")


def without_cmportd_neither(build):
    connections_query_nothing(build, "inline")


TESTS = (
    a_hundred_connections_query_no_more_than_ten,
    without_cmportd_neither,
)

if __name__ == "__main__":
    sys.exit(main(__doc__, TESTS))
