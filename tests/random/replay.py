#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Plays random sequences of calls with purecm on the soft fabric, or with --peers those of wire.py,
and compares the transcripts with what stock printed in the lab. stock.json.xz and wire.json.xz have
both the scripts and the transcripts; --record of run.py and wire.py makes them.

A sequence that differs is played again, with longer pauses. Prints each difference and then "N
passed, N failed, N skipped".
"""
import argparse
from pathlib import Path
import sys

import play
import wire
from hosts import SKIPPED, Skip


def calls(build, recorded):
    """Return {name: difference} of sequences of calls."""
    rows = play.known_differences("fabric")

    def compare(stock, purecm):
        what = play.first_difference(stock, purecm)
        return what and not play.is_known(what, rows) and what

    return play.differing(recorded, play.PACES,
                          lambda scripts, pace: play.on_fabric(build, scripts, **pace), compare)


def show(name, difference):
    """Print a difference: what was alike before it, and the lines of both."""
    before, stock, purecm = difference
    print(f"FAIL sequence {name}, after {before}:", *("- " + line for line in stock),
          *("+ " + line for line in purecm), sep="\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=play.ROOT / "build", type=Path)
    parser.add_argument("--peers", action="store_true", help="the sequences of wire.py")
    parser.add_argument("--every", default=1, type=int, metavar="N", help="so many-th sequence")
    parser.add_argument("--drop", action="store_true", help="forget those that differ: the lab has "
                        "shown that it is the device of the fabric")
    args = parser.parse_args()
    path, find = (wire.RECORDED, wire.differences) if args.peers else (play.RECORDED, calls)
    recorded = play.load(path, args.every)
    try:
        found = find(args.build.resolve(), recorded)
    except Skip as skip:
        print(f"{skip}0 passed, 0 failed, {len(recorded)} skipped")
        return SKIPPED
    for name, difference in found.items():
        show(name, difference)
    if args.drop:
        play.store(path, {name: pair for name, pair in recorded.items() if name not in found})
    print(f"{len(recorded) - len(found)} passed, {len(found)} failed, 0 skipped")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
