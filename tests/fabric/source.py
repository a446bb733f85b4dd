#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A source address that is bound fixes the port that packets leave by: two ports of a soft fabric
in one subnet, to which the routes lead by the first.

Prints what fails and then "N passed, N failed, N skipped".
"""
import os
import sys

from hosts import Skip, main, run_on_fabric

LIMIT_S = 60
# A client that comes before its server listens is refused, as on any network: it tries again.
CONNECT = ("for i in $(seq 50); do rping -c -a {server} -I {source} -C 1 2>&1 && exit; sleep 0.1; "
           "done; exit 1")


def connect_by_second_port(build, link, server, source, bits):
    if os.geteuid():
        raise Skip("only root may give an interface an address\n")
    add = f"ip addr add {source}/{bits} dev fab1" + (" nodad" if ":" in source else "")
    done = run_on_fabric(build, LIMIT_S, "--link", link, "--ports", "2",
                         f"b&:exec rping -s -P -a {server}",
                         f"a:{add}; export PURECM_LOG=debug; "
                         + CONNECT.format(server=server, source=source))
    assert done.returncode == 0, done.stdout[-800:] + done.stderr
    assert "fab0/2 > " in done.stdout and "fab0/1 > " not in done.stdout, done.stdout


def ipv4_source_on_roce_leaves_by_its_own_port(build):
    connect_by_second_port(build, "roce", "10.77.0.2", "10.77.0.101", 24)


def ipv6_source_on_roce_leaves_by_its_own_port(build):
    connect_by_second_port(build, "roce", "fd77::2", "fd77::101", 64)


def ipv4_source_on_infiniband_leaves_by_its_own_port(build):
    connect_by_second_port(build, "ib", "10.77.0.2", "10.77.0.101", 24)


def ipv6_source_on_infiniband_leaves_by_its_own_port(build):
    connect_by_second_port(build, "ib", "fd77::2", "fd77::101", 64)


TESTS = (
    ipv4_source_on_roce_leaves_by_its_own_port,
    ipv6_source_on_roce_leaves_by_its_own_port,
    ipv4_source_on_infiniband_leaves_by_its_own_port,
    ipv6_source_on_infiniband_leaves_by_its_own_port,
)

if __name__ == "__main__":
    sys.exit(main(__doc__, TESTS))
