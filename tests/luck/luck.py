#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Bad input and bad luck: what a process does when things go wrong, in two guests of tests/lab.

Prints one line per check and then "N passed, N failed, N skipped". Exit status: 0 if none failed,
77 if the lab cannot run here at all.
"""
import argparse
import os
import shutil
import sys
import time
import traceback

import owner  # noqa: F401
import removal  # noqa: F401
import groups  # noqa: F401
import changes  # noqa: F401
import garbage  # noqa: F401
import scarcity  # noqa: F401
import death  # noqa: F401
import crowds  # noqa: F401
from lucklib import CHECKS, VARIANTS, Bench, Lab, LabError, Skip, build_variant

SKIPPED = 77


def wanted(group, long, function, args):
    names = args.only
    if names:
        return any(name in (group, function.__name__) for name in names)
    return args.long or not long


def run(function, bench):
    """Run one check and print its line. Return: "passed", "failed" or "skipped"."""
    began = time.monotonic()
    try:
        function(bench)
        verdict, why = "passed", ""
    except Skip as reason:
        verdict, why = "skipped", f": {reason}"
    except (AssertionError, LabError) as error:
        frame = traceback.extract_tb(error.__traceback__)[1]
        verdict, why = "failed", f": {error} (line {frame.lineno})"
    took = time.monotonic() - began
    print(f"{verdict:8}{function.__name__.replace('_', ' ')} ({took:.1f} s){why}", flush=True)
    return verdict


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", help="Meson build folder, with tests/luck built")
    parser.add_argument("only", nargs="*", help="groups or names of checks; all by default")
    parser.add_argument("--long", action="store_true", help="the long ones too",
                        default=bool(os.environ.get("PURECM_TEST_LONG")))
    args = parser.parse_args()
    if not shutil.which("qemu-system-x86_64"):
        print("luck: skipped: no qemu-system-x86_64; apt-get install qemu-system-x86")
        return SKIPPED
    for variant in VARIANTS:
        build_variant(args.build, variant)
    count = {"passed": 0, "failed": 0, "skipped": 0}
    with Lab({"a": "stock", "b": "purecm"}) as lab:
        bench = Bench(lab, args.build)
        for group, long, function in CHECKS:
            if wanted(group, long, function, args):
                verdict = run(function, bench)
                count[verdict] += 1
                if verdict == "failed":
                    bench.describe()
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
