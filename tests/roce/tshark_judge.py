#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Lets tshark, which knows nothing of our tables, read random RoCE v2 packets that they encoded,
and checks each ICRC by zlib and the text of the specification alone.

A capture file of other origin can be checked as well (--capture): each packet to UDP port 4791 has
to have the right ICRC, and none may be malformed.
"""
import argparse
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

PORT = 4791
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
        if caught == length:
            yield data[at + 16 + link:at + 16 + caught]
        at += 16 + caught


def icrc_is_right(ip):
    """Whether an IP packet is RoCE v2 with the right ICRC; None if it is not RoCE v2."""
    ip = bytearray(ip)
    if ip[0] >> 4 == 4:
        head, protocol = (ip[0] & 15) * 4, ip[9]
        del ip[struct.unpack(">H", ip[2:4])[0]:]
        ip[1], ip[8], ip[10:12] = 0xff, 0xff, b"\xff\xff"
    elif ip[0] >> 4 == 6:
        head, protocol = 40, ip[6]
        del ip[40 + struct.unpack(">H", ip[4:6])[0]:]
        ip[0], ip[1:4], ip[7] = ip[0] | 15, b"\xff\xff\xff", 0xff
    else:
        return None
    if protocol != 17 or struct.unpack(">H", ip[head + 2:head + 4])[0] != PORT:
        return None
    ip[head + 6:head + 8] = b"\xff\xff"
    ip[head + 8 + 4] = 0xff
    wanted = struct.unpack("<I", ip[-4:])[0]
    return zlib.crc32(bytes(8 * [0xff]) + ip[:-4]) == wanted


def check_icrcs(path):
    """Return how many packets there are; raise for a wrong one."""
    verdicts = [verdict for verdict in map(icrc_is_right, frames(path)) if verdict is not None]
    if not verdicts or not all(verdicts):
        raise SystemExit(f"{path}: {verdicts.count(False)} of {len(verdicts)} ICRCs are wrong")
    return len(verdicts)


def tshark(path, *words):
    done = subprocess.run(["tshark", "-n", "-r", path, *words], capture_output=True, text=True,
                          check=True)
    return done.stdout.splitlines()


def check_form(path):
    """Raise if tshark finds something malformed."""
    bad = tshark(path, "-Y", "_ws.malformed || (udp.dstport == 4791 && !infiniband)")
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
    arguments = parser.parse_args()
    if not shutil.which("tshark"):
        print("tshark is not installed\n0 passed, 0 failed, 1 skipped")
        return SKIPPED
    if arguments.capture:
        n = check_icrcs(arguments.capture)
        check_form(arguments.capture)
        print(f"{n} packets, all well-formed, with the right ICRC")
    else:
        judge_random(arguments.program, arguments.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
