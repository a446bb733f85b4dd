#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares this library with stock librdmacm, event by event, in a lab of two hosts.

One program plays every scenario with stock on both sides, and then with this library on the
client's side, on both, and on the server's side. Whatever it prints then that it did not print
with stock is a failure, unless differences.md accepts it. Local scenarios (one host) run once with
each library.

Prints a line for each scenario, a diff for each that differs, and last "N passed, N failed, N
skipped". Exit status: 0, 1 if a scenario differs, 2 if the run was not possible, 77 if there can be
no hosts of another release here.
"""
import argparse
import collections
import fnmatch
import os
from pathlib import Path
import subprocess
import sys
import threading
import time
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lab"))
import compare  # noqa: E402
import stage  # noqa: E402
from lablib import Lab, LabError, userland  # noqa: E402
from lablib.release import RELEASES  # noqa: E402

# Client's mode, server's mode; each differs from the one before in one host.
PAIRINGS = {"stock/stock": ("stock", "stock"), "purecm/stock": ("purecm", "stock"),
            "purecm/purecm": ("purecm", "purecm"), "stock/purecm": ("stock", "purecm")}
REFERENCE = "stock/stock"
# What is built in the root of another release.
TARGETS = ("lib/librdmacm.so.1.5.0", "tools/cmportd/cmportd", "tools/certify/parity",
           "tools/certify/addrinfo", "tools/certify/ibacm")
# A sample has a third of this: every tenth of a theme's scenarios for two hosts, which are played
# by stock with itself and then by these in turn, and every fourth for one host; none in which stock
# waits for 98 s. The soft fabric compares all with what stock is known to say
# (tests/fabric/parity.py).
TURN_BY_TURN = ("purecm/stock", "stock/purecm", "purecm/stock", "stock/purecm", "purecm/purecm")
NOT_IN_A_SAMPLE = ("gone-*",)


class Turn(NamedTuple):
    """A pair of libraries, and whether local scenarios are played in this turn."""

    label: str
    client: str
    server: str
    local: bool


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build",
                        help="build folder (default: build)")
    parser.add_argument("--release", choices=RELEASES, default="own",
                        help="Debian's, of both hosts: its kernel, its stock library, and this "
                        "one built there (default: this machine's own, 12)")
    parser.add_argument("--program", type=Path, help="the parity program, if not in the build")
    parser.add_argument("--only", nargs="+", default=["*"], metavar="NAME",
                        help="scenarios by name or pattern, such as refuse-*")
    parser.add_argument("--families", default="v4,v6,ll", help="of v4, v6, ll (link-local)")
    parser.add_argument("--pairings", default=",".join(PAIRINGS),
                        help="client/server pairs beside stock/stock")
    parser.add_argument("--long", action="store_true", help="also what takes minutes")
    parser.add_argument("--sample", action="store_true",
                        help="a few of what two hosts play, in one pairing of three, IPv6 "
                        "of fewer")
    parser.add_argument("--choice", action="store_true",
                        help="every tenth of what is quick, over IPv4; with PURECM_TEST_LONG only")
    parser.add_argument("--everything", action="store_true",
                        help="also what differences.md says is not compared yet")
    parser.add_argument("--stock-only", action="store_true",
                        help="play stock against stock and print what it prints")
    parser.add_argument("--rounds", type=int, default=1,
                        help="with --stock-only: later rounds are compared with the first")
    parser.add_argument("--labs", type=int, default=2, metavar="N",
                        help="play in N labs side by side (default: 2): most of the time goes by "
                        "in waiting")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write every output there")
    parser.add_argument("--list", action="store_true", help="print the scenarios and end")
    parser.add_argument("-v", "--verbose", action="store_true", help="also print what agrees")
    args = parser.parse_args()
    is_long = bool(os.environ.get("PURECM_TEST_LONG"))
    if args.choice and not is_long:
        print("skipped: several minutes; PURECM_TEST_LONG=1 or tools/check --long runs it")
        sys.exit(77)
    if args.release != "own":
        args.build = userland.build_or_exit(RELEASES[args.release], TARGETS)
    args.program = args.program or args.build / "tools/certify/parity"
    args.families = args.families.split(",")
    args.sample = args.sample and not is_long
    if args.choice:
        args.families = ["v4"]
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
    return args


def scenarios_of(args):
    """Return the Scenarios that were asked for, and how many are left out as long."""
    text = subprocess.run([args.program, "list"], check=True, capture_output=True, text=True)
    wanted = [scenario for scenario in compare.parse_list(text.stdout)
              if any(fnmatch.fnmatch(scenario.name, name) for name in args.only)]
    if not wanted:
        sys.exit(f"run.py: no scenario is called {' or '.join(args.only)}; see --list")
    if args.sample or args.choice:
        n_all = len(wanted)
        wanted = sample(wanted) if args.sample else tenth(wanted)
        print(f"     {len(wanted)} of {n_all} scenarios; all with --long", flush=True)
    # A scenario that is asked for by its full name is never too long.
    short = [scenario for scenario in wanted
             if args.long or scenario.pace != "long" or scenario.name in args.only]
    return short, [scenario for scenario in wanted if scenario not in short]


def sample(scenarios):
    """Return the scenarios that a sample has."""
    seen = collections.Counter()
    kept = []
    for scenario in scenarios:
        if scenario.pace == "long" or any(fnmatch.fnmatch(scenario.name, name)
                                          for name in NOT_IN_A_SAMPLE):
            continue
        kind = scenario.pair, scenario.name.split("-")[0]
        if seen[kind] % (10 if scenario.pair else 4) == 0:
            kept.append(scenario)
        seen[kind] += 1
    return kept[::3]


def tenth(scenarios):
    """Return every tenth of the scenarios that do not wait for timers."""
    return [scenario for scenario in scenarios if scenario.pace == "quick"][::10]


def turns_of(args):
    """Return the Turns to play, the reference first."""
    if args.stock_only:
        return [Turn(f"{REFERENCE} #{number + 1}" if number else REFERENCE, "stock", "stock", True)
                for number in range(args.rounds)]
    turns = []
    for name in [REFERENCE, *(name for name in PAIRINGS if name != REFERENCE)]:
        client, server = PAIRINGS[name]
        # A local scenario's second run has to be the other library's.
        first = all(turn.client != client for turn in turns)
        if name == REFERENCE or name in args.pairings.split(","):
            turns.append(Turn(name, client, server, first))
    return turns


def keep(folder, label, family, name, sides):
    path = folder / label.replace("/", "-").replace(" ", "") / family
    path.mkdir(parents=True, exist_ok=True)
    for side, lines in sides.items():
        (path / f"{name}.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")


def due_in(turn, scenarios, is_sample):
    """Return the scenarios to play in a turn."""
    pairs = [scenario for scenario in scenarios if scenario.pair]
    if is_sample and turn.label != REFERENCE:
        pairs = [scenario for number, scenario in enumerate(pairs)
                 if TURN_BY_TURN[number % len(TURN_BY_TURN)] == turn.label]
    return [scenario for scenario in scenarios
            if (turn.local if not scenario.pair else scenario in pairs)]


class Score:
    """Counts and prints what became of each scenario."""

    def __init__(self, args):
        self.args = args
        self.rows, self.later = compare.load_differences(HERE / "differences.md")
        self.reference = {}  # what stock did: more than once where it does not always the same
        self.passed = 0
        self.failed = []
        self.skipped = {}

    def leave_out(self, scenarios, why):
        """Take note of scenarios that are not played, or not compared."""
        self.skipped |= {scenario.name: why(scenario) for scenario in scenarios}

    def due(self, scenarios, client, server):
        """Return the scenarios to play in a turn: this library may not be ready for all."""
        if client == server == "stock" or self.args.everything:
            return scenarios
        late = [s for s in scenarios if compare.reason_to_wait(self.later, s.name)]
        self.leave_out(late, lambda s: compare.reason_to_wait(self.later, s.name))
        return [s for s in scenarios if s not in late]

    def problems(self, label, family, name, sides):
        """Return what is wrong with a scenario's output, without counting it."""
        if (family, name) not in self.reference:
            return compare.failed(sides)
        problems = [compare.compare(self.rows, name, stock, sides, label)
                    for stock in self.reference[family, name]]
        return problems[0] if all(problems) else []

    def enter_again(self, family, name, sides):
        """Take what stock did when it was played once more."""
        self.reference[family, name].append(sides)

    def enter(self, label, family, name, sides):
        """Take a scenario's output: the first time as the reference, then to compare with it."""
        if self.args.keep:
            keep(self.args.keep, label, family, name, sides)
        if (family, name) not in self.reference:
            self.reference[family, name] = [sides]
            problems = ["stock did not come to the end:"] if compare.failed(sides) else []
            if problems or self.args.stock_only:
                self.print_output(sides)
        else:
            problems = self.problems(label, family, name, sides)
        self.count(f"{name} {label} {family}", problems)

    @staticmethod
    def print_output(sides):
        for side, lines in sides.items():
            print(f"-- {side}", *lines, sep="\n")

    def count(self, title, problems):
        if not problems:
            self.passed += 1
            if self.args.verbose or self.args.stock_only:
                print(f"ok   {title}")
            return
        self.failed.append(title)
        print(f"FAIL {title}", *problems, sep="\n     ")


