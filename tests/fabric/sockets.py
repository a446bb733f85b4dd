#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Calls on sockets return what stock's return: tests/fabric/sockets.c on a soft fabric, as an
ordinary user, against sockets.txt, which is what stock said in the lab.

    sockets.py --build build --take     plays it there anew and writes sockets.txt

Prints a line for each call that returned something else, and then "N passed, N failed, N skipped".
"""
import argparse
import os
from pathlib import Path
import subprocess
import sys

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STOCK_SAID = HERE / "sockets.txt"
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
STOCK_LIBRARIES = "/usr/lib/x86_64-linux-gnu:/usr/lib64:/usr/lib"
PATIENCE_S = 60
SKIPPED = 77

# Stock looks at the end of a connection only when it has to wait for room: what is sent after it is
# taken, and after rshutdown(SHUT_WR) even arrives. TCP says EPIPE or ECONNRESET.
DIFFERENT = {
    "rsend after it: 1": "rsend after it: ECONNRESET",
    "rrecv of the end: 1": "rrecv of the end: 0",
    "rsend when the peer has closed: 1": "rsend when the peer has closed: ECONNRESET",
}


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build",
                        help="build folder (default: build)")
    parser.add_argument("--take", action="store_true", help="write what stock says in the lab")
    args = parser.parse_args()
    args.program = args.build.resolve() / "tests/fabric/sockets"
    return args


def take(args):
    sys.path.insert(0, str(ROOT / "tests/lab"))
    from lablib import Lab  # pylint: disable=import-outside-toplevel
    with Lab({"a": "stock"}) as lab:
        said = lab.a.run([args.program, lab.a.addr4], timeout=PATIENCE_S,
                         env={"LD_LIBRARY_PATH": STOCK_LIBRARIES}).check().stdout
    STOCK_SAID.write_text(said)
    return 0


def play(args):
    """Return what the program says with this library."""
    user = NOBODY if os.geteuid() == 0 else []
    command = [*user, str(ROOT / "tools/fabric/fabric"), "run", "--build", str(args.build),
               "--hosts", "1", "--raw", "--timeout", str(PATIENCE_S),
               f"a:{args.program} 10.77.0.1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == SKIPPED:
        print(done.stderr.strip())
        sys.exit(SKIPPED)
    return done.stdout.splitlines() + ([done.stderr.strip()] if done.returncode else [])


def main():
    args = parse_args()
    if args.take:
        return take(args)
    wanted = [DIFFERENT.get(line, line) for line in STOCK_SAID.read_text().splitlines()]
    said = play(args)
    failed = 0
    for number in range(max(len(wanted), len(said))):
        pair = [lines[number] if number < len(lines) else "nothing" for lines in (wanted, said)]
        if pair[0] != pair[1]:
            failed += 1
            print(f"FAIL {pair[1]}, not {pair[0]}")
    print(f"{len(wanted) - min(failed, len(wanted))} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
