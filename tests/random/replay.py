#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Plays random sequences of calls with purecm on the soft fabric: the same twice in a row.

A sequence that differs is played once more, with a longer pause after each call. Prints each
difference and then "N passed, N failed, N skipped".
"""
import argparse
from pathlib import Path
import sys

import generate
import play
from hosts import SKIPPED, Skip

SEEDS = range(1, 61)
SLOWLY = {"jobs": 4, "pause_us": 30000}


def differences(build, scripts, expected):
    """Return {name: difference} of those that differ from what is expected, also when they are
    played slowly."""
    found = {name: None for name in scripts}
    for pace in ({}, SLOWLY):
        played = play.on_fabric(build, {name: scripts[name] for name in found}, **pace)
        found = {name: play.first_difference(expected[name], played.get(name, []))
                 for name in found}
        found = {name: what for name, what in found.items() if what}
        if not found:
            break
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=play.ROOT / "build", type=Path)
    args = parser.parse_args()
    scripts = {str(seed): generate.script(seed) for seed in SEEDS}
    try:
        found = differences(args.build, scripts, play.on_fabric(args.build, scripts))
    except Skip as skip:
        print(f"{skip}0 passed, 0 failed, {len(scripts)} skipped")
        return SKIPPED
    for name, (step, before, now) in found.items():
        print(f"sequence {name}, after {step} calls:", *("- " + line for line in before),
              *("+ " + line for line in now), sep="\n")
    print(f"{len(scripts) - len(found)} passed, {len(found)} failed, 0 skipped")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
