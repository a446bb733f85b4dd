#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""All to all: hosts of a soft fabric, each of which connects many queue pairs to each other one.

A process for each pair of hosts (tools/certify/connect), all of them at once; each begins all its
connections before it waits for any. Plays that with a few connections a pair, with many, and with
many while MADs are lost. Prints for each what a connect took, the REQs that were repeated and what
failed. Exit status: 1 if a connection failed, if REQs were repeated where nothing is lost, or if
one of many takes too long beside one of few; 77 if there can be no fabric here.
"""
import argparse
from pathlib import Path
import re
import statistics
import sys

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "fabric"))
from hosts import SKIPPED, Skip, run_on_fabric  # noqa: E402

NAMES = "abcdefghijklmnop"
SLOWER = 1.5  # times as long as one of few
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


def commands_of(args, count):
    """Return the commands of all hosts: servers, then clients that wait for all servers."""
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
        clients = " ".join(f"{program} client -n {count} {address} & p=\"$p $!\";"
                           for other, address in addresses.items() if other != name)
        yield (f"{name}:{meet}{clients} r=0; for i in $p; do wait $i || r=1; done; "
               f"{args.build}/tools/purecm stat --prometheus; exit $r")


def play(args, count, faults):
    """Return (us a connect, median and most; seconds of the slowest; REQs repeated; failures)."""
    lossy = ["--faults", faults] if faults else []
    done = run_on_fabric(args.build, LIMIT_S, "--hosts", str(args.hosts), "--gap", "0.05", *lossy,
                         *commands_of(args, count))
    pairs = args.hosts * (args.hosts - 1)
    each_us = [float(us) for number, us in CONNECT.findall(done.stdout) if int(number) == count]
    n_failed = pairs - len(each_us)
    if done.returncode or n_failed:
        print(f"status {done.returncode}: {done.stderr[-1000:]}", file=sys.stderr)
    most = max(each_us, default=0)
    return (statistics.median(each_us or [0]), most, most * count / 1e6,
            sum(map(int, REPEATED.findall(done.stdout))), n_failed)


def main():
    args = parse_args()
    pairs = args.hosts * (args.hosts - 1)
    plays = [(args.few, ""), (args.many, ""), (args.many, f"mads:loss={args.loss} seed=1")]
    print(f"{args.hosts} hosts, each to each")
    print(f"{'a pair':>8}{'in all':>9}{'us each, median, most':>24}{'slowest':>10}{'repeated':>10}"
          f"{'failed':>8}")
    medians, wrong = [], 0
    try:
        for count, faults in plays:
            median, most, seconds, repeated, failed = play(args, count, faults)
            print(f"{count:8}{count * pairs:9}{median:14.1f}{most:10.1f}{seconds:8.2f} s"
                  f"{repeated:10}{failed:8}  {faults}", flush=True)
            medians.append(median)
            wrong += failed or (repeated and not faults)
    except Skip as skip:
        print(skip)
        return SKIPPED
    ratio = medians[1] / medians[0] if medians[0] else 0
    print(f"one of {args.many} takes {ratio:.2f} of one of {args.few}, at most {SLOWER} wanted")
    return 1 if wrong or ratio > SLOWER else 0


if __name__ == "__main__":
    sys.exit(main())
