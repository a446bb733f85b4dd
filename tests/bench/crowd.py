#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures many processes that connect to one listener at once, on stock and on purecm.

A crowd of PROCESSES connects PER_PROCESS queue pairs each, all at the same time, and each process
waits for all of its own. Prints the time from the start of the first to the end of the last, and
how many connections failed; then the ratio of the medians. Exit status: 1 if the target is missed
(as fast as stock, and no failure), 2 if the lab did not run.
"""
import argparse
from pathlib import Path
import statistics
import sys
import time

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lab"))
from lablib import Lab, LabError  # noqa: E402

STOCK_LIBRARIES = "/usr/lib/x86_64-linux-gnu"
TIMEOUT_S = 300
# Processes, connections of each: everyday, and the storm of 2000.
CROWDS = ((16, 62), (64, 31))


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build",
                        help="build folder (default: build)")
    parser.add_argument("--rounds", type=int, default=3, help="of each library (default: 3)")
    return parser.parse_args()


class Crowd:
    """One lab, in which both libraries take turns."""

    def __init__(self, lab, build):
        self.lab = lab
        self.build = build
        self.program = build / "tests" / "bench" / "connect"

    def environment(self, mode):
        return {"LD_LIBRARY_PATH": STOCK_LIBRARIES if mode == "stock" else str(self.build / "lib")}

    def round(self, mode, processes, per_process):
        """Return (seconds, failed processes, what the first of them said)."""
        for host in (self.lab.a, self.lab.b):
            host.mode(mode, kill=True)
        server = self.lab.b.start([self.program, "server", self.lab.b.addr4],
                                  env=self.environment(mode), timeout=TIMEOUT_S)
        try:
            server.wait_for_output("^ready", timeout=30)
            return self.clients(mode, processes, per_process)
        finally:
            server.stop()

    def clients(self, mode, processes, per_process):
        one = f"{self.program} client -n {per_process} {self.lab.b.addr4}"
        script = (f"for i in $(seq {processes}); do {one} >/tmp/crowd.$i 2>&1 || "
                  "echo failed: $(tail -1 /tmp/crowd.$i) & done; wait")
        begin = time.monotonic()
        result = self.lab.a.run(["sh", "-c", script], env=self.environment(mode),
                                timeout=TIMEOUT_S)
        failed = result.stdout.splitlines()
        return time.monotonic() - begin, len(failed), failed[0] if failed else ""


def measure(crowd, rounds, processes, per_process):
    """Print the rounds of one crowd. Return: whether the target is met."""
    times = {"stock": [], "purecm": []}
    failures = {"stock": 0, "purecm": 0}
    for number in range(rounds):
        for mode in sorted(times, reverse=number % 2 == 0):
            took_s, n_failed, first = crowd.round(mode, processes, per_process)
            times[mode].append(took_s)
            failures[mode] += n_failed
            print(f"{processes:3} x {per_process:3} {mode:7} {took_s:6.2f} s, {n_failed} failed "
                  f"{first}", flush=True)
    ratio = statistics.median(times["purecm"]) / statistics.median(times["stock"])
    print(f"{processes:3} x {per_process:3} ratio {ratio:.2f}, processes that failed: "
          f"stock {failures['stock']}, purecm {failures['purecm']}")
    return ratio <= 1 and not failures["purecm"]


def main():
    args = parse_args()
    if not (args.build / "tests" / "bench" / "connect").exists():
        sys.exit(f"crowd.py: there is no benchmark in {args.build}; build it with meson first")
    try:
        with Lab({"a": "stock", "b": "stock"}) as lab:
            crowd = Crowd(lab, args.build)
            met = [measure(crowd, args.rounds, *size) for size in CROWDS]
    except LabError as error:
        print(f"crowd.py: {error}", file=sys.stderr)
        return 2
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
