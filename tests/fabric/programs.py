#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Debian's programs over purecm on two hosts of a soft fabric, as an ordinary user, and what
tools/fabric/fabric says when something is wrong.

Prints a line per test and then "N passed, N failed, N skipped".
"""
import argparse
import os
from pathlib import Path
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/lab"))

from preloaded import ENDS, PRELOAD, PRELOADED, UNCHANGED  # noqa: E402
from program_cases import PERFTEST_RACED  # noqa: E402

FABRIC = ROOT / "tools/fabric/fabric"
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
LIMIT_S = 400
SKIPPED = 77
ATTEMPTS = 10

# A client that comes before its server listens is refused, as on any network: it tries again.
RETRY = "for i in $(seq 600); do {} && exit; sleep 0.1; done; exit 1"

PROGRAMS = (
    # what, the commands on a and b, and what their output must have
    ("rping", "rping -s -a 10.77.0.1 -C 3 -v", "rping -c -a 10.77.0.1 -C 3 -v",
     ("a| server ping data: rdma-ping-2: CDEF", "b| ping data: rdma-ping-2: CDEF")),
    ("rping over IPv6", "rping -s -a fd77::1 -C 3 -v", "rping -c -a fd77::1 -C 3 -v",
     ("b| ping data: rdma-ping-2: CDEF",)),
    ("rping with long messages", "rping -s -a 10.77.0.1 -C 50 -S 60000",
     "rping -c -a 10.77.0.1 -C 50 -S 60000", ()),
    ("ucmatose", "ucmatose", "ucmatose -s 10.77.0.1",
     ("a| data transfers complete", "b| data transfers complete", "b| return status 0")),
    ("ucmatose, many connections", "ucmatose -C 20 -S 9000 -c 20",
     "ucmatose -C 20 -S 9000 -c 20 -s 10.77.0.1", ("a| return status 0", "b| return status 0")),
    ("udaddy", "udaddy", "udaddy -s 10.77.0.1", ("a| return status 0", "b| return status 0")),
    ("rdma_client", "rdma_server", "rdma_client -s 10.77.0.1", ("b| rdma_client: end 0",)),
    ("mckey", "mckey -m 239.1.1.1 -b 10.77.0.1",
     "mckey -m 239.1.1.1 -s -b 10.77.0.2", ("a| return status 0",)),
    ("rstream", "rstream -b 10.77.0.1 -C 1000 -S 64", "rstream -s 10.77.0.1 -C 1000 -S 64",
     ("a| custom    64 ", "b| custom    64 ")),
    ("rstream, polling and verifying", "rstream -b 10.77.0.1 -C 50 -S 65536 -T v",
     "rstream -s 10.77.0.1 -C 50 -S 65536 -T v", ("b| custom    64k ",)),
    ("rstream, blocking", "rstream -b 10.77.0.1 -C 100 -S 4096 -T b",
     "rstream -s 10.77.0.1 -C 100 -S 4096 -T b", ("b| custom    4k ",)),
    ("riostream", "riostream -b 10.77.0.1 -C 100 -S 65536 -T v",
     "riostream -s 10.77.0.1 -C 100 -S 65536 -T v", ("b| custom    64k ",)),
    ("riostream, which answers where it waits", "riostream -b 10.77.0.1 -I 200 -C 1 -S 64",
     "riostream -s 10.77.0.1 -I 200 -C 1 -S 64", ("b| custom    64 ",)),
    ("udpong", "exec udpong -b 10.77.0.1 -C 50", "udpong -s 10.77.0.1 -C 50", ("b| custom ",)),
    *PRELOADED,
    ("cmtime", "exec cmtime -b 10.77.0.1", "cmtime -s 10.77.0.1 -c 50", ("b| disconnect",)),
    ("ibv_rc_pingpong", "ibv_rc_pingpong -e -g 1 -c", "ibv_rc_pingpong -e -g 1 -c 10.77.0.1",
     ("b| 1000 iters",)),
    ("ibv_ud_pingpong", "ibv_ud_pingpong -g 1", "ibv_ud_pingpong -g 1 10.77.0.1",
     ("b| 1000 iters",)),
    ("ibv_srq_pingpong", "ibv_srq_pingpong -g 1", "ibv_srq_pingpong -g 1 10.77.0.1",
     ("b| 1000 iters",)),
    ("ib_send_bw", "ib_send_bw -d fab0 -x 1 -n 1000", "ib_send_bw -d fab0 -x 1 -n 1000 10.77.0.1",
     ("b|  65536      1000",)),
    ("ib_read_bw", "ib_read_bw -d fab0 -x 1 -n 1000", "ib_read_bw -d fab0 -x 1 -n 1000 10.77.0.1",
     ("b|  65536      1000",)),
)

# What the preload library says of a server that has not answered within 0.4 s, or that began to
# listen between the client's request by RDMA and that by TCP: both ends start at once.
SLOW = re.compile("preload: TCP to .*: Connection (timed out|refused)")

# perftest's server listens anew for its second connection, which should not come too early.
SLOW_MADS = ("--faults", "mads:delay=50ms")

# Their servers run until they are ended; udpong's never listens, and works all the time.
FOR_EVER = {"cmtime": (), "udpong": ("--gap", "0.3")}


class Failure(Exception):
    """What was not as it should be."""


class Tests:
    def __init__(self, build, part=(1, 1)):
        self.build = build
        self.n_tests, (self.part, self.n_parts) = 0, part
        self.count = {"ok": 0, "FAIL": 0, "skip": 0}
        self.user = NOBODY if os.geteuid() == 0 else []
        self.folder = tempfile.mkdtemp(prefix="fabric-test-")
        os.chmod(self.folder, 0o777)

    def report(self, verdict, name, why=""):
        self.count[verdict] += 1
        print(f"{verdict:4} {name}" + (f": {why}" if why else ""), flush=True)

    def test(self, name, work, *arguments):
        self.n_tests += 1
        if self.n_tests % self.n_parts != self.part % self.n_parts:
            return
        try:
            work(*arguments)
            self.leaves_nothing()
        except Failure as failure:
            self.report("FAIL", name, failure)
        else:
            self.report("ok", name)

    def summary(self):
        """Print the counts. Return: the exit status."""
        count = self.count
        print(f"{count['ok']} passed, {count['FAIL']} failed, {count['skip']} skipped")
        if count["FAIL"]:
            return 1
        return 0 if count["ok"] else SKIPPED

    def command(self, *arguments):
        return [*self.user, str(FABRIC), "run", "--build", str(self.build),
                "--timeout", str(LIMIT_S), *arguments]

    def run(self, *arguments):
        env = dict(os.environ, TMPDIR=self.folder)
        return subprocess.run(self.command(*arguments), env=env, text=True, timeout=2 * LIMIT_S,
                              capture_output=True, check=False)

    def leaves_nothing(self):
        left = [path.name for path in Path(self.folder).iterdir()]
        left += [line for line in processes() if self.folder in line]
        if left:
            raise Failure(f"left behind: {left}")


def processes():
    """The environments and arguments of all processes but this one."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if int(path.name) != os.getpid():
                yield (path / "cmdline").read_text() + " " + (path / "environ").read_text()
        except (OSError, UnicodeDecodeError):
            continue


