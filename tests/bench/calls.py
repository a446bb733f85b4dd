#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""System calls and wake-ups of one connection, from creating the id to destroying it, both hosts.

The kernel of each host counts them itself (histograms of raw_syscalls:sys_enter and
sched:sched_wakeup), so no load of this machine changes them and the programs are not slowed down.
A client makes connections one after the other (tools/certify/connect); what a short run has is
taken from what a long one has, so programs that start and end are left out. "connect" and
"disconnect" alone are in there with resolving and queue pairs, for stock as for purecm.

Exit status: 1 if a target is missed, 2 if the lab did not run.
"""
import argparse
import collections
from pathlib import Path
import re
import statistics
import sys

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from benchlib import LIBRARIES, LabError, environment, make_lab  # noqa: E402

# The threads of a program, of the library and of cmportd. Wake-ups are of all, the kernel's too.
CALLERS = ("connect", "purecm", "cmportd")
EVENTS = {
    "system calls": ("raw_syscalls/sys_enter",
                     [f'hist:keys=id.syscall if comm == "{name}"' for name in CALLERS]),
    "wake-ups": ("sched/sched_wakeup", ["hist:keys=comm:size=4096"]),
}
TARGETS = {"system calls": 45, "wake-ups": 10}
FEW, MANY = 1, 5  # times the client's 30 connections, one after the other
EACH = 30
ENTRY = re.compile(r'^# trigger info: .* if comm == "(.*?)" |'
                   r"^\{ (?:comm|id): (.*?) *(?:\[ *\d+\] *)?\} hitcount: +(\d+)", re.M)
# What the lab itself has in a host.
OF_LAB = re.compile(r"^(?:guestd|python3|sh|cat|init|rcu|ksoftirqd|kworker.*(?:virtio|vcon).*)")


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build",
                        help="build folder (default: build)")
    parser.add_argument("--rounds", type=int, default=3, help="of each library (default: 3)")
    parser.add_argument("--verbose", action="store_true", help="who they are, too")
    args = parser.parse_args()
    args.build = args.build.resolve()
    return args


class Counter:
    """What one host counts."""

    def __init__(self, host):
        self.host = host
        host.run(["sh", "-c", "mountpoint -q /sys/kernel/tracing || "
                  "mount -t tracefs tracefs /sys/kernel/tracing"], check=True)
        for event, triggers in EVENTS.values():
            for trigger in triggers:
                host.run(["sh", "-c", f"echo '{trigger}' "
                          f">>/sys/kernel/tracing/events/{event}/trigger"], check=True)

    def read(self):
        """Return {kind: {name: number}}, since it was set up."""
        table = {}
        for kind, (event, _) in EVENTS.items():
            text = self.host.run(["cat", f"/sys/kernel/tracing/events/{event}/hist"],
                                 check=True).stdout
            table[kind] = collections.Counter()
            caller = None
            for whose, name, number in ENTRY.findall(text):
                if caller and name:
                    table[kind][f"{caller}: {name.removeprefix('sys_')}"] += int(number)
                elif name and not OF_LAB.match(name):
                    table[kind][re.sub(r"[/:].*", "", name)] += int(number)
                caller = whose or caller
        return table


def read_all(counters):
    """Return {(kind, end, name): number}."""
    return collections.Counter({(kind, end, name): number for end, counter in counters.items()
                                for kind, table in counter.read().items()
                                for name, number in table.items()})


def run_client(lab, counters, args, library, count):
    """Return {(kind, end, name): number} of a client with so many connections."""
    words = ["client", "-n", ",".join(["1"] * count), lab.b.addr4]
    before = read_all(counters)
    result = lab.a.run([args.build / "tools/certify/connect", *words],
                       env=environment(library, args.build), timeout=300)
    if not result.ok:
        raise LabError(f"{library}: {result.output.strip()}")
    return read_all(counters) - before


def round_of(lab, counters, args, library):
    """Return the same for one connection."""
    for host in (lab.a, lab.b):
        host.mode(library, kill=True)
    server = lab.b.start([args.build / "tools/certify/connect", "server", lab.b.addr4],
                         env=environment(library, args.build), timeout=600)
    try:
        server.wait_for_output("^ready", timeout=60)
        run_client(lab, counters, args, library, FEW)
        few, many = (run_client(lab, counters, args, library, count) for count in (FEW, MANY))
    finally:
        server.stop()
    return {key: (number - few.get(key, 0)) / (MANY - FEW) / EACH for key, number in many.items()}


def measure(lab, args):
    """Return {library: [round_of(), ...]}."""
    counters = {"client": Counter(lab.a), "server": Counter(lab.b)}
    rounds = {library: [] for library in LIBRARIES}
    for _ in range(args.rounds):
        for library in LIBRARIES:
            rounds[library].append(round_of(lab, counters, args, library))
    return rounds


def medians_of(rounds, kind):
    """Return {(kind, end, name): [of stock, of purecm]}."""
    keys = sorted({key for table in rounds.values() for one in table for key in one
                   if key[0] == kind})
    return {key: [statistics.median(one.get(key, 0) for one in rounds[library])
                  for library in LIBRARIES] for key in keys}


def sums_of(medians):
    return [sum(column) for column in zip(*medians.values())]


def print_table(rounds, verbose):
    """Return how many targets are missed."""
    missed = 0
    print(f"{'of one connection, both hosts':38}" + "".join(f"{name:>10}" for name in LIBRARIES))
    for kind, limit in TARGETS.items():
        medians = medians_of(rounds, kind)
        stock, purecm = sums_of(medians)
        late = purecm > limit
        missed += late
        verdict = "MISSED" if late else "ok"
        print(f"{kind:38}{stock:10.1f}{purecm:10.1f}  {verdict}, at most {limit}")
        for (_, end, name), row in medians.items() if verbose else ():
            if max(row) >= 0.1:
                print(f"  {end:8}{name:28}{row[0]:10.1f}{row[1]:10.1f}")
    return missed


def main():
    args = parse_args()
    try:
        with make_lab(2, 1) as lab:
            rounds = measure(lab, args)
    except LabError as error:
        print(f"calls.py: {error}", file=sys.stderr)
        return 2
    return 1 if print_table(rounds, args.verbose) else 0


if __name__ == "__main__":
    sys.exit(main())
