# SPDX-License-Identifier: BSD-2-Clause
"""What run.py compares: outputs of the parity program, cut into scenarios, and the differences
that are accepted on purpose (differences.md)."""
import difflib
import fnmatch
import re
from typing import NamedTuple

HEADER = re.compile(r"^== (\S+) (local|client|server)$")
GAVE_UP = "GAVE UP"
# Each scenario has a port, which moves when others come before it; and so do its groups.
OWN_PORT = re.compile(r"\bport 7[1-9]\d\d\b")
OWN_GROUP = re.compile(r"\b(239\.6[4-9])\.(2[7-9]|3[01])\.\d+\b")


class Scenario(NamedTuple):
    """A line of `parity list`."""

    name: str
    pair: bool  # two hosts take part
    pace: str  # quick, slow, long
    family: str  # v4, v6, any
    alone: bool
    what: str


class Difference(NamedTuple):
    """A row of the first table in differences.md."""

    names: str
    stock: str
    ours: str


class Later(NamedTuple):
    """A row of the second table: what is not compared yet."""

    names: str
    why: str


def parse_list(text):
    """Return the Scenarios that `parity list` printed."""
    scenarios = []
    for line in text.splitlines():
        words, what = line.split(" # ", 1)
        name, kind, pace, family, company = words.split()
        scenarios.append(Scenario(name, kind == "pair", pace, family, company == "alone", what))
    return scenarios


def parse_output(text):
    """Return {scenario: {side: lines}} of what a parity client printed."""
    outputs = {}
    lines = None
    for line in text.splitlines():
        header = HEADER.match(line)
        if header:
            lines = outputs.setdefault(header[1], {}).setdefault(header[2], [])
        elif lines is not None:
            lines.append(line)
    return outputs


def without_port(text):
    return OWN_GROUP.sub(r"\1.own.own", OWN_PORT.sub("port own", text))


def failed(sides):
    """Return whether a scenario's processes did not come to their end."""
    return not sides or any(GAVE_UP in line for lines in sides.values() for line in lines)


def load_differences(path):
    """Return the rows of both tables, as Differences and Laters; lines stand in backquotes."""
    differences, later = [], []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.startswith("|"):
            continue
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if cells[0] == "scenario" or set(cells[0]) <= set("-: "):
            continue
        if len(cells) not in (2, 4) or not cells[-1]:
            raise ValueError(f"{path}:{number}: a row is scenario, stock, purecm, why; "
                             "or scenario, why")
        if len(cells) == 4:
            differences.append(Difference(*cells[:3]))
        else:
            later.append(Later(*cells))
    return differences, later


def reason_to_wait(later, name):
    """Return why a scenario is not compared yet, or None."""
    return next((row.why for row in later if fnmatch.fnmatch(name, row.names)), None)


def apply_differences(rows, name, reference, lines):
    """Return both with accepted differences taken out.

    A row with two lines makes ours into stock's; a row with one drops that line where it stands.
    Releases of stock may differ: if rows have the same line of ours, the one that stock has counts.
    """
    rows = [row for row in rows if fnmatch.fnmatch(name, row.names)]
    said = {line.strip() for line in reference}
    same = {row.ours: row.stock
            for row in sorted(rows, key=lambda row: row.stock in said) if row.ours and row.stock}
    only_stock = {row.stock for row in rows if not row.ours}
    only_ours = {row.ours for row in rows if not row.stock}
    reference = [line for line in reference if line.strip() not in only_stock]
    lines = [line for line in lines if line.strip() not in only_ours]
    mended = []
    for line in lines:
        stripped = line.strip()
        # What stock says here, too, is no difference.
        if stripped in same and line not in reference:
            line = line.replace(stripped, same[stripped])
        mended.append(line)
    return reference, mended


def compare(rows, name, reference, sides, label):
    """Return the unified diff of one scenario's outputs as lines; empty if they are alike."""
    diff = []
    for side in sorted(set(reference) | set(sides)):
        before, after = apply_differences(rows, name, reference.get(side, []),
                                          sides.get(side, []))
        diff += difflib.unified_diff(before, after, f"{name} {side} stock",
                                     f"{name} {side} {label}", lineterm="")
    return diff
