#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Addresses that go while connections of theirs are made, and others that get their GID index
(tests/worlds/moves.c; what stock does is compared in the lab, tests/worlds/worlds.py changes).
With $PURECM_TEST_LONG also a hundred connections while addresses come and go all the time.

Prints what fails and then "N passed, N failed, N skipped".
"""
import os
import sys

from hosts import main, run_on_fabric

LIMIT_S = 60
LONG_LIMIT_S = 280
ESTABLISHED = ["client hears RDMA_CM_EVENT_ESTABLISHED", "client: its address",
               "server hears RDMA_CM_EVENT_ESTABLISHED", "server: its address"]
OUTCOMES = {
    "never": ESTABLISHED,
    "connecting": ["client: not connected", "rdma_connect: Invalid argument",
                   "server: not connected"],
    "returning": ESTABLISHED,
    "accepting": ["client: not connected", "rdma_accept: No data available",
                  "server: not connected"],
    "answered": ["client hears RDMA_CM_EVENT_CONNECT_ERROR", "client: not connected",
                 "server: its address"],
}


def test_of(moment, outcome, limit_s=LIMIT_S):
    def test(build):
        done = run_on_fabric(
            build, limit_s, "--hosts", "1",
            f"a:{build}/tests/worlds/moves fab0 10.77.0.1 10.77.0.201 10.77.0.202 {moment}")
        assert sorted(done.stdout.splitlines()) == outcome, done.stdout + done.stderr
    test.__name__ = f"address_goes_when_{moment}"
    return test


TESTS = [test_of(moment, outcome) for moment, outcome in OUTCOMES.items()]
if os.environ.get("PURECM_TEST_LONG"):
    TESTS.append(test_of("always", ["100 connected, 0 with another address"], LONG_LIMIT_S))

if __name__ == "__main__":
    sys.exit(main(__doc__, TESTS))
