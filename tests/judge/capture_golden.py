#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Captures what two stock kernels say to each other, as golden MADs for test_golden.

Boots two guests of tests/lab with the kernel's connection manager, lets stock programs play a few
scenes, and writes the first message of each kind in a scene to SCENE_MESSAGE.hex.
"""
import argparse
import pathlib
import signal
import struct
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lab"))
from lablib import Lab  # noqa: E402

MESSAGES = {0x10: "req", 0x11: "mra", 0x12: "rej", 0x13: "rep", 0x14: "rtu", 0x15: "dreq",
            0x16: "drep", 0x17: "sidr_req", 0x18: "sidr_rep", 0x19: "lap", 0x1a: "apr"}
MAD_BYTES = 256
ROCE_PORT = 4791
UDP_BYTES, BTH_BYTES, DETH_BYTES = 8, 12, 8
UD_SEND_ONLY = 0x64
CLASS_CM = 7
# A kernel repeats an unanswered REQ after 6.1 s.
REQ_REPEATED_S = 7.5


def packets(capture):
    """The Ethernet frames of a pcap file."""
    at = 24
    while at + 16 <= len(capture):
        size = struct.unpack_from("<I", capture, at + 8)[0]
        yield capture[at + 16:at + 16 + size]
        at += 16 + size


def udp_of(frame):
    """The UDP datagram of a frame, or nothing."""
    ether_type = struct.unpack_from("!H", frame, 12)[0]
    if ether_type == 0x0800 and frame[23] == 17:
        return frame[14 + (frame[14] & 0xf) * 4:]
    if ether_type == 0x86dd and frame[20] == 17:
        return frame[54:]
    return b""


def mad_of(frame):
    """The CM MAD in a frame, or nothing."""
    udp = udp_of(frame)
    mad_at = UDP_BYTES + BTH_BYTES + DETH_BYTES
    if len(udp) < mad_at + MAD_BYTES or struct.unpack_from("!H", udp, 2)[0] != ROCE_PORT:
        return b""
    mad = udp[mad_at:mad_at + MAD_BYTES]
    return mad if udp[UDP_BYTES] == UD_SEND_ONLY and mad[1] == CLASS_CM else b""


def first_of_each(capture):
    found = {}
    for frame in packets(capture):
        mad = mad_of(frame)
        if mad:
            found.setdefault(MESSAGES[struct.unpack_from("!H", mad, 16)[0]], mad)
    return found


def serve(host, command, delay_s=1.0):
    """Starts a server that says nothing when it is ready."""
    server = host.start(command, timeout=60)
    time.sleep(delay_s)
    return server


def connect(client, server, address):
    """A connection from beginning to end."""
    target = serve(server, "rping -s -a %s -p 7000 -C 1" % address)
    client.run("rping -c -a %s -p 7000 -C 1" % address, timeout=30).check()
    target.stop()


def connect_ipv4(client, server):
    """rping -c -p 7000 -C 1, over IPv4"""
    connect(client, server, server.addr4)


def connect_ipv6(client, server):
    """rping -c -p 7000 -C 1, over IPv6"""
    connect(client, server, server.addr6)


def nobody(client, server):
    """rping -c -p 7001, where nobody listens"""
    client.run("rping -c -a %s -p 7001 -C 1" % server.addr4, timeout=30)


def slow(client, server):
    """rping -c -p 7000 to a server stopped by SIGSTOP; killed after the second REQ"""
    target = serve(server, "rping -s -a %s -p 7000 -C 1" % server.addr4)
    target.kill(signal.SIGSTOP)
    caller = client.start("exec rping -c -a %s -p 7000 -C 1" % server.addr4)
    time.sleep(REQ_REPEATED_S)
    caller.stop(signal.SIGKILL)
    time.sleep(0.5)
    target.stop(signal.SIGKILL)


def datagram(client, server):
    """udaddy -c 1 -C 1"""
    target = serve(server, "udaddy -c 1 -C 1")
    client.run("udaddy -s %s -c 1 -C 1" % server.addr4, timeout=30).check()
    target.stop()


def datagram_nobody(client, server):
    """udaddy -c 1 -C 1, where nobody listens"""
    client.run("udaddy -s %s -c 1 -C 1" % server.addr4, timeout=30)


SCENES = (connect_ipv4, connect_ipv6, nobody, slow, datagram, datagram_nobody)


def write_hex(path, comment, mad):
    lines = ["# " + comment, "# made by: capture_golden.py golden"]
    for at in range(0, MAD_BYTES, 16):
        lines.append(mad[at:at + 16].hex(" ", 4))
    path.write_text("\n".join(lines) + "\n")


def play(scene, lab, folder, kernel):
    with tempfile.TemporaryDirectory() as temporary:
        capture = pathlib.Path(temporary) / "scene.pcap"
        with lab.a.capture(capture):
            scene(lab.a, lab.b)
        found = first_of_each(capture.read_bytes())
    for message, mad in found.items():
        comment = "%s of Linux %s: %s" % (message.upper(), kernel, scene.__doc__)
        write_hex(folder / ("%s_%s.hex" % (scene.__name__, message)), comment, mad)
    print("%-16s %s" % (scene.__name__, " ".join(found)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path, help="where to write: golden")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    with Lab({"a": "stock", "b": "stock"}) as lab:
        kernel = lab.a.run("uname -r").stdout.strip()
        for scene in SCENES:
            play(scene, lab, args.folder, kernel)


if __name__ == "__main__":
    main()
