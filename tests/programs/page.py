#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prints docs/programs.md, from table.py."""
from collections import Counter
import re
import textwrap

import sockets
import table

RELEASES = {"own": "12", "trixie": "13"}
MANY, SHOWN = 6, 3
PAGE = """# Programs

{programs} programs and libraries of Debian 12 and 13, in {count} rows of
`tests/programs/table.py`, run on two hosts of [the soft fabric](fabric.md), over purecm where
they use librdmacm. All pass. `tests/programs/run.py --long` plays them, `--release trixie` Debian
13's; `--script --only NAME` prints a row as a script to copy. `tests/lab/programs.py` plays them
between two kernels with rxe, stock and purecm at either end: "both" pass in all pairings, "verbs
only" have no connection manager.

Suites:

{suites}
By Debian package:

{rows}
Pingpongs over ofi_rxm (fabtests: 3 of 56) may fail after all messages: libfabric destroys the queue
pair before the last completion.

## Programs that know only TCP

With librspreload.so under both ends; the device counts the bytes that go by RDMA.
All {sockets} pass in Debian 12:

{names}

## Without a row

{absent}
"""


def bullet(text):
    return textwrap.fill("- " + text, 100, subsequent_indent="  ", break_long_words=False,
                         break_on_hyphens=False) + "\n"


def print_page():
    rows = every_row()
    packages = dict.fromkeys(row.package for row in rows.values())
    text = "".join(line_of(package, [row for row in rows.values() if row.package == package])
                   for package in packages)
    suites = "".join(bullet(f"**{what}**: {how}") for what, how in table.SUITES)
    absent = "".join(bullet(f"**{what}**: {why}") for what, why in table.ABSENT + sockets.ABSENT)
    names = bullet(", ".join(row.name for row in sockets.ROWS)).strip()
    page = PAGE.format(rows=text, suites=suites, count=len(rows), sockets=len(sockets.ROWS),
                       names=names, absent=absent.rstrip(),
                       programs=len({program_of(row) for row in rows.values()}))
    print(page, end="")


def every_row():
    """The rows of all releases, by name, but those of sockets and of suites."""
    return {row.name: row for release in reversed(RELEASES) for row in table.rows_of(release)
            if not row.by_rdma and not row.source}


def program_of(row):
    """The program of a row, the first in its name; a library is its package."""
    own = row.package.startswith(("lib", "python3")) and not row.package.endswith("-bin")
    return row.package.split()[0] if own else re.match(r"[\w-]+", row.name)[0]


def line_of(package, rows):
    """A line for the rows of a package."""
    programs = list(dict.fromkeys(map(program_of, rows)))
    if len(programs) > MANY:
        programs[SHOWN:] = [f"{len(programs) - SHOWN} others"]
    programs = ", ".join(programs)
    names = {row.name for row in rows}
    releases = [title for release, title in RELEASES.items()
                if any(row.name in names and not row.absent for row in table.rows_of(release))]
    outcomes = Counter("both" if case else why for case, why in map(table.on_rxe, rows))
    on_rxe = "; ".join(f"{number} {why}" if len(outcomes) > 1 else why
                       for why, number in outcomes.items())
    only = f" (Debian {releases[0]})" if len(releases) < len(RELEASES) else ""
    return bullet(f"**{package.split()[0]}**{only}: {programs}. rxe: {on_rxe}")


if __name__ == "__main__":
    print_page()
