#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Debian's own programs between two kernels: our library against the stock one, both ways.

Every case of program_cases.py runs in every pairing of PAIRINGS over the families it can: perftest,
qperf and multicast over IPv4 only, as stock has no other groups on RoCE v2. All ends must end with
status 0 and say what they say on stock, and nothing may be left on either host: no id, no queue
pair, no process.
Prints a line per case, with both ends' output if it failed, and then "N passed, N failed, N
skipped". Exit status: 1 if a case failed, 77 if the lab cannot run here.
"""
import argparse
import os
from pathlib import Path
import re
import shlex
import shutil
import sys
import time

LAB_DIR = Path(__file__).resolve().parent
sys.path.insert(0, str(LAB_DIR))

from lablib import Lab, LabError, doctor, qemu, userland  # noqa: E402
from lablib.release import RELEASES  # noqa: E402
from program_cases import CASES, FAMILIES, slowed  # noqa: E402

# Server's library, client's library. Stock with stock is the control: see --control.
PAIRINGS = (("stock", "purecm"), ("purecm", "stock"), ("purecm", "purecm"))
CONTROL = (("stock", "stock"),)
TIMEOUT_S = 60
ATTEMPTS = 10
SETTLE_S = 10

# cmportd and the queue pair that it sends from stay for a moment longer, see expect_portd_leaves().
LEFT_OVER = ("rdma resource show cm_id; rdma resource show qp | grep -v -e 'type GSI' -e cmportd; "
             "/run/lab/busybox pidof {programs}; true")
IDLE_S = 2
LONG = bool(os.environ.get("PURECM_TEST_LONG"))

HANGS_WHERE = ("for task in /proc/{pid}/task/*; do echo $task $(cat $task/comm $task/syscall); "
               "cat $task/stack; done")
# What is built in the root of another release.
TARGETS = ("lib/librdmacm.so.1.5.0", "tools/cmportd/cmportd")
PROGRAMS = sorted({Path(end.split()[0]).name for case in CASES
                   for end in (case.server, case.client)} - {"sh"})


def main():
    args = parse()
    if not doctor.which(qemu.QEMU):
        print(f"skipped: {qemu.QEMU} is missing; {doctor.install('qemu-system-x86')}")
        return 77
    if args.release != "own":
        args.build = userland.build_or_exit(RELEASES[args.release], TARGETS)
    every = all_runs(args)
    runs = [run for run in (sample(every) if args.sample else every)
            if re.search(args.only, title(run))]
    if args.list:
        print("\n".join(title(run) for run in runs))
        return 0
    print(f"     {len(runs)} of {len(every)} runs", flush=True)
    library = args.build.resolve() / "lib/librdmacm.so.1"
    if not args.control and not library.exists():
        print(f"{library} is missing; build it, or say where it is with --build")
        return 1
    failed = run_all(args, runs * args.repeat, library.parent)
    print(f"{len(runs) * args.repeat - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not runs else 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=LAB_DIR.parent.parent / "build",
                        help="build folder (default: build)")
    parser.add_argument("--release", choices=RELEASES, default="own",
                        help="Debian's, of both hosts, with its own programs, as far as the lab "
                        "has them there; without rare options")
    parser.add_argument("--only", default="", metavar="REGEX", help="run cases that match")
    parser.add_argument("--repeat", type=int, default=1, help="times (1)")
    parser.add_argument("--long", action="store_true", default=LONG, help="rare options, too")
    parser.add_argument("--sample", action="store_true",
                        help="every eighth case once a family, with stock at one end where stock "
                        "can")
    parser.add_argument("--control", action="store_true", help="stock with stock instead")
    parser.add_argument("--list", action="store_true", help="print the cases' names only")
    args = parser.parse_args()
    args.long = args.long and args.release == "own"
    args.sample = args.sample and not args.long
    return args


def all_runs(args):
    """Return (pairing, family, case) for the whole matrix."""
    pairings = CONTROL if args.control else PAIRINGS
    cases = [case for case in CASES if is_in(RELEASES[args.release], case)]
    return [(pairing, family, case) for pairing in pairings
            for family in FAMILIES for case in cases if family in case.families
            if args.long or not (case.long or case.long_v6 and family == "ipv6")
            if case.stock or "stock" not in pairing
            if case.stock_client or pairing[1] != "stock"
            if not case.in_kernel or pairing[0] == "stock"
            if not case.one_host or pairing[0] == pairing[1]]


def is_in(release, case):
    """Whether the guests of a release have a case's programs."""
    if release.is_own:
        return True
    first = [end.removeprefix("sh -c '").split()[0] for end in (case.server, case.client)]
    path = userland.root_of(release) / "usr/bin"
    return case.stock and all(shutil.which(name, path=path) for name in first)


def sample(runs):
    """Return one run of every eighth case in each family: neighbours have stock at the other end.

    What purecm does with itself, these programs also do on the soft fabric, all of them.
    """
    pairings = {}
    for pairing, family, case in runs:
        pairings.setdefault((family, case.name), []).append(pairing)
    picked = set()
    for index, (key, found) in enumerate(list(pairings.items())[::8]):
        with_stock = [pairing for pairing in found if "stock" in pairing] or found
        picked.add((with_stock[index % len(with_stock)], *key))
    return [run for run in runs if (run[0], run[1], run[2].name) in picked]


def title(run):
    (server, client), family, case = run
    return f"{case.name:32} {family}  {client} to {server}"


