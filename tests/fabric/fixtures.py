#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A fabric that a test framework starts and stops: by commands, in C, in Python and by pytest.

Prints what failed, then "N passed, N failed, N skipped".
"""
import os
from pathlib import Path
import shutil
import subprocess
import sys
import tempfile

import hosts

FIXTURE = hosts.ROOT / "tools/fabric/fixture"
LIMIT_S = 100
PING = "rping -c -v -a 10.77.0.1 -C 1 2>/dev/null | grep -o 'ping data'"

SHELL = f"""
set -e
fabric() {{ purecm fabric "$@"; }}
dir=$(fabric start)
fabric exec --dir $dir 'a&' 'rping -s -C 1 >/dev/null 2>&1'
fabric exec --dir $dir b "{PING}"
fabric exec --dir $dir 'a&' exit 3 || echo status $?
fabric stop --dir $dir
test -e $dir || echo gone
fabric stop --dir $dir 2>&1
"""

PYTHON = f"""
import subprocess
from purecm_fabric import Fabric
with Fabric("--hosts", "server,client") as fabric:
    fabric.serve("server", "rping -s -C 1 >/dev/null 2>&1")
    fabric.run("client", "{PING}")
    try:
        fabric.run("server", "exit 3")
    except subprocess.CalledProcessError as error:
        print("status", error.returncode, flush=True)
"""

PYTEST = f"""
import subprocess, pytest

def test_two_hosts(fabric):
    fabric.serve("a", "rping -s -C 1 >/dev/null 2>&1")
    assert fabric.run("b", "{PING}", stdout=subprocess.PIPE).stdout == b"ping data\\n"

@pytest.mark.fabric("--hosts", "1", "--link", "ib")
def test_infiniband(fabric):
    layer = "cat /sys/class/infiniband/fab0/ports/1/link_layer"
    assert fabric.run("a", layer, stdout=subprocess.PIPE).stdout == b"InfiniBand\\n"
"""


def play(build, *words, cwd=None):
    """Return (status, what it printed) of a command that finds purecm and the fixtures."""
    env = {**os.environ, "PATH": f"{build}/tools:{os.environ['PATH']}", "PYTHONPATH": str(FIXTURE),
           "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(words, env=env, cwd=cwd, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False)
    if "no user and network namespaces" in done.stdout:
        raise hosts.Skip(done.stdout)
    return done.returncode, done.stdout


def a_shell_starts_and_stops_a_fabric(build):
    status, said = play(build, "sh", "-c", SHELL)
    *lines, last = said.splitlines()
    assert (status, lines) == (2, ["ping data", "status 3", "gone"]), said
    assert "no fabric runs there" in last, said


def a_fabric_that_does_not_start_says_why(build):
    status, said = play(build, "purecm", "fabric", "start", "--device", "none")
    assert status == 2 and "there is no such device" in said, said


def a_program_in_c_is_on_a_host_with_all_its_arguments(build):
    words = ["it's", 'a "b" $c \\d', "", "x\ny\n"]
    status, said = play(build, f"{build}/tests/fabric/fixture", *words)
    assert said == "on fab0\n" + "".join(f"[{word}]\n" for word in words) + "ping data\n", said
    assert status == 3, status


def a_block_in_python_has_a_fabric(build):
    status, said = play(build, sys.executable, "-c", PYTHON)
    assert (status, said) == (0, "ping data\nstatus 3\n"), said


def a_test_of_pytest_has_one(build):
    if not shutil.which("pytest"):
        raise hosts.SkipOne("pytest is missing: apt-get install python3-pytest")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_rdma.py").write_text(PYTEST, encoding="utf-8")
        status, said = play(build, "pytest", "-q", "--strict-markers", "-p", "purecm_fabric",
                            "-p", "no:cacheprovider", cwd=folder)
    assert status == 0 and "2 passed" in said, said


if __name__ == "__main__":
    sys.exit(hosts.main(__doc__, [a_shell_starts_and_stops_a_fabric,
                                  a_fabric_that_does_not_start_says_why,
                                  a_program_in_c_is_on_a_host_with_all_its_arguments,
                                  a_block_in_python_has_a_fabric, a_test_of_pytest_has_one]))
