#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the commands of pages that need only the soft fabric and have their output below, and
compares. Lines may come in another order, as those of two hosts do; ephemeral ports differ; which
notes rping prints at the end of a connection depends on its threads, so only its pings count.

examples.py BUILD    Exit status: 77 where there are no user namespaces.
"""
import argparse
import os
from pathlib import Path
import re
import subprocess
import sys
import tempfile

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/fabric.md")
EXAMPLE = re.compile(r"^((?:    purecm .*\n)+)\n```\n((?:(?!```).*\n)*)```$", re.MULTILINE)
EPHEMERAL = re.compile(r":[34567]\d{4}\b")
NOTE = re.compile(r"[ab]\| (?!ping data)")
SKIPPED = 77


def examples():
    """Yield (commands, output) of the pages, without those that need an RDMA device."""
    for page in PAGES:
        for commands, output in EXAMPLE.findall((ROOT / page).read_text(encoding="utf-8")):
            if "fabric run" in commands:
                yield commands, output


def lines_of(output):
    return sorted(EPHEMERAL.sub(":PORT", line.rstrip()) for line in output.splitlines()
                  if line and not NOTE.match(line))


def differs(build, commands, output):
    """Return whether the commands print something else, after a line about it."""
    env = {**os.environ, "PATH": f"{build}/tools:{os.environ['PATH']}"}
    with tempfile.TemporaryDirectory(prefix="examples-") as folder:
        printed = subprocess.run(["sh", "-c", commands], cwd=folder, env=env, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                                 timeout=300).stdout
    if lines_of(printed) == lines_of(output):
        return False
    print(f"FAIL: {commands}prints now:\n{printed}")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=Path)
    build = parser.parse_args().build.resolve()
    if subprocess.run(["unshare", "-Urn", "true"], capture_output=True, check=False).returncode:
        print("skipped: there are no user namespaces")
        return SKIPPED
    found = list(examples())
    failed = sum(differs(build, *example) for example in found)
    print(f"{len(found) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not found else 0


if __name__ == "__main__":
    sys.exit(main())
