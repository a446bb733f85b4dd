#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A cmportd under attack, on a soft fabric: users of its host and hosts of its network do their
worst, one kind after the other, while ten honest clients connect.

Prints for each attack how much longer the honest ones need than beside the same load that does not
concern their cmportd, the two in turn, and how much memory and how many descriptors cmportd has
had. That load is the same attack on another host. An attack succeeds if an honest connect fails or
a connection ends, if cmportd ends or has more than its limits, or if by the median of the pairs
they need more than three times as long: then ten more pairs decide. Last it prints "N passed, N
failed, N skipped".
Exit status: 1 if an attack succeeded, 77 if there can be no fabric here.
"""
import argparse
import os
from pathlib import Path
import re
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "fabric")]

from hosts import run_on_fabric, run_tests  # noqa: E402
import sanitized  # noqa: E402

DEFAULT_S = 1200
LIMIT_S = 600  # in addition: to begin, and for the pairs that decide
ATTACK_S = 120
START_S = 60
PORT, SLOW_PORT = 7700, 7998
HONEST, SERVER, STRANGER, BYSTANDER = (f"10.77.0.{i}" for i in range(1, 5))
NOT_THERE = "10.77.0.99"
CLIENTS, EACH, FIRST_QPN = 10, 20, 0x1000
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
MEMORY_MIB = 256  # a quarter of what the unit allows
FDS_MAX = 4096  # a sixteenth of what the unit allows
# At least; otherwise until the honest ones have connected.
LASTS_S = {"stowaways": 1, "namespaces": 2, "namesakes": 1, "wire:forgeries": 1}
RECORDED = ("wire:forgeries",)  # are made of what the honest ones' host has recorded
AFTERWARDS = ("namesakes",)  # begin when the honest ones have connected
SLOWER_MAX, PAIRS_MORE = 3, 10  # a median of few pairs may be that of a busy machine

# Kind of tests/portd/flooder.c, how many at once as uid 65534, to whom.
BY_USERS = (
    ("requests", 4, SERVER), ("requests", 4, NOT_THERE), ("answers", 4, SERVER),
    ("namesakes", 4, SERVER), ("lookups", 4, SERVER), ("lies", 4, SERVER), ("noise", 4, SERVER),
    ("questions", 4, SERVER), ("visits", 4, SERVER), ("knocks", 4, SERVER), ("rattles", 4, SERVER),
    ("silence", 4, SERVER), ("deaths", 4, SERVER), ("devices", 4, SERVER),
    ("ids", 4, SERVER), ("ports", 4, SERVER), ("stats", 4, SERVER), ("crowd", 2, SERVER),
    ("descriptors", 4, SERVER), ("stowaways", 4, SERVER), ("opens", 4, SERVER),
    ("reports", 4, SERVER), ("namespaces", 4, SERVER), ("renamings", 4, SERVER),
    ("lookalikes", 4, SERVER))
# From a host of the network, to the one where the honest ones are.
BY_STRANGERS = ("wire:requests", "wire:slow-requests", "wire:lookups", "wire:lies", "wire:answers",
                "wire:noise", "wire:forgeries", "wire:strangers")


# On InfiniBand: what users ask of the subnet administrator.
BY_USERS_OF_SUBNET = (
    ("paths", 4, SERVER), ("withdrawals", 4, SERVER), ("groups", 4, SERVER),
    ("new-groups", 4, SERVER), ("tables", 4, SERVER), ("doubts", 4, SERVER))
N_KINDS = len(BY_USERS) + len(BY_STRANGERS) + len(BY_USERS_OF_SUBNET)
SERVICES = 900  # in a table
SERVER_GID = "fe80::50:4300:0:201"


class Siege:
    """What is on host a: honest clients, and attackers."""

    def __init__(self, build, seconds, only):
        self.build = build
        self.seconds = seconds
        self.only = only
        self.qpn = FIRST_QPN  # of the honest clients, when they next connect
        self.took_s = {}  # of an attack: beside the same load elsewhere, beside attackers
        self.hold = f"{build}/tools/certify/hold"
        self.flooder = f"{build}/tests/portd/flooder"

    def wait_for_server(self):
        """Return when a client can connect: the server's host may be slow to begin."""
        words = [self.hold, "client", SERVER, str(PORT), "1", "leave"]
        until = time.monotonic() + START_S
        while (done := subprocess.run(words, stdout=subprocess.PIPE, text=True,
                                      check=False)).returncode:
            assert time.monotonic() < until, f"the server is not there: {done.stdout}"
            time.sleep(0.1)

    def connect(self):
        """Connect all honest clients at once. Return: how long that took, in seconds, and their
        processes."""
        words = [self.hold, "client", SERVER, str(PORT), str(EACH), "0"]
        # An attack may have filled the kernel's neighbour table.
        subprocess.run(["ip", "neigh", "flush", "to", SERVER], check=True)
        begin = time.monotonic()
        clients = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True,
                                    env={**os.environ, "HOLD_QPN": str(self.qpn + i * EACH),
                                         "PURECM_LOG": "warn"})
                   for i in range(CLIENTS)]
        said = [client.stdout.readline() for client in clients]
        took_s = time.monotonic() - begin
        if not all(line.startswith("held") for line in said):
            end(clients)
            subprocess.run([f"{self.build}/tools/purecm", "stat"], check=False)
            raise AssertionError(f"an honest client says {said}")
        return took_s, clients

    def attack(self, kind, count, peer, own=HONEST, user=NOBODY):
        """Begin an attack. Return: its processes."""
        # In a session of their own, as another user's: where the kernel shares the processors among
        # sessions, they would otherwise take those of the honest ones.
        words = [*user, self.flooder, kind, "fab0", own, peer, str(ATTACK_S)]
        env = {**os.environ, "HOLD_QPN": str(self.qpn)}
        if kind in RECORDED:
            env["FLOODER_RECORDING"] = Order("recording").next("")
        until = time.monotonic() + ATTACK_S
        while True:
            attackers = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=env,
                                          start_new_session=True)
                         for _ in range(count)]
            refused = [line for line in (each.stdout.readline() for each in attackers)
                       if line != "floods\n"]
            if not refused:
                return attackers
            end(attackers)
            # The attackers of before are dead, which cmportd may have to notice yet.
            if "has enough" not in refused[0] or time.monotonic() > until:
                raise AssertionError(f"an attacker says {refused[0]!r}")
            time.sleep(0.1)


