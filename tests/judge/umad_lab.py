# SPDX-License-Identifier: BSD-2-Clause
"""mad/umad.c on a real kernel: umad_probe on a host of tests/lab/together.py.

What test_umad assumes of the kernel and of libibumad is true here, or this fails.
"""
import ipaddress
import re

from together import LabTest

COUNT = 500  # fewer than QP1 has receives: of more at once the kernel loses some
# An unresolved neighbour holds a write for a second; reception must not notice.
GAP_US_MAX = 500_000


class UmadOnRxe(LabTest):
    def setUp(self):
        self.host = self.a
        self.probe = str(self.build / "tests/judge/umad_probe")
        self.addCleanup(self.host.mode, "purecm")

    def run_probe(self, *args):
        return self.host.run([self.probe, self.host.device, *args], timeout=120)

    def hold(self):
        process = self.host.start([self.probe, self.host.device, "hold"])
        self.addCleanup(process.stop)
        process.wait_for_output("held", timeout=30)
        return process

    def assert_refused(self, result, *words):
        self.assertEqual(result.status, 1, result.output)
        for word in words:
            self.assertIn(word, result.output)

    def gid_index(self, address):
        gid = ipaddress.ip_address(address)
        if gid.version == 4:
            gid = ipaddress.IPv6Address("::ffff:" + address)
        folder = "/sys/class/infiniband/%s/ports/1/gids" % self.host.device
        lines = self.host.run("grep -rl %s %s" % (gid.exploded, folder)).stdout.split()
        return str(gid), lines[0].rsplit("/", 1)[1]

    def loop(self, address, threads, *stray):
        gid, index = self.gid_index(address)
        result = self.run_probe("loop", gid, index, str(COUNT), str(threads), *stray)
        self.assertTrue(result.ok, result.output)
        return result.output

    def test_free_port_is_had(self):
        self.assertEqual(self.run_probe("open").output.strip(), "opened")

    def test_closed_port_is_free_again(self):
        self.run_probe("open")
        self.assertTrue(self.run_probe("open").ok)

    def test_process_that_has_the_port_is_named(self):
        holder = self.hold()
        self.assert_refused(self.run_probe("open"), "EADDRINUSE", "process %d" % holder.pid,
                            "umad_probe")

    def test_ib_cm_is_named_with_its_users(self):
        self.host.mode("stock")
        self.assert_refused(self.run_probe("open"), "EBUSY", "ib_cm (loaded by rdma_cm)",
                            "modprobe -r rdma_ucm rdma_cm ib_cm")

    def test_ib_cm_that_came_too_late_is_not_blamed(self):
        holder = self.hold()
        self.host.run("modprobe rdma_ucm", check=True)
        self.addCleanup(self.host.run, "modprobe -r rdma_ucm rdma_cm ib_cm")
        self.assert_refused(self.run_probe("open"), "EADDRINUSE", "process %d" % holder.pid)

    def test_missing_permission_is_said(self):
        result = self.host.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                self.probe, self.host.device, "open"])
        self.assert_refused(result, "EACCES", "/dev/infiniband/umad0")

    def test_missing_module_is_said(self):
        self.host.run("modprobe -r ib_umad", check=True)
        self.addCleanup(self.host.run, "modprobe ib_umad", check=True)
        self.assert_refused(self.run_probe("open"), "ENXIO", "modprobe ib_umad")

    def test_every_message_arrives_once_with_the_way_back(self):
        for address in (self.host.addr4, self.host.addr6):
            print(address, self.loop(address, 1), end="", flush=True)

    def test_several_threads_may_send(self):
        print("4 threads:", self.loop(self.host.addr4, 4), end="", flush=True)

    def test_unknown_neighbour_does_not_stop_reception(self):
        stray = str(ipaddress.IPv4Address(self.host.addr4) + 100)
        output = self.loop(self.host.addr4, 1, "::ffff:" + stray)
        print("beside a lost one:", output, end="", flush=True)
        self.assertIn("to nobody: accepted", output)  # a thread waits for the kernel's answer
        self.assertLess(int(re.search(r"gap (\d+) us", output)[1]), GAP_US_MAX)

    def test_removed_device_is_enodev(self):
        holder = self.hold()
        self.host.run("rdma link delete %s" % self.host.device, check=True)
        holder.wait_for_output("send: ENODEV", timeout=30)
        self.assertIn("receive: ENODEV", holder.output())
        self.host.mode("bare")
