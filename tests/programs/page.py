#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prints docs/programs.md, from table.py and the figures of the last run that kept them."""
import json
from pathlib import Path
import re
import textwrap

import table

RELEASES = {"own": "Debian 12", "trixie": "Debian 13"}
PAIRINGS = {"stock stock": "stock", "stock purecm": "purecm as client",
            "purecm stock": "purecm as server", "purecm purecm": "purecm at both ends"}
FIGURES = Path(__file__).with_name("figures.json")
PAGE = """# Programs

Programs and libraries of Debian 12 and 13 that use RDMA, on two hosts of [the soft
fabric](fabric.md), as an ordinary user, over purecm where they use librdmacm: {count} rows,
{programs} programs and libraries. `tests/programs/run.py --long` plays them, each run of
`tools/check` some; `--release trixie` plays them in a root of Debian 13, with purecm built there,
which the first run makes and keeps (as root; five minutes, hence only with `tools/check --long`).
This page is printed by `tests/programs/page.py` from the table and from the figures that
`run.py --take` kept. They are of a busy machine with two cores, and say no more than that it works;
those of Debian 13 were taken beside much else, and cannot be compared with those of Debian 12.
On rxe, between two emulated kernels of Debian 12, each program runs with stock's library at both
ends first, and then with purecm (`tests/lab/programs.py --take`; the times are those of the runs).
"Verbs only" is a program that uses no connection manager: stock and purecm are the same to it.

{rows}
## Without a row

{absent}
More programs are in the tables of `tests/fabric/programs.py` and `tests/lab/program_cases.py`.
"""


def bullet(text):
    return textwrap.fill("- " + text, 100, subsequent_indent="  ", break_long_words=False,
                         break_on_hyphens=False) + "\n"


def print_page():
    """The page, from the table and the figures that were taken."""
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    rows = every_row()
    text = ""
    for package in dict.fromkeys(row.package for row in rows.values()):
        text += f"## {package}\n\n" + "".join(
            bullet(describe(name, figures) + (" (in each run)" if row.plain else ""))
            for name, row in rows.items() if row.package == package) + "\n"
    count = len({program_of(row) for row in rows.values()})
    print(PAGE.format(rows=text.rstrip() + "\n", count=len(rows), programs=count,
                      absent="".join(bullet(f"**{what}**: {why}") for what, why in table.ABSENT)),
          end="")


def every_row():
    """The rows of all releases, by name."""
    return {row.name: row for release in reversed(RELEASES) for row in table.rows_of(release)}


def program_of(row):
    """The program of a row, the first in its name; a library is its package."""
    own = row.package.startswith(("lib", "python3")) and not row.package.endswith("-bin")
    return row.package.split()[0] if own else re.match(r"[\w-]+", row.name)[0]


def describe(name, figures):
    told = []
    for release, title in RELEASES.items():
        row = {row.name: row for row in table.rows_of(release)}.get(name)
        if row:
            told.append(f"{title}: {row.absent or figures[release].get(name, 'no figure yet')}")
    case, why = table.on_rxe(every_row()[name])
    told.append(f"rxe: {describe_rxe(case, figures) if case else why}")
    note = every_row()[name].note
    return f"`{name}`: " + "; ".join(told) + (f". {note}" if note else "")


def describe_rxe(case, figures):
    seconds = figures["rxe"].get(case, {})
    return ", ".join(f"{title} {seconds[pairing]}" for pairing, title in PAIRINGS.items()
                     if pairing in seconds) or "all pairings, no figure yet"


def take_rxe(case, pairing, seconds):
    """Keep the time that a case took in a pairing of libraries, the server's first."""
    kept = json.loads(FIGURES.read_text(encoding="utf-8"))
    kept["rxe"].setdefault(case, {})[" ".join(pairing)] = f"{seconds:.1f} s"
    write(kept)


def write(kept):
    FIGURES.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def take(figures, release):
    """Keep what the rows of a run gave."""
    kept = json.loads(FIGURES.read_text(encoding="utf-8"))
    new = {**kept[release], **figures}
    kept[release] = {row.name: new[row.name] for row in table.rows_of(release) if row.name in new}
    write(kept)


if __name__ == "__main__":
    print_page()
