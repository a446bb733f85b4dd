#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compiles a program against our headers and the distribution's; both must print the same."""

import argparse
import difflib
import pathlib
import tempfile

import abi


def output(compiler, source, include, folder):
    """What the program prints when it is compiled with these include options."""
    program = pathlib.Path(folder) / "program"
    abi.run(*compiler, "-std=gnu11", "-D_GNU_SOURCE", *include, source, "-o", program)
    return abi.run(program).splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("include", help="folder of our public headers")
    parser.add_argument("source", help="the program")
    parser.add_argument("compiler", nargs="+", help="C compiler and its options, after --")
    args = parser.parse_args()

    abi.require_stock_headers(args.compiler)
    with tempfile.TemporaryDirectory() as folder:
        ours = output(args.compiler, args.source, [f"-I{args.include}"], folder)
        stock = output(args.compiler, args.source, [], folder)
    abi.report(list(difflib.unified_diff(stock, ours, "stock", "ours", lineterm="", n=0)),
               f"{len(ours)} lines, all the same")


if __name__ == "__main__":
    main()
