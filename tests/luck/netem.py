#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Connections while the network, the device, cmportd or the peer is bad, against stock.

The same program (storm.c) dials with stock on both hosts, then with purecm on either. Prints a
table of the times, one line per check and then "N passed, N failed, N skipped". Exit status: 0 if
none failed, 77 if the lab cannot run here at all.
"""
import argparse
import os
import shutil
import sys
import time

from lucklib import Bench, Lab, LabError

PORT = 7301
COUNT = 50
SKIPPED = 77
DIAL_S = 400
NEVER_WORSE = 1.1  # measured on a machine that others use
NOISE_MS = 1500
FIRST_HOP_MS = 1200  # ib_umad looks up a sender's unknown link address for a second, now and then
REPEAT_MS = 6200  # a kernel repeats a REQ after that; how often is luck, where messages are lost
# What is done to what either host sends.
FAULTS = {
    "nothing": None,
    "30% loss": "loss 30%",
    "30% corruption": "corrupt 30%",
    "20% duplication, reordering": "delay 20ms duplicate 20% reorder 75% 50%",
    "300 ms of delay": "delay 300ms",
}
# Who dials whom: modes of host a and b; a dials.
PAIRS = {"stock-stock": ("stock", "stock"), "purecm-stock": ("purecm", "stock"),
         "stock-purecm": ("stock", "purecm"), "purecm-purecm": ("purecm", "purecm")}
STOCK = "stock-stock"
OURS = ("purecm-stock", "stock-purecm", "purecm-purecm")
SHORT = ("20% duplication, reordering",)
BLACKHOLE_S = 5
WRONG = "52:54:00:77:00:22"  # nobody's link address
HELD = 10
KILL_LOOP = "while :; do pkill -9 -x cmportd; sleep 0.3; done"
ROUNDS = 5
KILLED_ROUNDS = 5


class Storm:
    """Host a dials b; each with the library of its mode."""

    def __init__(self, bench, pair):
        self.bench = bench
        self.pair = pair
        bench.modes(*PAIRS[pair])

    def _env(self, host):
        stock = PAIRS[self.pair][host == "b"] == "stock"
        return self.bench.env(stock=stock)

    def serve(self, backlog=COUNT, lazy_ms=0):
        server = self.bench.b.start(
            [self.bench.program("storm"), "serve", self.bench.b.addr4, str(PORT), str(backlog),
             str(lazy_ms)], env=self._env("b"))
        server.wait_for_output("listening", 60)
        return server

    def _words(self, count):
        return [self.bench.program("storm"), "dial", self.bench.b.addr4, str(PORT), str(count)]

    def dial(self, count=COUNT):
        """Return the figures that storm.c prints."""
        result = self.bench.a.run(self._words(count), env=self._env("a"), timeout=DIAL_S)
        if not result.ok:
            raise AssertionError(result.output[-1000:])
        return figures(result.stdout)

    def start_dial(self, count=COUNT):
        return self.bench.a.start(self._words(count), env=self._env("a"))

    @staticmethod
    def figures_of(client):
        client.wait(DIAL_S)
        return figures(client.stdout)

    def hold(self, count):
        """Dial, and keep the connections. Return: a process for let_go()."""
        self.bench.a.run("rm -f /tmp/go; mkfifo /tmp/go", check=True)
        client = self.bench.a.start(" ".join([*self._words(count), "hold <>/tmp/go"]),
                                    env=self._env("a"))
        client.wait_for_output("held", 60)
        return client

    def let_go(self, client):
        self.bench.a.run("echo >/tmp/go", check=True)
        client.wait_for_output("unended=", DIAL_S)
        return figures(client.stdout.splitlines()[-1])


def figures(text):
    return {name: int(value) for name, value in
            (word.rsplit("=", 1) for word in text.split() if "=" in word)}


def stop(process):
    if process.alive:
        process.kill(9)
    process.wait(20)


class Serving:
    """A storm whose server runs, and knows its peer's link address, within the block."""

    def __init__(self, bench, pair, **how):
        self.storm = Storm(bench, pair)
        self._how = how

    def __enter__(self):
        self._server = self.storm.serve(**self._how)
        self.storm.dial(1)
        return self.storm

    def __exit__(self, *_):
        for guest in (self.storm.bench.a, self.storm.bench.b):
            guest.netem_clear()
        stop(self._server)


def under(bench, pair, spec):
    """An ARP answer may be corrupted, too, of which with_wrong_neighbour() has its own case."""
    with Serving(bench, pair) as storm:
        keep_neighbours(bench, "permanent")
        try:
            for guest in (bench.a, bench.b):
                if spec:
                    guest.netem(spec)
            return storm.dial()
        finally:
            keep_neighbours(bench, "stale")


