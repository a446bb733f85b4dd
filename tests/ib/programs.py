#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs on InfiniBand ports, by AF_IB and by IP addresses: Debian's and some of ours, on a soft
fabric.

Each case is run by an ordinary user, with purecm on both hosts; what it prints must match. Prints a
line per case, and exits with 77 where there is no soft fabric.
"""
import argparse
import concurrent.futures
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys

ROOT = Path(__file__).resolve().parents[2]
FABRIC = ROOT / "tools" / "fabric" / "fabric"
A, B, NOBODY = "fe80::50:4300:0:101", "fe80::50:4300:0:201", "fe80::50:4300:0:901"
A2, B2 = "fe80::50:4300:0:102", "fe80::50:4300:0:202"  # second ports
FAR_A, FAR_B = "fec0::1:50:4300:0:101", "fec0::2:50:4300:0:201"  # of two subnets
LINK_LOCAL = "fe80::50:43ff:fe00:1%fab0"  # of a, by IP over InfiniBand
GROUP = "ff15:a01b:ffff::7"
LIMIT_S = 600
AT_ONCE = 4  # most of the time goes by in waiting
ORDINARY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
# Programs of this folder, END in a command ...
OURS = ("datagram", "end", "group", "request", "service")

# Waits until a has said that.
SAID = "until grep -sq {} $PURECM_FABRIC/../a/said; do sleep 0.1; done"

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
    ("a group is joined, and a datagram reaches it", ("--gap", "0"),
     f"GROUP {A} {GROUP} receive | tee $PURECM_FABRIC/said",
     f"{SAID.format('joined')}; GROUP {B} {GROUP} send",
     (r"a\| joined: LID 0xc\w\w\w, queue key 0x1234567", r"b\| joined: LID 0xc\w\w\w",
      r"a\| got: to whom it may concern")),
    ("rping by IPv4", (), "rping -s -a 10.77.0.1 -C 3", "rping -c -v -a 10.77.0.1 -C 3",
     (r"b\| ping data: rdma-ping-2: CDEF",)),
    ("rping by IPv6", (), "rping -s -a fd77::1 -C 3", "rping -c -v -a fd77::1 -C 3",
     (r"b\| ping data: rdma-ping-2: CDEF",)),
    ("rping by link-local IPv6", (), f"rping -s -a {LINK_LOCAL} -C 3",
     f"rping -c -v -a {LINK_LOCAL} -C 3", (r"b\| ping data: rdma-ping-2: CDEF",)),
    ("twenty connections by IPv4, ports with four LIDs", ("--lmc", "2"),
     "ucmatose -c 20", "ucmatose -c 20 -s 10.77.0.1",
     (r"a\| return status 0", r"b\| return status 0")),
    ("udaddy by IPv4", (), "udaddy", "udaddy -s 10.77.0.1",
     (r"a\| return status 0", r"b\| return status 0")),
    ("datagrams in IP over InfiniBand's port space, with its queue key", (),
     "udaddy -P ipoib -b 10.77.0.1 -c 3", "udaddy -P ipoib -s 10.77.0.1 -c 3",
     (r"a\| return status 0", r"b\| return status 0")),
    ("queue keys in IP over InfiniBand's port space, of a listener on all addresses", (),
     "DATAGRAM 0.0.0.0", "DATAGRAM 10.77.0.2 10.77.0.1",
     (r"a\| queue key 0x0b1b", r"b\| queue key 0x0b1b", r"b\| established, queue key 0x0b1b")),
    ("rdma_client", (), "rdma_server", "rdma_client -s 10.77.0.1", (r"b\| rdma_client: end 0",)),
    ("cmtime", (), "& exec cmtime -b 10.77.0.1", "cmtime -s 10.77.0.1 -c 50",
     (r"b\| disconnect",)),
    ("a group of UDP", (), "mckey -m 239.1.1.1 -b 10.77.0.1",
     "mckey -m 239.1.1.1 -s -b 10.77.0.2",
     (r"joined dgid: ff12:4001:ffff::f01:101 mlid 0xc", r"a\| return status 0")),
    ("a group of IP over InfiniBand, with its queue key", (),
     "mckey -p 2 -m 239.1.1.1 -b 10.77.0.1",
     "mckey -p 2 -m 239.1.1.1 -s -b 10.77.0.2",
     (r"joined dgid: ff12:401b:ffff::f01:101 mlid 0xc", r"a\| return status 0")),
    ("a path that is given, with path bits, SL and MTU; the alternate one is not said",
     ("--lmc", "1"), f"END {A}", f"END -r 1 {B} {A}",
     (r"b\| queue pair: dlid 0x3 bits 1 sl 3 mtu 1024 pkey 0xffff grh 0 .* dlid 0x0",
      r"a\| queue pair: dlid 0x5 bits 1 sl 3 mtu 1024 pkey 0xffff grh 0 .* dlid 0x0",
      r"a\| heard: thank you")),
    ("a given path of one hop: a global route header on queue pairs, and LIDs in the request", (),
     f"END {A}", f"END -r 0 -H 1 {B} {A}",
     (r"b\| queue pair: dlid 0x1 .* grh 1 hops 1,", r"a\| queue pair: dlid 0x2 .* grh 1 hops 1,",
      r"a\| heard: thank you")),
    ("an alternate path in a request is taken; LAP is not answered, and changes nothing",
     ("--lmc", "1"), f"& END {A}", f"REQUEST {B} {A} stays",
     (r"a\| queue pair: dlid 0x4 bits 0 .* alternate dlid 0x5 bits 1 timeout 17",
      r"b\| REQ: REP", r"b\| LAP: silence")),
    ("an alternate path to another device is refused", ("--lmc", "1"), f"& END {A}",
     f"REQUEST {B} {A} moves", (r"b\| REQ: REJ, reason 18",)),
    ("a partition", ("--pkeys", "0x8001"), f"END -k 0x8001 {A}", f"END -k 0x8001 {B} {A}",
     (r"a\| queue pair: .* pkey 0x8001", r"b\| queue pair: .* pkey 0x8001",
      r"a\| heard: thank you")),
    ("a partition with a limited member", ("--pkeys", "a:0x8001,b:0x1"), f"END -k 0x8001 {A}",
     f"END -k 0x1 {B} {A}", (r"b\| queue pair: .* pkey 0x1 ", r"a\| heard: thank you")),
    ("there is no path between limited members", ("--pkeys", "0x1"), f"& END -k 0x1 {A}",
     f"END -k 0x1 {B} {A}", (r"b\| rdma_resolve_route: Invalid argument",)),
    ("there is no path to who is in another partition", ("--pkeys", "b:0x8001"), f"& END {A}",
     f"END -k 0x8001 {B} {A}", (r"b\| rdma_resolve_route: Invalid argument",)),
    ("nobody resolves from a partition that the port is not in", (), f"& END {A}",
     f"END -k 0x8001 {B} {A}", (r"b\| rdma_resolve_addr: No such device",)),
    ("IP in a partition", ("--pkeys", "0x8001", "--ip-pkey", "0x8001"),
     "rping -s -C 2; stdbuf -oL mckey -m 239.1.1.1 -b 10.77.0.1 | tee $PURECM_FABRIC/said",
     f"rping -c -v -a 10.77.0.1 -C 2; {SAID.format('joined.dgid')}; "
     "mckey -m 239.1.1.1 -s -b 10.77.0.2",
     (r"b\| ping data: rdma-ping-1",
      r"joined dgid: ff12:4001:8001::f01:101 mlid 0xc", r"a\| return status 0")),
    ("bits of the service id that do not count: the port space of the id", (),
     f"END -P ib -m 0xffff -S 0x1b59 {A}", f"END -P ib -S 0x13f1b59 {B} {A}",
     (r"a\| service 0x13f1b59", r"a\| heard: thank you")),
    ("RDMA_PS_IB asks for a service of RDMA_PS_TCP", (), f"END -m 0xffff -S 0x1b59 {A}",
     f"END -P ib -S 0x1061b59 {B} {A}", (r"a\| service 0x1061b59", r"a\| heard: thank you")),
    ("a service of another port space is another one", (), f"& END -P ib -S 0x13f1b59 {A}",
     f"END -S 0x1061b59 {B} {A}", (r"b\| rdma_connect: Connection refused",)),
    ("any port, where those bits do not count", (), f"& END -m 0xffffffffffff0000 {A}",
     "true", (r"a\| service 0x106[^0]\w\w\w",)),
    ("an administrator who does not answer", ("--faults", "mads:loss=1"), f"& END {A}",
     f"END {B} {A}", (r"b\| rdma_resolve_route: Connection timed out",)),
    ("one who answers now and then, and a connection after that",
     ("--faults", "mads:loss=0.3 seed=3"), f"END {A}", f"END {B} {A}",
     (r"a\| heard: thank you", r"b\| heard: and the same to you")),
    ("second ports", ("--ports", "2"), f"END {A2}", f"END {B2} {A2}",
     (r"a\| queue pair: dlid 0x4 ", r"b\| queue pair: dlid 0x2 ", r"a\| heard: thank you")),
    ("another subnet: a global route header on messages and queue pairs", ("--subnets", "2"),
     f"END {FAR_A}", f"END {FAR_B} {FAR_A}",
     (r"a\| queue pair: dlid 0xbf00 .* grh 1 hops 6[34]",
      r"b\| queue pair: dlid 0xbf00 .* grh 1 hops 64", r"a\| heard: thank you")),
    ("twenty connections to another subnet", ("--subnets", "2", "--lmc", "1"),
     f"ucmatose -f gid -P ib -b {FAR_A} -c 20",
     f"ucmatose -f gid -P ib -b {FAR_B} -s {FAR_A} -c 20",
     (r"a\| return status 0", r"b\| return status 0")),
    ("datagrams to another subnet", ("--subnets", "2"), f"udaddy -f gid -P ib -b {FAR_A}",
     f"udaddy -f gid -P ib -b {FAR_B} -s {FAR_A}",
     (r"a\| return status 0", r"b\| return status 0")),
    ("no port of ours has the prefix of a far address: bind first", ("--subnets", "2"), "true",
     f"ucmatose -f gid -P ib -s {FAR_A}", (r"b\| .*failure getting addr: No such device",)),
    ("IP over two subnets", ("--subnets", "2"), "rping -s -C 2; udaddy",
     "rping -c -v -a 10.77.0.1 -C 2; until udaddy -s 10.77.0.1; do sleep 0.1; done",
     (r"b\| ping data: rdma-ping-1", r"a\| return status 0", r"b\| return status 0")),
    ("a service is found by its name, and connected to", (), f"SERVICE offer news 7010 1 {A} {B}",
     "SERVICE find news", (rf"b\| at {A}, service id 0x13f1b62, P_Key 0xffff\nb\| at {B}",
                           r"b\| 2 found\nb\| connected", r"a\| served")),
    ("a service of many segments is found by its id", ("--faults", "mads:loss=0.01 seed=4"),
     f"SERVICE offer news 7010 700 {A}", "SERVICE find 0x13f1b62; SERVICE list news",
     (r"b\| 1 found\nb\| connected", r"b\| 700 found")),
    ("an id resolves a service by its name", (), f"SERVICE offer news 7010 3 {A}",
     f"SERVICE resolve news {B}", (r"b\| 3 resolved\nb\| connected", r"a\| served")),
    ("more services than a client is told", (), f"& SERVICE offer news 7010 1100 {A}",
     "SERVICE find news || true", (r"b\| service: rdma_getaddrinfo: Argument list too long",)),
    ("who asks a silent administrator can be cancelled", ("--faults", "mads:loss=1 seed=1"), "true",
     "SERVICE cancel news", (r"b\| canceled\nb\| timed out",)),
    ("a group stays in its subnet", ("--subnets", "2", "--gap", "0"),
     f"GROUP {FAR_A} {GROUP} silence 2>&1 | tee $PURECM_FABRIC/said",
     f"{SAID.format('joined')}; GROUP {FAR_B} {GROUP} send",
     (r"b\| joined: LID 0xc001", r"a\| group: nothing came")),
    ("nobody listens in another subnet", ("--subnets", "2"), f"& END -S 0x1061b59 {FAR_A}",
     f"END {FAR_B} {FAR_A}", (r"b\| rdma_connect: Connection refused",)),
    ("perftest -R", ("--faults", "mads:delay=50ms"), "ib_send_bw -R -n 1000",
     "ib_send_bw -R -n 1000 10.77.0.1", (r"b\|  65536 +1000",)),
)

ORDER = f"{FABRIC} {{}} --dir $PURECM_FABRIC/../.. {{}};"
SERVER = f"ucmatose -f gid -P ib -b {A}"
CLIENT = f"ucmatose -f gid -P ib -s {A} | grep status;"

# Kills its own cmportd while a program waits for the administrator.
KILLED = ("CMPORTD & D=$!; until [ -S $PURECM_SOCKET ]; do sleep 0.05; done; "
          "SERVICE find news & ASKER=$!; sleep 0.4; kill -9 $D; "
          "kill -0 $ASKER && echo still asked; wait $ASKER")

# Of what is known about the subnet. A program with a port of its own says no farewell if it is
# killed, and looks at its port without being told.
CHANGES = (
    ("a port that has another LID asks for its paths anew", (), f"& {SERVER}; {SERVER}",
     CLIENT + ORDER.format("lid", "b 77") +
     "until ibv_devinfo -v | grep port_lid.*77; do sleep 0.1; done;" + CLIENT,
     (r"(?s)b\| return status 0\n.*b\|\s+port_lid:\s+77\n.*b\| return status 0",)),
    ("a group has the members of all processes, and they join a new subnet manager's", (),
     "true", f"{ROOT}/tests/ib/membership.sh {FABRIC}",
     (r"b\| one is left\nb\| joined anew\nb\| none is left",)),
    ("a service is found although cmportd is killed before the administrator has answered",
     ("--faults", "mads:delay=300ms"), f"SERVICE offer news 7010 3 {A}", KILLED,
     (r"b\| still asked\n(?s:.*)b\| 3 found\nb\| connected",)),
)

# What the subnet management agents say, by QP0.
MANAGEMENT = (
    ("sminfo", (), "sminfo; sminfo 2", "true",
     (r"a\| sminfo: sm lid 1 sm guid 0x50430000000101, .* SMINFO_MASTER",
      r"a\| .*sminfo: iberror: failed: query")),
    ("ibnetdiscover: a switch and two hosts", (), "ibnetdiscover", "true",
     (r'a\| Switch\s+36 "S-0050430000ff0000"\s+# "soft fabric, subnet 1"',
      r'a\| \[1\]\s+"H-0050430000000100"\[1\]\(50430000000101\)\s+# "a fab0" lid 1 4xQDR',
      r'a\| \[2\]\s+"H-0050430000000200"\[1\]\(50430000000201\)\s+# "b fab0" lid 2 4xQDR')),
    ("ibnetdiscover finds its own subnet alone", ("--subnets", "2"), "true",
     "ibnetdiscover; ibnodes",
     (r'b\| \[2\]\s+"H-0050430000000200"', r"(?s)^(?!.*50430000000100)")),
    ("iblinkinfo, with two ports a host", ("--ports", "2", "--lmc", "1"), "iblinkinfo", "true",
     (r'a\|\s+48640\s+4\[  \] ==\( 4X +10.0 Gbps Active/ +LinkUp\)==> +8 +2\[  \] "b fab0"',
      r"a\|\s+48640\s+5\[  \] ==\( +Down/ Polling\)")),
    ("smpquery by LID", ("--pkeys", "0x8001", "--lmc", "1"),
     "for what in nodedesc nodeinfo portinfo pkeys; do smpquery $what 4; done", "true",
     (r"a\| Node Description:\.+b fab0", r"a\| PortGuid:\.+0x0050430000000201",
      r"a\| Lid:\.+4\n", r"a\| SMLid:\.+2\n", r"a\| LMC:\.+1\n", r"a\|    0: 0xffff 0x8001 ")),
    ("smpquery by a directed route", (),
     "smpquery -D nodeinfo 0,1,2; smpquery -D switchinfo 0,1; smpquery -t 50 -D nodeinfo 0,1,9",
     "true",
     (r"a\| PortGuid:\.+0x0050430000000201", r"a\| LinearFdbTop:\.+49151",
      r"a\| .*madrpc failed; dport \(DR path .* 0,1,9\)")),
    ("ibtracert and ibroute", (), "ibtracert 1 2; ibroute 0xbe00", "true",
     (r"a\| \[2\] -> ca port \{0x0050430000000201\}\[1\] lid 2-2", r"a\| 3 valid lids dumped")),
)

# Who owns the ports, and asks the administrator.
MANNERS = {"cmportd": {}, "the program itself": {"PURECM_PORTD": "inline"}}
# In a plain run the program itself is the owner in every third case.
EVERY = 1 if os.environ.get("PURECM_TEST_LONG") else 3


def on_host(host, command, build):
    """Return a command as the fabric takes it; with "& " it is ended when the others have."""
    forever = "&" if command.startswith("& ") else ""
    for name in OURS:
        command = command.replace(f"{name.upper()} ", f"{build}/tests/ib/{name} ")
    command = command.replace("CMPORTD ", f"{build}/tools/cmportd/cmportd ")
    return f"{host}{forever}:" + command.removeprefix("& ")


def run_case(case, manner, build):
    """Return what is wrong with the output, or None."""
    _, options, on_a, on_b, wanted = case
    user = ORDINARY if os.geteuid() == 0 else []
    command = [*user, str(FABRIC), "run", "--build", build, "--link", "ib",
               "--timeout", str(LIMIT_S // 2), *options,
               on_host("a", on_a, build), on_host("b", on_b, build)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=LIMIT_S, check=False,
                          env=os.environ | {"PURECM_LOG": "warn"} | MANNERS[manner])
    missing = [text for text in wanted if not re.search(text, done.stdout)]
    return f"not printed: {', '.join(missing)}\n{done.stdout}" if missing else None


def missing_parts():
    programs = [name for name in ("ucmatose", "udaddy", "ib_send_bw", "ibnetdiscover")
                if not shutil.which(name)]
    return ([] if FABRIC.exists() else ["tools/fabric"]) + programs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, type=os.path.abspath)
    parser.add_argument("--only", metavar="WORD", help="cases in whose name it is")
    args = parser.parse_args()
    if missing_parts():
        print("skipped: missing: " + ", ".join(missing_parts()))
        sys.exit(77)
    failed = 0
    cases = [*((case, "cmportd") for case in CASES + CHANGES + MANAGEMENT),
             *((case, "the program itself") for case in CASES[::EVERY])]
    cases = [(case, manner) for case, manner in cases if (args.only or "") in case[0]]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        told = pool.map(lambda each: run_case(*each, args.build), cases)
    for (case, manner), wrong in zip(cases, told):
        failed += wrong is not None
        print(("ok   " if wrong is None else "FAIL ") + f"{case[0]} ({manner})" +
              (f"\n{wrong}" if wrong else ""))
    print(f"{len(cases) - failed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