def last_words(processes):
    """Return what those have said that have ended."""
    return [process.stdout.readline() for process in processes if process.poll() is not None]


def end(processes):
    for process in processes:
        process.send_signal(signal.SIGKILL)
    for process in processes:
        process.wait()


def cmportd():
    """Return who listens at the socket of this host."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(os.environ["PURECM_SOCKET"])
        return struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


def memory_mib(pid):
    """Return the most memory that a process has had."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) // 1024


def count_fds(pid):
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def open_to_all():
    """Let other users reach the device of this host, which the fabric keeps for its own."""
    host = Path(os.environ["PURECM_FABRIC"])
    for folder in (host.parent.parent, host.parent):
        folder.chmod(0o755)
    slots = host / "slots"  # else an attacker makes it, and cmportd has no queue pair
    slots.touch()
    for path in (host, slots, host / "ctx", host / "page", *host.glob("umad.*"),
                 *(host / name for name in ("control", "gsi"))):
        path.chmod(0o777)


class Attack:
    """A kind of attack. begin(kind) and begin_elsewhere(kind) return processes."""

    def __init__(self, name, kind, begin, begin_elsewhere):
        self.name = name
        self.kind = kind
        self.begin = begin
        self.begin_elsewhere = begin_elsewhere


def connect_beside(siege, begin, kind, afterwards):
    """Return: how long that took, and how many descriptors cmportd had afterwards."""
    siege.qpn += CLIENTS * EACH  # the server may not have forgotten those of before
    attackers = [] if afterwards else begin(kind)
    clients = []
    try:
        took_s, clients = siege.connect()
        if afterwards:
            attackers = begin(kind)
        time.sleep(max(0, LASTS_S.get(kind, 0) - took_s * (not afterwards)))
        said = last_words(clients)
        assert not said, f"a connection ends: {said}"
        said = last_words(attackers)
        assert not said, f"an attacker ends: {said}"
        return took_s, count_fds(cmportd())
    finally:
        end(attackers)
        end(clients)


def withstand(siege, attack):
    """Connect beside the same load elsewhere, then while an attack is under way. Print what it
    did."""
    pid, name = cmportd(), attack.name
    calm, attacked = siege.took_s.setdefault(name, ([], []))
    calm.append(connect_beside(siege, attack.begin_elsewhere, attack.kind, False)[0])
    took_s, n_fds = connect_beside(siege, attack.begin, attack.kind, attack.kind in AFTERWARDS)
    attacked.append(took_s)
    assert cmportd() == pid, f"{name}: cmportd is another one"
    mib = memory_mib(pid)
    print(f"{name}: {attacked[-1] / calm[-1]:.1f} times as long, {mib} MiB, "
          f"{n_fds} descriptors", flush=True)
    assert mib < MEMORY_MIB, f"{name}: {mib} MiB"
    assert n_fds < FDS_MAX, f"{name}: {n_fds} descriptors"


