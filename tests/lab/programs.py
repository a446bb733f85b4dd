#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Debian's own programs between two kernels: our library against the stock one, both ways.

Every program of CASES runs in every pairing of PAIRINGS over IPv4 and IPv6; perftest and multicast
over IPv4 only, as stock has no other groups on RoCE v2. Both ends must end with status 0 and say
what they say on stock, and nothing may be left on either host: no id, no queue pair, no process.
Prints a line per case, with both ends' output if it failed, and then "N passed, N failed, N
skipped". Exit status: 1 if a case failed, 77 if the lab cannot run here.
"""
import argparse
import dataclasses
import os
from pathlib import Path
import re
import shlex
import sys
import time

LAB_DIR = Path(__file__).resolve().parent
sys.path.insert(0, str(LAB_DIR))

from lablib import Lab, LabError, doctor, qemu  # noqa: E402

# Server's library, client's library. Stock with stock is the control: see --control.
PAIRINGS = (("stock", "purecm"), ("purecm", "stock"), ("purecm", "purecm"))
CONTROL = (("stock", "stock"),)
FAMILIES = ("ipv4", "ipv6")
GROUP = "239.77.0.1"
TIMEOUT_S = 60
ATTEMPTS = 6
SETTLE_S = 10

# cmportd and the queue pair that it sends from stay for a moment longer, see expect_portd_leaves().
LEFT_OVER = ("rdma resource show cm_id; rdma resource show qp | grep -v -e 'type GSI' -e cmportd; "
             "busybox pidof {programs}; true")
IDLE_S = 2

HANGS_WHERE = ("for task in /proc/{pid}/task/*; do echo $task $(cat $task/comm $task/syscall); "
               "cat $task/stack; done")


@dataclasses.dataclass(frozen=True)
class Case:
    """A program's two ends. said: (regex, how often it must match) for both ends' output.

    one_host: both ends run on host a, with one library.
    member: the group that the server joins, where it does not listen.
    """

    name: str
    server: str
    client: str
    said: tuple
    families: tuple = FAMILIES
    one_host: bool = False
    member: str = ""
    raced: str = ""  # regex: what the client says when its server was too slow for it


def rping(messages, server="", client=""):
    """server, client: an end's own options, such as -q: it moves its queue pair itself."""
    return Case(" ".join(filter(None, [f"rping -C {messages}", server and f"s{server}",
                                       client and f"c{client}"])),
                f"rping -s -a {{address}} -C {messages} -v {server}",
                f"rping -c -a {{address}} -C {messages} -v {client}", (r"ping data: ", messages))


def ucmatose(options):
    return Case(f"ucmatose {options}", f"ucmatose -b {{address}} {options}",
                f"ucmatose -s {{address}} {options}", (r"^return status 0$", 1))


def udaddy(options):
    return Case(f"udaddy {options}", f"udaddy -b {{address}} {options}",
                f"udaddy -s {{address}} {options}", (r"^return status 0$", 1))


def rdma_client(name, one_host=False):
    return Case(name, "rdma_server -s {address}", "rdma_client -s {address}",
                (r"^rdma_(client|server): end 0$", 1), one_host=one_host)


def perftest(program, options=""):
    """A measurement over connections made by rdma_cm; what it measures is of no interest here.

    The client makes a second connection 0.1 s after the first, by when the server has to listen
    again: on a slow machine stock fails in this, too, every fifth time.
    """
    command = f"{program} -R -n 20 {options}"
    return Case(f"{program} -R", command, f"{command} {{address}}", (r"^ remote address: ", 1),
                families=("ipv4",), raced=r"RDMA_CM_EVENT_REJECTED; error: 8\.")


def mckey(options, sender_options=""):
    """The server receives. Both end by destroying a channel with a thread inside."""
    return Case(f"mckey {options} {sender_options}".rstrip(),
                f"mckey -m {GROUP} -b {{address}} {options}",
                f"mckey -m {GROUP} -b {{address}} -s {options} {sender_options}",
                (r"^return status 0$", 1), families=("ipv4",), member=GROUP)


CASES = (rping(10), rping(3, "-q", "-q"), rping(3, "-q"), rping(3, "", "-q"),
         ucmatose("-c 100"), ucmatose("-c 20 -m"), udaddy("-c 100 -t 8"), udaddy("-C 5 -S 500"),
         rdma_client("rdma_client"), rdma_client("rdma_client itself", one_host=True),
         perftest("ib_send_bw", "-s 64"), perftest("ib_write_lat", "-s 64"),
         perftest("ib_read_lat", "-s 64"), perftest("ib_atomic_lat"),
         mckey("-C 5"), mckey("-C 5", "-o"), mckey("-c 4"))
