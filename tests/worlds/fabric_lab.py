#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The soft fabric on hosts of the lab, where rxe cannot do what hardware does: pods over ipvlan,
and the priorities of a VLAN on the wire.

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

from lablib import Lab, doctor, qemu  # noqa: E402

FABRIC = ROOT / "tools/fabric/fabric"
LIMIT_S = 400
# The priority that the VLAN's map (below) makes of each type of service.
PRIORITIES = {0: 3, 8: 5, 16: 1, 24: 6}
MAP = "0:3 2:5 4:6 6:1"
DSCP = 0xfc  # the two other bits say that a network is congested


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


TESTS = (frames_have_the_priority_of_the_vlan, pods_over_macvlan, pods_over_ipvlan)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    build = parser.parse_args().build.resolve()
    if not os.environ.get("PURECM_TEST_LONG"):
        print("skipped: two minutes; PURECM_TEST_LONG=1 or tools/check --long runs it")
        return 77
    if not doctor.which(qemu.QEMU):
        print(f"skipped: {qemu.QEMU} is missing; {doctor.install('qemu-system-x86')}")
        return 77
    failed = 0
    with Lab({"a": "bare", "b": "bare"}) as lab:
        for test in TESTS:
            try:
                test(lab, build)
                print(f"ok   {test.__name__}", flush=True)
            except AssertionError as wrong:
                failed += 1
                print(f"FAIL {test.__name__}: {wrong}", flush=True)
    print(f"{len(TESTS) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
