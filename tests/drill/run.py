#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Carries out the scripts of this folder with purecm drill on the soft fabric, against purecm; do
they cover the transition table? drill_lab.py has them in the lab.

The scripts in wrong/ have to fail in their last line, and say what their second one says.

Prints a line per failure and then "N passed, N failed, N skipped". Exit status: 1 if a script
failed, 77 if there can be no fabric here.
"""
import argparse
import concurrent.futures
import json
import os
from pathlib import Path
import re
import shlex
import sys
import tempfile

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests/fabric"))
from hosts import SKIPPED, Skip, run_on_fabric  # noqa: E402

TABLE = ROOT / "docs/state-machine.md"
LIMIT_S = 120
# Of the peer on fabrics side by side: most of the time goes by in waiting.
ADDRESSES = ("10.77.0.2", "fd77::2", "10.77.0.2", "fd77::2")
AGENT_PORT = "7470"
SECRET = "PURECM_SECRET"  # of the agents, which drills have to know
NO_WAY_BACK = "ip route del default; ip -6 route del default"  # on fabrics; the lab has none
# Where an end of two equal drills was so slow that the other repeated a message.
SENT_AGAIN = r"(\n  \w+ +is sent \d+ times? in A, \d+ in B)+\n\n1 pair of connections:"
STEP = re.compile(r"conn 0x\w+ (\w+) -> \w+, (\w+)$", re.MULTILINE)

SPENT = "nobody answers for 50 s: tests/sim, tests/unit/cm"
AT_ONCE = "the program is told, and from then on the state is MRA_*: no peer is that fast"
# Cells of the table that no script reaches, and why.
NOT_HERE = {
    **{(state, "T_SPENT"): SPENT for state in (
        "REQ_SENT", "MRA_REQ_RCVD", "REP_SENT", "MRA_REP_RCVD", "DREQ_SENT", "SIDR_REQ_SENT")},
    **{("REP_RCVD", event): AT_ONCE for event in (
        "CALL_RTU", "CALL_REJ", "CALL_DESTROY", "RX_REP_DUP", "RX_REJ", "RX_REJ_STALE")},
    **{("REQ_RCVD", event): AT_ONCE for event in (
        "CALL_REP", "CALL_REJ", "RX_REQ_DUP", "RX_REJ", "RX_REJ_STALE")},
    ("REQ_RCVD", "CALL_FORGET"): "without memory for a request: tests/unit/cm/test_cells.c",
    ("MRA_REQ_SENT", "CALL_FORGET"): "of sockets only: tests/fabric/strangers.py",
}


def drill(build, address, scripts, *options):
    """Return the command."""
    return [str(build / "tools/purecm"), "drill",
            f"--to={address}", "--json", *options, *map(str, scripts)]


def results(output):
    """Return what was said of each script: [{script, result, ...}]."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def on_fabric(build, address, scripts):
    """Return (results, what the agent logged) of one fabric."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "agent.log")
        agent = (f"{NO_WAY_BACK}; PURECM_LOG=debug exec {build}/tools/purecm-agent {AGENT_PORT} :: "
                 f"2>{log}")
        done = run_on_fabric(build, LIMIT_S, "--gap", "0.5", f"b&:{agent}",
                             "a:" + " ".join(drill(build, address, scripts)))
        if done.returncode not in (0, 1):
            raise RuntimeError(f"status {done.returncode}: {done.stdout}{done.stderr}")
        return results(done.stdout), log.read_text(encoding="utf-8", errors="replace")


def all_on_fabrics(build, scripts):
    """Return (results, log) of several fabrics."""
    shares = [(address, scripts[i::len(ADDRESSES)]) for i, address in enumerate(ADDRESSES)
              if scripts[i::len(ADDRESSES)]]
    with concurrent.futures.ThreadPoolExecutor(len(ADDRESSES)) as pool:
        parts = list(pool.map(lambda share: on_fabric(build, *share), shares))
    return [each for part, _ in parts for each in part], "".join(log for _, log in parts)


def two_drills_compared(build):
    """Return a line for each thing that purecm diff should say of two written drills, and does
    not: of the same script twice, and of two scripts."""
    with tempfile.TemporaryDirectory() as folder:
        names = ("passive-connect", "passive-connect", "passive-reject")
        files = [str(Path(folder, f"{at}.pcapng")) for at in range(len(names))]
        steps = [" ".join(drill(build, ADDRESSES[0], [HERE / f"{name}.drill"], "--write", file))
                 for name, file in zip(names, files)]
        diffs = [f"{build}/tools/purecm diff --later=100 {files[0]} {other}"
                 for other in files[1:]]
        done = run_on_fabric(build, LIMIT_S, "--gap", "0.5",
                             f"b&:exec {build}/tools/purecm-agent {AGENT_PORT} ::",
                             "a:" + "; ".join(steps + diffs))
    wanted = (fr"1 pair of connections: nothing differs|{SENT_AGAIN}",
              "A: established and disconnected; B: refused by the other end")
    return [f"purecm diff of two drills does not say '{text}': {done.stdout}{done.stderr}"
            for text in wanted if not re.search(text, done.stdout)]


def link_that_fails_without_a_reader(build):
    """Return a line if the program link, to itself, has failed when messages came that its drill
    did not read any more."""
    script = f"""
