# SPDX-License-Identifier: BSD-2-Clause
"""Makes mutants: copies of a source file with one thing changed. For mutants.py.

A mutant's name says where and what, and no line number, so that it stays the same while other
things change around it.
"""
import collections
import re

Mutant = collections.namedtuple("Mutant", "name file text")

FSM = "cm/fsm.c"
ROWS = ("mad/cm_msg.c", "mad/cma_hdr.c", "mad/sa_msg.c")
# What has guards, timer rules and fields to remember.
CODE = ("cm/action.c", "cm/adopt.c", "cm/core.c", "cm/demux.c", "cm/guard.c", "cm/ids.c",
        "cm/index.c", "cm/peer.c", "cm/retry.c", "base/hash.c", "base/timer.c", "mad/wire.c",
        "mad/wire_known.h")

# A hash is as good as another if it spreads, and test_index and test_hash look at that.
NOT_MUTATED = ("product", "cm_key_hash", "hash_bytes")

CELL = re.compile(r"\t\t\[CM_(\w+)\]\s*= \{ CM_(\w+),\s*(\w+) \},\n")
STATE = re.compile(r"^\t\[CM_(\w+)\] = \{$", re.MULTILINE)
ROW = re.compile(r"\t(WIRE\w*)\((\w+), ([\w.]+), ([\d, ]+)\),\n")

# What an expression may be exchanged for; the sides are blank so that no -> or << is hit.
EXCHANGES = ((" == ", " != "), (" != ", " == "), (" <= ", " < "), (" < ", " <= "),
             (" >= ", " > "), (" > ", " >= "), (" && ", " || "), (" || ", " && "),
             (" + ", " - "), (" - ", " + "), (" << ", " >> "), (" >> ", " << "),
             ("return true;", "return false;"), ("return false;", "return true;"))
NUMBER = re.compile(r"(?<![\w.])(0x[0-9a-f]+|\d+)(?=[uU]?[^\w.]|[uU]?$)")
STATEMENT = re.compile(r"^\t+(?!\s|return|break|continue|goto|static|const|struct|enum|u?int\d*_t|"
                       r"unsigned|size_t|bool|char|if|for|while|assert|case|\(void\)|\})[^;{}]*;$")
GUARDED = re.compile(r"^\t\t+(return|break|continue)[^;{}]*;$")
BRANCH = re.compile(r"\b(if|while) \(")
FUNCTION = re.compile(r"^(?:[a-z].*?)(\w+)\(.*(?:[,)])$")


def all_mutants(root):
    """Return a list of all mutants of a source tree."""
    found = [*table_mutants(root)]
    for name in ROWS:
        found += row_mutants(root, name)
    for name in CODE:
        found += code_mutants(root, name)
    return unique(found)


def unique(mutants):
    """Give those of the same name a number."""
    seen, result = collections.Counter(), []
    for mutant in mutants:
        seen[mutant.name] += 1
        number = f" #{seen[mutant.name]}" if seen[mutant.name] > 1 else ""
        result.append(mutant._replace(name=mutant.name + number))
    return result


def read(root, name):
    return (root / name).read_text(encoding="utf-8")


def enumerators(root, macro):
    """Return the names in an X list of cm/conn.h, in order."""
    text = read(root, "cm/conn.h")
    listing = text[text.index(f"#define {macro}(X)"):]
    return re.findall(r"X\((\w+)\)", listing.split("\n\n", maxsplit=1)[0])


def table_mutants(root):
    """Yield each row gone, with another next state, another action; each empty cell filled."""
    text = read(root, FSM)
    states = STATE.split(text)
    at, used = len(states[0]), {}
    for state, block in zip(states[1::2], states[2::2]):
        at += len(f"\t[CM_{state}] = {{")
        used[state] = at
        end = block.index("\n\t},") + 1
        for cell in CELL.finditer(block[:end]):
            yield from cell_mutants(text, state, cell, at)
        yield from filled_cells(root, text, state, block[:end], at)
        at += len(block)


def cell_mutants(text, state, cell, at):
    event, to, act = cell.groups()
    begin, end = at + cell.start(), at + cell.end()

    def put(what, line):
        return Mutant(f"{FSM}: {state} + {event} {what}", FSM, text[:begin] + line + text[end:])

    yield put("is gone", "")
    others = [other for other in (state, "IDLE", "TIMEWAIT") if other != to]
    for other in dict.fromkeys(others):
        yield put(f"leads to {other}", f"[CM_{event}] = {{ CM_{other}, {act} }},\n")
    other = "ACT_COUNT_DUPLICATE" if act == "ACT_NOTHING" else "ACT_NOTHING"
    yield put(f"does {other}", f"[CM_{event}] = {{ CM_{to}, {other} }},\n")


