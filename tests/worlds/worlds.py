#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Debian's programs on hosts with several ports, VLANs, VRFs, bonds and policy routing.

Each world of table.py is a boot of the lab. Its cases are played by stock with itself and then with
this library at either end and at both. How both ends end, what they print, and by which devices
the client's messages left is compared with stock, which may well fail. Prints a line per case, and
then "N passed, N failed, N skipped". Exit status: 0, 1 if a case differs, 77 if the lab cannot run.
"""
import argparse
import ipaddress
import json
import os
from pathlib import Path
import re
import shlex
import sys
import time

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lab"))

from lablib import Lab, LabError, LabTimeout, doctor, qemu, userland  # noqa: E402
from lablib.release import RELEASES  # noqa: E402
from program_cases import PERFTEST_RACED, slowed  # noqa: E402
import kernel_module  # noqa: E402
from table import WORLDS  # noqa: E402

# The server's library, the client's.
REFERENCE = ("stock", "stock")
PAIRINGS = (("stock", "purecm"), ("purecm", "stock"), ("purecm", "purecm"))
TIMEOUT_S = 60
ATTEMPTS = 10
SERVER_S = 10  # for a server to end after its client
# A device that has sent fewer has not carried the connection, or only a short one. Purecm sends a
# few more than stock, which probe the fast path.
PACKETS_OF_USE = 13
TARGETS = ("lib/librdmacm.so.1.5.0", "tools/cmportd/cmportd", "tests/worlds/path",
           "tests/worlds/moves", "tools/purecm")
LONG = bool(os.environ.get("PURECM_TEST_LONG"))

# Lines that a program may print or not, depending on how its threads end.
RACY = re.compile(r"DISCONNECT EVENT|wait for RDMA_READ_ADV|rdma_get_cm_event: Bad file|"
                  r"connect error -1|wait for CONNECTED state|"
                  r"waiting for addr/route resolution state|TIMEWAIT_EXIT")
# What differs between two runs: queue pair numbers, sequence numbers, pointers, and figures of a
# measurement. What the library logs may follow such figures on the same line.
VOLATILE = ((re.compile(r"0x[0-9a-f]+"), "0x"), (re.compile(r"\b(QPN|PSN)\b.*"), ""),
            (re.compile(r"[\d.]+\s+[\d.]+\s+[\d.]+\s+[\d.]+\s*(purecm\[.*)?$"), "FIGURES"))


def main():
    args = parse()
    if not doctor.which(qemu.QEMU):
        print(f"skipped: {qemu.QEMU} is missing; {doctor.install('qemu-system-x86')}")
        return 77
    build = args.build.resolve()
    if args.release != "own":
        build = userland.build_or_exit(RELEASES[args.release], TARGETS)
    count = {"passed": 0, "failed": 0}
    for world in WORLDS:
        if world.name in args.world if args.world else world.is_sampled or not args.sample:
            for verdict in play_world(world, args, build):
                count["passed" if verdict else "failed"] += 1
    print(f"{count['passed']} passed, {count['failed']} failed, 0 skipped")
    return 1 if count["failed"] or not count["passed"] else 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("world", nargs="*", help="names; all by default")
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build",
                        help="build folder (default: build)")
    parser.add_argument("--only", default="", metavar="REGEX", help="cases that match")
    parser.add_argument("--release", choices=RELEASES, default="own", help="Debian's, of the hosts")
    parser.add_argument("--sample", action="store_true",
                        help="every sixth case of some worlds, purecm with purecm only; all in "
                        "all pairings with PURECM_TEST_LONG")
    parser.add_argument("--stock-only", action="store_true", help="print what stock does")
    args = parser.parse_args()
    args.sample = args.sample and not LONG
    args.pairings = PAIRINGS[-1:] if args.sample else PAIRINGS
    return args


# --- a world -----------------------------------------------------------------------------------


def play_world(world, args, build):
    """Play all cases of a world in all pairings. Yields whether each case was as with stock."""
    print(f"{world.name}: {world.what}", flush=True)
    cases = world.cases[::6] if args.sample else world.cases
    cases = [case for case in cases if re.search(args.only, case.name)]
    module = kernel_module.build(RELEASES[args.release]) if world.has_dcb else ""
    with Lab({"a": "stock", "b": "stock"}, nics=world.nics, release=args.release) as lab:
        for number, host in enumerate((lab.a, lab.b), start=1):
            script = "set -e; " + "; ".join(world.set_up)
            host.run(script.replace("{n}", str(number)).replace("{module}", str(module)),
                     check=True)
            await_devices(host)
        stage = Stage(lab, build)
        stock = {case.name: stage.play(case, REFERENCE) for case in cases}
        if args.stock_only:
            for name, outcome in stock.items():
                print(f"  {name}", *show(outcome), sep="\n    ")
            return
        for pairing in args.pairings:
            for case in cases:
                if not case.server and pairing[1] == "stock":
                    continue  # nobody else plays
                yield judge(stage, case, pairing, stock[case.name])


def await_devices(host):
    """Wait until each device is active and has a GID for each address of its interface."""
    host.wait_for("! rdma link show | grep -qv 'state ACTIVE'", TIMEOUT_S)
    end = time.monotonic() + TIMEOUT_S
    while missing := gids_to_come(host):
        if time.monotonic() > end:
            raise LabTimeout(f"host {host.name}: no GIDs {' '.join(sorted(missing))}")
        time.sleep(0.1)


def gids_to_come(host):
    """Return the GIDs of the interfaces' addresses that their devices do not have yet."""
    *tables, addresses = host.run(
        "cd /sys/class/infiniband; for d in *; do echo $(cat $d/ports/1/gid_attrs/ndevs/0; "
        "cat $d/ports/1/gids/* 2>/dev/null); done; ip -j addr", check=True).stdout.splitlines()
    has = {interface: gids for interface, *gids in map(str.split, tables)}
    wants = {interface["ifname"]: {gid_of(address["local"]) for address in interface["addr_info"]}
             for interface in json.loads(addresses)}
    return set().union(*(wants[interface].difference(gids) for interface, gids in has.items()))


