#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What stock does not have, in the lab: runs alone.c with this library against a stock host.

Prints "N passed, N failed, N skipped", a line of the program being one. Exit status: 1 if a line
differs, 77 if the lab cannot run here.
"""
import argparse
import difflib
from pathlib import Path
import shutil
import sys

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))

from lablib import Lab  # noqa: E402

SKIPPED = 77
PORT = 7999
SILENT = "10.77.0.99"

EXPECTED = f"""\
name: event 16 status 0 arg 0
address: event 0 status 0 arg 0
route: event 2 status 0 arg 0
first: event 18 status -5 arg 41
second: event 16 status 0 arg 0
third: event 18 status 6 arg 43
connect: event 8 status 8 arg 0
reason: invalid service id: nobody listens there
sent 0x10
received 0x12
counted: sent 1, received 1
failure: local address 192.0.2.1:1: no interface of this host has this address
silence: event 1 status -110 arg 0
failure: destination {SILENT}:1: the link address of host {SILENT}:0 on eth0 was not \
resolved in time
"""


def play(build):
    """Return: what the program printed."""
    with Lab({"a": "stock", "b": "purecm"}) as lab:
        done = lab.b.run([str(build / "tests/parity/alone"), "a", str(PORT), SILENT], timeout=120,
                         env={"LD_LIBRARY_PATH": build / "lib"})
    return done.output


def without_repeats(lines):
    """Return the lines without those that repeat a message: a slow peer has it sent again, and
    answers twice."""
    return [line for before, line in zip([""] + lines, lines)
            if line != before or not line.startswith(("sent ", "received "))]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path, help="Meson build folder")
    args = parser.parse_args()
    if not shutil.which("qemu-system-x86_64"):
        print("alone: skipped: no qemu-system-x86_64; apt-get install qemu-system-x86")
        return SKIPPED
    expected = EXPECTED.splitlines()
    seen = without_repeats(play(args.build).splitlines())
    failed = sum(line not in seen for line in expected) or int(expected != seen)
    sys.stdout.writelines(line + "\n" for line in difflib.unified_diff(
        expected, seen, "expected", "seen", lineterm=""))
    print(f"{len(expected) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
