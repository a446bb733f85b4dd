#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a connection costs where the fast path is dead, against umad alone (cmportd --qp1).

On a soft fabric whose devices drop what a queue pair other than QP1 sends to QP1. By counts: the
instructions (valgrind) and system calls (strace) of both programs and both cmportds, in the first
30 connections, which have the probes, without what opening the ports costs, and in 330 more, when
the verdict is known; these are the same on each machine. By the clock (--rounds): each round makes
a first connection, and then 30, one after the other, at once, half a second later and again half a
second later. Prints the fastest round of each, and their ratio: other work makes rounds slower,
nothing makes them faster. Exit status 1 if a ratio is above 1.05, 77 if there can be no fabric
here.
"""
import argparse
from pathlib import Path
import re
import sys
import tempfile

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/fabric"))
from hosts import SKIPPED, Skip, run_on_fabric  # noqa: E402

MODES = {"dead fast path": "", "umad alone": "--qp1"}
WHEN = ("at once", "after 0.5 s", "after 1 s")
LIMIT = 1.05
LIMIT_S = 60
EACH = 30  # connections that the client makes for each of its counts
FIRST, LATER = 1, 12  # counts: the first come with the probes, those between the two later
UNUSED_S = 2  # that a cmportd has its port open for: the probes to itself are over
COUNTED = r"^totals: [0-9]|^100[.]00 .* total$"  # the line with the number, of either
COUNTERS = {  # what runs a program so that it leaves a file, and the number in that
    "instructions": ("valgrind --tool=callgrind --callgrind-out-file={} ",
                     re.compile(r"^totals: (\d+)", re.M)),
    "system calls": ("strace -D -f -c -o {} ", re.compile(r"^100\.00 +\S+ +\S+ +(\d+)", re.M)),
}


def run(build, portd, counts, wrap=lambda name: "", end=""):
    """Make connections. Return: what the client prints."""
    connect = f"{build}/tools/certify/connect"
    done = run_on_fabric(build, LIMIT_S, "--quirk", "no-fast-path",
                         f"b&:{portd('b')}; {wrap('server')}{connect} server >/dev/null & "
                         "echo $! >$PURECM_FABRIC/../server; wait",
                         f"a:{portd('a')}; for i in $(seq 100); do {wrap('client')}{connect} "
                         f"client -n {','.join(['1'] * counts)} 10.77.0.2 && break; sleep 0.1; "
                         f"done{end}")
    lines = [line.split() for line in done.stdout.splitlines()]
    took = [float(line[2]) for line in lines if line[:2] == ["1", "connect"]]
    if done.returncode or len(took) != counts:
        raise RuntimeError(done.stdout + done.stderr)
    return took


def play(build, option):
    """Return us for each connection, of each of WHEN."""
    portd = f"{build}/tools/cmportd/cmportd --detach --idle 0 {option}"
    return run(build, lambda host: portd, len(WHEN))


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


def by_counts(build):
    """Print what a connection costs. Return: the worst ratio."""
    worst = 0
    dead, alone = MODES
    for counter in COUNTERS:
        opened = {mode: opening(build, option, counter) for mode, option in MODES.items()}
        first, more = ({mode: count(build, option, counter, counts)
                        for mode, option in MODES.items()} for counts in (FIRST, LATER))
        for when, each in (
                (f"the first {EACH}", {mode: (first[mode] - opened[mode]) / EACH
                                       for mode in MODES}),
                ("later", {mode: (more[mode] - first[mode]) / (LATER - FIRST) / EACH
                           for mode in MODES})):
            worst = max(worst, each[dead] / each[alone])
            print(f"{counter} of a connection, {when}: "
                  + ", ".join(f"{mode} {each[mode]:.0f}" for mode in MODES)
                  + f", ratio {each[dead] / each[alone]:.3f}")
        print(f"{counter} of opening both ports: "
              + ", ".join(f"{mode} {opened[mode]}" for mode in MODES), flush=True)
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--rounds", type=int, default=0, help="by the clock, too")
    args = parser.parse_args()
    took = {mode: [] for mode in MODES}
    try:
        worst = by_counts(args.build.resolve())
        for _ in range(args.rounds):
            for mode, option in MODES.items():
                took[mode].append(play(args.build.resolve(), option))
    except Skip as skip:
        print(skip)
        return SKIPPED
    for when, *both in zip(WHEN, *(map(min, zip(*took[mode])) for mode in MODES)):
        worst = max(worst, both[0] / both[1])
        print(f"{when}: " + ", ".join(f"{mode} {us:.1f} us" for mode, us in zip(MODES, both))
              + f", ratio {both[0] / both[1]:.3f}")
    return worst > LIMIT


if __name__ == "__main__":
    sys.exit(main())
