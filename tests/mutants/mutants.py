#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Changes one thing at a time in the protocol core and the messages, and sees whether a test fails.

Every row of the state table and of the message layouts, every guard, every rule of a timer. A
mutant that no test notices is a test that is missing, or one that changes nothing that can be
seen: those are listed in equivalent.txt, with the reason. The tests are built once, against a
shared library of cm/ and mad/; for a mutant one file of that, or two that include a changed header,
are compiled and linked anew.

Prints killed/total and the survivors. Exit status: 1 if one survives that is not listed, or one
is listed that does not exist or does not survive.
"""
import argparse
import concurrent.futures
import os
from pathlib import Path
import shlex
import signal
import subprocess
import sys
import tempfile
import time

import generate

ROOT = Path(__file__).resolve().parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.txt")
SOURCES = ("cm/action.c", "cm/adopt.c", "cm/core.c", "cm/demux.c", "cm/fsm.c",
           "cm/guard.c", "cm/ids.c", "cm/index.c", "cm/peer.c", "cm/retry.c", "base/hash.c",
           "base/slab.c", "base/timer.c", "mad/cm_msg.c", "mad/cm_print.c", "mad/cma_hdr.c",
           "mad/sa_msg.c", "mad/wire.c")
INCLUDED_BY = {"mad/wire_known.h": ("mad/cm_msg.c", "mad/wire.c")}
FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g0", "-w", "-fPIC", f"-I{ROOT}")
MAIN = ROOT / "tests/unit/test_main.c"
HELPERS = {"base": (), "cm": ("inputs", "pair", "rig", "text"), "mad": ("layouts", "vectors")}
# Those that kill most and take least come first.
UNIT = ("cm/test_cells", "mad/test_cm_msg", "mad/test_wire", "mad/test_cma_hdr", "mad/test_sa_msg",
        "cm/test_guard", "cm/test_demux", "cm/test_known", "cm/test_action", "cm/test_retry",
        "base/test_timer", "base/test_hash",
        "cm/test_index", "cm/test_destroy", "cm/test_exchange", "cm/test_adopt", "cm/test_sidr",
        "cm/test_lookup", "cm/test_pace", "cm/test_peer", "cm/test_fsm", "cm/test_core")
# Slow, and for few. The searches and walks of the unit tests are the simulator's, too.
LATE_UNIT = ("cm/test_ids",)
# It replaces malloc() in the library, so it is linked anew for each mutant that got that far.
MEMORY = "cm/test_memory"
WRAP = ("-Wl,--wrap=malloc", "-Wl,--wrap=calloc")
SIM = (("--lies", "--moments", "4"), ("--patterns", "--depth", "5"), ("--count", "3000"))
TEST_BYTES_MAX = 3 << 30  # of address space: a mutant that allocates for ever hurts nothing else
TEST_SECONDS_MAX = 20  # of processor time: on a busy machine a slow test is no test that hangs
WALL_FACTOR = 20


def main():
    args = parse()
    mutants = chosen(generate.all_mutants(ROOT), args)
    reasons = read_reasons()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        bench = Bench(Path(folder))
        if bench.first_to_fail(bench.folder):
            sys.exit(f"without any mutant: {bench.first_to_fail(bench.folder)} fails")
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            fates = list(pool.map(lambda mutant: fate(bench, mutant, args), mutants))
    known = {mutant.name for mutant in generate.all_mutants(ROOT)}
    return verdict(mutants, fates, known, reasons, time.monotonic() - started)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", metavar="TEXT", help="only those whose name contains it")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--list", action="store_true", help="print the names, do nothing")
    parser.add_argument("--verbose", action="store_true", help="print what kills each")
    return parser.parse_args()


def chosen(mutants, args):
    """Return those to be tried; prints them and exits with --list."""
    if args.only:
        mutants = [mutant for mutant in mutants if args.only in mutant.name]
    if args.list:
        print(*(mutant.name for mutant in mutants), sep="\n")
        sys.exit(0)
    return mutants


def read_reasons(path=EQUIVALENT):
    """Return {name: why it cannot be seen} from a list: a reason, then its mutants."""
    reasons, reason = {}, ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("\t"):
            reasons[line.strip()] = reason
        elif line and not line.startswith("#"):
            reason = line
    return reasons


class Bench:
    """The tests, built once, and the objects of the library that they are linked against."""

    def __init__(self, folder):
        self.folder = folder
        self.compiler = shlex.split(os.environ.get("CC", "cc"))
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(lambda name: self.compile(ROOT / name, self.object_of(name)), SOURCES))
        self.link(folder, {})
        check = shlex.split(subprocess.run(["pkg-config", "--cflags", "--libs", "check"],
                                           capture_output=True, text=True, check=True).stdout)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            jobs = [pool.submit(self.build_unit, name, check) for name in UNIT + LATE_UNIT]
            jobs.append(pool.submit(self.build_sim))
            jobs.append(pool.submit(self.build_memory, check))
            for job in jobs:
                job.result()

    def object_of(self, name):
        return self.folder / (name.replace("/", "-") + ".o")

    def run_compiler(self, *arguments):
        return subprocess.run([*self.compiler, *FLAGS, *map(str, arguments)], check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def compile(self, source, to):
        done = self.run_compiler("-c", source, "-o", to)
        if done.returncode:
            sys.exit(f"{source}: {done.stderr}")

    def link(self, folder, instead):
        """Make the library in a folder; @instead holds objects to take for others."""
        objects = [instead.get(name, self.object_of(name)) for name in SOURCES]
        return self.run_compiler("-shared", *objects, "-o", folder / "libcore.so").returncode == 0

    def build(self, name, *what):
        done = self.run_compiler(*what, "-o", self.folder / name, f"-L{self.folder}", "-lcore")
        if done.returncode:
            sys.exit(f"{name}: {done.stderr}")

    def build_unit(self, name, check):
        part = name.split("/")[0]
        helpers = [ROOT / f"tests/unit/{part}/{helper}.c" for helper in HELPERS[part]]
        test = ROOT / f"tests/unit/{name}.c"
        main = [] if "int main(" in test.read_text(encoding="utf-8") else [MAIN]
        self.build(name.replace("/", "-"), test, *helpers, *main, *check)

    def build_sim(self):
        self.build("sim", *sorted((ROOT / "tests/sim").glob("*.c")))

    def build_memory(self, check):
        """Make the objects that link_memory() needs."""
        self.check = check
        sources = ["test_main", MEMORY, *(f"cm/{helper}" for helper in HELPERS["cm"])]
        self.memory = [self.folder / f"memory-{Path(source).name}.o" for source in sources]
        for source, to in zip(sources, self.memory):
            self.compile(ROOT / f"tests/unit/{source}.c", to)

    def link_memory(self, folder, instead):
        objects = [instead.get(name, self.object_of(name)) for name in SOURCES]
        done = self.run_compiler(*self.memory, *objects, *WRAP, *self.check,
                                 "-o", folder / "memory")
        if done.returncode:
            sys.exit(f"{MEMORY}: {done.stderr}")

    def commands(self):
        unit = [[self.folder / name.replace("/", "-")] for name in UNIT]
        late = [[self.folder / name.replace("/", "-")] for name in LATE_UNIT]
        sim = [[self.folder / "sim", *arguments] for arguments in SIM]
        return unit + sim + late

    def first_to_fail(self, folder):
        """Return the test that fails with the library in a folder, or None."""
        environment = {**os.environ, "LD_LIBRARY_PATH": str(folder), "CK_FORK": "no"}
        for command in self.commands():
            what = failure_of(command, environment, folder)
            if what:
                return what
        return None

    def judge(self, folder, instead):
        """Return the test that fails with the library in a folder and with a mutant's object in
        place of its file's, or None."""
        killer = self.first_to_fail(folder)
        if killer or any(name.startswith("mad/") for name in instead):
            return killer
        self.link_memory(folder, instead)
        return failure_of([folder / "memory"], os.environ, folder)


