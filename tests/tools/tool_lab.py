# SPDX-License-Identifier: BSD-2-Clause
"""purecm doctor and ping in the lab: of hosts that are well, and of what was done to others;
tests/lab/together.py runs them."""
import json
from pathlib import Path
import signal
import subprocess
import tempfile

from together import LabTest

INSTANCES = "/sys/kernel/tracing/instances"


def doctor(host, *args):
    """Run it on a host. Return: exit status, and what each check found by its name."""
    done = host.run([LabTest.purecm, "doctor", "--json", *args], timeout=60)
    said = [json.loads(line) for line in done.stdout.splitlines()]
    return done.status, {check["check"]: check for check in said}


class Doctor(LabTest):
    def bad(self, host, *args):
        """Return what is bad, and the status."""
        status, said = doctor(host, *args)
        return status, {name: check for name, check in said.items() if check["verdict"] == "bad"}

    def test_nothing_is_in_the_way_of_a_host_that_is_well(self):
        self.assertEqual(self.bad(self.a), (0, {}))

    def test_it_names_the_device_its_gids_and_that_the_class_is_free(self):
        _, said = doctor(self.a)
        self.assertIn("rxe0", said["devices"]["text"])
        self.assertIn(f"{self.a.addr4} on eth0", said["GIDs"]["text"])
        self.assertIn("the CM class of rxe0/1 is free", said["CM class"]["text"])

    def test_the_way_to_the_other_host_is_clear(self):
        status, said = doctor(self.a, self.b.addr4)
        self.assertEqual(status, 0)
        self.assertIn(f"from {self.a.addr4}; directly", said["route"]["text"])
        self.assertRegex(said["source GID"]["text"], r"rxe0/1, GID index \d+, RoCE v2")
        self.assertIn("is known", said["neighbour"]["text"])

    def test_over_ipv6_as_well(self):
        self.assertEqual(self.bad(self.a, self.b.addr6), (0, {}))
        self.assertEqual(self.bad(self.a, self.b.link_local + "%eth0"), (0, {}))

    def test_ones_own_address_needs_no_neighbour(self):
        status, said = doctor(self.a, self.a.addr4)
        self.assertEqual((status, said["neighbour"]["text"]), (0, "not needed on the same host"))

    def test_a_host_that_is_not_there_does_not_answer(self):
        status, bad = self.bad(self.a, "10.77.0.99")
        self.assertEqual((status, list(bad)), (1, ["neighbour"]))

    def test_a_smaller_mtu_at_the_other_end(self):
        self.a.run("ip link set eth0 mtu 5000", check=True)
        try:
            found = [self.bad(self.a, address) for address in (self.b.addr4, self.b.addr6)]
        finally:
            self.a.run("ip link set eth0 mtu 1500", check=True)
        for status, bad in found:
            self.assertEqual((status, list(bad)), (1, ["path MTU"]))
            self.assertRegex(bad["path MTU"]["text"], "for a path MTU of 4096 come back in frag")

    def test_an_address_without_a_route(self):
        status, bad = self.bad(self.a, "192.0.2.1")
        self.assertEqual((status, list(bad)), (1, ["route"]))

    def test_the_kernels_manager_has_the_class_and_what_frees_it_is_told(self):
        status, bad = self.bad(self.b)
        self.assertEqual((status, list(bad)), (1, ["CM class"]))
        self.assertIn("ib_cm", bad["CM class"]["text"])
        self.assertIn("modprobe -r", bad["CM class"]["remedy"])

    def test_a_cmportd_that_serves_is_seen(self):
        portd = self.a.start([LabTest.cmportd, "--idle", "0", "--socket", "/run/purecm/x.sock"])
        try:
            self.a.wait_for("test -S /run/purecm/x.sock", timeout=60, process=portd)
            done = self.a.run(f"PURECM_SOCKET=/run/purecm/x.sock {LabTest.purecm} doctor",
                              timeout=60)
            self.assertEqual(done.status, 0, done.output)
            self.assertIn("serves /run/purecm/x.sock", done.output)
        finally:
            portd.stop()

    def test_a_user_may_not_open_the_nodes(self):
        done = self.a.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                           LabTest.purecm, "doctor"], timeout=60)
        self.assertEqual(done.status, 1)
        self.assertRegex(done.output, r"BAD +umad +this user may not open /dev/infiniband/umad0")

    def test_a_link_that_is_down(self):
        self.a.link_down()
        try:
            status, bad = self.bad(self.a)
        finally:
            self.a.link_up()
        self.assertEqual(status, 1)
        self.assertIn("no port is active", bad["ports"]["text"])

    def test_an_interface_without_its_device(self):
        self.a.rxe_del()
        try:
            status, bad = self.bad(self.a, self.b.addr4)
        finally:
            self.a.rxe_add()
        self.assertEqual((status, sorted(bad)), (1, ["devices", "source GID"]))


