#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every test that tests/promises.md names exists: `FILE`: NAME, NAME..., where three dots stand for
the rest of a name.

Ends with a line "N passed, N failed, N skipped".
"""
from pathlib import Path
import re
import sys

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
FILE = re.compile(r"`([\w/]+\*?\.(?:c|py))`(?::((?: [a-z]\w*_\w+(?:\.\.\.)?,?)+))?")
NAME = re.compile(r"([a-z]\w*_\w+?)(\.\.\.)?(?=[,\s]|$)")


def promises():
    """Return the promises of the page, without line breaks."""
    page = (TESTS / "promises.md").read_text(encoding="utf-8")
    return [" ".join(item.split())
            for item in re.findall(r"^- \*\*(?:.*\n)(?:  .*\n)*", page, re.MULTILINE)]


def files(name):
    """Return the texts of the files that a name in the page may be."""
    found = [ROOT / name] if name.startswith("tests/") else list(TESTS.rglob(name))
    return [path.read_text(encoding="utf-8") for path in found if path.is_file()]


def absent(name, names):
    """Yield what is not there of a file and of the tests that it should have."""
    texts = files(name)
    if not texts and "*" not in name:
        yield f"there is no file {name}"
    for test, dots in NAME.findall(names or ""):
        pattern = re.compile(rf"""(?:TEST\w*\(|def (?:test_)?|\"){test}""" +
                             ("" if dots else r'[,)( "]'))
        if not any(pattern.search(text) for text in texts):
            yield f"{name} has no test {test}{dots}"


def main():
    named = [found for promise in promises() for found in FILE.findall(promise)]
    bad = [line for name, names in named for line in absent(name, names)]
    print("\n".join([*bad, f"{len(named) - len(bad)} passed, {len(bad)} failed, 0 skipped"]))
    return 1 if bad or not named else 0


if __name__ == "__main__":
    sys.exit(main())
