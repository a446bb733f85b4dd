#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""purecm stat without a device: nobody there, a cmportd of another version, wrong options.

What it shows of connections is tested on the soft fabric, tests/fabric/stat.py. Ends with a line
"N passed, N failed, N skipped".
"""
import os
from pathlib import Path
import struct
import subprocess
import sys
import tempfile
import unittest

from running import HERE, cmportd_that, main, purecm

KERNEL = Path("/sys/module/rdma_cm")
REPLY = 14  # type of record, lib/portd/proto/proto.h
TEXT = b"this cmportd speaks version 9, the library version 4; restart the one that is older"
EPROTONOSUPPORT = 93


def stat(*args, path="/nowhere/socket", **more):
    return purecm("stat", *args, env={"PURECM_SOCKET": str(path)}, **more)


def refusal():
    body = struct.pack(">HBxHxxIIQ16s256s", EPROTONOSUPPORT, 0, 0, 0, 0, 0, b"", TEXT)
    return struct.pack(">HH", REPLY, 4 + len(body)) + body


class Stat(unittest.TestCase):
    def test_where_no_cmportd_runs_it_says_so_and_starts_none(self):
        with tempfile.TemporaryDirectory() as folder:
            done = stat(path=Path(folder) / "socket")
            self.assertEqual(os.listdir(folder), [])
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"no cmportd runs", done.stderr)

    def test_for_prometheus_that_is_a_figure_as_well(self):
        done = stat("--prometheus")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertIn(b"purecm_up 0\n", done.stdout)

    def test_a_cmportd_of_another_version_is_named(self):
        with cmportd_that(refusal()) as path:
            done = stat(path=path)
        self.assertEqual(done.returncode, 1)
        self.assertIn(TEXT, done.stderr)

    def test_one_that_speaks_another_language_is_an_error(self):
        with cmportd_that(b"HTTP/1.1 400 Bad Request") as path:
            done = stat(path=path)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"Protocol error", done.stderr)

    @unittest.skipIf(KERNEL.exists(), "this host's kernel has a connection manager")
    def test_where_the_kernel_has_no_manager_it_says_so(self):
        done = stat("--kernel")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"the kernel has no connection manager", done.stderr)
        done = stat("--kernel", "--prometheus")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertIn(b"purecm_kernel_up 0\n", done.stdout)

    @unittest.skipIf(KERNEL.exists(), "this host's kernel has a connection manager")
    def test_top_says_that_nobody_is_there(self):
        done = purecm("top", env={"PURECM_SOCKET": "/nowhere/socket"})
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"no cmportd runs, and the kernel has no connection manager", done.stderr)

    def test_wrong_options_are_wrong(self):
        for words in (["--pid", "0"], ["--pid", "x"], ["--watch=0"], ["--watch=nan"],
                      ["--wait", "-1"], ["--port", "0"], ["--state", "closed"], ["--peer", "x"],
                      ["--sockets", "--peer=10.0.0.1"], ["--sockets", "--port=1"],
                      ["--quotas", "--state=listening"], ["--quotas", "--peer=10.0.0.1"],
                      ["--prometheus", "--json"], ["--prometheus", "--watch"]):
            self.assertEqual(stat(*words).returncode, 2, words)

    # A FIFO that only its reader has open, in a mount that is no longer in any folder.
    FIFO = '''
import os, subprocess, sys
subprocess.run(["mount", "-t", "tmpfs", "none", sys.argv[1]], check=True)
path = sys.argv[1] + "/memfd:purecm-sockets"
os.mkfifo(path)
fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
subprocess.run(["umount", "-l", sys.argv[1]], check=True)
done = subprocess.run([sys.argv[2], "stat", "--sockets", "--pid", str(os.getpid())], check=False,
                      timeout=30)
sys.exit(done.returncode)
'''

    def test_a_fifo_with_the_name_of_a_list_of_sockets_is_left_alone(self):
        inside = ["unshare", "-rm"]
        if subprocess.run([*inside, "true"], check=False).returncode:
            self.skipTest("no namespaces can be made here")
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([*inside, sys.executable, "-c", self.FIFO, folder,
                                   Path(HERE["purecm"]).resolve()], check=False, text=True,
                                  capture_output=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("has no connection of purecm's sockets", done.stderr)

    def test_output_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "wb") as full:
            self.assertEqual(stat("--prometheus", stdout=full).returncode, 1)


if __name__ == "__main__":
    main(__doc__)