def filled_cells(root, text, state, block, at):
    used = {cell[1] for cell in CELL.finditer(block)}
    for event in enumerators(root, "CM_EVENTS"):
        if event not in used:
            line = f"\n[CM_{event}] = {{ CM_{state}, ACT_NOTHING }},"
            yield Mutant(f"{FSM}: {state} + {event} is legal", FSM, text[:at] + line + text[at:])


def row_mutants(root, name):
    """Yield each row of the layouts gone, moved by a byte, by a bit, and narrower."""
    text = read(root, name)
    for row in ROW.finditer(text):
        macro, kind, member, numbers = row.groups()
        place = [int(number) for number in numbers.split(", ")]
        changes = [("is gone", None), ("is a byte later", [place[0] + 1, *place[1:]])]
        if place[0]:
            changes.append(("is a byte earlier", [place[0] - 1, *place[1:]]))
        if len(place) > 1:
            changes.append(("is a bit later", [place[0], (place[1] + 1) % 8, *place[2:]]))
            if place[2] > 1:
                changes.append(("is narrower", [*place[:2], place[2] - 1, *place[3:]]))
        for what, other in changes:
            line = "" if other is None else \
                f"\t{macro}({kind}, {member}, {', '.join(map(str, other))}),\n"
            part = f" part {place[3]}" if len(place) > 3 else ""
            yield Mutant(f"{name}: {kind}.{member}{part} {what}", name,
                         text[:row.start()] + line + text[row.end():])


def code_mutants(root, name):
    """Yield changes of conditions, operators and numbers, and statements left out."""
    text = read(root, name)
    masked = mask(text)
    function, begin = "file", 0
    for line in masked.splitlines(keepends=True):
        stripped = line.rstrip("\n")
        found = FUNCTION.match(stripped)
        if found and not stripped.startswith("#"):
            function = found[1]
        where = f"{name}: {function}: "
        if function not in NOT_MUTATED and \
                not stripped.startswith(("#include", "#ifdef", "#if ", "_Static")):
            whole = text[begin:begin + len(stripped)]
            for first, last, other in changes_of(stripped):
                yield Mutant(where + describe(whole, first, last, other), name,
                             text[:begin + first] + other + text[begin + last:])
        begin += len(line)
    yield from branch_mutants(name, text, masked)


def mask(text):
    """Return the text with comments and strings blanked, of the same length."""
    return re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', lambda found: re.sub(r"[^\n]", " ", found[0]),
                  text, flags=re.DOTALL)


def describe(line, first, last, other):
    """Return what was done to a line, to be found again by eye."""
    return f"{line[:first]}[{line[first:last]} => {other}]{line[last:]}".strip()


def changes_of(line):
    """Yield (first, last, replacement) for everything that can be changed in a line."""
    if "assert" in line:
        return
    for old, new in EXCHANGES:
        for found in re.finditer(re.escape(old), line):
            yield found.start(), found.end(), new
    if not line.startswith(("#define BUCKETS", "#define NODES", "#define DATA_BYTES")):
        for found in NUMBER.finditer(line):
            yield found.start(), found.end(), str(int(found[0], 0) + 1)
    if STATEMENT.match(line) or GUARDED.match(line):
        first = len(line) - len(line.lstrip())
        yield first, len(line), ";"


def branch_mutants(name, text, masked):
    """Yield each condition turned round."""
    for branch in BRANCH.finditer(masked):
        end = closing(masked, branch.end())
        condition = " ".join(text[branch.end():end].split())
        where = f"{name}: {function_at(masked, branch.start())}"
        yield Mutant(f"{where}: {branch[1]} not ({condition})", name,
                     f"{text[:branch.end()]}!({text[branch.end():end]}){text[end:]}")


def closing(text, at):
    """Return where the parenthesis closes that is open at a place."""
    depth = 1
    while depth:
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return at - 1


def function_at(text, at):
    """Return the name of the function that a place is in."""
    names = [found[1] for found in map(FUNCTION.match, text[:at].split("\n"))
             if found and not found[0].startswith("#")]
    return names[-1] if names else "file"
