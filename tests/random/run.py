#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Plays random sequences of calls on stock and on purecm in the lab, and compares transcripts.

A difference counts if it comes again when both play the sequence once more, and differences.md does
not have it. Each kind is printed as a program with the fewest calls that show it. Prints at the end
"N passed, N failed, N skipped". Exit status: 1 if something differs.
"""
import argparse
import concurrent.futures
from pathlib import Path
import sys
import time

import generate
import play
import program

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lab"))
from lablib import Lab, userland  # noqa: E402
from lablib.release import RELEASES  # noqa: E402

# What is built in the root of another release.
TARGETS = ("lib/librdmacm.so.1.5.0", "tools/cmportd/cmportd", "tests/random/player")

ROUNDS_MAX = 8


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--release", choices=RELEASES, default="own",
                        help="of Debian, whose kernel and userland all hosts have")
    parser.add_argument("--first", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--count", type=int, default=100, help="how many seeds (100)")
    parser.add_argument("--batch", type=int, default=250, help="how many at a time (250)")
    parser.add_argument("--shrink", type=int, default=6, help="how many kinds of differences (6)")
    parser.add_argument("--record", action="store_true",
                        help="keep for replay.py what stock prints")
    args = parser.parse_args()
    if args.release != "own":
        args.build = userland.build_or_exit(RELEASES[args.release], TARGETS)
    return args


class Labs:
    """A pair of hosts for stock and one for purecm."""

    def __init__(self, args):
        modes = ("stock", "purecm")
        self.labs = [Lab({"a": mode, "b": "stock"}, cpus=1, release=args.release).__enter__()
                     for mode in modes]
        self.pairs = [play.Pair(lab, args.build, mode) for lab, mode in zip(self.labs, modes)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for lab in self.labs:
            lab.__exit__(None, None, None)

    def play(self, scripts, **pace):
        """Return ({name: difference}, {name: stock's transcript})."""
        with concurrent.futures.ThreadPoolExecutor() as pool:
            stock, purecm = pool.map(lambda pair: pair.play(scripts, **pace), self.pairs)
        found = {name: play.first_difference(stock.get(name, []), purecm.get(name, []))
                 for name in scripts}
        return {name: what for name, what in found.items() if what}, stock

    def play_again(self, scripts, rows):
        """Return those differences that rows have, those that come again each time in the same way,
        and stock's transcripts."""
        found, stock = self.play(scripts)
        known = {name: what for name, what in found.items() if play.is_known(what, rows)}
        new = {name: what for name, what in found.items() if name not in known}
        for pace in play.PACES[1:]:
            again = self.play({name: scripts[name] for name in new}, **pace)[0] if new else {}
            new = {name: what for name, what in new.items()
                   if name in again and play.kind_of(again[name]) == play.kind_of(what)}
        return known, new, {name: lines for name, lines in stock.items()
                            if name in new or name not in found or name in known}


def shorter(lines):
    """Yield a script without some of its lines, of any length and at any place."""
    size = len(lines) // 2
    while size:
        for at in range(0, len(lines), size):
            yield lines[:at] + lines[at + size:]
        size //= 2


def shrink(labs, lines, difference):
    """Return the fewest lines that show a difference, and the difference."""
    lines, kind = lines[:difference[0] + 1], play.kind_of(difference)
    for _ in range(ROUNDS_MAX):
        tries = {str(i): short for i, short in enumerate(shorter(lines))}
        found = {name: what for name, what in labs.play(tries)[0].items()
                 if play.kind_of(what) == kind}
        if not found:
            break
        name = min(found, key=lambda name: len(tries[name]))
        lines, difference = tries[name], found[name]
    return lines, difference


def show(labs, scripts, found, n_shrunk):
    """Print each kind of difference, and programs of the first ones."""
    kinds = {}
    for name, what in found.items():
        kinds.setdefault(play.kind_of(what), []).append(name)
    for kind, names in list(kinds.items())[:n_shrunk]:
        lines, (_, ours, theirs) = shrink(labs, scripts[names[0]], found[names[0]])
        print(f"FAIL {len(names)} sequences such as {names[0]}:", program.text_of(lines),
              *("- " + line for line in ours), *("+ " + line for line in theirs), sep="\n")
    for kind, names in list(kinds.items())[n_shrunk:]:
        print(f"FAIL {' '.join(names)}", *("- " + line for line in found[names[0]][1]),
              *("+ " + line for line in found[names[0]][2]), sep="\n", flush=True)


def main():
    args = parse_args()
    begin, rows = time.monotonic(), play.known_differences()
    calls = failed = 0
    recorded, seen = {}, {}
    with Labs(args) as labs:
        for first in range(args.first, args.first + args.count, args.batch):
            scripts = {str(seed): generate.script(seed) for seed in range(
                first, min(first + args.batch, args.first + args.count))}
            known, new, stock = labs.play_again(scripts, rows)
            recorded |= {name: (scripts[name], lines) for name, lines in stock.items()
                         if lines[-1:] == ["end"]}
            if args.record:
                play.store(play.RECORDED, recorded)
            alike = {name: what[0] for name, what in {**known, **new}.items()}
            calls += sum(alike.get(name, len(play.steps_of(lines)) - 1)
                         for name, lines in stock.items())
            for name, what in known.items():
                seen.setdefault(play.kind_of(what), []).append(name)
            failed += len(new)
            show(labs, scripts, new, args.shrink)
            print(f"{calls} calls of {first + len(scripts) - args.first} sequences compared in "
                  f"{time.monotonic() - begin:.0f} s: {failed} differ, "
                  f"{sum(map(len, seen.values()))} as known", flush=True)
    for (stock, purecm), names in sorted(seen.items()):
        print(f"known, {len(names)} such as {names[0]}: {stock} | {purecm}")
    print(f"{args.count - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
