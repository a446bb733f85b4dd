#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""purecm doctor on this host, whatever it has: form, statuses, packet filters, addresses.

What it says of devices is tested in the lab, tool_lab.py. Ends with a line "N passed, N failed,
N skipped".
"""
import errno
import json
import os
from pathlib import Path
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

from running import HERE, cmportd_that, main, purecm

CHECKS = ["devices", "ports", "GIDs", "MTU", "pkeys", "SM", "umad", "CM class", "cmportd",
          "port settings", "fast path", "library", "firewall", "namespaces", "limits"]
STEPS = ["address", "route", "interface", "source GID", "neighbour", "path MTU"]

CHAIN = "table inet filter {\n\tchain input {\n\t\ttype filter hook input priority 0; policy %s;\n"
NOBODY = 65534
INDENT = 19  # columns of verdict and name, before the text
ACCEPTS = "\t\tudp dport 4791 accept\n"
BUILD_ID_HEAD = struct.pack("III4s", 4, 20, 3, b"GNU")  # a note's in a library


def doctor(*args, **more):
    """Return the exit status and what each check found, by name."""
    done = purecm("doctor", "--json", *args, **more)
    said = [json.loads(line) for line in done.stdout.decode().splitlines()]
    return done.returncode, {check["check"]: check for check in said}


# A neighbour that answers no ARP for 2.3 s, while the kernel asks three times, a second apart. The
# doctor comes after 2 s.
LATE = """
ip link add x0 type veth peer name x1
unshare -n sleep 20 & peer=$!
while [ $(readlink /proc/$peer/ns/net) = $(readlink /proc/self/ns/net) ]; do sleep 0.1; done
ip link set x1 netns $peer
there="nsenter -t $peer -n"
$there ip link set x1 up arp off
$there ip address add 192.0.2.2/24 dev x1
ip address add 192.0.2.1/24 dev x0
ip link set x0 up
echo >/dev/udp/192.0.2.2/9
sleep 2
(sleep 0.3; $there ip link set x1 arp on) &
"$@"
kill $peer
"""


class Form(unittest.TestCase):
    def test_the_checks_come_in_order(self):
        self.assertEqual(list(doctor()[1]), CHECKS)
        self.assertEqual(list(doctor("192.0.2.1")[1]), CHECKS + STEPS)

    def test_the_status_tells_whether_anything_is_bad(self):
        status, said = doctor()
        bad = [name for name, check in said.items() if check["verdict"] == "bad"]
        self.assertEqual(status, 1 if bad else 0)

    def test_what_is_not_well_has_a_remedy(self):
        for check in doctor("192.0.2.1")[1].values():
            self.assertEqual("remedy" in check, check["verdict"] in ("bad", "note"), check)

    def test_prose_says_the_same(self):
        text = purecm("doctor").stdout.decode()
        for name, check in doctor()[1].items():
            self.assertIn(f"{name:14}{check['text'][:20]}", text)

    def test_lines_fit_a_narrow_terminal(self):
        text = purecm("doctor", "192.0.2.1", env={"COLUMNS": "60"}).stdout.decode()
        for line in text.splitlines():
            fits = len(line) <= 60 or len(line[INDENT:].split()) == 1
            self.assertTrue(fits, f"{line!r}: only one long word, as a path, may go beyond 60")

    def test_two_addresses_are_one_too_many(self):
        self.assertEqual(purecm("doctor", "192.0.2.1", "192.0.2.2").returncode, 2)


class Place(unittest.TestCase):
    """Of the socket, where no cmportd runs."""

    def verdict(self, **more):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            done = subprocess.run([HERE["purecm"], "doctor", "--json"], capture_output=True,
                                  check=False, timeout=600, **more,
                                  env={**os.environ, "PURECM_SOCKET": f"{folder}/place/socket"})
            self.assertFalse(os.path.exists(f"{folder}/place"))
        said = map(json.loads, done.stdout.decode().splitlines())
        return next(check["verdict"] for check in said if check["check"] == "cmportd")

    def test_who_may_make_its_folder_needs_no_other(self):
        if os.geteuid():
            self.skipTest("the doctor starts a cmportd, which stays a while")
        self.assertEqual(self.verdict(), "ok")

    def test_who_may_not_make_its_folder_is_told(self):
        if os.geteuid():
            self.skipTest("only root can be somebody else too")
        self.assertEqual(self.verdict(user=NOBODY, group=NOBODY, extra_groups=[]), "bad")


class Firewall(unittest.TestCase):
    def verdict(self, rules, status=0):
        return self.said(rules, status)["verdict"]

    def said(self, rules, status=0):
        """Return what is said of the rules that a program nft prints."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder)
            (path / "rules").write_text(rules, encoding="utf-8")
            for name, shows in (("nft", rules), ("iptables-save", "")):
                (path / name).write_text(
                    f"#!/bin/sh\n{f'cat {folder}/rules' if shows else ':'}\nexit {status}\n",
                    encoding="utf-8")
                (path / name).chmod(0o755)
            path_of_all = f"{folder}:{os.environ['PATH']}"
            return doctor(env={"PATH": path_of_all})[1]["firewall"]

    def test_no_rules_are_in_nobodys_way(self):
        self.assertEqual(self.verdict(""), "ok")

    def test_a_rule_against_roce(self):
        self.assertEqual(self.verdict("\t\tudp dport 4791 counter drop\n"), "bad")

    def test_the_rule_and_its_chain_are_named(self):
        rules = ("table ip nat {\n\tchain output {\n\t}\n}\ntable inet filter {\n\tchain first {\n"
                 "\t\ttcp dport 80 drop\n\t\tudp dport 4791 counter drop\n\t}\n}\n")
        self.assertIn(": udp dport 4791 counter drop (table inet filter, chain first)",
                      self.said(rules)["text"])
        self.assertTrue(self.said("-A INPUT -p udp -m udp --dport 4791 -j DROP\n")["text"]
                        .endswith(": -A INPUT -p udp -m udp --dport 4791 -j DROP"))

    def test_what_is_not_accepted_is_dropped(self):
        self.assertEqual(self.verdict(CHAIN % "drop"), "bad")
        self.assertEqual(self.verdict(CHAIN % "accept" + "\t\tdrop\n"), "bad")
        self.assertEqual(self.verdict(":INPUT DROP [0:0]\n"), "bad")
        self.assertEqual(self.verdict("-A INPUT -j REJECT --reject-with x\n"), "bad")

    def test_what_is_accepted_is_let_in(self):
        self.assertEqual(self.verdict(CHAIN % "drop" + ACCEPTS), "ok")
        self.assertEqual(self.verdict(CHAIN % "accept"), "ok")

    def test_counters_are_no_ports(self):
        counter = "counter packets 14791 bytes 4791 "
        self.assertEqual(self.verdict(CHAIN % "drop" + f"\t\ttcp dport 2 {counter}accept\n"), "bad")
        self.assertEqual(self.verdict(CHAIN % "accept" + f"\t\ttcp dport 2 {counter}drop\n"), "ok")
        self.assertEqual(self.verdict(CHAIN % "accept" + f"\t\t{counter}drop\n"), "bad")
        self.assertEqual(self.verdict("[4791:640] -A INPUT -j DROP\n"), "bad")
        self.assertEqual(self.verdict(":INPUT ACCEPT [4791:640]\n"), "ok")

    def test_sets_and_ranges_may_contain_the_port(self):
        for ports, verdict in (("{ 53, 4791 }", "ok"), ("4000-5000", "ok"), ("{ 5, 14791 }", "bad"),
                               ("{ 53, 4000-4790, 47910 }", "bad")):
            rules = CHAIN % "drop" + f"\t\tudp dport {ports} accept\n"
            self.assertEqual(self.verdict(rules), verdict, rules)
        self.assertEqual(self.verdict(":INPUT DROP [0:0]\n-A INPUT -p udp -m multiport --dports "
                                      "53,4000:5000 -j ACCEPT\n"), "ok")

    def test_who_may_not_ask_is_told(self):
        found = self.said("", status=1)
        self.assertEqual(found["verdict"], "note")
        self.assertIn("as root", found["remedy"])


