#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Plays random sequences of calls on stock and on purecm in the lab, and compares transcripts.

A difference counts if it comes again when both play the sequence once more. Prints each kind with
the fewest calls that show it, and then "N passed, N failed, N skipped".
"""
import argparse
import json
from pathlib import Path
import sys
import time

import generate
import play

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lab"))
from lablib import Lab  # noqa: E402


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--first", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--count", type=int, default=100, help="how many seeds (100)")
    parser.add_argument("--jobs", type=int, default=24, help="sequences at a time (24)")
    parser.add_argument("--keep", type=Path, help="write what was played there, as JSON")
    return parser.parse_args()


class Labs:
    """A pair of hosts for stock and one for purecm."""

    def __init__(self, build, jobs):
        self.jobs = jobs
        modes = ("stock", "purecm")
        self.labs = [Lab({"a": mode, "b": "stock"}, cpus=1).__enter__() for mode in modes]
        self.pairs = [play.Pair(lab, build, mode) for lab, mode in zip(self.labs, modes)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for lab in self.labs:
            lab.__exit__(None, None, None)

    def play(self, scripts):
        """Return what stock and purecm printed."""
        return [pair.play(scripts, self.jobs) for pair in self.pairs]

    def differences(self, scripts):
        """Return {name: difference} of those that come twice, and stock's transcripts."""
        stock, purecm = self.play(scripts)
        found = differences(scripts, stock, purecm)
        if found:
            again = self.play({name: scripts[name] for name in found})
            second = differences(found, *again)
            found = {name: what for name, what in found.items() if name in second
                     and play.kind_of(second[name]) == play.kind_of(what)}
        return found, stock


def differences(names, stock, purecm):
    found = {name: play.first_difference(stock.get(name, []), purecm.get(name, []))
             for name in names}
    return {name: what for name, what in found.items() if what}


def main():
    args = parse_args()
    scripts = {str(seed): generate.script(seed)
               for seed in range(args.first, args.first + args.count)}
    begin = time.monotonic()
    with Labs(args.build, args.jobs) as labs:
        print(f"booted in {time.monotonic() - begin:.0f} s", flush=True)
        found, stock = labs.differences(scripts)
        calls = sum(len(play.steps_of(lines)) for lines in stock.values())
        print(f"{calls} calls in {time.monotonic() - begin:.0f} s, {len(found)} differ")
        kinds = {}
        for name, what in found.items():
            kinds.setdefault(play.kind_of(what), []).append((name, what))
        for kind, cases in sorted(kinds.items(), key=lambda item: -len(item[1])):
            name, (step, ours, theirs) = cases[0]
            print(f"## {len(cases)} {kind[0]}: {' '.join(name for name, _ in cases[:9])}",
                  f"after {step} of {name}", *("- " + line for line in ours),
                  *("+ " + line for line in theirs), sep="\n")
        if args.keep:
            args.keep.write_text(json.dumps({"stock": stock, "kinds": list(kinds.items())}))


if __name__ == "__main__":
    main()