# --- programs ------------------------------------------------------------------------------------

def in_time(run, is_early):
    """Return the process of a run, which is repeated while its client was too early for the
    server."""
    for _ in range(ATTEMPTS):
        done = run()
        if not is_early(done):
            break
        print("     once more, its server was too slow for it", flush=True)
    if done.returncode:
        raise Failure(f"status {done.returncode}: {done.stdout[-800:]}{done.stderr[-400:]}")
    return done


def took_tcp(done):
    """Whether a preloaded client had to, because the server was too slow for it."""
    return not done.returncode and SLOW.search(done.stdout)


def program(tests, name, server, client, wanted):
    background, options = "&" if name in FOR_EVER else "", FOR_EVER.get(name, ())

    def run():
        done = tests.run("--timeout", "10", *options, f"a{background}:{server}", f"b:{client}")
        if done.returncode:
            done = tests.run(*options, f"a{background}:{server}", f"b:{RETRY.format(client)}")
        return done

    def missing(done):
        return [text for text in wanted if text not in done.stdout]

    done = in_time(run, lambda done: took_tcp(done) and any("-> OPEN" in text
                                                            for text in missing(done)))
    if missing(done):
        raise Failure(f"no {missing(done)} in {done.stdout[-1500:]}")


def unchanged(tests, serve, fetch, server, client):
    """Over RDMA if both ends have the preload library, else over TCP."""
    said = "$PURECM_FABRIC/said"
    once = f"{PRELOAD * client} {fetch}"

    def run():
        return tests.run(f"a&:{f'export {PRELOAD};' * server} {serve}",
                         f"b:export PURECM_LOG=debug; ({RETRY.format(once)}) 2>{said} || exit; "
                         f"grep -c 'CONNECTING -> OPEN' {said}; grep -o 'preload: .*' {said}; "
                         f"echo fetched; rm {said}")

    def went_well(done):
        return ("b| 0\n" in done.stdout) != (server and client)

    done = in_time(run, lambda done: took_tcp(done) and not went_well(done))
    if "b| fetched" not in done.stdout:
        raise Failure(f"nothing was fetched: {done.stdout[-800:]}{done.stderr[-400:]}")
    if not went_well(done):
        raise Failure(f"not the way it should have gone: {done.stdout[-800:]}")


