#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a switch between threads and between processes takes, on this machine and in the lab.

An emulator forgets its translations of addresses at each switch to another process. Stock does its
work in the kernel, which needs no such switch; purecm does it in cmportd and the library. So the
clock of an emulated host counts each of purecm's switches many times: `calls.py` says how many
there are. Exit status: 2 if the lab did not run.
"""
import argparse
from pathlib import Path
import subprocess
import sys

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from benchlib import LabError, make_lab  # noqa: E402


def row(where, text):
    ns = dict(line.split() for line in text.splitlines())
    print(f"{where:14}" + "".join(f"{int(ns[what]) / 1000:9.2f} us between {what}"
                                  for what in ("threads", "processes")), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build")
    program = parser.parse_args().build.resolve() / "tests/bench/switch"
    row("this machine", subprocess.run([program], capture_output=True, text=True,
                                       check=True).stdout)
    try:
        with make_lab(2, 1) as lab:
            row("emulated host", lab.a.run([program], timeout=300, check=True).stdout)
    except LabError as error:
        print(f"switch.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
