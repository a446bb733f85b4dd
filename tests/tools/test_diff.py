#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""purecm diff: what it says of captures of two stock kernels, and of one that is changed by a bit.

Ends with a line "N passed, N failed, N skipped".
"""
import json
from pathlib import Path
import subprocess
import tempfile
import unittest

import mads
from running import HERE, capture, main, purecm

MAD_AT = 14 + 20 + 8 + 12 + 8  # behind Ethernet, IPv4, UDP, BTH and DETH
HEAD, RECORD = 24, 16  # of a pcap file, and of a packet in it
CM = 24  # header of a MAD


def diff(a, b, *options, status=1, **more):
    """Return what it prints of two captures."""
    done = purecm("diff", *options, a, b, **more)
    if done.returncode != status:
        raise AssertionError(f"status {done.returncode}: {done.stdout} {done.stderr}")
    return done.stdout.decode()


def differences(a, b, *options, **more):
    """Return {(message, what)} of two captures."""
    return {(found.get("message"), found["what"]) for found in
            map(json.loads, diff(a, b, "--json", *options, **more).splitlines())}


class Captures(unittest.TestCase):
    def test_the_same_one_does_not_differ(self):
        for name in ("connect", "connect6", "refused", "slow", "lossy", "datagram"):
            self.assertIn("nothing differs",
                          diff(capture(name), capture(name), "--all", status=0))

    def test_connections_of_one_kind_do_not_differ(self):
        self.assertEqual(differences(capture("connect"), capture("connect6"), "--service=7000"),
                         {("REQ", "ip_version")})

    def test_a_late_answer_is_reported(self):
        text = diff(capture("connect"), capture("lossy"), "--service=7000")
        self.assertRegex(text, r"REP +comes 4\.\d+ s later in B")
        self.assertIn("nothing differs", diff(capture("connect"), capture("lossy"),
                                              "--service=7000", "--later=5", status=0))

    def test_how_it_ended_is_reported(self):
        text = diff(capture("connect"), capture("refused"))
        self.assertIn("A: established and disconnected; B: refused by the other end", text)
        self.assertIn("only in B, with the reason rejected by the consumer", text)
        self.assertIn("only in A: #2", text)

    def test_repetitions_are_counted(self):
        self.assertRegex(diff(capture("connect"), capture("slow"), "--connection=1"),
                         r"REQ +is sent 1 time in A, 2 in B")

    def test_messages_can_be_chosen(self):
        self.assertEqual(differences(capture("connect"), capture("refused"), "--connection=1",
                                     "--message=REJ"), {("REJ", "only"), ("", "outcome")})

    def test_datagrams_are_not_compared_with_connections(self):
        self.assertIn("0 pairs", diff(capture("connect"), capture("datagram")))

    def test_time_does_not_grow_with_the_square_of_the_number_of_services(self):
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / name for name in "ab"]
            for n, file in enumerate(files):
                file.write_bytes(mads.story(*((i, ">", mads.req(
                    comm_id=i + 1, qpn=i + 1, port=65536 * n + i)) for i in range(40000))))
            done = subprocess.run(["prlimit", "--cpu=5", HERE["purecm"], "diff", "--message=REJ",
                                   *files], check=False, capture_output=True)
        self.assertIn(b"40000 pairs", done.stdout)


class Bits(unittest.TestCase):
    def changed(self, byte, mask, name="connect"):
        """Return what differs when a byte of the first message's body is changed."""
        data = bytearray(capture(name).read_bytes())
        data[HEAD + RECORD + MAD_AT + CM + byte] ^= mask
        with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
            file.write(data)
            file.flush()
            return diff(capture(name), file.name, "--json", status=1)

    def test_each_quantity_of_a_request_is_told_by_name(self):
        for byte, mask, what in ((35, 1, "responder_resources"), (39, 1, "initiator_depth"),
                                 (43, 8, "remote_cm_response_timeout"), (50, 16, "path_mtu"),
                                 (48, 1, "pkey"), (51, 16, "max_cm_retries"),
                                 (140 + 36, 1, "private_data")):
            found = [json.loads(line)["what"] for line in self.changed(byte, mask).splitlines()]
            self.assertEqual(found, [what], byte)

    def test_values_are_explained(self):
        self.assertIn("path_mtu is 3 (1024 bytes) in A, 2 (512 bytes) in B",
                      self.changed(50, 16))


class BadInput(unittest.TestCase):
    def test_one_capture_is_not_enough(self):
        self.assertEqual(purecm("diff", capture("connect")).returncode, 2)
        self.assertEqual(purecm("diff", "-", "-").returncode, 2)

    def test_what_is_no_capture_is_said(self):
        done = purecm("diff", capture("connect"), "/dev/null")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"/dev/null", done.stderr)

    def test_a_cut_capture_is_compared_as_far_as_it_goes(self):
        data = capture("connect").read_bytes()
        done = purecm("diff", capture("connect"), "-", stdin=data[:-20])
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"DREP", done.stdout)


if __name__ == "__main__":
    main(__doc__)
