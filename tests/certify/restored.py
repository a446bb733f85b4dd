#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a disruption by purecm certify takes from a host is there again afterwards, also if certify
is killed meanwhile. In network namespaces of our own.

Prints a line a failure, and last "N passed, N failed, N skipped". Exit status: 1 if a test failed,
77 if there can be no such namespace.
"""
import difflib
from pathlib import Path
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/fabric"))
from hosts import Skip, main  # noqa: E402

LIMIT_S = 60
SET_UP = """
ip link set lo up
ip link add d0 type veth peer name d1
ip link set d1 up
ip link set d0 up
ip addr add 10.5.0.1/16 dev d0
ip addr add 10.5.0.2/16 brd + dev d0 label d0:two
ip addr add 10.6.0.1/24 dev d0 valid_lft 7000 preferred_lft 6000 noprefixroute
ip addr add fd05::1/64 dev d0
ip addr add fe80::5/64 dev d0
ip neigh add 10.5.0.9 lladdr 02:00:00:00:00:09 nud permanent dev d0
ip route add default via 10.5.0.9 src 10.5.0.2 metric 7
ip route add 10.9.0.0/16 via 10.5.0.9
ip route add 10.8.0.0/16 dev d0 table 77
ip -6 route add fd09::/64 via fd05::9
"""
DISRUPT = """
import sys
sys.path.insert(0, sys.argv[1])
import host
here = host.Host(is_stock=True, may_disrupt=True)
here.disrupt(*sys.argv[2:])
here.close()
"""
SHOWN = (("-o", "addr"), ("route", "show", "table", "all"), ("-6", "route", "show", "table", "all"),
         ("neigh",))


class Network:
    """A network namespace with a device d0, for as long as the object is used."""

    def __init__(self, build):
        self._build = build
        unshare = ["unshare", "--map-root-user", "--net", "--fork", "--kill-child"]
        if not shutil.which("ip") or subprocess.run([*unshare, "true"], check=False).returncode:
            raise Skip("no network namespace, or no ip, is to be had here\n")
        self._shell = subprocess.Popen([*unshare, "sh", "-e"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        self.run(SET_UP)
        return self

    def __exit__(self, *_):
        self._shell.stdin.close()
        self._shell.stdout.close()
        self._shell.wait()

    def run(self, script):
        """Return what a script prints."""
        self._shell.stdin.write(f"{script}\necho END\n")
        self._shell.stdin.flush()
        lines = []
        while (line := self._shell.stdout.readline()) != "END\n":
            assert line, f"failed: {script}"
            lines.append(line)
        return lines

    def shown(self):
        """What ip shows, but for what is left of lifetimes, once no address is being checked."""
        shown = [""]
        while not shown[0] or "tentative" in shown[0]:
            shown = [re.sub(r"\d+sec", "", "".join(self.run("ip " + " ".join(words))))
                     for words in SHOWN]
        # The kernel adds its own link-local address some time after the link is up.
        addresses = sorted(shown[0].splitlines(), key=lambda line: line * (" inet6 " in line))
        return [addresses, *(sorted(text.splitlines()) for text in shown[1:])]

    def disrupt(self, *words, background=""):
        """Disrupt the network as certify does."""
        quoted = " ".join((f"'{DISRUPT}'", f"{self._build}/tools/certify", *words))
        return self.run(f"{sys.executable} -c {quoted} 2>&1 {background}")


def assert_same(found, before):
    assert found == before, "\n".join(difflib.unified_diff(sum(before, []), sum(found, [])))


def a_link_that_was_down_has_its_addresses_and_routes(build):
    with Network(build) as network:
        before = network.shown()
        assert not network.disrupt("down", "d0", "1")
        assert_same(network.shown(), before)


def an_address_that_was_removed_is_what_it_was(build):
    for promotes in "01":
        with Network(build) as network:
            network.run(f"echo {promotes} > /proc/sys/net/ipv4/conf/d0/promote_secondaries")
            for address in ("10.5.0.1", "10.6.0.1", "fd05::1"):
                before = network.shown()
                assert not network.disrupt("address", "d0", address)
                assert_same(network.shown(), before)


def what_a_killed_certify_has_taken_comes_back(build):
    with Network(build) as network:
        before = network.shown()
        for number in (signal.SIGTERM, signal.SIGKILL):
            network.disrupt("down", "d0", "1", background="& pid=$!")
            deadline = time.monotonic() + LIMIT_S
            while network.shown() == before:
                assert time.monotonic() < deadline, "nothing is taken"
            network.run(f"kill -{number.value} $pid; wait $pid 2>/dev/null || true")
            while network.shown() != before:
                assert time.monotonic() < deadline, network.shown()


TESTS = (
    a_link_that_was_down_has_its_addresses_and_routes,
    an_address_that_was_removed_is_what_it_was,
    what_a_killed_certify_has_taken_comes_back,
)

if __name__ == "__main__":
    sys.exit(main(__doc__, TESTS))
