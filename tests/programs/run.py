#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Plays the rows of table.py and sockets.py on a soft fabric, as an ordinary user.

Prints a line a row, with its figure, and then "N passed, N failed, N skipped". A row whose program
is not installed is skipped, and named, but with --long root installs what knows only TCP; of a row
that the release cannot play, the reason is printed.
"""
import argparse
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys
import tempfile
import time

import debian13
import source
import table

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77
ATTEMPTS = 3  # of a row that may lose a race with itself
SHOWN = 2000  # characters of a failure's output, of its beginning and of its end
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
# What the device has sent and received, in words of four bytes, when it has been counted.
PORT = "/sys/class/infiniband/fab0/ports/1/counters/port_"
COUNT = (f"for i in $(seq 12); do n=$((4 * ($(cat {PORT}xmit_data) + $(cat {PORT}rcv_data)))); "
         "[ $n -ge {least} ] && break; sleep 0.1; done; echo by RDMA: $n; [ $n -ge {least} ]")
PRELOAD = ("LD_PRELOAD=$(find $(echo $LD_LIBRARY_PATH | tr : ' ') "
           "-path '*/rsocket/librspreload.so' | head -1)")
# A client that comes before its server listens is refused, as on any network: it tries again.
AGAIN = "for i in $(seq 100); do ({}) && exit; sleep 0.2; done; exit 1"


def missing_packages(row):
    """Those of a row that are not installed."""
    done = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}\n",
                           *row.package.split()], capture_output=True, text=True, check=False)
    there = re.findall(r"^installed (\S+)$", done.stdout, re.M)
    return [package for package in row.package.split() if package not in there]


def play(row, build, folder, built):
    """built: the folder of its source. Return: (status of the run, its output)."""
    env = dict(os.environ, TMPDIR=folder, HOME=folder)
    server, client = (text.replace("{fabric}", str(table.FABRIC)).replace("{source}", str(built))
                      for text in (row.server, row.client))
    if row.by_rdma:
        server = f"export {PRELOAD}; {server}"
        client = f"(export {PRELOAD}; {client}) && {{ {COUNT.format(least=row.by_rdma)}; }}"
    commands = [f"a&:{server}"] if server else []
    host = "b" if server else "a"
    commands.append(f"{host}:" + (AGAIN.format(client) if row.patient else client))
    user = NOBODY if os.geteuid() == 0 and not row.as_root else []
    done = subprocess.run([*user, str(table.FABRIC), "run", "--build", str(build), "--raw",
                           "--gap", "0.5", "--timeout", str(60 * row.minutes), *row.options,
                           *commands],
                          cwd=ROOT,  # which --own-tmp leaves visible
                          env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)
    return done.returncode, done.stdout


def judge(row, status, output):
    """What is wrong with how a row went, or "" if nothing is."""
    if status:
        return f"status {status}"
    for regex, count in row.said:
        n = len(re.findall(regex, output, re.M))
        if n < count:
            return f"{regex!r} {n} times, not {count}"
    # Of each time that the client was started; the last has succeeded.
    moved = re.findall(r"^by RDMA: (\d+)$", output, re.M)
    if row.by_rdma and int((moved or ["0"])[-1]) < row.by_rdma:
        return f"{moved[-1:]} bytes by RDMA, not {row.by_rdma}"
    return ""


def figure_of(row, output):
    found = re.search(row.figure, output, re.M) if row.figure else None
    return " ".join(f"{found[1]} {row.unit}".split()) if found else ""


def run_row(row, build, folder):
    """Return: verdict, and what to say of it."""
    if row.absent:
        return "none", row.absent
    missing = missing_packages(row)
    if missing:
        return "skip", f"not installed: {' '.join(missing)}"
    try:
        built, failure = source.ready(row, build) if row.source else (None, "")
    except source.BuildFailed as error:
        return "FAIL", str(error)
    if failure:
        return "skip", failure
    for _ in range(ATTEMPTS):
        began = time.monotonic()
        status, output = play(row, build, folder, built)
        if status == SKIPPED:
            return "skip", output.strip()
        wrong = judge(row, status, output)
        if not (wrong and row.raced and re.search(row.raced, output)):
            break
    if wrong:
        middle = "\n[...]\n" if len(output) > 2 * SHOWN else ""
        return "FAIL", f"{wrong}\n{output[:SHOWN]}{middle}{output[SHOWN:][-SHOWN:]}"
    return "ok", ", ".join(filter(None, [figure_of(row, output),
                                         f"{time.monotonic() - began:.1f} s in all"]))


def is_long(arguments):
    return arguments.long or os.environ.get("PURECM_TEST_LONG") == "1"


def chosen(arguments):
    rows = table.rows_of(arguments.release)
    if arguments.only:
        return [row for row in rows if re.search(arguments.only, row.name)]
    return [row for row in rows if is_long(arguments) or row.plain]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--long", action="store_true", help="all rows, not those of a plain run")
    parser.add_argument("--only", metavar="REGEX", help="rows of that name")
    parser.add_argument("--script", action="store_true", help="print how to play the rows by hand")
    parser.add_argument("--release", choices=("own", "trixie"), default="own", help="of Debian: "
                        "this machine's, or 13 in a root that is made and kept")
    arguments = parser.parse_args()
    if arguments.script:
        print("\n\n".join(map(source.script_of, chosen(arguments))))
        return 0
    if arguments.release == "trixie" and debian13.WHERE not in os.environ:
        debian13.enter(sys.argv[1:])
    return run(arguments)


def install_missing(rows):
    """Those of Debian's packages that programs need which know only TCP."""
    missing = sorted({name for row in rows if row.by_rdma for name in missing_packages(row)})
    if missing and os.geteuid() == 0:
        subprocess.run(["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing],
                       env=dict(os.environ, DEBIAN_FRONTEND="noninteractive"),
                       stdout=subprocess.DEVNULL, check=False)


def run(arguments):
    folder = tempfile.mkdtemp(prefix="programs-")
    os.chmod(folder, 0o777)
    count = {"ok": 0, "FAIL": 0, "skip": 0, "none": 0}
    try:
        rows = chosen(arguments)
        if is_long(arguments):
            install_missing(rows)
        for row in rows:
            verdict, text = run_row(row, arguments.build.resolve(), folder)
            count[verdict] += 1
            print(f"{verdict:4} {row.name}: {text}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{count['ok']} passed, {count['FAIL']} failed, {count['skip']} skipped")
    if count["FAIL"]:
        return 1
    return 0 if count["ok"] else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
