#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A storm: the cmtime of Debian 13 between two hosts, stock and purecm alternating in them.

This cmtime (rdma-core 56) has all its requests outstanding at once and one thread for events. It
connects twice: with queue pairs that the program makes and moves itself, and without any. Each host
has one CPU unless told otherwise. Emulated hosts are slow and a loaded machine makes them slower,
so only the ratio of medians counts. With --hosts 1 both ends are on one host whose clock counts
instructions: the same on any machine.

Prints a table: seconds for all connections of a storm, REQs that were repeated, and what took
longest. Exit status: 1 if a target is missed, 2 if the lab did not run, 77 if it cannot have the
program.
"""
import argparse
from pathlib import Path
import re
import statistics
import sys

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from benchlib import (LIBRARIES, LabError, add_hosts_argument, environment,  # noqa: E402
                      make_lab, server_host)
from lablib import userland  # noqa: E402
from lablib.release import RELEASES  # noqa: E402

KINDS = {"QPs": "with queue pairs", "no QPs": "without"}
# What is printed of a storm: step of cmtime -> (column, greatest ratio by kind).
# "total" is by the clock for all connections, "sum" adds up what each took.
CLIENT_STEPS = {
    "full connect": ("total", {"QPs": 0.9, "no QPs": 0.5}),
    "resolve addr": ("total", {}),
    "resolve route": ("total", {}),
    "cm connect": ("total", {}),
    "disconnect": ("total", {"QPs": 0.5, "no QPs": 0.5}),
}
SERVER_STEPS = ("create qp", "rtr qp", "rts qp")
SLOWEST = 2  # times the median
TIMEOUT_S = 600
EXPLAINED = 3  # failed connections of each host of a storm that fails
FAILED = re.compile(r"^#\d+ .*: FAILED.*(?:\n .*)*", re.M)

HEADING = re.compile(r"^(?:Connect|Accept) \((\d+)\) (?:(QPs) test|test - (no QPs))$", re.M)
ROW = re.compile(r"^([a-z]+(?: [a-z]+)*) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)$", re.M)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build",
                        help="build folder (default: build)")
    add_hosts_argument(parser, default=2)
    parser.add_argument("--cpus", type=int, default=1, help="of each host (default: 1)")
    parser.add_argument("--counts", default="100,500", help="connections at once, such as 100,2000 "
                        "(default: 100,500)")
    parser.add_argument("--rounds", type=int, default=10, help="of each library (default: 10)")
    parser.add_argument("--other", type=Path, metavar="BUILD",
                        help="another build of purecm, to compare with instead of stock")
    args = parser.parse_args()
    args.build = args.build.resolve()
    args.other = args.other and args.other.resolve()
    args.cpus = 1 if args.hosts == 1 else args.cpus
    args.counts = [int(count) for count in args.counts.split(",")]
    return args


def storms_of(text):
    """Return {(kind, step): {"total": us, "sum": us, "max": us}} of what cmtime printed."""
    headings = list(HEADING.finditer(text))
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    table = {}
    for heading, end in zip(headings, ends):
        for row in ROW.finditer(text[heading.end():end]):
            step, *numbers = row.groups()
            _, total, _, added, most, _ = map(int, numbers)
            table[heading[2] or heading[3], step] = {"total": total, "sum": added, "max": most}
    return table


class Bench:
    """The lab, the two libraries that take turns in it, and every figure measured."""

    def __init__(self, lab, args, program):
        self.lab = lab
        self.args = args
        self.program = program
        self.server = server_host(lab, args.hosts)
        self.hosts = {lab.a, self.server}
        self.builds = {"stock": args.other or args.build, "purecm": args.build}
        self.figures = {}  # {(count, library, end, kind, step, column): [us, one a round]}
        self.repeated = {}  # {(count, library): [REQs, one a round]}

    def mode(self, library):
        """Return what the hosts have to be: two builds of purecm need the same of them."""
        return "purecm" if self.args.other else library

    def name(self, library):
        """Return what the table calls a library."""
        return {"stock": "other", "purecm": "this"}[library] if self.args.other else library

    def environment(self, library):
        return environment(self.mode(library), self.builds[library])

    def run_purecm(self, host, library, words):
        kernel = ["--kernel"] if self.mode(library) == "stock" else []
        return host.run([self.builds[library] / "tools/purecm", "stat", *kernel, *words],
                        env=environment("purecm", self.builds[library]))

    def count_repeated(self, library):
        """Return how many REQs the client's host has ever repeated."""
        text = self.run_purecm(self.lab.a, library, ["--prometheus"]).stdout
        name = "purecm_messages" if self.mode(library) == "stock" else "purecm_port_messages"
        return sum(map(int, re.findall(rf'^{name}_total.*message="REQ",what="repeated"}} (\d+)',
                                       text, re.M)))

    def wait_until_listening(self, library):
        kernel = "--kernel" if self.mode(library) == "stock" else ""
        self.server.wait_for(f"{self.builds[library]}/tools/purecm stat {kernel} | grep -q LISTEN",
                             timeout=60, env=environment("purecm", self.builds[library]))

    def storm(self, library, count):
        """Make all connections of a storm once with each kind, and take down what they took."""
        for host in self.hosts:
            host.mode(self.mode(library), kill=True)
        variables = self.environment(library)
        before = self.count_repeated(library)
        server = self.server.start([self.program, "-b", self.server.addr4, "-c", str(count)],
                                   env=variables, timeout=TIMEOUT_S)
        try:
            self.wait_until_listening(library)
            client = self.lab.a.run([self.program, "-s", self.server.addr4, "-c", str(count)],
                                    env=variables, timeout=TIMEOUT_S)
            repeated = self.count_repeated(library) - before
        finally:
            served = server.stop()
        ends = {"client": storms_of(client.stdout), "server": storms_of(served.stdout)}
        if not client.ok or ("no QPs", "full connect") not in ends["client"]:
            raise LabError(f"{library}, {count} connections: {client.output.strip()[-500:]}\n"
                           f"server: {served.output.strip()[-500:]}{self.explained(library)}")
        self.repeated.setdefault((count, library), []).append(repeated)
        self.enter(count, library, ends)

    def explained(self, library):
        """Return why connections of the storm have failed, by the recordings of purecm's hosts."""
        if self.mode(library) == "stock":
            return ""
        build = self.builds[library]
        texts = {host.name: host.run([build / "tools/purecm", "explain", "--recorded"],
                                     env=environment("purecm", build), timeout=TIMEOUT_S).output
                 for host in self.hosts}
        return "".join(f"\nrecorded on {name}:\n" + "\n".join(FAILED.findall(text)[:EXPLAINED])
                       for name, text in texts.items())

    def enter(self, count, library, ends):
        for end, table in ends.items():
            for (kind, step), row in table.items():
                for column, us in row.items():
                    key = (count, library, end, kind, step, column)
                    self.figures.setdefault(key, []).append(us)

    def medians(self, count, *key):
        """Return a row's figure for each library in seconds; 0 where a server says nothing."""
        return [statistics.median(self.figures.get((count, library, *key), [0])) / 1e6
                for library in LIBRARIES]

    def slowest(self, count, kind):
        """Return what the slowest connect took of the median: it must not be far from it."""
        tops = [self.figures[count, library, "client", kind, "full connect", "total"]
                for library in LIBRARIES]
        return [max(top) / statistics.median(top) for top in tops]

    def medians_repeated(self, count):
        return [statistics.median(self.repeated[count, library]) for library in LIBRARIES]


