#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""All to all: hosts of a soft fabric, each of which connects many queue pairs to each other one.

A process for each pair of hosts (tools/certify/connect), all of them at once; each begins all its
connections before it waits for any. Plays that with a few connections a pair, again and again,
with many, and with many while MADs are lost. Prints for each the processor time of a connection
from its begin to its end, of all programs and cmportds (the start of the programs is subtracted),
what a connect took by the clock, the REQs that were repeated and what failed. The clock says
mostly how far the programs overlap. Exit status: 1 if a connection failed, if REQs were repeated
where nothing is lost, or if one of many costs too much processor time beside one of few; 77 if
there can be no fabric here.
"""
import argparse
import ctypes
import os
from pathlib import Path
import re
import resource
import statistics
import sys

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "fabric"))
from hosts import SKIPPED, Skip, run_on_fabric  # noqa: E402

NAMES = "abcdefghijklmnop"
COSTLIER = 1.5  # times as much as one of few
AT_LEAST = 30  # connections that the client makes of a small count
PR_SET_CHILD_SUBREAPER = 36
LIMIT_S = 300
CONNECT = re.compile(r"^(\d+) connect ([\d.]+)$", re.M)
REPEATED = re.compile(r'^purecm_port_messages_total.*message="REQ",what="repeated"} (\d+)', re.M)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build",
                        help="build folder (default: build)")
    parser.add_argument("--hosts", type=int, default=9, help="how many (default: 9)")
    parser.add_argument("--few", type=int, default=10, help="connections a pair (default: 10)")
    parser.add_argument("--many", type=int, default=1024, help="likewise (default: 1024)")
    parser.add_argument("--loss", type=float, default=0.01, help="of MADs (default: 0.01)")
    args = parser.parse_args()
    args.build = args.build.resolve()
    return args


def commands_of(args, counts):
    """Return the commands of all hosts: servers, then clients that wait for all servers. Each
    client makes so many connections, one count after the other."""
    words = ",".join(map(str, counts))
    program = args.build / "tools/certify/connect"
    names = NAMES[:args.hosts]
    addresses = {name: f"10.77.0.{number + 1}" for number, name in enumerate(names)}
    yield from (f"{name}&:exec {program} server {address} >$PURECM_FABRIC/served"
                for name, address in addresses.items())
    for name in names:
        # All begin when the last of them is there.
        meet = ("touch $PURECM_FABRIC/here; "
                f"until [ $(ls $PURECM_FABRIC/../*/here | wc -l) = {args.hosts} ] && "
                f"[ $(cat $PURECM_FABRIC/../*/served | grep -c ready) = {args.hosts} ]; "
                "do sleep 0.1; done; ")
        clients = " ".join(f"{program} client -n {words} {address} & p=\"$p $!\";"
                           for other, address in addresses.items() if other != name)
        yield (f"{name}:{meet}{clients} r=0; for i in $p; do wait $i || r=1; done; "
               f"{args.build}/tools/purecm stat --prometheus; exit $r")


def become_parent_of_all():
    """Have cmportds, whose parents end before them, counted here."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def cpu_seconds():
    """Return the processor time of all programs that have ended, cmportds among them."""
    try:
        while True:
            os.wait()
    except ChildProcessError:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime


def play(args, counts, faults=""):
    """Return (s of processor time, us a connect: median and most, REQs repeated, failures)."""
    lossy = ["--faults", faults] if faults else []
    before = cpu_seconds()
    done = run_on_fabric(args.build, LIMIT_S, "--hosts", str(args.hosts), "--gap", "0.05", *lossy,
                         *commands_of(args, counts))
    each_us = [float(us) for _, us in CONNECT.findall(done.stdout)]
    n_failed = args.pairs * len(counts) - len(each_us)
    if done.returncode or n_failed:
        print(f"status {done.returncode}: {done.stderr[-1000:]}", file=sys.stderr)
    return (cpu_seconds() - before, statistics.median(each_us or [0]), max(each_us, default=0),
            sum(map(int, REPEATED.findall(done.stdout))), n_failed)


def each_of(count):
    """Return how many connections the client makes of a count."""
    return count * max(AT_LEAST // count, 1)


def measure(args):
    """Return (us of processor time of one of few, of many, with loss; whether something failed)."""
    start_s, *_ = play(args, [1])
    few = [args.few] * max(args.many // each_of(args.few), 1)
    lossy = f"mads:loss={args.loss} seed=1"
    costs, wrong = [], False
    for counts, faults in ((few, ""), ([args.many], ""), ([args.many], lossy)):
        cpu_s, median, most, repeated, failed = play(args, counts, faults)
        n_more = args.pairs * (len(counts) * each_of(counts[0]) - each_of(1))
        costs.append((cpu_s - start_s) / n_more * 1e6)
        print(f"{counts[0]:8}{len(counts):8}{costs[-1]:12.1f}{median:14.1f}{most:10.1f}"
              f"{repeated:10}{failed:8}  {faults}", flush=True)
        wrong = wrong or failed or (repeated and not faults)
    return costs, wrong


def main():
    args = parse_args()
    args.pairs = args.hosts * (args.hosts - 1)
    become_parent_of_all()
    print(f"{args.hosts} hosts, each to each")
    print(f"{'a pair':>8}{'times':>8}{'us of CPU':>12}{'us, median, most':>24}{'repeated':>10}"
          f"{'failed':>8}")
    try:
        (few, many, _), wrong = measure(args)
    except Skip as skip:
        print(skip)
        return SKIPPED
    print(f"one of {args.many} costs {many / few:.2f} of one of {args.few}, "
          f"at most {COSTLIER} wanted")
    return 1 if wrong or many > COSTLIER * few else 0


if __name__ == "__main__":
    sys.exit(main())
