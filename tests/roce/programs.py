#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Debian's programs over purecm on two hosts of a soft fabric whose wire is RoCE v2, as an ordinary
user; and what tools/fabric/fabric says when that cannot be. The packets of some, with
PURECM_TEST_LONG=1 of all, are captured: each has the right ICRC, and tshark finds none malformed.

Prints a line per test and then "N passed, N failed, N skipped".
"""
import argparse
from pathlib import Path
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/fabric"))

import programs  # noqa: E402
from programs import Failure, RETRY  # noqa: E402
from tshark_judge import judge_capture  # noqa: E402

A, A6 = "10.77.0.1", "fd77::1"
LONG = bool(os.environ.get("PURECM_TEST_LONG"))
CAPTURED = 1 if LONG else 8  # each so many-th program
# Programs with these words in their names send no RDMA packets, so they are not captured.
WITHOUT_RDMA = "sizes of preloaded sockets", "knows nothing of RDMA", ", TCP"
HOST = re.compile("^([ab]&?:)")
SBIN = f"{os.environ['PATH']}:/usr/sbin:/sbin"

# Beside those of tests/fabric/programs.py: what, on a, on b, and what the output must have.
MORE = (
    ("udaddy over IPv6", f"udaddy -b {A6}", f"udaddy -s {A6}", ("b| return status 0",)),
    ("ucmatose over IPv6, many connections", f"ucmatose -b {A6} -C 20 -S 9000 -c 20",
     f"ucmatose -C 20 -S 9000 -c 20 -s {A6}", ("b| return status 0",)),
    ("ibv_uc_pingpong", "ibv_uc_pingpong -g 1", f"ibv_uc_pingpong -g 1 {A}", ("b| 1000 iters",)),
    ("ibv_rc_pingpong, path MTU 256", "ibv_rc_pingpong -g 1 -m 256 -c -s 10001 -n 100",
     f"ibv_rc_pingpong -g 1 -m 256 -c -s 10001 -n 100 {A}", ("b| 100 iters",)),
    ("ibv_rc_pingpong over IPv6", "ibv_rc_pingpong -g 2 -c", f"ibv_rc_pingpong -g 2 -c {A}",
     ("b| 1000 iters",)),
)
# perftest: program, options, what the server and the client print.
PERFTEST = tuple((f"{program} {options}".strip(), f"{program} -d fab0 -x 1 {options}",
                  f"{program} -d fab0 -x 1 {options} {A}", (wanted,))
                 for program, options, wanted in (
                     ("ib_write_bw", "-n 1000", "b|  65536      1000"),
                     ("ib_write_bw", "-n 50 -s 1000000 -q 4", "b|  1000000    200"),
                     ("ib_write_bw", "-n 1000 -c UC -s 1000", "b|  1000       1000"),
                     ("ib_send_lat", "-n 1000 -s 100", "b|  100     1000"),
                     ("ib_write_lat", "-n 1000", "b|  2       1000"),
                     ("ib_read_lat", "-n 1000", "b|  2       1000"),
                     ("ib_send_lat", "-n 1000 -c UD", "b|  2       1000"),
                     ("ib_atomic_bw", "-n 1000", "b|  8          1000"),
                     ("ib_atomic_lat", "-n 1000 -A CMP_AND_SWAP", "b|  8       1000"),
                     ("ib_read_bw", "-n 5 -s 8388608 -m 1024", "b|  8388608    5")))


# By verbs alone, as rdma_cm has groups of IPv4 only: IGMP and MLD tell of the member.
GROUPS = tuple((f"a group of {version}", command, f"{command} {A}",
                ("a|  64      100", "b|  64      100"))
               for version, command in (
                   ("IPv4", "ib_send_lat -c UD -n 100 -s 64 -d fab0 -x 1 -g "
                    "-M 0:0:0:0:0:0:0:0:0:0:255:255:239:1:1:1"),
                   ("IPv6", "ib_send_lat -c UD -n 100 -s 64 -d fab0 -x 2 -g "
                    "-M 255:21:0:0:0:0:0:0:0:0:0:0:0:0:0:9")))


class RoceTests(programs.Tests):
    capture = None  # the file that what host a sends and receives is written to

    def command(self, *arguments):
        words = ["--wire", "roce", *arguments]  # what comes last counts
        if not self.capture:
            return super().command(*words)
        first = next(i for i, word in enumerate(words) if HOST.match(word))
        words[first:] = [HOST.sub(rf"\1until [ -s {self.capture} ]; do sleep 0.1; done; ", word) +
                         "; status=$?; sleep 1; exit $status" for word in words[first:]]
        words[first:first] = ["--gap", "0.3",  # it never listens
                              f"a&:exec dumpcap -q -i any -P -f 'port 4791' -w {self.capture}"]
        command = super().command(*words)
        # Hosts get rights to their own network.
        return [*self.user, "unshare", "-Urn", *command[len(self.user):]]

    def captured(self, work, *arguments):
        """Do a test, and look at its packets."""
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            self.capture = Path(folder, "packets.pcap")
            try:
                work(*arguments)
                print("    ", judge_capture(self.capture), flush=True)
            except SystemExit as error:
                raise Failure(error) from error
            finally:
                self.capture = None


def both_ends_on_one_host(tests):
    done = tests.run("--hosts", "1", "a:rping -s -C 2",
                     "a:" + RETRY.format(f"rping -c -a {A} -C 2"))
    if done.returncode:
        raise Failure(done.stdout + done.stderr)


def two_machines(tests):
    """Two fabrics, on networks that are joined, which have nothing else in common. What one of
    them captures has both ends."""
    inner = f"{programs.FABRIC} run --build {tests.build} --wire roce --hosts 1 --raw --here fab0"
    client = RETRY.replace("$", "\\$").format(f"rping -c -v -a {A} -C 3")
    client = client.replace("&& exit", "&& sleep 2 && exit")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        capture = Path(folder, "packets.pcap")
        done = tests.run("--wire", "unix", f"a:{inner} 'a:rping -s -C 3'",
                         f'b:{inner} --pcap {capture} "a:{client}"')
        if done.returncode or "b| ping data: rdma-ping-2" not in done.stdout:
            raise Failure(done.stdout + done.stderr)
        said = subprocess.run([tests.build / "tools/purecm", "explain", "--json", "-r", capture],
                              text=True, capture_output=True, check=False).stdout
    if '"outcome":"closed"' not in said or '"unanswered"' in said:
        raise Failure(f"purecm explain says of the capture: {said}")


def second_fabric(tests):
    """The port is taken, and it is said by whom."""
    inner = f"{programs.FABRIC} run --build {tests.build} --wire roce --hosts 1 --here fab0 a:true"
    done = tests.run("--hosts", "1", f"a:{inner} 2>&1; true")
    if not re.search(r"UDP port 4791 is bound by process \d+ \(fabric-host\)", done.stdout):
        raise Failure(done.stdout + done.stderr)


HOLDER = ("import socket; s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); "
          "s.bind(('::', 4791)); print('bound', flush=True); input()")


def port_owner(tests, namespace, owner, wanted):
    """Another process has the port: it is named, if the user may know."""
    inner = (f"{' '.join(tests.user)} {programs.FABRIC} run --build {tests.build} "
             "--wire roce --hosts 1 --here lo a:true")
    script = (f'ip link set lo up; mkfifo in; {" ".join(owner)} python3 -c "{HOLDER}" <in >out & '
              f"exec 3>in; until grep -q bound out; do sleep 0.1; done; {inner}; true")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["unshare", namespace, "sh", "-c", script], text=True, cwd=folder,
                              capture_output=True, timeout=programs.LIMIT_S, check=False)
    if not re.search(wanted, done.stderr):
        raise Failure(done.stdout + done.stderr)


def bad_interface(tests):
    """One that is down, with a small MTU and no address: that is said, and it runs."""
    inner = f"{programs.FABRIC} run --build {tests.build} --wire roce --here x0 a:true"
    make = "ip link add x0 mtu 250 type veth peer name x1"
    done = subprocess.run(["unshare", "-Urn", "sh", "-c", f"{make} && {inner}"], text=True,
                          capture_output=True, timeout=programs.LIMIT_S, check=False)
    if done.returncode or not all(text in done.stderr for text in (
            "x0 is down", "an MTU of 250: to connect needs", "x0 has no IP address")):
        raise Failure(f"status {done.returncode}: {done.stdout}{done.stderr}")


# A client, whose host or whose peer has a firewall; nothing else is there.
FILTERED = """
ip link add x0 type veth peer name x1
unshare -n sleep 60 & peer=$!
while [ $(readlink /proc/$peer/ns/net) = $(readlink /proc/self/ns/net) ]; do sleep 0.1; done
ip link set x1 netns $peer
nsenter -t $peer -n ip link set x1 up
nsenter -t $peer -n ip address add 192.0.2.2/24 dev x1
ip address add 192.0.2.1/24 dev x0
ip link set x0 up
nft "add table inet t; add chain inet t c { type filter hook $0 priority 0; }
     add rule inet t c udp dport 4791 drop"
