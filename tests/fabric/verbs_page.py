#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks tools/fabric/device.md: what the soft fabric's device does with each verb, attribute and
limit (device_rows.c), and with --lab what rxe does. --write writes the column anew, and keeps the
reasons.

Prints a line a failure, and last "N passed, N failed, N skipped".
"""
import argparse
from pathlib import Path
import sys

from hosts import SKIPPED, Skip, run_on_fabric

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "tools/fabric/device.md"
STOCK = "/usr/lib/x86_64-linux-gnu:/usr/lib64:/usr/lib"
LIMIT_S = 120


def rows_of(page):
    """Return {name: [fabric, rxe, reason]}."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")]
             for line in page.splitlines() if line.startswith("| ")]
    return {row[0]: row[1:] for row in cells[1:]}


def of_fabric(build):
    done = run_on_fabric(build, LIMIT_S, "--hosts", "1",
                         f"a:{build}/tests/fabric/device_rows fab0")
    return done.stdout


def of_rxe(build):
    sys.path.insert(0, str(ROOT / "tests/lab"))
    from lablib import Lab  # pylint: disable=import-outside-toplevel
    with Lab({"a": "stock"}) as lab:
        return lab.a.run([f"{build}/tests/fabric/device_rows", "rxe0"],
                         env={"LD_LIBRARY_PATH": STOCK}, timeout=LIMIT_S, check=True).stdout


def write(page, column, said):
    rows = rows_of(page)
    for name, result in said.items():
        rows.setdefault(name, ["", "", ""])[column] = result
    head = page[:page.index("\n| ") + 1]
    lines = page[len(head):].splitlines()
    table = [f"| {name} | {' | '.join(rows[name])} |" for name in rows if name in said]
    PAGE.write_text(head + "\n".join(lines[:2] + table) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--lab", action="store_true", help="rxe instead of the soft fabric")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    build, page = args.build.resolve(), PAGE.read_text(encoding="utf-8")
    try:
        said = (of_rxe if args.lab else of_fabric)(build)
    except Skip as skip:
        print(f"{skip}0 passed, 0 failed, 1 skipped")
        return SKIPPED
    said = dict(line.rsplit(": ", 1) for line in said.splitlines())
    if args.write:
        write(page, int(args.lab), said)
        return 0
    written = {name: row[args.lab] for name, row in rows_of(page).items()}
    wrong = [name for name in {**written, **said} if written.get(name) != said.get(name)]
    for name in wrong:
        print(f"FAIL {name}: the page has {written.get(name)}, the device {said.get(name)}")
    print(f"{len(said) - len(wrong)} passed, {len(wrong)} failed, 0 skipped")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