PROGRAMS = sorted({end.split()[0] for case in CASES for end in (case.server, case.client)})


def main():
    args = parse()
    if not doctor.which(qemu.QEMU):
        print(f"skipped: {qemu.QEMU} is missing; {doctor.install('qemu-system-x86')}")
        return 77
    runs = [run for run in all_runs(args) if re.search(args.only, title(run))]
    if args.list:
        print("\n".join(title(run) for run in runs))
        return 0
    library = args.build.resolve() / "lib/librdmacm.so.1"
    if not args.control and not library.exists():
        print(f"{library} is missing; build it, or say where it is with --build")
        return 1
    failed = run_all(runs * args.repeat, library.parent)
    print(f"{len(runs) * args.repeat - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not runs else 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=LAB_DIR.parent.parent / "build",
                        help="build folder (default: build)")
    parser.add_argument("--only", default="", metavar="REGEX", help="run cases that match")
    parser.add_argument("--repeat", type=int, help="times (1; 5 for `tools/check --long`)",
                        default=5 if os.environ.get("PURECM_TEST_LONG") else 1)
    parser.add_argument("--control", action="store_true", help="stock with stock instead")
    parser.add_argument("--list", action="store_true", help="print the cases' names only")
    return parser.parse_args()


def all_runs(args):
    """Return (pairing, family, case) for the whole matrix."""
    return [(pairing, family, case) for pairing in (CONTROL if args.control else PAIRINGS)
            for family in FAMILIES for case in CASES if family in case.families
            if not case.one_host or pairing[0] == pairing[1]]


def title(run):
    (server, client), family, case = run
    return f"{case.name:22} {family}  {client} to {server}"


def run_all(runs, folder):
    """Run all in one lab and print a line about each. Return: how many failed."""
    if not runs:
        return 0
    server, client = runs[0][0]
    failed = 0
    with Lab({"a": server, "b": client}) as lab:
        for run in runs:
            failed += not run_one(lab, run, folder)
    return failed


def run_one(lab, run, folder):
    """Return whether the case passed, after a line about it."""
    started = time.monotonic()
    for _ in range(ATTEMPTS):
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
    """Return what was wrong, or "", and both ends' processes."""
    ends = []
    try:
        play(lab, run, folder, ends)
        wrong = ""
    except LabError as error:
        wrong = str(error)
    for host, end in zip(hosts(lab, run), ends):
        wrong += finish(host, end)
    return wrong, ends


def raced(case, ends):
    """Return whether a program lost a race with itself, which says nothing about the library."""
    return case.raced and len(ends) == 2 and re.search(case.raced, ends[1].output())


def hosts(lab, run):
    """Return the hosts of a case's server and client."""
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
    """Run both ends of a case. ends: gets the processes. Raises LabError if anything is wrong."""
    (server, client), family, case = run
    address = lab.a.addr4 if family == "ipv4" else lab.a.addr6
    lab.a.mode(server, kill=True)
    lab.b.mode(client, kill=True)
    ends.append(start(lab.a, server, case.server, address, folder))
    if case.member:
        wait_for_member(lab.a, case.member)
        address = lab.b.addr4  # each end binds to its own
    else:
        wait_for_listener(lab.a, server, ends[0])
    ends.append(start(hosts(lab, run)[1], client, case.client, address, folder))
    for end in reversed(ends):
        judge(end.wait(TIMEOUT_S).check(), case)
    for host in (lab.a, lab.b):
        expect_nothing_left(host)


def start(host, library, command, address, folder):
    variables = {"LD_LIBRARY_PATH": folder, "PURECM_LOG": "debug",
                 "PURECM_IDLE_S": str(IDLE_S)} if library == "purecm" else {}
    return host.start(shlex.split(command.format(address=address)), env=variables)


def wait_for_listener(host, library, process):
    if library == "purecm":
        process.wait_for_output("listening on", timeout=TIMEOUT_S)
    else:
        host.wait_for("rdma resource show cm_id | grep -q LISTEN", timeout=TIMEOUT_S)


def wait_for_member(host, group):
    host.wait_for(f"ip maddr show dev {host.interface} | grep -qwF {group}", timeout=TIMEOUT_S)


def judge(result, case):
    """Raise LabError unless the program said what it says on stock."""
    pattern, wanted = case.said
    seen = len(re.findall(pattern, result.stdout, re.MULTILINE))
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
    """Print why a case failed and what both ends printed."""
    print(f"     {wrong}")
    for name, end in zip(("server", "client"), ends):
        print(f"     {name}: {end.command} (status {end.status})")
        for line in end.output().splitlines():
            print(f"     {name}| {line}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