def ping(host, *args):
    """Run it on a host. Return: exit status, its answers, its summary."""
    done = host.run([LabTest.purecm, "ping", "--json", "--interval=0.05", *args], timeout=60)
    said = [json.loads(line) for line in done.stdout.splitlines()]
    return done.status, said[:-1], said[-1] if said else done.stderr


class Ping(LabTest):
    def test_a_kernel_says_that_nobody_listens(self):
        status, answers, summary = ping(self.a, self.b.addr4, "-c", "5")
        self.assertEqual(status, 0)
        self.assertEqual([(answer["answer"], answer["reason"]) for answer in answers],
                         [("REJ", 8)] * 5)
        self.assertGreater(summary["min_ms"], 0)
        self.assertIn("There is a connection manager", summary["conclusion"])

    def test_over_ipv6(self):
        for address in (self.b.addr6, self.b.link_local + "%eth0", f"[{self.b.addr6}]:7009"):
            self.assertEqual(ping(self.a, address, "-c", "1")[0], 0, address)

    def test_somebody_listens(self):
        # rping takes a connection that is taken back as its end.
        server = self.b.start(f"exec rping -s -a {self.b.addr4} -p 7000", timeout=90)
        self.b.wait_for("rdma resource show cm_id | grep -q LISTEN", timeout=20, process=server)
        status, answers, summary = ping(self.a, f"{self.b.addr4}:7000", "-c", "1")
        server.stop()
        self.assertEqual((status, [answer["answer"] for answer in answers]), (0, ["REP"]))
        self.assertIn("accepts", summary["conclusion"])
        left = self.b.run("rdma resource show cm_id | grep -c CONNECT").stdout.strip()
        self.assertEqual(left, "0")

    def test_a_host_that_is_not_there(self):
        status, answers, why = ping(self.a, "10.77.0.99")
        self.assertEqual((status, answers), (1, []))
        self.assertIn("does not answer ARP", why)

    def test_a_host_without_a_connection_manager(self):
        self.b.mode("bare")
        try:
            status, answers, summary = ping(self.a, self.b.addr4, "-c", "2", "--timeout=0.5")
        finally:
            self.b.mode("stock")
        self.assertEqual((status, [answer["answer"] for answer in answers]),
                         (1, ["silence"] * 2))
        self.assertIn("host is there, and no connection manager answers", summary["conclusion"])

    def test_a_cmportd_answers_too(self):
        self.b.mode("purecm")
        portd = self.b.start([LabTest.cmportd, "--idle", "0"])
        try:
            self.b.wait_for("test -S /run/purecm/cmportd.sock", timeout=60, process=portd)
            self.b.run([LabTest.purecm, "ping", self.a.addr4, "-c1", "--timeout=0.2"])
            status, answers, _ = ping(self.a, self.b.addr4, "-c", "2")
        finally:
            portd.stop()
            self.b.mode("stock")
        self.assertEqual((status, [answer["answer"] for answer in answers]), (0, ["REJ"] * 2))

    def test_ctrl_c_ends_with_the_statistics(self):
        running = self.a.start(f"exec {LabTest.purecm} ping {self.b.addr4} -c 1000 -i 0.1")
        running.wait_for_output(r"seq=2", timeout=20)
        running.kill(signal.SIGINT)
        done = running.wait(20)
        self.assertEqual(done.status, 0)
        self.assertRegex(done.stdout, r"\d+ sent, \d+ answered, 0% lost")

    def test_it_is_what_a_capture_explains(self):
        with tempfile.TemporaryDirectory() as folder:
            capture = Path(folder) / "ping.pcap"
            with self.a.capture(capture):
                ping(self.a, self.b.addr4, "-c", "2")
            done = subprocess.run([LabTest.purecm, "explain", "--json", "-r", capture],
                                  capture_output=True, check=True, text=True)
        said = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([flow["outcome"] for flow in said], ["probed"] * 2)


