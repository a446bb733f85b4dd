#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""purecm trace and explain --kernel, by lines that kernel 6.1 has traced (captures/kernel-*.txt),
and by ones that are changed.

Ends with a line "N passed, N failed, N skipped".
"""
import json
import os
from pathlib import Path
import unittest

from running import HERE, main, purecm, text_of

REQ = "rping-1 [000] .....  9.000000: cm_send_req: cm.id=0 src={0}:1 dst={1}:2 tos=0 qp_num=17\n"
EVENT = "kworker [000] .....  {2}.000000: cm_event_handler: cm.id=0 src={0}:1 dst={1}:2 tos=0 {3}\n"
ENDS = ("10.0.0.1", "10.0.0.2")
ENDS6 = ("[fd00::1]", "[fe80::2]")


def saved(name="kernel-6.1-active"):
    return HERE["captures"] / f"{name}.txt"


def objects(command, text):
    """Return what a command says of lines, as JSON."""
    return [json.loads(line) for line in
            text_of(command, "--json", "--kernel=-", stdin=text.encode()).splitlines()]


def outcome(text):
    found = objects("explain", text)
    return [(one["outcome"], one.get("reason")) for one in found]


class Saved(unittest.TestCase):
    def test_messages_are_those_of_the_counters(self):
        """cm_tx_msgs and cm_rx_msgs of that host: 2 REQ, REP, RTU, DREQ, DREP, REJ; no MRA."""
        lines = text_of("trace", "--json", f"--kernel={saved()}").splitlines()
        self.assertEqual([json.loads(line)["message"] for line in lines],
                         ["REQ", "REP", "RTU", "DREQ", "DREP", "REQ", "REJ"])

    def test_a_server_and_a_datagram_service(self):
        lines = text_of("trace", "--json", f"--kernel={saved('kernel-6.1-passive')}").splitlines()
        self.assertEqual([json.loads(line)["message"] for line in lines],
                         ["REQ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP"])
        text = text_of("explain", f"--kernel={saved('kernel-6.1-passive')}")
        self.assertIn("#1 10.77.0.2:55795 to 10.77.0.1:7174, TCP port 7174: established and "
                      "disconnected", text)
        self.assertIn("#2 10.77.0.2:33739 to 10.77.0.1:7174, UDP port 7174", text)
        self.assertIn("Disconnected by the client", text)

    def test_they_are_explained_as_those_of_a_capture_are(self):
        text = text_of("explain", f"--kernel={saved()}")
        self.assertIn("10.77.0.2:59173 to 10.77.0.1:7174, TCP port 7174: established and "
                      "disconnected", text)
        self.assertIn("answers that nobody listens at TCP port 99 (REJ 8", text)
        self.assertIn("Connected in 304.8 ms", text)

    def test_filters_charts_and_files_work(self):
        self.assertIn("REJ", text_of("trace", "--chart", "--outcome=rejected",
                                     f"--kernel={saved()}"))
        pcapng = purecm("trace", "-w", "-", f"--kernel={saved()}").stdout
        self.assertEqual(text_of("trace", "-r", "-", stdin=pcapng).count("\n"), 7)

    def test_what_the_kernel_does_not_record_is_printed(self):
        self.assertIn(b"no private data", purecm("trace", f"--kernel={saved()}").stderr)


class Lines(unittest.TestCase):
    def test_a_peer_that_never_answers(self):
        text = REQ.format(*ENDS) + EVENT.format(*ENDS, 70, "UNREACHABLE (7/-110)")
        self.assertEqual(outcome(text), [("gave-up", 4)])

    def test_ipv6(self):
        text = REQ.format(*ENDS6) + EVENT.format(*ENDS6, 10, "REJECTED (8/28)")
        self.assertEqual(outcome(text), [("rejected", 28)])
        self.assertEqual(objects("explain", text)[0]["passive"], "[fe80::2]:2")

    def test_an_address_that_cannot_be_resolved(self):
        done = purecm("trace", "--kernel=-",
                      stdin=EVENT.format(*ENDS, 9, "ADDR_ERROR (1/-19)").encode())
        self.assertIn(b"10.0.0.1 to 10.0.0.2, port 2: the address could not be resolved: No such "
                      b"device", done.stderr)

    def test_a_second_connection_between_the_same_ends_is_another(self):
        one = REQ.format(*ENDS) + EVENT.format(*ENDS, 10, "REJECTED (8/8)")
        self.assertEqual(outcome(one + one), 2 * [("rejected", 8)])

    def test_a_queue_pair_of_the_kernel(self):
        """Its consumers are told ESTABLISHED, not CONNECT_RESPONSE."""
        rtu = REQ.format(*ENDS).replace("cm_send_req", "cm_send_rtu").replace(" 9.0", " 9.5")
        text = REQ.format(*ENDS) + rtu + EVENT.format(*ENDS, 10, "ESTABLISHED (9/0)")
        self.assertEqual([message["message"] for message in objects("trace", text)],
                         ["REQ", "REP", "RTU"])


class Mads(unittest.TestCase):
    """Lines of ib_mad beside those of rdma_cma: of what was sent again, and by destroyed ids."""

    PASSIVE, ACTIVE = "kernel-6.1-mads-passive", "kernel-6.1-mads-active"

    def messages(self, name, connection):
        return [one["message"] for one in objects("trace", saved(name).read_text())
                if one["connection"] == connection]

    def test_repetitions_are_messages(self):
        """The counters of that host: cm_tx_retries 2 REP, cm_rx_duplicates 1 REQ."""
        self.assertEqual(self.messages(self.PASSIVE, 4),
                         ["REQ", "REP", "REP", "REQ", "REP", "RTU", "DREQ", "DREP"])
        self.assertEqual(self.messages(self.ACTIVE, 4),
                         ["REQ", "REQ", "REP", "RTU", "DREQ", "DREP"])
        self.assertIn("The REP was sent 3 times in 8674.6 ms",
                      text_of("explain", f"--kernel={saved(self.PASSIVE)}").replace("\n     ", ""))

    def test_what_a_destroyed_id_sends_is_seen(self):
        self.assertEqual(self.messages(self.PASSIVE, 2), ["REQ", "REJ"])
        self.assertEqual(self.messages(self.ACTIVE, 3), ["REQ", "REP", "RTU", "DREQ", "DREP"])

    def test_nothing_is_told_twice(self):
        self.assertEqual(self.messages(self.PASSIVE, 1), ["REQ", "REP", "RTU", "DREQ", "DREP"])

    def test_mads_of_others_belong_to_no_connection(self):
        mad = ("kworker-2 [000] .....  9.5: ib_mad_ib_send_mad: 0:1 QP1; 15/15 retries(0); : hdr : "
               "class {} class_ver 0x2 method 0x3 tid 0x77 attr_id 0x{:x} attr_mod 0x0\n")
        text = REQ.format(*ENDS) + EVENT.format(*ENDS, 9, "ROUTE_RESOLVED (2/0)")
        text += mad.format("0x3", 0x10) + mad.format("0x7", 0x15) + mad.format("0x7", 0x99)
        self.assertEqual([one["message"] for one in objects("trace", text)], ["REQ"])

    def test_on_infiniband_no_firewall_is_suspected(self):
        """A MAD has a LID there; on RoCE it is zero."""
        sent = ("rping-1 [000] .....  9.1: ib_mad_ib_send_mad: 0:1 QP1; 15/15 retries(0); : hdr : "
                "class 0x7 class_ver 0x2 method 0x3 tid 0x77 attr_id 0x10 attr_mod 0x0  => dlid "
                "0x{:08x} sl 0 rpqn 0x1 rqpkey 0x80000000\n")
        for lid, words in ((7, "its port is not Active"), (0, "packets to it or from it are lost")):
            text = REQ.format(*ENDS) + sent.format(lid)
            text += EVENT.format(*ENDS, 70, "UNREACHABLE (7/-110)")
            self.assertIn(words, objects("explain", text)[0]["cause"])

    def test_connections_by_infiniband_addresses_are_said_to_be_left_out(self):
        text = REQ.format(*ENDS).replace("10.0.0.1:1", "(einval)").replace("10.0.0.2:2", "(einval)")
        done = purecm("trace", "--kernel=-", stdin=(text + text).encode())
        self.assertEqual(done.stdout, b"")
        self.assertEqual(done.stderr.count(b"AF_IB"), 1, done.stderr)

    DROPPED = (EVENT.format(*ENDS, 10, "CONNECT_REQUEST (4/0)")
               + EVENT.format(*ENDS, 10, "").replace("cm_event_handler", "cm_id_destroy"))

    def test_a_request_that_a_full_backlog_drops_is_reported_and_repeated(self):
        """The kernel takes each repetition for a new request: it has forgotten the one before."""
        again = self.DROPPED.replace(" 10.0", " 16.0")
        done = purecm("trace", "--json", "--kernel=-", stdin=(self.DROPPED + again).encode())
        said = [json.loads(line) for line in done.stdout.decode().splitlines()]
        self.assertEqual([(one["message"], one["connection"], one["nth"]) for one in said],
                         [("REQ", 1, 1), ("REQ", 1, 2)])
        self.assertIn(b"10.0.0.2, port 2, for port 1 was dropped: its listener's backlog is full",
                      done.stderr)

    def test_a_host_that_has_the_request_is_not_said_to_be_down(self):
        for text in (self.DROPPED, EVENT.format(*ENDS, 10, "CONNECT_REQUEST (4/0)")
                     + EVENT.format(*ENDS, 70, "REJECTED (8/4)")):
            later = REQ.format("10.0.0.1", "10.0.0.9").replace(" 9.0", " 99.0")
            said = objects("explain", text + later)[0]
            self.assertIn("10.0.0.1 has the request", said["cause"])

    def test_what_a_worker_sends_after_a_drop_is_not_the_dropped_ones(self):
        mra = ("kworker [000] .....  9.5: ib_mad_ib_send_mad: 0:1 QP1; 0/0 retries(0); : hdr : "
               "class 0x7 class_ver 0x2 method 0x3 tid 0x77 attr_id 0x{:x} attr_mod 0x0\n")
        for attr in (0x11, 0x12):
            said = objects("trace", self.DROPPED + mra.format(attr))
            self.assertEqual([one["message"] for one in said], ["REQ"])

    def test_a_refusal_without_a_listener_is_reported(self):
        text = ("kworker-1 [000] .....  9.5: ib_mad_ib_send_mad: 0:1 QP1; 15/15 retries(0); : hdr "
                ": class 0x7 class_ver 0x2 method 0x3 tid 0x77 attr_id 0x12 attr_mod 0x0\n")
        self.assertIn(b"nobody listens", purecm("trace", "--kernel=-", stdin=text.encode()).stderr)

    def note_of(self, *events):
        """Return what is said of events of the layer below and of the REJ between them."""
        mad = ("ib_mad_ib_send_mad: 0:1 QP1; 15/15 retries(0); : hdr : class 0x7 class_ver 0x2 "
               "method 0x3 tid 0x77 attr_id 0x12 attr_mod 0x0")
        text = "".join(f"kworker-1 [000] .....  9.5: {event}\n" for event in
                       (events[0], mad, *events[1:]))
        done = purecm("trace", "--kernel=-", stdin=text.encode())
        self.assertEqual(done.stderr.decode().count("was refused"), 1, done.stderr)
        return done.stderr.decode()

    def test_why_the_kernel_refuses_by_itself_is_reported(self):
        """As Linux 6.1 traces a REQ with a strange P_Key, or GID, and one for nobody."""
        path = "icm_send_rej: local_id=1 remote_id=2 state=REQ_RCVD reason=REJ_INVALID_GID"
        self.assertIn("a GID or a partition (P_Key) that this port does not have",
                      self.note_of(path))
        ended = "local_id=1 remote_id=2 state=REQ_RCVD lap_state=LAP_UNINIT"
        issued = "icm_issue_rej: local_id=2 remote_id=0"
        self.assertIn("nobody listens", self.note_of(issued, f"icm_no_listener_err: {ended}"))
        self.assertIn("same queue pair", self.note_of(issued, f"icm_staleconn_err: {ended}"))

    def test_a_refusal_by_a_program_is_its_message_alone(self):
        rej = EVENT.format(*ENDS, 10, "").replace("cm_event_handler", "cm_send_rej")
        below = ("kworker [000] .....  10.1: icm_send_rej: local_id=1 remote_id=2 state=REQ_RCVD "
                 "reason=REJ_CONSUMER_DEFINED\n")
        done = purecm("trace", "--kernel=-", stdin=(
            EVENT.format(*ENDS, 10, "CONNECT_REQUEST (4/0)") + rej + below).encode())
        self.assertNotIn(b"was refused", done.stderr)
        self.assertIn(b"REJ", done.stdout)

    def test_a_lookup_is_known_by_its_mad(self):
        mad = ("kworker-2 [000] .....  9.5: ib_mad_recv_done_handler: 0:1 QP1 : hdr : class 0x07 "
               "class_ver 0x02 method 0x03 tid 0x77 attr_id 0x0017 attr_mod 0x0\n")
        text = mad + EVENT.format(*ENDS, 10, "CONNECT_REQUEST (4/0)")
        self.assertEqual([one["message"] for one in objects("trace", text)], ["SIDR_REQ"])

    def test_lines_that_were_lost_are_reported(self):
        self.assertIn(b"CPU:0 [LOST 12 EVENTS]",
                      purecm("trace", "--kernel=-", stdin=b"CPU:0 [LOST 12 EVENTS]\n").stderr)


class BadInput(unittest.TestCase):
    def test_lines_that_are_cut_anywhere_are_left_out(self):
        whole = saved().read_bytes()
        for end in range(0, len(whole), 97):
            self.assertIn(purecm("trace", "--kernel=-", stdin=whole[:end]).returncode, (0, 1))

    def test_what_is_no_trace_tells_nothing(self):
        done = purecm("trace", "--kernel=-", stdin=os.urandom(300000))
        self.assertEqual((done.returncode, done.stdout), (0, b""))

    def test_a_missing_file_is_named(self):
        done = purecm("trace", "--kernel=/nowhere")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"/nowhere: No such file", done.stderr)

    @unittest.skipIf(Path("/sys/kernel/tracing/instances").exists(), "this host has tracefs")
    def test_a_file_that_cannot_be_read_is_named(self):
        done = purecm("trace", "--kernel=/")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"purecm: /: Is a directory", done.stderr)

    def test_without_tracefs_it_says_so(self):
        done = purecm("trace", "--kernel")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, b"mount -t tracefs|only root")

    def test_it_stands_alone(self):
        for other in (("-r", "x"), ("--recorded",), ("-i", "lo"), ("--pid=1",)):
            self.assertEqual(purecm("trace", "--kernel", *other).returncode, 2, other)


if __name__ == "__main__":
    main(__doc__)
