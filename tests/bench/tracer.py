#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What tracing costs: connects without a tracer, and while `purecm trace` or `purecm stat`
does, in turns, as the ratio of the two.

Between two hosts of the soft fabric, or with --lab in the lab; with --kernel what `purecm trace
--kernel` costs the kernel's connection manager, both ends on one host of the lab whose clock counts
instructions. A round plays all of them, each
several times, of which the quickest counts: what others on the machine do only adds. Each is
compared with "off" and "off again" of the same round, and the median of these ratios is reported.
Exit status: 1 if tracing costs more than a twentieth of the connect rate, 77 if there can be no
fabric here, or if "off" and "off again" differ by as much.
"""
import argparse
from pathlib import Path
import statistics
import subprocess
import sys
import time

HERE = Path(__file__).resolve().parent
sys.path[:0] = str(HERE), str(HERE.parent / "fabric")

from hosts import SKIPPED, Skip, run_on_fabric  # noqa: E402
from benchlib import Lab, LabError, environment, make_lab, server_host  # noqa: E402

LIMIT = 1.05
REST_S = 0.1  # for the last to be taken, and for the server to destroy what it has
STEPS = ("connect", "all")
WATCHERS = {
    "off": None,
    "off again": None,
    "trace": "trace",
    "trace -w": "trace -w /dev/null",
    "stat --watch=1": "stat --watch=1",
}
OF_KERNEL = {
    "off": None,
    "off again": None,
    "trace --kernel": "trace --kernel",
    "stat --kernel": "stat --kernel --watch=1",
}


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build",
                        help="build folder (default: build)")
    parser.add_argument("--rounds", type=int, default=9, help="of each (default: 9)")
    parser.add_argument("--runs", type=int, default=3, help="in a round, of each (default: 3)")
    parser.add_argument("--count", type=int, default=1000, help="connections at a time")
    parser.add_argument("--inside", metavar="ADDRESS", help=argparse.SUPPRESS)  # as OnFabric says
    parser.add_argument("--lab", action="store_true", help="in the lab, not on the fabric")
    parser.add_argument("--kernel", action="store_true",
                        help="the kernel's connection manager, in the lab")
    args = parser.parse_args()
    args.watchers = OF_KERNEL if args.kernel else WATCHERS
    args.build = args.build.resolve()
    return args


def figures(text):
    """Return {step: us for each connection} of what the client prints."""
    rows = (line.split() for line in text.splitlines())
    return {row[1]: float(row[2]) for row in rows if len(row) == 3 and row[1] in STEPS}


def quickest(all_figures):
    return {step: min(figures[step] for figures in all_figures) for step in STEPS}


class OnFabric:
    """One fabric for all rounds: this script is started once more on its host a, --inside."""

    def __init__(self, args):
        self.args = args

    def measure(self):
        args = self.args
        try:
            done = run_on_fabric(args.build, 600, "--gap", "0.3",
                                 f"b&:exec {args.build}/tools/certify/connect server 10.77.0.2",
                                 f"a:{sys.executable} {__file__} --build {args.build} --rounds "
                                 f"{args.rounds} --runs {args.runs} --count {args.count} "
                                 "--inside 10.77.0.2")
        except Skip as skip:
            print(skip)
            sys.exit(SKIPPED)
        if done.returncode:
            raise LabError(done.stdout + done.stderr)
        return table_of(done.stdout)


class Inside:
    def __init__(self, args):
        self.args = args

    def measure(self):
        return play(self.round, self.args)

    def round(self, watcher):
        args, looker = self.args, None
        if watcher:
            looker = subprocess.Popen([args.build / "tools/purecm", *watcher.split()],
                                      stdout=subprocess.DEVNULL)
            time.sleep(REST_S)
        try:
            return quickest([self.connect() for _ in range(args.runs)])
        finally:
            if looker:
                looker.terminate()
                looker.wait()

    def connect(self):
        done = subprocess.run([self.args.build / "tools/certify/connect", "client", "-n",
                               str(self.args.count), self.args.inside],
                              stdout=subprocess.PIPE, text=True, check=True)
        return figures(done.stdout)


class InLab:
    def __init__(self, args):
        self.args = args
        self.lab = self.server = None
        self.env = environment("stock" if args.kernel else "purecm", args.build)

    def measure(self):
        with (make_lab(1) if self.args.kernel else Lab({"a": "purecm", "b": "purecm"})) as self.lab:
            self.server = server_host(self.lab, 1 if self.args.kernel else 2)
            server = self.server.start([self.args.build / "tools/certify/connect", "server",
                                        self.server.addr4], env=self.env)
            try:
                server.wait_for_output("^ready", timeout=30)
                return play(self.round, self.args)
            finally:
                server.stop()

    def round(self, watcher):
        a, looker = self.lab.a, None
        if watcher:
            looker = a.start(["sh", "-c", f"exec {self.args.build}/tools/purecm {watcher} "
                              ">/dev/null"], env=self.env)
            a.run(["sleep", "1"])
        try:
            return quickest([self.connect() for _ in range(self.args.runs)])
        finally:
            if looker:
                looker.stop()

    def connect(self):
        done = self.lab.a.run([self.args.build / "tools/certify/connect", "client", "-n",
                               str(self.args.count), self.server.addr4], env=self.env, timeout=120)
        if not done.ok:
            raise LabError(done.output)
        return figures(done.stdout)


def play(play_one, args):
    """Return {watcher: {step: [us, one for each round]}}; who goes first changes each round."""
    table = {name: {step: [] for step in STEPS} for name in args.watchers}
    names = list(args.watchers)
    for number in range(args.rounds):
        for name in names[number % len(names):] + names[:number % len(names)]:
            for step, us in play_one(args.watchers[name]).items():
                table[name][step].append(us)
        print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
    return table


def write_table(table):
    for name, rows in table.items():
        for step, us in rows.items():
            print("figures", step, *us, name, sep="\t")


def table_of(text):
    """Return what write_table() has written."""
    table = {}
    for line in text.splitlines():
        if line.startswith("figures\t"):
            step, *us, name = line.split("\t")[1:]
            table.setdefault(name, {})[step] = [float(one) for one in us]
    return table


def ratio(table, name, step):
    """Return the median of the ratios to the mean of both "off" of the same round."""
    return statistics.median(2 * us / (off + again) for us, off, again in
                             zip(table[name][step], table["off"][step], table["off again"][step]))


def report(table):
    """Print times and ratios. Return what costs too much, and how far both "off" are apart."""
    missed = []
    print(f"us for each connection, and as a ratio to off (at most {LIMIT} for connect)")
    print(f"{'':16}" + "".join(f"{step:>18}" for step in STEPS))
    for name in table:
        ratios = {step: ratio(table, name, step) for step in STEPS}
        print(f"{name:16}" + "".join(f"{statistics.median(table[name][step]):10.1f}"
                                     f"  {ratios[step]:6.3f}" for step in STEPS))
        if ratios["connect"] > LIMIT and not name.startswith("off"):
            missed.append(name)
    return missed, abs(ratio(table, "off again", "connect") - ratio(table, "off", "connect"))


def main():
    args = parse_args()
    if args.inside:
        write_table(Inside(args).measure())
        return 0
    try:
        missed, noise = report((InLab if args.lab or args.kernel else OnFabric)(args).measure())
    except LabError as error:
        print(f"tracer.py: {error}", file=sys.stderr)
        return 2
    if noise > LIMIT - 1:
        print("too much else happens on this machine to judge")
        return SKIPPED
    if missed:
        print(f"costs too much: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
