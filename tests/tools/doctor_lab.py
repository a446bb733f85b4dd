#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""purecm doctor in the lab: what it says of hosts that are well, and of what was done to others.

Ends with a line "N passed, N failed, N skipped"; skipped where QEMU is missing.
"""
import argparse
import json
from pathlib import Path
import shutil
import sys
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))
from lablib import Lab  # noqa: E402

HERE = {}  # what main() was told, and the lab


def doctor(host, *args):
    """Run it on a host. Return: exit status, and what each check found by its name."""
    done = host.run([HERE["purecm"], "doctor", "--json", *args], timeout=60)
    said = [json.loads(line) for line in done.stdout.splitlines()]
    return done.status, {check["check"]: check for check in said}


class Doctor(unittest.TestCase):
    def setUp(self):
        self.a, self.b = HERE["lab"].a, HERE["lab"].b

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
        self.assertIn("that of rxe0/1 is free", said["CM class"]["text"])

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
        self.assertEqual((status, said["neighbour"]["text"]), (0, "none is needed"))

    def test_a_host_that_is_not_there_does_not_answer(self):
        status, bad = self.bad(self.a, "10.77.0.99")
        self.assertEqual((status, list(bad)), (1, ["neighbour"]))

    def test_an_address_without_a_route(self):
        status, bad = self.bad(self.a, "192.0.2.1")
        self.assertEqual((status, list(bad)), (1, ["route"]))

    def test_the_kernels_manager_has_the_class_and_what_frees_it_is_told(self):
        status, bad = self.bad(self.b)
        self.assertEqual((status, list(bad)), (1, ["CM class"]))
        self.assertIn("ib_cm", bad["CM class"]["text"])
        self.assertIn("modprobe -r", bad["CM class"]["remedy"])

    def test_a_cmportd_that_serves_is_seen(self):
        portd = self.a.start([HERE["cmportd"], "--idle", "0", "--socket", "/run/purecm/x.sock"])
        try:
            self.a.wait_for("test -S /run/purecm/x.sock", timeout=10)
            done = self.a.run(f"PURECM_SOCKET=/run/purecm/x.sock {HERE['purecm']} doctor",
                              timeout=60)
            self.assertEqual(done.status, 0, done.output)
            self.assertIn("serves /run/purecm/x.sock", done.output)
        finally:
            portd.stop()

    def test_a_user_may_not_open_the_nodes(self):
        done = self.a.run(["setpriv", "--reuid=65534", "--clear-groups", HERE["purecm"],
                           "doctor"], timeout=60)
        self.assertEqual(done.status, 1)
        self.assertRegex(done.output, r"BAD +umad +/dev/infiniband/umad0 may not be opened")

    def test_a_link_that_is_down(self):
        self.a.link_down()
        try:
            status, bad = self.bad(self.a)
        finally:
            self.a.link_up()
        self.assertEqual(status, 1)
        self.assertIn("none is active", bad["ports"]["text"])

    def test_an_interface_without_its_device(self):
        self.a.rxe_del()
        try:
            status, bad = self.bad(self.a, self.b.addr4)
        finally:
            self.a.rxe_add()
        self.assertEqual((status, sorted(bad)), (1, ["devices", "source GID"]))


def main():
    """Boot the lab once for all. Return: 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--purecm", required=True)
    parser.add_argument("--cmportd", required=True)
    HERE.update(vars(parser.parse_args()))
    if not shutil.which("qemu-system-x86_64"):
        print("QEMU is missing: apt-get install qemu-system-x86\n0 passed, 0 failed, 1 skipped")
        return 77
    suite = unittest.TestLoader().loadTestsFromTestCase(Doctor)
    with Lab({"a": "purecm", "b": "stock"}) as HERE["lab"]:
        result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    failed, skipped = len(result.failures) + len(result.errors), len(result.skipped)
    print(f"{result.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
