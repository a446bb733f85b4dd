#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The program purecm as its users call it: output, exit statuses, bad input.

Ends with a line "N passed, N failed, N skipped".
"""
import gzip
import json
import os
from pathlib import Path
import re
import subprocess
import tempfile
import unittest

import mads
from running import HERE, capture, main, purecm, text_of

def objects(*args):
    """Return the objects of `trace --json`."""
    return [json.loads(line) for line in text_of("trace", "--json", *args).splitlines()]


def messages(*args):
    return [message["message"] for message in objects(*args)]


class Command(unittest.TestCase):
    def test_without_a_command_the_usage_is_an_error(self):
        done = purecm()
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"usage: purecm COMMAND", done.stderr)

    def test_help_names_every_command_and_each_has_help(self):
        usage = text_of("--help")
        for name in text_of("--commands").split():
            self.assertIn(name, usage)
            self.assertIn("sage: purecm " + name, text_of(name, "--help"))

    def test_help_and_version_have_all_their_names_everywhere(self):
        for name in text_of("--commands").split():
            said = text_of(name, "--help")
            self.assertEqual(text_of(name, "-h"), said)
            self.assertEqual(text_of("help", name), said)
            for option in ("--version", "-V"):
                self.assertRegex(text_of(name, option), r"^purecm \d+\.\d+\.\d+\n$", name)
        self.assertEqual(purecm("help", "frobnicate").returncode, 2)

    def test_an_unknown_command_is_named(self):
        done = purecm("frobnicate")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"no command frobnicate", done.stderr)

    def test_an_unknown_option_is_status_2(self):
        for name in text_of("--commands").split():
            self.assertEqual(purecm(name, "--frobnicate").returncode, 2, name)

    def test_a_full_disk_is_told(self):
        with open("/dev/full", "wb") as full:
            done = purecm("trace", "-r", capture("connect"), stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"No space left", done.stderr)

    def test_a_reader_that_leaves_is_no_error_to_tell(self):
        read, write = os.pipe()
        os.close(read)
        done = purecm("trace", "-r", capture("connect"), stdout=write)
        os.close(write)
        self.assertEqual(done.stderr, b"")


class Trace(unittest.TestCase):
    def test_a_connection_leads_both_ends_through_their_states(self):
        states = [(m["message"], m["active_state"], m["passive_state"])
                  for m in objects("-r", capture("connect"), "-n", "1")]
        self.assertEqual(states, [("REQ", "REQ_SENT", "REQ_RCVD"), ("REP", "REP_RCVD", "REP_SENT"),
                                  ("RTU", "ESTABLISHED", "ESTABLISHED"),
                                  ("DREQ", "DREQ_SENT", "DREQ_RCVD"),
                                  ("DREP", "TIMEWAIT", "TIMEWAIT")])

    def test_a_line_tells_both_ends_with_their_ports(self):
        self.assertRegex(text_of("trace", "-r", capture("connect")),
                         r"10\.77\.0\.1:\d+ --> 10\.77\.0\.2:7000 +REQ ")
        self.assertRegex(text_of("trace", "-r", capture("connect6")),
                         r"\[fd00:77::1\]:\d+ <-- \[fd00:77::2\]:7000 +REP ")

    def test_times_of_day_are_shown_when_wanted(self):
        line = text_of("trace", "-t", "-r", capture("connect")).splitlines()[0]
        self.assertRegex(line, r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} #1 ")

    def test_a_repeated_request_is_counted(self):
        nth = [m["nth"] for m in objects("-r", capture("slow"), "-m", "REQ")]
        self.assertEqual(nth, [1, 2])

    def test_mra_makes_the_one_who_asks_patient(self):
        [mra] = objects("-r", capture("slow"), "-m", "MRA")
        self.assertEqual(mra["active_state"], "MRA_REQ_RCVD")

    def test_an_answer_that_comes_too_late_is_ignored(self):
        late = [m["ignored"] for m in objects("-r", capture("silent"), "-n", "2", "-m", "REJ")]
        self.assertEqual(late, [False, True, True])

    def test_every_capture_of_the_lab_is_read_to_its_end(self):
        for path in sorted(HERE["captures"].glob("*.pcap")):
            done = purecm("trace", "-r", path)
            self.assertEqual((done.returncode, done.stderr), (0, b""), path)

    def test_verbose_shows_the_fields_that_are_zero_too(self):
        text = text_of("trace", "-v", "-r", capture("connect"), "-m", "REP")
        self.assertRegex(text, r"failover_accepted +0\n")
        self.assertRegex(text, r"target_ack_delay +15 \(0\.1 s\)")

    def test_a_chart_is_of_one_connection(self):
        text = text_of("trace", "--chart", "-r", capture("connect"), "-s", "7002")
        self.assertEqual(text.count("DREQ ---"), 1)
        self.assertTrue(text.startswith("#2 "), text)

    def test_lines_fit_a_narrow_terminal(self):
        text = text_of("trace", "-r", capture("slow"), env={"COLUMNS": "75"})
        longest = max(len(line) for line in text.splitlines())
        self.assertLessEqual(longest, 75)


class Filters(unittest.TestCase):
    def test_by_peer(self):
        self.assertEqual(messages("-r", capture("connect"), "-p", "10.77.0.9"), [])
        self.assertEqual(len(messages("-r", capture("connect"), "-p", "10.77.0.2")), 10)

    def test_by_service(self):
        self.assertEqual(len(messages("-r", capture("connect"), "-s", "7000")), 5)
        self.assertEqual(len(messages("-r", capture("connect"), "-s", "0x1061b58")), 5)

    def test_it_ends_after_a_number_of_messages(self):
        self.assertEqual(len(text_of("trace", capture("connect"), "-c", "2").splitlines()), 2)
        self.assertEqual(purecm("trace", capture("connect"), "-c", "0").returncode, 2)

    def test_colours_are_for_terminals_and_for_who_asks(self):
        for command in (["trace", capture("silent")], ["explain", capture("silent")]):
            plain = text_of(*command)
            self.assertNotIn("\033", plain)
            coloured = text_of(*command, "--color", env={"NO_COLOR": "1"})
            self.assertIn("\033[1;31m", coloured)
            self.assertEqual(re.sub("\033\\[[0-9;]*m", "", coloured), plain)

    def test_by_message(self):
        self.assertEqual(messages("-r", capture("connect"), "-m", "req,rtu", "-n", "1"),
                         ["REQ", "RTU"])

    def test_by_outcome(self):
        self.assertEqual(messages("-r", capture("silent"), "-o", "rejected"), ["REQ", "REJ"])
        self.assertEqual(messages("-r", capture("connect"), "-o", "failed"), [])

    def test_numbers_of_many_connections_are_those_of_explain(self):
        many = [(n / 1000, ">", mads.req(comm_id=0x1000 + n)) for n in range(1 << 14)]
        many += [(20, ">", mads.req(comm_id=0x9000)), (21, "<", mads.rej(28, remote=0x1000)),
                 (22, ">", mads.req()), (22.1, "<", mads.rep()), (22.2, ">", mads.ids("RTU"))]
        with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
            file.write(mads.story(*many))
            file.flush()
            for options in (("-o", "established"), ("-n", str((1 << 14) + 2))):
                self.assertEqual(messages("-r", file.name, *options), ["REQ", "REP", "RTU"])

    def test_what_makes_no_sense_is_refused(self):
        for option in ("-p=x", "--peer=10.77", "--service=-1", "--message=x", "--outcome=x",
                       "--connection=0"):
            self.assertEqual(purecm("trace", "-r", capture("connect"), option).returncode, 2,
                             option)


class Sources(unittest.TestCase):
    def test_two_sources_are_one_too_many(self):
        for options in (("-r", "x", "-i", "lo"), ("-r", "x", "--pid", "1"),
                        ("-i", "lo", "--pid", "1"), ("--pid", "0"), ("--pid", "x")):
            for command in ("trace", "explain", "timeline"):
                self.assertEqual(purecm(command, *options).returncode, 2)

    def test_two_captures_are_one_too_many(self):
        for words in (("-r", "x", "-r", "y"), ("-r", "x", "y"), ("x", "y")):
            done = purecm("explain", *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(b"purecm diff", done.stderr)

    def test_a_capture_needs_no_option(self):
        for command in ("trace", "explain", "timeline"):
            self.assertEqual(text_of(command, capture("connect")),
                             text_of(command, "-r", capture("connect")))

    def test_a_capture_may_be_compressed(self):
        with tempfile.NamedTemporaryFile(suffix=".gz") as packed:
            packed.write(gzip.compress(Path(capture("connect")).read_bytes()))
            packed.flush()
            for command in ("trace", "explain"):
                self.assertEqual(text_of(command, packed.name),
                                 text_of(command, capture("connect")))

    def test_a_capture_may_come_through_a_fifo(self):
        """Opened twice, it loses what was written in between."""
        expected = text_of("trace", "-r", capture("connect"))
        with tempfile.TemporaryDirectory() as folder:
            fifo = Path(folder) / "fifo"
            os.mkfifo(fifo)
            for _ in range(20):
                with subprocess.Popen(["timeout", "30", "dd", f"if={capture('connect')}",
                                       f"of={fifo}", "status=none"]) as writer:
                    done = subprocess.run(["timeout", "30", HERE["purecm"], "trace", "-r", fifo],
                                          check=False, capture_output=True, text=True)
                self.assertEqual((done.stdout, writer.returncode), (expected, 0), done.stderr)

    def test_a_file_is_written_only_if_the_input_can_be_read(self):
        with tempfile.TemporaryDirectory() as folder:
            file, link = Path(folder) / "file", Path(folder) / "link"
            file.write_bytes(capture("connect").read_bytes())
            link.symlink_to(file)
            for words in (("-r", file), ("-r", link), (f"--kernel={link}",), ("-r", "/nowhere/x")):
                done = purecm("trace", *words, "-w", file)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertEqual(file.read_bytes(), capture("connect").read_bytes(), words)

    def test_what_is_read_is_not_replaced(self):
        content, program = capture("connect").read_bytes(), Path(HERE["purecm"]).resolve()
        for command in ("trace", "-w"), ("timeline", "-o"), ("report", "-o"):
            for source in "file", "./file", "-":
                with tempfile.TemporaryDirectory() as folder:
                    file = Path(folder, "file")
                    file.write_bytes(content)
                    with open(file, "rb") as stdin:
                        done = subprocess.run([program, *command, file.name, "-r", source],
                                              stdin=stdin, cwd=folder, capture_output=True,
                                              check=False)
                    self.assertEqual(done.returncode, 1, (command, source))
                    self.assertIn(b"file is read; write to another", done.stderr)
                    self.assertEqual(file.read_bytes(), content)

    def test_an_interface_that_is_not_there_is_named(self):
        done = purecm("trace", "-i", "nope0")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, b"purecm: nope0 cannot be listened to: "
                                      b"No such device exists\n")

    def test_what_is_read_once_cannot_be_filtered_by_its_end(self):
        self.assertEqual(purecm("trace", "-i", "lo", "-o", "failed").returncode, 1)
        for option in ("-r", "--kernel="):
            for name in ("-", "/dev/stdin"):
                done = purecm("trace", option + name, "-o", "failed", stdin=b"")
                self.assertEqual(done.returncode, 1)
                self.assertIn(b"reads a capture twice", done.stderr)


class Live(unittest.TestCase):
    # A stopped reader leaves what passes in the capture's buffer, and meets Ctrl-C first.
    SCRIPT = """
        ip link set lo up
        "$1" trace -i lo & pid=$!
        # Until it catches SIGINT, signal 2.
        while kill -0 $pid && ! grep -q 'SigCgt:.*[2367abef]$' /proc/$pid/status
        do sleep 0.05; done
        kill -STOP $pid
        python3 -c 'import socket, sys