def killer_of(bench, mutant):
    """Return what notices a mutant, "" if it does not compile, None if nothing notices."""
    with tempfile.TemporaryDirectory(dir=bench.folder) as name:
        folder = Path(name)
        mutated = folder / mutant.file
        mutated.parent.mkdir(parents=True)
        mutated.write_text(mutant.text, encoding="utf-8")
        instead = {source: folder / f"{Path(source).name}.o"
                   for source in INCLUDED_BY.get(mutant.file, (mutant.file,))}
        for source, to in instead.items():
            is_own = source == mutant.file
            if bench.run_compiler("-c", mutated if is_own else ROOT / source, "-iquote", folder,
                                  "-o", to).returncode:
                return ""
        if not bench.link(folder, instead):
            return ""
        return bench.judge(folder, instead)


def failure_of(command, environment, folder):
    """Run a test. Return what there is to say about its failure, None if it passes."""
    try:
        done = subprocess.run(["prlimit", f"--cpu={TEST_SECONDS_MAX}", f"--as={TEST_BYTES_MAX}",
                               *command], env=environment,
                              check=False, cwd=folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              timeout=WALL_FACTOR * TEST_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        return f"{command[0].name} (hangs)"
    if done.returncode == -signal.SIGXCPU:
        return f"{command[0].name} (hangs)"
    return " ".join([command[0].name, *command[1:2]]) if done.returncode else None


def fate(bench, mutant, args):
    """Return (what killed it or None, whether it could be tried)."""
    killer = killer_of(bench, mutant)
    if args.verbose:
        print(f"{killer or 'SURVIVES' if killer != '' else 'no code'}: {mutant.name}", flush=True)
    return killer, killer != ""


def verdict(mutants, fates, known, reasons, seconds):
    """Print what became of them, of all that are known. Return: the exit status."""
    tried = [(mutant, killer) for mutant, (killer, was) in zip(mutants, fates) if was]
    alive = [mutant.name for mutant, killer in tried if not killer]
    wrong = [f"survives: {name}" for name in alive if name not in reasons]
    wrong += [f"listed as equivalent, but there is none such: {name}" for name in reasons
              if name not in known]
    wrong += [f"listed as equivalent, but killed: {mutant.name}" for mutant, killer in tried
              if killer and mutant.name in reasons]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    equivalent = sum(name in reasons for name in alive)
    print(f"{len(tried) - len(alive)}/{len(tried)} mutants killed, {equivalent} equivalent, "
          f"{len(alive) - equivalent} survive; {len(mutants) - len(tried)} do not compile; "
          f"{seconds:.0f} s")
    print(f"{len(tried) - len(wrong)} passed, {len(wrong)} failed, 0 skipped")
    return 1 if wrong or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
