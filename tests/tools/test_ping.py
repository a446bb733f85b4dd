#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The command line of purecm ping; what it sends and sees is tested in the lab, tool_lab.py.

Ends with a line "N passed, N failed, N skipped".
"""
import unittest

from running import main, purecm


class CommandLine(unittest.TestCase):
    def complaint(self, *args, status=2):
        done = purecm("ping", *args)
        self.assertEqual(done.returncode, status, args)
        return done.stderr.decode()

    def test_an_address_is_wanted(self):
        self.assertIn("which address", self.complaint())

    def test_one_address_is_enough(self):
        self.assertIn("one address", self.complaint("192.0.2.1", "192.0.2.2"))

    def test_ports_that_are_none(self):
        for target in ("192.0.2.1:0", "192.0.2.1:65536", "192.0.2.1:", "[fe80::1]:x"):
            self.assertIn("port", self.complaint(target))

    def test_brackets_that_do_not_match(self):
        for target in ("[::1", "[::1]7000", "[::1]x:7"):
            self.assertIn("is no address", self.complaint(target))

    def test_an_address_that_is_too_long(self):
        self.assertIn("too long", self.complaint("x" * 300))

    def test_numbers_that_are_none(self):
        for option in ("-c0", "-c-1", "-cx", "-c60001", "-i-1", "-ix", "-W1e9", "-Wnan"):
            self.assertIn("number", self.complaint(option, "192.0.2.1"))

    def test_without_a_way_no_request_is_sent(self):
        self.assertIn("no request can be sent", self.complaint("127.0.0.1", status=1))


if __name__ == "__main__":
    main(__doc__)
