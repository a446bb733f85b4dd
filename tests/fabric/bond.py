#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""IP over InfiniBand on a bond of both ports of a host, which a soft fabric imitates: fab0 is said
to be a bond, and its link address becomes that of the second port.

Prints what fails and then "N passed, N failed, N skipped".
"""
import os
import sys

from hosts import Skip, main, run_on_fabric

LIMIT_S = 60
# The MAC of an interface has its number and the host's (plan.py). What imitates InfiniBand is
# preloaded into ip, too, which then expects 20 bytes.
IP = "LD_PRELOAD= ip link set"
FAIL_OVER = (f"{IP} fab1 down; {IP} fab1 address 02:50:43:02:00:01; "
             f"{IP} fab0 address 02:50:43:01:00:01")
HEARD = ["client hears RDMA_CM_EVENT_ADDR_RESOLVED, status 0", "client is at port 1",
         "client hears RDMA_CM_EVENT_ADDR_CHANGE, status 0",
         "listener hears RDMA_CM_EVENT_ADDR_CHANGE, status 0",
         "later client hears RDMA_CM_EVENT_ADDR_RESOLVED, status 0", "later client is at port 2"]
CONNECT = ("for i in $(seq 50); do rping -c -a 10.77.0.2 -C 1 2>&1 && exit; sleep 0.1; done; "
           "exit 1")


def bonded(build, *commands):
    if os.geteuid():
        raise Skip("only root may give an interface a link address\n")
    return run_on_fabric(build, LIMIT_S, "--link", "ib", "--ports", "2", *commands,
                         env={**os.environ, "PURECM_FABRIC_IP_BOND": "1"})


def ids_hear_that_a_bond_fails_over(build):
    done = bonded(build, f"a:{build}/tests/ib/failover 10.77.0.1 10.77.0.2 '{FAIL_OVER}'")
    assert sorted(done.stdout.splitlines()) == sorted(HEARD), done.stdout + done.stderr


def connections_after_it_leave_by_the_other_port(build):
    done = bonded(build, "b&:exec rping -s -P -a 10.77.0.2",
                  f"a:{FAIL_OVER}; export PURECM_LOG=debug; {CONNECT}")
    assert done.returncode == 0, done.stdout[-800:] + done.stderr
    assert "fab0/2 > " in done.stdout and "fab0/1 > " not in done.stdout, done.stdout


TESTS = (ids_hear_that_a_bond_fails_over, connections_after_it_leave_by_the_other_port)

if __name__ == "__main__":
    sys.exit(main(__doc__, TESTS))
