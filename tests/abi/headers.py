#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each public header compiles alone, twice in a row, in every dialect programs use."""

import argparse
import pathlib

import abi

DIALECTS = {"c": ("c99", "gnu99", "c11", "gnu11"), "c++": ("c++11", "gnu++17")}
FLAGS = ("-Wall", "-Wextra", "-Wshadow", "-Wcast-qual", "-Werror", "-fsyntax-only")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("language", choices=sorted(DIALECTS))
    parser.add_argument("include", help="folder of our public headers")
    parser.add_argument("compiler", nargs="*", help="compiler and its options, after --")
    args = parser.parse_args()

    if not args.compiler:
        abi.skip(f"no {args.language} compiler")
    headers = sorted(path.relative_to(args.include)
                     for path in pathlib.Path(args.include).glob("*/*.h"))
    for header in headers:
        for dialect in DIALECTS[args.language]:
            abi.run(*args.compiler, *FLAGS, f"-std={dialect}", f"-I{args.include}",
                    "-x", args.language, "-", input=f"#include <{header}>\n" * 2)
    if not headers:
        abi.report([f"no header in {args.include}"], "")
    print(f"{len(headers)} headers in {', '.join(DIALECTS[args.language])}")


if __name__ == "__main__":
    main()
