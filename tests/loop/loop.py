#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs over the loop-back device of device.c, each check in a network namespace that has its
interface.

Prints one line per check and then "N passed, N failed, N skipped". Exit status: 0 if none failed,
77 if there can be no namespace here.
"""
import argparse
import collections
import concurrent.futures
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import sanitized  # noqa: E402

ADDRESS = "10.77.0.1"
SET_UP = ["ip link set lo up", "ip link add loop0 type veth peer name loop1",
          f"ip addr add {ADDRESS}/24 dev loop0", "ip addr add fd77::1/64 dev loop0 nodad",
          "ip link set loop1 up", "ip link set loop0 up"]
SKIPPED = 77
# Side by side: where calls fail, a conversation spends its time waiting for retransmissions.
AT_ONCE = 4
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
ONE_PAGE = "40000 40015"  # of the table of ports, whose pages stay
FEW, MANY = 2, 6  # conversations under valgrind
FAULTS_MAX = 1000
CONVERSATIONS = 1
LONG = bool(os.environ.get("PURECM_TEST_LONG"))
PLAYS = 2000 if LONG else 100  # of each of five threads
SEEDS = range(1, 11) if LONG else range(1, 2)
SOCKETS = "unit/lib/rsocket/rsocket_tests"
CMPORTD = "tools/cmportd/cmportd"
RACES = f"second_deadlock_stack=1:suppressions={HERE.parent}/luck/thread.supp"
FINDING = re.compile(r"(ERROR|WARNING): (Address|Thread|Leak)Sanitizer|runtime error:|Assertion")
CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


class Skip(Exception):
    """A check that cannot run here; the text says why."""


class Bench:
    """A build folder, and a folder for sockets."""

    def __init__(self, build, folder):
        self.build = Path(build)
        self.folder = Path(folder)
        self._n_sockets = 0

    def program(self, name, variant=None):
        folder = sanitized.folder_of(self.build, variant) if variant else self.build
        return str(folder / "tests" / name)

    def build_variant(self, variant):
        """Build the programs again, with a sanitizer."""
        try:
            sanitized.build_variant(self.build, variant)
        except sanitized.BuildFailed as error:
            raise AssertionError(str(error)) from None

    def socket(self):
        self._n_sockets += 1
        return self.folder / f"s{self._n_sockets}"

    def run(self, *argv, timeout=3000, **env):
        done = subprocess.run([str(word) for word in argv], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, timeout=timeout, env={**os.environ, **env})
        found = FINDING.search(done.stdout)
        if done.returncode or found:
            said = done.stdout[found.start():][:3000] if found else done.stdout[-3000:]
            raise AssertionError(f"status {done.returncode}: {said}")
        return done.stdout


class Cmportd:
    """A cmportd on the loop-back device, in which the n-th call fails."""

    def __init__(self, bench, nth=-1, variant=None):
        self.socket = bench.socket()
        self._log = open(f"{self.socket}.log", "w+", encoding="ascii", errors="replace")
        self.process = subprocess.Popen(
            [bench.program(CMPORTD, variant), f"--socket={self.socket}", "--idle=0"],
            stderr=self._log, env={**os.environ, "FAULT_NTH": str(nth)})

    def await_socket(self):
        """Return when it serves, or has ended."""
        while not self.socket.exists() and self.process.poll() is None:
            time.sleep(0.002)

    def n_fds(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def log(self):
        self._log.seek(0)
        return self._log.read()

    def stop(self):
        """End it. Return: its exit status."""
        if self.process.poll() is None:
            self.process.terminate()
        status = self.process.wait(200)
        self._log.seek(0)
        return status

    def __enter__(self):
        self.await_socket()
        return self

    def __exit__(self, *args):
        self.stop()
        self._log.close()


def end_others(socket):
    """End the cmportd that a client may have started where ours did not serve."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"--socket={socket}".encode() in words:
            os.kill(int(pid), 15)


@check
def conversations_over_the_loop_back_device(bench):
    bench.run(bench.program("loop/talks"), CONVERSATIONS, PURECM_PORTD="inline")
    with Cmportd(bench) as cmportd:
        bench.run(bench.program("loop/talks"), CONVERSATIONS, PURECM_SOCKET=str(cmportd.socket))


