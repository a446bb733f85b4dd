#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every test that a page names in backquotes exists: traps.py PAGE TESTS, TESTS being the folder.

A test is a TEST of a C file, a function of a script, what a script's table names, or a scenario
of the parity program.
"""
import argparse
from pathlib import Path
import re
import sys

TEST_NAME = re.compile(r"`([a-z0-9]+(?:[-_][a-z0-9]+)+)`")
KNOWN = {
    "*.c": re.compile(r'(?:START_)?TEST(?:_LOOP|_SIGNAL)?\((\w+)[,)]|'
                      r'^\s*(?:LOCAL|PAIR)\w*\("([\w-]+)"', re.M),
    "*.py": re.compile(r'^def (\w+)\(|^\s+\("(\w+)", "', re.M),
}


def tests(folder):
    """Return the names of all tests below a folder."""
    found = set()
    for pattern, names in KNOWN.items():
        for path in folder.rglob(pattern):
            for groups in names.findall(path.read_text(encoding="utf-8")):
                found.update(groups)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("tests", type=Path)
    args = parser.parse_args()
    named = set(TEST_NAME.findall(args.page.read_text(encoding="utf-8")))
    absent = sorted(named - tests(args.tests))
    for name in absent:
        print(f"{args.page} names {name}, which is no test")
    print(f"{len(named) - len(absent)} passed, {len(absent)} failed, 0 skipped")
    return 1 if absent or not named else 0


if __name__ == "__main__":
    sys.exit(main())
