#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The command line of purecm drill, and of purecm-agent; scripts run in tests/drill/run.py.

Ends with a line "N passed, N failed, N skipped".
"""
import contextlib
from pathlib import Path
import socket
import subprocess
import tempfile
import unittest

from running import HERE, main, purecm, text_of

SCRIPTS = Path(__file__).resolve().parents[1] / "drill"


class CommandLine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def script(self, text, name="test.drill"):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def complaint(self, *args, status=2):
        done = purecm("drill", *args)
        self.assertEqual(done.returncode, status, done)
        return done.stderr.decode()

    def test_a_script_is_wanted(self):
        self.assertIn("which script", self.complaint())

    def test_an_address_is_wanted(self):
        self.assertIn("--to=ADDRESS", self.complaint(self.script("> RTU")))

    def test_numbers_that_are_none(self):
        for option in ("--port=0", "--port=65536", "--timeout=-1", "--timeout=x"):
            self.assertIn("is no number", self.complaint("--check", option, "x"))

    def test_an_agent_without_a_host(self):
        self.assertIn("HOST[:PORT]", self.complaint("--check", "--agent=:7", "x"))

    def test_a_script_that_is_not_there(self):
        self.assertIn("No such file", self.complaint("--check", self.folder / "none"))

    def test_a_folder_is_no_script(self):
        self.complaint("--check", self.folder)

    def test_every_wrong_script_is_named_with_its_line(self):
        one = self.script("> RTU\n> RTX", "one")
        two = self.script("quiet x", "two")
        said = self.complaint("--to=10.77.0.2", one, two).splitlines()
        self.assertTrue(said[0].startswith(f"{one}:2: expected a message"), said)
        self.assertTrue(said[1].startswith(f"{two}:1: expected a number"), said)

    def test_our_scripts_can_be_read(self):
        text_of("drill", "--check", *sorted(SCRIPTS.glob("*.drill")))

    def test_fields_are_listed_with_what_they_are_sent_with(self):
        said = text_of("drill", "--fields=REQ")
        for text in ("starting_psn  24 bits", "user_data  56 bytes", "ip.src_port  16 bits",
                     "mad.tid  64 bits", "local_comm_id=$ours"):
            self.assertIn(text, said)
        self.assertIn("vendor_id  24 bits", text_of("drill", "--fields=REP"))

    def test_fields_of_what_is_no_message(self):
        self.assertIn("there is no message XYZ", self.complaint("--fields=XYZ"))

    def test_without_a_way_nothing_is_sent(self):
        self.assertIn("no request can be sent",
                      self.complaint("--to=127.0.0.1", self.script("> RTU"), status=1))


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


class Agent(unittest.TestCase):
    def run_agent(self, *args):
        return subprocess.run([Path(HERE["purecm"]).parent / "purecm-agent", *args],
                              capture_output=True, text=True, check=False, timeout=200)

    def test_it_says_how_it_is_called(self):
        self.assertEqual(self.run_agent().returncode, 2)
        self.assertIn("usage: purecm-agent PORT", self.run_agent("--help").stdout)

    def test_a_port_that_is_none(self):
        done = self.run_agent("no-such-service")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("purecm-agent: ", done.stderr)

    def test_only_its_host_reaches_it_unless_it_is_told_an_address(self):
        for address, reached in ((), False), (("::",), True):
            port = free_port()
            with subprocess.Popen([Path(HERE["purecm"]).parent / "purecm-agent", str(port),
                                   *address], stdout=subprocess.PIPE, text=True) as agent:
                self.addCleanup(agent.kill)
                agent.stdout.readline()
                agent.stdout.readline()
                with socket.socket() as control:  # 127.0.0.2 is this host's, but not 127.0.0.1
                    self.assertEqual(control.connect_ex(("127.0.0.2", port)) == 0, reached)
                agent.kill()

    def said_to(self, port, *lines):
        """What the agent says to these lines, up to the first it does not answer."""
        with socket.create_connection(("127.0.0.1", port), timeout=20) as control:
            control.sendall("".join(line + "\n" for line in lines).encode())
            with contextlib.suppress(ConnectionResetError):
                return control.recv(100)
        return b""

    def test_only_who_knows_the_secret_may_ask(self):
        port = free_port()
        with subprocess.Popen([Path(HERE["purecm"]).parent / "purecm-agent", str(port)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as agent:
            self.addCleanup(agent.kill)
            secret = agent.stdout.readline().split("=")[1].strip()
            agent.stdout.readline()
            for wrong in ("listen", secret[1:] + "x", secret + "x"):
                self.assertEqual(self.said_to(port, wrong, "destroy id=none" + " " * 100), b"")
            self.assertTrue(self.said_to(port, secret).startswith(b"hello")
                            or "no event channel" in agent.stderr.readline())  # no device here
            agent.kill()


if __name__ == "__main__":
    main(__doc__)