class Limits(unittest.TestCase):
    def test_locked_memory_is_limited_for_who_lacks_the_capability(self):
        if os.geteuid():
            self.skipTest("only root has the capability")
        for without, words in (("-ipc_lock", "at most 64 KiB"), ("-sys_nice", "is unlimited")):
            done = subprocess.run(
                ["setpriv", "--bounding-set", without, "sh", "-c",
                 'ulimit -l 64; exec "$1" doctor --json', "-", HERE["purecm"]],
                check=False, capture_output=True, text=True)
            said = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertIn(words, str([one for one in said if one["check"] == "limits"]))


class Installation(unittest.TestCase):
    def cmportd(self, answer):
        with cmportd_that(answer) as path:
            return doctor(env={"PURECM_SOCKET": str(path)})[1]["cmportd"]

    def library(self, **env):
        return doctor(env=env)[1]["library"]

    def test_a_cmportd_of_another_release(self):
        reply = struct.pack(">H38x256s", errno.EPROTONOSUPPORT, b"this cmportd speaks version 6")
        found = self.cmportd(struct.pack(">HH", 14, 4 + len(reply)) + reply)
        self.assertIn("is of another release: this cmportd speaks version 6", found["text"])
        self.assertIn("restart", found["remedy"])

    def test_a_socket_behind_which_no_cmportd_is(self):
        found = self.cmportd(b"HTTP/1.1 400 Bad Request")
        self.assertEqual(found["verdict"], "bad")
        self.assertIn("but no cmportd answers", found["text"])

    def test_another_purecms_library_comes_first(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "librdmacm.so.1"
            shutil.copy(HERE["library"], copy)
            found = self.library(LD_LIBRARY_PATH=folder)
            self.assertEqual(found["text"], f"programs use purecm's library, {copy}")
            with open(copy, "ab") as file:
                file.write(b"other debug information")
            found = self.library(LD_LIBRARY_PATH=folder)
            self.assertEqual(found["text"], f"programs use purecm's library, {copy}")
            content = bytearray(copy.read_bytes())
            content[content.index(BUILD_ID_HEAD) + len(BUILD_ID_HEAD)] ^= 1
            copy.write_bytes(content)
            found = self.library(LD_LIBRARY_PATH=folder)
            self.assertIn("another purecm's library", found["text"])

    def test_the_stock_library_comes_before_purecms(self):
        purecms = HERE["library"].resolve()
        with tempfile.TemporaryDirectory() as folder:
            cache = Path(folder) / "ldconfig"
            cache.write_text(f"#!/bin/sh\necho '\tlibrdmacm.so.1 (libc6) => {purecms}'\n",
                             encoding="utf-8")
            cache.chmod(0o755)
            found = self.library(PATH=f"{folder}:{os.environ['PATH']}", LD_LIBRARY_PATH="")
        system = re.match("programs use purecm's library, (.*)", found["text"])
        if system and system[1] != str(purecms):
            self.skipTest(f"{system[1]} is purecm's: tools/install --system was here")
        self.assertIn(f"before purecm's, {purecms}", found["text"])

    def test_who_has_purecm_is_not_told_to_install_it(self):
        found = doctor(env={"LD_LIBRARY_PATH": ""})[1]["library"]
        if "by default" not in found["text"]:
            self.skipTest(f"here {found['text']}")
        self.assertNotIn("install", found["remedy"])
        self.assertIn(str(HERE["library"].name), found["remedy"])


class Addresses(unittest.TestCase):
    def step(self, address, name="address"):
        return doctor(address)[1][name]

    def test_loopback_is_no_address_for_rdma(self):
        self.assertIn("no loopback", self.step("127.0.0.1")["text"])
        self.assertIn("no loopback", self.step("::1")["text"])

    def test_link_local_wants_its_interface(self):
        self.assertIn("does not name its interface", self.step("fe80::1")["text"])

    def test_a_name_that_is_none(self):
        self.assertEqual(self.step("no.such.name.invalid")["verdict"], "bad")

    def test_the_steps_after_one_that_failed_are_skipped(self):
        said = doctor("127.0.0.1")[1]
        self.assertEqual({said[name]["verdict"] for name in STEPS[1:]}, {"skipped"})

    def test_a_neighbour_that_answers_the_next_question(self):
        inside = ["unshare", "-Urn"]
        if subprocess.run([*inside, "true"], check=False).returncode:
            self.skipTest("no namespaces can be made here")
        done = subprocess.run([*inside, "bash", "-c", LATE, "-", HERE["purecm"], "doctor", "--json",
                               "192.0.2.2"], stdout=subprocess.PIPE, timeout=60, check=False)
        said = [json.loads(line) for line in done.stdout.decode().splitlines()]
        self.assertEqual([check["verdict"] for check in said if check["check"] == "neighbour"],
                         ["ok"], said)


if __name__ == "__main__":
    main(__doc__, library=Path)
