#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures RoCE v2 between two hosts of a soft fabric on this machine, against its UDP.

perftest beside UDP datagrams of the same size that the kernel cuts and joins (UDP_SEGMENT,
UDP_GRO), and beside qperf's ping-pong over UDP. Prints a line each and the ratios; ends with status
1 if a target is missed: TARGETS. Not a test, because it needs a quiet machine: as root,
`chrt -r 10 tests/bench/roce.py` is first on a busy one.
"""
import argparse
from pathlib import Path
import re
import socket
import subprocess
import sys
import time

ROOT = Path(__file__).resolve().parents[2]
SERVER, PORT = "10.77.0.1", 5555
SOL_UDP, UDP_SEGMENT, UDP_GRO = 17, 103, 104
PACKET = 4096 + 28  # a path MTU of 4096 with its headers
BURST = 15 * PACKET
SECONDS = 3
TARGETS = {"ib_write_bw": 0.5, "ib_send_bw": 0.5, "ib_read_bw": 0.5, "ib_send_lat -e": 2.5}


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


def run(args, server, client, wanted):
    """Return the number that a pattern finds in what both say."""
    done = subprocess.run([ROOT / "tools/fabric/fabric", "run", "--build", args.build, "--wire",
                           "roce", "--gap", "1", "--timeout", "60", server, client],
                          capture_output=True, text=True, check=False)
    found = re.search(wanted, done.stdout, re.MULTILINE)
    if not found:
        sys.exit(f"status {done.returncode}: {done.stdout}{done.stderr}")
    return float(found[1])


def perftest(args, name, wanted):
    return run(args, f"a:{name} -d fab0 -x 1 -n {args.n}",
               f"b:{name} -d fab0 -x 1 -n {args.n} {SERVER}", wanted)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("-n", default=20000, type=int, help="messages of each program")
    parser.add_argument("role", nargs="?", choices=("receive", "send"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.role:
        return receive() if args.role == "receive" else send()
    udp = run(args, f"a:{__file__} receive", f"b:{__file__} send", r"udp ([\d.]+) GB/s")
    ping = run(args, "a&:qperf", f"b:qperf -m 2 {SERVER} udp_lat", r"latency += +([\d.]+) us")
    print(f"UDP              {udp:8.2f} GB/s\nUDP ping-pong    {ping:8.1f} us")
    missed = 0
    for name, target in TARGETS.items():
        if name.endswith("_bw"):
            value = perftest(args, name, r"^b\|  65536 +\d+ +[\d.]+ +([\d.]+)") * (1 << 20) / 1e9
            print(f"{name:17}{value:8.2f} GB/s, {value / udp:.2f} of UDP, {target} is wanted")
            missed += value < target * udp
        else:
            value = perftest(args, name, r"^b\|  2 +\d+ +[\d.]+ +[\d.]+ +([\d.]+)")
            print(f"{name:17}{value:8.1f} us, {value / ping:.2f} of UDP, {target} at most")
            missed += value > target * ping
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
