#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The commands of docs/examples/ci, as the services run them, in a network that has an eth0: what
they install exists, and their tests pass as user 65534 with the program of the build folder; where
they use the container's network, without user namespaces. tests/packaging/trial.py plays all of
them.

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
exec unshare -U --map-user=65534 --map-group=65534 --keep-caps sh -ec "$2" sh bash -e "$1"
"""
ORDINARY = 'exec setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all "$@"'
CONFINED = f"""
echo 0 >/proc/sys/user/max_user_namespaces
if unshare -U true; then exit 9; fi
{ORDINARY}
"""


def commands_of(path):
    """Return the lines of a file that a shell gets."""
    text = path.read_text(encoding="utf-8")
    blocks = re.findall(r"^ +(?:- run: \||sh ''')\n((?: {10,}[^' ].*\n)+)", text, re.MULTILINE)
    return [line.strip() for block in blocks for line in block.splitlines()] or \
        re.findall(r"^    - (.*)$", text, re.MULTILINE)


def as_it_can_be_here(command):
    """Return what stands for a command on a machine that is not to be changed."""
    command = re.sub("^apt-get update && apt-get install -y (.*) purecm-fabric",
                     r"apt-get install --simulate \1", command)
    return ":" if command.startswith("echo ") else command


def confinement(path):
    """Return what an ordinary user gets who runs the file's commands."""
    return CONFINED if "--here" in path.read_text(encoding="utf-8") else ORDINARY


def play(path, build):
    """Return why the commands of a file do not work, or None."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "script")
        script.write_text("\n".join(map(as_it_can_be_here, commands_of(path))), encoding="utf-8")
        done = subprocess.run(["unshare", "-Urnm", "sh", "-ec", NETWORK, "sh", script,
                               confinement(path)], cwd=folder,
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
    sys.exit(play_files(__doc__, (ROOT / "docs/examples/ci").iterdir(), why_not, play))
