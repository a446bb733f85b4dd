#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The soft fabric on hosts of the lab, where rxe cannot do what hardware does: connections in a
VRF, pods over ipvlan, and the priorities of a VLAN on the wire.

Prints a line per test and then "N passed, N failed, N skipped". Exit status: 0, 1 if a test fails,
77 without QEMU or PURECM_TEST_LONG.
"""
import argparse
import os
from pathlib import Path
import re
import sys

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lab"))

from lablib import Lab, LabError, doctor, qemu, userland  # noqa: E402
from lablib.release import RELEASES  # noqa: E402

FABRIC = ROOT / "tools/fabric/fabric"
# What is built in the root of another release.
TARGETS = ("lib/librdmacm.so.1.5.0", "tools/cmportd/cmportd", "tools/purecm",
           "tools/fabric/fabric-host", "tools/fabric/lib/libibverbs.so.1",
           "tools/fabric/lib/libibumad.so.3")
LIMIT_S = 400
# The priority that the VLAN's map (below) makes of each type of service.
PRIORITIES = {0: 3, 8: 5, 16: 1, 24: 6}
MAP = "0:3 2:5 4:6 6:1"
DSCP = 0xfc  # the two other bits say that a network is congested

NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
# A host's number is {n}. The slave of the VRF is eth1, and its routes are in a table of their own.
VRF = ("set -e; modprobe vrf; ip link add red type vrf table 10; ip link set red up; "
       "ip link set eth1 master red; ip link set eth1 up; ip addr add 10.81.0.{n}/24 dev eth1; "
       "ip addr add fd00:81::{n}/64 dev eth1 nodad")
# Of the two hosts.
ADDRESSES = (("10.81.0.1", "10.81.0.2"), ("fd00:81::1", "fd00:81::2"))
# A server that serves again and again, and its client from the second address.
IN_A_VRF = (("rping -s -P -a {0}", "rping -c -C 3 -v -a {0} -I {1}"),
            ("while :; do ucmatose -b {0}; done", "ucmatose -s {0} -b {1}"),
            ("while :; do udaddy -b {0}; done", "udaddy -s {0} -b {1}"))
# A client that may come before its server, or between two of its turns.
AGAIN = "n=0; until timeout 60 {0}; do n=$((n + 1)); [ $n -lt 9 ] || exit 1; sleep 1; done"


def serve(addresses):
    """A command that runs all servers at these addresses in the background."""
    return "".join(f"({server.format(address)}) >/dev/null 2>&1 & "
                   for address in addresses for server, _ in IN_A_VRF)


def connections_in_a_vrf(lab, build):
    """Between two hosts, and of a host with itself, by a user without privileges. The source
    selects the VRF: without one there is no route, as with stock (world vrf)."""
    for number, host in enumerate((lab.a, lab.b), start=1):
        host.run(VRF.format(n=number), check=True)
    here, there = zip(*ADDRESSES)
    on_fabric = [*NOBODY, FABRIC, "run", "--build", build, "--raw", "--wire", "roce", "--here",
                 "eth1"]
    server = lab.b.start([*on_fabric, f"a:{serve(there)} wait"])
    clients = [AGAIN.format(client.format(to, source)) for _, client in IN_A_VRF
               for to, source in (*zip(there, here), *zip(here, here))]
    clients += [f"! timeout 60 rping -c -C 3 -a {to}" for to in there]
    script = serve(here) + "; ".join(f"({client}) && echo passed {number} || echo failed {number}"
                                     for number, client in enumerate(clients))
    done = lab.a.run([*on_fabric, f"a:{script}"], timeout=LIMIT_S)
    server.stop()
    passed = [f"passed {number}" for number in range(len(clients))]
    assert re.findall(r"^(?:passed|failed) \d+$", done.stdout, re.M) == passed, done.output[-3000:]


def pods_over(lab, build, link):
    """All tests of pods."""
    done = lab.b.run(["python3", ROOT / "tests/fabric/pods.py", "--build", build],
                     timeout=LIMIT_S, env={"POD_LINK": link})
    assert done.ok and re.search(r"^[1-9]\d* passed, 0 failed", done.stdout, re.M), done.output


def pods_over_ipvlan(lab, build):
    lab.b.run("modprobe -a veth bridge ipvlan", check=True)
    pods_over(lab, build, "ipvlan mode l2")


def pods_over_macvlan(lab, build):
    lab.b.run("modprobe -a veth bridge macvlan", check=True)
    pods_over(lab, build, "macvlan mode bridge")


def frames_have_the_priority_of_the_vlan(lab, build):
    """All that a client sends, connection messages and data: RoCE v2 in frames with a tag."""
    for number, host in enumerate((lab.a, lab.b), start=1):
        host.run("set -e; modprobe 8021q; ip link add link eth0 name eth0.5 type vlan id 5 "
                 f"egress-qos-map {MAP}; ip link set eth0.5 up; "
                 f"ip addr add 10.79.0.{number}/24 dev eth0.5", check=True)
    on_fabric = [FABRIC, "run", "--build", build, "--raw", "--wire", "roce", "--here", "eth0.5"]
    server = lab.a.start([*on_fabric, "a:rping -s -P -a 10.79.0.1"])
    capture = lab.b.start("tcpdump -l -e -nn -v -i eth0 "
                          "'vlan 5 and src 10.79.0.2 and udp dst port 4791'")
    capture.wait_for_output("listening on", LIMIT_S)
    client = "until PURECM_TOS={} rping -c -a 10.79.0.1 -C 2 >/dev/null 2>&1; do sleep 0.2; done"
    lab.b.run([*on_fabric, "a:" + "; ".join(map(client.format, PRIORITIES))], timeout=LIMIT_S,
              check=True)
    capture.wait_for_output(r"tos 0x18", LIMIT_S)
    capture.stop()
    server.stop()
    seen = {(int(tos, 16) & DSCP, int(priority)) for priority, tos in
            re.findall(r"vlan 5, p (\d), ethertype IPv4 .*tos 0x([0-9a-f]+)", capture.output())}
    assert seen == set(PRIORITIES.items()), (seen, capture.output()[-2000:])


TESTS = (connections_in_a_vrf, frames_have_the_priority_of_the_vlan, pods_over_macvlan,
         pods_over_ipvlan)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--only", default="", metavar="REGEX", help="tests that match")
    parser.add_argument("--release", choices=RELEASES, default="own", help="Debian's, of the hosts")
    args = parser.parse_args()
    if not os.environ.get("PURECM_TEST_LONG"):
        print("skipped: three minutes; PURECM_TEST_LONG=1 or tools/check --long runs it")
        return 77
    if not doctor.which(qemu.QEMU):
        print(f"skipped: {qemu.QEMU} is missing; {doctor.install('qemu-system-x86')}")
        return 77
    build = args.build.resolve()
    if args.release != "own":
        build = userland.build_or_exit(RELEASES[args.release], TARGETS)
    tests = [test for test in TESTS if re.search(args.only, test.__name__)]
    failed = 0
    with Lab({"a": "bare", "b": "bare"}, nics=2, release=args.release) as lab:
        for test in tests:
            try:
                test(lab, build)
                print(f"ok   {test.__name__}", flush=True)
            except (AssertionError, LabError) as wrong:
                failed += 1
                print(f"FAIL {test.__name__}: {wrong}", flush=True)
    print(f"{len(tests) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
