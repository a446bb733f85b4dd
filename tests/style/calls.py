#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The house rules about calls, checked by the symbols of the object files: a folder calls only
folders that it may include (ARROWS of style.py), and files that call each other in a ring are few.

calls.py BUILD prints a line per rule, each offence below it, and then "N passed, N failed,
N skipped". Exit status: 1 if a rule is broken.
"""
import collections
import json
from pathlib import Path
import re
import subprocess
import sys

from style import ARROWS

RING_MAX = 4

# Libraries that stand in for others: their symbols are the C library's, or libibverbs', and are
# seen by their own files only.
STAND_INS = ("lib/rsocket/preload/", "tools/fabric/ipoib/",
             "tools/fabric/blocking/", "tools/fabric/view/", "tools/fabric/")

SYMBOL = re.compile(r"^(.+\.o):\s*[0-9a-f]*\s+(\w) (\S+)$")


def objects(build):
    """Return {object file: source, relative to the root} of the product."""
    entries = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    root = Path(__file__).resolve().parents[2]
    found = {}
    for entry in entries:
        source = (build / entry["file"]).resolve().relative_to(root)
        if source.parts[0] != "tests" and not entry["output"].startswith("tests/"):
            found[entry["output"]] = str(source)
    return found


def symbols(build, names):
    """Return ({symbol: sources that define it}, {source: symbols that it lacks})."""
    there = [name for name in names if (build / name).exists()]
    printed = subprocess.run(["nm", "-A", *there], cwd=build, capture_output=True, text=True,
                             check=True).stdout
    defined, lacking = collections.defaultdict(set), collections.defaultdict(set)
    for name, kind, symbol in (SYMBOL.match(line).groups() for line in printed.splitlines()
                               if SYMBOL.match(line)):
        if kind in "TDBRVWC":
            defined[symbol].add(names[name])
        elif kind == "U":
            lacking[names[name]].add(symbol)
    return defined, lacking


def world(source):
    """Return the stand-in that a source is of, or ""."""
    return next((prefix for prefix in STAND_INS if source.startswith(prefix)), "")


def calls(build):
    """Return {source: {source that it calls: a symbol}}."""
    defined, lacking = symbols(build, objects(build))
    found = collections.defaultdict(dict)
    for caller, wanted in lacking.items():
        for symbol in sorted(wanted):
            for callee in defined.get(symbol, ()):
                if callee != caller and world(callee) in ("", world(caller)):
                    found[caller].setdefault(callee, symbol)
    return found


def rings(graph):
    """Return the rings of files (Tarjan's strongly connected components), as sorted lists."""
    number, lowest, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = lowest[node] = len(number)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in number:
                visit(other)
            if other in stack:
                lowest[node] = min(lowest[node], lowest[other])
        if lowest[node] == number[node]:
            at = stack.index(node)
            found.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(graph):
        if node not in number:
            visit(node)
    return [ring for ring in found if len(ring) > 1]


def arrows(graph):
    """folders call in one direction only"""
    for caller, callees in sorted(graph.items()):
        allowed = next(names for folder, names in ARROWS if caller.startswith(folder))
        for callee, symbol in sorted(callees.items()):
            if not callee.startswith(folders_of(allowed)):
                yield f"{caller} must not call {symbol}() of {callee}"


def folders_of(allowed):
    """Return the prefixes of ARROWS, where a header stands for the files of its name."""
    return tuple(name[:-1] if name.endswith(".h") else name for name in allowed)


def short_rings(graph):
    """no ring of calls has more than four files, or crosses folders"""
    for ring in rings(graph):
        if len(ring) > RING_MAX or len({Path(name).parent for name in ring}) > 1:
            yield f"a ring of {len(ring)} files:"
            yield from (f"    {line}" for line in calls_within(graph, ring))


def calls_within(graph, ring):
    """Yield a line for each call between files of a ring."""
    for caller in ring:
        for callee, symbol in sorted(graph[caller].items()):
            if callee in ring:
                yield f"{caller} calls {symbol}() of {callee}"


def main():
    graph = calls(Path(sys.argv[1]))
    offences = {rule: list(rule(graph)) for rule in (arrows, short_rings)}
    for rule, found in offences.items():
        print(f"{'FAIL' if found else 'ok':4} {rule.__doc__}")
        print("".join(f"     {offence}\n" for offence in found), end="")
    failed = sum(bool(found) for found in offences.values())
    print(f"{len(offences) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not graph else 0


if __name__ == "__main__":
    sys.exit(main())
