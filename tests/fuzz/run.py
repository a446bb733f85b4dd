#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs a fuzz target for FUZZ_SECONDS (4 by default, 60 in a long run) from its kept corpus, or
plays that corpus once (--replay).

The corpus is an archive of inputs; run.py --keep ARCHIVE FILE... adds to it. New inputs go to a
folder that is thrown away; an input that crashes the target is left beside the archive and named.
"""

import argparse
import io
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

MEMORY = "/dev/shm"  # cmportd makes files of half a megabyte for each input
# With tens of thousands of features each, weighting the inputs by them takes longer than playing
# them.
UNWEIGHTED = ("fuzz_portd", "fuzz_subnet")


def scratch_folder():
    return tempfile.TemporaryDirectory(prefix="purecm-fuzz-",
                                       dir=MEMORY if os.access(MEMORY, os.W_OK) else None)


def name_of(corpus):
    return corpus.name.partition(".")[0]


def surroundings(scratch):
    return {**os.environ, "TMPDIR": scratch, "PURECM_SOCKET": f"{scratch}/none",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=pathlib.Path, metavar="ARCHIVE")
    parser.add_argument("target", nargs="+", help="the program; with --keep, inputs")
    parser.add_argument("--replay", action="store_true", help="the target is built with replay.c")
    parser.add_argument("--keep", action="store_true", help="add inputs to the archive")
    args = parser.parse_args()
    if args.keep:
        return keep(args.corpus, args.target)
    args.target, = args.target
    with scratch_folder() as inputs:
        for name, data in read(args.corpus):
            pathlib.Path(inputs, name).write_bytes(data)
        run, said = (replay if args.replay else fuzz)(args, inputs)
    print(f"{pathlib.Path(args.target).name}: {said}, exit status {run.returncode}")
    if run.returncode:
        print(run.stderr[-4000:])
    return 1 if run.returncode else 0  # libFuzzer's 77 for a crash would be a skipped test


def keep(corpus, files):
    """The archive is the same whoever makes it: a difference is one of the inputs."""
    inputs = dict(read(corpus)) if corpus.exists() else {}
    inputs.update((path.name, path.read_bytes()) for path in map(pathlib.Path, files))
    with tarfile.open(corpus, "w:xz") as archive:
        for name, data in sorted(inputs.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return 0


def read(corpus):
    """Yield name and content of each input."""
    with tarfile.open(corpus) as archive:
        for entry in archive:
            yield entry.name, archive.extractfile(entry).read()


def replay(args, inputs):
    """Return: the process that has ended, and what it did."""
    with scratch_folder() as scratch:
        run = subprocess.run([args.target, inputs], capture_output=True, text=True,
                             env=surroundings(scratch))
    return run, run.stdout.strip()


def fuzz(args, inputs):
    """Return: as replay()."""
    usual = "60" if os.environ.get("PURECM_TEST_LONG") else "4"
    seconds = int(os.environ.get("FUZZ_SECONDS") or usual)
    is_weighted = pathlib.Path(args.target).name not in UNWEIGHTED
    with scratch_folder() as found, scratch_folder() as scratch:
        run = subprocess.run(
            [args.target, f"-max_total_time={seconds}", "-max_len=4096", "-print_final_stats=1",
             f"-entropic={int(is_weighted)}",
             f"-artifact_prefix={args.corpus.parent}/{name_of(args.corpus)}-", found, inputs],
            capture_output=True, text=True, env=surroundings(scratch))
    executed = re.search(r"number_of_executed_units: (\d+)", run.stderr)
    return run, f"{executed.group(1) if executed else '?'} executions in {seconds} s"


if __name__ == "__main__":
    sys.exit(main())
