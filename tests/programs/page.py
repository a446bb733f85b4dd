#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prints docs/programs.md, from table.py and the figures of the last run that kept them."""
import json
from pathlib import Path
import textwrap

import table

FIGURES = Path(__file__).with_name("figures.json")
PAGE = """# Programs

Programs and libraries of Debian 12 that use RDMA, on two hosts of [the soft fabric](fabric.md), as
an ordinary user, over purecm where they use librdmacm. `tests/programs/run.py --long` plays them;
each run of `tools/check` some. This page is printed by `tests/programs/page.py` from the table and
from the figures that `run.py --take` kept. They are of a busy machine with two cores, and say no
more than that it works.

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
    text = ""
    for package in dict.fromkeys(row.package for row in table.ROWS):
        rows = [row for row in table.ROWS if row.package == package]
        text += f"## {package}\n\n" + "".join(
            bullet(f"`{row.name}`: {figures.get(row.name, 'no figure yet')}"
                   + (" (in each run)" if row.plain else "")) for row in rows) + "\n"
    print(PAGE.format(rows=text.rstrip() + "\n", absent="".join(bullet(f"**{what}**: {why}")
                                                for what, why in table.ABSENT)), end="")


def take(figures):
    """Keep what the rows of a run gave."""
    before = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    kept = {row.name: {**before, **figures}[row.name] for row in table.ROWS
            if row.name in {**before, **figures}}
    FIGURES.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    print_page()
