#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The pure folders on other machines, compilers and C libraries, and the whole tree ("tree-") with
another compiler or LTO, without a warning: unit tests, golden messages, the simulator, random
messages before tshark, and a choice of what the whole tree does.

Builds in machines/NAME of the build folder. Ends with a line "N passed, N failed, N skipped". Exit
status: 77 where the compiler or the emulator is missing.
"""
import argparse
import collections
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys

SKIPPED = 77
ROOT = Path(__file__).resolve().parents[2]
CHECKS = re.compile(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)", re.MULTILINE)
SIMULATIONS = (("--patterns", "--depth", "5"), ("--lies", "--moments", "1"), ("--count", "100"),
               ("--count", "10", "--hosts", "32"))

# A compiler; its emulator and what meson says of its machine, unless that is this one; options.
Machine = collections.namedtuple("Machine", "compiler emulator family endian options packages")
MACHINES = {
    "s390x": Machine("s390x-linux-gnu-gcc", "qemu-s390x-static", "s390x", "big", (),
                     "gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user-static"),
    "i386": Machine("i686-linux-gnu-gcc", "qemu-i386-static", "x86", "little", (),
                    "gcc-i686-linux-gnu libc6-dev-i386-cross qemu-user-static"),
    "arm64": Machine("aarch64-linux-gnu-gcc", "qemu-aarch64-static", "aarch64", "little", (),
                     "gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static"),
    "riscv64": Machine("riscv64-linux-gnu-gcc", "qemu-riscv64-static", "riscv64", "little", (),
                       "gcc-riscv64-linux-gnu libc6-dev-riscv64-cross qemu-user-static"),
    "clang": Machine("clang", None, None, None, (), "clang"),
    "lto": Machine("cc", None, None, None, ("-Db_lto=true",), "gcc"),
    # clang finds casts in macros of the kernel's headers; gcc looks for those in ours.
    "tree-clang": Machine("clang", None, None, None,
                          ("-Dpure=false", "-Dc_args=-Wno-cast-qual"), "clang"),
    # At -O1 gcc takes the array that poll() gets for one that poll() fills.
    "tree-lto": Machine("gcc", None, None, None,
                        ("-Dpure=false", "-Db_lto=true", "-Doptimization=2"), "gcc"),
    "musl": Machine("musl-gcc", None, None, None, ("-Dc_link_args=-static",), "musl-tools"),
}
# What a build of the whole tree has to do besides: its static library, its daemon, two hosts.
CHOICE = ("an installation of cmportd", "packets are all at once", "source addresses on a fabric",
          "programs without cmportd on a fabric", "stat on a fabric")
CROSS_FILE = """[binaries]
c = {compiler}
ar = '{ar}'
exe_wrapper = '{emulator}'
[properties]
needs_exe_wrapper = true
[built-in options]
c_link_args = ['-static']
[host_machine]
system = 'linux'
cpu_family = '{family}'
cpu = '{family}'
endian = '{endian}'
"""


def run(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **options)


def must(*command, **options):
    done = run(*command, **options)
    if done.returncode:
        sys.exit(f"{done.stdout[-3000:]}\nfailed: {' '.join(map(str, command))}\n"
                 "0 passed, 1 failed, 0 skipped")


def set_up(machine, folder):
    """Make the build folder of a machine, unless it is there."""
    if (folder / "build.ninja").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    options = ["-Dpure=true", "-Doptimization=1", "-Dwerror=true", *machine.options]
    if machine.emulator:
        cross = folder / "cross.ini"
        cached = ["ccache"] if shutil.which("ccache") else []
        cross.write_text(CROSS_FILE.format(**{
            **machine._asdict(), "compiler": [*cached, machine.compiler],
            "ar": machine.compiler.removesuffix("gcc") + "ar"}), encoding="utf-8")
        options += ["--cross-file", cross]
    must("meson", "setup", folder, ROOT, *options, env={**os.environ, "CC": machine.compiler})


def unit_tests(folder, name):
    """Run meson's tests of the folder. Return: how many passed, failed."""
    done = run("meson", "test", "-C", folder, "--no-rebuild", "--suite", "unit", "--suite", "judge",
               "--no-suite", "lab", "--num-processes", "2", "--verbose")
    counts = [sum(map(int, column)) for column in zip(*CHECKS.findall(done.stdout))] or [0, 0, 0]
    ran, failed = counts[0], counts[1] + counts[2]
    if done.returncode:
        print(done.stdout[-6000:])
        failed = failed or 1
    print(f"{name}: {ran - failed} of {ran} unit tests")
    return ran - failed, failed


def judgements(machine, folder):
    """Yield commands that end with 0 if all is well."""
    emulator = [machine.emulator] if machine.emulator else []
    sim = folder / "tests/sim/sim"
    if sim.exists():
        for options in SIMULATIONS:
            yield [*emulator, sim, *options]
    if "-Dpure=false" in machine.options:
        for name in CHOICE:
            yield ["meson", "test", "-C", folder, "--no-rebuild", name]
    if shutil.which("tshark"):
        yield [sys.executable, ROOT / "tests/judge/tshark_judge.py",
               " ".join([*emulator, str(folder / "tests/judge/random_pcap")])]


def judge(machine, folder):
    passed = failed = 0
    for command in judgements(machine, folder):
        done = run(*command)
        passed, failed = passed + (not done.returncode), failed + bool(done.returncode)
        if done.returncode:
            print(f"FAIL: {' '.join(map(str, command))}\n{done.stdout[-3000:]}")
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("machine", choices=MACHINES)
    parser.add_argument("--long", action="store_true", help="only with PURECM_TEST_LONG=1")
    args = parser.parse_args()
    machine = MACHINES[args.machine]
    if args.long and not os.environ.get("PURECM_TEST_LONG"):
        print("skipped: half a minute; PURECM_TEST_LONG=1 or tools/check --long runs it")
        return SKIPPED
    if not all(map(shutil.which, filter(None, (machine.compiler, machine.emulator)))):
        print(f"skipped: something is missing: apt-get install {machine.packages}")
        return SKIPPED
    folder = args.build.resolve() / "machines" / args.machine
    set_up(machine, folder)
    must("ninja", "-C", folder, "-j2")
    passed, failed = map(sum, zip(unit_tests(folder, args.machine), judge(machine, folder)))
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
