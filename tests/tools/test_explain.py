#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""purecm explain: what it says of connections that failed, on messages made by hand.

Ends with a line "N passed, N failed, N skipped".
"""
import json
import unittest

import mads
from running import main, purecm


def explained(capture):
    """Return the objects of `explain --json`."""
    done = purecm("explain", "--json", "-r", "-", stdin=capture)
    if done.returncode:
        raise AssertionError(done.stderr.decode())
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def last(*told):
    """Return what is said of the last connection of a story."""
    return explained(mads.story(*told))[-1]


def opened(start=0):
    """Return the messages of a connection that is established."""
    return ((start, ">", mads.req()), (start + 0.1, "<", mads.rep()),
            (start + 0.2, ">", mads.ids("RTU")))


class Unanswered(unittest.TestCase):
    def test_a_host_that_never_speaks_may_be_down(self):
        said = last((0, ">", mads.req()), (6.1, ">", mads.req()))
        self.assertEqual(said["outcome"], "unanswered")
        self.assertIn("2 REQs in 6.1 s", said["what"])
        self.assertIn("No packet from 10.0.0.2 was seen", said["cause"])
        self.assertIn("no GID of this version of RoCE", said["cause"])
        self.assertIn("UDP port 4791", said["remedy"])

    def test_on_infiniband_no_firewall_is_suspected(self):
        local = mads.lrh(3, 4, mads.bth(mads.req()))
        routed = mads.lrh(3, 4, mads.grh("fe80::3", "fe80::4", mads.bth(mads.req())), True)
        for frame in (local, routed):
            [said] = explained(mads.pcap([(at, mads.erf(frame, 21, at_s=at)) for at in (0, 6.1)],
                                         mads.ERF))
            self.assertIn("its port is not Active", said["cause"])
            self.assertNotIn("UDP", said["remedy"])

    def test_a_request_of_roce_v1_may_be_none_of_the_receivers(self):
        frame = mads.roce_v1(mads.A, mads.B, mads.req())
        [said] = explained(mads.pcap([(0, frame), (6.1, frame)]))
        self.assertIn("went as RoCE v1", said["cause"])
        self.assertIn("default_roce_mode", said["remedy"])

    def test_a_host_that_answers_others_is_there(self):
        said = explained(mads.story((0, ">", mads.req(comm_id=9)),
                                    (0.1, "<", mads.rej(8, remote=9)),
                                    (1, ">", mads.req()), (7, ">", mads.req())))[-1]
        self.assertIn("backlog", said["cause"])

    def test_a_server_that_asked_for_patience_has_the_request(self):
        said = last((0, ">", mads.req()), (0.1, "<", mads.mra()))
        self.assertIn("to wait up to 69 s (MRA)", said["what"])
        self.assertIn("rdma_accept", said["remedy"])

    def test_a_trace_that_ends_too_early_says_so(self):
        self.assertIn("Capture for longer", last((0, ">", mads.req()))["remedy"])

    def test_a_trace_that_ends_before_the_confirmation_says_so(self):
        said = last((0, ">", mads.req()), (0.1, "<", mads.rep()))
        self.assertEqual((said["outcome"], said["remedy"]), ("unconfirmed", "Capture for longer."))

    def test_a_request_that_is_withdrawn_was_given_up(self):
        said = last((0, ">", mads.req()), (6, ">", mads.req()),
                    (7, ">", mads.rej(4, local=0x100, remote=0, answered=2)))
        self.assertEqual(said["outcome"], "gave-up")

    def test_a_request_that_is_withdrawn_soon_says_nothing_of_the_host(self):
        said = last((0, ">", mads.req()),
                    (0.5, ">", mads.rej(4, local=0x100, remote=0, answered=2)))
        self.assertIn("after 0.5 s", said["what"])
        self.assertIn("too early to tell", said["cause"])

    def test_an_answer_that_nobody_confirms(self):
        said = last((0, ">", mads.req()), (0.1, "<", mads.rep()), (4.2, "<", mads.rep()))
        self.assertEqual(said["outcome"], "unconfirmed")
        self.assertIn("2 REPs in 4.1 s", said["what"])


class Rejected(unittest.TestCase):
    def said(self, *rej, request=None):
        return last((0, ">", request or mads.req()), (0.1, "<", mads.rej(*rej)))

    def test_nobody_listens(self):
        self.assertIn("nobody listens at TCP port 7000", self.said(8)["what"])

    def test_every_reason_has_words(self):
        for reason in range(1, 36):
            said = self.said(reason)
            self.assertEqual(said["reason"], reason)
            for part in ("what", "cause", "remedy"):
                self.assertNotIn("{", said[part])
                self.assertGreater(len(said[part]), 10)

    def test_a_stale_connection_names_the_older_one_and_its_queue_pair(self):
        said = explained(mads.story(*opened(), (9, ">", mads.req(comm_id=0x101)),
                                    (9.1, "<", mads.rej(10, remote=0x101))))[-1]
        self.assertIn("queue pair 0x11", said["what"])
        self.assertIn("#1", said["what"])

    def test_a_stale_connection_whose_older_one_was_not_seen(self):
        self.assertIn("queue pair 0x11 of CA 0x000000000000aa00", self.said(10)["what"])

    def test_a_stale_reply_names_the_servers_queue_pair(self):
        said = last((0, ">", mads.req()), (0.1, "<", mads.rep()),
                    (0.2, ">", mads.rej(10, 0x100, 0x200, 1)))
        self.assertIn("queue pair 0x22 of CA 0x000000000000bb00", said["what"])

    def test_a_wrong_gid_is_told_with_what_is_offered(self):
        said = last((0, ">", mads.req()),
                    (0.1, "<", mads.rej(12, ari=mads.gid("10.9.9.9"))))
        self.assertIn("It offers 10.9.9.9", said["what"])

    def test_a_request_that_names_another_gid_than_its_packet(self):
        said = last((0, ">", mads.req(local_gid="10.0.0.77")), (0.1, "<", mads.rej(12)))
        self.assertIn("10.0.0.77 to 10.0.0.2, in a packet from 10.0.0.1", said["what"])
        self.assertIn("GID index", said["cause"])

    def test_a_foreign_partition(self):
        said = last((0, ">", mads.req(pkey=0x8003)), (0.1, "<", mads.rej(12)))
        self.assertIn("not a member of partition 0x8003", said["cause"])

    def test_private_data_that_is_no_ip_header(self):
        said = self.said(28, request=mads.req(header=b"hello, world"))
        self.assertIn("does not begin with an IP CM header", said["what"])
        self.assertIn("hello,.world", said["what"])

    def test_a_header_for_another_address(self):
        said = self.said(28, request=mads.req(header=mads.cma("10.0.0.1", "192.168.1.1")))
        self.assertIn("it is for 192.168.1.1, but was sent to the GID 10.0.0.2", said["what"])

    def test_the_programs_own_words_are_shown(self):
        said = last((0, ">", mads.req()), (0.1, "<", mads.rej(28, data=b"too many")))
        self.assertIn("too.many", said["what"])

    def test_an_mtu_that_is_refused(self):
        said = last((0, ">", mads.req(mtu=5)), (0.1, "<", mads.rej(26, ari=b"\x30")))
        self.assertIn("4096 bytes", said["what"])
        self.assertIn("It takes 1024 bytes", said["what"])

    def test_an_answer_that_is_turned_down(self):
        said = last((0, ">", mads.req()), (0.1, "<", mads.rep()),
                    (0.2, ">", mads.rej(28, 0x100, 0x200, 1)))
        self.assertIn("rejected the REP", said["what"])

    def test_sidr(self):
        for status in range(1, 7):
            said = last((0, ">", mads.sidr_req()), (0.1, "<", mads.sidr_rep(status=status)))
            self.assertEqual((said["outcome"], said["failed"]), ("rejected", True))
            self.assertIn(str(status), said["what"])


    def test_a_probe_of_a_path_is_no_connection(self):
        told = mads.story((0, ">", mads.probe()), (0.1, "<", mads.sidr_rep(status=1)),
                          (1, ">", mads.probe(2)))
        self.assertEqual(explained(told), explained(mads.story()))

    def test_probes_are_hidden_unless_wanted(self):
        told = mads.story((0, ">", mads.probe()), (0.1, "<", mads.sidr_rep(status=1)))
        for words, n in (([], 0), (["--probes"], 2)):
            done = purecm("trace", "--json", *words, "-r", "-", stdin=told)
            self.assertEqual(len(done.stdout.splitlines()), n)

    def test_an_answer_to_a_probe_that_was_not_seen_is_no_failure(self):
        self.assertFalse(last((0, "<", mads.sidr_rep(status=1)))["failed"])


class FromOneSide(unittest.TestCase):
    def test_of_the_client(self):
        said = last((0, ">", mads.req()), (0.1, ">", mads.ids("RTU")))
        self.assertEqual(said["outcome"], "established")
        said = last((0, ">", mads.req()), (0.1, ">", mads.ids("RTU")), (2, ">", mads.dreq()))
        self.assertEqual((said["outcome"], said["failed"]), ("closed", False))
        self.assertIn("Disconnected by the client.", said["time"])

    def test_of_the_server(self):
        said = last((0, "<", mads.rep()), (2, "<", mads.ids("DREP", 0x200, 0x100)))
        self.assertFalse(said["failed"])

    def test_a_disconnect_that_is_repeated_has_no_answer(self):
        said = last((0, ">", mads.req()), (0.1, ">", mads.ids("RTU")), (2, ">", mads.dreq()),
                    (3, ">", mads.dreq()))
        self.assertEqual(said["outcome"], "unclosed")

    def test_prose_says_so(self):
        capture = mads.story((0, ">", mads.req()), (0.1, ">", mads.ids("RTU")))
        text = purecm("explain", "-r", "-", stdin=capture).stdout.decode()
        self.assertIn("established, seen from one side", text)


class Closing(unittest.TestCase):
    def test_a_trace_that_ends_with_a_disconnect_says_so(self):
        closing = (*opened(), (1, "<", mads.dreq(0x200, 0x100, 0x11)))
        self.assertEqual(last(*closing)["remedy"], "Capture for longer.")
        for later in ((2, "<", mads.dreq(0x200, 0x100, 0x11)),
                      (9, ">", mads.sidr_req(port=9))):
            said = explained(mads.story(*closing, later))[0]
            self.assertIn("does not answer", said["what"])

    def test_a_disconnect_without_an_answer(self):
        said = last(*opened(), (1, "<", mads.dreq(0x200, 0x100, 0x11)))
        self.assertEqual(said["outcome"], "unclosed")
        self.assertIn("10.0.0.2:7000 disconnects", said["what"])

    def test_a_disconnect_of_another_queue_pair(self):
        said = last(*opened(), (1, ">", mads.dreq(qpn=0x99)))
        self.assertIn("names queue pair 0x99, but 10.0.0.2:7000 has queue pair 0x22", said["what"])


class Worked(unittest.TestCase):
    def test_the_time_is_told_by_its_parts(self):
        said = last(*opened(), (1.2, ">", mads.dreq()),
                    (1.25, "<", mads.ids("DREP", 0x200, 0x100)))
        self.assertEqual((said["outcome"], said["failed"]), ("closed", False))
        self.assertIn("Connected in 200.0 ms: 100.0 ms from the REQ", said["time"])
        self.assertIn("Open for 1000.0 ms. Disconnected by the client, answered in 50.0 ms",
                      said["time"])

    def test_a_lost_request_is_told(self):
        said = last((0, ">", mads.req()), (6, ">", mads.req()), (6.1, "<", mads.rep()),
                    (6.2, ">", mads.ids("RTU")))
        self.assertIn("The REQ was sent 2 times in 6000.0 ms. Nothing answered the earlier ones",
                      said["time"])

    def test_a_lost_reply_is_suspected(self):
        said = last((0, ">", mads.req()), (4.2, "<", mads.rep()), (4.3, ">", mads.ids("RTU")))
        self.assertIn("server's program took the time, or messages were lost", said["time"])

    def test_a_ping_is_no_failure(self):
        said = last((0, ">", mads.req(port=0)), (0.25, "<", mads.rej(8)))
        self.assertEqual((said["outcome"], said["failed"]), ("probed", False))
        self.assertIn("Answered in 250.0 ms", said["time"])
        self.assertIn("purecm ping", said["time"])

    def test_other_answers_to_a_ping_are_failures(self):
        for messages in (((0.1, "<", mads.rej(10)),), (), ((6.1, ">", mads.rej(4, 0x100, 0)),)):
            said = last((0, ">", mads.req(port=0)), *messages)
            self.assertTrue(said["failed"], said)

    def test_what_began_before_the_trace_is_no_failure(self):
        said = last((0, "<", mads.dreq(0x200, 0x100, 0x11)), (0.1, ">", mads.ids("DREP")))
        self.assertEqual((said["outcome"], said["failed"]), ("closed", False))


class Prose(unittest.TestCase):
    def test_without_a_message_it_says_where_to_look(self):
        done = purecm("explain", "-r", "-", stdin=mads.story())
        self.assertEqual(done.stdout, b"0 connections\n")
        self.assertIn(b"PURECM_LOG=warn", done.stderr)

    def test_lines_fit_and_the_summary_counts(self):
        capture = mads.story(*opened(), (1, ">", mads.req(comm_id=5)),
                             (1.1, "<", mads.rej(8, remote=5)))
        done = purecm("explain", "-r", "-", stdin=capture, env={"COLUMNS": "60"})
        text = done.stdout.decode()
        self.assertTrue(text.endswith("2 connections: 1 rejected, 1 established\n"), text)
        wide = [line for line in text.splitlines() if len(line) > 60 and line[0] != "#"]
        self.assertEqual(wide, [])


if __name__ == "__main__":
    main(__doc__)
