#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What looking on costs: connects while nobody looks on, and while `purecm trace` or `purecm stat`
does, in turns, as the ratio of the two.

Between two hosts of the soft fabric, or with --lab in the lab. "off" is played twice, so that its
own ratio says how much of the others is noise. Exit status: 1 if looking on costs more than a
twentieth of the connect rate, 77 if there can be no fabric here.
"""
import argparse
from pathlib import Path
import statistics
import sys

HERE = Path(__file__).resolve().parent
sys.path[:0] = str(HERE.parent / "lab"), str(HERE.parent / "fabric")

from hosts import SKIPPED, Skip, run_on_fabric  # noqa: E402
from lablib import Lab, LabError  # noqa: E402

LIMIT = 1.05
STEPS = ("connect", "all")
WATCHERS = {
    "off": None,
    "off again": None,
    "trace": "trace",
    "trace -w": "trace -w /dev/null",
    "stat --watch=1": "stat --watch=1",
}


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build",
                        help="build folder (default: build)")
    parser.add_argument("--rounds", type=int, default=9, help="of each (default: 9)")
    parser.add_argument("--count", type=int, default=1000, help="connections at a time")
    parser.add_argument("--lab", action="store_true", help="in the lab, not on the fabric")
    args = parser.parse_args()
    args.build = args.build.resolve()
    return args


def figures(text):
    """Return {step: us for each connection} of what the client prints."""
    rows = (line.split() for line in text.splitlines())
    return {row[1]: float(row[2]) for row in rows if len(row) == 3 and row[1] in STEPS}


class OnFabric:
    def __init__(self, args):
        self.args = args

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def round(self, watcher):
        program = self.args.build / "tests/bench/connect"
        look_on = [f"a&:exec {self.args.build}/tools/purecm {watcher} >/dev/null"]
        try:
            done = run_on_fabric(self.args.build, 60, "--gap", "0.3",
                                 f"b&:exec {program} server 10.77.0.2",
                                 *(look_on if watcher else []),
                                 f"a:{program} client -n {self.args.count} 10.77.0.2")
        except Skip as skip:
            print(skip)
            sys.exit(SKIPPED)
        if done.returncode:
            raise LabError(done.stdout + done.stderr)
        return figures(done.stdout)


class InLab:
    def __init__(self, args):
        self.args = args
        self.lab = Lab({"a": "purecm", "b": "purecm"})
        self.env = {"LD_LIBRARY_PATH": str(args.build / "lib")}

    def __enter__(self):
        self.lab.__enter__()
        return self

    def __exit__(self, *what):
        self.lab.__exit__(*what)

    def round(self, watcher):
        a, b = self.lab.a, self.lab.b
        program = self.args.build / "tests/bench/connect"
        server = b.start([program, "server", b.addr4], env=self.env)
        looker = None
        try:
            server.wait_for_output("^ready", timeout=30)
            if watcher:
                looker = a.start(["sh", "-c", f"exec {self.args.build}/tools/purecm {watcher} "
                                  ">/dev/null"], env=self.env)
                a.run(["sleep", "1"])
            done = a.run([program, "client", "-n", str(self.args.count), b.addr4], env=self.env,
                         timeout=120)
        finally:
            if looker:
                looker.stop()
            server.stop()
        if not done.ok:
            raise LabError(done.output)
        return figures(done.stdout)


def measure(place, rounds):
    """Return {watcher: {step: [us, one for each round]}}; who goes first changes each round."""
    table = {name: {step: [] for step in STEPS} for name in WATCHERS}
    names = list(WATCHERS)
    for number in range(rounds):
        for name in names[number % len(names):] + names[:number % len(names)]:
            for step, us in place.round(WATCHERS[name]).items():
                table[name][step].append(us)
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return table


def quick(figures_us):
    """Return the median of the better half: what others on the machine do only adds."""
    return statistics.median(sorted(figures_us)[:(len(figures_us) + 1) // 2])


def report(table):
    """Print times and ratios. Return what costs too much."""
    missed = []
    print(f"us for each connection, and as a ratio to off (at most {LIMIT} for connect)")
    print(f"{'':16}" + "".join(f"{step:>18}" for step in STEPS))
    for name, rows in table.items():
        cells = ""
        for step in STEPS:
            us = quick(rows[step])
            ratio = us / min(quick(table["off"][step]), quick(table["off again"][step]))
            cells += f"{us:10.1f}  {ratio:6.3f}"
            if step == "connect" and ratio > LIMIT and WATCHERS[name]:
                missed.append(name)
        print(f"{name:16}{cells}")
    return missed


def main():
    args = parse_args()
    try:
        with (InLab if args.lab else OnFabric)(args) as place:
            missed = report(measure(place, args.rounds))
    except LabError as error:
        print(f"onlook.py: {error}", file=sys.stderr)
        return 2
    if missed:
        print(f"costs too much: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
