#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What purecm reads and writes, judged by tshark and by two kernels, field by field.

Random messages of all kinds (tests/judge/random_pcap.c) and what stock kernels said in the lab are
read by purecm and by tshark, and what purecm writes of them is read by tshark again. Of MRA and
SIDR, which tshark does not know, the golden MADs of tests/judge tell by their bytes.

Ends with a line "N passed, N failed, N skipped".
"""
import ipaddress
import json
from pathlib import Path
import shutil
import subprocess
import sys
import tempfile
import unittest

import mads
from running import HERE, capture, main, purecm

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "judge"))
import tshark_judge  # noqa: E402

COUNT = 220
KNOWN = ("REQ", "REP", "RTU", "REJ", "DREQ", "DREP")

# Where the golden MADs have what tshark has no name for: message, field, first bit, bits.
GOLDEN_BITS = (
    ("slow_mra", "local_comm_id", 24 * 8, 32), ("slow_mra", "remote_comm_id", 28 * 8, 32),
    ("slow_mra", "message", 32 * 8, 2), ("slow_mra", "service_timeout", 33 * 8, 5),
    ("datagram_sidr_req", "request_id", 24 * 8, 32), ("datagram_sidr_req", "pkey", 28 * 8, 16),
    ("datagram_sidr_req", "service_id", 32 * 8, 64),
    ("datagram_sidr_rep", "request_id", 24 * 8, 32), ("datagram_sidr_rep", "status", 28 * 8, 8),
    ("datagram_sidr_rep", "info_bytes", 29 * 8, 8), ("datagram_sidr_rep", "qpn", 32 * 8, 24),
    ("datagram_sidr_rep", "service_id", 36 * 8, 64), ("datagram_sidr_rep", "qkey", 44 * 8, 32),
    ("datagram_nobody_sidr_rep", "status", 28 * 8, 8),
)


def of_purecm(path):
    """Return the objects of `trace --json`."""
    done = purecm("trace", "--json", "-r", path)
    if done.returncode or done.stderr:
        raise AssertionError(done.stderr.decode())
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def of_tshark(path):
    return tshark_judge.packets_of_tshark("tshark", str(path))


def number(value):
    """Return an integer that JSON has as such or as a string of hexadecimal digits."""
    return value if isinstance(value, int) else int(value, 0)


def raw(text):
    """Return the bytes of a text of either program: an address, or digits with or without colons.

    Zeros at their end are left out, as purecm does."""
    if 0 < text.count(":") < 8:
        return ipaddress.IPv6Address(text).packed.rstrip(b"\0")
    return bytes.fromhex(text.replace(":", "")).rstrip(b"\0")


def same_address(ours, theirs):
    """tshark shows of a GID that bears an IPv4 address this one alone, whatever is before it."""
    if "." in theirs and ":" not in theirs:
        return ipaddress.IPv6Address(ours).packed[12:] == ipaddress.IPv4Address(theirs).packed
    return raw(ours) == raw(theirs)


def same(name, ours, theirs):
    if name.endswith("flow_label"):
        lost = tshark_judge.FLOW_LABEL_BITS_LOST
        return int(theirs, 0) in (ours, ours >> lost)
    if name.endswith(("_gid", "_addr")):
        return same_address(ours, theirs)
    if name.endswith(("ari", "private_data")):
        return raw(ours) == raw(theirs)
    return number(ours) == int(theirs, 0)


def tables_of(message):
    """Yield (part of our object, name, tshark's names) of all fields that tshark knows."""
    parts = (("mad", "mad.", tshark_judge.MAD_FIELDS), ("cma", "cma.", tshark_judge.CMA_FIELDS),
             ("fields", "", tshark_judge.FIELDS.get(message, {})))
    for part, prefix, table in parts:
        for name, known in table.items():
            yield part, name.removeprefix(prefix), (known,) if isinstance(known, str) else known


def disagreements(ours, theirs, judged):
    """Yield what the two read differently in one packet."""
    for part, name, known in tables_of(ours["message"]):
        for field in known:
            if name not in ours.get(part, {}) or field not in theirs or field == "cm.req.ip_cm":
                continue
            judged.add((ours["message"], part, name))
            if not same(name, ours[part][name], theirs[field]):
                yield f"{ours['message']}.{name}: {ours[part][name]} is {theirs[field]} in {field}"


class WithFolder(unittest.TestCase):
    def setUp(self):
        self.kept = tempfile.TemporaryDirectory()
        self.folder = Path(self.kept.name)

    def tearDown(self):
        self.kept.cleanup()

    def random(self, seed):
        """Return the path of a capture of random messages, and what is in them."""
        path = self.folder / "random.pcap"
        done = subprocess.run([HERE["random_pcap"], path, str(seed), str(COUNT)], check=True,
                              capture_output=True, text=True)
        return path, list(tshark_judge.messages_of_generator(done.stdout))


class Read(WithFolder):
    def test_random_messages_are_read_as_they_were_made(self):
        path, made = self.random(11)
        read = of_purecm(path)
        self.assertEqual([m["message"] for m in read], [name for name, _ in made])
        for ours, (name, fields) in zip(read, made):
            for field, value in ours["fields"].items():
                if isinstance(value, str) and not value.startswith("0x"):
                    expected = bytes.fromhex(fields[field]).rstrip(b"\0")
                    self.assertEqual(raw(value), expected, (name, field))
                else:
                    self.assertEqual(number(value), int(fields[field]), (name, field))


@unittest.skipUnless(shutil.which("tshark"), "tshark is missing: apt-get install tshark")
class ByTshark(WithFolder):
    def judge(self, path, judged):
        read, theirs = of_purecm(path), of_tshark(path)
        self.assertEqual(len(read), len(theirs))
        wrong = [text for ours, packet in zip(read, theirs)
                 for text in disagreements(ours, packet, judged)]
        self.assertEqual(wrong, [])

    def test_random_messages(self):
        judged = set()
        self.judge(self.random(12)[0], judged)
        for message in KNOWN:
            never = [(part, name) for part, name, _ in tables_of(message)
                     if (message, part, name) not in judged and part == "fields"]
            self.assertEqual(never, [], message)

    def test_what_the_lab_has_captured(self):
        for name in ("connect", "connect6", "nobody", "refused", "slow", "lossy", "silent"):
            with self.subTest(name):
                self.judge(capture(name), set())

    def test_what_is_written_is_read_alike(self):
        for path in (self.random(13)[0], capture("connect"), capture("connect6")):
            written = self.folder / "written.pcapng"
            self.assertEqual(purecm("trace", "-r", path, "-w", written).returncode, 0)
            self.assertEqual(of_tshark(written), of_tshark(path))
            self.assertEqual(drop_packet(of_purecm(written)), drop_packet(of_purecm(path)))

    def test_what_was_never_in_a_packet_is_wrapped_so_that_it_is_read_alike(self):
        for path in (self.random(14)[0], capture("connect"), capture("connect6")):
            written = self.folder / "wrapped.pcapng"
            subprocess.run([HERE["rewrap"], path, written], check=True)
            theirs, wrapped = of_tshark(path), of_tshark(written)
            for packet in (*theirs, *wrapped):
                # Of what is around the MAD only what a host knows can be the same.
                for name in ("bth", "bth.psn", "bth.a", "invariant.crc", "deth", "bth.p_key",
                             "bth.se", "bth.m"):
                    packet.pop(name, None)
            self.assertEqual(wrapped, theirs)
            self.assertEqual(drop_packet(of_purecm(written)), drop_packet(of_purecm(path)))

    def test_comments_say_the_states(self):
        written = self.folder / "written.pcapng"
        purecm("trace", "-r", capture("connect"), "-w", written, "-m", "RTU")
        shown = subprocess.run(["tshark", "-r", written, "-T", "fields", "-e", "frame.comment"],
                               capture_output=True, text=True, check=True).stdout
        self.assertIn("connection #1, ESTABLISHED | ESTABLISHED", shown)


def drop_packet(objects):
    """Return them without what is not of the message: its number in the file."""
    return [{name: value for name, value in said.items() if name != "packet"}
            for said in objects]


class ByKernels(unittest.TestCase):
    def test_mra_and_sidr_have_the_values_of_the_golden_bytes(self):
        for name, field, first, bits in GOLDEN_BITS:
            made = golden(name)
            expected = int.from_bytes(made, "big") >> (len(made) * 8 - first - bits)
            done = purecm("trace", "--json", "-r", "-", stdin=mads.story((0, ">", made)))
            said = json.loads(done.stdout)
            self.assertEqual(number(said["fields"][field]), expected % (1 << bits),
                             (name, field))


def golden(name):
    """Return a MAD of tests/judge/golden."""
    text = (HERE["golden"] / f"{name}.hex").read_text(encoding="utf-8")
    return bytes.fromhex("".join(line for line in text.splitlines() if line[0] != "#"))


if __name__ == "__main__":
    main(__doc__, random_pcap=str, rewrap=str, golden=Path)