def start_listening(host, words):
    """Start a command that listens at an interface of a host. Return it when it does."""
    running = host.start(f"exec {LabTest.purecm} {words}", timeout=60)
    host.wait_for("grep -q ' 0003 ' /proc/net/packet", timeout=20)  # 0003: all packets
    return running


class Live(LabTest):
    def test_what_passes_an_interface_is_shown_as_it_happens(self):
        a, b = self.a, self.b
        trace = start_listening(b, "trace -i eth0")
        ping(a, b.addr4, "-c", "1")
        trace.wait_for_output(r"REQ .*\n.* REJ ", timeout=20)
        trace.kill(signal.SIGINT)
        self.assertEqual(trace.wait(20).status, 0)

    def test_it_is_explained_after_ctrl_c(self):
        a, b = self.a, self.b
        explain = start_listening(b, "explain -i any")
        ping(a, b.addr6, "-c", "2")
        explain.kill(signal.SIGINT)
        done = explain.wait(20)
        self.assertEqual(done.status, 0, done.output)
        self.assertTrue(done.stdout.endswith("2 connections: 2 probed\n"), done.stdout)


class Kernel(LabTest):
    """What the kernel's connection manager does, on host b."""

    def test_what_it_does_is_traced_and_counted(self):
        a, b = self.a, self.b
        trace = b.start(f"exec {LabTest.purecm} trace --kernel", timeout=60)
        b.wait_for(f"grep -q 1 {INSTANCES}/purecm-*/events/ib_mad/ib_mad_recv_done_handler/enable",
                   timeout=20, process=trace)
        ping(a, b.addr4, "-c", "1")
        server = b.start(f"exec rping -s -a {b.addr4} -p 7000", timeout=90)
        b.wait_for("rdma resource show cm_id | grep -q LISTEN", timeout=20, process=server)
        told = b.run([LabTest.purecm, "stat", "--kernel", "--json"]).check()
        ping(a, f"{b.addr4}:7000", "-c", "1")
        trace.wait_for_output(r"REQ .*\n.* REP ", timeout=20)
        server.stop()
        trace.kill(signal.SIGINT)
        done = trace.wait(20)
        self.assertEqual(done.status, 0, done.output)
        self.assertIn("refused that no program here has seen", done.stderr)
        self.assertNotIn("cannot be traced", done.stderr)
        self.assertEqual(b.run(f"ls {INSTANCES}").stdout, "")
        rows = [json.loads(line) for line in told.stdout.splitlines()]
        listening = [row for row in rows if row["type"] == "id"]
        self.assertEqual([(row["program"], row["id_state"], row["local"], row["device"])
                          for row in listening],
                         [("rping", "LISTEN", f"{b.addr4}:7000", "rxe0/1")])
        counts = {(row["message"], row["what"]): row["value"] for row in rows
                  if row["type"] == "port_count"}
        self.assertGreater(counts["REQ", "received"], 0)
        self.assertGreater(counts["REJ", "sent"], 0)