def perftest_by_rdma_cm(tests):
    done = in_time(lambda: tests.run(*SLOW_MADS, "a&:ib_atomic_bw -R -n 1000",
                                     "b:ib_atomic_bw -R -n 1000 10.77.0.1"),
                   lambda done: re.search(PERFTEST_RACED, done.stdout))
    if "b|  8          1000" not in done.stdout:
        raise Failure(done.stdout + done.stderr)


def lost_mads(tests):
    """The connection manager sends again what was lost."""
    done = tests.run("--faults", "mads:loss=0.2 seed=5", "a:ucmatose -c 4",
                     "b:ucmatose -c 4 -s 10.77.0.1")
    if done.returncode or "b| return status 0" not in done.stdout:
        raise Failure(done.stdout + done.stderr)


def corrupted_mads(tests):
    """What no hardware would let through ends no cmportd, and all is well when it is over. The
    program on a may end: it expects no refusal of what it accepted."""
    clear = f"{FABRIC} faults --dir $PURECM_FABRIC/../.. ''"
    connect = RETRY.format("rping -c -v -a 10.77.0.2 -C 1")
    done = tests.run("--faults", "mads:corrupt=0.3 seed=5",
                     "a&:while :; do cmtime -b 10.77.0.1; sleep 0.1; done >/dev/null 2>&1",
                     f"b:timeout 3 cmtime -s 10.77.0.1 -c 100 >/dev/null 2>&1; {clear}; "
                     ": >$PURECM_FABRIC/../cleared; rping -s -C 1; true",
                     f"a:until [ -e $PURECM_FABRIC/../cleared ]; do sleep 0.1; done; {connect}")
    if done.returncode or "a| ping data: rdma-ping-0" not in done.stdout:
        raise Failure(done.stdout + done.stderr)


def orders(tests):
    """A port that is down, and a device that is pulled out."""
    fabric = f"{FABRIC} {{}} --dir $PURECM_FABRIC/../.. {{}}"
    down, up = (fabric.format("port", f"a {state}") for state in ("down", "up"))
    until = "until ibv_devinfo 2>&1 | grep {}; do sleep 0.1; done"
    done = tests.run("--hosts", "1",
                     f"a:{down}; {until.format('PORT_DOWN')}; {up}; {until.format('PORT_ACTIVE')}; "
                     f"{fabric.format('remove', 'a')}; {until.format('No.IB.devices.found')}")
    if done.returncode:
        raise Failure(done.stdout + done.stderr)


def second_port(tests, link):
    """A connection over it, which does not go on while it is down."""
    down = f"{FABRIC} port --dir $PURECM_FABRIC/../.. b down --port 2; for i in $(seq 100); do " \
           "ibv_devinfo | grep -q PORT_DOWN && break; sleep 0.2; done; ibv_devinfo | grep state"
    done = tests.run("--link", link, "--ports", "2", "a:rping -s -C 2",
                     "b:(" + RETRY.format("rping -c -v -a 10.77.1.1 -C 2") + f"); {down}")
    states = [line.split()[-2] for line in done.stdout.splitlines() if "state:" in line]
    if done.returncode or "b| ping data: rdma-ping-1" not in done.stdout \
            or states != ["PORT_ACTIVE", "PORT_DOWN"]:
        raise Failure(f"{states} {done.stdout}{done.stderr}")


