#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The commands of docs/examples/ci, as the services run them, in a network that has an eth0: what
they install exists, and their tests pass as user 65534 with the program of the build folder.
tests/packaging/trial.py plays all of them.

Prints a line per file and then "N passed, N failed, N skipped".
"""
import os
from pathlib import Path
import re
import subprocess
import sys
import tempfile

from hosts import ROOT, play_files

LIMIT_S = 300
NETWORK = """
ip link set lo up
ip link add eth0 type veth peer name eth1
ip address add 172.17.0.2/16 dev eth0
ip link set eth1 up
ip link set eth0 up
exec unshare -U --map-user=65534 --map-group=65534 bash -e "$1"
"""


def commands_of(path):
    """Return the lines of a file that a shell gets."""
    text = path.read_text(encoding="utf-8")
    blocks = re.findall(r"^ +run: \|\n((?: {10}.*\n)+)", text, re.MULTILINE)
    return [line.strip() for block in blocks for line in block.splitlines()] or \
        re.findall(r"^    - (.*)$", text, re.MULTILINE)


def as_it_can_be_here(command):
    """Return what stands for a command on a machine that is not to be changed."""
    if command.startswith("apt-get install"):
        return command.replace("install -y", "install --simulate")
    return ":" if command.startswith(("apt-get update", "git clone", "purecm/")) else command


def play(path, build):
    """Return why the commands of a file do not work, or None."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "script")
        script.write_text("\n".join(map(as_it_can_be_here, commands_of(path))), encoding="utf-8")
        done = subprocess.run(["unshare", "-Urnm", "sh", "-ec", NETWORK, "sh", script], cwd=folder,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={**os.environ, "PATH": f"{build}/tools:{os.environ['PATH']}"},
                              timeout=LIMIT_S, check=False)
    if done.returncode or "ping data: rdma-ping-2" not in done.stdout:
        return f"status {done.returncode}: {done.stdout[-3000:]}"
    return None


def why_not():
    """Return why nothing can be tested here, or None."""
    if subprocess.run(["unshare", "-Urnm", "true"], check=False).returncode:
        return "no user namespaces here"
    return None


if __name__ == "__main__":
    sys.exit(play_files(__doc__, (ROOT / "docs/examples/ci").glob("*.yml"), why_not, play))
