#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""purecm report: what is in the file that it packs, and that no address is left in a masked one.

Ends with a line "N passed, N failed, N skipped".
"""
import os
from pathlib import Path
import re
import signal
import stat
import subprocess
import tarfile
import tempfile
import unittest

import mads
from running import HERE, capture, main, purecm, text_of

PARTS = {"doctor.txt", "explain.txt", "messages.pcapng", "stat.json", "stat.txt", "trace.txt",
         "versions.txt"}
IP4 = re.compile(rb"\b\d+\.\d+\.\d+\.\d+\b")


def report(*options, socket="/nowhere/cmportd.sock"):
    """Return {name: content} of what it packs."""
    with tempfile.TemporaryDirectory() as folder:
        packed = Path(folder, "report.tar.gz")
        done = purecm("report", "-o", packed, *options,
                      env={"PURECM_SOCKET": socket, "TMPDIR": folder})
        if done.returncode:
            raise AssertionError(done.stderr.decode())
        if os.listdir(folder) != [packed.name]:
            raise AssertionError(f"left behind: {os.listdir(folder)}")
        with tarfile.open(packed) as archive:
            return {Path(member.name).name: archive.extractfile(member).read()
                    for member in archive if member.isfile()}


def messages(pcapng):
    """Return the lines of a trace without what a mask changes."""
    lines = text_of("trace", "-r", "-", stdin=pcapng).splitlines()
    return [re.sub(r" ari=\w+", "", re.sub(r"[\d.]+:\d+", "WHO", line)) for line in lines]


class Report(unittest.TestCase):
    def test_it_has_all_parts(self):
        self.assertEqual(set(report("-r", capture("refused"))), PARTS)

    def test_without_a_recording_it_says_so_and_goes_on(self):
        parts = report()
        self.assertEqual(set(parts), PARTS)
        self.assertIn(b"messages: 0", parts["versions.txt"])
        self.assertIn(b"devices", parts["doctor.txt"])

    def test_messages_are_those_of_the_capture(self):
        whole = capture("refused").read_bytes()
        self.assertEqual(messages(report("-r", capture("refused"))["messages.pcapng"]),
                         messages(whole))

    def test_two_captures_are_refused(self):
        done = purecm("report", "-r", capture("nobody"), "-r", capture("silent"))
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"one capture at a time", done.stderr)

    def test_a_relative_output_is_where_it_was_called(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([Path(HERE["purecm"]).resolve(), "report", "-o", "here.tar.gz", "-r",
                            capture("nobody").resolve()],
                           check=True, capture_output=True, cwd=folder)
            self.assertEqual(os.listdir(folder), ["here.tar.gz"])

    def test_an_address_is_checked_too(self):
        self.assertIn(b"no-such-host.invalid",
                      report("-r", capture("refused"), "no-such-host.invalid")["doctor.txt"])

    def test_what_cannot_be_written_is_said(self):
        done = purecm("report", "-o", "/nowhere/report.tar.gz", "-r", capture("refused"))
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"no report was written", done.stderr)


    def test_an_interrupted_one_leaves_nothing_behind(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with tempfile.TemporaryDirectory() as folder:
                fifo, output = Path(folder, "fifo"), Path(folder, "report.tar.gz")
                os.mkfifo(fifo)
                with subprocess.Popen([HERE["purecm"], "report", "-o", output, "-r", fifo],
                                      env={**os.environ, "TMPDIR": folder},
                                      stderr=subprocess.PIPE) as process:
                    with open(fifo, "wb"):  # it is read now
                        process.send_signal(number)
                    said = process.stderr.read()
                self.assertEqual(process.returncode, 1)
                self.assertIn(b"no report was written: Interrupted", said)
                self.assertEqual(os.listdir(folder), ["fifo"])

    def test_what_has_its_name_is_replaced_and_not_written_to(self):
        """A guessable name in a folder of all users may be a link that another one has made."""
        for command in (("report", "-r", capture("refused"), "-o"), ("trace", "-r", capture(
                "refused"), "-w"), ("timeline", "-r", capture("refused"), "--output")):
            with tempfile.TemporaryDirectory() as folder:
                victim, output = Path(folder, "victim"), Path(folder, "output")
                victim.write_text("kept", encoding="ascii")
                for make in (output.symlink_to, output.hardlink_to):
                    make(victim)
                    done = purecm(*command, output)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(victim.read_text(encoding="ascii"), "kept", command)
                    self.assertEqual(output.lstat().st_mode, stat.S_IFREG | 0o600, command)
                    output.unlink()


class Masked(unittest.TestCase):
    def test_no_address_is_left(self):
        for name, addresses in (("refused", [b"10.77.0.", bytes([10, 77, 0])]),
                                ("connect6", [b"fd00", b"fd77", bytes([0xfd, 0x77])])):
            parts = report("--mask", "-r", capture(name), "10.77.0.9")
            for part, content in parts.items():
                for address in addresses:
                    self.assertNotIn(address, content, f"{name}: {part}")
                for found in IP4.findall(content):
                    if part.endswith(".txt") and not found.startswith(b"0."):
                        self.assertRegex(found, rb"^198\.18\.", part)

    def test_messages_are_the_same_otherwise(self):
        self.assertEqual(messages(report("--mask", "-r", capture("slow"))["messages.pcapng"]),
                         messages(capture("slow").read_bytes()))

    def test_an_address_is_always_the_same(self):
        parts = report("--mask", "-r", capture("refused"), "10.77.0.2")
        trace = text_of("trace", "-v", "-r", "-", stdin=parts["messages.pcapng"])
        self.assertEqual(set(IP4.findall(trace.encode())), {b"198.18.0.1", b"198.18.0.2"})
        self.assertIn(b"198.18.0.2", parts["doctor.txt"])

    def test_messages_of_infiniband_stay_so(self):
        with tempfile.NamedTemporaryFile() as file:
            frame = mads.lrh(3, 4, mads.grh("fe80::3", "fe80::4", mads.bth(mads.req())), True)
            file.write(mads.pcap([(0, frame), (6.1, frame)], mads.INFINIBAND))
            file.flush()
            parts = report("--mask", "-r", file.name)
        self.assertIn(b"ibstat", parts["explain.txt"])
        self.assertEqual(len(messages(parts["messages.pcapng"])), 2)

    def test_private_data_of_programs_is_left_out(self):
        trace = text_of("trace", "-v", "-r", "-", stdin=report(
            "--mask", "-r", capture("refused"))["messages.pcapng"])
        data = re.findall(r"private_data +(.*)", trace)
        self.assertTrue(data)
        for one in data:
            self.assertTrue(one.endswith("all zero") or len(one) <= 72, one)


if __name__ == "__main__":
    main(__doc__)
