#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The demonstration on a soft fabric: Debian's rping over purecm between two hosts that take half a
second to make, as an ordinary user.

tools/demo runs it after setting up. Exit status: 0 if the connection worked, 3 if this machine
cannot have a fabric.
"""
import argparse
import os
from pathlib import Path
import subprocess
import sys
import time

import exchange

ROOT = Path(__file__).resolve().parents[1]
SERVER, CLIENT = "10.77.0.1", "10.77.0.2"
TIMEOUT_S = 30
NO_FABRIC = 3


def main():
    args = parse()
    if not can_run(args):
        return NO_FABRIC
    print("\nTwo hosts in network namespaces, with a device each that is made of unix sockets;\n"
          "on both Debian's own unmodified rping, and no RDMA support in the kernel:\n", flush=True)
    commands = {"a": f"rping -s -a {SERVER} -C 3 -v", "b": f"rping -c -a {SERVER} -C 3 -v"}
    started = time.monotonic()
    done = fabric(args, "--timeout", str(TIMEOUT_S), *(f"{host}:PURECM_LOG=debug {command}"
                                                       for host, command in commands.items()))
    records = show(commands, done.stdout.splitlines())
    print(f"  both: status {done.returncode} after {time.monotonic() - started:.2f} s\n\n"
          "  What purecm on b sent (-->) and received (<--), decoded by its own code:\n")
    for line in exchange.chart(records, args.all, args.colour):
        print(line)
    if done.returncode:
        print(f"\ntools/demo: {done.stderr}", file=sys.stderr)
        return 1
    conclude(args)
    return 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=Path, help="build folder")
    parser.add_argument("--all", action="store_true", help="all fields of every message")
    args = parser.parse_args()
    args.colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return args


def fabric(args, *arguments):
    """Run tools/fabric/fabric. Return: what subprocess.run() does."""
    return subprocess.run([ROOT / "tools/fabric/fabric", "run", "--build", args.build, *arguments],
                          capture_output=True, text=True, check=False)


def can_run(args):
    """Whether there can be hosts here; else it is said why not."""
    done = fabric(args, "--timeout", str(TIMEOUT_S), "a:true", "b:true")
    if done.returncode:
        print(f"\nNo soft fabric on this machine: {done.stderr.strip()}", flush=True)
    return done.returncode == 0


def show(commands, lines):
    """Print what the programs said. Return: what purecm on b logged."""
    records = []
    for host, command in commands.items():
        print(f"  {host}$ {command}")
        for line in lines:
            name, bar, text = line.partition("| ")
            if not bar or name != host:
                continue
            record = exchange.parse(text)
            if not record:
                print(f"  {line}")
            elif host == "b":
                records.append(record)
        print()
    return records


def conclude(args):
    build = os.path.relpath(args.build)
    print(f"""
  any program on such hosts      tools/fabric/fabric run a:SERVER b:CLIENT; see docs/fabric.md
  any program on purecm          LD_LIBRARY_PATH={build}/lib PROGRAM
  with a stock kernel as peer    tools/demo --lab
  all tests                      tools/check""", flush=True)


if __name__ == "__main__":
    sys.exit(main())
