#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""RoCE v2 between a kernel and a process: host a has Debian's kernel with rxe, host b has no RDMA
module, and user 65534 runs purecm there on the soft fabric's RoCE v2 wire.

Debian's programs talk in both roles, on a first over stock librdmacm and the kernel's connection
manager, then over purecm; and rstream while packets are lost, repeated and corrupted. All that was
sent has the right ICRC, and tshark finds nothing malformed.

Prints a line per test and then "N passed, N failed, N skipped"; skipped where QEMU is missing.
"""
import argparse
import contextlib
import os
from pathlib import Path
import re
import subprocess
import sys
import tempfile
import time

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lab"))

from lablib import Lab, LabError, LabTimeout, userland  # noqa: E402
from lablib.release import RELEASES  # noqa: E402
from program_cases import PERFTEST_RACED, QPERF_RACED, RPING_RACED  # noqa: E402

SKIPPED = 77
# What is built in the root of another release.
TARGETS = ("lib/librdmacm.so.1.5.0", "tools/cmportd/cmportd", "tools/purecm",
           "tools/fabric/fabric-host", "tools/fabric/lib/libibverbs.so.1",
           "tools/fabric/lib/libibumad.so.3")
LIMIT_S = 180  # on a machine that is busy with ten other things
CONNECTIONS_MIN = 5  # that a plain run makes
ATTEMPTS = 10
AGAIN_S = 5
# The last is of perftest, which measures the processor's clock, and cannot on a busy emulated one.
RACED = f"{RPING_RACED}|{PERFTEST_RACED}|{QPERF_RACED}|Can't produce a report"
LONG = bool(os.environ.get("PURECM_TEST_LONG"))
ITERATIONS = 200 if LONG else 10  # of perftest
QPERF = ("rc_fetch_add_mr",)
if LONG:
    QPERF += "rc_bw", "rc_lat", "rc_rdma_read_bw", "rc_rdma_write_lat"
FOLDER = "/tmp/purecm-roce"
DELAY = "mads:delay=200ms"
NOBODY = "setpriv --reuid 65534 --regid 65534 --clear-groups"
TCP_LISTENS = "ss -ltn | grep -q -e :18515 -e :19765 -e :7100"  # perftest, qperf, verbs_end.py
VERBS_END = f"PYVERBS_ON=DEVICE PYVERBS_INDEX=GID {ROOT}/tests/programs/verbs_end.py"

# What, the server (%s: its address), the client (%s: the server's), what the client prints. Over
# IPv4 and IPv6.
BOTH = (
    ("rping", "rping -s -a %s -C 3 -v", "rping -c -a %s -C 3 -v", "ping data: rdma-ping-2: CDEF"),
    ("rping with long messages", "rping -s -a %s -C 10 -S 60000", "rping -c -a %s -C 10 -S 60000",
     ""),
    ("ucmatose", "ucmatose -b %s -C 20 -S 9000 -c 4", "ucmatose -s %s -C 20 -S 9000 -c 4",
     "return status 0"),
    ("udaddy", "udaddy -b %s", "udaddy -s %s", "return status 0"),
    ("rdma_client", "rdma_server -s %s", "rdma_client -s %s", "rdma_client: end 0"),
    ("rstream", "rstream -b %s -C 50 -S 65536 -T v", "rstream -s %s -C 50 -S 65536 -T v",
     "custom "),
)


def perftest(program, options, wanted):
    """A row of it."""
    command = f"{program} {options} -n {ITERATIONS}"
    return f"{program} {options}", command, command + " ADDR4", wanted


# Without rdma_cm; over both by the GIDs, while they find each other by TCP over IPv4.
BOTH += tuple(perftest(program, f"-d DEVICE -x GID {options}".strip(), wanted)
              for program, options, wanted in (
                  ("ib_send_bw", "", f" 65536      {ITERATIONS} "),
                  ("ib_write_bw", "", f" 65536      {ITERATIONS} "),
                  ("ib_read_bw", "", f" 65536      {ITERATIONS} "),
                  ("ib_atomic_bw", "", f" 8          {ITERATIONS} "),
                  ("ib_atomic_lat", "-A CMP_AND_SWAP", f" 8       {ITERATIONS} "),
                  ("ib_write_lat", "", f" 2       {ITERATIONS} "),
                  ("ib_send_bw", "-c UC -s 900", f" 900        {ITERATIONS} "),
                  ("ib_write_bw", "-c UC -s 900", f" 900        {ITERATIONS} "),
                  ("ib_send_lat", "-c UD -s 64", f" 64      {ITERATIONS} ")))
# With it perftest knows IPv4 alone, as do qperf and Debian 13's cmtime.
IPV4 = tuple(perftest(program, "-R", wanted)
             for program, wanted in (("ib_send_bw", f" 65536      {ITERATIONS} "),
                                     ("ib_write_bw", f" 65536      {ITERATIONS} "),
                                     ("ib_read_bw", f" 65536      {ITERATIONS} "),
                                     ("ib_atomic_bw", f" 8          {ITERATIONS} "))) + (
    perftest("ib_send_lat", "-R -c UD -s 64", f" 64      {ITERATIONS} "),
)
# A row a test: its server listens anew for each, and may lose that race in each.
IPV4 += tuple((f"qperf {test}", "qperf", f"qperf -t 1 -cm 1 ADDR4 {test}", f"{test}:")
              for test in QPERF)
# Atomic writes and flushes, which rxe has since Linux 6.2.
NEWER = tuple((f"verbs_end.py {feature}", f"{VERBS_END} server {feature} %s",
               f"{VERBS_END} client {feature} %s", "end 0") for feature in ("extended-QP", "flush"))
CMTIME = ("cmtime", "cmtime -b %s -c 20", "cmtime -s %s -c 20", "disconnect")
# Of rdma-core 65: both ends are steered by a controller, at a TCP port.
CMTIME_STEERED = ("cmtime", "cmtime -L -b %s -C %s -c 20 -p 18515",
                  "cmtime -b SELF -C %s -c 20 -p 18515", "disconnect")
GROUP, GROUP_IN_IGMP = "239.1.1.1", "010101EF"
# tc-netem(8), of both ends
FAULTS = ("loss 1%", "duplicate 5%", "corrupt 1%")
# Between two stock hosts with rxe the first takes 200 s.
LONG_FAULTS, FAULT_LIMIT_S = ("loss 10%", "delay 2ms reorder 99%"), 400


class Process:
    """Host b: commands of user 65534 on the fabric that runs there.

    inside: what runs a command where the interface is, if that is another network namespace
    """

    raced = RACED

    def __init__(self, host, build, interface="eth0", inside=""):
        self.host, self.device, self.gids = host, "fab0", None
        self.env = {"PURECM_FABRIC": f"{FOLDER}/hosts/a",
                    "PURECM_SOCKET": f"{FOLDER}/hosts/a/cmportd.sock",
                    "LD_LIBRARY_PATH": f"{build}/tools/fabric/lib:{build}/lib"}
        self.listens = f"{build}/tools/purecm stat | grep -q LISTEN"
        self.prefix = f"{inside} {NOBODY}"
        fabric = (f"exec {self.prefix} {ROOT}/tools/fabric/fabric run --build {build} "
                  f"--wire roce --quirk rxe-flush --hosts 1 --here {interface} --dir {FOLDER} "
                  "'a:sleep 100000'")
        self.fabric = host.start(fabric)
        host.wait_for(f"test -S {FOLDER}/hosts/a/control", timeout=60)

    def command(self, text):
        return f"exec {self.prefix} sh -c '{text}'"

    @contextlib.contextmanager
    def delay(self):
        """Its connection manager is slow: perftest and qperf listen anew for each connection, and
        a client is seldom there before."""
        for faults in (DELAY, ""):
            self.host.run(f"exec {NOBODY} {ROOT}/tools/fabric/fabric faults --dir {FOLDER} "
                          f"'{faults}'", check=True, timeout=LIMIT_S)
            if faults:
                yield


class Kernel:
    """Host a: root, over rxe; by purecm's library if a build is given.

    raced: what its client prints when rxe has sent a message again with other PSNs, which is an
    invalid request; the capture's judge looks whether it was
    """

    raced = f"{RACED}|Failed status 9"

    def __init__(self, host, build=None):
        self.host, self.device = host, "rxe0"
        self.env = {"LD_LIBRARY_PATH": str(build / "lib")} if build else {}
        self.listens = (f"{build}/tools/purecm stat | grep -q LISTEN" if build
                        else "rdma resource show cm_id | grep -q LISTEN")

    @staticmethod
    def command(text):
        return f"exec sh -c '{text}'"


def gid_indices(end, addresses=None):
    """Of addresses in a device's table, by address: of the host's IPv4 and IPv6 ones by default."""
    addresses = addresses or (end.host.addr4, end.host.addr6)
    done = end.host.run(end.command("ibv_devinfo -v"), env=end.env, timeout=LIMIT_S)
    rows = [line.split("GID[")[1] for line in done.stdout.splitlines() if "GID[" in line]
    found = {address: row.split("]")[0].strip() for row in rows
             for address in addresses
             if row.split("]:")[1].split(",")[0].strip() in (address, f"::ffff:{address}")}
    if len(found) != len(addresses):
        raise LabError(f"no GIDs of {addresses} in {done.output}")
    return found


def sample(rows, only, number, of):
    """Return the rows to play: of all that are asked for, a plain run has each so many-th, another
    one, or none, in each role and version of IP."""
    return [row for i, row in enumerate(rows) if only in row[0]
            and (LONG or only or i % of == number)]


class Tests:
    def __init__(self, lab):
        self.lab, self.count, self.limit_s = lab, {"ok": 0, "FAIL": 0}, LIMIT_S
        self.began = time.monotonic()
        is_steered = lab.a.run("cmtime -h 2>&1 | grep -q controller").ok
        self.extra = (CMTIME_STEERED if is_steered else CMTIME,)
        if lab.a.run("grep -q IBV_WR_FLUSH /usr/include/infiniband/verbs.h").ok:
            self.extra += NEWER

    def report(self, name, why=None):
        verdict = "FAIL" if why else "ok"
        self.count[verdict] += 1
        began, self.began = self.began, time.monotonic()
        print(f"{verdict:4} {name} ({self.began - began:.1f} s)" + (f": {why}" if why else ""),
              flush=True)

    def play(self, name, pair, texts, wanted, address):
        """A server on the first of a pair, a client on the second, once the server listens: one
        that comes too soon leaves requests behind, at which ucmatose ends, over stock too."""
        server = pair[0]
        commands = [text.replace("%s", address).replace("ADDR4", server.host.addr4)
                    .replace("SELF", end.host.addr4).replace("DEVICE", end.device).replace(
                        "GID", end.gids[end.host.addr6 if ":" in address else end.host.addr4])
                    for text, end in zip(texts, pair)]
        try:
            for _ in range(ATTEMPTS):
                done, said = self.once(pair, commands)
                raced = re.search(pair[1].raced, done.output)
                if not raced:
                    break
                print(f"     {name}: once more, it lost a race with itself: {raced[0]}", flush=True)
        except LabTimeout as error:
            self.report(name, str(error)[-900:])
            return
        if not done.ok or wanted not in done.output:
            self.report(name, f"status {done.status}: {done.output[-900:]}; the server: {said}")
        else:
            self.report(name)

    def once(self, pair, commands):
        """Return how the client ended, and the last that the server said."""
        server, client = pair
        running = server.host.start(server.command(commands[0]), env=server.env)
        try:
            listens = server.command(f"{server.listens} || {TCP_LISTENS}")
            server.host.wait_for(listens, LIMIT_S, env=server.env, process=running)
            done = client.host.run(client.command(commands[1]), env=client.env,
                                   timeout=self.limit_s)
            return done, running.output()[-600:]
        finally:
            running.stop()

    def play_all(self, what, kernel, process, only):
        for number, pair in enumerate(((kernel, process), (process, kernel))):
            role, host = f"{what}, the {'process' if number else 'kernel'} serves", pair[0].host
            for program, *texts, wanted in sample(BOTH, only, number, 14):
                self.play(f"{role}: {program}", pair, texts, wanted, host.addr4)
            rows = sample((*IPV4, *self.extra), only, 1 + 10 * number, 20)
            with process.delay() if rows else contextlib.nullcontext():
                for program, *texts, wanted in rows:
                    self.play(f"{role}: {program}", pair, texts, wanted, host.addr4)
            for program, *texts, wanted in sample(BOTH, only, 7 + number, 14):
                self.play(f"{role}, IPv6: {program}", pair, texts, wanted, host.addr6)


def judge(tests, path):
    done = subprocess.run([ROOT / "tests/roce/tshark_judge.py", "--with-rxe", "--capture", path],
                          text=True, capture_output=True, check=False)
    tests.report("all packets have the right ICRC and are well-formed: " + done.stdout.strip(),
                 None if done.returncode == 0 else done.stdout + done.stderr)


def send_to_group(listener, of):
    """mckey ends without waiting for its sends, and rxe drops those of a queue pair that goes: it
    sends again until the listener has as many messages as it counts."""
    for left in reversed(range(ATTEMPTS)):
        of.host.run(of.command(f"sleep 1; mckey -m {GROUP} -s -b {of.host.addr4}"), env=of.env,
                    timeout=LIMIT_S)
        try:
            listener.wait(LIMIT_S if not left else AGAIN_S)
            return
        except LabTimeout:
            if not left:
                raise


def multicast(tests, kernel, process):
    """To a group that the listener has joined."""
    for name, to, of in (("the kernel sends", process, kernel),
                         ("the process sends", kernel, process)):
        listener = to.host.start(to.command(f"mckey -m {GROUP} -b {to.host.addr4}"), env=to.env)
        try:
            to.host.wait_for(f"grep -q {GROUP_IN_IGMP} /proc/net/igmp", LIMIT_S,
                             process=listener)
            send_to_group(listener, of)
        except LabError as error:
            listener.stop()
            tests.report(f"mckey, {name}", error)
        else:
            tests.report(f"mckey, {name}")


def tools(tests, kernel, process, build):
    """purecm's, of the ordinary user."""
    for words, wanted in (("ping -c 2", "2 answered, 0% lost"),
                          ("doctor", "would leave this host")):
        done = process.host.run(process.command(f"{build}/tools/purecm {words} "
                                                f"{kernel.host.addr4}"), env=process.env,
                                timeout=LIMIT_S)
        tests.report(f"purecm {words}", None if wanted in done.output else done.output)


