#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Counts the lines of C, a folder a row, at an older commit and in the checkout, as the table in
commit messages.

lines.py [COMMIT]
"""
from pathlib import Path
import subprocess
import sys

ROOT = Path(__file__).resolve().parents[2]
BEFORE = "0fcd808"

# A row of the table -> the folders that it counts, of today and of before; the first row fits.
ROWS = (
    ("`include/`", ("include/",)),
    ("`base/`", ("base/",)),
    ("`mad/`, with `mad/sa/`", ("mad/", "sa/")),
    ("`cm/`", ("cm/",)),
    ("`lib/net/`", ("lib/net/", "net/")),
    ("`lib/portd/`, with `tools/cmportd/`", ("lib/portd/", "portd/", "tools/cmportd/")),
    ("`lib/rsocket/`", ("lib/rsocket/",)),
    ("`lib/`, the rest", ("lib/",)),
)


def git(*args):
    return subprocess.run(["git", *args], cwd=ROOT, capture_output=True, check=True).stdout


def row_of(name):
    """Return the row that counts a file, or None."""
    return next((row for row, folders in ROWS if name.startswith(folders)), None)


def count(names, read):
    """Return {row: lines} of the C files among the names."""
    lines = dict.fromkeys((row for row, _ in ROWS), 0)
    for name in names.decode().splitlines():
        if name.endswith((".c", ".h")) and row_of(name):
            lines[row_of(name)] += read(name).count(b"\n")
    return lines


def main():
    commit = sys.argv[1] if len(sys.argv) > 1 else BEFORE
    before = count(git("ls-tree", "-r", "--name-only", commit),
                   lambda name: git("show", f"{commit}:{name}"))
    now = count(git("ls-files"), lambda name: (ROOT / name).read_bytes())
    print(f"| folder | at {commit} | now |\n|---|---:|---:|")
    for row, _ in ROWS:
        print(f"| {row} | {before[row]:,} | {now[row]:,} |")
    print(f"| all | {sum(before.values()):,} | {sum(now.values()):,} |")


if __name__ == "__main__":
    main()
