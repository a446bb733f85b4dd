#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures connections between two hosts of a soft fabric that share one core with everything.

Debian's cmtime, which connects queue pairs that nothing is posted to. Prints a line for each step:
microseconds a connection and connections a second, the best of all rounds, as other work on a
machine only ever slows down. Ends with status 1 if a target is missed: TARGETS; not a test,
because it needs a core that does nothing else: --first, for which one has to be root, makes one of
a core of a busy machine.
"""
import argparse
import os
from pathlib import Path
import re
import subprocess
import sys

ROOT = Path(__file__).resolve().parents[2]
STEPS = ("create id", "resolve addr", "resolve route", "create qp", "connect", "disconnect",
         "destroy")
TARGETS = {"connect": 20000}  # a second
STEP = re.compile(r"b\| (" + "|".join(STEPS) + r") *: +([\d.]+)")


def round_of(args):
    """Return {step: microseconds a connection} of one run."""
    core = args.core if args.core is not None else max(os.sched_getaffinity(0))
    first = ["chrt", "-r", "10"] if args.first else []
    done = subprocess.run(
        [*first, "taskset", "-c", str(core), ROOT / "tools/fabric/fabric", "run",
         "--build", args.build, "--link", args.link, "--timeout", "120", "--gap", "1",
         "a&:exec cmtime -b 10.77.0.1", f"b:cmtime -s 10.77.0.1 -c {args.connections}"],
        capture_output=True, text=True, check=False)
    steps = {name: 1000 * float(ms) / args.connections for name, ms in STEP.findall(done.stdout)}
    if done.returncode or set(steps) != set(STEPS):
        sys.exit(f"status {done.returncode}: {done.stdout}{done.stderr}")
    return steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=2000)
    parser.add_argument("--link", choices=("roce", "ib"), default="roce")
    parser.add_argument("--core", type=int, help="which (the last that it may have)")
    parser.add_argument("--first", action="store_true",
                        help="before all else on that core, by a real-time priority")
    args = parser.parse_args()
    rounds = [round_of(args) for _ in range(args.rounds)]
    missed = 0
    for step in STEPS:
        best = max(min(steps[step] for steps in rounds), 0.01)
        wanted = TARGETS.get(step, 0)
        missed += 1e6 / best < wanted
        note = f"   at least {wanted} are wanted" if wanted else ""
        print(f"{step:14}{best:8.1f} us{1e6 / best:12.0f} a second{note}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