socket.socket(type=socket.SOCK_DGRAM).sendto(sys.stdin.buffer.read(), ("127.0.0.1", 4791))' <"$2"
        kill -INT $pid
        kill -CONT $pid
        wait $pid
        """

    def test_what_passed_before_ctrl_c_is_shown(self):
        packet = Path(self.enterContext(tempfile.TemporaryDirectory())) / "packet"
        packet.write_bytes(mads.bth(mads.req()))
        done = subprocess.run(["unshare", "-rn", "bash", "-c", self.SCRIPT, "bash",
                               HERE["purecm"], packet], capture_output=True, text=True,
                              check=False, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(" REQ ", done.stdout)


class BadInput(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "x"

    def tearDown(self):
        self.folder.cleanup()

    def complaint(self, content):
        self.path.write_bytes(content)
        done = purecm("trace", "-r", self.path)
        self.assertIn(done.returncode, (0, 1))
        self.assertIn(str(self.path), done.stderr.decode())
        return done.returncode, done.stderr.decode()

    def test_no_file(self):
        for command in ("trace", "explain"):
            done = purecm(command, "-r", self.path)
            self.assertEqual((done.returncode, done.stdout), (1, b""))
            self.assertIn(b"No such file", done.stderr)

    def test_an_empty_file_and_text_are_no_captures(self):
        self.assertEqual(self.complaint(b"")[0], 1)
        self.assertEqual(self.complaint(b"no capture\n" * 100)[0], 1)

    def test_a_capture_that_ends_anywhere_is_told(self):
        whole = capture("connect").read_bytes()
        for size in range(25, len(whole), 97):
            status, text = self.complaint(whole[:size])
            self.assertEqual((status, "truncated" in text), (1, True), size)

    def test_what_came_before_the_end_is_explained_drawn_and_filtered(self):
        self.path.write_bytes(capture("connect").read_bytes()[:-10])
        for words in (["explain"], ["timeline"], ["trace", "-o", "established,closed,unclosed"]):
            done = purecm(*words, "-r", self.path)
            self.assertEqual((done.returncode, b"truncated" in done.stderr), (1, True), words)
            self.assertIn(b"10.", done.stdout, words)

    def test_a_compressed_capture_that_is_damaged_is_told(self):
        packed = bytearray(gzip.compress(capture("connect").read_bytes()))
        packed[-8] ^= 1  # of the checksum
        self.path.write_bytes(packed)
        for words in (["trace"], ["trace", "-o", "closed"], ["explain"]):
            done = purecm(*words, "-r", self.path)
            self.assertEqual((done.returncode, b"crc error" in done.stderr), (1, True), words)
            self.assertIn(b"10.", done.stdout, words)

    def test_packets_that_were_cut_are_counted(self):
        whole = bytearray(capture("nobody").read_bytes())
        whole[24 + 8:24 + 12] = (100).to_bytes(4, "little")
        status, text = self.complaint(bytes(whole[:24 + 16 + 100]))
        self.assertEqual(status, 0)
        self.assertIn("1 messages were not captured to their end", text)

    def test_another_link_type_is_named(self):
        whole = bytearray(capture("nobody").read_bytes())
        whole[20:24] = (105).to_bytes(4, "little")
        status, text = self.complaint(bytes(whole))
        self.assertEqual(status, 1)
        self.assertIn("802.11", text)

    def test_an_absurd_packet_size_is_refused(self):
        whole = bytearray(capture("nobody").read_bytes())
        whole[24 + 8:24 + 16] = b"\xff" * 8
        self.assertEqual(self.complaint(bytes(whole))[0], 1)


if __name__ == "__main__":
    main(__doc__)
