#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""purecm run: which library a program gets, what it is told, and with which status it ends.

Ends with a line "N passed, N failed, N skipped".
"""
import os
from pathlib import Path
import shutil
import signal
import subprocess
import tempfile
import unittest

from running import HERE, main, purecm

MAPS = ["sh", "-c", "exec cat /proc/self/maps"]


def run(*args, **more):
    return purecm("run", *args, **more)


class Run(unittest.TestCase):
    def test_a_program_gets_purecms_library(self):
        maps = run("--", *MAPS).stdout.decode()
        self.assertIn(str(Path(HERE["library"]).resolve()), maps)

    def test_a_program_of_the_distribution_gets_it_instead_of_its_own(self):
        rping = shutil.which("rping")
        if not rping:
            self.skipTest("rping is missing: apt-get install rdmacm-utils")
        shown = run("sh", "-c", f"LD_TRACE_LOADED_OBJECTS=1 exec {rping}").stdout.decode()
        rdmacm = {line.split(" (")[0].split("=>")[-1].strip() for line in shown.splitlines()
                  if "librdmacm" in line}
        self.assertEqual(rdmacm, {str(Path(HERE["library"]).resolve())})

    def test_what_is_preloaded_already_stays(self):
        maps = run("--", "sh", "-c", "echo $LD_PRELOAD", env={"LD_PRELOAD": "libdl.so.2"})
        self.assertTrue(maps.stdout.endswith(b"librdmacm.so.1.5.0:libdl.so.2\n"), maps)

    def test_options_set_what_the_library_reads(self):
        shown = run("--trace", "--inline", "--socket=/x", "sh", "-c",
                    "echo $PURECM_LOG $PURECM_PORTD $PURECM_SOCKET")
        self.assertEqual(shown.stdout, b"debug inline /x\n")

    def test_how_long_to_wait_for_a_peer_is_set_as_well(self):
        shown = run("--deadline", "1.5", "--retries", "3", "--retry-waits=50,400", "sh", "-c",
                    "echo $PURECM_CONNECT_TIMEOUT_MS $PURECM_RETRIES $PURECM_RETRY_WAITS_MS")
        self.assertEqual(shown.stdout, b"1500 3 50,400\n")

    def test_times_and_numbers_that_make_no_sense_are_a_wrong_command_line(self):
        for words in (["--deadline", "0"], ["--deadline", "soon"], ["--deadline", "nan"],
                      ["--retries", "255"], ["--retries", "-1"], ["--retries", "3x"],
                      ["--retry-waits", "50"], ["--retry-waits", "400,50"],
                      ["--retry-waits", "0,50"], ["--retry-waits", "5,6,7"]):
            self.assertEqual(run(*words, "true").returncode, 2, words)

    def test_options_of_the_program_are_the_programs(self):
        self.assertEqual(run("echo", "--trace", "--help").stdout, b"--trace --help\n")

    def test_the_status_is_the_programs(self):
        self.assertEqual(run("sh", "-c", "exit 42").returncode, 42)
        self.assertEqual(run("sh", "-c", "kill -TERM $$").returncode, -signal.SIGTERM)

    def test_the_program_ignores_sigpipe_if_the_caller_does(self):
        for restored in True, False:  # Python ignores it, and restores it in a child
            status = subprocess.run(
                [HERE["purecm"], "run", "grep", "SigIgn", "/proc/self/status"], check=True,
                capture_output=True, restore_signals=restored).stdout
            ignored = int(status.split()[1], 16) >> signal.SIGPIPE - 1 & 1
            self.assertEqual(ignored, not restored)

    def test_no_program_is_a_wrong_command_line(self):
        self.assertEqual(run().returncode, 2)

    def test_a_program_that_is_not_there_is_127(self):
        done = run("/nowhere/x")
        self.assertEqual(done.returncode, 127)
        self.assertIn(b"/nowhere/x: No such file", done.stderr)

    def test_a_file_that_is_no_program_is_126(self):
        with tempfile.NamedTemporaryFile() as file:
            self.assertEqual(run(file.name).returncode, 126)

    def test_a_static_program_cannot_be_helped(self):
        static = shutil.which("busybox")
        if not static:
            self.skipTest("a static program is missing: apt-get install busybox-static")
        done = run(static, "true")
        self.assertEqual(done.returncode, 126)
        self.assertIn(b"statically linked", done.stderr)

    def test_another_library_is_not_taken_for_purecms(self):
        done = run("--library", shutil.which("true"), "true")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"is not purecm's library", done.stderr)

    def test_a_path_that_cannot_be_preloaded_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "a b.so"
            shutil.copy(HERE["library"], copy)
            done = run("--library", copy, "true")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"blanks", done.stderr)


if __name__ == "__main__":
    os.environ.pop("LD_PRELOAD", None)
    main(__doc__, library=str)
