#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""abidiff (abigail-tools) finds nothing incompatible between the distribution's library and ours.

It compares symbols and versions of the libraries themselves: the distribution's has no debugging
information. So a library is linked, too, that has the type of every function of the headers, once
with the distribution's and once with ours: of these abidiff compares prototypes and all types they
reach.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import tempfile

import abi
import symbols

PUBLIC = ("rdma/rdma_cma.h", "rdma/rdma_verbs.h", "rdma/rsocket.h")
PROTOTYPE = re.compile(r"^\w[^;{}()#=]*?\b(r\w+)\s*\(", re.M)


def changes(stock, ours, *options):
    """What abidiff says of two libraries, as lines; added functions are no change.

    Its status calls a struct whose layout changed merely suspicious; here nothing may be.
    """
    done = subprocess.run(["abidiff", "--no-added-syms", *options, stock, ours],
                          capture_output=True, text=True, check=False)
    if not done.returncode:
        return []
    return [f"abidiff {stock} {ours}: status {done.returncode}", done.stdout + done.stderr]


def functions(compiler, library):
    """Functions that the distribution's headers declare and its library exports."""
    source = "".join(f"#include <{header}>\n" for header in PUBLIC)
    done = subprocess.run([*compiler, "-E", "-P", "-D_GNU_SOURCE", "-xc", "-"], input=source,
                          capture_output=True, text=True, check=True)
    exported = {name.split("@")[0] for name in symbols.exported(library)}
    return sorted(set(PROTOTYPE.findall(done.stdout)) & exported)


def wrapper(names):
    """A library's source whose one table has the type of every function."""
    lines = [f"#include <{header}>" for header in PUBLIC]
    lines += [f"__typeof__({name}) *take_{name}(void) {{ return {name}; }}" for name in names]
    return "\n".join(lines) + "\n"


def linked(compiler, folder, name, source, options):
    """Path of a library with debugging information, built from the source."""
    path = pathlib.Path(folder, name)
    abi.run(*compiler, "-g", "-D_GNU_SOURCE", "-shared", "-fPIC", *options, source, "-o", path)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("library", help="ours")
    parser.add_argument("include", help="folder of our public headers")
    parser.add_argument("compiler", nargs="+", help="C compiler and its options, after --")
    args = parser.parse_args()
    stock = symbols.stock_library()
    if not shutil.which("abidiff"):
        abi.skip("there is no abidiff; install abigail-tools")
    if not stock:
        abi.skip("no librdmacm.so.1 to compare with; install librdmacm1")
    abi.require_stock_headers(args.compiler)
    found = changes(stock, args.library)
    names = functions(args.compiler, stock)
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "takes.c")
        source.write_text(wrapper(names), encoding="utf-8")
        found += changes(linked(args.compiler, folder, "stock.so", source, []),
                         linked(args.compiler, folder, "ours.so", source, [f"-I{args.include}"]))
    abi.report(found, f"libraries, and {len(names)} functions with their types, are compatible")


if __name__ == "__main__":
    main()
