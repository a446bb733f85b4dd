#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""purecm trace, explain and stat --kernel, and top, on two stock hosts of the lab: faults are made
there, and the cause is to be named at the end where the program runs.

Ends with a line "N passed, N failed, N skipped"; skipped where QEMU is missing.
"""
import argparse
from contextlib import contextmanager
import json
import os
from pathlib import Path
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))
from lablib import Lab  # noqa: E402
from lablib.release import RELEASES  # noqa: E402
import mads  # noqa: E402
from running import run_named  # noqa: E402

INSTANCES = "/sys/kernel/tracing/instances"
# A listener that takes no event.
BUSY = r"""python3 -c "
import ctypes, socket, struct, time
library = ctypes.CDLL('librdmacm.so.1')
library.rdma_create_event_channel.restype = ctypes.c_void_p
channel, cm_id = ctypes.c_void_p(library.rdma_create_event_channel()), ctypes.c_void_p()
library.rdma_create_id(channel, ctypes.byref(cm_id), None, 0x106)
address = struct.pack('<H', 2) + struct.pack('>H', 7174) + socket.inet_aton('{}') + bytes(8)
library.rdma_bind_addr(cm_id, address)
library.rdma_listen(cm_id, {})
time.sleep(1000)
" """
BACKLOG_OF_ONE, BACKLOG = BUSY.format("{}", 1), BUSY.format("{}", 16)

# Sends a frame twice.
SEND = r"""python3 -c "
import socket, sys, time
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
link.bind(('eth0', 0))
frame = bytes.fromhex('{}')
link.send(frame)
time.sleep(1)
link.send(frame)
" """

HERE = {}  # what main() was told, and the lab


class Told:
    """What a command says of the kernel while a block runs; done when that ends."""

    running = None
    text = note = ""

    @property
    def objects(self):
        return [json.loads(line) for line in self.text.splitlines()]


@contextmanager
def told_by(host, command, *args):
    """Yield a Told, filled when the block ends."""
    told = Told()
    words = " ".join(("exec", HERE["purecm"], command, "--kernel", *args))
    told.running = running = host.start(words, timeout=300)
    host.wait_for(f"grep -q 1 {INSTANCES}/purecm-{running.pid}/events/ib_mad/"
                  "ib_mad_recv_done_handler/enable", timeout=20, process=running)
    try:
        yield told
    finally:
        running.kill(signal.SIGINT)
        done = running.wait(30)
    told.text, told.note = done.stdout, done.stderr
    if done.status or "cannot be traced" in done.stderr:
        raise AssertionError(f"status {done.status}: {done.output}")


@contextmanager
def listening(host, command="rping -s -P -a {}"):
    """A server on a host; it is stopped at the end."""
    server = host.start("exec " + command.format(host.addr4), timeout=300)
    try:
        host.wait_for("rdma resource show cm_id | grep -q LISTEN", timeout=20, process=server)
        yield server
    finally:
        server.stop()


def messages(told):
    return [one["message"] for one in told.objects]