def gid_of(address):
    """Return the GID of an address, as in sysfs."""
    address = ipaddress.ip_address(address)
    mapped = ipaddress.ip_address(f"::ffff:{address}") if address.version == 4 else address
    return mapped.exploded


def judge(stage, case, pairing, stock):
    """Return whether a case is as with stock; what differs is played once more, by both."""
    server, client = pairing
    started = time.monotonic()
    outcome = stage.play(case, pairing)
    if outcome != stock:
        again = stage.play(case, REFERENCE)
        outcome = stage.play(case, pairing)
        if outcome == again:
            stock = again
    good = outcome == stock
    print(f"{'ok  ' if good else 'FAIL'} {case.name:45} {client} to {server} "
          f"{time.monotonic() - started:6.1f} s", flush=True)
    if not good:
        print("     stock:", *show(stock), f"     {client} to {server}:", *show(outcome),
              sep="\n       ")
    return good


def show(outcome):
    return [f"{what}: {value}" for what, value in outcome.items()]


# --- a case ------------------------------------------------------------------------------------


class Stage:
    """Two hosts, and the libraries that they use now."""

    def __init__(self, lab, build):
        self._lab = lab
        self._library = build / "lib"
        self._cmportd = build / "tools/cmportd/cmportd"
        self._purecm = build / "tools/purecm"
        self._programs = {name: build / "tests/worlds" / name for name in ("moves", "path")}

    def play(self, case, pairing):
        """Return the outcome of a case: {what: value}. A server of perftest's listens anew for its
        second connection, and may be too slow for it; then it is played again."""
        for number in range(ATTEMPTS):
            with slowed(self._lab.b, number):
                outcome = self._play_once(case, pairing)
            if "ib_send_bw" not in case.server or not any(
                    re.search(PERFTEST_RACED, line) for line in outcome["client says"]):
                break
            print(f"     {case.name}: once more, its server was too slow for it", flush=True)
        return outcome

    def _play_once(self, case, pairing):
        modes = dict(zip("ab", pairing))
        for name, mode in modes.items():
            self._lab.guests[name].mode(mode, kill=True)
            if mode == "purecm":
                self._serve(self._lab.guests[name])
        self._lab.b.run(case.before, check=True)
        try:
            outcome = self._play_between(case, modes)
            if case.doubtful and modes["b"] == "purecm":
                outcome |= self._doubts(*case.doubtful)
            return outcome
        finally:
            self._lab.b.run(case.after, check=True)

    def _doubts(self, address, expected):
        """Return what purecm doctor says that is not expected."""
        done = self._lab.b.run([self._purecm, "doctor", "--json", address], timeout=TIMEOUT_S)
        found = [check["check"] for check in map(json.loads, done.stdout.splitlines())
                 if check["verdict"] == "bad"]
        return {} if found == list(expected) else {"doctor says": done.stdout}

    def _play_between(self, case, modes):
        before = self._packets()
        server = self._start("a", modes["a"], case.server) if case.server else None
        if server:
            self._await_listener(server, modes["a"])
        client = self._start("b", modes["b"], case.client)
        if case.meanwhile:
            time.sleep(case.during_s)
            self._lab.b.run(case.meanwhile, check=True)
        outcome = ending("client", client, TIMEOUT_S)
        if server:
            outcome |= ending("server", server, SERVER_S)
        after = self._packets()
        outcome["devices"] = sorted(name for name, packets in after.items()
                                    if packets - before.get(name, 0) >= PACKETS_OF_USE)
        return outcome

    def _serve(self, host):
        """Run cmportd with all ports, as a host does that answers for each of its addresses."""
        cmportd = host.start([self._cmportd, "--open"])
        host.wait_for("[ -S /run/purecm/cmportd.sock ]", TIMEOUT_S, process=cmportd)

    def _start(self, host, mode, command):
        env = {"LD_LIBRARY_PATH": self._library, "PURECM_LOG": "debug"} if mode == "purecm" else {}
        words = shlex.split(command.format(a=1, b=2, **self._programs))
        return self._lab.guests[host].start(words, env=env)

    def _await_listener(self, server, mode):
        """Wait until the server listens, or has ended."""
        end = time.monotonic() + TIMEOUT_S
        while server.alive and time.monotonic() < end:
            if mode == "purecm" and "listening on" in server.output():
                return
            if mode == "stock" and self._lab.a.run(
                    "rdma resource show cm_id | grep -q LISTEN").ok:
                return
            time.sleep(0.1)

    def _packets(self):
        """Return how many packets each device of host b has sent."""
        text = self._lab.b.run(
            "cd /sys/class/infiniband; for d in *; do "
            "echo $d $(cat $d/ports/1/hw_counters/sent_pkts); done", check=True).stdout
        return {name: int(packets) for name, packets in map(str.split, text.splitlines())}


def ending(name, process, seconds):
    """Return how a process ends, and the lines that it printed."""
    try:
        status = process.wait(seconds).status
    except LabTimeout:
        process.stop()
        status = "none"
    except LabError as error:
        status = str(error)
    return {f"{name}'s status": status, f"{name} says": sorted(set(lines_of(process.output())))}


def lines_of(text):
    """Yield the lines that a program prints in any run, and nothing that a library logs."""
    for line in text.splitlines():
        if re.match(r"purecm\[|cmportd\[", line) or RACY.search(line):
            continue
        for pattern, instead in VOLATILE:
            line = pattern.sub(instead, line)
        if line.strip():
            yield line.strip()


if __name__ == "__main__":
    sys.exit(main())