def slower(siege, name):
    """Return how much slower an attack has made the honest ones: the median of its pairs. Both of a
    pair have the same load beside them, different pairs may have different ones."""
    calm, attacked = siege.took_s[name]
    return statistics.median(its / other for its, other in zip(attacked, calm))


def judge(siege, attacks):
    """Give those that seem too slow more pairs, and print what is so of each."""
    too_slow = []
    for attack in attacks:
        if slower(siege, attack.name) > SLOWER_MAX:
            for _ in range(PAIRS_MORE):
                withstand(siege, attack)
        calm, attacked = siege.took_s[attack.name]
        ratio = slower(siege, attack.name)
        print(f"{attack.name}: {ratio:.2f} times as long, {len(calm)} pairs, "
              f"{statistics.median(calm):.2f} s and {statistics.median(attacked):.2f} s",
              flush=True)
        if ratio > SLOWER_MAX:
            too_slow.append(attack.name)
    assert not too_slow, f"slowed by more than they may: {too_slow}"


def be_besieged(siege, attacks):
    """Play each kind once, and go on for the share of the time that these have; then judge."""
    siege.wait_for_server()
    share = 1 if siege.only else len(attacks) / N_KINDS
    until = time.monotonic() + siege.seconds * share
    attacks = [attack for attack in attacks
               if siege.only in ("", attack.kind.removeprefix("wire:"))]
    while attacks:
        for attack in attacks:
            withstand(siege, attack)
        if time.monotonic() >= until:
            break
    if siege.seconds:
        judge(siege, attacks)


def by_users(siege, kind, count, peer):
    name = f"{count} users' {kind}" + (" to nobody" if peer == NOT_THERE else "")
    return Attack(name, kind, lambda kind: siege.attack(kind, count, peer),
                  lambda kind: [Remote("bystander", kind, count, peer)])


def play_users(siege):
    open_to_all()
    be_besieged(siege, [by_users(siege, *each) for each in BY_USERS])


def play_users_of_subnet(siege):
    open_to_all()
    be_besieged(siege, [by_users(siege, *each) for each in BY_USERS_OF_SUBNET])


class Order:
    """A file that all hosts of a fabric see: what another host is to do, or what it does."""

    def __init__(self, name):
        self.path = Path(os.environ["PURECM_FABRIC"]).parent / name

    def give(self, what):
        part = self.path.with_name(f"{self.path.name}.part")
        part.write_text(what, encoding="ascii")
        part.rename(self.path)

    def wait(self, what):
        while True:
            is_there = self.path.read_text(encoding="ascii") if self.path.exists() else ""
            assert not is_there.startswith("ended"), is_there
            if is_there == what:
                return
            time.sleep(0.02)

    def next(self, before):
        """Return: another one, when there is."""
        while True:
            what = self.path.read_text(encoding="ascii") if self.path.exists() else ""
            if what not in ("", before):
                return what
            time.sleep(0.02)


class Remote:
    """Attackers on another host, as a process that can be ended."""

    def __init__(self, host, kind, count, peer):
        self.wanted, self.done = Order(f"wanted.{host}"), Order(f"done.{host}")
        wanted = f"{kind} {count} {peer}"
        self.wanted.give(wanted)
        self.done.wait(wanted)

    def poll(self):
        return None  # wait() looks

    def send_signal(self, _signal):
        self.wanted.give("nothing")

    def wait(self):
        self.done.wait("nothing")


def obey(siege, host, own, user):
    """Do on this host what is wanted, until this process is ended."""
    attackers, wanted = [], "nothing"
    while True:
        wanted = Order(f"wanted.{host}").next(wanted)
        said = last_words(attackers)
        if said:
            Order(f"done.{host}").give(f"ended: {said}")
            return
        end(attackers)
        attackers = []
        if wanted != "nothing":
            kind, count, peer = wanted.split()
            try:
                attackers = siege.attack(kind, int(count), peer, own=own, user=user)
            except AssertionError as err:
                Order(f"done.{host}").give(f"ended: {kind}: {err}")
                raise
        Order(f"done.{host}").give(wanted)


def start_slow_listener(siege, own):
    slow = subprocess.Popen([siege.hold, "server", own, str(SLOW_PORT)], stdout=subprocess.PIPE)
    slow.stdout.readline()
    slow.send_signal(signal.SIGSTOP)
    return slow


