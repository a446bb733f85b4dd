#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Lets tshark, which knows nothing of our tables, read random RoCE v2 packets that they encoded,
and checks each ICRC by zlib and the text of the specification alone.

A capture file of other origin can be checked as well (--capture): each packet to UDP port 4791 has
to have the right ICRC, and none may be malformed.
"""
import argparse
import collections
import itertools
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

PORT = 4791
LAST_OF_WRITE, ACK, FLUSH = 11, 17, 28  # opcodes; before the first: sends and writes
INVALID_REQUEST = 0x61
PACKETS_MAX = 64  # of a message of perftest
SKIPPED = 77
IN_HEX = {"immdt", "ieth"}  # bytes


def frames(path):
    """Yield the IP packets of a capture file (Ethernet, or "cooked" as of `-i any`)."""
    with open(path, "rb") as file:
        data = file.read()
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    link = {1: 14, 113: 16, 276: 20}[struct.unpack(order + "I", data[20:24])[0]]
    at = 24
    while at + 16 <= len(data):
        caught, length = struct.unpack(order + "II", data[at + 8:at + 16])
        if caught == length and at + 16 + caught <= len(data):
            yield data[at + 16 + link:at + 16 + caught]
        at += 16 + caught


def masked(ip, payload, number):
    """What the ICRC covers: an IP packet with this UDP payload, which routers may change."""
    is_v4 = ip[0] >> 4 == 4
    head = bytearray(ip[:(ip[0] & 15) * 4 if is_v4 else 40])
    udp = bytearray(ip[len(head):len(head) + 8])
    udp[4:8] = struct.pack(">HH", 8 + len(payload), 0xffff)
    if is_v4:
        identification = struct.unpack(">H", head[4:6])[0] + number
        head[1], head[8], head[10:12] = 0xff, 0xff, b"\xff\xff"
        head[2:6] = struct.pack(">HH", len(head) + 8 + len(payload), identification & 0xffff)
    else:
        head[0], head[1:4], head[7] = head[0] | 15, b"\xff\xff\xff", 0xff
        head[4:6] = struct.pack(">H", 8 + len(payload))
    bth = payload[:4] + b"\xff" + payload[5:-4]
    return bytes(8 * [0xff]) + bytes(head) + bytes(udp) + bth


def is_right(ip, payload, number=0):
    wanted = struct.unpack("<I", payload[-4:])[0]
    return len(payload) >= 16 and zlib.crc32(masked(ip, payload, number)) == wanted


def is_flush_of_rxe(ip, payload):
    """Whether it is a flush with the ICRC of rxe, which has the headers from the BTH on twice."""
    wanted = struct.unpack("<I", payload[-4:])[0]
    return (len(payload) >= 16 and payload[0] & 31 == FLUSH and
            zlib.crc32(masked(ip, payload, 0) + payload[:-4]) == wanted)


def udp_payload(ip):
    """Of an IP packet, if it is RoCE v2; else None."""
    if ip[0] >> 4 == 4:
        head, protocol, length = (ip[0] & 15) * 4, ip[9], struct.unpack(">H", ip[2:4])[0]
    elif ip[0] >> 4 == 6:
        head, protocol, length = 40, ip[6], 40 + struct.unpack(">H", ip[4:6])[0]
    else:
        return None
    if protocol != 17 or struct.unpack(">H", ip[head + 2:head + 4])[0] != PORT:
        return None
    return bytes(ip[head + 8:length])


def icrc_is_right(ip, sizes):
    """Whether an IP packet is RoCE v2 with the right ICRC; None if it is not RoCE v2. A capture may
    hold several that the kernel is to cut (UDP_SEGMENT).

    sizes: into which others of the capture are cut, which are tried first; they grow
    """
    payload = udp_payload(ip)
    if payload is None:
        return None
    if is_right(ip, payload):
        return True
    for size in itertools.chain(list(sizes), range(16, len(payload), 4)):
        if size < len(payload) and is_right(ip, payload[:size]):
            sizes.add(size)
            return all(is_right(ip, payload[at:at + size], at // size)
                       for at in range(0, len(payload), size))
    return False


def check_icrcs(path, with_rxe=False):
    """Return how many packets there are; raise for a wrong one. with_rxe: but for its flushes"""
    sizes = set()
    verdicts = [verdict or with_rxe and is_flush_of_rxe(ip, udp_payload(ip))
                for ip, verdict in ((ip, icrc_is_right(ip, sizes)) for ip in frames(path))
                if verdict is not None]
    if not verdicts or not all(verdicts):
        raise SystemExit(f"{path}: {verdicts.count(False)} of {len(verdicts)} ICRCs are wrong")
    return len(verdicts)


def tshark(path, *words):
    done = subprocess.run(["tshark", "-n", "-r", path, *words], capture_output=True, text=True,
                          check=False)
    if done.returncode and "cut short" not in done.stderr:  # by the end of the capture
        raise SystemExit(f"tshark: {done.stderr}")
    return done.stdout.splitlines()


def check_form(path):
    """Raise if tshark finds something malformed."""
    # From the first bytes of a payload it guesses that this is RPC, or begins with an EtherType.
    bad = tshark(path, "--disable-protocol", "rpcordma", "--disable-heuristic", "eth_over_ib", "-Y",
                 "_ws.malformed || (udp.dstport == 4791 && !infiniband)")
    if bad:
        raise SystemExit(f"{path}: tshark finds wrong: " + "\n".join(bad[:10]))


def check_fields(path, expected):
    """Compare field by field what tshark reads with what was written."""
    names = sorted({name for fields in expected for name in fields})
    words = [word for name in names for word in ("-e", "infiniband." + name)]
    rows = tshark(path, "-T", "fields", *words)
    if len(rows) != len(expected):
        raise SystemExit(f"{len(rows)} packets, not {len(expected)}")
    for number, (row, fields) in enumerate(zip(rows, expected), start=1):
        read = dict(zip(names, row.split("\t")))
        for name in names:
            value = read.get(name, "").split(",")[0]
            base = 16 if name in IN_HEX else 0
            if (int(value, base) if value else None) != fields.get(name):
                raise SystemExit(f"packet {number}: {name} is {value}, not {fields.get(name)}: "
                                 f"{fields}")


def check_refusals(path):
    """Raise for a NAK "invalid request" near whose PSN no request was sent twice as different ones.
    rxe does that when it sends a message again: docs/fabric.md."""
    opcodes, refused = collections.defaultdict(set), []
    for bth in filter(None, (udp_payload(ip) for ip in frames(path))):
        psn = int.from_bytes(bth[9:12], "big")
        if bth[0] <= LAST_OF_WRITE:
            opcodes[bth[5:8], psn].add(bth[0])
        elif bth[0] == ACK and bth[12] == INVALID_REQUEST:
            refused.append(psn)
    numbered_twice = {psn for (_, psn), sent in opcodes.items() if len(sent) > 1}
    for psn in refused:
        if not numbered_twice.intersection(range(psn - PACKETS_MAX, psn + PACKETS_MAX)):
            raise SystemExit(f"{path}: the request with PSN {psn} was refused as invalid, and was "
                             "right")


def judge_capture(path, with_rxe=False):
    """Return a line about the packets of a capture file; raise SystemExit if one is wrong."""
    n = check_icrcs(path, with_rxe)
    check_form(path)
    if with_rxe:
        check_refusals(path)
    return f"{n} packets, all well-formed, with the right ICRC"


def judge_random(program, seed):
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        printed = subprocess.run([program, file.name, seed], capture_output=True, text=True,
                                 check=True).stdout
        expected = [{name: int(value) for name, value in
                     (word.split("=") for word in line.split())}
                    for line in printed.splitlines()]
        n = check_icrcs(file.name)
        check_fields(file.name, expected)
    print(f"{n} packets\n1 passed, 0 failed, 0 skipped")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", nargs="?", help="random_packets")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--capture", help="check this file instead")
    parser.add_argument("--with-rxe", action="store_true",
                        help="its flushes may have another ICRC: docs/fabric.md")
    arguments = parser.parse_args()
    if not shutil.which("tshark"):
        print("tshark is not installed\n0 passed, 0 failed, 1 skipped")
        return SKIPPED
    if arguments.capture:
        print(judge_capture(arguments.capture, arguments.with_rxe))
    else:
        judge_random(arguments.program, arguments.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
