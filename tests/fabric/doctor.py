#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""purecm doctor on a soft fabric: nothing is in the way there, whether cmportd has the port or not.
purecm ping, of a listener that does not accept.

Prints "N passed, N failed, N skipped". Exit status: 1 if a test failed, 77 if there can be no
fabric here.
"""
import json
import sys

from hosts import main, run_on_fabric

LIMIT_S = 60
PID = "$PURECM_FABRIC/pid"
SERVER = "a&:exec rping -s -C 1000000 >/dev/null"


def examine(build, *commands, address="", options=()):
    """Return {check: what was found} on host a, and the exit status."""
    done = run_on_fabric(build, LIMIT_S, "--gap", "0.5", *options, *commands,
                         f"a:{build}/tools/purecm doctor --json {address}; echo status $?")
    lines = done.stdout.splitlines()
    found = [json.loads(line) for line in lines if line.startswith("{")]
    return {one["check"]: one for one in found}, int(lines[-1].split()[1])


def nothing_is_in_the_way(build):
    found, status = examine(build)
    assert status == 0, found
    # Process 1 is in another network namespace; in some containers that cannot be seen.
    assert found["namespaces"]["verdict"] in ("skipped", "note"), found["namespaces"]


def nothing_is_in_the_way_where_cmportd_has_the_port(build):
    found, status = examine(build, SERVER)
    assert status == 0, found
    assert found["cmportd"]["text"].startswith("serves"), found["cmportd"]


def the_way_to_a_peer_is_found(build):
    found, status = examine(build, address="10.77.0.2")
    assert status == 0, found
    assert "fab0/1, GID index 1" in found["source GID"]["text"], found["source GID"]


def who_is_not_there_is_in_the_way(build):
    found, status = examine(build, address="10.77.0.99")
    assert status == 1, found
    assert [name for name in found if found[name]["verdict"] == "bad"] == ["neighbour"], found


def a_device_without_a_connection_manager_is_named(build):
    found, status = examine(build, options=("--device", "efa"))
    assert status == 1, found
    assert [name for name in found if found[name]["verdict"] == "bad"] == ["ports"], found
    assert "neither InfiniBand nor RoCE" in found["ports"]["text"], found["ports"]
    assert "libfabric" in found["ports"]["remedy"], found["ports"]


def on_infiniband_nothing_of_roce_is_missed(build):
    """By an IP address, as of an interface of IP over InfiniBand."""
    found, status = examine(build, address="10.77.0.2",
                            options=("--link", "ib", "--ip-pkey", "0xffff"))
    assert status == 0, found
    assert "InfiniBand, of 10.77.0.1" in found["source GID"]["text"], found["source GID"]
    assert found["firewall"]["verdict"] == "skipped", found["firewall"]


def an_interface_without_an_address_is_named(build):
    change = ("a:ip addr add 10.88.0.1/32 dev lo; ip addr flush dev fab0 scope global; "
              "ip route add 10.77.0.0/24 dev fab0 src 10.88.0.1")
    found, status = examine(build, change, address="10.77.0.2")
    assert status == 1, found
    assert "fab0 is the interface of fab0" in found["source GID"]["text"], found["source GID"]
    assert "ip addr add ADDRESS/PREFIX dev fab0" in found["source GID"]["remedy"], found


def a_listener_that_does_not_accept_has_a_connection_manager(build):
    done = run_on_fabric(build, LIMIT_S, f"a&:echo $$ >{PID}; exec rping -s >/dev/null",
                         f"a:kill -STOP $(cat {PID}); {build}/tools/purecm ping -c 1 -W 0.5 "
                         f"10.77.0.1:7174; kill -9 $(cat {PID})")
    assert "There is a connection manager. Whoever listens" in done.stdout, done.stdout


def failures_of_this_host_are_warned_of(build):
    """A port in use, an address of nobody, a silent peer."""
    done = run_on_fabric(
        build, LIMIT_S, f"a&:echo $$ >{PID}; exec rping -s >/dev/null",
        f"a:export PURECM_LOG=warn; rping -s; rping -c -a 10.77.0.99; kill -STOP $(cat {PID}); "
        f"PURECM_CONNECT_TIMEOUT_MS=300 rping -c -a 10.77.0.1; kill -9 $(cat {PID})")
    for words in ("another id is bound to the port", "was not resolved in time", ": no answer"):
        assert words in done.stderr + done.stdout, (words, done.stderr, done.stdout)


TESTS = (nothing_is_in_the_way, nothing_is_in_the_way_where_cmportd_has_the_port,
         the_way_to_a_peer_is_found, who_is_not_there_is_in_the_way,
         a_device_without_a_connection_manager_is_named, on_infiniband_nothing_of_roce_is_missed,
         an_interface_without_an_address_is_named,
         failures_of_this_host_are_warned_of,
         a_listener_that_does_not_accept_has_a_connection_manager)


if __name__ == "__main__":
    sys.exit(main(__doc__, TESTS))
