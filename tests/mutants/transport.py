#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Changes one thing at a time in the transport of RoCE v2, as mutants.py does in the protocol core,
and sees whether its tests in virtual time fail: tests/roce/.

Of the transport's files those in CODE have tests for each line. Others can be named; their
survivors are tests that are missing. transport.txt has what cannot be seen.

Prints killed/total and the survivors. Exit status: as of mutants.py.
"""
import argparse
import concurrent.futures
import os
from pathlib import Path
import shlex
import subprocess
import sys
import tempfile
import time

import generate
import mutants

ROOT = mutants.ROOT
CODE = ("tools/fabric/verbs/congestion.c", "tools/fabric/verbs/response.c")
EQUIVALENT = Path(__file__).with_name("transport.txt")
FOLDERS = ("base", "tools/fabric/roce", "tools/fabric/udp", "tools/fabric/verbs",
           "tools/fabric/wire")
LIBS = ("check", "libdeflate", "libnl-3.0", "zlib")
TESTS = {"world": ("test_congestion", "test_rules", "test_fates", "test_random", "test_answers",
                   "test_refusals", "test_sends", "test_wire", "transcript", "world"),
         "bytes": ("test_codec", "test_icrc", "packets")}
RUNS = (("world", "congestion"), ("bytes", "codec"), ("bytes", "icrc"), ("world", "wire"),
        ("world", "answers"), ("world", "refusals"), ("world", "sends"),
        ("world", "rules"), ("world", "fates"), ("world", "random"))


class Bench:
    """The tests, and the objects of the library that they are linked with."""

    def __init__(self, folder):
        self.folder = folder
        self.compiler = shlex.split(os.environ.get("CC", "cc"))
        self.headers, self.libs = (
            shlex.split(subprocess.run(["pkg-config", what, *LIBS], capture_output=True, text=True,
                                       check=True).stdout) for what in ("--cflags", "--libs"))
        sources = [path for name in FOLDERS for path in sorted((ROOT / name).glob("*.c"))]
        sources += [ROOT / "mad/wire.c", *sorted((ROOT / "mad").glob("*_msg.c"))]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            self.objects = dict(pool.map(self.compile, sources))
            self.link(folder, {})
            list(pool.map(self.build, TESTS))

    def run_compiler(self, *arguments):
        return subprocess.run([*self.compiler, *mutants.FLAGS, *map(str, arguments)], check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def compile(self, source):
        name = str(source.relative_to(ROOT))
        to = self.folder / (name.replace("/", "-") + ".o")
        done = self.run_compiler(*self.headers, "-c", source, "-o", to)
        if done.returncode:
            sys.exit(f"{source}: {done.stderr}")
        return name, to

    def link(self, folder, instead):
        objects = [instead.get(name, to) for name, to in self.objects.items()]
        return self.run_compiler("-shared", *objects, *self.libs, "-lpthread", "-o",
                                 folder / "libtransport.so").returncode == 0

    def build(self, name):
        sources = [mutants.MAIN, *(ROOT / f"tests/roce/{part}.c" for part in TESTS[name])]
        done = self.run_compiler(*sources, "-o", self.folder / name, f"-L{self.folder}",
                                 "-ltransport", *self.libs)
        if done.returncode:
            sys.exit(f"{name}: {done.stderr}")

    def first_to_fail(self, folder):
        env = {**os.environ, "LD_LIBRARY_PATH": str(folder), "CK_FORK": "no"}
        for program, part in RUNS:
            if mutants.failure_of([self.folder / program, part], env, folder):
                return part
        return None

    def judge(self, folder, _instead):
        """As that of mutants.py."""
        return self.first_to_fail(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("files", nargs="*", default=CODE, help="default: " + " ".join(CODE))
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--verbose", action="store_true", help="print what kills each")
    args = parser.parse_args()
    found = generate.unique([mutant for name in args.files
                             for mutant in generate.code_mutants(ROOT, name)])
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        bench = Bench(Path(folder))
        if bench.first_to_fail(bench.folder):
            sys.exit(f"without any mutant: {bench.first_to_fail(bench.folder)} fails")
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            fates = list(pool.map(lambda mutant: mutants.fate(bench, mutant, args), found))
    reasons = {name: reason for name, reason in mutants.read_reasons(EQUIVALENT).items()
               if name.startswith(tuple(args.files))}
    return mutants.verdict(found, fates, {mutant.name for mutant in found}, reasons,
                           time.monotonic() - started)


if __name__ == "__main__":
    sys.exit(main())
