#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs in network namespaces within a host, as containers have them: they share the device of
the host, over macvlan interfaces or what $POD_LINK says, and the host's cmportd.

Prints what fails and then "N passed, N failed, N skipped".
"""
import os
from pathlib import Path
import shutil
import sys
import tempfile

from hosts import FABRIC, Skip, main, run_on_fabric

LIMIT_S = 90
LINK = os.environ.get("POD_LINK", "macvlan mode bridge")
# Two pods, of which each has an address of the subnet; then what a test runs on host a.
SCRIPT = """
set -e
{build}/tools/cmportd/cmportd --idle 0 &
pid_of() {{ eval echo \\$POD$1; }}
in_pod() {{ n=$1; shift; exec nsenter -t $(pid_of $n) -n "$@"; }}
for n in 1 2; do
  unshare -n sleep 1000 & eval POD$n=$!
  until [ "$(readlink /proc/$(pid_of $n)/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do
    sleep 0.05
  done
  ip link add link fab0 name m$n type {link}
  ip link set m$n netns $(pid_of $n)
  (in_pod $n ip link set m$n up)
  (in_pod $n ip addr add 10.77.0.5$n/24 dev m$n)
  {fabric} pod --dir {folder} a 10.77.0.5$n $(in_pod $n ip -o link show m$n | cut -d: -f1)
done
{commands}
"""
# A client that comes before its server listens is refused, as on any network: it tries again.
CLIENT = "for i in $(seq 100); do {} && break; sleep 0.1; done"


def run(build, commands, server=None, client=None):
    if os.geteuid():
        raise Skip("only root may make network namespaces within a host\n")
    folder = tempfile.mkdtemp(prefix="pods-")
    try:
        script = Path(folder) / "script"
        fabric = Path(folder) / "fabric"
        script.write_text(SCRIPT.format(build=build, fabric=FABRIC, folder=fabric, link=LINK,
                                        commands=commands), encoding="ascii")
        words = [*filter(None, (server, f"a:sh {script}", client))]
        done = run_on_fabric(build, LIMIT_S, "--dir", str(fabric), *words)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr
        return done.stdout
    finally:
        shutil.rmtree(folder)


def a_pod_connects(build):
    server = "b&:while :; do rping -s -a 10.77.0.2 -C 1 >/dev/null; done"
    text = run(build, "(in_pod 1 sh -c '" + CLIENT.format("rping -c -v -a 10.77.0.2 -C 1") + "')",
               server)
    assert "ping data: rdma-ping-0" in text, text


def each_listens_on_a_port_of_its_own(build):
    """The host and two pods on the same port, on all addresses: each gets what is for it."""
    commands = ("(exec rping -s -C 1 -v -S 70) & HOST=$!",
                "(in_pod 1 rping -s -C 1 -v -S 80) & ONE=$!",
                "(in_pod 2 rping -s -C 1 -v -S 90) & TWO=$!", "wait $HOST $ONE $TWO")
    clients = "; ".join(CLIENT.format(f"rping -c -a {address} -C 1 -v -S {size} 2>/dev/null")
                        for address, size in (("10.77.0.51", 80), ("10.77.0.52", 90),
                                              ("10.77.0.1", 70)))
    text = run(build, "\n".join(commands), client=f"b:{clients}")
    assert text.count("server ping data: rdma-ping-0") == 3, text


def a_listener_of_the_host_does_not_get_what_is_for_a_pod(build):
    """Somebody has the port, but not there: as stock, refused with REJ 28."""
    text = run(build, "(exec rping -s -C 1 -v) & HOST=$!\nwait $HOST",
               client="b:" + CLIENT.format("rping -c -a 10.77.0.51 -C 1 -v 2>&1 | grep 'error 28'")
               + "; " + CLIENT.format("rping -c -a 10.77.0.1 -C 1 -v 2>/dev/null"))
    assert "RDMA_CM_EVENT_REJECTED, error 28" in text, text


TESTS = (a_pod_connects, each_listens_on_a_port_of_its_own,
         a_listener_of_the_host_does_not_get_what_is_for_a_pod)

if __name__ == "__main__":
    sys.exit(main(__doc__, TESTS))