class Table:
    """What is printed; counts the targets that are missed."""

    def __init__(self, bench):
        self.bench = bench
        self.missed = 0

    def row(self, count, text, pair, limit=None):
        ratio = pair[1] / pair[0] if pair[0] else float(pair[1] > 0)
        verdict = ""
        if limit is not None and not self.bench.args.other:
            verdict = f"{'MISSED' if ratio > limit else 'ok'}, at most {limit}"
            self.missed += ratio > limit
        print(f"{count:6} {text:34}{pair[0]:10.3f}{pair[1]:10.3f}{ratio:8.2f}  {verdict}".rstrip())

    def storm(self, count, kind):
        bench = self.bench
        for step, (column, limits) in CLIENT_STEPS.items():
            self.row(count, f"{step} {KINDS[kind]}", bench.medians(count, "client", kind, step,
                                                                   column), limits.get(kind))
        if kind == "QPs":
            for step in SERVER_STEPS:
                self.row(count, f"  server's {step}, sum",
                         bench.medians(count, "server", kind, step, "sum"))

    def slowest(self, count, kind):
        times = self.bench.slowest(count, kind)
        print(f"{count:6} {'slowest connect, of its median':34}{times[0]:10.2f}{times[1]:10.2f}")

    def repeated(self, count):
        pair = self.bench.medians_repeated(count)
        # Nothing is lost between these hosts, and both live.
        verdict = "MISSED, none wanted" if pair[1] else "ok, none"
        self.missed += bool(pair[1])
        print(f"{count:6} {f'REQs repeated, of {2 * count + 1}':34}{pair[0]:10.0f}{pair[1]:10.0f}"
              f"{'':10}{verdict}")


def find_program():
    """Return the path of Debian 13's cmtime; LabError if it cannot be had here."""
    return userland.root_of(RELEASES["trixie"]) / "usr/bin/cmtime"


def measure(bench, args):
    for library in LIBRARIES:
        bench.storm(library, 10)  # an emulator is slow with code that it runs for the first time
    for number in range(args.rounds):
        for count in args.counts:
            # Each library goes first in every other round.
            for library in LIBRARIES if number % 2 == 0 else reversed(LIBRARIES):
                bench.storm(library, count)
                figure = bench.figures[count, library, "client", "QPs", "full connect", "total"]
                print(f"round {number + 1} of {args.rounds}: {bench.name(library)} "
                      f"{count}: {figure[-1] / 1e6:.3f} s, "
                      f"{bench.repeated[count, library][-1]} REQs repeated", file=sys.stderr)


def print_tables(bench, args):
    """Return how many targets are missed."""
    print(f"seconds, medians of {args.rounds} rounds, on {args.hosts} host(s) with {args.cpus} "
          "CPU(s) each")
    names = "".join(f"{bench.name(library):>10}" for library in LIBRARIES)
    print(f"{'at once':>7}{'':34}{names}{'ratio':>8}")
    table = Table(bench)
    for count in args.counts:
        for kind in KINDS:
            table.storm(count, kind)
            table.slowest(count, kind)
        table.repeated(count)
    return table.missed


def main():
    args = parse_args()
    try:
        program = find_program()
    except LabError as error:
        print(f"skipped: there is no cmtime of Debian 13 here: {error}")
        return 77
    try:
        with make_lab(args.hosts, args.cpus) as lab:
            bench = Bench(lab, args, program)
            measure(bench, args)
    except LabError as error:
        print(f"cmtime.py: {error}", file=sys.stderr)
        return 2
    return 1 if print_tables(bench, args) else 0


if __name__ == "__main__":
    sys.exit(main())
