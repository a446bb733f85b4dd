#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures RoCE v2 between two hosts of a soft fabric on this machine, against its UDP and TCP.

perftest over both wires beside UDP datagrams of the same size that the kernel cuts and joins
(UDP_SEGMENT, UDP_GRO; iperf3 of Debian 12 cannot), iperf3's TCP, and qperf's ping-pong over UDP,
each host on a CPU of its own. They take turns, --rounds times. Prints a row for each: the median,
and the median of its ratio to UDP in the same round; ends with status 1 if a target is missed:
TARGETS. Not a test, because it needs a quiet machine: on a busy one, a control group with many
shares. (A real-time priority starves the threads of programs that only look at their memory.)
"""
import argparse
from pathlib import Path
import re
import socket
import statistics
import subprocess
import sys
import time

ROOT = Path(__file__).resolve().parents[2]
SERVER, PORT = "10.77.0.1", 5555
SOL_UDP, UDP_SEGMENT, UDP_GRO = 17, 103, 104
PACKET = 4096 + 28  # a path MTU of 4096 with its headers
BURST = 15 * PACKET
SECONDS = 3
ROUNDS = 5
TARGETS = {"ib_write_bw": 0.5, "ib_send_bw": 0.5, "ib_read_bw": 0.5, "ib_write_lat": 2.5,
           "ib_send_lat -e": 2.5}


def receive():
    """Print GB/s of what comes, once nothing does."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        sock.setsockopt(SOL_UDP, UDP_GRO, 1)
        sock.bind(("", PORT))
        room, count = bytearray(65536), sock.recv_into(bytearray(65536))
        begin = end = time.monotonic()
        sock.settimeout(1)
        try:
            while True:
                count += sock.recv_into(room)
                end = time.monotonic()
        except TimeoutError:
            print(f"udp {count / (end - begin) / 1e9:.2f} GB/s")


def send():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(SOL_UDP, UDP_SEGMENT, PACKET)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        sock.connect((SERVER, PORT))
        end, burst = time.monotonic() + SECONDS, bytes(BURST)
        while time.monotonic() < end:
            sock.send(burst)


def run(args, server, client, wanted, wire="roce"):
    """Return the number that a pattern finds in what both say."""
    done = subprocess.run([ROOT / "tools/fabric/fabric", "run", "--build", args.build, "--wire",
                           wire, "--gap", "1", "--timeout", "60", server, client],
                          capture_output=True, text=True, check=False)
    found = re.search(wanted, done.stdout, re.MULTILINE)
    if not found:
        sys.exit(f"status {done.returncode}: {done.stdout}{done.stderr}")
    return float(found[1])


def perftest(args, name, wire):
    """Return GB/s, or the typical latency in us."""
    a, b = ("", "") if name.endswith("_bw") else ("taskset -c 0 ", "taskset -c 1 ")
    wanted = (r"^b\|  65536 +\d+ +[\d.]+ +([\d.]+)" if name.endswith("_bw") else
              r"^b\|  2 +\d+ +[\d.]+ +[\d.]+ +([\d.]+)")
    value = run(args, f"a:{a}{name} -d fab0 -x 1 -n {args.n}",
                f"b:{b}{name} -d fab0 -x 1 -n {args.n} {SERVER}", wanted, wire)
    return value * (1 << 20) / 1e9 if name.endswith("_bw") else value


def measure(args):
    """Return a round's figures by name."""
    figures = {
        "UDP": run(args, f"a:{__file__} receive", f"b:{__file__} send", r"udp ([\d.]+) GB/s"),
        "TCP": run(args, "a&:iperf3 -s", f"b:iperf3 -f g -t {SECONDS} -c {SERVER}",
                   r"([\d.]+) Gbits/sec +receiver") / 8,
        "UDP ping-pong": run(args, "a&:taskset -c 0 qperf",
                             f"b:taskset -c 1 qperf -m 2 {SERVER} udp_lat",
                             r"latency += +([\d.]+) us")}
    for name in TARGETS:
        for wire in ("roce", "unix"):
            figures[name, wire] = perftest(args, name, wire)
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("-n", default=20000, type=int, help="messages of each program")
    parser.add_argument("--rounds", default=ROUNDS, type=int, help=f"of all ({ROUNDS})")
    parser.add_argument("role", nargs="?", choices=("receive", "send"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.role:
        return receive() if args.role == "receive" else send()
    rounds = [measure(args) for _ in range(args.rounds)]
    for name, unit in (("UDP", "GB/s"), ("TCP", "GB/s"), ("UDP ping-pong", "us")):
        print(f"{name:16}{statistics.median(row[name] for row in rounds):8.2f} {unit}")
    missed = 0
    for name, target in TARGETS.items():
        base, unit = ("UDP", "GB/s") if name.endswith("_bw") else ("UDP ping-pong", "us")
        roce, unix = (statistics.median(row[name, wire] for row in rounds)
                      for wire in ("roce", "unix"))
        ratio = statistics.median(row[name, "roce"] / row[base] for row in rounds)
        print(f"{name:16}{roce:8.2f} {unit:5}{ratio:5.2f} of {base}, {target} is wanted; "
              f"{unix:.2f} by the unix wire")
        missed += ratio < target if unit == "GB/s" else ratio > target
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
