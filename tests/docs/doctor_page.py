#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds docs/troubleshooting.md against purecm doctor: a section for each check, in its order, with
its remedy; and everything that a check can find wrong is on the page.

doctor_page.py PAGE FOLDER OWNER    FOLDER has doctor.c and check_*.c, OWNER is umad_owner.c
"""
import argparse
from pathlib import Path
import re
import sys

STRINGS = r'(?:(?:"(?:[^"\\]|\\.)*"|[A-Z_]+)\s*)+'
ROW = re.compile(rf'^\t\{{ "([^"]+)", check_\w+,\s+({STRINGS}),\s+(?:NULL|"[^"]+") \}}', re.M)
FOUND = re.compile(rf"found\(finding,([^\"]*?VERDICT_(?:BAD|NOTE)[^\"]*?),\s+({STRINGS})[,)]")
SAID = re.compile(rf"say\(ret_who->\w+, ({STRINGS})[,)]")
FORMAT = re.compile(r"%[.0-9]*[a-z]+")
SECTION = re.compile(r"^### (.*)$", re.M)


def text_of(strings, defines):
    """Return what the compiler makes of strings in a row."""
    parts = re.findall(r'"((?:[^"\\]|\\.)*)"|([A-Z_]+)', strings)
    return "".join(text or defines[name] for text, name in parts)


def read_checks(folder, owner):
    """Return (name, remedy) of each check, and what is found wrong, with ... for what varies."""
    source = (folder / "doctor.c").read_text(encoding="utf-8")
    rows = [(name, text_of(strings, {})) for name, strings in ROW.findall(source)]
    said = SAID.findall(owner.read_text(encoding="utf-8"))
    wrong = {text_of(strings, {}) for strings in said}
    for path in sorted(folder.glob("check_*.c")):
        source = path.read_text(encoding="utf-8")
        defines = dict(re.findall(r'^#define (\w+)\s+"([^"]*)"', source, re.M))
        wrong |= {text_of(strings, defines) for _, strings in FOUND.findall(source)}
    return rows, {FORMAT.sub("...", text) for text in wrong if FORMAT.sub("", text).strip(": ")}


def complaints(page, rows, wrong):
    """Yield what is missing on a page, or too much."""
    if SECTION.findall(page) != [name for name, _ in rows]:
        yield f"sections have to be: {', '.join(name for name, _ in rows)}"
    for name, remedy in rows:
        section = page.partition(f"\n### {name}\n")[2].partition("\n### ")[0]
        if remedy not in " ".join(section.split()):
            yield f"{name}: the remedy is: {remedy}"
    flat = " ".join(page.split())
    for text in sorted(wrong):
        if f"`{text}`" not in flat:
            yield f"nothing about: `{text}`"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("owner", type=Path)
    args = parser.parse_args()
    rows, wrong = read_checks(args.folder, args.owner)
    bad = list(complaints(args.page.read_text(encoding="utf-8"), rows, wrong))
    for complaint in bad:
        print(f"{args.page}: {complaint}")
    print(f"{max(len(rows) + len(wrong) - len(bad), 0)} passed, {len(bad)} failed, 0 skipped")
    return 1 if bad or len(rows) < 10 or len(wrong) < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
