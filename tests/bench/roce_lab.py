#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures RoCE v2 of processes against rxe's, between the same two emulated hosts.

Each host has two network interfaces on one wire: rxe is on the first one, and user 65534's soft
fabric in a network namespace on the second one. They take turns, perftest by perftest. Prints a row
for each program: the medians, and the median and the range of the ratios of neighbouring runs,
above 1 where the processes are faster; ends with status 1 if a median is below TARGET. The last row
is the round trip of qperf's datagrams over UDP, without RDMA: about the least that an answer of a
process takes here. Not a test, because it takes minutes.

With --lockstep the hosts execute instructions in step, 4 ns each, and a packet takes no time: then
latencies are the instructions of both hosts between two packets, and the same to 2% on a busy
machine. What an instruction costs in the emulator, and what a packet costs on its way, is left out.
Programs must poll: a host that waits goes by the machine's clock.
"""
import argparse
import contextlib
from pathlib import Path
import re
import statistics
import sys

from benchlib import Lab, Lockstep

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/roce"))
from rxe_lab import Kernel, Process, gid_indices  # noqa: E402

TARGET = 0.7
LIMIT_S = 600
ROUNDS = 7
INSIDE = "ip netns exec fabric"
SET_UP = ("set -e; ip netns add fabric; ip link set eth1 netns fabric; "
          "ip -n fabric link set lo up; ip -n fabric link set eth1 up; "
          "ip -n fabric address add {}/24 dev eth1")
MESSAGES = 300
BANDWIDTH, LATENCY = ("MB/s", 3), ("us", 4)  # the unit, and its column
PROGRAMS = (("ib_send_bw", BANDWIDTH), ("ib_write_bw", BANDWIDTH), ("ib_read_bw", BANDWIDTH),
            ("ib_send_lat", LATENCY), ("ib_write_lat", LATENCY), ("ib_read_lat", LATENCY))


class End:
    """A host's rxe, or its fabric: what runs perftest there."""

    def __init__(self, end, address):
        self.end, self.address = end, address
        self.gid = gid_indices(end, (address,))[address]

    def command(self, program, server=""):
        text = f"{program} -d {self.end.device} -x {self.gid} -m 1024 -n {MESSAGES} {server}"
        return self.end.command(text), self.end.env


def fabric_end(host, build):
    address = f"10.78.0.{host.number}"
    host.run(SET_UP.format(address), check=True)
    return End(Process(host, build, "eth1", INSIDE), address)


@contextlib.contextmanager
def in_step(lockstep, server, client):
    if lockstep:
        lockstep.begin((server.end.host, client.end.host))
    try:
        yield
    finally:
        if lockstep:
            lockstep.end()


def measure(pair, program, column, lockstep):
    """Return the figure that the client of a pair prints."""
    server, client = pair
    command, env = server.command(program)
    listens = server.end.command("ss -ltn | grep -q :18515")
    running = server.end.host.start(command, env=env)
    try:
        server.end.host.wait_for(listens, LIMIT_S, env=env, process=running)
        command, env = client.command(program, server.address)
        with in_step(lockstep, server, client):
            done = client.end.host.run(command, env=env, timeout=LIMIT_S).check()
        running.wait(LIMIT_S)
    finally:
        running.stop()
    rows = re.findall(rf"^ +\d+ +{MESSAGES} .*$", done.stdout, re.MULTILINE)
    return float(rows[-1].split()[column])


def compare(pairs, program, unit, column, rounds, lockstep):
    """Print a row, and return the ratio."""
    figures = [[measure(pair, program, column, lockstep) for pair in pairs]
               for _ in range(rounds)]
    ratios = [fabric / rxe if unit == "MB/s" else rxe / fabric for rxe, fabric in figures]
    rxe, fabric = map(statistics.median, zip(*figures))
    ratio = statistics.median(ratios)
    print(f"{program:14}{rxe:9.1f} {fabric:9.1f} {unit:5} {ratio:5.2f} ({min(ratios):.2f} to "
          f"{max(ratios):.2f})", flush=True)
    return ratio


def udp_round_trip_us(server, client):
    """Return what a datagram takes to another process and back."""
    running = server.start("exec qperf")
    try:
        server.wait_for("ss -ltn | grep -q :19765", LIMIT_S, process=running)
        done = client.run(f"qperf -t 2 -m 64 {server.addr4} udp_lat", timeout=LIMIT_S).check()
    finally:
        running.stop()
    number, unit = re.search(r"latency *= *([0-9.]+) (us|ms)", done.stdout).groups()
    return 2 * float(number) * {"us": 1, "ms": 1000}[unit]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--rounds", default=ROUNDS, type=int, help=f"of both ({ROUNDS})")
    parser.add_argument("--only", default="", help="programs whose names have this in them")
    parser.add_argument("--lockstep", action="store_true",
                        help="count instructions; without UDP")
    args = parser.parse_args()
    build = args.build.resolve()
    lockstep = Lockstep(build / "tests/bench/lockstep.so") if args.lockstep else None
    with Lab({"a": "stock", "b": "stock"}, nics=2, lockstep=lockstep,
             cpus=1 if lockstep else None) as lab:
        rxe = [End(Kernel(host), host.addr4) for host in (lab.a, lab.b)]
        fabric = [fabric_end(host, build) for host in (lab.a, lab.b)]
        print(f"{'':14}{'rxe':>9} {'processes':>9} {'':5} ratio")
        ratios = [compare((rxe, fabric), program, unit, column, args.rounds, lockstep)
                  for program, (unit, column) in PROGRAMS if args.only in program]
        if args.only in "udp" and not lockstep:
            figures = [udp_round_trip_us(lab.a, lab.b) for _ in range(args.rounds)]
            print(f"{'UDP':14}{statistics.median(figures):9.1f} us    ({min(figures):.1f} to "
                  f"{max(figures):.1f})")
    missed = sum(ratio < TARGET for ratio in ratios)
    print(f"{missed} of {len(ratios)} below {TARGET}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
