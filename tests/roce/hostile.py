#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""RoCE v2 between two hosts of a fabric while a third one attacks both: as fast as it can it sends
noise, packets that no peer sends, and packets in the name of the peer that no device may take. The
two exchange data by rstream, which compares all bytes, and make a connection after the other.

What nobody can tell from the peer's own packets is left out: with its address, the number of the
queue pair and the right PSN anybody may end a connection, as with hardware.

A plain run has all attacks at once; with PURECM_TEST_LONG=1 also each alone.
Prints a line per test and then "N passed, N failed, N skipped".
"""
import argparse
import os
from pathlib import Path
import random
import shlex
import shutil
import socket
import struct
import sys
import zlib

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/fabric"))

from loss import LONG, LossTests  # noqa: E402
from programs import Failure, RETRY, SKIPPED  # noqa: E402
from tshark_judge import PORT, masked  # noqa: E402

HOSTS = "10.77.0.1", "10.77.0.2"
PKEY, QP1, QP1_QKEY = 0xffff, 1, 0x80010000
SLOT_SHIFT, SLOTS, QPS = 14, 8, 6  # where queue pairs are: the first ones of the first processes
BYTES_MAX = 4000
COUNT, TIMES = 2000, 10  # of messages, of connections
UD_SEND, OTHER_SERVICES = 0x64, (0x20, 0x40, 0x60, 0x80, 0xa0, 0xc0, 0xe0)  # than RC
SERVER = f"rping -s -P & rstream -C {COUNT} -S 65536 -T v -b {HOSTS[0]}; wait"
CLIENT = """
({stream}) & it=$!
for i in $(seq {times}); do ({connect}) || exit 2; done
wait $it && echo unharmed
"""


def bth(opcode, qpn, psn, pkey=PKEY):
    return struct.pack(">BBHII", opcode, 0, pkey, qpn, psn | 0x80000000)


def some_qpn(dice):
    return dice.randrange(1, SLOTS) << SLOT_SHIFT | dice.randrange(QPS)


def some_packet(dice, opcode, pkey=PKEY):
    """Any number of bytes after the BTH: headers that lie, or are cut."""
    rest = dice.randbytes(4 * dice.randrange(dice.choice((2, 10, BYTES_MAX // 4))))
    return bth(opcode, some_qpn(dice), dice.randrange(1 << 24), pkey) + rest


# Attacks: what is sent in whose name. With the right ICRC unless there is none.
def noise(dice):
    return dice.randbytes(dice.randrange(dice.choice((30, BYTES_MAX)))), False


def of_a_stranger(dice):
    return some_packet(dice, dice.randrange(32)), True


def of_another_partition(dice):
    return some_packet(dice, dice.randrange(32), dice.randrange(0x7fff)), True


def of_another_service(dice):
    return some_packet(dice, dice.choice(OTHER_SERVICES) | dice.randrange(32)), True


def with_a_wrong_icrc(dice):
    return some_packet(dice, dice.randrange(32)), False


def to_the_connection_manager(dice):
    """MADs: some look like messages of it."""
    head = bth(UD_SEND, QP1, dice.randrange(1 << 24)) + struct.pack(">II", QP1_QKEY, QP1)
    if dice.randrange(2):
        return head + dice.randbytes(256), True
    mad = struct.pack(">BBBBHHQHHI", 1, 7, 2, 3, 0, 0, dice.randrange(1 << 64),
                      dice.randrange(0x10, 0x1c), 0, 0)
    return head + mad + dice.randbytes(256 - len(mad)), True


# Name: what makes a packet, and whether it is in the peer's name.
ATTACKS = {
    "noise": (noise, False),
    "a stranger's packets": (of_a_stranger, False),
    "the peer's, of another partition": (of_another_partition, True),
    "the peer's, of another service": (of_another_service, True),
    "the peer's, with a wrong ICRC": (with_a_wrong_icrc, True),
    "MADs": (to_the_connection_manager, False),
}


def in_ip(source, to, payload):
    """Return an IPv4 packet, with a number that the kernel leaves as it is."""
    length = 28 + len(payload)
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, length, 7, 0x4000, 64, 17, 0,
                       socket.inet_aton(source), socket.inet_aton(to))
    return head + struct.pack(">HHHH", 0xc0de, PORT, length - 20, 0) + payload


def sealed(source, to, payload):
    """Return the packet with its ICRC."""
    payload += bytes(4)
    crc = zlib.crc32(masked(in_ip(source, to, payload), payload, 0))
    return in_ip(source, to, payload[:-4] + struct.pack("<I", crc))


def attack(names, own):
    """Until we are ended."""
    dice = random.Random(1)
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as sock:
        Path(os.environ["PURECM_FABRIC"], "begun").touch()
        while True:
            make, is_peers = ATTACKS[dice.choice(names)]
            to, peer = dice.sample(HOSTS, 2)
            payload, has_icrc = make(dice)
            source = peer if is_peers else own
            packet = sealed(source, to, payload) if has_icrc else in_ip(source, to, payload)
            sock.sendto(packet, (to, 0))


def play(tests, names):
    stream = RETRY.format(f"rstream -C {COUNT} -S 65536 -T v -s {HOSTS[0]}")
    connect = RETRY.format(f"rping -c -a {HOSTS[0]} -C 2")
    client = CLIENT.format(stream=stream, connect=connect, times=TIMES)
    done = tests.run("--hosts", "3", "--gap", "0", f"a&:{SERVER}",
                     f"b:until [ -e $PURECM_FABRIC/../c/begun ]; do sleep 0.1; done; {client}",
                     "c&:" + shlex.join(["python3", __file__, "--attack", *names]))
    if done.returncode or "b| unharmed" not in done.stdout or "c|" in done.stdout:
        raise Failure(f"status {done.returncode}: {done.stdout[-2000:]}{done.stderr[-1000:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--only", default="", help="attacks whose names have this in them")
    parser.add_argument("--attack", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.attack:
        attack(arguments.attack, "10.77.0.3")
    tests = LossTests(arguments.build.resolve())
    if not shutil.which("rstream") or tests.run("--hosts", "1", "a:true").returncode:
        print("no rstream or no fabric here\n0 passed, 0 failed, 1 skipped")
        return SKIPPED
    tests.test("all attacks", play, tests, list(ATTACKS))
    for name in ATTACKS if LONG or arguments.only else ():
        if arguments.only in name:
            tests.test(name, play, tests, [name])
    shutil.rmtree(tests.folder)
    return tests.summary()


if __name__ == "__main__":
    sys.exit(main())
