#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""fabric run --pcap: what hosts say is in the file as RoCE v2 packets, CM and data, as tshark and
purecm read them, each with the right ICRC.

Prints "N passed, N failed, N skipped". Exit status: 1 if a test failed, 77 if there can be no
fabric here, or no tshark.
"""
import collections
import json
from pathlib import Path
import shutil
import subprocess
import sys
import tempfile

from hosts import ROOT, SKIPPED, main, run_on_fabric

sys.path.insert(0, str(ROOT / "tests/roce"))

import tshark_judge  # noqa: E402

LIMIT_S = 120
SERVERS = ("a&:rping -s -P -S 60000 >/dev/null", "a&:rping -s -P -a fd77::1 -p 7175 >/dev/null",
           # mckey never listens, so the fabric would wait for it for a minute.
           "a&:mckey -m 239.7.7.7 -b 10.77.0.1 -C 9 >/dev/null & exec udaddy -C 2 >/dev/null")
CLIENT = ("b:rping -c -a 10.77.0.1 -C 2 -S 60000 && rping -c -a fd77::1 -p 7175 -C 1 && "
          "udaddy -s 10.77.0.1 -C 2 >/dev/null && "
          "mckey -m 239.7.7.7 -b 10.77.0.2 -s -C 2 >/dev/null")
RC_WRITE = range(6, 12)
RC_READ = 12
UD_SEND = 100
GROUP = 0xffffff


def captured(build, path, *options):
    """Have programs talk. Return: the capture."""
    done = run_on_fabric(build, LIMIT_S, "--pcap", path, *options, *SERVERS, CLIENT)
    assert done.returncode == 0, done.stdout + done.stderr
    return path


def explained(build, path):
    """Return how many connections purecm finds in it, by outcome."""
    done = subprocess.run([build / "tools/purecm", "explain", "--json", "-r", path], check=True,
                          stdout=subprocess.PIPE, text=True)
    return collections.Counter(json.loads(line)["outcome"] for line in done.stdout.splitlines())


def check(build, path):
    """Raise unless it is what those programs say."""
    assert tshark_judge.check_icrcs(path) > 100
    tshark_judge.check_form(path)
    rows = [row.split("\t") for row in tshark_judge.tshark(
        path, "-T", "fields", "-e", "infiniband.bth.opcode", "-e", "infiniband.bth.destqp")]
    codes = {int(code) for code, _ in rows}
    assert {UD_SEND, RC_READ} <= codes and codes & set(RC_WRITE), codes
    assert GROUP in {int(qpn, 0) for _, qpn in rows}
    assert explained(build, path) == {"closed": 2, "resolved": 1}, explained(build, path)


def all_of_it_is_read_by_tshark_and_purecm(build):
    for options in ([], ["--wire", "roce", "--mtu", "1500"]):
        with tempfile.TemporaryDirectory() as folder:
            check(build, captured(build, Path(folder, "said.pcap"), *options))


def what_is_lost_is_there_too(build):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "said.pcap")
        done = run_on_fabric(build, LIMIT_S, "--pcap", path, "--faults", "mads:loss=1",
                             f"a:{build}/tools/purecm ping -c 1 -W 0.2 10.77.0.2")
        assert done.returncode
        # Whether ping has withdrawn its request depends on when the fabric ends.
        assert explained(build, path) in ({"gave-up": 1}, {"unanswered": 1}), done.stdout


def what_cannot_be_captured_is_refused(build):
    for words, text in ((("--link", "ib", "--pcap", "/tmp/never"), "--pcap is for --link roce"),
                        (("--pcap", "/nowhere/x"), "--pcap /nowhere/x: No such file")):
        done = run_on_fabric(build, LIMIT_S, *words, "a:true")
        assert done.returncode == 2 and text in done.stderr, done.stderr


TESTS = (all_of_it_is_read_by_tshark_and_purecm, what_is_lost_is_there_too,
         what_cannot_be_captured_is_refused)


if __name__ == "__main__":
    if not shutil.which("tshark"):
        print(f"tshark is not installed\n0 passed, 0 failed, {len(TESTS)} skipped")
        sys.exit(SKIPPED)
    sys.exit(main(__doc__, TESTS))
