#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The built library exports the listed functions under the listed versions, and nothing else."""

import argparse
import pathlib
import re
import subprocess

import abi


def exported(library):
    """name@@version of everything a library defines, the version nodes themselves aside."""
    listing = abi.run("nm", "-D", "--defined-only", "--with-symbol-versions", library)
    return {line.split()[2] for line in listing.splitlines() if line.split()[1] != "A"}


def chain(library):
    """Version node -> the node it succeeds."""
    nodes = re.findall(r"^\d+ 0x00 \S+ (\S+) *\n(?:\t(\S+))?", abi.run("objdump", "-p", library),
                       re.M)
    return dict(nodes)


def family(node):
    """Whose chain a version node is in."""
    return node.rpartition("_")[0]


def stock_library():
    """Path of the distribution's librdmacm, or None."""
    cache = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False)
    found = re.search(r"librdmacm\.so\.1 .*=> (\S+)", cache.stdout)
    return found and found[1]


def against_list(args):
    """The library against symbols.txt, both ways, and its nodes against the order of the list."""
    listed = set(pathlib.Path(args.list).read_text(encoding="utf-8").split())
    ours = exported(args.library)
    found = [f"{name} is not exported" for name in sorted(listed - ours)]
    found += [f"{name} is exported but not listed" for name in sorted(ours - listed)]
    nodes = sorted({name.split("@@")[1] for name in listed})
    for node, before in zip(nodes, ["", *nodes]):
        if family(node) != family(before):
            before = ""
        if chain(args.library).get(node) != before:
            found.append(f"{node} does not succeed {before or 'nothing'}")
    return found, f"{len(ours)} functions in {len(nodes)} versions"


def against_stock(args):
    """The library has everything of the distribution's."""
    library = stock_library()
    if not library:
        abi.skip("no librdmacm.so.1 to compare with; install librdmacm1")
    if b"PURECM" in pathlib.Path(library).read_bytes():
        abi.skip(f"{library} is purecm's own; nothing to compare with")
    stock = exported(library)
    missing = sorted(stock - exported(args.library))
    return ([f"{name} of {library} is missing" for name in missing],
            f"all {len(stock)} functions of {library}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stock", action="store_true", help="compare with the distribution's")
    parser.add_argument("library")
    parser.add_argument("list", help="symbols.txt")
    args = parser.parse_args()
    abi.report(*(against_stock if args.stock else against_list)(args))


if __name__ == "__main__":
    main()
