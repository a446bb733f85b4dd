#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""RoCE v2 between two hosts of a fabric on a bad network: packets of both are lost, repeated,
overtaken, delayed and corrupted, and rstream compares all bytes; a process is stopped for a second;
an MTU shrinks, a host vanishes and a program is killed, and the other end gets an error instead of
waiting for ever.

A plain run has all faults at once; with PURECM_TEST_LONG=1 also each alone, the ends, and 10 GB
over IPv6, whose ICRC is whole, with one packet in a hundred corrupted.

Prints a line per test and then "N passed, N failed, N skipped".
"""
import argparse
import os
from pathlib import Path
import shutil
import sys

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/fabric"))

from programs import Failure, RETRY, SKIPPED, Tests  # noqa: E402

LIMIT_S = 3000
LONG = bool(os.environ.get("PURECM_TEST_LONG"))
A, A6 = "10.77.0.1", "fd77::1"
# Faults, the server's address, messages each way and their size.
STREAMS = (
    ("mads:loss=0.1,corrupt=0.1 data:loss=0.01,duplicate=0.05,reorder=0.01,corrupt=0.02 seed=1",
     A6, 40, 65536),
)
LONG_STREAMS = (
    ("data:loss=0.01", A, 500, 65536),
    ("data:loss=0.1", A, 500, 65536),
    ("data:duplicate=0.1", A, 500, 65536),
    ("data:reorder=0.1", A, 100, 65536),
    ("data:delay=5ms", A, 100, 65536),
    ("data:corrupt=0.05 seed=2", A6, 200, 65536),
    ("data:corrupt=0.01 seed=3", A6, 5000, 1000000),
)
PING = "rping -S 60000 -C 1000000"
# What happens to the network of b, or to the server on a, and what one of both programs says then:
# the one that waits for nothing but a message may wait for ever, as on any device. So may b without
# its address: it sends nothing, and hears of nothing.
ENDS = (
    ("an MTU shrinks", "ip link set fab0 mtu 600", "does not fit into the MTU of its route"),
    ("an address goes",
     "ip address add 10.77.0.99/16 dev fab0; ip address del 10.77.0.2/24 dev fab0",
     r"its source address is not (any more) this host\|completion failed status 12"),
    ("a route goes", "ip route del default; ip route del 10.77.0.0/24", "has no route"),
    ("a route is prohibited", "ip route add prohibit 10.77.0.1", "is refused by this host"),
    ("a host vanishes", "ip link set fab0 down", "completion failed status 12"),
    ("a program is killed", "kill -9 $(cat $said/pid)", "DISCONNECT EVENT"),
)
END = """
said=$PURECM_FABRIC/../..
{ping} -v -c -a {address} >$said/b 2>&1 &
until grep -q 'ping data' $said/b; do sleep 0.1; done
{change}
until grep -q '{wanted}' $said/a $said/b; do sleep 0.1; done
echo it ended
"""

# Its queue pairs have a timeout of 67 ms and seven retries, and a device would answer meanwhile.
LAT = "ib_send_lat -d fab0 -x 1 -D 4"
STOP = "sleep 2; kill -STOP $pid; sleep 1; kill -CONT $pid"


class LossTests(Tests):
    def __init__(self, build):
        super().__init__(build)
        self.user = [*self.user, "unshare", "-Urn"]  # b may change its network

    def command(self, *arguments):
        return super().command("--wire", "roce", "--timeout", str(LIMIT_S), *arguments)


def stream(tests, faults, address, count, size):
    run = f"rstream -C {count} -S {size} -T v"
    client = RETRY.format(f"{run} -s {address}")
    done = tests.run("--faults", faults, f"a&:{run} -b {address}", f"b:{client}")
    if done.returncode or "b| custom " not in done.stdout:
        raise Failure(f"status {done.returncode}: {done.stdout}{done.stderr}")


def end(tests, change, wanted):
    """And connections work where there still is a way."""
    server = (f"said=$PURECM_FABRIC/../..; {PING} -s >$said/a 2>&1 & echo $! >$said/pid; "
              "rping -s -p 7200; wait")
    client = END.format(ping=PING, address=A, change=change, wanted=wanted)
    has_way = change.startswith("kill") or "mtu" in change
    again = RETRY.format(f"rping -c -a {A} -p 7200 -C 1 -S 100") if has_way else "true"
    done = tests.run(f"a&:{server}", f"b:{client}{again}")
    if done.returncode or "b| it ended" not in done.stdout:
        raise Failure(f"status {done.returncode}: {done.stdout}{done.stderr}")


def stopped(tests):
    """A process that gets no CPU for a second keeps its connection."""
    server = f"{LAT} & pid=$!; {STOP}; wait $pid"
    client = f"for i in $(seq 20); do {LAT} {A} && exit; sleep 0.1; done; exit 1"
    done = tests.run(f"a:{server}", f"b:{client}")
    if done.returncode or "b|  2 " not in done.stdout:
        raise Failure(f"status {done.returncode}: {done.stdout}{done.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--only", default="", help="tests whose names have this in them")
    arguments = parser.parse_args()
    tests = LossTests(arguments.build.resolve())
    if not shutil.which("rstream") or tests.run("--hosts", "1", "a:true").returncode:
        print("no rstream or no fabric here\n0 passed, 0 failed, 1 skipped")
        return SKIPPED
    for row in STREAMS + (LONG_STREAMS if LONG else ()):
        if arguments.only in row[0]:
            tests.test("rstream, " + row[0], stream, tests, *row)
    if arguments.only in "a process is stopped" and shutil.which("ib_send_lat"):
        tests.test("a process is stopped", stopped, tests)
    for name, change, wanted in ENDS if LONG else ():
        if arguments.only in name:
            tests.test(name, end, tests, change, wanted)
    shutil.rmtree(tests.folder)
    return tests.summary()


if __name__ == "__main__":
    sys.exit(main())
