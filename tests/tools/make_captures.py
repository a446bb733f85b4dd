#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the captures of two stock kernels that the tests of purecm's tool read.

Boots two guests of tests/lab, plays a scene for each file of captures/ and keeps what crossed the
cable; under a minute. The tests assert what the protocol says must be in them, whoever makes them
again. (partition.pcap and kernel-6.1-partition.txt have what test_another_partition() of
kernel_lab.py makes: a drill asks a stock kernel with another P_Key.)
"""
import argparse
from pathlib import Path
import signal
import sys
import time

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lab"))
from lablib import Lab  # noqa: E402

# Only what the tool reads: no data of the programs.
CM_ONLY = "udp port 4791 and udp[8] = 0x64"
CM_ONLY_V6 = "ip6 and udp port 4791 and ip6[48] = 0x64"
# A kernel repeats an unanswered REQ after 6.1 s.
REQ_REPEATED_S = 7.5


def serve(host, command):
    """Start a server that says nothing when it is ready."""
    server = host.start(command, timeout=90)
    time.sleep(1)
    return server


def connect(lab):
    """rping, from beginning to end, twice"""
    for port in (7000, 7002):
        server = serve(lab.b, f"rping -s -a {lab.b.addr4} -p {port} -C 1")
        lab.a.run(f"rping -c -a {lab.b.addr4} -p {port} -C 1", timeout=60).check()
        server.stop()


def connect6(lab):
    """rping over IPv6"""
    server = serve(lab.b, f"rping -s -a {lab.b.addr6} -p 7000 -C 1")
    lab.a.run(f"rping -c -a {lab.b.addr6} -p 7000 -C 1", timeout=60).check()
    server.stop()


def nobody(lab):
    """rping to a port where nobody listens"""
    lab.a.run(f"rping -c -a {lab.b.addr4} -p 7001 -C 1", timeout=60)


def refused(lab):
    """a request for an address of the host that the listener is not bound to"""
    server = serve(lab.b, f"rping -s -a {lab.b.addr6} -p 7000 -C 1")
    lab.a.run(f"rping -c -a {lab.b.addr4} -p 7000 -C 1", timeout=60)
    server.stop()


def slow(lab):
    """rping to a server stopped by SIGSTOP, killed after the second REQ"""
    server = serve(lab.b, f"rping -s -a {lab.b.addr4} -p 7000 -C 1")
    server.kill(signal.SIGSTOP)
    client = lab.a.start(f"exec rping -c -a {lab.b.addr4} -p 7000 -C 1", timeout=60)
    time.sleep(REQ_REPEATED_S)
    client.stop(signal.SIGKILL)
    time.sleep(0.5)
    server.stop(signal.SIGKILL)


def lossy(lab):
    """rping while the server's first answers are lost; before that, to where nobody listens"""
    lab.a.run(f"rping -c -a {lab.b.addr4} -p 7001 -C 1", timeout=60)
    server = serve(lab.b, f"rping -s -a {lab.b.addr4} -p 7000 -C 1")
    with lab.b.netem("loss 100%"):
        client = lab.a.start(f"rping -c -a {lab.b.addr4} -p 7000 -C 1", timeout=60)
        time.sleep(3)
    client.wait(60)
    server.stop()


def silent(lab):
    """rping to a host that hangs, killed after the second REQ"""
    lab.a.run(f"rping -c -a {lab.b.addr4} -p 7001 -C 1", timeout=60)
    lab.b.freeze()
    client = lab.a.start(f"exec rping -c -a {lab.b.addr4} -p 7000 -C 1", timeout=60)
    time.sleep(REQ_REPEATED_S)
    client.stop(signal.SIGKILL)
    time.sleep(0.5)
    lab.b.thaw()


def datagram(lab):
    """udaddy, and udaddy where nobody listens"""
    server = serve(lab.b, "udaddy -c 1 -C 1")
    lab.a.run(f"udaddy -s {lab.b.addr4} -c 1 -C 1", timeout=60).check()
    server.stop()
    lab.a.run(f"udaddy -s {lab.b.addr4} -c 1 -C 1", timeout=60)


SCENES = (connect, connect6, nobody, refused, slow, lossy, datagram, silent)


def main():
    """Play the scenes that were named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path, help="where to write: captures")
    parser.add_argument("scene", nargs="*", help="only these")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    with Lab({"a": "stock", "b": "stock"}) as lab:
        for scene in SCENES:
            if args.scene and scene.__name__ not in args.scene:
                continue
            only = CM_ONLY_V6 if scene is connect6 else CM_ONLY
            with lab.a.capture(args.folder / f"{scene.__name__}.pcap", only):
                scene(lab)
            print(f"{scene.__name__:12}{scene.__doc__}", flush=True)


if __name__ == "__main__":
    main()
