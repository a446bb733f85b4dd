#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The stand-ins of the soft fabric have the names and versions that the distribution's libraries
have. Not those of old: what has a newer version is not wanted by any program of today.

Prints what is missing and then "N passed, N failed, N skipped".
"""
import argparse
from pathlib import Path
import re
import subprocess
import sys

LIBRARIES = ("libibverbs.so.1", "libibumad.so.3")
DEFINED = re.compile(r"^\S+ [TBDR] (\w+)@@(\S+)$", re.MULTILINE)


def symbols(path):
    """Return {(name, version)} of what a library defines; only default versions."""
    listed = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True,
                            check=True).stdout
    return set(DEFINED.findall(listed))


def installed(name):
    """Return the distribution's library, as the linker finds it, or None."""
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True,
                            check=True).stdout
    found = re.search(rf"^\s*{re.escape(name)} .*=> (\S+)$", listed, re.MULTILINE)
    return found and found[1]


def soname(path):
    listed = subprocess.run(["readelf", "-d", path], capture_output=True, text=True,
                            check=True).stdout
    return re.search(r"SONAME.*\[(.*)\]", listed)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", required=True, type=Path)
    args = parser.parse_args()
    passed = failed = 0
    for name in LIBRARIES:
        ours = args.build / "tools/fabric/lib" / name
        missing = symbols(installed(name)) - symbols(ours)
        for symbol, version in sorted(missing):
            print(f"{name} has no {symbol}@{version}")
        if soname(ours) != name:
            print(f"{ours} is called {soname(ours)}")
        good = not missing and soname(ours) == name
        passed += good
        failed += not good
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
