#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Captures that purecm reads: all link types, and packets that are not what they seem.

Ends with a line "N passed, N failed, N skipped".
"""
import json
import random
import unittest

import mads
from running import main, purecm

MADE = mads.req()
V6 = ("fd00::1", "fd00::2")
SEED = 7
MANGLED = 3000

# Name, link type, packet.
PACKETS = (
    ("IPv4", mads.ETHERNET, mads.ethernet(mads.A, mads.B, MADE)),
    ("IPv6", mads.ETHERNET, mads.ethernet(*V6, MADE)),
    ("a VLAN", mads.ETHERNET, mads.ethernet(mads.A, mads.B, MADE, [7])),
    ("two VLANs", mads.ETHERNET, mads.ethernet(mads.A, mads.B, MADE, [7, 8])),
    ("RoCE v1", mads.ETHERNET, mads.roce_v1(mads.A, mads.B, MADE)),
    ("raw IP", mads.RAW_IP, mads.ip(mads.A, mads.B, mads.udp(mads.bth(MADE)))),
    ("Linux cooked", mads.SLL, mads.sll(mads.A, mads.B, MADE)),
    ("Linux cooked 2", mads.SLL2, mads.sll2(*V6, MADE)),
    ("InfiniBand", mads.INFINIBAND, mads.lrh(1, 2, mads.bth(MADE))),
    ("InfiniBand with GRH", mads.INFINIBAND,
     mads.lrh(1, 2, mads.grh(*V6, mads.bth(MADE)), is_global=True)),
    ("ERF of InfiniBand", mads.ERF, mads.erf(mads.lrh(1, 2, mads.bth(MADE)), 21)),
    ("ERF with extensions", mads.ERF, mads.erf(mads.lrh(1, 2, mads.bth(MADE)), 21, 2)),
    ("ERF of Ethernet", mads.ERF, mads.erf(mads.ethernet(mads.A, mads.B, MADE), 2)),
)


def traced(capture):
    """Return the objects of `trace --json`."""
    done = purecm("trace", "--json", "-r", "-", stdin=capture)
    if done.returncode:
        raise AssertionError(done.stderr.decode())
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


class Links(unittest.TestCase):
    def test_a_request_is_found_behind_every_link(self):
        for name, link, packet in PACKETS:
            with self.subTest(name):
                [said] = traced(mads.pcap([(0, packet)], link))
                self.assertEqual(said["message"], "REQ")
                self.assertEqual(said["fields"]["local_comm_id"], 0x100)

    def test_lids_are_who_speaks_where_there_is_no_gid(self):
        [said] = traced(mads.pcap([(0, mads.lrh(1, 2, mads.bth(MADE)))], mads.INFINIBAND))
        self.assertEqual((said["src"], said["dst"]), ("lid 1", "lid 2"))

    def test_gids_go_before_lids(self):
        packet = mads.lrh(1, 2, mads.grh(*V6, mads.bth(MADE)), is_global=True)
        [said] = traced(mads.pcap([(0, packet)], mads.INFINIBAND))
        self.assertEqual((said["src"], said["dst"]), V6)

    def test_a_message_is_for_queue_pair_1_or_has_its_qkey(self):
        for src, dst, qkey, found in ((0x77, 1, 0x80010000, 1), (0x77, 0x88, 0x80010000, 1),
                                      (1, 0x77, 0x1234, 0)):
            frame = mads.pcap([(0, mads.ip(mads.A, mads.B, mads.udp(
                mads.bth(MADE, src, dst, qkey=qkey))))], mads.RAW_IP)
            self.assertEqual(len(traced(frame)), found)

    def test_other_traffic_is_passed_over(self):
        frames = (mads.udp(mads.bth(MADE), port=53), mads.udp(mads.bth(MADE, opcode=0x0a)))
        packets = [(0, mads.ip(mads.A, mads.B, frame)) for frame in frames]
        self.assertEqual(traced(mads.pcap(packets, mads.RAW_IP)), [])

    def test_a_path_record_of_the_subnet_administrator_is_shown(self):
        query = bytearray(256)
        query[0:4] = bytes([1, 3, 2, 1])
        query[16:18] = b"\0\x35"
        query[64:80] = mads.gid("fe80::2")
        [said] = traced(mads.pcap([(0, mads.lrh(1, 9, mads.bth(bytes(query))))],
                                  mads.INFINIBAND))
        self.assertEqual(said["message"], "Get PathRecord")
        self.assertEqual(said["fields"]["dgid"], "fe80::2")

    def test_a_message_of_another_version_is_shown_as_unknown(self):
        other = bytearray(MADE)
        other[2] = 9
        [said] = traced(mads.pcap([(0, mads.ethernet(mads.A, mads.B, bytes(other)))]))
        self.assertEqual((said["message"], said["mad"]["class_version"]), ("unknown", 9))


class Copies(unittest.TestCase):
    def test_a_packet_captured_on_two_interfaces_is_no_repetition(self):
        frame, vlan = (mads.ethernet(mads.A, mads.B, MADE, vlans) for vlans in ((), [7]))
        first, second, third = traced(mads.pcap([(0, frame), (0.0002, vlan), (6, frame)]))
        self.assertEqual([said["copy"] for said in (first, second, third)], [False, True, False])
        self.assertEqual(third["nth"], 2)

    def test_copies_do_not_change_what_is_explained(self):
        told = [(0, ">", mads.req()), (0.1, "<", mads.rep()), (0.2, ">", mads.ids("RTU")),
                (1, ">", mads.dreq()), (1.1, "<", mads.ids("DREP", 0x200, 0x100))]
        twice = [message for at, way, made in told
                 for message in ((at, way, made), (at + 0.0001, way, made))]
        said = [purecm("explain", "-r", "-", stdin=mads.story(*story)).stdout
                for story in (told, twice)]
        self.assertEqual(said[0], said[1])


class Mangled(unittest.TestCase):
    def test_a_packet_that_ends_anywhere_does_no_harm(self):
        for name, link, packet in PACKETS:
            with self.subTest(name):
                ends = [(end, packet[:end]) for end in range(len(packet))]
                self.assertLessEqual(len(traced(mads.pcap(ends, link))), 4)

    def test_random_bytes_do_no_harm(self):
        dice = random.Random(SEED)
        for name, link, packet in PACKETS:
            with self.subTest(name):
                traced(mads.pcap([(n, mangle(dice, packet)) for n in range(MANGLED)], link))

    def test_random_connections_are_explained_and_drawn(self):
        dice = random.Random(SEED)
        told = [(n, dice.choice("<>"), mangle(dice, dice.choice(ALL_MESSAGES)))
                for n in range(MANGLED)]
        for command in (("explain",), ("explain", "--json"), ("trace", "-v"),
                        ("trace", "--chart")):
            done = purecm(*command, "-r", "-", stdin=mads.story(*told))
            self.assertEqual(done.returncode, 0, done.stderr)


def mangle(dice, packet):
    """Return a copy with a few bytes that are others."""
    made = bytearray(packet)
    for _ in range(dice.randrange(4)):
        made[dice.randrange(len(made))] = dice.randrange(256)
    return bytes(made)


ALL_MESSAGES = (mads.req(), mads.rep(), mads.ids("RTU"), mads.rej(28), mads.rej(10), mads.mra(),
                mads.dreq(), mads.ids("DREP", 0x200, 0x100), mads.sidr_req(), mads.sidr_rep(),
                mads.ids("LAP"), mads.ids("APR"))


if __name__ == "__main__":
    main(__doc__)