def run_all(args, runs, folder):
    """Run all in one lab and print a line about each. Return: how many failed."""
    if not runs:
        return 0
    server, client = runs[0][0]
    failed = 0
    without_stock = set()  # cases that stock fails with itself
    with Lab({"a": server, "b": client}, release=args.release) as lab:
        for run in runs:
            if run[2] in without_stock:
                continue
            if not run_one(lab, run, folder):
                failed += 1
                without_stock |= {run[2]} if run[0] == CONTROL[0] else set()
    return failed


def run_one(lab, run, folder):
    """Return whether the case passed, after a line about it."""
    started = time.monotonic()
    for number in range(ATTEMPTS):
        with slowed(lab.b, number if run[2].listens_late else 0):
            wrong, ends = attempt(lab, run, folder)
        if not wrong or not raced(run[2], ends):
            break
        print(f"     {title(run)}: once more, its server was too slow for it", flush=True)
    took_s = time.monotonic() - started
    print(f"{'FAIL' if wrong else 'ok  '} {title(run)} {took_s:6.1f} s", flush=True)
    if wrong:
        explain(wrong, ends)
    return not wrong


def attempt(lab, run, folder):
    """Return what was wrong, or "", and the processes, the server first."""
    ends = []
    try:
        play(lab, run, folder, ends)
        wrong = ""
    except LabError as error:
        wrong = str(error)
    for index, end in enumerate(ends):
        wrong += finish(hosts(lab, run)[index > 0], end)
    return wrong, ends


def raced(case, ends):
    """Return whether a program lost a race with itself, which says nothing about the library."""
    return case.raced and any(re.search(case.raced, end.output()) for end in ends)


def hosts(lab, run):
    """Return the hosts of a case's server and clients."""
    return (lab.a, lab.a if run[2].one_host else lab.b)


def finish(host, end):
    """Stop a program that still runs. Return: where it hung, if it did, as text to add."""
    if not end.alive:
        return ""
    where = host.run(HANGS_WHERE.format(pid=end.pid)).output.strip()
    try:
        end.stop()
    except LabError as error:
        where += f"\n{error}; the kernel said last:\n{host.dmesg()[-1500:]}"
    return f"\n     host {host.name}: {where}"


def play(lab, run, folder, ends):
    """Run all ends of a case. ends: gets the processes. Raises LabError if anything is wrong."""
    (server, client), family, case = run
    address = lab.a.addr4 if family == "ipv4" else lab.a.addr6
    lab.a.mode(server, kill=True)
    lab.b.mode(client, kill=True)
    ends.append(start(lab.a, server, case.server, address, folder))
    wait_for_server(lab.a, server, case, ends[0])
    host = hosts(lab, run)[1]
    if case.member:
        address = host.addr4  # each end binds to its own
    for _ in range(case.clients):
        before = connected(lab.a) if case.one_by_one else 0
        ends.append(start(host, client, case.client, address, folder))
        if case.one_by_one:
            wait_for_connection(lab.a, ends[-1], before)
    for end in ends[1:]:
        judge(end.wait(TIMEOUT_S).check(), case.said)
    said = case.server_said or case.said
    if case.endless and said[0]:
        ends[0].wait_for_output(rf"(?:(?:{said[0]})[\s\S]*?){{{said[1]}}}", TIMEOUT_S)
    judge(ends[0].stop() if case.endless else ends[0].wait(TIMEOUT_S).check(), said)
    for host in (lab.a, lab.b):
        expect_nothing_left(host)


def start(host, library, command, address, folder):
    variables = {"LD_LIBRARY_PATH": folder, "PURECM_LOG": "debug",
                 "PURECM_IDLE_S": str(IDLE_S)} if library == "purecm" else {}
    return host.start(shlex.split(command.format(address=address, folder=folder)), env=variables)


def wait_for_server(host, library, case, process):
    """Wait until a client can begin. Raises LabError if that does not come."""
    if case.member:
        host.wait_for(f"ip maddr show dev {host.interface} | grep -qwF {case.member}", TIMEOUT_S,
                      process=process)
    elif case.ready:
        host.wait_for(case.ready, TIMEOUT_S, process=process)
    elif library == "purecm":
        process.wait_for_output("listening on", timeout=TIMEOUT_S)
    else:
        host.wait_for("rdma resource show cm_id | grep -q LISTEN", TIMEOUT_S, process=process)


def connected(host):
    """Return how many connected queue pairs are ready to send."""
    return int(host.run("rdma resource show qp | grep -c 'type RC state RTS'; true").stdout)


def wait_for_connection(host, client, before):
    """Wait until a server has a queue pair more than before, or its client has ended."""
    end = time.monotonic() + TIMEOUT_S
    while connected(host) <= before and client.alive and time.monotonic() < end:
        time.sleep(0.2)


def judge(result, said):
    """Raise LabError unless the program said what it says on stock: (regex, how often)."""
    pattern, wanted = said
    seen = len(re.findall(pattern, result.output, re.MULTILINE)) if pattern else wanted
    if seen != wanted:
        raise LabError(f"`{result.command}` printed /{pattern}/ {seen} times, not {wanted}")


def expect_nothing_left(host):
    """Raise LabError if an id, a queue pair or a process survives; the kernel may take a moment."""
    end = time.monotonic() + SETTLE_S
    while True:
        left = host.run(LEFT_OVER.format(programs=" ".join(PROGRAMS))).output.strip()
        if not left:
            return
        if time.monotonic() > end:
            raise LabError(f"still there on host {host.name} after {SETTLE_S} s: {left}")
        time.sleep(0.2)


def explain(wrong, ends):
    """Print why a case failed and what all ends printed."""
    print(f"     {wrong}")
    for index, end in enumerate(ends):
        name = "client" if index else "server"
        print(f"     {name}: {end.command} (status {end.status})")
        for line in end.output().splitlines():
            print(f"     {name}| {line}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