class Kernel(unittest.TestCase):
    def setUp(self):
        self.a, self.b = HERE["lab"].a, HERE["lab"].b

    def connect(self, *more, status=0, timeout=60):
        done = self.b.run(["rping", "-c", "-a", self.a.addr4, "-C", "1", *more], timeout=timeout)
        self.assertEqual(done.status == 0, status == 0, done.output)
        return done

    def know_each_other(self):
        """So that it is not ARP that a fault keeps from working."""
        self.b.wait_for("$(command -v ping || echo busybox ping) -c 1 " + self.a.addr4, timeout=20)

    def fails_with(self, told, outcome, *texts):
        """Check that one connection has failed, and what is said of it."""
        failed = [one for one in told.objects if one["failed"]]
        self.assertEqual([one["outcome"] for one in failed], [outcome], told.text)
        said = " ".join(failed[0][part] for part in ("what", "cause", "remedy"))
        for text in texts:
            self.assertIn(text, said)

    def test_both_ends_see_the_same_messages(self):
        with listening(self.a), told_by(self.a, "trace", "--json") as server, \
                told_by(self.b, "trace", "--json") as client:
            self.connect()
            self.b.wait_for("! rdma resource show cm_id | grep -q .", timeout=20)
        self.assertEqual(messages(client), ["REQ", "REP", "RTU", "DREQ", "DREP"])
        self.assertEqual(messages(server), messages(client))
        self.assertEqual({one["src"] for one in client.objects},
                         {one["src"] for one in server.objects})

    def repeat_to_nobody(self, live):
        """Return a client whose first REQ the trace has seen repeated."""
        client = self.b.start(["rping", "-c", "-a", self.a.addr4, "-C", "1"], timeout=90)
        live.running.wait_for_output("REQ .*repeated: number 2", timeout=30)
        return client

    def test_what_is_sent_again_is_seen(self):
        self.know_each_other()
        with listening(self.a), told_by(self.b, "explain", "--json") as told, \
                told_by(self.b, "trace") as live:
            with self.a.netem("loss 100%"):
                client = self.repeat_to_nobody(live)
            self.assertTrue(client.wait(60).ok)
            live.running.wait_for_output("DREP", timeout=20)
        self.assertEqual(told.objects[0]["messages"]["REQ"], 2, told.text)
        self.assertIn("The REQ was sent 2 times", told.objects[0]["time"])

    def test_no_listener(self):
        with told_by(self.a, "trace") as server, told_by(self.b, "explain", "--json") as told:
            self.connect("-p", "99", status=1)
        self.fails_with(told, "rejected", "nobody listens at TCP port 99", "does not run")
        self.assertIn("refused that no program here has seen", server.note)

    def test_refused_by_the_program(self):
        """A server for one connection destroys what came later when it ends: both see REJ 28."""
        client = ["rping", "-c", "-a", self.a.addr4, "-C", "1000000"]
        with told_by(self.a, "explain", "--json") as server, \
                told_by(self.b, "explain", "--json") as told:
            with listening(self.a, "rping -s -a {}"):
                one = self.b.start(client, timeout=90)
                self.b.wait_for("rdma resource show qp | grep -q RTS.*rping", timeout=20)
                other = self.b.start(client, timeout=90)
                self.a.wait_for("test $(rdma resource show cm_id | grep -c CONNECT) = 2",
                                timeout=20)
            self.assertFalse(other.wait(60).ok)
            one.stop()
        self.fails_with(told, "rejected", "REJ 28", "rdma_reject")
        self.fails_with(server, "rejected", "REJ 28")

    def test_a_full_backlog(self):
        """The kernel drops the request in silence. The server's end says so, the client's may."""
        with listening(self.a, BACKLOG_OF_ONE), told_by(self.a, "trace", "--json") as server, \
                told_by(self.b, "explain", "--json") as told:
            clients = [self.b.start(["rping", "-c", "-a", self.a.addr4, "-C", "1"], timeout=90)]
            server.running.wait_for_output('"REQ"', timeout=20)
            clients += [self.b.start(clients[0].command, timeout=90)]
            server.running.wait_for_output("backlog is full", timeout=20)
            server.running.wait_for_output('"nth":2', timeout=20)
            for client in clients:
                client.stop()
        self.assertIn("for port 7174 was dropped: its listener's backlog is full", server.note)
        causes = [one["cause"] for one in told.objects]
        self.assertTrue(any("listener's backlog is full" in cause for cause in causes), told.text)

    def test_a_slow_server(self):
        """It takes no event: its kernel asks for patience, and the client's program ends first."""
        with listening(self.a, BACKLOG), told_by(self.a, "explain", "--json") as server, \
                told_by(self.b, "explain", "--json") as told, told_by(self.b, "trace") as live:
            client = self.b.start(["rping", "-c", "-a", self.a.addr4, "-C", "1"], timeout=90)
            live.running.wait_for_output("MRA", timeout=60)
            client.stop()
        self.fails_with(told, "gave-up", "MRA", "slow to accept it", "rdma_accept")
        self.fails_with(server, "gave-up", "RDMA_CM_EVENT_CONNECT_REQUEST and rdma_accept()")

    def refused_path(self, field):
        """Let the other host ask with a path that is not this one's, which no program there can:
        rxe has one partition and GIDs of one type. Return what its capture and this kernel say."""
        with listening(self.a), told_by(self.a, "trace") as told:
            self.b.mode("purecm")
            try:
                self.know_each_other()
                script = f"> REQ {field}\n< REJ reason=12\n"
                self.b.write_file("/tmp/refused.drill", script.encode())
                with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
                    with self.b.capture(file.name):
                        self.b.run([HERE["purecm"], "drill", "-p", "7174", "-n", "stock", "-t",
                                    self.a.addr4, "/tmp/refused.drill"], timeout=60, check=True)
                    done = subprocess.run([HERE["purecm"], "explain", "-r", file.name],
                                          capture_output=True, text=True, check=True)
            finally:
                self.b.mode("stock")
        return " ".join(done.stdout.split()), told.note

    def test_another_partition(self):
        explained, note = self.refused_path("pkey=0x8003")
        self.assertIn("The port there is not a member of partition 0x8003", explained)
        self.assertIn("names a GID or a partition (P_Key) that this port does not have", note)

    def test_a_wrong_gid(self):
        explained, note = self.refused_path("primary.local_gid=fd00::77")
        self.assertIn("was not sent from the GID that it names", explained)
        self.assertIn("names a GID or a partition (P_Key) that this port does not have", note)

    def test_another_type_of_gid(self):
        """rxe has GIDs of RoCE v2 only, so a device with others is played by a socket of packets.
        What the advice names is there, and says so."""
        link = [bytes.fromhex(host.run("cat /sys/class/net/eth0/address").stdout.strip()
                              .replace(":", "")) for host in (self.a, self.b)]
        frame = link[0] + link[1] + mads.roce_v1(
            self.b.addr4, self.a.addr4,
            mads.req(src=self.b.addr4, dst=self.a.addr4, port=7174))[2 * len(link[0]):]
        with listening(self.a), told_by(self.a, "explain", "--json") as server, \
                tempfile.NamedTemporaryFile(suffix=".pcap") as file:
            with self.b.capture(file.name, "ether proto 0x8915"):
                self.b.run(SEND.format(frame.hex()), timeout=60, check=True)
            done = subprocess.run([HERE["purecm"], "explain", "-r", file.name],
                                  capture_output=True, text=True, check=True)
        said = " ".join(done.stdout.split())
        self.assertIn("The request went as RoCE v1", said)
        self.assertEqual(server.objects, [], "the port has seen it")
        types = self.a.run("grep -h . /sys/class/infiniband/*/ports/*/gid_attrs/types/*").stdout
        self.assertEqual(set(types.splitlines()), {"RoCE v2"})
        mode = self.a.run("mount -t configfs configfs /sys/kernel/config; "
                          "mkdir /sys/kernel/config/rdma_cm/rxe0; "
                          "cat /sys/kernel/config/rdma_cm/rxe0/ports/1/default_roce_mode; "
                          "rmdir /sys/kernel/config/rdma_cm/rxe0; umount /sys/kernel/config")
        self.assertEqual(mode.stdout.strip(), "RoCE v2", mode.output)

    def test_another_mtu(self):
        """The connection is made, and its data does not arrive: that is for the doctor to see."""
        self.b.run("ip link set eth0 mtu 5000", check=True)
        try:
            with listening(self.a, "rping -s -S 4000 -a {}"), \
                    told_by(self.b, "explain", "--json") as told:
                client = self.b.start(["rping", "-c", "-a", self.a.addr4, "-S", "4000"], timeout=90)
                self.a.wait_for("rdma statistic show link rxe0/1 | grep -q 'send_err [1-9]'",
                                timeout=60)
                client.stop()
            doctor = self.b.run([HERE["purecm"], "doctor", self.a.addr4]).stdout
        finally:
            self.b.run("ip link set eth0 mtu 1500", check=True)
        self.assertEqual([one["messages"]["RTU"] for one in told.objects], [1], told.text)
        self.assertIn("packets for a path MTU of 4096 come back in fragments of 1500", doctor)

    def test_a_firewall(self):
        self.know_each_other()
        with listening(self.a), told_by(self.b, "explain", "--json") as told, \
                told_by(self.b, "trace") as live:
            with self.a.netem("loss 100%"):
                self.repeat_to_nobody(live).stop()
        self.fails_with(told, "gave-up", "never answered", "packets to it or from it are lost",
                        "allow UDP port 4791")

    def test_another_vlan(self):
        """Only the client's host is in it: nobody answers ARP there."""
        self.b.run("modprobe 8021q; ip link add link eth0 name eth0.5 type vlan id 5; "
                   "ip address add 10.78.0.2/24 dev eth0.5; ip link set eth0.5 up", check=True)
        with told_by(self.b, "trace") as told:
            self.b.run(["rping", "-c", "-a", "10.78.0.1", "-C", "1"], timeout=60)
        self.b.run("ip link del eth0.5", check=True)
        self.assertRegex(told.note, "10.78.0.1.*could not be resolved: (Connection timed out|"
                         "No route to host)")

    def test_connections_of_both_ends_are_listed(self):
        with listening(self.a):
            client = self.b.start(["rping", "-c", "-a", self.a.addr4, "-C", "1000000"], timeout=90)
            self.b.wait_for("rdma resource show qp | grep -q RTS.*rping", timeout=20)
            rows = {host: [json.loads(line) for line in host.run(
                [HERE["purecm"], "stat", "--kernel", "--json"]).check().stdout.splitlines()]
                for host in (self.a, self.b)}
            top = self.b.run([HERE["purecm"], "top"]).check().stdout
            prometheus = self.b.run([HERE["purecm"], "stat", "--kernel", "--prometheus"]).stdout
            client.stop()
        ends = {host: [row for row in rows[host] if row["type"] == "id" and row["local_qpn"]][0]
                for host in rows}
        server, client = ends[self.a], ends[self.b]
        self.assertEqual((client["id_state"], client["connection_state"], client["program"]),
                         ("CONNECT", "QP RTS", "rping"))
        self.assertEqual((client["peer"], client["local"]), (server["local"], server["peer"]))
        self.assertEqual((client["remote_qpn"], client["local_qpn"]),
                         (server["local_qpn"], server["remote_qpn"]))
        self.assertRegex(top, r"rping\[\d+\] +TCP CONNECT +QP RTS +10\.77\.0\.1:7174 +>0")
        self.assertIn("purecm_kernel_up 1", prometheus)

    def test_what_is_missing_is_named(self):
        """No events, no tracefs, no root: each in its own words; what was killed leaves nothing."""
        for mode, words in (("bare", "modprobe rdma_cm"), ("stock", None)):
            self.b.mode(mode)
            if words:
                done = self.b.run([HERE["purecm"], "trace", "--kernel"])
                self.assertEqual(done.status, 1)
                self.assertIn(words, done.stderr)
        done = self.b.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                           HERE["purecm"], "trace", "--kernel"])
        self.assertIn("only root", done.stderr)
        done = self.b.run("umount /sys/kernel/tracing; umount /sys/kernel/debug/tracing; "
                          f"umount /sys/kernel/debug; {HERE['purecm']} trace --kernel; "
                          "mount -t debugfs debugfs /sys/kernel/debug; "
                          "mount -t tracefs tracefs /sys/kernel/tracing")
        self.assertIn("mount -t tracefs", done.stderr)
        killed = self.b.start([HERE["purecm"], "trace", "--kernel"])
        self.b.wait_for(f"ls {INSTANCES} | grep -q purecm", timeout=20)
        killed.kill(signal.SIGKILL)
        killed.wait(20)
        self.b.wait_for("! pgrep -x purecm", timeout=20)
        with told_by(self.b, "trace"):
            pass
        self.assertEqual(self.b.run(f"ls {INSTANCES}").stdout, "")
        self.assertEqual(self.b.run("cat /sys/kernel/tracing/options/record-cmd").stdout, "1\n")

    def test_when_the_kernel_is_locked_down_it_is_named(self):
        """The last test, by its name: there is no way back."""
        locked = self.a.run("mount -t securityfs securityfs /sys/kernel/security; "
                            "echo confidentiality >/sys/kernel/security/lockdown")
        if not locked.ok:
            self.skipTest(f"this kernel cannot be locked down: {locked.output}")
        for command in ("trace", "explain"):
            done = self.a.run([HERE["purecm"], command, "--kernel"])
            self.assertEqual(done.status, 1, done.output)
            self.assertIn("nobody where it is locked down", done.stderr)
        done = self.a.run([HERE["purecm"], "stat", "--kernel"])
        self.assertEqual(done.status, 0, done.output)
        self.assertEqual(self.a.run(f"ls {INSTANCES}").stdout, "")


def main():
    """Boot the lab once for all. Return: 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--purecm", type=os.path.abspath, required=True)
    parser.add_argument("--release", choices=list(RELEASES), default="own")
    parser.add_argument("-k", action="append", help="only tests with this in their name")
    HERE.update(vars(parser.parse_args()))
    if not shutil.which("qemu-system-x86_64"):
        print("QEMU is missing: apt-get install qemu-system-x86\n0 passed, 0 failed, 1 skipped")
        return 77
    with Lab({"a": "stock", "b": "stock"}, release=HERE["release"]) as HERE["lab"]:
        print(f"Linux {HERE['lab'].a.run('uname -r').stdout.strip()}")
        return run_named(HERE["k"])


if __name__ == "__main__":
    sys.exit(main())
