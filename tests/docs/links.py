#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Sees that links between pages lead somewhere, that README.md lists every page, that files,
functions and structures which pages name are there, and that the table of environment variables has
those that the code reads.

links.py ROOT
"""
import argparse
from pathlib import Path
import re
import sys

LINK = re.compile(r"!?\[[^\]]*\]\(([^)#\s]+)\)")
NAMED = re.compile(r"`((?:base|cm|mad|lib|tools|tests|include|docs)/[\w./-]+)`")
CODE = re.compile(r"`(?:struct (\w+)|(\w+)\(\))`")
CODE_FOLDERS = ("base", "cm", "include", "lib", "mad", "tests", "tools")
READ = re.compile(r'(?:(?:getenv|env_get)\(|^\t\{ ?)"(PURECM_\w+)"', re.M)
ROW = re.compile(r"^\| `(PURECM_\w+)` \|", re.M)


def pages(root):
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]


def broken_names(root):
    """Yield what pages name that is not there."""
    for page in [*pages(root), root / "tools/fabric/README.md"]:
        text = page.read_text(encoding="utf-8")
        for link in LINK.findall(text):
            if "://" not in link and not (page.parent / link).exists():
                yield f"{page}: nothing is at {link}"
        for name in NAMED.findall(text):
            if not any((root / f"{name}{end}").exists() for end in ("", ".c", ".h")):
                yield f"{page}: there is no {name}"


def broken_code(root):
    """Yield functions and structures that pages name and no source has."""
    words = {word for folder in CODE_FOLDERS for path in (root / folder).rglob("*")
             if path.suffix in (".c", ".h", ".py")
             for word in re.findall(r"\w+", path.read_text(encoding="utf-8", errors="replace"))}
    for page in pages(root):
        text = " ".join(page.read_text(encoding="utf-8").split())
        for struct, function in CODE.findall(text):
            if (struct or function) not in words:
                yield f"{page}: there is no {struct or function}"


def unlisted(root):
    """Yield pages that the end of README.md does not list once: tools/site shows what it lists."""
    _, _, end = (root / "README.md").read_text(encoding="utf-8").partition("\n## Read on\n")
    listed = LINK.findall(end)
    for page in pages(root)[1:]:
        if listed.count(f"docs/{page.name}") != 1:
            yield f"{page}: README.md does not list it once under \"Read on\""


def variables(root):
    """Yield in what the table and the code differ."""
    told = set(ROW.findall((root / "docs/moving.md").read_text(encoding="utf-8")))
    code = [path.read_text(encoding="utf-8") for folder in ("base", "lib", "mad", "tools/cmportd")
            for path in sorted((root / folder).rglob("*.c"))]
    read = {name for text in code for name in READ.findall(text)}
    for name in sorted(told ^ read):
        yield f"docs/moving.md and the code do not agree on {name}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("root", type=Path)
    root = parser.parse_args().root
    bad = sorted(set([*broken_names(root), *broken_code(root), *unlisted(root), *variables(root)]))
    good = 0 if bad else len(pages(root))
    print("\n".join([*bad, f"{good} passed, {len(bad)} failed, 0 skipped"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
