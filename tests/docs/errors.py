#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that each text of an error is made in failure.c, warning.c or the tables of rejections,
and that errors.c, which prints them into docs/troubleshooting.md, calls all of these. cmportd's log
is excepted.

errors.py LIB ERRORS_C
"""
import argparse
from pathlib import Path
import re
import sys

MAKERS = {"warning.c"}
FUNCTION = re.compile(r"\b((?:warning|failure)_of_\w+)\(")


def complaints(lib, printer):
    """Yield what is wrong, a line each."""
    for path in sorted(lib.rglob("*.c")):
        if "server" in path.parts or path.name in MAKERS:
            continue
        if "log_warn(" in path.read_text(encoding="utf-8"):
            yield f"{path} has a warning of its own; it belongs to lib/diag/warning.c"
    called = set(FUNCTION.findall(printer.read_text(encoding="utf-8")))
    for name in ("warning.h", "failure.h"):
        for function in FUNCTION.findall((lib / "diag" / name).read_text(encoding="utf-8")):
            if function not in called:
                yield f"{printer} does not print {function}()"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("lib", type=Path)
    parser.add_argument("printer", type=Path)
    args = parser.parse_args()
    bad = sorted(set(complaints(args.lib, args.printer)))
    print("\n".join(bad + [f"{0 if bad else 1} passed, {len(bad)} failed, 0 skipped"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