BURSTS = ("none_has_to_be_repeated_while_the_program_takes_them",
          "those_beyond_are_dropped_when_the_program_does_nothing",
          "those_beyond_end_unanswered_with_the_listener",
          "one_that_was_given_up_is_not_shown")
BURST_TRIES = 100


@check
def more_requests_at_once_than_the_backlog_holds(bench):
    for name in BURSTS:
        with Cmportd(bench) as cmportd:
            command = bench.program("loop/burst"), name
            if not any("late\n" not in bench.run(*command, PURECM_SOCKET=str(cmportd.socket))
                       for _ in range(BURST_TRIES)):
                raise AssertionError(f"{name}: this machine was too busy, each time")


def rounds_of(said):
    return int(re.search(r"^memory: (\d+) rounds", said, re.MULTILINE)[1])


@check
def each_call_of_the_library_may_fail_with_cmportd(bench):
    with Cmportd(bench) as cmportd:
        said = bench.run(bench.program("loop/scarce"), "memory", ADDRESS,
                         PURECM_SOCKET=str(cmportd.socket))
    return f"{rounds_of(said)} calls"


def fail_in_cmportd(bench, nth, n_fds):
    """One life of a cmportd. Return: the call that failed, or None if it got that far."""
    with Cmportd(bench, nth) as cmportd:
        env = {"PURECM_SOCKET": str(cmportd.socket)}
        try:
            bench.run(bench.program("loop/talks"), CONVERSATIONS, timeout=600, **env)
            alive = cmportd.process.poll() is None
            if alive and n_fds and wait_until(lambda: cmportd.n_fds() <= n_fds, 60) is False:
                raise AssertionError(f"{cmportd.n_fds()} descriptors are left, not {n_fds}")
        finally:
            end_others(cmportd.socket)
        status = cmportd.stop()
        log = cmportd.log()
    fault = re.search(r"^fault: (\w+)", log, re.MULTILINE)
    if status not in (0, 1) or FINDING.search(log) or (fault is None and status):
        raise AssertionError(f"cmportd ends with {status}: {log[-2000:]}")
    return fault and fault[1]


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


@check
def each_call_of_cmportd_may_fail(bench):
    with Cmportd(bench) as idle:
        n_fds = idle.n_fds()
    bad = []
    for nth in range(0, FAULTS_MAX, 1 if LONG else 5):
        try:
            # What it has opened by then, a port for one, it may keep.
            fault = fail_in_cmportd(bench, nth, n_fds + 8)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            bad.append(f"call {nth}: {error}")
            continue
        if fault is None:
            break
    if bad:
        raise AssertionError("\n".join(bad)[:6000])
    return f"{nth} calls"


@check
def each_call_of_the_library_may_fail_and_nothing_leaks(bench):
    bench.build_variant("asan")
    with Cmportd(bench) as cmportd:
        said = bench.run(bench.program("loop/scarce", "asan"), "memory", ADDRESS,
                         PURECM_SOCKET=str(cmportd.socket))
    return f"{rounds_of(said)} calls"


def stress(bench, variant, **env):
    """Threads that make all calls at each other's ids. Return: how many plays."""
    with Cmportd(bench, variant=variant) as cmportd:
        for seed in SEEDS:
            bench.run(bench.program("loop/stress", variant), PLAYS, seed,
                      PURECM_SOCKET=str(cmportd.socket), **env)
        log = cmportd.log()
    if FINDING.search(log):
        raise AssertionError(log[:3000])
    return f"{5 * PLAYS * len(SEEDS)} plays"


@check
def eight_threads_take_locks_in_order(bench):
    return stress(bench, None)


@check
def eight_threads_use_nothing_that_is_gone_says_address_sanitizer(bench):
    bench.build_variant("asan")
    return stress(bench, "asan")


@check
def eight_threads_race_for_nothing_says_thread_sanitizer(bench):
    bench.build_variant("tsan")
    return stress(bench, "tsan", TSAN_OPTIONS=RACES)


@check
def readers_and_writers_of_64_sockets_race_for_nothing_says_thread_sanitizer(bench):
    bench.build_variant("tsan")
    bench.run(bench.program(SOCKETS, "tsan"), "threads", TSAN_OPTIONS=RACES)
    return "128 threads"


