#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs on InfiniBand ports, by AF_IB and by IP addresses: Debian's and one of ours, on a soft
fabric.

Each case is run with purecm on both hosts; what it prints must match. Prints a line per case, and
exits with 77 where there is no soft fabric.
"""
import argparse
import itertools
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys

ROOT = Path(__file__).resolve().parents[2]
FABRIC = ROOT / "tools" / "fabric" / "fabric"
A, B, NOBODY = "fe80::50:4300:0:101", "fe80::50:4300:0:201", "fe80::50:4300:0:901"
GROUP = "ff15:a01b:ffff::7"
LIMIT_S = 60

# What it shows, fabric options, command on a, command on b, what must be printed.
CASES = (
    ("a connection over LIDs, its path from the administrator", (),
     f"ucmatose -f gid -P ib -b {A}", f"ucmatose -f gid -P ib -s {A}",
     (r"a\| return status 0", r"b\| return status 0")),
    ("fifty connections at once, ports with four LIDs", ("--lmc", "2"),
     f"ucmatose -f gid -P ib -b {A} -c 50", f"ucmatose -f gid -P ib -s {A} -c 50",
     (r"a\| return status 0", r"b\| return status 0")),
    ("a datagram service is looked up", ("--lmc", "1"),
     f"udaddy -f gid -P ib -b {A}", f"udaddy -f gid -P ib -s {A}",
     (r"a\| return status 0", r"b\| return status 0")),
    ("a port that is not there has no path", (),
     "true", f"ucmatose -f gid -P ib -s {NOBODY}",
     (r"RDMA_CM_EVENT_ROUTE_ERROR, error: -22",)),
    ("nobody listens", (),
     f"& ucmatose -f gid -P ib -b {A} -p 7001", f"ucmatose -f gid -P ib -s {A} -p 7002",
     (r"b\| cmatose: event: RDMA_CM_EVENT_REJECTED, error: 8",)),
    ("a group is joined, and a datagram reaches it", (),
     f"GROUP {A} {GROUP} receive", f"GROUP {B} {GROUP} send",
     (r"a\| joined: LID 0xc\w\w\w, queue key 0x1234567", r"b\| joined: LID 0xc\w\w\w",
      r"a\| got: to whom it may concern")),
    ("rping by IPv4", (), "rping -s -a 10.77.0.1 -C 3", "rping -c -v -a 10.77.0.1 -C 3",
     (r"b\| ping data: rdma-ping-2: CDEF",)),
    ("rping by IPv6", (), "rping -s -a fd77::1 -C 3", "rping -c -v -a fd77::1 -C 3",
     (r"b\| ping data: rdma-ping-2: CDEF",)),
    ("twenty connections by IPv4, ports with four LIDs", ("--lmc", "2"),
     "ucmatose -c 20", "ucmatose -c 20 -s 10.77.0.1",
     (r"a\| return status 0", r"b\| return status 0")),
    ("udaddy by IPv4", (), "udaddy", "udaddy -s 10.77.0.1",
     (r"a\| return status 0", r"b\| return status 0")),
    ("rdma_client", (), "rdma_server", "rdma_client -s 10.77.0.1", (r"b\| rdma_client: end 0",)),
    ("cmtime", (), "& exec cmtime -b 10.77.0.1", "cmtime -s 10.77.0.1 -c 50",
     (r"b\| disconnect",)),
    ("a group of UDP", (), "mckey -m 239.1.1.1 -b 10.77.0.1",
     "sleep 0.5; mckey -m 239.1.1.1 -s -b 10.77.0.2",
     (r"joined dgid: ff12:4001:ffff::f01:101 mlid 0xc", r"a\| return status 0")),
    ("a group of IP over InfiniBand, with its queue key", (),
     "mckey -p 2 -m 239.1.1.1 -b 10.77.0.1",
     "sleep 0.5; mckey -p 2 -m 239.1.1.1 -s -b 10.77.0.2",
     (r"joined dgid: ff12:401b:ffff::f01:101 mlid 0xc", r"a\| return status 0")),
    ("perftest -R", ("--faults", "mads:delay=5ms"), "ib_send_bw -R -n 1000",
     "ib_send_bw -R -n 1000 10.77.0.1", (r"b\|  65536 +1000",)),
)

ORDER = f"{FABRIC} {{}} --dir $PURECM_FABRIC/../.. {{}};"
SERVER = f"ucmatose -f gid -P ib -b {A}"
CLIENT = f"ucmatose -f gid -P ib -s {A} | grep status;"

# Of what is known about the subnet. A program with a port of its own says no farewell if it is
# killed, and looks at its port without being told.
CHANGES = (
    ("a port that has another LID asks for its paths anew", (), f"& {SERVER}; {SERVER}",
     CLIENT + ORDER.format("lid", "b 77") + "sleep 0.5; ibv_devinfo -v | grep port_lid;" + CLIENT,
     (r"(?s)b\| return status 0\n.*b\|\s+port_lid:\s+77\n.*b\| return status 0",)),
    ("a group has the members of all processes, and they join a new subnet manager's", (),
     "& sleep 60", f"{ROOT}/tests/ib/membership.sh {FABRIC}",
     (r"b\| one is left\nb\| joined anew\nb\| none is left",)),
)

# Who owns the ports, and asks the administrator.
MANNERS = {"cmportd": {}, "the program itself": {"PURECM_PORTD": "inline"}}


def on_host(host, command, group):
    """Return a command as the fabric takes it; with "& " it is ended when the others have."""
    forever = "&" if command.startswith("& ") else ""
    return f"{host}{forever}:" + command.removeprefix("& ").replace("GROUP ", group + " ")


def run_case(case, manner, build, group):
    """Return what is wrong with the output, or None."""
    _, options, on_a, on_b, wanted = case
    command = [str(FABRIC), "run", "--build", build, "--link", "ib", "--timeout", str(LIMIT_S // 2),
               *options, on_host("a", on_a, group),
               on_host("b", on_b, group)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=LIMIT_S, check=False,
                          env=os.environ | {"PURECM_LOG": "warn"} | MANNERS[manner])
    missing = [text for text in wanted if not re.search(text, done.stdout)]
    return f"not printed: {', '.join(missing)}\n{done.stdout}" if missing else None


def missing_parts():
    programs = [name for name in ("ucmatose", "udaddy", "ib_send_bw") if not shutil.which(name)]
    return ([] if FABRIC.exists() else ["tools/fabric"]) + programs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, type=os.path.abspath)
    parser.add_argument("group", type=os.path.abspath, help="the group program")
    args = parser.parse_args()
    if missing_parts():
        print("skipped: missing: " + ", ".join(missing_parts()))
        sys.exit(77)
    failed = 0
    cases = [*itertools.product(CASES, MANNERS), *((case, "cmportd") for case in CHANGES)]
    for case, manner in cases:
        wrong = run_case(case, manner, args.build, args.group)
        failed += wrong is not None
        print(("ok   " if wrong is None else "FAIL ") + f"{case[0]} ({manner})" +
              (f"\n{wrong}" if wrong else ""))
    print(f"{len(cases) - failed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
