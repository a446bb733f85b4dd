#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""All targets of docs/scale.md in one table, stock and purecm in the same emulated hosts.

Runs cmtime.py, connect.py, crowd.py, calls.py, all_to_all.py, idle.py and core and prints a line
for each target: stock, purecm, their ratio, what is wanted, and whether that is met. Rows in
seconds and handshakes are by the clock and need an idle machine; instructions, system calls,
wake-ups and memory are counted and do not. Targets in virtual time are unit tests.

Exit status: 1 if a target is missed, 2 if a part could not be run; the others are.
"""
import argparse
import contextlib
import io
from pathlib import Path
import re
import statistics
import subprocess
import sys
import time

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import all_to_all  # noqa: E402
import calls  # noqa: E402
import cmtime  # noqa: E402
import connect  # noqa: E402
import crowd  # noqa: E402
import idle  # noqa: E402
from benchlib import LIBRARIES, LabError, make_lab  # noqa: E402
from hosts import Skip  # noqa: E402 all_to_all knows where it is

CPUS = (1, 2)  # of each host
INSTRUCTION_COUNTS = (1, 100, 1000)
RATIOS = {"connect, program's QPs": 0.9, "connect, no QPs": 0.5, "connect, rdma_create_qp()": 0.8,
          "disconnect": 0.5, "processes": 0.7, "instructions": 0.6}
SLOWEST_OF = 500  # connections at once
MILLION = 1000000
HANDSHAKES = MILLION  # a second
CONNECTION_BYTES = 1024 - 136  # cmportd has the rest
KINDS = {"QPs": "program's QPs", "no QPs": "no QPs"}


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build",
                        help="build folder (default: build)")
    parser.add_argument("--rounds", type=int, default=10, help="of each library (default: 10)")
    parser.add_argument("--counts", default="100,500,2000",
                        help="connections at once (default: 100,500,2000)")
    parser.add_argument("--crowds", type=crowd.crowd_sizes, default=crowd.CROWDS,
                        help=f"processes x connections of each (default: {crowd.CROWDS})")
    parser.add_argument("--hosts", type=int, default=9, help="of all to all (default: 9)")
    parser.add_argument("--idle", type=int, default=500, help="idle processes (default: 500)")
    parser.add_argument("--parts", default=",".join(PARTS),
                        help=f"some of {', '.join(PARTS)} (default: all)")
    args = parser.parse_args()
    args.build = args.build.resolve()
    args.counts = [int(count) for count in args.counts.split(",")]
    args.parts = args.parts.split(",")
    unknown = set(args.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return args


class Table:
    """The lines of the table, printed as they come; counts the targets that are missed, and keeps
    what could not be run."""

    def __init__(self):
        self.missed, self.wrong = 0, []
        print(f"{'':46}{'stock':>10}{'purecm':>10}{'ratio':>8}{'wanted':>8}")

    def line(self, text, pair, wanted, is_met):
        ratio = f"{pair[1] / pair[0]:8.2f}" if pair[0] else f"{'-':>8}"
        self.missed += not is_met
        print(f"{text:46}{pair[0]:10.3f}{pair[1]:10.3f}{ratio}{wanted:8}  "
              f"{'met' if is_met else 'MISSED'}", flush=True)

    @contextlib.contextmanager
    def part(self, name):
        """Go on with the other parts if this one cannot be run; it may be hours of work."""
        began = time.monotonic()
        try:
            yield
            print(f"table.py: {name} took {time.monotonic() - began:.0f} s", file=sys.stderr,
                  flush=True)
        except (LabError, Skip, OSError, subprocess.SubprocessError) as error:
            self.wrong.append(f"table.py: {name} did not run: {error}")
            print(self.wrong[-1], file=sys.stderr, flush=True)

    def ratio(self, target, text, pair):
        limit = RATIOS[target]
        self.line(text, pair, limit, pair[1] <= limit * pair[0])

    def most(self, text, pair, limit):
        self.line(text, pair, limit, pair[1] <= limit)

    def own(self, text, value, wanted, is_met):
        """What stock was not measured for."""
        self.missed += not is_met
        print(f"{text:46}{'-':>10}{value:10.3f}{'-':>8}{wanted:8}  "
              f"{'met' if is_met else 'MISSED'}", flush=True)


def settings(args, **own):
    """Return what a benchmark gets as the arguments of its command line."""
    return argparse.Namespace(build=args.build, rounds=args.rounds, **own)


def storms(table, args):
    program = cmtime.find_program()
    for cpus in CPUS:
        own = settings(args, hosts=2, cpus=cpus, counts=args.counts, other=None)
        with table.part(f"storms, {cpus} CPU"):
            with make_lab(2, cpus) as lab:
                bench = cmtime.Bench(lab, own, program)
                cmtime.measure(bench, own)
            for count in args.counts:
                lines_of_storm(table, bench, f"{cpus} CPU, {count}", count)


def lines_of_storm(table, bench, begin, count):
    for step, targets in (("full connect", "connect, {}"), ("disconnect", "disconnect")):
        for kind, name in KINDS.items():
            pair = bench.medians(count, "client", kind, step, "total")
            table.ratio(targets.format(name), f"{begin}: {step}, {name}, s", pair)
    table.most(f"{begin}: REQs repeated", bench.medians_repeated(count), 0)
    if count == SLOWEST_OF:
        for kind, name in KINDS.items():
            table.most(f"{begin}: slowest of its median, {name}", bench.slowest(count, kind),
                       cmtime.SLOWEST)


def steps_of_connect(args, lab, hosts, counts):
    """Return {(count, step): [us of stock, of purecm]} of the client."""
    bench = connect.Bench(lab, settings(
        args, hosts=hosts, counts=",".join(map(str, counts)), fake_qpn=False, mixed=False,
        stock_only=False, program=args.build / "tools/certify/connect"))
    connect.measure(bench, bench.args)
    tables = [bench.client[library, library] for library in LIBRARIES]
    return {key: [statistics.median(one[key]) for one in tables] for key in tables[0]}


def made_queue_pairs(table, args):
    for cpus in CPUS:
        with table.part(f"queue pairs, {cpus} CPU"):
            with make_lab(2, cpus) as lab:
                steps = steps_of_connect(args, lab, 2, args.counts)
            for count in args.counts:
                us = steps[count, "connect"]
                table.ratio("connect, rdma_create_qp()",
                            f"{cpus} CPU, {count}: connect, rdma_create_qp(), s",
                            [one * count / 1e6 for one in us])


def crowds(table, args):
    for cpus in CPUS:
        own = settings(args, hosts=2)
        with table.part(f"processes, {cpus} CPU"):
            with make_lab(2, cpus) as lab, contextlib.redirect_stdout(sys.stderr):
                bench = crowd.Crowd(lab, own)
                bench.warm_up()
                all_of = [(size, *crowd.measure(bench, own, *size)) for size in args.crowds]
            for (processes, each), seconds, failures in all_of:
                text = f"{cpus} CPU, {processes} processes x {each}"
                table.ratio("processes", f"{text}, s", [seconds[one] for one in LIBRARIES])
                table.most(f"{text}: that failed", [failures[one] for one in LIBRARIES], 0)


def instructions(table, args):
    with make_lab(1) as lab:
        steps = steps_of_connect(args, lab, 1, INSTRUCTION_COUNTS)
    for step in ("connect", "disconnect"):
        for count in INSTRUCTION_COUNTS:
            table.ratio("instructions", f"counted, both ends, {count}: {step}, us each",
                        steps[count, step])


def system_calls(table, args):
    with make_lab(2, 1) as lab:
        rounds = calls.measure(lab, settings(args))
    for kind, limit in calls.TARGETS.items():
        pair = calls.sums_of(calls.medians_of(rounds, kind))
        table.most(f"counted, both hosts: {kind} of a connection", pair, limit)


def all_pairs(table, args):
    own = settings(args, hosts=args.hosts, few=10, many=1024, loss=0.01,
                   pairs=args.hosts * (args.hosts - 1))
    all_to_all.become_parent_of_all()
    with contextlib.redirect_stdout(sys.stderr):
        (few, many, _), failed = all_to_all.measure(own)
    table.own("all to all: CPU of one of 1,024 by one of 10", many / few, all_to_all.COSTLIER,
              not failed and many <= all_to_all.COSTLIER * few)


def figures_of_idle(args, is_stock):
    """Return {what: value}, as idle.py prints them."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        idle.measure(settings(args, processes=args.idle, devices=16, starts=20, stock=is_stock))
    figures = {name: float(value)
               for name, value in re.findall(r"^(.*[a-z)]): ([\d.]+)$", text.getvalue(), re.M)}
    if len(figures) < 3 + len(idle.STORMS):
        raise LabError(text.getvalue()[-500:])
    return figures