def removal(tests):
    """A program whose device is pulled out is told so."""
    remove = f"{FABRIC} remove --dir $PURECM_FABRIC/../.. a"
    done = tests.run("--hosts", "2", "--gap", "0.7", "a:rping -s; echo ended",
                     "b&:rping -c -a 10.77.0.1", f"a:{remove}")
    if "a| ended" not in done.stdout:
        raise Failure(done.stdout + done.stderr)


def infiniband(tests, what, lmc):
    done = tests.run("--link", "ib", "--lmc", lmc, f"a:{what}",
                     "b:" + RETRY.format(f"{what} 10.77.0.1"))
    if done.returncode or "b| 1000 iters" not in done.stdout:
        raise Failure(done.stdout + done.stderr)


def by_purecm(tests):
    """The program purecm has it as a command, which finds its parts by itself."""
    command = [tests.build / "tools/purecm", "fabric", "run", "--hosts", "1", "--", "a:ibv_devices"]
    done = subprocess.run([*tests.user, *command],
                          env=dict(os.environ, TMPDIR=tests.folder), text=True,
                          timeout=LIMIT_S, capture_output=True, check=False)
    if done.returncode or "a|     fab0" not in done.stdout:
        raise Failure(done.stdout + done.stderr)


def path_query(tests):
    """saquery reads what our subnet administrator answers."""
    if not shutil.which("saquery"):
        tests.report("skip", "saquery", "infiniband-diags is not installed")
        return
    done = tests.run("--link", "ib", "a:saquery --src-to-dst 1:2", "b:saquery --src-to-dst 2:1")
    if done.returncode or "dlid....................2" not in done.stdout.replace("0x0002", "2"):
        raise Failure(done.stdout + done.stderr)


def ordinary_user(tests):
    done = tests.run("--hosts", "1", "a:id -u; grep CapEff /proc/self/status; ibv_devices")
    if "CapEff:\t0000000000000000" not in done.stdout or "a| 0\n" in done.stdout:
        raise Failure(done.stdout)


def both_ends_on_one_host(tests):
    done = tests.run("--hosts", "1", "a:rping -s -C 2",
                     "a:" + RETRY.format("rping -c -a 10.77.0.1 -C 2"))
    if done.returncode:
        raise Failure(done.stdout + done.stderr)


# --- bad input -----------------------------------------------------------------------------------

WRONG = (
    (("--hosts", "a,a", "a:true"), "two hosts are called a"),
    (("--hosts", "0", "a:true"), "a fabric has 1 to 200 hosts"),
    (("--hosts", "A_b", "a:true"), "cannot be a host's name"),
    (("c:true",), "there is no host c in this fabric of a, b"),
    (("true",), "is no command"),
    (("a&:true",), "nothing would be waited for"),
    (("--dir", "/", "a:true"), "neither empty nor a fabric's"),
    (("--dir", "/tmp/" + 60 * "x", "a:true"), "would not fit"),
    (("--hosts", "2", "--here", "lo", "a:true"), "--hosts 1"),
    (("--ports", "3", "a:true"), "a host has 1 to 2"),
    (("--subnets", "2", "a:true"), "are for --link ib"),
    (("--link", "ib", "--subnets", "3", "a:true"), "from 1 to the number of hosts"),
    (("--link", "ib", "--pkeys", "c:0x8001", "a:true"), "there is no host c"),
    (("--link", "ib", "--pkeys", "0x8000", "a:true"), "is no P_Key"),
    (("--link", "ib", "--ip-pkey", "0x8001", "a:true"), "not all hosts are in that partition"),
    (("--link", "ib", "--hosts", "200", "--ports", "2", "--lmc", "7", "a:true"),
     "there are not that many LIDs"),
    (("--faults", "mads:loss=2", "a:true"), "not a share between 0 and 1"),
    (("--faults", "mads:lost=1", "a:true"), "there is no fault 'lost'"),
    (("--faults", "loss", "a:true"), "are no faults"),
    (("--quirk", "slow", "a:true"), "there is no such quirk; there are: no-fast-path, "),
    (("--quirk", "c:no-fast-path", "a:true"), "--quirk c:no-fast-path: there is no host c"),
)