import select, sys
sys.path.insert(0, "{build}/tools/drill")
from run import Link
link = Link(["{build}/tools/drill/link", "--", "10.77.0.1"])
for _ in range(100):
    link.send(bytes([1, 7, 2, 3]).ljust(256, b"."))
select.select([link._socket], [], [])
print("failed" if link.close() else "fine")"""
    done = run_on_fabric(build, LIMIT_S, f"a:python3 -c {shlex.quote(script)}")
    return [] if done.stdout == "fine\n" else [f"the drill's end: {done.stdout}{done.stderr}"]


def capture_that_an_interrupt_loses(build):
    """Return a line if Ctrl-C during a drill, with its own host, loses messages of --write."""
    with tempfile.TemporaryDirectory() as folder:
        capture, looped = Path(folder, "capture.pcapng"), Path(folder, "looped.drill")
        looped.write_text("> REQ\n< REQ\nquiet 60\n", encoding="utf-8")
        words = drill(build, "10.77.0.1", [looped], "--verbose", "--write", str(capture))
        script = f"""
import os, signal, subprocess
drill = subprocess.Popen({words}, stderr=subprocess.PIPE, text=True, start_new_session=True)
next(line for line in drill.stderr if " < REQ" in line)
os.killpg(drill.pid, signal.SIGINT)
drill.wait()"""
        done = run_on_fabric(build, LIMIT_S, f"a:python3 -c {shlex.quote(script)}; "
                             f"{build}/tools/purecm trace --json --read {capture}")
    return [] if len(results(done.stdout)) == 2 else [f"Ctrl-C: {done.stdout}{done.stderr}"]


def cells():
    """Return the cells of the transition table: {(state, event)}."""
    found, state = set(), None
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            state = line[3:]
        row = re.match(r"- ([A-Z_]+): \w+$", line)
        if row:
            found.add((state, row[1]))
    return found


def check_cover(log):
    """Return a line for each cell that no script reached without a reason, or with a wrong one."""
    seen, table = set(STEP.findall(log)), cells()
    return [f"{state} {event}: no script does that" for state, event
            in sorted(table - seen - set(NOT_HERE))] + \
           [f"{state} {event}: a script does that, and NOT_HERE says that none can"
            for state, event in sorted(seen & set(NOT_HERE))] + \
           [f"{state} {event}: NOT_HERE names no cell of the table"
            for state, event in sorted(set(NOT_HERE) - table)]


def failures(told):
    """Return a line for each script that failed."""
    return [f"against {each['peer']}: {each['script']}:{each['line']}: {each['text']}"
            for each in told if each["result"] != "ok"]


def judge(told):
    """Print what failed. Return: how many."""
    lines = failures(told)
    for line in lines:
        print(f"FAIL {line}")
    return len(lines)


def judge_wrong(told):
    """Print which scripts of wrong/ did not fail as they have to. Return: how many."""
    failed = 0
    for each in told:
        lines = Path(each["script"]).read_text(encoding="utf-8").splitlines()
        wanted = lines[1].split(": ", maxsplit=1)[1]
        if each["result"] != "ok" and each["line"] == len(lines) and wanted in each["text"]:
            continue
        failed += 1
        print(f"FAIL {each['script']}: not {wanted!r} in its last line, but {each}")
    return failed


def play(args, scripts):
    """Return (passed, failed)."""
    wrong = [] if args.only else sorted(HERE.glob("wrong/*.drill"))
    told, log = all_on_fabrics(args.build, scripts + wrong)
    failed = judge([each for each in told if Path(each["script"]) in scripts]) + \
        judge_wrong([each for each in told if Path(each["script"]) in wrong])
    if len(told) != len(scripts) + len(wrong):
        print(f"FAIL: {len(scripts) + len(wrong)} scripts, {len(told)} results")
        failed += 1
    if args.only:
        return len(told) - failed, failed
    uncovered = (check_cover(log) + two_drills_compared(args.build) +
                 link_that_fails_without_a_reader(args.build) +
                 capture_that_an_interrupt_loses(args.build))
    print("\n".join(f"FAIL cover: {line}" for line in uncovered), end="\n" if uncovered else "")
    return len(told) - failed + (not uncovered), failed + bool(uncovered)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="scripts, without .drill")
    args = parser.parse_args()
    os.environ[SECRET] = "of-the-test"
    args.build = args.build.resolve()
    scripts = [path for path in sorted(HERE.glob("*.drill"))
               if not args.only or path.stem in args.only]
    try:
        passed, failed = play(args, scripts)
    except RuntimeError as error:
        print(f"FAIL: {error}")
        passed, failed = 0, 1
    except Skip as skip:
        print(f"{skip}0 passed, 0 failed, {len(scripts)} skipped")
        return SKIPPED
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
