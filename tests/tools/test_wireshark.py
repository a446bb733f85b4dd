#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The dissector for Wireshark, in a real tshark or sharkd: its fields are those written and those
that tshark's own dissector reads; its connections, states and advice are those of purecm.

Ends with a line "N passed, N failed, N skipped".
"""
from contextlib import closing
import glob
import io
import json
import os
from pathlib import Path
import random
import struct
import subprocess
import sys
import tempfile
import unittest

import mads
from running import HERE, capture, main, purecm
import test_explain
import test_judged
import test_links

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "judge"))
import tshark_judge  # noqa: E402

SEED = 5
MANGLED = 600
CAPTURES = ("connect", "connect6", "datagram", "lossy", "nobody", "refused", "silent", "slow")
ADVICE = ("what", "cause", "remedy")
STEP = ("connection", "nth", "from", "active", "passive", "service", "outcome", "message")
STATES = ("active_state", "passive_state")
NOTES = ("copy", "stray")
TRUE = object()
PCAP_HEADER = 24  # bytes before the first packet

# Captures of InfiniBand are ERF records to Wireshark, which does not know the link type of its own.
PACKETS = [(link, packet) for _, link, packet in test_links.PACKETS
           if link not in (mads.INFINIBAND, mads.ERF)]
# Packet, type of the record, extension headers.
RECORDS = [(packet, 21, extensions) for extensions in (0, 2)
           for _, link, packet in test_links.PACKETS if link == mads.INFINIBAND]
RECORDS += [(mads.ethernet(mads.A, mads.B, mads.req()), 2, 0)]

# Offsets are those of tests/unit/lib/rsocket/test_wire.c, whose bytes these are.
RSOCKET = bytes.fromhex("01020180000000811122334455667788aabbccdd00000002"
                        "1020304050607080a1b1c1d100010000")

# What neither tshark nor a kernel can judge, transcribed a second time from the tables of the
# specification: message -> field, byte of the MAD, bit in it, bits.
SPECIFIED = {
    "LAP": (("local_comm_id", 24, 0, 32), ("remote_comm_id", 28, 0, 32), ("remote_qpn", 36, 0, 24),
            ("remote_cm_response_timeout", 39, 0, 5), ("alternate.local_lid", 44, 0, 16),
            ("alternate.remote_lid", 46, 0, 16), ("alternate.local_gid", 48, 0, 128),
            ("alternate.remote_gid", 64, 0, 128), ("alternate.flow_label", 80, 0, 20),
            ("alternate.traffic_class", 83, 0, 8), ("alternate.hop_limit", 84, 0, 8),
            ("alternate.packet_rate", 85, 2, 6), ("alternate.sl", 86, 0, 4),
            ("alternate.subnet_local", 86, 4, 1), ("alternate.local_ack_timeout", 87, 0, 5),
            ("private_data", 88, 0, 1344)),
    "APR": (("local_comm_id", 24, 0, 32), ("remote_comm_id", 28, 0, 32), ("info_bytes", 32, 0, 8),
            ("status", 33, 0, 8), ("info", 36, 0, 576), ("private_data", 108, 0, 1184))}


def alone(words, home="/nonexistent"):
    """Return a command, and its environment, in which Wireshark finds no dissector but those of
    home: purecm's may be installed, and two that are equal are an error."""
    hide = "".join(f"mount --bind /dev/null {file} && " for file in
                   glob.glob("/usr/lib/*/wireshark/plugins/purecm.lua"))
    if hide:
        words = ["unshare", "-m" if os.geteuid() == 0 else "-Urm", "sh", "-c", hide + 'exec "$@"',
                 "sh", *words]
    return words, {**os.environ, "HOME": str(home)}


def tshark(path, *args):
    """Run it with the dissector. Return its standard output; an error of Lua is one of the test."""
    words, env = alone([HERE["tshark"], "-n", f"-Xlua_script:{HERE['dissector']}", "-r", path,
                        *args])
    done = subprocess.run(words, capture_output=True, check=False, timeout=600, env=env)
    errors = done.stderr.decode()
    if done.returncode not in (0, 2) or "lua" in errors.lower():
        raise AssertionError(errors)
    return done.stdout.decode()


