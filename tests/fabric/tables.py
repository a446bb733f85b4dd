#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Debian's saquery reads the tables of the soft fabric's subnet administrator.

Prints what fails and then "N passed, N failed, N skipped".
"""
import re
import shutil
import sys

from hosts import Skip, main, run_on_fabric

LIMIT_S = 60
TABLES = (  # of a fabric of three hosts: a query, and how many lines say so
    ("CPI", "Class version.*2", 1), ("NR", "NodeRecord dump", 4), ("PIR 2", "EndPortLid.*2$", 1),
    ("PIR", "PortInfoRecord dump", 40), ("PR", "PathRecord dump", 9), ("-s", "base_lid.*1$", 2),
    ("-O 3", "^c fab0$", 1), ("-g", "Mlid.*0xC000", 1), ("SR", "dump", 0))


def saquery_reads_tables(build):
    if not shutil.which("saquery"):
        raise Skip("infiniband-diags is not installed\n")
    queries = "; ".join(f"echo == {query}; saquery {query}" for query, _, _ in TABLES)
    done = run_on_fabric(build, LIMIT_S, "--link", "ib", "--hosts", "3", "b:" + queries)
    said = re.split("^== .*\n", done.stdout, flags=re.MULTILINE)[1:]
    for (query, line, n), lines in zip(TABLES, said, strict=True):
        found = len(re.findall(line, lines, re.MULTILINE))
        assert found == n, f"saquery {query}: {found}, not {n} lines with {line!r}:\n{lines}"


if __name__ == "__main__":
    sys.exit(main(__doc__, (saquery_reads_tables,)))