def conflict(tests, kernel, build):
    """Where rxe receives RoCE no fabric can, and that is said."""
    done = kernel.host.run(f"exec {NOBODY} {ROOT}/tools/fabric/fabric run --build {build} "
                           "--wire roce --hosts 1 --here eth0 a:true", timeout=LIMIT_S)
    tests.report("rxe has the port", None if "rdma_rxe is loaded" in done.output and not done.ok
                 else f"status {done.status}: {done.output}")


def explain(tests, path, build):
    """Which numbers connections have depends on messages that were lost or sent again."""
    done = subprocess.run([build / "tools/purecm", "explain", "-r", path], text=True,
                          capture_output=True, check=False)
    known = re.search(r"^(\d+) connections: ", done.stdout, re.MULTILINE)
    tests.report("purecm explain knows the connections of a capture",
                 None if done.returncode == 0 and known and int(known[1]) >= CONNECTIONS_MIN
                 else done.stdout + done.stderr)


def faults(tests, kernel, process):
    """What each end sends goes wrong on its way; rstream compares all bytes."""
    texts = "rstream -b %s -C 10 -S 65536 -T v", "rstream -s %s -C 10 -S 65536 -T v"
    tests.limit_s = FAULT_LIMIT_S
    for number, spec in enumerate(FAULTS + (LONG_FAULTS if LONG else ())):
        pairs = (kernel, process), (process, kernel)
        for pair in pairs if LONG else pairs[number % 2:][:1]:
            with kernel.host.netem(spec), process.host.netem(spec):
                tests.play(f"netem {spec}, {pair[0].device} serves", pair, texts, "custom ",
                           pair[0].host.addr4)


