#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures what the way through cmportd adds to one MAD, by our library with and without it.

A connection at a time is made, with processes that own their ports (PURECM_PORTD=inline) and
through cmportd, alternating in the same guests. REQ and REP pass two cmportds each, out of one
host and into the other, so a hop costs a quarter of the difference. Prints both medians and the
cost of a hop.
Exit status: 2 if the lab did not run.
"""
import argparse
from pathlib import Path
import statistics
import sys

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lab"))
from lablib import Lab, LabError  # noqa: E402

HOPS = 4
WAYS = {"inline": {"PURECM_PORTD": "inline"}, "cmportd": {}}


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build",
                        help="build folder (default: build)")
    parser.add_argument("--rounds", type=int, default=5, help="of each way (default: 5)")
    return parser.parse_args()


def connect_us(lab, build, environment):
    """Return the mean time of a connection, one at a time."""
    program = build / "tests/bench/connect"
    env = {"LD_LIBRARY_PATH": str(build / "lib"), **environment}
    for host in (lab.a, lab.b):
        host.mode("purecm", kill=True)
    server = lab.b.start([program, "server", lab.b.addr4], env=env)
    try:
        server.wait_for_output("^ready", timeout=30)
        result = lab.a.run([program, "client", "-n", "1", lab.b.addr4], env=env, timeout=120)
    finally:
        server.stop()
    result.check()
    for line in result.stdout.splitlines():
        count, step, us = line.split()
        if step == "connect":
            return float(us)
    raise LabError(f"the benchmark does not say how long a connection took: {result.stdout}")


def main():
    args = parse_args()
    if not (args.build / "tests/bench/connect").exists():
        sys.exit(f"hop.py: there is no benchmark in {args.build}; build it with meson first")
    times = {way: [] for way in WAYS}
    try:
        with Lab({"a": "purecm", "b": "purecm"}) as lab:
            for _ in range(args.rounds):
                for way, environment in WAYS.items():
                    times[way].append(connect_us(lab, args.build.resolve(), environment))
    except LabError as error:
        print(f"hop.py: {error}", file=sys.stderr)
        return 2
    medians = {way: statistics.median(us) for way, us in times.items()}
    print(f"a connection: {medians['inline']:.0f} us inline, {medians['cmportd']:.0f} us through "
          f"cmportd; {(medians['cmportd'] - medians['inline']) / HOPS:.0f} us a hop")
    return 0


if __name__ == "__main__":
    sys.exit(main())