"$@"
kill $peer
"""


def firewall(tests, hook, *wanted):
    """What each of our tools says of a rule that drops packets: root of the host's network runs
    them."""
    inner = f"{tests.build}/tools/purecm"
    done = subprocess.run(
        ["unshare", "-Urn", "bash", "-c", FILTERED, hook, programs.FABRIC, "run", "--build",
         tests.build, "--wire", "roce", "--here", "x0",
         f"a:{inner} ping -c 1 -W 1 192.0.2.2; {inner} doctor; true"],
        text=True, capture_output=True, timeout=programs.LIMIT_S, check=False)
    said = " ".join((done.stdout + done.stderr).replace("a| ", "").split())
    if done.returncode or not all(text in said for text in wanted):
        raise Failure(f"status {done.returncode}: {done.stdout}{done.stderr}")


RULE = "a rule drops or rejects UDP port 4791: udp dport 4791 drop (table inet t, chain c)"


WRONG = (
    (("--link", "ib", "a:true"), "InfiniBand has no UDP"),
    (("--hosts", "1", "--here", "nothing0", "a:true"),
     "there is no interface nothing0; there are: lo"),
)


def refused(tests, arguments, wanted):
    done = tests.run(*arguments)
    if done.returncode != 2 or wanted not in done.stderr or "Traceback" in done.stderr:
        raise Failure(f"status {done.returncode}: {done.stderr}")


def why_not(tests):
    """Why nothing can be tested here, or None."""
    if not all(shutil.which(name) for name in ("rping", "ibv_rc_pingpong", "ib_send_bw")):
        return "rdmacm-utils, ibverbs-utils and perftest are not all installed"
    done = tests.run("--hosts", "1", "a:true")
    return None if done.returncode == 0 else done.stderr.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--only", default="", help="tests whose names have this in them")
    arguments = parser.parse_args()
    tests = RoceTests(arguments.build.resolve())
    reason = why_not(tests)
    if reason:
        print(f"{reason}\n0 passed, 0 failed, 1 skipped")
        return programs.SKIPPED
    # The fabric's other wire carries all of the first.
    some = programs.PROGRAMS[::1 if LONG or arguments.only else 2]
    rows = [row for row in (*some, *MORE, *PERFTEST, *GROUPS) if arguments.only in row[0]]
    captures = shutil.which("dumpcap") and shutil.which("tshark")
    if not captures:
        tests.report("skip", "the packets of programs", "tshark is not installed")
    for number, row in enumerate(rows):
        what = programs.program, tests, *row
        is_captured = (captures and number % CAPTURED == 0 and
                       not any(words in row[0] for words in WITHOUT_RDMA))
        tests.test(row[0], *((tests.captured, *what) if is_captured else what))
    tests.test("both ends on one host", both_ends_on_one_host, tests)
    tests.test("two machines, a fabric on each", two_machines, tests)
    tests.test("two fabrics in one network", second_fabric, tests)
    tests.test("the port is a process's", port_owner, tests, "-n" if tests.user else "-Urn",
               tests.user, r"UDP port 4791 is bound by process \d+ \(python3")
    if tests.user:
        tests.test("the port is another user's process's", port_owner, tests, "-n", (),
                   "UDP port 4791 is taken(?s:.)*host a does not start; see above\n")
    tests.test("an interface that is down", bad_interface, tests)
    if shutil.which("nft", path=SBIN):
        tests.test("a firewall of what is sent", firewall, tests, "output", RULE,
                   "is refused by a firewall of this host (UDP, destination port 4791)")
        tests.test("a firewall of what is received", firewall, tests, "input", RULE,
                   "no connection manager answers: there is none, or UDP port 4791 is filtered")
    else:
        tests.report("skip", "firewalls", "nft is not installed")
    for options, wanted in WRONG:
        tests.test(f"refused: {wanted}", refused, tests, options, wanted)
    shutil.rmtree(tests.folder)
    return tests.summary()


if __name__ == "__main__":
    sys.exit(main())
