#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The command line of purecm drill, and of purecm-agent; scripts run in tests/drill/run.py.

Ends with a line "N passed, N failed, N skipped".
"""
import collections
import contextlib
import functools
from pathlib import Path
import random
import select
import socket
import subprocess
import sys
import tempfile
import unittest

from running import HERE, main, purecm, text_of

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "tests/drill"
sys.path.insert(0, str(ROOT / "tools/drill"))
from fields import MESSAGES, Fields  # noqa: E402
from run import Run  # noqa: E402
from script import (Mistake, Script, defaults, evaluate, of_bytes, of_number, parse,  # noqa: E402
                    takes)


@functools.cache
def fields():
    """The fields of all messages."""
    return Fields(Path(HERE["purecm"]).parent / "drill/link")


def read(text):
    """Return a script."""
    with tempfile.NamedTemporaryFile(suffix=".drill") as file:
        file.write(text.encode("latin-1"))
        file.flush()
        return Script(file.name, fields())


def only_line(text):
    """Return the line of a script that has one."""
    line, = read(text).lines
    return line


class RightScripts(unittest.TestCase):
    def test_a_message_to_send_has_its_fields(self):
        line = only_line('+0.5 > REQ starting_psn=7 user_data="a b"')
        self.assertEqual((line.verb, line.name, line.times), (">", "REQ", (0.5,)))
        self.assertEqual([setting.name for setting in line.settings],
                         ["starting_psn", "user_data"])
        self.assertEqual([setting.value for setting in line.settings],
                         [of_number(7), of_bytes(b"a b")])

    def test_a_message_to_expect_has_a_range_of_time(self):
        line = only_line("+.5..2 < REP again local_qpn!=0")
        self.assertEqual((line.verb, line.again, line.times), ("<", True, (0.5, 2)))
        self.assertTrue(line.settings[0].is_not)

    def test_whole_seconds_have_a_range_too(self):
        self.assertEqual(only_line("+1..9 < REP").times, (1, 9))

    def test_a_call_has_a_result(self):
        script = read("call accept qpn=3 = EINVAL # no")
        self.assertEqual((script.lines[0].name, script.lines[0].result), ("accept", "EINVAL"))
        self.assertEqual(len(script.lines[0].settings), 1)
        self.assertTrue(script.needs_agent)

    def test_a_call_succeeds_unless_something_else_is_said(self):
        self.assertEqual(only_line("call destroy").result, "0")

    def test_messages_alone_need_no_agent(self):
        self.assertFalse(read("> RTU").needs_agent)

    def test_what_is_for_one_peer_only_is_marked(self):
        line = only_line("why it differs\n\nstock: +1 > RTU")
        self.assertEqual((line.peer, line.number), ("stock", 3))

    def test_what_was_kept_can_be_used(self):
        read("< REP starting_psn=?psn\nlet next=$psn+1\n> RTU local_comm_id=$next")

    def test_defaults_of_every_message_can_be_read(self):
        for message in MESSAGES:
            for setting in defaults(message, fields()):
                self.assertEqual(takes(setting.field, setting.value), "", setting)


MISTAKES = (
    ("", 0, "expected at least one line"),
    ("# nothing\n", 1, "expected at least one line"),
    ("> RTU\nsend RTU", 2, "expected >, <, call, event, let, quiet or why, not send"),
    (">", 1, "expected a message (REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP, "
             "LAP, APR), not the end"),
    ("> req", 1, "expected a message"),
    ("> REQ psn=1", 1, "REQ has no field `psn': expected one of `purecm drill --fields REQ'"),
    ('> RTU user_data="a"', 1, "RTU has no field `user_data'"),
    ("> REQ starting_psn", 1, "expected NAME=VALUE, not `starting_psn'"),
    ("> REQ =1", 1, "expected NAME=VALUE, not `=1'"),
    ("> REQ starting_psn=0x1000000", 1, "has 24 bits: expected less than 0x1000000"),
    ("> REQ starting_psn=-1", 1, "has 24 bits"),
    ('> REQ starting_psn="7"', 1, "starting_psn: expected a number, not `\"7\"'"),
    ("> REQ starting_psn=7x", 1, "starting_psn: expected a number, N..M"),
    ("> REQ private_data=7", 1, 'expected "text", hex:... or a GID, not `7\''),
    ("> REQ private_data=hex:7", 1, "private_data: expected a number, N..M"),
    ("> REQ primary.local_gid=fe80:::1", 1, "primary.local_gid: expected"),
    ('> REQ private_data="a', 1, 'expected a closing "'),
    ("> REQ byte.256=1", 1, "REQ has no field `byte.256'"),
    ("> REQ byte.0=256", 1, "byte.0 has 8 bits"),
    ("> REQ starting_psn=*", 1, "`starting_psn=*' asks, which only lines with < and event do"),
    ("> REQ starting_psn=?a", 1, "asks"),
    ("> REQ starting_psn=1..2", 1, "asks"),
    ("> REQ starting_psn!=1", 1, "asks"),
    ("> REQ starting_psn=$a", 1, "$a has no value here"),
    ("< REQ starting_psn=random", 1, "nothing can be expected to be random"),
    ("< REP starting_psn=2..1", 1, "expected a number, N..M"),
    ("call", 1, "expected a call (listen,"),
    ("call fork", 1, "not fork"),
    ("event", 1, "expected an event"),
    ("event id=id", 1, "expected an event"),
    ("let", 1, "expected NAME=VALUE"),
    ("let a", 1, "expected NAME=VALUE, not `a'"),
    ("quiet", 1, "expected a number of seconds up to 600, not the end"),
    ("quiet soon", 1, "not soon"),
    ("quiet 1 2", 1, "expected a number of seconds"),
    ("quiet 601", 1, "up to 600"),
    ("+ > RTU", 1, "expected a time, as +0.5 or +0.5..2, not `+'"),
    ("+2..1 < RTU", 1, "expected a time"),
    ("+1..2 > RTU", 1, "expected one time, as +1"),
    ("+1 < RTU", 1, "expected a range, as +1..2"),
    ("+1", 1, "not the end of the line"),
    ("stock: > RTU", 1, "expected a line `why REASON' before the first that is for stock only"),
    ("why", 1, "expected a reason"),
)


class WrongScripts(unittest.TestCase):
    def test_a_mistake_is_told_with_its_line_and_what_was_expected(self):
        for text, line, complaint in MISTAKES:
            with self.subTest(text), self.assertRaises(Mistake) as raised:
                read(text)
            self.assertTrue(f".drill:{line}: " in str(raised.exception), raised.exception)
            self.assertIn(complaint, str(raised.exception))

    def test_of_any_text_it_is_said_what_is_wrong(self):
        words = ["\0", "\xff", '"', "=", *(word for text, *_ in MISTAKES for word in text.split())]
        chance = random.Random(46)
        for _ in range(2000):
            with contextlib.suppress(Mistake):
                read("".join(chance.choice(words) + chance.choice((" ", "\n", ""))
                             for _ in range(chance.randrange(1, 12))))


def message(name, **values):
    """Return a MAD with fields."""
    mad = fields().header(name, 0x1234)
    for field, text in values.items():
        field, value = fields().find(name, field.replace("__", ".")), parse(text)
        field.put(mad, value.data if field.n_bytes else value.number)
    return mad


class Messages(unittest.TestCase):
    def get(self, name, mad, field):
        return fields().find(name, field).get(mad)

    def test_what_is_set_is_read_back(self):
        mad = message("REQ", starting_psn="0xabcdef", ip__ip_version="6", ip__src_port="7471",
                      user_data='"hello"')
        self.assertEqual(self.get("REQ", mad, "starting_psn"), 0xabcdef)
        self.assertEqual(self.get("REQ", mad, "ip.src_port"), 7471)
        self.assertEqual(self.get("REQ", mad, "mad.tid"), 0x1234)
        self.assertEqual(self.get("REQ", mad, "private_data")[36:41], b"hello")
        self.assertEqual(fields().message_of(mad), "REQ")

    def test_a_field_that_the_wire_splits_is_one(self):
        mad = message("REP", vendor_id="0x123456")
        self.assertEqual(self.get("REP", mad, "vendor_id"), 0x123456)
        self.assertEqual(sum(mad[24:]), 0x12 + 0x34 + 0x56)

    def test_another_attribute_does_not_change_the_body(self):
        mad = message("REQ", starting_psn="7", mad__attr_id="0x99")
        self.assertEqual(mad[24:], message("REQ", starting_psn="7")[24:])
        self.assertIsNone(fields().message_of(mad))

    def test_a_byte_is_what_it_is_told_to_be(self):
        self.assertEqual(message("RTU", byte__255="0xa5")[255], 0xa5)


class Queue:
    """A link whose peer has sent all it will."""

    def __init__(self):
        self.mads, self.theirs = collections.deque(), set()

    def send_us(self, *mads):
        self.mads.extend((0, bytes(mad)) for mad in mads)

    def leave_agent(self):
        pass

    def wait(self, _until_s):
        return False


class Ends(unittest.TestCase):
    def test_what_an_earlier_script_left_behind_is_not_of_the_next(self):
        """Its peer destroys an id that has had no reply, late: a REJ without a remote comm id."""
        request = message("REQ", local_comm_id="7")
        link = Queue()
        link.send_us(request)
        Run(read("< REQ"), link, {}, 0, False).all("")
        link.send_us(message("REJ", local_comm_id="7", message="0", reason="4"), request,
                     message("REQ", local_comm_id="8"))
        Run(read("< REQ local_comm_id=8"), link, {}, 0, False).all("")


class Values(unittest.TestCase):
    def test_values_match_as_the_manual_says(self):
        for wanted, value, matches in (
                ("7", "7", True), ("7", "8", False), ("1..7", "7", True), ("1..7", "8", False),
                ("*", "7", True), ("?a", "7", True), ('"ab"', '"abc"', True),
                ('"abc"', '"ab"', False), ("ab", "ab", True), ("ab", "abc", False),
                ('"7"', "7", False), ("-110", "-110", True), ("hex:6162", '"ab"', True),
                ("::1", "::1", True), ("::1", "::2", False)):
            self.assertEqual(parse(wanted).matches(parse(value)), matches, (wanted, value))

    def test_a_variable_can_be_added_to(self):
        variables = {"a": of_number(40)}
        self.assertEqual(evaluate(parse("$a+2"), variables), of_number(42))
        self.assertEqual(evaluate(parse("$a-1"), variables), of_number(39))

    def test_nothing_can_be_added_to_bytes(self):
        variables = {"a": of_bytes(b"abc")}
        self.assertRaises(TypeError, evaluate, parse("$a+2"), variables)
        self.assertRaises(LookupError, evaluate, parse("$b"), variables)


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


@contextlib.contextmanager
def running_agent(*address):
    """purecm-agent, which waits for a drill. Yields (it, its port, its secret)."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with subprocess.Popen([Path(HERE["purecm"]).parent / "purecm-agent", str(port), *address],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as agent:
        try:
            secret = agent.stdout.readline().split("=")[1].strip()
            agent.stdout.readline()
            yield agent, port, secret
        finally:
            agent.kill()


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
            with running_agent(*address) as (_, port, _), socket.socket() as control:
                # 127.0.0.2 is this host's, but not 127.0.0.1
                self.assertEqual(control.connect_ex(("127.0.0.2", port)) == 0, reached)

    def test_a_drill_whose_host_vanishes_does_not_keep_it(self):
        with running_agent() as (_, port, _), \
                socket.create_connection(("127.0.0.1", port)) as control:
            look = ["ss", "-tnoH", "state", "established", "sport", "=", f":{port}"]
            while "keepalive" not in subprocess.check_output(look, text=True):
                self.assertFalse(select.select([control], [], [], 0)[0], "it was not watched")

    def said_to(self, port, *lines):
        """What the agent says to these lines, up to the first it does not answer."""
        with socket.create_connection(("127.0.0.1", port), timeout=20) as control:
            control.sendall("".join(line + "\n" for line in lines).encode())
            with contextlib.suppress(ConnectionResetError):
                return control.recv(100)
        return b""

    def test_only_who_knows_the_secret_may_ask(self):
        with running_agent() as (agent, port, secret):
            for wrong in ("listen", secret[1:] + "x", secret + "x"):
                self.assertEqual(self.said_to(port, wrong, "destroy id=none" + " " * 100), b"")
            self.assertTrue(self.said_to(port, secret).startswith(b"hello")
                            or "no event channel" in agent.stderr.readline())  # no device here


if __name__ == "__main__":
    main(__doc__)
