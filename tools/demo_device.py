#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The demonstration on this machine's own RDMA device, with a second machine as the peer.

tools/demo runs it where a device is there whose CM class nobody owns. A port serves one process
at a time, so both ends cannot be on one machine: this one runs Debian's rping on purecm and says
what to run on the other. Exit status: 0 if a connection worked, 1 if it failed, 3 if there was
nothing to connect to.
"""
import argparse
import ipaddress
import os
from pathlib import Path
import signal
import subprocess
import sys

import exchange

SYS = Path("/sys/class/infiniband")
PINGS = "3"
WORKED, FAILED, NOBODY = 0, 1, 3


def main():
    args = parse()
    ports = list(active_ports())
    for device, number, netdev, address in ports:
        print(f"  {device} port {number}: {netdev}, {address}")
    if not ports:
        print("  no port is active with an IPv4 address; see: rdma link, ip address")
        return NOBODY
    try:
        return connect(args) if args.connect else serve(args, str(ports[0][-1]))
    except KeyboardInterrupt:
        return 130


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("library", type=Path, help="folder with our librdmacm.so.1")
    parser.add_argument("--connect", metavar="ADDRESS", help="be the client")
    parser.add_argument("--wait", type=float, default=60, help="seconds for a client to come (60)")
    parser.add_argument("--all", action="store_true", help="all fields of every message")
    return parser.parse_args()


def active_ports():
    """Yield (device, port number, network interface, IPv4 address) of the RoCE v2 GIDs in use."""
    for gid_file in sorted(SYS.glob("*/ports/*/gids/*")):
        port = gid_file.parents[1]
        try:
            gid = ipaddress.IPv6Address(gid_file.read_text().strip())
            kind = (port / "gid_attrs/types" / gid_file.name).read_text().strip()
            netdev = (port / "gid_attrs/ndevs" / gid_file.name).read_text().strip()
            active = "ACTIVE" in (port / "state").read_text()
        except (OSError, ValueError):
            continue  # an empty entry of the table
        if active and gid.ipv4_mapped and kind == "RoCE v2":
            yield port.parents[1].name, port.name, netdev, gid.ipv4_mapped


def serve(args, address):
    """Wait for a peer's rping. Return: exit status."""
    print(f"\nOn another machine, with whatever librdmacm it has:\n\n"
          f"    rping -c -a {address} -C {PINGS} -v\n\n"
          f"Waiting {args.wait:.0f} s for it. (The other way round: start rping -s -a THERE "
          f"-C {PINGS} -v there,\nand tools/demo --connect THERE here.)", flush=True)
    return report(args, ["rping", "-s", "-a", address, "-C", PINGS, "-v"], args.wait)


def connect(args):
    print(f"\nConnecting to {args.connect}, where this should run:\n\n"
          f"    rping -s -a {args.connect} -C {PINGS} -v\n", flush=True)
    return report(args, ["rping", "-c", "-a", args.connect, "-C", PINGS, "-v"], 60)


def report(args, command, timeout_s):
    """Run rping on purecm; print what it said and what crossed the cable. Return: exit status."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(args.library.resolve()),
                   "PURECM_LOG": "debug"}
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.PIPE, errors="replace", env=environment) as rping:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(FAILED))
        try:
            out, log = rping.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            rping.kill()
            out, log = rping.communicate()
        except BaseException:
            rping.kill()
            raise
    records = [record for record in map(exchange.parse, log.splitlines()) if record]
    if not any(record.name for record in records) and rping.returncode == -signal.SIGKILL:
        print("\nNobody came.")
        return NOBODY
    show(args, command, out + log, records)
    print(f"\nrping ended with status {rping.returncode}")
    return FAILED if rping.returncode else WORKED


def show(args, command, output, records):
    print(f"\n$ LD_LIBRARY_PATH={args.library} {' '.join(command)}")
    for line in output.splitlines():
        if line and not exchange.parse(line):
            print(f"| {line}")
    print()
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    if records:
        print("\n".join(exchange.chart(records, args.all, colour)))


if __name__ == "__main__":
    sys.exit(main())
