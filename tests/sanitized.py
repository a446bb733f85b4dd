#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The build folders with sanitizers, one of each kind, which all suites share.

They lie beside the build folder: build-asan/ and build-tsan/ beside build/. As a program it prints,
for tools/check, the options of one, or what suite unit needs of it: all but the programs that only
tests of other suites run.
"""
import fcntl
import json
from pathlib import Path
import subprocess
import sys

SOURCE = Path(__file__).resolve().parents[1]
SANITIZERS = {"asan": "address,undefined", "tsan": "thread"}
# What takes long to compile runs once, so it is not optimized much, and a finding needs no more
# than its line. Warnings are the plain build's: with -O1 and a sanitizer there are false ones.
CHEAP = ["-Doptimization=1", "-Dc_args=-g1", "-Dwerror=false"]


class BuildFailed(Exception):
    """The end of what the compiler said."""


def options(variant):
    return [f"-Db_sanitize={SANITIZERS[variant]}", "-Db_lundef=false", *CHEAP]


def folder_of(build, variant):
    build = Path(build).resolve()
    return build.with_name(f"{build.name}-{variant}")


def build_variant(build, variant):
    """Bring what suites run of a folder up to date; it is made if it is not there."""
    folder = folder_of(build, variant)
    folder.mkdir(exist_ok=True)
    with open(folder / ".lock", "a", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "build.ninja").exists():
            run("meson", "setup", folder, SOURCE, *options(variant))
        run("ninja", "-C", folder, "sanitized")


def needed(folder):
    """Return the targets of a configured folder that its suite unit and the others run."""
    of_unit = {target for test in introspect(folder, "--tests") for target in test["depends"]
               if any(suite.endswith(":unit") for suite in test["suite"])}
    files = [file for target in introspect(folder, "--targets") for file in target["filename"]
             if target["build_by_default"] and (
                 target["type"] != "executable" or target["installed"] or target["id"] in of_unit)]
    return ["sanitized", *(Path(file).relative_to(folder.resolve()) for file in files)]


def introspect(folder, what):
    return json.loads(run("meson", "introspect", folder, what))


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    if done.returncode:
        raise BuildFailed(done.stdout[-3000:])
    return done.stdout


if __name__ == "__main__":
    print(*(needed(Path(sys.argv[2])) if sys.argv[1] == "needed" else options(sys.argv[1])),
          sep="\n")