def idle_processes(table, args):
    stock, purecm = (figures_of_idle(args, is_stock) for is_stock in (True, False))
    for name in stock:
        limit = 0 if name.startswith("wake-ups") else stock[name]
        table.most(f"idle: {name}"[:46], [stock[name], purecm[name]], limit)


def protocol_alone(table, args):
    text = subprocess.run([args.build / "tests/bench/core"], capture_output=True, text=True,
                          check=True).stdout
    for count, size, rate in re.findall(r"(\d+) connections: +(\d+) bytes.* (\d+)$", text, re.M):
        if int(count) == MILLION:
            table.own("core, a million: bytes each", int(size), CONNECTION_BYTES,
                      int(size) <= CONNECTION_BYTES)
        table.own(f"core, {count}: million handshakes/s", int(rate) / 1e6, HANDSHAKES / 1e6,
                  int(rate) >= HANDSHAKES)


PARTS = {"storms": storms, "queue-pairs": made_queue_pairs, "processes": crowds,
         "instructions": instructions, "calls": system_calls,
         "all-to-all": all_pairs, "idle": idle_processes, "core": protocol_alone}


def main():
    args = parse_args()
    table = Table()
    for part in args.parts:
        with table.part(part):
            PARTS[part](table, args)
    print(f"medians of {args.rounds} rounds; targets missed: {table.missed}; "
          f"parts that did not run: {len(table.wrong)}")
    left_out = [part for part in PARTS if part not in args.parts]
    if left_out:
        print(f"left out by --parts: {', '.join(left_out)}")
    print(*table.wrong, sep="\n", end="\n" * bool(table.wrong), file=sys.stderr)
    return 2 if table.wrong else 1 if table.missed else 0


if __name__ == "__main__":
    sys.exit(main())
