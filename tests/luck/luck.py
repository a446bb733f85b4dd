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
from lucklib import (CHECKS, RELEASES, VARIANTS, Bench, Lab, LabError, Skip,
                     build_variant, userland)

SKIPPED = 77
# What is built in the root of another release; sanitizers are not.
TARGETS = ("lib/librdmacm.so.1.5.0", "tools/cmportd/cmportd", "tests/luck/agent",
           "tests/luck/crowd", "tests/luck/family", "tests/luck/flood", "tests/luck/scarce",
           "tests/luck/tangle", "tests/luck/victim", "tests/luck/failmem.so")


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


def prepare(args):
    """Build what the checks run."""
    if args.release != "own":
        args.build = userland.build_or_exit(RELEASES[args.release], TARGETS)
        return
    for variant in VARIANTS:
        build_variant(args.build, variant)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", help="Meson build folder, with tests/luck built")
    parser.add_argument("only", nargs="*", help="groups or names of checks; all by default")
    parser.add_argument("--long", action="store_true", help="the long ones too",
                        default=bool(os.environ.get("PURECM_TEST_LONG")))
    parser.add_argument("--release", choices=RELEASES, default="own",
                        help="Debian's, of both hosts; of another than this machine's own "
                        "checks with sanitizers are skipped")
    args = parser.parse_args()
    if not shutil.which("qemu-system-x86_64"):
        print("luck: skipped: no qemu-system-x86_64; apt-get install qemu-system-x86")
        return SKIPPED
    prepare(args)
    count = {"passed": 0, "failed": 0, "skipped": 0}
    with Lab({"a": "stock", "b": "purecm"}, release=args.release) as lab:
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
