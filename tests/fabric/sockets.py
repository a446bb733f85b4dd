#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Calls on sockets return what stock's return: sockets.c and socket_signals.c of this folder on a
soft fabric, as an ordinary user, against what stock said in the lab: the newest Debian's
(*-newer.txt), or where there is no such file Debian 12's.

    sockets.py --build build --take                 plays both there anew and writes *.txt
    sockets.py --build build --take --release sid   ... and writes sockets-newer.txt

Prints a line for each call that returned something else, and then "N passed, N failed, N skipped".
"""
import argparse
import itertools
import os
from pathlib import Path
import subprocess
import sys

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
STOCK_LIBRARIES = "/usr/lib/x86_64-linux-gnu:/usr/lib64:/usr/lib"
PATIENCE_S = 60
SKIPPED = 77

# By program and what stock says: what this library says.
DIFFERENT = {
    # Stock looks at the end of a connection only when it has to wait for room: what is sent after
    # it is taken, and after rshutdown(SHUT_WR) even arrives. TCP says EPIPE or ECONNRESET.
    "sockets": {
        "rsend after it: 1": "rsend after it: ECONNRESET",
        "rrecv of the end: 1": "rrecv of the end: 0",
        "rsend when the peer has closed: 1": "rsend when the peer has closed: ECONNRESET",
        # Stock leaves name and flags as they were. It sends the first part though there is none.
        "family of its name: 0": "family of its name: 2",
        "its flags: 32": "its flags: 0",
        "rsendmsg of no parts: 1": "rsendmsg of no parts: 0",
        # Stock reads a byte as an int, and wants a byte; TCP takes both.
        "unconnected set IP_TOS: EINVAL": "unconnected set IP_TOS: 0",
        "unconnected IP_TOS then: 1040": "unconnected IP_TOS then: 16",
        "connected set IP_TOS: EINVAL": "connected set IP_TOS: 0",
        "connected IP_TOS then: 1040": "connected IP_TOS then: 16",
    },
    "socket_signals": {
        # A connect() of TCP that a signal ended goes on; stock's socket is unusable.
        "rconnect, then rpoll, without SA_RESTART: EINTR":
            "rconnect, then rpoll, without SA_RESTART: ECONNREFUSED",
        "rconnect, then rpoll, without SA_RESTART, another with: EINTR":
            "rconnect, then rpoll, without SA_RESTART, another with: ECONNREFUSED",
    },
}

# Lines of this library alone, in which stock never returns, and the lines before them.
OURS = {"sockets": {"rconnect to nobody: ECONNREFUSED": "rconnect after that: ENOTCONN"}}

# As stock of the rdma-core of which libibverbs is.
INHERITED = "an accepted socket inherits O_NONBLOCK: "
INHERITED_SINCE = 64


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build",
                        help="build folder (default: build)")
    parser.add_argument("--take", action="store_true", help="write what stock says in the lab")
    parser.add_argument("--release", choices=["sid"], help="of the lab: the newest Debian")
    return parser.parse_args()


def path_of(program, args):
    return args.build.resolve() / "tests/fabric" / program


def file_of(program, is_newer):
    return HERE / f"{program}{'-newer' if is_newer else ''}.txt"


def stock_said(program):
    """Return the lines of the newest stock that was asked."""
    newer = file_of(program, True)
    lines = (newer if newer.exists() else file_of(program, False)).read_text().splitlines()
    version = subprocess.run(["pkg-config", "--modversion", "libibverbs"], capture_output=True,
                             text=True, check=True).stdout
    inherits = int(version.split(".")[2]) >= INHERITED_SINCE
    return [f"{INHERITED}{int(inherits)}" if line.startswith(INHERITED) else line
            for line in lines]


def take(args):
    sys.path.insert(0, str(ROOT / "tests/lab"))
    from lablib import Lab  # pylint: disable=import-outside-toplevel
    with Lab({"a": "stock"}, release=args.release) as lab:
        for program in ["sockets"] if args.release else DIFFERENT:
            done = lab.a.run([path_of(program, args), lab.a.addr4], timeout=PATIENCE_S,
                             env={"LD_LIBRARY_PATH": STOCK_LIBRARIES})
            file_of(program, bool(args.release)).write_text(done.check().stdout)
    return 0


def play(program, args):
    """Return what the program says with this library."""
    user = NOBODY if os.geteuid() == 0 else []
    command = [*user, str(ROOT / "tools/fabric/fabric"), "run", "--build", str(args.build),
               "--hosts", "1", "--raw", "--timeout", str(PATIENCE_S),
               f"a:{path_of(program, args)} 10.77.0.1{' ours' * (program in OURS)}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == SKIPPED:
        print(done.stderr.strip())
        sys.exit(SKIPPED)
    return done.stdout.splitlines() + ([done.stderr.strip()] if done.returncode else [])


def compare(program, args):
    """Return how many lines are wanted, and how many differ."""
    wanted = [text for line in stock_said(program)
              for text in (DIFFERENT[program].get(line, line), OURS.get(program, {}).get(line))
              if text]
    said = play(program, args)
    failed = 0
    for pair in itertools.zip_longest(wanted, said, fillvalue="nothing"):
        if pair[0] != pair[1]:
            failed += 1
            print(f"FAIL {program}: {pair[1]}, not {pair[0]}")
    return len(wanted), failed


def main():
    args = parse_args()
    if args.take:
        return take(args)
    wanted, failed = map(sum, zip(*(compare(program, args) for program in DIFFERENT)))
    print(f"{wanted - min(failed, wanted)} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
