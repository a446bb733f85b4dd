#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs a fuzz target for FUZZ_SECONDS (4 by default, 60 in a long run) from its kept corpus, or
plays that corpus once (--replay).

New inputs go to a folder that is thrown away; an input that crashes the target is kept beside
the corpus and named.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

MEMORY = "/dev/shm"  # cmportd makes files of half a megabyte for each input
# With tens of thousands of features each, weighting the inputs by them takes longer than playing
# them.
UNWEIGHTED = ("fuzz_portd", "fuzz_subnet")


def scratch_folder():
    return tempfile.TemporaryDirectory(prefix="purecm-fuzz-",
                                       dir=MEMORY if os.access(MEMORY, os.W_OK) else None)


def surroundings(scratch):
    return {**os.environ, "TMPDIR": scratch, "PURECM_SOCKET": f"{scratch}/none",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target")
    parser.add_argument("corpus", type=pathlib.Path)
    parser.add_argument("--replay", action="store_true", help="the target is built with replay.c")
    args = parser.parse_args()
    run, said = (replay if args.replay else fuzz)(args)
    print(f"{pathlib.Path(args.target).name}: {said}, exit status {run.returncode}")
    if run.returncode:
        print(run.stderr[-4000:])
    return 1 if run.returncode else 0  # libFuzzer's 77 for a crash would be a skipped test


def replay(args):
    """Return: the process that has ended, and what it did."""
    with scratch_folder() as scratch:
        run = subprocess.run([args.target, str(args.corpus)], capture_output=True, text=True,
                             env=surroundings(scratch))
    return run, run.stdout.strip()


def fuzz(args):
    """Return: as replay()."""
    usual = "60" if os.environ.get("PURECM_TEST_LONG") else "4"
    seconds = int(os.environ.get("FUZZ_SECONDS") or usual)
    is_weighted = pathlib.Path(args.target).name not in UNWEIGHTED
    with scratch_folder() as found, scratch_folder() as scratch:
        run = subprocess.run(
            [args.target, f"-max_total_time={seconds}", "-max_len=4096", "-print_final_stats=1",
             f"-entropic={int(is_weighted)}",
             f"-artifact_prefix={args.corpus.parent}/{args.corpus.name}-", found, str(args.corpus)],
            capture_output=True, text=True, env=surroundings(scratch))
    executed = re.search(r"number_of_executed_units: (\d+)", run.stderr)
    return run, f"{executed.group(1) if executed else '?'} executions in {seconds} s"


if __name__ == "__main__":
    sys.exit(main())
