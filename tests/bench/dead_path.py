#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a connection costs where the fast path is dead, against umad alone (cmportd --qp1).

On a soft fabric whose devices drop what a queue pair other than QP1 sends to QP1. The goal is 1.05
from the second connection on, and 1.1 for the first 30, which have the probes; the counts of
these differ by 2% from play to play.

By counts: the instructions (valgrind) and system calls (strace) of both programs and both cmportds,
in the first 30 connections, which have the probes, without what opening the ports costs, and in 330
more, when the verdict is known. A busy machine adds repeated messages, so what is too dear is
counted again.

By the clock: in each round, in one run, 30 connections of one kind, then of the other, in turns:
the first ones, at once, and then later ones. Prints the median of the rounds' ratios, and between
which two of them it is with 95% (in an even number of rounds the median is the mean of two).

Prints a line a comparison, and last "N passed, N failed, N skipped". Exit status: 1 if a ratio is
above its goal, 77 if there can be no fabric here.
"""
import argparse
import math
import os
from pathlib import Path
import re
import shutil
import statistics
import sys
import tempfile

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/fabric"))
from hosts import SKIPPED, Skip, run_on_fabric  # noqa: E402

MODES = {"dead fast path": "", "umad alone": "--qp1"}
DEAD, ALONE = MODES
LIMIT, LIMIT_OF_FIRST = 1.05, 1.1
LIMIT_S = 60
ATTEMPTS = 3
EACH = 30  # connections that the client makes for each of its counts
FIRST, LATER = 1, 12  # counts: the first come with the probes, those between the two later
TURNS = 8  # of either kind in a round, but for the first
UNUSED_S = 2  # that a cmportd has its port open for
SURE = 0.95
COUNTED = r"^totals: [0-9]|^100[.]00 .* total$"  # the line with the number, of either
COUNTERS = {  # what runs a program so that it leaves a file, and the number in that
    "instructions": ("valgrind --tool=callgrind --callgrind-out-file={} ",
                     re.compile(r"^totals: (\d+)", re.M)),
    "system calls": ("strace -D -f -c -o {} ", re.compile(r"^100\.00 +\S+ +\S+ +(\d+)", re.M)),
}
# On host a, which connects to b; c does to d. turn KIND: EACH connections, and the time of one.
IN_TURNS = """
until grep -q ready $PURECM_FABRIC/../ready-b && grep -q ready $PURECM_FABRIC/../ready-d; do
    sleep 0.05
done
turn() {{
    case $1 in
    dead) {fabric} exec a {connect} client -n 1 10.77.0.2;;
    alone) {fabric} exec c {connect} client -n 1 10.77.0.4;;
    esac | sed -n "s/^1 connect /$1 /p"
}}
turn {first}; turn {second}
sleep {rest}
for i in $(seq {turns}); do
    turn {first}; turn {second}; turn {second}; turn {first}
