#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures sockets on this library and on stock, alternating in the same two guests.

Latency is half of a round trip, throughput that of many messages one way, memory what an idle
socket takes: of its process, and of the whole host. Emulated hosts are slow and uneven, so only
ratios of one run count. Prints a line for each figure and ends with status 1 if a target is missed:
no ratio is to be worse than stock by more than --slack.
"""
import argparse
from pathlib import Path
import statistics
import sys

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lab"))
from lablib import Lab, LabError  # noqa: E402

STOCK_LIBRARIES = "/usr/lib/x86_64-linux-gnu:/usr/lib64:/usr/lib"
LIBRARIES = ("stock", "purecm")
UNITS = {"latency": "us", "throughput": "MB/s", "memory": "KiB"}
PATIENCE_S = 300


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build",
                        help="build folder (default: build)")
    parser.add_argument("--rounds", type=int, default=5, help="of each library (default: 5)")
    parser.add_argument("--sizes", default="64:400,4096:400,65536:100",
                        help="BYTES:MESSAGES, separated by commas")
    parser.add_argument("--idle", type=int, default=50, help="idle sockets (default: 50)")
    parser.add_argument("--slack", type=float, default=0.05,
                        help="what counts as equal (default: 0.05)")
    args = parser.parse_args()
    args.build = args.build.resolve()
    return args


def run_round(lab, args, library, table):
    """Run both ends once with one library. table: {(what, of what): [figure of each round]}."""
    lab.a.mode(library, kill=True)
    lab.b.mode(library, kill=True)
    folder = STOCK_LIBRARIES if library == "stock" else str(args.build / "lib")
    program = args.build / "tests/bench/rsocket"
    words = args.sizes.replace(",", ":").split(":")
    listener = lab.b.start([program, "server", lab.b.addr4], env={"LD_LIBRARY_PATH": folder})
    try:
        listener.wait_for_output("^ready", timeout=30)
        result = lab.a.run([program, "client", lab.b.addr4, *words, "idle", str(args.idle)],
                           env={"LD_LIBRARY_PATH": folder}, timeout=PATIENCE_S)
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
    with Lab({"a": "stock", "b": "stock"}) as lab:
        for number in range(args.rounds):
            # Each library goes first in every other round.
            for library in LIBRARIES if number % 2 == 0 else reversed(LIBRARIES):
                run_round(lab, args, library, tables[library])
                print(f"round {number + 1} of {args.rounds}: {library}", file=sys.stderr)
    return tables


def print_row(key, figures, slack):
    """Print medians and how many times as good as stock ours is. Return whether it is worse."""
    # What takes nothing that can be seen, such as memory of a host, is a little all the same.
    stock, ours = (max(statistics.median(row), 0.01) for row in figures)
    ratio = ours / stock if key[0] == "throughput" else stock / ours
    worse = ratio < 1 - slack
    print(f"{key[0]:11} {key[1]:>6}{stock:12.2f}{ours:12.2f} {UNITS[key[0]]:5}{ratio:7.2f}"
          f"{'  MISSED' if worse else ''}")
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
    missed = [print_row(key, [tables[library][key] for library in LIBRARIES], args.slack)
              for key in tables["stock"]]
    return 1 if any(missed) else 0


if __name__ == "__main__":
    sys.exit(main())
