#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures many processes that connect to one listener at once, on stock and on purecm.

A crowd of PROCESSES connects PER_PROCESS queue pairs each, all at the same time, and each process
waits for all of its own. Prints the time from the start of the first to the end of the last, and
how many processes failed; then the ratio of the medians. With --hosts 1 both ends are on one host
with one CPU whose clock counts instructions, and the ratio is that of the time in which it was
not idle: the same on any machine, but nothing is done side by side, and waiting for what is
repeated is left out.

Exit status: 1 if the target is missed (as fast as stock, and no failure), 2 if the lab did not run.
"""
import argparse
from pathlib import Path
import statistics
import sys

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from benchlib import (LIBRARIES, LabError, add_hosts_argument, environment, make_lab,  # noqa: E402
                      server_host)

TIMEOUT_S = 300
# Processes, connections of each: everyday, and the storm of 2000.
CROWDS = "16x62,64x31"


def crowd_sizes(text):
    """Return [(processes, connections of each)] of "16x62,64x31"."""
    return [tuple(int(number) for number in size.split("x", 1)) for size in text.split(",")]


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build",
                        help="build folder (default: build)")
    add_hosts_argument(parser, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="of each library (default: 3)")
    parser.add_argument("--crowds", type=crowd_sizes, default=CROWDS,
                        help=f"processes x connections of each (default: {CROWDS})")
    args = parser.parse_args()
    args.build = args.build.resolve()
    return args


class Crowd:
    """One lab, in which both libraries take turns.

    An emulator translates code anew for each address that it is at, which for a process that does
    not live long is more than all it does: so here every process has its code at the same place.
    """

    def __init__(self, lab, args):
        self.lab = lab
        self.build = args.build
        self.server = server_host(lab, args.hosts)
        self.program = args.build / "tools/certify/connect"
        for host in {lab.a, self.server}:
            host.run(["sysctl", "-q", "-w", "kernel.randomize_va_space=0"], check=True)

    def warm_up(self):
        """Have each program's files read from the machine's disk only once."""
        for mode in LIBRARIES:
            self.round(mode, 1, 1)

    def round(self, mode, processes, per_process):
        """Return (seconds, seconds at work, failed processes, what the first of them said)."""
        for host in {self.lab.a, self.server}:
            host.mode(mode, kill=True)
        server = self.server.start([self.program, "server", self.server.addr4],
                                   env=environment(mode, self.build), timeout=TIMEOUT_S)
        try:
            server.wait_for_output("^ready", timeout=30)
            return self.clients(mode, processes, per_process)
        finally:
            server.stop()

    def clients(self, mode, processes, per_process):
        one = f"{self.program} client -n {per_process} {self.server.addr4}"
        script = (f"cat /proc/uptime; for i in $(seq {processes}); do {one} >/tmp/crowd.$i 2>&1 || "
                  "echo failed: $(tail -1 /tmp/crowd.$i) & done; wait; cat /proc/uptime")
        result = self.lab.a.run(["sh", "-c", script], env=environment(mode, self.build),
                                timeout=TIMEOUT_S)
        lines = result.stdout.splitlines()
        if not result.ok or len(lines) < 2:
            raise LabError(f"the crowd has not ended: {result.output.strip()}")
        begin, *failed, end = lines
        took_s, idle_s = (float(b) - float(a) for a, b in zip(begin.split(), end.split()))
        return took_s, took_s - idle_s, len(failed), failed[0] if failed else ""


def measure(crowd, args, processes, per_process):
    """Print the rounds of one crowd. Return ({library: median in s}, {library: failures})."""
    times = {mode: [] for mode in LIBRARIES}
    failures = {mode: 0 for mode in LIBRARIES}
    crowd_text = f"{processes:3} x {per_process:3}"
    for number in range(args.rounds):
        for mode in LIBRARIES if number % 2 == 0 else reversed(LIBRARIES):
            took_s, work_s, n_failed, first = crowd.round(mode, processes, per_process)
            times[mode].append(work_s if args.hosts == 1 else took_s)
            failures[mode] += n_failed
            work_text = f"{work_s:6.2f} s of work, " if args.hosts == 1 else ""
            print(f"{crowd_text} {mode:7} {took_s:6.2f} s, {work_text}{n_failed} failed {first}",
                  flush=True)
    return {mode: statistics.median(times[mode]) for mode in LIBRARIES}, failures


def judge(crowd, args, processes, per_process):
    """Measure one crowd. Return: whether the target is met."""
    medians, failures = measure(crowd, args, processes, per_process)
    ratio = medians["purecm"] / medians["stock"]
    print(f"{processes:3} x {per_process:3} ratio {ratio:.2f}, processes that failed: "
          f"stock {failures['stock']}, purecm {failures['purecm']}")
    return ratio <= 1 and not failures["purecm"]


def main():
    args = parse_args()
    if not (args.build / "tools/certify/connect").exists():
        sys.exit(f"crowd.py: there is no benchmark in {args.build}; build it with meson first")
    try:
        with make_lab(args.hosts) as lab:
            crowd = Crowd(lab, args)
            crowd.warm_up()
            met = [judge(crowd, args, *size) for size in args.crowds]
    except LabError as error:
        print(f"crowd.py: {error}", file=sys.stderr)
        return 2
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