done
"""


# --- by counts -----------------------------------------------------------------------------------

def run(build, portd, counts, wrap, end):
    """Make connections of which programs count something."""
    connect = f"{build}/tools/certify/connect"
    done = run_on_fabric(build, LIMIT_S, "--quirk", "no-fast-path",
                         f"b&:{portd('b')}; {wrap('server')}{connect} server >/dev/null & "
                         "echo $! >$PURECM_FABRIC/../server; wait",
                         f"a:{portd('a')}; for i in $(seq 100); do {wrap('client')}{connect} "
                         f"client -n {','.join(['1'] * counts)} 10.77.0.2 && break; sleep 0.1; "
                         f"done{end}")
    took = re.findall(r"^1 connect ", done.stdout, re.M)
    if done.returncode or len(took) != counts:
        raise RuntimeError(done.stdout + done.stderr)


def count(build, option, counter, counts):
    """Return what programs and cmportds have counted when so many times EACH connections were
    made."""
    prefix, number = COUNTERS[counter]
    names = ("a", "b", "server", "client")
    with tempfile.TemporaryDirectory() as folder:
        def wrap(name):
            return prefix.format(f"{folder}/{name}")

        def portd(host):
            return (f"{wrap(host)}{build}/tools/cmportd/cmportd --idle 0 --confine=no {option} "
                    f"2>/dev/null & echo $! >{folder}/pid-{host}; "
                    f"until {build}/tools/purecm stat >/dev/null 2>&1; do sleep 0.1; done")

        run(build, portd, counts, wrap,
            f"; cd {folder}; kill $(cat $PURECM_FABRIC/../server pid-a pid-b); "
            f"for i in $(seq 600); do [ $(grep -lE '{COUNTED}' {' '.join(names)} 2>/dev/null | "
            f"wc -l) = {len(names)} ] && break; sleep 0.1; done")
        return sum(number_in(number, Path(folder, name)) for name in names)


def number_in(number, path):
    found = number.search(path.read_text(encoding="utf-8") if path.exists() else "")
    if not found:
        raise RuntimeError(f"{path.name} has counted nothing in a minute")
    return int(found[1])


def opening(build, option, counter):
    """Return what both cmportds count that open their port, and that nobody uses."""
    prefix, number = COUNTERS[counter]
    with tempfile.TemporaryDirectory() as folder:
        run_on_fabric(build, LIMIT_S, "--quirk", "no-fast-path", "--hosts", "1",
                      f"a:{prefix.format(f'{folder}/a')}{build}/tools/cmportd/cmportd --open "
                      f"--idle {UNUSED_S} --confine=no {option} 2>/dev/null")
        return 2 * number_in(number, Path(folder, "a"))


def compare(build, counter):
    """Print what a connection costs. Return: {when: ratio}."""
    opened = {mode: opening(build, option, counter) for mode, option in MODES.items()}
    first, more = ({mode: count(build, option, counter, counts)
                    for mode, option in MODES.items()} for counts in (FIRST, LATER))
    ratios = {}
    for when, each in (
            (f"the first {EACH}", {mode: (first[mode] - opened[mode]) / EACH for mode in MODES}),
            ("later", {mode: (more[mode] - first[mode]) / (LATER - FIRST) / EACH
                       for mode in MODES})):
        ratios[f"{counter}, {when}"] = each[DEAD] / each[ALONE]
        print(f"{counter} of a connection, {when}: "
              + ", ".join(f"{mode} {each[mode]:.0f}" for mode in MODES)
              + f", ratio {each[DEAD] / each[ALONE]:.3f}")
    print(f"{counter} of opening both ports: "
          + ", ".join(f"{mode} {opened[mode]}" for mode in MODES), flush=True)
    return ratios


def limit_of(what):
    return LIMIT_OF_FIRST if "the first" in what else LIMIT


def by_counts(build):
    """Return {what: ratio}, the best of some attempts."""
    found = {}
    os.environ["LD_BIND_NOW"] = "1"  # to look up the first probe's functions is part of opening
    for counter, (program, _) in COUNTERS.items():
        if not shutil.which(program.split()[0]):
            raise Skip(f"{program.split()[0]} is missing\n")
        best = compare(build, counter)
        for _ in range(ATTEMPTS - 1):
            if any(ratio > limit_of(what) for what, ratio in best.items()):
                best = {what: min(best[what], ratio)
                        for what, ratio in compare(build, counter).items()}
        found |= best
    return found


# --- by the clock --------------------------------------------------------------------------------

def play_round(build, order):
    """Return {first or later: us of a connection of either kind, in the order of MODES}."""
    connect = f"{build}/tools/certify/connect"
    portd = f"{build}/tools/cmportd/cmportd --detach --idle 0"
    serve = "exec {connect} server >$PURECM_FABRIC/../ready-{host}"
    turns = IN_TURNS.format(connect=connect, fabric=f"{build}/tools/purecm fabric", rest=UNUSED_S,
                            turns=TURNS // 2, first=order[0], second=order[1])
    done = run_on_fabric(build, LIMIT_S, "--hosts", "4", "--quirk", "no-fast-path",
                         f"b&:{portd}; {serve.format(connect=connect, host='b')}",
                         f"d&:{portd} --qp1; {serve.format(connect=connect, host='d')}",
                         f"c&:{portd} --qp1; sleep 1000", f"a:{portd}\n{turns}")
    found = re.findall(r"^(dead|alone) ([\d.]+)$", done.stdout, re.M)
    took = [[float(us) for kind, us in found if kind == wanted] for wanted in ("dead", "alone")]
    if done.returncode or [len(each) for each in took] != [TURNS + 1] * 2:
        raise RuntimeError(f"{done.returncode}: {done.stdout}{done.stderr}")
    return {f"the first {EACH}": [each[0] for each in took],
            "later": [statistics.median(each[1:]) for each in took]}


def between(values):
    """Return the two of the sorted values between which the median of all possible ones is, as
    sure as SURE: neither so many of them are below it, nor above it, by chance."""
    n = len(values)
    chance, below = 0.0, 0
    while below < n // 2:
        chance += 2 * math.comb(n, below) / 2 ** n
        if chance > 1 - SURE:
            break
        below += 1
    ordered = sorted(values)
    return ordered[max(below - 1, 0)], ordered[n - max(below, 1)]


def by_clock(build, rounds):
    """Print what a connection takes. Return {what: ratio}."""
    played = []
    for i in range(rounds):
        played.append(play_round(build, ("dead", "alone") if i % 2 else ("alone", "dead")))
        print(f"round {i + 1}: " + ", ".join(f"{when} {dead:.1f} and {alone:.1f} us"
                                             for when, (dead, alone) in played[-1].items()),
              flush=True)
    found = {}
    for when in played[0]:
        both = [one[when] for one in played]
        ratios = [dead / alone for dead, alone in both]
        found[f"by the clock, {when}"] = statistics.median(ratios)
        low, high = between(ratios)
        us = [statistics.median(each) for each in zip(*both)]
        print(f"by the clock, {when}: " + ", ".join(f"{mode} {each:.1f} us" for mode, each
                                                    in zip(MODES, us))
              + f", ratio {statistics.median(ratios):.3f} ({low:.3f} to {high:.3f})")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--rounds", type=int, default=0, help="by the clock, too; 16 or more")
    parser.add_argument("--clock-only", action="store_true", help="not by counts")
    args = parser.parse_args()
    build = args.build.resolve()
    try:
        found = {} if args.clock_only else by_counts(build)
        if args.rounds:
            found |= by_clock(build, args.rounds)
    except Skip as skip:
        print(f"{skip}0 passed, 0 failed, 1 skipped")
        return SKIPPED
    dear = {what: ratio for what, ratio in found.items() if ratio > limit_of(what)}
    for what, ratio in dear.items():
        print(f"FAIL {what}: {ratio:.3f}, above {limit_of(what)}")
    print(f"{len(found) - len(dear)} passed, {len(dear)} failed, 0 skipped")
    return 1 if dear or not found else 0


if __name__ == "__main__":
    sys.exit(main())