def run_all(build, only, release, own_build):
    """own_build: for this host, which need not have the guests' release"""
    with Lab({"a": "stock", "b": "bare"}, release=release) as lab, \
            tempfile.NamedTemporaryFile(suffix=".pcap") as capture:
        tests = Tests(lab)
        process = Process(lab.b, build)
        kernel = Kernel(lab.a)
        process.gids, kernel.gids = gid_indices(process), gid_indices(kernel)
        with lab.b.capture(capture.name):
            tests.play_all("stock", kernel, process, only)
            if only in "mckey":
                multicast(tests, kernel, process)
            if only in "tools":
                tools(tests, kernel, process, build)
                conflict(tests, kernel, build)
        judge(tests, capture.name)
        if only in "tools":
            explain(tests, capture.name, own_build)
        if not only:
            lab.a.mode("purecm", kill=True)
            kernel = Kernel(lab.a, build)
            kernel.gids = gid_indices(kernel)
            if LONG:
                with lab.b.capture(capture.name):
                    tests.play_all("purecm on rxe", kernel, process, only)
                judge(tests, capture.name)
        if only in "faults":
            faults(tests, kernel, process)
        process.fabric.stop()
    return tests.count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--only", default="", help="programs whose names have this in them")
    parser.add_argument("--release", choices=RELEASES, default="own", help="Debian's, of the hosts")
    arguments = parser.parse_args()
    own_build = arguments.build.resolve()
    if arguments.release != "own":
        arguments.build = userland.build_or_exit(RELEASES[arguments.release], TARGETS)
    try:
        count = run_all(arguments.build.resolve(), arguments.only, arguments.release, own_build)
    except LabError as error:
        if "qemu" not in str(error).lower():
            raise
        print(f"{error}\n0 passed, 0 failed, 1 skipped")
        return SKIPPED
    print(f"{count['ok']} passed, {count['FAIL']} failed, 0 skipped")
    return 1 if count["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
