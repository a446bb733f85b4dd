#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures sockets on this library and on stock, alternating in the same guests.

Latency is half of a round trip, send and receive are the throughput of many messages one way,
memory what an idle socket takes: of its process, and of the whole host.

By default both ends are on one host whose clock counts instructions, so that the figures are the
same on any machine, however busy: what a message costs both ends and their kernel together. With
--hosts 2 they are on two hosts with the machine's clock; that is uneven, so that the ratio of each
round counts, and a target is missed only where nearly all rounds (--sure of what chance would do)
say so.

Prints a line for each figure and ends with status 1 if a target is missed: no ratio is to be worse
than stock by more than --slack.
"""
import argparse
from math import comb
from pathlib import Path
import statistics
import sys

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from benchlib import LabError, add_hosts_argument, environment, make_lab, server_host  # noqa: E402

LIBRARIES = ("stock", "purecm")
UNITS = {"latency": "us", "send": "MB/s", "receive": "MB/s", "memory": "KiB"}
MORE_IS_BETTER = ("send", "receive")
ROUNDS = {1: 2, 2: 15}
PATIENCE_S = 600


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build",
                        help="build folder (default: build)")
    add_hosts_argument(parser, default=1)
    parser.add_argument("--rounds", type=int, help="of each library (default: 2, by the clock 15)")
    parser.add_argument("--sizes", default="64:400,4096:400,65536:100",
                        help="BYTES:MESSAGES, separated by commas")
    parser.add_argument("--idle", type=int, default=50, help="idle sockets (default: 50)")
    parser.add_argument("--slack", type=float, default=0.03,
                        help="what counts as equal (default: 0.03)")
    parser.add_argument("--sure", type=float, default=0.95,
                        help="by the clock: how sure of a miss (default: 0.95)")
    args = parser.parse_args()
    args.build = args.build.resolve()
    args.rounds = args.rounds or ROUNDS[args.hosts]
    return args


def run_round(lab, args, library, table):
    """Run both ends once with one library. table: {(what, of what): [figure of each round]}."""
    client, server = lab.a, server_host(lab, args.hosts)
    for host in {client, server}:
        host.mode(library, kill=True)
    variables = environment(library, args.build)
    program = args.build / "tests/bench/rsocket"
    words = args.sizes.replace(",", ":").split(":")
    listener = server.start([program, "server", server.addr4], env=variables)
    try:
        listener.wait_for_output("^ready", timeout=60)
        result = client.run([program, "client", server.addr4, *words, "idle", str(args.idle)],
                            env=variables, timeout=PATIENCE_S)
    finally:
        listener.stop()
    if not result.ok:
        raise LabError(f"{library}: {result.output.strip()}\nserver: {listener.output().strip()}")
    for line in result.stdout.splitlines():
        what, of_what, figure = line.split()
        table.setdefault((what, of_what), []).append(float(figure))


def measure(args):
    """Return {library: table}."""
    tables = {library: {} for library in LIBRARIES}
    with make_lab(args.hosts) as lab:
        for number in range(args.rounds):
            # Each library goes first in every other round.
            for library in LIBRARIES if number % 2 == 0 else reversed(LIBRARIES):
                run_round(lab, args, library, tables[library])
                print(f"round {number + 1} of {args.rounds}: {library}", file=sys.stderr)
    return tables


def ratios(key, stock, ours):
    """Return how many times as good as stock each round of ours is, in order of size.

    What takes nothing that can be seen, such as memory of a host, is a little all the same.
    """
    pairs = [(max(a, 0.01), max(b, 0.01)) for a, b in zip(stock, ours)]
    return sorted(b / a if key[0] in MORE_IS_BETTER else a / b for a, b in pairs)


def interval(values, sure):
    """Return between which of the sorted values the median of all possible rounds is."""
    n, outside = len(values), 0.0
    low = 0
    for i in range(n // 2):
        outside += 2 * comb(n, i) / 2 ** n
        if outside > 1 - sure:
            break
        low = i + 1
    return (values[low - 1], values[n - low]) if low else (values[0], values[-1])


def print_row(key, tables, args):
    """Print medians and how many times as good as stock ours is. Return whether it is worse."""
    stock, ours = (tables[library][key] for library in LIBRARIES)
    values = ratios(key, stock, ours)
    low, high = interval(values, args.sure)
    worse = high < 1 - args.slack
    print(f"{key[0]:11} {key[1]:>6}{statistics.median(stock):12.2f}"
          f"{statistics.median(ours):12.2f} {UNITS[key[0]]:5}{statistics.median(values):7.2f}"
          f"  {low:.2f} to {high:.2f}{'  MISSED' if worse else ''}")
    return worse


def main():
    args = parse_args()
    if not (args.build / "tests/bench/rsocket").exists():
        sys.exit("rsocket.py: the benchmark is not there; build it with meson first, or say where "
                 "it is with --build")
    try:
        tables = measure(args)
    except LabError as error:
        print(f"rsocket.py: {error}", file=sys.stderr)
        return 2
    print(f"\nmedians of {args.rounds} rounds; ratio: above 1 we are better\n"
          f"{'':18}{'stock':>12}{'purecm':>12}{'':6}{'ratio':>7}")
    missed = [print_row(key, tables, args) for key in tables["stock"]]
    return 1 if any(missed) else 0


if __name__ == "__main__":
    sys.exit(main())