def play_strangers(siege):
    siege.wait_for_server()
    Order("recording").give(os.environ["PURECM_SOCKET"] + ".recorded")
    end(siege.connect()[1])  # there has to be a recording
    slow = start_slow_listener(siege, HONEST)
    try:
        be_besieged(siege, [Attack(f"a host's {kind[len('wire:'):]}", kind,
                                   lambda kind: [Remote("stranger", kind, 1, HONEST)],
                                   lambda kind: [Remote("stranger", kind, 1, BYSTANDER)])
                            for kind in BY_STRANGERS])
    finally:
        end([slow])


def play_stranger(siege):
    obey(siege, "stranger", STRANGER, ())


def play_bystander(siege):
    """Attack the cmportd of this host, or be attacked, as the honest ones' host."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda *_: sys.exit(0))
    open_to_all()
    slow = start_slow_listener(siege, BYSTANDER)
    try:
        obey(siege, "bystander", BYSTANDER, NOBODY)
    finally:
        end([slow])


PLAYS = {"users": play_users, "users-of-subnet": play_users_of_subnet, "strangers": play_strangers,
         "stranger": play_stranger, "bystander": play_bystander}


def play(what, name, *others, link=(), commands=()):
    build, daemon, seconds, only = what
    words = (f"exec {sys.executable} {__file__} --build {build} --seconds {seconds} "
             f"--only '{only}' --play")
    done = run_on_fabric(
        build, LIMIT_S + seconds, "--hosts", "4", *link, "--gap", "0.3", f"a:{daemon}",
        f"d:{daemon}", *commands,
        f"b&:exec {build}/tools/certify/hold server {SERVER} {PORT} >&2",  # says why it ends
        *(f"{host}&:{words} {other}" for host, other in others), f"a:{words} {name}",
        stderr=subprocess.STDOUT)
    print(done.stdout, end="")
    wrong = re.findall(r"^\w*Error: .*$", done.stdout, re.MULTILINE)
    assert done.returncode == 0, wrong[-1] if wrong else f"status {done.returncode}"


def users_of_a_host_do_not_hurt_each_other(what):
    play(what, "users", ("d", "bystander"))


def users_of_a_subnet_do_not_hurt_each_other(what):
    play(what, "users-of-subnet", ("d", "bystander"), link=("--link", "ib"),
         commands=(f"b&:exec {what[0]}/tests/ib/service offer siege {PORT} {SERVICES} "
                   f"{SERVER_GID} >&2",))


def a_host_of_the_network_does_not_hurt_them(what):
    play(what, "strangers", ("c", "stranger"), ("d", "bystander"))


def plain_cmportd(build):
    # It stays when it has no clients: in a folder that is open to all, root's programs start none.
    return f"{build}/tools/cmportd/cmportd --confine=kill --idle=0 --detach"


def sanitized_cmportd(build, folder):
    """Build a cmportd that ends with the first finding. Return: a command that starts one, which
    writes what it finds to a folder."""
    sanitized.build_variant(build, "asan")
    program = sanitized.folder_of(build, "asan") / "tools/cmportd/cmportd"
    # By default the sanitizer keeps 256 MiB of freed memory, which would count as cmportd's.
    return ("ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0:quarantine_size_mb=32 "
            "UBSAN_OPTIONS=halt_on_error=1 "
            f"{program} --confine=kill --idle=0 >{folder}/$$ 2>&1 & "
            'until [ -S "$PURECM_SOCKET" ]; do sleep 0.1; done')


def print_findings(folder):
    """Return whether there are any."""
    found = [file.read_text(encoding="utf-8", errors="replace")
             for file in sorted(Path(folder).iterdir())]
    for text in found:
        print(text[:3000])
    return any("Sanitizer" in text or "runtime error" in text for text in found)


TESTS = (users_of_a_host_do_not_hurt_each_other, users_of_a_subnet_do_not_hurt_each_other,
         a_host_of_the_network_does_not_hurt_them)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build")
    parser.add_argument("--seconds", type=int, default=DEFAULT_S, metavar="N",
                        help=f"go on for so long, {DEFAULT_S} by default; "
                             "0: each attack once, however long that takes")
    parser.add_argument("--only", default="", metavar="KIND", help="this kind of attack")
    parser.add_argument("--sanitized", action="store_true",
                        help="with a cmportd under the address and undefined behaviour sanitizers; "
                             "each attack once, without a verdict on the time")
    parser.add_argument("--play", choices=PLAYS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    build = args.build.resolve()
    if args.play:
        PLAYS[args.play](Siege(build, args.seconds, args.only))
        return 0
    if not args.sanitized:
        return run_tests(TESTS, (build, plain_cmportd(build), args.seconds, args.only))
    with tempfile.TemporaryDirectory() as folder:
        status = run_tests(TESTS, (build, sanitized_cmportd(build, folder), 0, args.only))
        return 1 if print_findings(folder) else status


if __name__ == "__main__":
    sys.exit(main())