def flat(pairs):
    """Return {name: value} of all fields of a JSON object, however deep; of two the first."""
    found = {}
    for name, value in pairs:
        found.setdefault(name, TRUE if isinstance(value, (dict, list)) else value)
        for inner, its in value.items() if isinstance(value, dict) else ():
            found.setdefault(inner, its)
    return found


def packets(path, *args):
    """Return of each packet {field: value}, of all dissectors."""
    read = json.loads(tshark(path, "-T", "json", *args), object_pairs_hook=flat)
    for packet in read:
        if "_ws.lua.error" in packet:
            raise AssertionError(packet["_ws.lua.error"])
    return read


def read_capture(made, *args):
    """Return what packets() does; tshark reads a pipe only once."""
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(made)
        file.flush()
        return packets(file.name, *args)


class Sharkd:
    """Wireshark without its window: one process reads many captures, one after the other, each
    from the beginning and then packet by packet."""

    COLUMNS = ("_ws.lua.error",
               *("ibcm." + name for name in (*STEP, *STATES, *NOTES, *ADVICE)))

    def __init__(self, folder):
        self.capture = folder / "capture.pcap"
        plugins = folder / ".local/lib/wireshark/plugins"
        plugins.mkdir(parents=True)
        (plugins / "purecm.lua").symlink_to(HERE["dissector"].absolute())
        self.errors = (folder / "errors").open("w+b")
        words, env = alone(["sharkd", "-"], folder)
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, env=env)

    def ask(self, method, **params):
        asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self.process.stdin.write(json.dumps(asked).encode() + b"\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "result" not in answer:
            raise AssertionError(answer)
        return answer["result"]

    def packets(self, made):
        """Return of each packet {field: value}, of the fields that have one."""
        self.capture.write_bytes(made)
        self.ask("load", file=str(self.capture))
        frames = self.ask("frames", **{f"column{n}": name + ":1"
                                       for n, name in enumerate(self.COLUMNS)})
        read = {}
        for frame in frames:
            named = zip(self.COLUMNS, frame["c"])
            read[frame["num"]] = packet = {name: value for name, value in named if value}
            if "_ws.lua.error" in packet:
                raise AssertionError(packet)
        return read

    def close(self):
        self.process.communicate(timeout=600)
        self.errors.seek(0)
        said = self.errors.read().decode()
        self.errors.close()
        if "lua" in said.lower():
            raise AssertionError(said)


def read_messages(made):
    """Return what packets() does, of MADs from one host to another."""
    return read_capture(mads.story(*((n, ">", one) for n, one in enumerate(made))))


def value_of(packet, message, name):
    return packet.get(f"ibcm.{message.lower()}.{name}")


def same(name, said, theirs):
    """Whether a field has the value of the generator, or of another dissector."""
    if name.endswith(("gid", "_addr")):
        return tshark_judge.same_bytes(test_judged.raw(said).ljust(16, b"\0").hex(), theirs)
    if name.endswith(("ari", "private_data", "info")):
        return said.replace(":", "") == theirs.replace(":", "")
    return int(said, 0) == int(theirs, 0)


class Fields(test_judged.WithFolder):
    def test_every_field_of_every_message_is_as_it_was_written(self):
        path, made = self.random(21)
        read = packets(path)
        self.assertEqual([packet["ibcm.message"] for packet in read], [name for name, _ in made])
        for packet, (message, fields) in zip(read, made):
            for name, written in fields.items():
                part, _, field = name.rpartition(".") if name.startswith(("mad.", "cma.")) else (
                    message, "", name)
                said = value_of(packet, part, field)
                self.assertIsNotNone(said, (message, name))
                self.assertTrue(same(name, said, written), (message, name, said, written))

    def test_what_tshark_knows_is_equal_field_by_field(self):
        judged = set()
        path, _ = self.random(22)
        bodies = [capture(name).read_bytes()[PCAP_HEADER:] for name in CAPTURES]
        for packet in read_capture(path.read_bytes() + b"".join(bodies)):
            self.judge(packet, judged)
        for message in test_judged.KNOWN:
            never = [(part, name) for part, name, _ in test_judged.tables_of(message)
                     if (message, part, name) not in judged and part == "fields"]
            self.assertEqual(never, [], message)

    def judge(self, packet, judged):
        """Compare what both dissectors say of one packet."""
        message = packet["ibcm.message"]
        for part, name, known in test_judged.tables_of(message):
            said = value_of(packet, message if part == "fields" else part, name)
            if said is None or name in tshark_judge.TSHARK_ERRORS:
                continue
            for field in (f"infiniband.{field}" for field in known):
                theirs = packet.get(field)
                if theirs is None or theirs is TRUE or field.endswith("ip_cm"):
                    continue
                judged.add((message, part, name))
                ours = int(said, 0) if name.endswith("flow_label") else said
                equal = test_judged.same(name, ours, theirs) if not isinstance(
                    ours, str) or name.endswith(("gid", "_addr")) else same(name, ours, theirs)
                self.assertTrue(equal, (message, name, said, field, theirs))

    def test_mra_and_sidr_have_the_values_of_the_golden_bytes(self):
        told = [test_judged.golden(name) for name, *_ in test_judged.GOLDEN_BITS]
        read = read_messages(told)
        for packet, made, (name, field, first, bits) in zip(read, told, test_judged.GOLDEN_BITS):
            expected = int.from_bytes(made, "big") >> (len(made) * 8 - first - bits)
            said = value_of(packet, packet["ibcm.message"], field)
            self.assertEqual(int(said, 0), expected % (1 << bits), (name, field))

    def test_lap_and_apr_have_the_bits_that_the_specification_gives_them(self):
        dice = random.Random(SEED)
        told = [mads.mad(message, b24=dice.randbytes(232)) for message in SPECIFIED]
        for (message, table), made, packet in zip(SPECIFIED.items(), told, read_messages(told)):
            for name, byte, bit, bits in table:
                there = int.from_bytes(made, "big") >> (2048 - byte * 8 - bit - bits)
                there %= 1 << bits
                said = value_of(packet, message, name)
                self.assertIsNotNone(said, (message, name))
                written = f"{there:0{bits // 4}x}" if bits > 32 else str(there)
                self.assertTrue(same(name, said, written), (message, name, said, written))

    def test_ece_is_shown_with_the_messages_that_bear_it(self):
        made = bytearray(mads.rep())
        made[20:24] = mads.u32(0x89abcdef)
        made[24 + 15], made[24 + 19], made[24 + 23] = 0x12, 0x34, 0x56
        [packet] = read_messages([bytes(made)])
        self.assertEqual(int(packet["ibcm.ece.vendor_id"], 0), 0x123456)
        self.assertEqual(int(packet["ibcm.ece.options"], 0), 0x89abcdef)


class PrivateData(unittest.TestCase):
    def test_an_ip_cm_header_has_its_addresses(self):
        [packet] = read_messages([mads.req(src=mads.A, dst=mads.B)])
        self.assertEqual((packet["ibcm.cma.src_ip4"], packet["ibcm.cma.dst_ip4"],
                          packet["ibcm.cma.src_port"]), (mads.A, mads.B, "40000"))

    def test_an_rsocket_is_known_by_its_form_in_req_and_rep(self):
        header = mads.cma(mads.A, mads.B)
        rep = bytearray(mads.rep())
        rep[60:60 + len(RSOCKET)] = RSOCKET
        for packet in read_messages([mads.req(header=header + RSOCKET), bytes(rep)]):
            self.assertEqual(int(value_of(packet, "rsocket", "credits"), 0), 384)
            self.assertEqual(int(value_of(packet, "rsocket", "half_bytes"), 0), 65536)
            self.assertEqual(int(value_of(packet, "rsocket", "table_addr"), 0),
                             0x1122334455667788)

    def test_other_private_data_is_no_rsocket(self):
        dice = random.Random(SEED)
        read = read_messages([mads.req(comm_id=n + 1, header=mads.cma(mads.A, mads.B) +
                                       dice.randbytes(56)) for n in range(200)])
        self.assertEqual([packet for packet in read if "ibcm.rsocket" in packet], [])


def recorded(module, asker):
    """Return the captures that the tests of a module ask about; these tests have to pass."""
    asked, ask = [], getattr(module, asker)

    def record(made):
        asked.append(made)
        return ask(made)

    setattr(module, asker, record)
    try:
        done = unittest.TextTestRunner(stream=io.StringIO()).run(
            unittest.defaultTestLoader.loadTestsFromModule(module))
    finally:
        setattr(module, asker, ask)
    if not done.wasSuccessful():
        raise AssertionError((done.failures + done.errors)[0][1])
    return asked


def unreachable(frame):
    """Return the ICMP error by which a host without RoCE answers a frame."""
    packet = bytearray(mads.ip(mads.B, mads.A, struct.pack("!BBHI", 3, 3, 0, 0) + frame[14:]))
    packet[9] = 1  # the protocol
    return frame[:14] + packet


def stories():
    """Return all captures that purecm and Wireshark read alike, by name."""
    found = {name: capture(name).read_bytes() for name in CAPTURES}
    for number, made in enumerate(recorded(test_explain, "explained")):
        found[f"explain {number}"] = made
    request = mads.ethernet(mads.A, mads.B, mads.req())
    found["captured twice"] = mads.pcap([(at, request) for at in (0, 0.0001, 1)])
    found["quoted"] = mads.pcap([(0, request), (0.1, unreachable(request)), (1, request)])
    records = [(mads.ERF, mads.erf(*record)) for record in RECORDS]
    for number, (link, packet) in enumerate(PACKETS + records):
        found[f"packet {number}"] = mads.pcap([(0, packet)], link)
    return found


class Connections(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stories = stories()
        with tempfile.TemporaryDirectory() as folder, closing(Sharkd(Path(folder))) as sharkd:
            cls.read = {name: sharkd.packets(made) for name, made in cls.stories.items()}

    def test_they_are_those_of_trace(self):
        steps = 0
        for name, made in self.stories.items():
            done = purecm("trace", "--json", "-r", "-", stdin=made)
            expected = [json.loads(line) for line in done.stdout.decode().splitlines()]
            for said in expected:
                if "connection" in said:
                    steps += 1
                    self.compare(name, said, self.read[name][said["packet"]])
        self.assertGreater(steps, 200)

    def compare(self, name, said, packet):
        """Hold one packet against an object of trace."""
        for member in STEP:
            self.assertEqual(packet["ibcm." + member], str(said[member]), (name, said["packet"]))
        self.assertEqual("ibcm.copy" in packet, said["copy"], name)
        self.assertEqual("ibcm.stray" in packet, said["ignored"], name)
        for member in STATES:
            if member in said:
                self.assertEqual(packet["ibcm." + member], said[member], (name, said["packet"]))

    def test_their_advice_is_that_of_explain(self):
        failed = 0
        for name, made in self.stories.items():
            done = purecm("explain", "--json", "-r", "-", stdin=made)
            expected = {said["connection"]: [said[part] for part in ADVICE]
                        for said in map(json.loads, done.stdout.decode().splitlines())
                        if said["failed"]}
            failed += len(expected)
            said = {int(packet["ibcm.connection"]): [packet["ibcm." + part] for part in ADVICE]
                    for packet in self.read[name].values() if "ibcm.what" in packet}
            self.assertEqual(said, expected, name)
        self.assertGreater(failed, 40)

    def test_a_refusal_is_explained_when_the_file_is_read_once(self):
        shown = tshark(capture("nobody"), "-Y", "ibcm.failed", "-T", "fields", "-e", "frame.number",
                       "-e", "ibcm.what")
        self.assertIn("answers that nobody listens at TCP port 7001 (REJ 8,", shown)

    def test_the_list_has_the_addresses_of_the_packets(self):
        """Wireshark's own dissector puts the LID of a REQ there, which RoCE does not have."""
        shown = tshark(capture("nobody"), "-T", "fields", "-e", "_ws.col.Source",
                       "-e", "_ws.col.Destination")
        self.assertEqual(shown.split()[:4], ["10.77.0.1", "10.77.0.2", "10.77.0.2", "10.77.0.1"])

    def test_a_connection_is_followed_by_its_comm_ids(self):
        shown = tshark(capture("connect"), "-Y", "ibcm.connection == 2", "-T", "fields",
                       "-e", "ibcm.message")
        self.assertEqual(shown.split(), ["REQ", "REP", "RTU", "DREQ", "DREP"])

    def test_a_lookup_moves_its_ends_too(self):
        read = packets(capture("datagram"))
        self.assertEqual([(packet["ibcm.active_state"], packet["ibcm.passive_state"])
                          for packet in read[:2]],
                         [("SIDR_REQ_SENT", "SIDR_REQ_RCVD"), ("IDLE", "SIDR_REP_SENT")])

    def test_a_request_and_its_answer_name_each_other(self):
        request, answer = packets(capture("connect"), "-2", "-c", "2")
        self.assertEqual((request["ibcm.answer_in"], answer["ibcm.request_in"]), ("2", "1"))


class Mangled(unittest.TestCase):
    def take(self, made):
        """Have Wireshark read a capture twice, as its window does, with all that it can show."""
        with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
            file.write(made)
            file.flush()
            shown = tshark(file.name, "-2", "-V", "-T", "fields", "-e", "frame.number",
                           "-e", "_ws.lua.error")
        self.assertEqual([line for line in shown.splitlines() if len(line.split()) > 1], [])
        return len(shown.splitlines())

    def test_a_packet_that_ends_anywhere_does_no_harm(self):
        ends = [(link, packet[:n]) for link, packet in PACKETS for n in range(len(packet))]
        ends += [(mads.ERF, mads.erf(packet[:n], *more))
                 for packet, *more in RECORDS for n in range(len(packet))]
        self.assertEqual(self.take(mads.pcapng(ends)), len(ends))

    def test_a_message_that_was_cut_says_so(self):
        [packet] = read_capture(mads.pcap([(0, mads.ethernet(mads.A, mads.B, mads.req())[:200])]))
        self.assertIn("ibcm.cut", packet)

    def test_random_bytes_do_no_harm(self):
        dice = random.Random(SEED)
        made = [(link, test_links.mangle(dice, packet)) for link, packet in PACKETS
                for _ in range(MANGLED)]
        made += [(mads.ERF, mads.erf(test_links.mangle(dice, packet), *more))
                 for packet, *more in RECORDS for _ in range(MANGLED // 3)]
        self.assertEqual(self.take(mads.pcapng(made)), len(made))

    def test_random_connections_do_no_harm(self):
        dice = random.Random(SEED)
        told = [(n / 10, dice.choice("<>"),
                 test_links.mangle(dice, dice.choice(test_links.ALL_MESSAGES)))
                for n in range(MANGLED)]
        self.assertEqual(self.take(mads.story(*told)), MANGLED)

    def test_random_messages_are_followed_as_purecm_follows_them(self):
        dice = random.Random(SEED)
        told = [(n / 10, dice.choice("<>"), dice.choice(test_links.ALL_MESSAGES))
                for n in range(MANGLED)]
        made = mads.story(*told)
        done = purecm("trace", "--json", "-r", "-", stdin=made)
        read = read_capture(made)
        for said, packet in zip(map(json.loads, done.stdout.decode().splitlines()), read):
            Connections.compare(self, "random", said, packet)

    def test_a_message_of_another_version_is_marked(self):
        made = bytearray(mads.req())
        made[2] = 9
        [packet] = read_messages([bytes(made)])
        self.assertIn("ibcm.unknown", packet)


if __name__ == "__main__":
    main(__doc__, random_pcap=str, golden=Path, dissector=Path, tshark=str)
