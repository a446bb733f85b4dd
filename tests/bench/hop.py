#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures what the way through cmportd adds to one MAD, by our library with and without it.

A connection at a time is made, with processes that own their ports (PURECM_PORTD=inline) and
through cmportd, alternating in the same guests. REQ and REP pass two cmportds each, out of one
host and into the other, so a hop costs a quarter of the difference. Prints both medians and the
cost of a hop; with --fabric, between two hosts of the soft fabric, the best of each, as there is
no kernel in the way whose times differ.
Exit status: 2 if the lab, or the fabric, did not run.
"""
import argparse
from pathlib import Path
import statistics
import sys

HERE = Path(__file__).resolve().parent
sys.path[:0] = str(HERE.parent / "lab"), str(HERE.parent / "fabric")

from hosts import Skip, run_on_fabric  # noqa: E402
from lablib import Lab, LabError  # noqa: E402

HOPS = 4
WAYS = {"inline": {"PURECM_PORTD": "inline"}, "cmportd": {}}


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build",
                        help="build folder (default: build)")
    parser.add_argument("--rounds", type=int, default=5, help="of each way (default: 5)")
    parser.add_argument("--fabric", action="store_true", help="on the fabric, not in the lab")
    args = parser.parse_args()
    args.build = args.build.resolve()
    return args


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
    return time_of(result.check().stdout)


def time_of(text):
    """Return what the client says of a connection."""
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] == "connect":
            return float(words[2])
    raise LabError(f"the benchmark does not say how long a connection took: {text}")


def connect_on_fabric_us(build, environment):
    """Return the time of a connection between two hosts of the fabric."""
    words = " ".join(["env", *(f"{name}={value}" for name, value in environment.items()),
                      str(build / "tests/bench/connect")])
    try:
        done = run_on_fabric(build, 60, "--gap", "0.5", f"b&:exec {words} server 10.77.0.2",
                             f"a:exec {words} client -n 1 10.77.0.2")
    except Skip as skip:
        raise LabError(str(skip)) from skip
    return time_of(done.stdout)


def measure(args, connect):
    """Have the ways take turns. Return: {way: times in us}."""
    times = {way: [] for way in WAYS}
    for _ in range(args.rounds):
        for way, environment in WAYS.items():
            times[way].append(connect(environment))
    return times


def measure_somewhere(args):
    if args.fabric:
        return measure(args, lambda environment: connect_on_fabric_us(args.build, environment))
    with Lab({"a": "purecm", "b": "purecm"}) as lab:
        return measure(args, lambda environment: connect_us(lab, args.build, environment))


def main():
    args = parse_args()
    if not (args.build / "tests/bench/connect").exists():
        sys.exit(f"hop.py: there is no benchmark in {args.build}; build it with meson first")
    try:
        times = measure_somewhere(args)
    except LabError as error:
        print(f"hop.py: {error}", file=sys.stderr)
        return 2
    figures = {way: (min if args.fabric else statistics.median)(us) for way, us in times.items()}
    print(f"a connection: {figures['inline']:.1f} us inline, {figures['cmportd']:.1f} us through "
          f"cmportd, ratio {figures['cmportd'] / figures['inline']:.2f}; "
          f"{(figures['cmportd'] - figures['inline']) / HOPS:.1f} us a hop")
    return 0


if __name__ == "__main__":
    sys.exit(main())
