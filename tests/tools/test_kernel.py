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
        self.assertIn("says that nobody listens at TCP port 99 (REJ 8", text)
        self.assertIn("Connected in 304.8 ms", text)

    def test_filters_charts_and_files_work(self):
        self.assertIn("REJ", text_of("trace", "--chart", "--outcome=rejected",
                                     f"--kernel={saved()}"))
        pcapng = purecm("trace", "-w", "-", f"--kernel={saved()}").stdout
        self.assertEqual(text_of("trace", "-r", "-", stdin=pcapng).count("\n"), 7)

    def test_what_the_kernel_does_not_tell_is_said(self):
        self.assertIn(b"tells nothing", purecm("trace", f"--kernel={saved()}").stderr)


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
    def test_without_tracefs_it_says_so(self):
        done = purecm("trace", "--kernel")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, b"mount -t tracefs|only root")

    def test_it_stands_alone(self):
        for other in (("-r", "x"), ("--recorded",), ("-i", "lo"), ("--pid=1",)):
            self.assertEqual(purecm("trace", "--kernel", *other).returncode, 2, other)


if __name__ == "__main__":
    main(__doc__)
