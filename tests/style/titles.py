#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The titles of commits since the last release: "area: what changes", at most 72 characters, where
each word of an area is the path of a folder or file, or the end of it.

Ends with a line "N passed, N failed, N skipped". Exit status: 77 without git.
"""
from pathlib import Path, PurePath
import subprocess
import sys

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77
TITLE_MAX = 72


def git(*words):
    return subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True,
                          text=True).stdout.strip()


def last_release():
    """Return the newest tag, or the commit since which CHANGELOG.md has unreleased changes."""
    tags = git("tag", "--merged", "HEAD", "--sort=-creatordate", "--list", "v*").split()
    if tags:
        return tags[0]
    return git("log", "--format=%h", "-S## Unreleased", "--", "CHANGELOG.md").split()[-1]


def areas(commit):
    """Return what a title may name: paths of a tree and their ends, also without suffix."""
    found = set()
    for path in map(PurePath, git("ls-tree", "-r", "--name-only", commit).splitlines()):
        for part in (path, *path.parents[:-1]):
            for name in (part, part.with_suffix("")):
                found |= {"/".join(name.parts[first:]) for first in range(len(name.parts))}
    return found


def complaints(commit, title, now):
    """Yield what is wrong with a title; now: the areas of HEAD."""
    area, colon, what = title.partition(": ")
    if len(title) > TITLE_MAX:
        yield f"{commit}: {len(title)} characters: {title}"
    if not colon or not what:
        yield f"{commit}: no area: {title}"
        return
    absent = set(area.replace(",", "").split()) - now
    if absent and absent - areas(commit) - areas(f"{commit}~1"):
        yield f"{commit}: no such area in the tree: {', '.join(sorted(absent))}"


def main():
    try:
        commits = git("log", "--no-merges", "--format=%h %s", f"{last_release()}..HEAD")
        now = areas("HEAD")
    except (OSError, subprocess.CalledProcessError, IndexError):
        print("skipped: no git repository with a release")
        return SKIPPED
    bad = [line for commit in commits.splitlines()
           for line in complaints(*commit.split(" ", 1), now)]
    print("\n".join([*bad, f"{0 if bad else 1} passed, {len(bad)} failed, 0 skipped"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
