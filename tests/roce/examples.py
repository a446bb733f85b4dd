#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""docs/examples without Docker and Kubernetes: what each file has two containers run, in two
networks joined by a wire, as user 65534 without capabilities and user namespaces. A firewall at
both ends passes UDP to port 4791 and drops the rest.

Prints a line per test and then "N passed, N failed, N skipped".
"""
from pathlib import Path
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/fabric"))

import ci  # noqa: E402
from hosts import play_files  # noqa: E402

CONFINED = shlex.join(["unshare", "-U", "--map-user=65534", "--map-group=65534", "--keep-caps",
                       "sh", "-ec", ci.CONFINED, "sh"])
EXAMPLES = ROOT / "docs/examples"
LIMIT_S = 120

FIREWALL = """
table inet closed {
    chain arriving { type filter hook input priority 0; policy drop
        udp dport 4791 counter accept
    }
    chain leaving { type filter hook output priority 0; policy drop
        udp dport 4791 counter accept
    }
}
"""

# Root of new namespaces: the second network, the wire, the server's name; then the two commands.
SCRIPT = """
set -e
unshare -n sleep 1000 & other=$!
trap 'kill $other' EXIT
until [ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
ip link add eth0 type veth peer name eth0 netns $other
ip address add 172.18.0.3/16 dev eth0
ip link set eth0 up
nsenter -t $other -n ip address add 172.18.0.2/16 dev eth0
nsenter -t $other -n ip link set eth0 up
echo 172.18.0.2 server >"$1/hosts"
nft -f "$1/firewall"
nsenter -t $other -n nft -f "$1/firewall"
mount --bind "$1/hosts" /etc/hosts
nsenter -t $other -n {confined} {server} >"$1/server" 2>&1 & server=$!
{confined} {client}
wait $server
nft list ruleset >"$1/passed"
"""


def commands_of(path, build):
    """Return what the two containers run, the server's first, for the shell."""
    lists = re.findall(r"^ +(?:command|args): \[(.*?)\]\n", path.read_text(encoding="utf-8"),
                       re.MULTILINE | re.DOTALL)
    for text in lists:
        words = shlex.shlex(text, posix=True, punctuation_chars="")
        words.whitespace, words.whitespace_split = ", \n", True
        fabric, run, *rest = words
        if (fabric, run) != ("fabric", "run"):
            raise SystemExit(f"{path}: {text}")
        yield shlex.join([f"{ROOT}/tools/fabric/fabric", run, "--build", str(build), *rest])


def play(path, build):
    """Return why an example does not work, or None."""
    server, client = commands_of(path, build)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "firewall").write_text(FIREWALL, encoding="utf-8")
        script = SCRIPT.format(server=server, client=client, confined=CONFINED)
        done = subprocess.run(["unshare", "-Urnm", "sh", "-c", script, "sh", folder],
                              capture_output=True, text=True, timeout=LIMIT_S, check=False)
        said = Path(folder, "server").read_text(encoding="utf-8")
        Path(folder, "passed").touch()
        passed = re.findall(r"4791 counter packets (\d+)",
                            Path(folder, "passed").read_text(encoding="utf-8"))
    if done.returncode or done.stdout.count("ping data: rdma-ping-") != 10:
        return f"status {done.returncode}: {done.stdout}{done.stderr}; the server: {said}"
    if len(passed) != 2 or "0" in passed:
        return f"the firewall has passed {passed} packets to port 4791"
    return None


def why_not():
    """Return why nothing can be tested here, or None."""
    if not shutil.which("rping") or subprocess.run(["unshare", "-Urn", "nft", "list", "ruleset"],
                                                   check=False).returncode:
        return "no user namespaces here, or no rping or nft"
    return None


if __name__ == "__main__":
    sys.exit(play_files(__doc__, EXAMPLES.glob("*.yaml"), why_not, play))