@check
def eight_threads_use_locks_in_order_says_helgrind(bench):
    if not shutil.which("valgrind"):
        raise Skip("no valgrind; apt-get install valgrind")
    plays = 50 if LONG else 5
    with Cmportd(bench) as cmportd:
        bench.run("valgrind", "--tool=helgrind", "-q", "--error-exitcode=9", "--fair-sched=yes",
                  f"--suppressions={HERE}/helgrind.supp", bench.program("loop/stress"), plays, 1,
                  PURECM_SOCKET=str(cmportd.socket))
    return f"{5 * plays} plays"


def blocks_left(bench, conversations, **env):
    """Return how many blocks of memory there are at the end, of which none may be lost."""
    kinds = "definite,indirect,possible"
    said = bench.run("valgrind", "--leak-check=full", f"--show-leak-kinds={kinds}",
                     f"--errors-for-leak-kinds={kinds}",
                     f"--suppressions={HERE.parents[1]}/docs/examples/valgrind.supp",
                     "--error-exitcode=9", "--fair-sched=yes", bench.program("loop/talks"),
                     conversations, timeout=2000, **env)
    return int(re.search(r"in use at exit: [\d,]+ bytes in ([\d,]+) blocks",
                         said)[1].replace(",", ""))


@check
def conversations_use_and_leave_no_memory_says_valgrind(bench):
    if not shutil.which("valgrind"):
        raise Skip("no valgrind; apt-get install valgrind")
    usual = EPHEMERAL.read_text(encoding="ascii")
    EPHEMERAL.write_text(ONE_PAGE, encoding="ascii")
    try:
        with Cmportd(bench) as cmportd:
            few, many = [blocks_left(bench, n, PURECM_SOCKET=str(cmportd.socket))
                         for n in (FEW, MANY)]
    finally:
        EPHEMERAL.write_text(usual, encoding="ascii")
    # What is made once may be made late: on a busy machine one block was not there after the few.
    if many - few >= MANY - FEW:
        raise AssertionError(f"{few} blocks after {FEW} conversations, {many} after {MANY}")
    return f"the process keeps {many} blocks"


def run_check(function, build):
    """Run one check in this process, in a network namespace that is set up here."""
    for command in SET_UP:
        subprocess.run(command.split(), check=True)
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="purecm-loop-") as folder:
            said = function(Bench(build, folder))
        verdict, why = "passed", f": {said}" if said else ""
    except Skip as reason:
        verdict, why = "skipped", f": {reason}"
    except (AssertionError, subprocess.TimeoutExpired) as error:
        verdict, why = "failed", f": {error}"
    print(f"{verdict:8}{function.__name__.replace('_', ' ')} "
          f"({time.monotonic() - began:.1f} s){why}", flush=True)


def way_into_namespace():
    """Return the command that starts a program in a network namespace of its own, if any."""
    for way in (["unshare", "-n"], ["unshare", "-rn"]):
        if subprocess.run([*way, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return way
    return None


def run_beside(way, build, function):
    """Run one check in a process and a network namespace of its own. Return: its verdict."""
    command = [*way, sys.executable, __file__, str(build), function.__name__, "--inside"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)
    verdict = re.search(r"^(passed|failed|skipped) ", done.stdout, re.MULTILINE)
    said = done.stdout if verdict else (f"failed  {function.__name__.replace('_', ' ')}: "
                                        f"status {done.returncode}: {done.stdout[-3000:]}\n")
    print(said, end="", flush=True)
    return verdict[1] if verdict else "failed"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", help="Meson build folder, with tests/loop built")
    parser.add_argument("only", nargs="*", help="names of checks; all by default")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    checks = [function for function in CHECKS if not args.only or function.__name__ in args.only]
    if args.inside:
        run_check(checks[0], args.build)
        return 0
    way = way_into_namespace()
    if not way:
        print("loop: skipped: no network namespace of our own; run as root")
        return SKIPPED
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        verdicts = list(pool.map(lambda check: run_beside(way, args.build, check), checks))
    count = collections.Counter(verdicts)
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
