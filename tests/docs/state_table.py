#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares the end of a page of docs/, from the first line that a program prints, with what it
prints: state-machine.md (all of it) and troubleshooting.md.

state_table.py PROGRAM PAGE          compare, exit 1 with a diff if they differ
state_table.py PROGRAM PAGE --write  write the end of the page anew
"""

import argparse
import difflib
import pathlib
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--write", action="store_true", help="write the page anew")
    args = parser.parse_args()
    table = subprocess.run([args.program], check=True, capture_output=True, text=True).stdout
    page = args.page.read_text()
    heading = table.partition("\n")[0] + "\n"
    before = page.partition(heading)[0]
    if args.write:
        args.page.write_text(before + table)
        return 0
    page = page[len(before):]
    diff = difflib.unified_diff(page.splitlines(), table.splitlines(), "docs", "program",
                                lineterm="")
    lines = list(diff)
    if lines:
        print("\n".join(lines))
        print(f"{args.page} is out of date: run {sys.argv[0]} {args.program} {args.page} --write")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