class Play:
    """Plays the turns in several labs side by side, each in a thread of its own.

    The reference has to be there before another turn's outputs can be judged, but not before that
    turn can be played; so each turn leaves a check behind, which waits until then.
    """

    def __init__(self, args, scenarios, score):
        self.args = args
        self.scenarios = scenarios
        self.score = score
        self.turns = turns_of(args)
        self.checks = []
        self.judged = False  # the reference
        self.error = None
        self.changed = threading.Condition()

    def run(self):
        """Play everything. Raises what ended a lab."""
        workers = [threading.Thread(target=self.work, daemon=True)
                   for _ in range(min(self.args.labs, len(self.turns)))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if self.error:
            raise self.error

    def work(self):
        try:
            with Lab({"a": "stock", "b": "stock"}, release=self.args.release) as lab:
                for job, *what in iter(self.next_job, None):
                    job(lab, *what)
        except Exception as error:  # of whatever kind: without us the others would wait for ever
            with self.changed:
                self.error = self.error or error
                self.changed.notify_all()

    def next_job(self):
        """Return what to do next, a method and its arguments, or None at the end."""
        with self.changed:
            self.changed.wait_for(lambda: self.error or self.turns or self.judged)
            if self.error:
                return None
            if self.turns:
                return self.play, self.turns.pop(0)
            return self.checks.pop(0) if self.checks else None

    def play(self, lab, turn):
        """Play a turn."""
        begin = time.monotonic()
        due = due_in(turn, self.scenarios, self.args.sample or self.args.choice)
        due = self.score.due(due, turn.client, turn.server)
        results = stage.Stage(lab, self.args, turn.client, turn.server).play(due)
        print(f"     {turn.label}: {len(results)} outputs in {time.monotonic() - begin:.0f} s",
              flush=True)
        if turn.label == REFERENCE:
            self.check(lab, turn, results)
        with self.changed:
            self.judged = self.judged or turn.label == REFERENCE
            if turn.label != REFERENCE:
                self.checks.append((self.check, turn, results))
            self.changed.notify_all()

    def names_of_different(self, turn, results):
        return {name for (family, name), sides in results.items()
                if self.score.problems(turn.label, family, name, sides)}

    def play_again(self, lab, turn, names):
        print(f"     {turn.label}: once more: {', '.join(sorted(names))}", flush=True)
        again = [scenario for scenario in self.scenarios if scenario.name in names]
        return stage.Stage(lab, self.args, turn.client, turn.server).play(again)

    def check(self, lab, turn, results):
        """Judge a turn's outputs; play once more what differs.

        Emulated hosts are at times slower than a scenario bears: what differs twice is a failure,
        also from what stock does then; what differed once is named, for whoever looks for races.
        """
        names = self.names_of_different(turn, results)
        if names:
            results |= self.play_again(lab, turn, names)
            names = self.names_of_different(turn, results)
        if names and turn.label != REFERENCE:
            stock = self.play_again(lab, Turn(REFERENCE, "stock", "stock", True), names)
            with self.changed:
                for (family, name), sides in stock.items():
                    self.score.enter_again(family, name, sides)
        with self.changed:
            for (family, name), sides in sorted(results.items()):
                self.score.enter(turn.label, family, name, sides)


def main():
    args = parse_args()
    if not os.access(args.program, os.X_OK):
        sys.exit(f"run.py: {args.program} is not there; build it with meson first")
    if args.list:
        return subprocess.run([args.program, "list"], check=False).returncode
    scenarios, left_out = scenarios_of(args)
    score = Score(args)
    try:
        Play(args, scenarios, score).run()
    except LabError as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2
    score.leave_out(left_out, lambda scenario: "takes minutes; ask with --long")
    for name, why in score.skipped.items():
        print(f"skip {name}: {why}")
    print(f"{score.passed} passed, {len(score.failed)} failed, {len(score.skipped)} skipped")
    return 1 if score.failed else 0


if __name__ == "__main__":
    sys.exit(main())
