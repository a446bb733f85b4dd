#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Our headers declare the distribution's functions and macros alike, and only known ones more."""

import argparse
import pathlib
import re
import tempfile

import abi

HEADERS = ("infiniband/ib.h", "rdma/rdma_cma.h", "rdma/rdma_cma_abi.h", "rdma/rdma_verbs.h",
           "rdma/rsocket.h")
INCLUDES = "".join(f"#include <{header}>\n" for header in HEADERS)

# What upstream added after the oldest release we compare with, and what is ours alone.
NEWER = {"rdma_resolve_addrinfo", "rdma_query_addrinfo", "rdma_write_cm_event",
         "repoll_create", "repoll_ctl", "repoll_wait", "RAI_SA", "RAI_DNS",
         "UCMA_IB_SERVICE_NAME_SIZE"}
OURS = re.compile("purecm_")


def macros(compiler, include):
    """Macros of the headers, less those of any header: name -> replacement."""
    text = abi.run(*compiler, *include, "-E", "-dM", "-x", "c", "-", input=INCLUDES)
    found = dict(re.findall(r"^#define (\S+) *(.*)$", text, re.M))
    wanted = re.compile("(RDMA|RAI|UCMA|SOL_RDMA|AF_IB|PF_IB|sib_|RSOCKET_H|_RDMA)")
    return {name: " ".join(value.split()) for name, value in found.items() if wanted.match(name)}


def functions(compiler, include):
    """Functions declared or defined by the headers: name -> prototype without parameter names."""
    with tempfile.TemporaryDirectory() as folder:
        listing = pathlib.Path(folder) / "prototypes"
        abi.run(*compiler, *include, "-fsyntax-only", "-aux-info", listing, "-x", "c", "-",
                input=INCLUDES)
        text = listing.read_text(encoding="utf-8")
    found = {}
    for path, prototype in re.findall(r"^/\* ([^:]+):\S+ \*/ (.*?;)", text, re.M):
        if path.endswith(HEADERS):
            found[re.search(r"(\w+) \(", prototype)[1]] = prototype
    return found


def differences(stock, ours):
    """Lines that say what is missing, other, or unknown in ours."""
    for name, value in sorted(stock.items()):
        if name not in ours:
            yield f"{name} is missing: {value}"
        elif ours[name] != value:
            yield f"{name}\n  stock: {value}\n  ours:  {ours[name]}"
    for name in sorted(ours.keys() - stock.keys() - NEWER):
        if not OURS.match(name):
            yield f"{name} is in ours only: {ours[name]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("include", help="folder of our public headers")
    parser.add_argument("compiler", nargs="+", help="C compiler and its options, after --")
    args = parser.parse_args()

    abi.require_stock_headers(args.compiler)
    if "Free Software Foundation" not in abi.run(*args.compiler, "--version"):
        abi.skip("only gcc can list prototypes (-aux-info)")
    found, total = [], 0
    for declared in (macros, functions):
        ours = declared(args.compiler, [f"-I{args.include}"])
        found += differences(declared(args.compiler, []), ours)
        total += len(ours)
    abi.report(found, f"{total} functions and macros")


if __name__ == "__main__":
    main()
