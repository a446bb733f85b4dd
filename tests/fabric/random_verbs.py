#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes random calls of libibverbs (random_verbs.c) on the soft fabric. Its ways to carry data
differ: by memory where that is possible, by sockets only, by RoCE v2. What the calls lead to must
not.

Prints each difference and then "N passed, N failed, N skipped".
"""
import argparse
from pathlib import Path
import re
import sys

from hosts import ROOT, SKIPPED, Skip, run_on_fabric

sys.path.insert(0, str(ROOT / "tests/random"))
import play  # noqa: E402

WAYS = ((), ("--quirk", "no-direct"), ("--wire", "roce"))
COUNT, JOBS = 16, 8


def transcripts(build, seeds, way):
    """Return {seed: lines}."""
    play_one = f"{build}/tests/fabric/random_verbs fab0 % 1 >$PURECM_FABRIC/play.%"
    done = run_on_fabric(build, 60 + 5 * len(seeds), "--mtu", "1500", "--hosts", "1", *way,
                         f"a:echo {' '.join(map(str, seeds))} | tr ' ' '\\n' | "
                         f"xargs -P {JOBS} -I% sh -c '{play_one}'; cat $PURECM_FABRIC/play.*")
    if done.returncode:
        raise RuntimeError(f"status {done.returncode}: {done.stderr}")
    parts = re.split(r"^== (\d+)\n", done.stdout, flags=re.MULTILINE)
    return {int(seed): lines.splitlines() for seed, lines in zip(parts[1::2], parts[2::2])}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--first", default=1, type=int)
    parser.add_argument("--count", default=COUNT, type=int)
    args = parser.parse_args()
    seeds = range(args.first, args.first + args.count)
    try:
        first, *others = [transcripts(args.build.resolve(), seeds, way) for way in WAYS]
    except Skip as skip:
        print(f"{skip}0 passed, 0 failed, {args.count} skipped")
        return SKIPPED
    failed = 0
    for seed in seeds:
        for way, other in zip(WAYS[1:], others):
            found = play.first_difference(first.get(seed, []), other.get(seed, ["not played"]))
            if found:
                failed += 1
                print(f"FAIL sequence {seed}, after {found[0]} calls; + with {' '.join(way)}:",
                      *("- " + line for line in found[1]), *("+ " + line for line in found[2]),
                      sep="\n")
    print(f"{args.count * len(others) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