def wrong(tests, arguments, wanted):
    done = tests.run(*arguments)
    if done.returncode != 2 or wanted not in done.stderr or "Traceback" in done.stderr:
        raise Failure(f"status {done.returncode}: {done.stderr}")


def status_is_passed_on(tests):
    done = tests.run("a:exit 3", "b:true")
    if done.returncode != 3:
        raise Failure(f"status {done.returncode}")


def time_is_limited(tests):
    done = tests.run("--timeout", "1", "a:sleep 60")
    if done.returncode != 124 or "still running after 1.0 s: sleep 60" not in done.stderr or \
            "`stdbuf -oL PROGRAM` writes line by line" not in done.stderr:
        raise Failure(f"status {done.returncode}: {done.stderr}")


def nobody_reads_on(tests):
    """As of `fabric run ... | head`."""
    env = dict(os.environ, TMPDIR=tests.folder)
    fabric = subprocess.Popen(tests.command("--hosts", "1", "a:yes"), env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    fabric.stdout.readline()
    fabric.stdout.close()
    said = fabric.stderr.read()
    if fabric.wait(LIMIT_S) != 141 or said:
        raise Failure(f"status {fabric.returncode}: {said}")


def killed_fabric(tests, number):
    """Its processes end with it, and what it leaves is no hindrance for the next."""
    folder = str(Path(tests.folder, "it"))
    first = subprocess.Popen(tests.command("--dir", folder, "a:sleep 60 & wait"),
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    await_condition(lambda: Path(folder, "hosts/b/umad.1").exists()
                    and running("sleep\x0060", folder))
    second = tests.run("--dir", folder, "a:true")
    if second.returncode != 2 or "another fabric runs there" not in second.stderr:
        raise Failure(second.stderr)
    first.send_signal(number)
    first.wait()
    await_condition(lambda: not running("fabric-host", folder) and
                    not running("sleep\x0060", folder))
    third = tests.run("--dir", folder, "a:rping -s -C 1",
                      "b:" + RETRY.format("rping -c -a 10.77.0.1 -C 1"))
    told = "was left by a fabric that was killed" in third.stderr
    if third.returncode or told != (number == signal.SIGKILL):
        raise Failure(third.stderr)


def running(*texts):
    """Is there a process with all of these in its arguments and environment? Others, too, may have
    a fabric."""
    return any(all(text in line for text in texts) for line in processes())


def await_condition(condition):
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise Failure("waited in vain")
        time.sleep(0.05)


def dead_peer(tests):
    """One that is killed is noticed by the other end, and by cmportd for it."""
    server = "rping -s -a 10.77.0.1 & echo $! >$PURECM_FABRIC/pid; wait; sleep 60"
    client = ("rping -c -v -a 10.77.0.1 >$PURECM_FABRIC/said & "
              "until grep -q 'ping data' $PURECM_FABRIC/said; do sleep 0.1; done; "
              "kill -9 $(cat $PURECM_FABRIC/../a/pid); wait $!; echo ended")
    done = tests.run(f"a&:{server}", f"b:{client}")
    if "b| ended" not in done.stdout or done.returncode:
        raise Failure(done.stdout + done.stderr)


def dead_host(tests):
    done = tests.run("a:kill -9 $(pgrep -P $PPID fabric-host); sleep 60", "b:sleep 60")
    if done.returncode != 2 or "host a is gone" not in done.stderr:
        raise Failure(f"status {done.returncode}: {done.stderr}")


def without_cmportd(tests):
    """A program may own its host's port alone."""
    inline = "export PURECM_PORTD=inline; "
    done = tests.run(f"a:{inline} rping -s -C 2",
                     f"b:{inline}" + RETRY.format("rping -c -a 10.77.0.1 -C 2"))
    if done.returncode:
        raise Failure(done.stdout + done.stderr)


def no_namespaces(tests):
    """Where nobody may make namespaces it is said so, and one host can be had without."""
    forbid = "echo 0 >/proc/sys/user/max_user_namespaces; echo 0 >/proc/sys/user/max_net_namespaces"
    env = dict(os.environ, TMPDIR=tests.folder)
    net = ("ip link add eth0 type veth peer name far; ip addr add 172.17.0.2/16 dev eth0; "
           "ip link set lo up; ip link set eth0 up; ip link set far up")
    inside = [*tests.user, "unshare", "-Urn", "sh", "-c", f'{net}; {forbid}; exec "$@"', "sh",
              str(FABRIC), "run", "--build", str(tests.build)]
    done = subprocess.run([*inside, "a:true"], env=env, capture_output=True, text=True, check=False)
    if done.returncode != SKIPPED or "no user and network namespaces" not in done.stderr:
        raise Failure(f"status {done.returncode}: {done.stderr}")
    done = subprocess.run([*inside, "--hosts", "1", "--here", "eth0", "--timeout", str(LIMIT_S),
                           "a:rping -s -C 1", "a:" + RETRY.format("rping -c -a 172.17.0.2 -C 1")],
                          env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"status {done.returncode}: {done.stdout}{done.stderr}")


def why_not(tests):
    """Why nothing can be tested here, or None."""
    if not all(shutil.which(name) for name in ("rping", "ibv_rc_pingpong", "ib_send_bw")):
        return "rdmacm-utils, ibverbs-utils and perftest are not all installed"
    done = tests.run("--hosts", "1", "a:true")
    return None if done.returncode == 0 else done.stderr.strip()


def run_all(tests):
    for name, server, client, wanted in PROGRAMS:
        tests.test(name, program, tests, name, server, client, wanted)
    for name, serve, fetch in UNCHANGED:
        if not shutil.which(name):
            tests.report("skip", f"preloaded {name}", "it is not installed")
            continue
        for server, client in ENDS:
            ends = " and ".join(["server"] * server + ["client"] * client)
            tests.test(f"preloaded {name}: {ends}", unchanged, tests, serve, fetch, server, client)
    tests.test("commands are an ordinary user's", ordinary_user, tests)
    tests.test("ib_atomic_bw -R", perftest_by_rdma_cm, tests)
    tests.test("lost MADs", lost_mads, tests)
    tests.test("corrupted MADs", corrupted_mads, tests)
    tests.test("orders to a host", orders, tests)
    tests.test("a device that is pulled out", removal, tests)
    for link in ("roce", "ib"):
        tests.test(f"the second port, {link}", second_port, tests, link)
    for what in ("ibv_rc_pingpong", "ibv_ud_pingpong", "ibv_uc_pingpong"):
        for lmc in ("0", "2"):
            tests.test(f"{what} on InfiniBand, LMC {lmc}", infiniband, tests, what, lmc)
    tests.test("purecm fabric", by_purecm, tests)
    tests.test("saquery", path_query, tests)
    tests.test("both ends on one host", both_ends_on_one_host, tests)
    for arguments, wanted in WRONG:
        tests.test(f"refused: {wanted}", wrong, tests, arguments, wanted)
    tests.test("a command's status is passed on", status_is_passed_on, tests)
    tests.test("time is limited", time_is_limited, tests)
    tests.test("nobody reads on", nobody_reads_on, tests)
    tests.test("a fabric that was interrupted", killed_fabric, tests, signal.SIGINT)
    tests.test("a fabric that was terminated", killed_fabric, tests, signal.SIGTERM)
    tests.test("a fabric that was killed", killed_fabric, tests, signal.SIGKILL)
    tests.test("a peer that was killed", dead_peer, tests)
    tests.test("a host that was killed", dead_host, tests)
    tests.test("no cmportd", without_cmportd, tests)
    tests.test("no namespaces", no_namespaces, tests)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--part", default="1/1", metavar="K/N", help="every N-th test")
    args = parser.parse_args()
    tests = Tests(args.build, map(int, args.part.split("/")))
    try:
        why = why_not(tests)
        if why:
            tests.report("skip", "all of it", why)
        else:
            run_all(tests)
    finally:
        shutil.rmtree(tests.folder, ignore_errors=True)
    return tests.summary()


if __name__ == "__main__":
    sys.exit(main())