def in_a_blackhole(bench, pair):
    """Nothing leaves a host for 5 s, from before the first message."""
    with Serving(bench, pair) as storm:
        bench.a.netem("loss 100%")
        client = storm.start_dial()
        time.sleep(BLACKHOLE_S)
        bench.a.netem_clear()
        return storm.figures_of(client)


def with_wrong_neighbour(bench, pair):
    """A host, ours if there is one, has learnt a link address of its peer that is one bit wrong.

    A corrupted ARP answer does that, and is believed for a minute at most. Who connects then is
    told as soon as the kernel knows better, as by stock; return the figures of those that follow.
    """
    here, peer = (bench.b, bench.a) if pair == "stock-purecm" else (bench.a, bench.b)
    with Serving(bench, pair) as storm:
        here.run(f"set -- $(ip neigh show {peer.addr4}) && "
                 f"ip neigh replace {peer.addr4} lladdr {WRONG} dev $3 nud reachable", check=True)
        first = storm.dial()
        print_row("wrong link address", pair, first)
        told = first["connected"] + sum(n for what, n in first.items()
                                        if what.startswith("RDMA_CM_EVENT_UNREACHABLE/"))
        if told != first["of"]:
            raise AssertionError(f"not all of {first['of']} were told: {first}")
        return storm.dial()


def neighbour_is_wrong(bench):
    for pair in PAIRS:
        shown(bench, "link address right again", pair, with_wrong_neighbour)


