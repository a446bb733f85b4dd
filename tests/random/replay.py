#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Plays random sequences of calls with purecm on the soft fabric, and compares the transcripts with
what stock printed in the lab. stock.json.xz has both the scripts and the transcripts; run.py
--record makes it anew when the player or generate.py has changed.

A sequence that differs is played again, with longer pauses between the calls. Prints each
difference and then "N passed, N failed, N skipped".
"""
import argparse
import json
import lzma
from pathlib import Path
import sys

import play
from hosts import SKIPPED, Skip

PACES = ({}, {"jobs": 4, "pause_us": 30000}, {"jobs": 2, "pause_us": 150000})


def differences(build, recorded):
    """Return {name: difference} of those that differ at each pace."""
    rows, found = play.known_differences("fabric"), dict.fromkeys(recorded)
    for pace in PACES:
        played = play.on_fabric(build, {name: recorded[name][0] for name in found}, **pace)
        found = {name: play.first_difference(recorded[name][1], played.get(name, []))
                 for name in found}
        found = {name: what for name, what in found.items()
                 if what and not play.is_known(what, rows)}
        if not found:
            break
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=play.ROOT / "build", type=Path)
    parser.add_argument("--every", default=1, type=int, metavar="N", help="so many-th sequence")
    parser.add_argument("--drop", action="store_true", help="forget those that differ: the lab has "
                        "shown that it is the device of the fabric")
    args = parser.parse_args()
    with lzma.open(play.RECORDED, "rt") as file:
        recorded = dict(list(json.load(file).items())[::args.every])
    try:
        found = differences(args.build, recorded)
    except Skip as skip:
        print(f"{skip}0 passed, 0 failed, {len(recorded)} skipped")
        return SKIPPED
    for name, (step, stock, purecm) in found.items():
        print(f"FAIL sequence {name}, after {step} calls:", *("- " + line for line in stock),
              *("+ " + line for line in purecm), sep="\n")
    if args.drop:
        with lzma.open(play.RECORDED, "wt", preset=9) as file:
            json.dump({name: pair for name, pair in recorded.items() if name not in found}, file)
    print(f"{len(recorded) - len(found)} passed, {len(found)} failed, 0 skipped")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
