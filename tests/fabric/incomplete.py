#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`purecm fabric` in a build that lacks a part says which, and how to make it; and so it does in an
installation. The build is made anew here, part by part.

Prints a line per test and then "N passed, N failed, N skipped".
"""
import argparse
import os
from pathlib import Path
import shutil
import subprocess
import sys
import tempfile

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 40
SKIPPED = 77

PARTS = (*(f"tools/fabric/{name}" for name in ("fabric", "faults.py", "furnish.py",
                                               "host_process.py", "lag.py", "listening.py",
                                               "namespaces.py", "netlink.py", "plan.py",
                                               "udp_ports.py", "watch.py")),
         "tools/cmportd/cmportd", "tools/fabric/fabric-host", "tools/fabric/lib/libibverbs.so.1",
         "tools/fabric/lib/libibumad.so.3", "lib/librdmacm.so.1")
HAS_LIBRARIES = 'IFS=:; for folder in $LD_LIBRARY_PATH; do test -d "$folder" || exit 1; done'
PART_OF_IB = "tools/fabric/lib/libfabric-ipoib.so"


def tests(whole, build):
    """Yield (name, what it must say, status, what it said) of runs, with more parts each time."""
    for part in ("tools/purecm", *PARTS, PART_OF_IB):
        (build / part).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(whole / "tools/purecm", build / "tools")
    yield ("an installation", "purecm/fabric/fabric is missing: install all of it",
           *run(build, "roce"))
    (build / "build.ninja").touch()
    for part in PARTS:
        yield (part, f": build/{part} is missing: build all of it (ninja -C build)",
               *run(build, "roce"))
        shutil.copy(whole / part, build / part)
    yield (PART_OF_IB, f": build/{PART_OF_IB} is missing: build all of it",
           *run(build, "ib"))
    yield ("all that RoCE needs", None, *run(build, "roce"))
    yield ("a program that changes its folder", None,
           *run(build, "roce", f"a:cd / && {HAS_LIBRARIES}", "--build", "build"))


def run(build, link, command="a:true", *options):
    """Return: the exit status and the standard error."""
    done = subprocess.run(["build/tools/purecm", "fabric", "run", "--hosts", "1", "--link", link,
                           *options, command], cwd=build.parent, text=True, capture_output=True,
                          timeout=LIMIT_S, check=False)
    return done.returncode, done.stderr


def judge(name, wanted, status, said):
    """Without anything wanted, all is there. Return: "ok", "FAIL" or "skip"."""
    if not wanted and status == SKIPPED:
        verdict = "skip"
    else:
        verdict = "ok" if bool(status) == bool(wanted) and (wanted or "") in said else "FAIL"
    print(f"{verdict:4} {name}" + (f": status {status}: {said}" if verdict != "ok" else ""))
    return verdict


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    whole = parser.parse_args().build.absolute()
    with tempfile.TemporaryDirectory() as top:
        verdicts = [judge(*test) for test in tests(whole, Path(os.path.realpath(top), "build"))]
    ok, failed, skipped = (verdicts.count(verdict) for verdict in ("ok", "FAIL", "skip"))
    print(f"{ok} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
