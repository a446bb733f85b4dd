#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a connection asks of a device: nothing, as long as nothing changes; and what changes is used
after the device's event: a partition, the state of a port, its LID. To query a port, a P_Key or a
GID may be a command of the device's firmware. The soft fabric's devices write down each. What
becomes of GIDs is in moves.py.

Prints a line a failure, and last "N passed, N failed, N skipped". Exit status: 1 if a test failed,
77 if there can be no fabric here.
"""
import collections
import sys

from hosts import main, run_on_fabric

LIMIT_S = 60
FEW, MANY = "1,9", "1,9,100"  # connections, those of a number at once
MORE = 100
RPING = "rping -c -a 10.77.0.1 -C 1"
LINKS = {"RoCE": (), "InfiniBand": ("--link", "ib", "--lmc", "1"),
         "a partition": ("--link", "ib", "--pkeys", "0x8001", "--ip-pkey", "0x8001"),
         "no fast path": ("--quirk", "no-fast-path", "--quirk", "second-port")}
WAYS = {"cmportd": "", "inline": "export PURECM_PORTD=inline; "}
# Without cmportd the fabric does not see that a server listens; the client tries again.
GAPS = {"cmportd": (), "inline": ("--gap", "0.5")}

# after EVENT PORT QUERIED: a program resolves until it is led to that port and has queried that, or
# two hundred times.
STATES = """
cd $PURECM_FABRIC
mkfifo asked
>said
{program} <asked >>said &
exec 5>asked
resolve() {{
    n=$(wc -l <said)
    echo >&5
    until [ $(wc -l <said) -gt $n ]; do kill -0 $! || exit 9; sleep 0.01; done
}}
resolve
after() {{
    >queries
    [ "$1" = none ] || {fabric} ${{1%% *}} --dir $PURECM_FABRIC/../.. ${{1#* }}
    for i in $(seq 200); do
        resolve
        port=$(sed -n '$s/RDMA_CM_EVENT_ADDR_RESOLVED //p' said)
        queried=$(sed -n 's/ loopback_port$//p' queries | sort -u | grep port || echo none)
        [ "$port $queried" = "$2 $3" ] && break
        sleep 0.05
    done
    echo "$1: port $port, queried $queried"
}}
"""


def begin(build, way):
    """What each host does first. A cmportd that a program starts may write no file."""
    portd = f"{build}/tools/cmportd/cmportd --detach --idle 0 --confine=no"
    return (f"touch $PURECM_FABRIC/queries; {WAYS[way]}"
            + (f"{portd}; " if way == "cmportd" else ""))


def connections(build, link, way, n):
    """Make so many connections. Return: what was queried how often, by whom."""
    connect = f"{build}/tools/certify/connect"
    done = run_on_fabric(
        build, LIMIT_S, *LINKS[link], *GAPS[way],
        f"a&:{begin(build, way)}{connect} server >/dev/null",
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


def a_partition_that_moves_in_the_table_is_found_again(build):
    """By a server, a client that has connections already, and both cmportds. At its former index
    is another partition then, whose packets the peer does not get."""
    hold = f"{build}/tools/certify/hold"
    held = "$PURECM_FABRIC/held"
    begin_holding = (f"{hold} client 10.77.0.1 7480 5 5 >{held} & holder=$!; "
                     f"until grep -q ^held {held}; do kill -0 $holder || exit 8; sleep 0.05; done")
    for host in "ab":
        moved = (f"{build}/tools/purecm fabric pkeys --dir $PURECM_FABRIC/../.. {host} "
                 f"0x8002,0x8001; {build}/tools/purecm fabric exec {host} 'until grep -q 0x8002 "
                 "/sys/class/infiniband/fab0/ports/1/pkeys/*; do sleep 0.1; done'")
        more = (f"kill -USR1 $holder; until grep -q ^complete {held}; do kill -0 $holder || "
                "exit 9; sleep 0.05; done; kill $holder")
        done = run_on_fabric(
            build, LIMIT_S, "--link", "ib", "--pkeys", "0x8001", "--ip-pkey", "0x8001",
            f"a&:{hold} server 10.77.0.1 7480", "a&:rping -s -P -a 10.77.0.1",
            f"b:for i in $(seq 50); do {RPING} && break; sleep 0.1; done; {begin_holding}; "
            f"{moved}; {RPING} && {more} && echo moved")
        assert not done.returncode and "moved" in done.stdout.split(), (
            host, done.returncode, done.stdout[-600:] + done.stderr[-600:])


def a_port_that_goes_down_or_gets_another_lid_is_queried_again(build):
    """By a program that runs meanwhile, and between the events it is not queried."""
    ups_and_downs = [("none", "none", "1"), ("port b down", "port", "2"), ("none", "none", "2"),
                     ("port b up", "port", "1"), ("none", "none", "1")]
    lids = [("none", "none", "1"), ("lid b 77", "port", "1"), ("none", "none", "1")]
    for options, events in ((("--ports", "2"), ups_and_downs),
                            (("--link", "ib", "--ports", "2"), ups_and_downs),
                            (("--link", "ib"), lids)):
        script = f"{begin(build, 'cmportd')}\n" + STATES.format(
            program=f"{build}/tests/fabric/loopback_port", fabric=f"{build}/tools/purecm fabric")
        done = run_on_fabric(
            build, LIMIT_S, *options, "b:" + script
            + "".join(f"after '{what}' {port} {queried}\n" for what, queried, port in events))
        wanted = [f"{what}: port {port}, queried {queried}" for what, queried, port in events]
        assert not done.returncode and done.stdout.splitlines() == wanted, (
            options, done.stdout[-900:] + done.stderr[-600:])


TESTS = (
    a_port_that_goes_down_or_gets_another_lid_is_queried_again,
    a_partition_that_moves_in_the_table_is_found_again,
    a_hundred_connections_query_no_more_than_ten,
    without_cmportd_neither,
)

if __name__ == "__main__":
    sys.exit(main(__doc__, TESTS))