def beyond_the_backlog(bench, pair):
    """Ten times as many requests as the backlog holds, to a server that looks after 3 s."""
    storm = Storm(bench, pair)
    server = storm.serve(backlog=COUNT // 10, lazy_ms=3000)
    try:
        return storm.dial()
    finally:
        stop(server)


def to_a_host_that_is_gone(bench, pair):
    """Connections are ended, and others begun, when the peer has been switched off."""
    with Serving(bench, pair) as storm:
        client = storm.hold(HELD)
        keep_neighbours(bench, "permanent")
        try:
            bench.b.netem("loss 100%")
            ended = storm.let_go(client)
            began = time.monotonic()
            lost = storm.dial(HELD)
        finally:
            keep_neighbours(bench, "stale")
        return {**ended, "gave_up": int(1000 * (time.monotonic() - began)),
                "connected": lost["connected"]}


def keep_neighbours(bench, state):
    """With link addresses that are known for ever, it is the CM that finds a peer gone, not the IP.
    """
    for here, peer in ((bench.a, bench.b.addr4), (bench.b, bench.a.addr4)):
        here.run(f"set -- $(ip neigh show {peer}) && "
                 f"ip neigh replace {peer} lladdr $5 dev $3 nud {state}", check=True)


def complete(seen):
    """All were connected and all were told of the end."""
    wrong = (seen["of"] - seen["connected"], seen["unended"], seen["silent"])
    if any(wrong):
        raise AssertionError(f"not all of {seen['of']} came through: {seen}")


def worse(seen, stocks, luck_ms):
    """Return what took longer than with stock, in words, or ""."""
    for name in ("connected_worst", "ended_worst"):
        longest = max(stock[name] for stock in stocks)
        if seen[name] > longest * NEVER_WORSE + NOISE_MS + luck_ms:
            return f"{name} {seen[name]} ms, with stock {longest} ms"
    return ""


def print_row(fault, pair, seen):
    print(f"        {fault:28} {pair:13} {seen['connected']:3} of {seen['of']:3} "
          f"{seen['connected_median']:7} {seen['connected_worst']:7} ms   "
          f"{seen['ended']:3} {seen['ended_median']:7} {seen['ended_worst']:7} ms", flush=True)


def shown(bench, fault, pair, play):
    seen = play(bench, pair)
    print_row(fault, pair, seen)
    if pair != STOCK:
        complete(seen)
    return seen


def compare(bench, fault, play, luck_ms=0):
    """One fault, in all pairs; @luck_ms: by how much chance alone may make one slower.

    Where chance decides, what is worse is played once more, and so is stock. In the short form only
    purecm's are played, and nothing is compared.
    """
    stocks = [shown(bench, fault, STOCK, play)] if bench.is_long else []
    for pair in OURS:
        seen = shown(bench, fault, pair, play)
        if stocks and luck_ms and worse(seen, stocks, luck_ms):
            stocks.append(shown(bench, f"{fault}, once more", STOCK, play))
            seen = shown(bench, f"{fault}, once more", pair, play)
        verdict = worse(seen, stocks, luck_ms) if stocks else ""
        if verdict:
            raise AssertionError(verdict)


def compare_the_gone(bench):
    stock = None
    for pair in ("stock-stock", "purecm-stock"):
        seen = to_a_host_that_is_gone(bench, pair)
        print(f"        a host that is gone          {pair:13} ended after "
              f"{seen['ended_worst'] / 1000:.0f} s, given up after {seen['gave_up'] / 1000:.0f} s",
              flush=True)
        if stock is None:
            stock = seen
            continue
        if seen["ended"] != HELD or seen["connected"]:
            raise AssertionError(f"{seen}")
        if seen["ended_worst"] >= stock["ended_worst"] or seen["gave_up"] >= stock["gave_up"]:
            raise AssertionError("noticed no sooner than by stock")


def hosts_of_ours(bench):
    """Yield each pair with its host of ours; of two, with the one that is dialled."""
    for pair in OURS:
        yield pair, bench.b if PAIRS[pair][1] == "purecm" else bench.a


def cmportd_is_killed_in_a_loop(bench):
    for pair, host in hosts_of_ours(bench):
        with Serving(bench, pair) as storm:
            killer = host.start(KILL_LOOP)
            try:
                for _ in range(KILLED_ROUNDS):
                    seen = storm.dial()
                    print_row("cmportd is killed in a loop", pair, seen)
                    complete(seen)
            finally:
                stop(killer)


def device_comes_and_goes(bench):
    """The device is made anew five times; cmportd, which stays, serves the next one too."""
    for pair, host in hosts_of_ours(bench):
        for _ in range(ROUNDS):
            with Serving(bench, pair) as storm:
                complete(storm.dial(HELD))
            host.rxe_del()
            host.rxe_add()
        with Serving(bench, pair) as storm:
            seen = storm.dial()
            print_row("the device came and went", pair, seen)
            complete(seen)


def end_with_the_rebooted(bench, pair):
    """Connections whose peer has booted are ended, and others begun.

    On a host of ours cmportd is a service, as cmportd(8) has it for servers.
    """
    with Serving(bench, pair) as storm:
        client = storm.hold(HELD)
        bench.b.reboot()
        if PAIRS[pair][1] == "purecm":
            bench.b.run([f"{bench.build}/tools/cmportd/cmportd", "--open", "--idle=0", "--detach"],
                        check=True)
        seen = storm.let_go(client)
    with Serving(bench, pair) as storm:
        complete(storm.dial(HELD))
    return {**seen, "silent": seen["unended"]}


def peer_is_rebooted(bench):
    """Stock is there from a host's boot on."""
    compare(bench, "the peer was rebooted", end_with_the_rebooted, FIRST_HOP_MS)


def luck_of(spec):
    return 3 * REPEAT_MS if spec and ("loss" in spec or "corrupt" in spec) else 0


def checks():
    for fault, spec in FAULTS.items():
        yield fault, lambda bench, fault=fault, spec=spec: compare(
            bench, fault, lambda bench, pair: under(bench, pair, spec), luck_of(spec))
    yield "5 s of nothing", lambda bench: compare(bench, "5 s of nothing", in_a_blackhole)
    yield "a wrong link address", neighbour_is_wrong
    yield "ten times the backlog", lambda bench: compare(bench, "ten times the backlog",
                                                         beyond_the_backlog)
    yield "a host that is gone", compare_the_gone
    yield "cmportd is killed in a loop", cmportd_is_killed_in_a_loop
    yield "the device comes and goes", device_comes_and_goes
    yield "the peer is rebooted", peer_is_rebooted


def run(name, function, bench):
    began = time.monotonic()
    try:
        function(bench)
        verdict, why = "passed", ""
    except (AssertionError, LabError) as error:
        verdict, why = "failed", f": {error}"
    print(f"{verdict:8}{name} ({time.monotonic() - began:.1f} s){why}", flush=True)
    return verdict


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", help="Meson build folder, with tests/luck built")
    parser.add_argument("only", nargs="*", help="names of faults")
    parser.add_argument("--long", action="store_true", help="all, not the short choice of CI",
                        default=bool(os.environ.get("PURECM_TEST_LONG")))
    args = parser.parse_args()
    if not shutil.which("qemu-system-x86_64"):
        print("netem: skipped: no qemu-system-x86_64; apt-get install qemu-system-x86")
        return SKIPPED
    count = {"passed": 0, "failed": 0, "skipped": 0}
    print("        fault                        who dials     connected  median   worst      "
          "ended  median   worst")
    with Lab({"a": "stock", "b": "stock"}) as lab:
        bench = Bench(lab, args.build)
        bench.is_long = args.long or bool(args.only)
        for name, function in checks():
            if name in args.only or (not args.only and (args.long or name in SHORT)):
                count[run(name, function, bench)] += 1
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
