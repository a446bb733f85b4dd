#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a connection costs where the fast path is dead, against umad alone (cmportd --qp1).

On a soft fabric whose devices drop what a queue pair other than QP1 sends to QP1. Each round makes
a first connection, and then 30, one after the other, at once, half a second later and again half a
second later, when the verdict is known. Prints the fastest round of each, and their ratio: other
work makes rounds slower, nothing makes them faster. Exit status 1 if a ratio is above 1.05, 77 if
there can be no fabric here.
"""
import argparse
from pathlib import Path
import sys

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/fabric"))
from hosts import SKIPPED, Skip, run_on_fabric  # noqa: E402

MODES = {"dead fast path": "", "umad alone": "--qp1"}
WHEN = ("at once", "after 0.5 s", "after 1 s")
LIMIT = 1.05
LIMIT_S = 60


def play(build, option):
    """Return us for each connection, of each of WHEN."""
    portd = f"{build}/tools/cmportd/cmportd --detach --idle 0 {option}"
    connect = f"{build}/tools/certify/connect"
    done = run_on_fabric(build, LIMIT_S, "--quirk", "no-fast-path",
                         f"b&:{portd} && exec {connect} server >/dev/null",
                         f"a:{portd} && for i in $(seq 100); do {connect} client -n 1,1,1 "
                         "10.77.0.2 && exit; sleep 0.1; done; exit 1")
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    return [float(line.split()[2]) for line in done.stdout.splitlines()
            if line.split()[:2] == ["1", "connect"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--rounds", type=int, default=40)
    args = parser.parse_args()
    took = {mode: [] for mode in MODES}
    try:
        for _ in range(args.rounds):
            for mode, option in MODES.items():
                took[mode].append(play(args.build.resolve(), option))
    except Skip as skip:
        print(skip)
        return SKIPPED
    worst = 0
    for when, *both in zip(WHEN, *(map(min, zip(*took[mode])) for mode in MODES)):
        worst = max(worst, both[0] / both[1])
        print(f"{when}: " + ", ".join(f"{mode} {us:.1f} us" for mode, us in zip(MODES, both))
              + f", ratio {both[0] / both[1]:.3f}")
    return worst > LIMIT


if __name__ == "__main__":
    sys.exit(main())
