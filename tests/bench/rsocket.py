#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures sockets on this library and on stock, alternating in the same guests.

Latency is half of a round trip, send and receive are the throughput of many messages one way,
memory what an idle socket takes: of its process, and of the whole host.

By default both ends are on one host whose clock counts instructions, so that the figures are the
same on any machine, however busy: what a message costs both ends and their kernel together. With
--hosts 2 they are on two hosts with the machine's clock, which is uneven. There both libraries are
connected at once, each over a device of its own, and take turns of some 50 ms: what disturbs one
disturbs the other. Two processes of one and the same library differ by a tenth for as long as they
live, by where their memory happens to lie (see --control), so there are several lives, of new hosts
each, and the devices change hands. The median ratio of neighbours is what a life says, and a target
is missed only where the interval that the median of all possible lives is in (with --sure) is below
it. A life in which stock's ends sleep for ever is not counted, but said; ours must not.

Prints a line for each figure and ends with status 1 if a target is missed: no ratio is to be worse
than stock by more than --slack.
"""
import argparse
from math import comb
from pathlib import Path
import re
import statistics
import sys

from benchlib import Lab, LabError, add_hosts_argument, environment, make_lab

HERE = Path(__file__).resolve().parent
LIBRARIES = ("stock", "purecm")
UNITS = {"latency": "us", "send": "MB/s", "receive": "MB/s", "memory": "KiB"}
MORE_IS_BETTER = ("send", "receive")
LIVES = {1: 2, 2: 10}
ROUNDS = 25
SIZES = {1: "64:400,4096:400,65536:100", 2: "64:400,4096:100,65536:20"}
NETWORKS = (1, 2)  # N of a device rxeN and its network 10.8N.0.0/24
PATIENCE_S = 120


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build",
                        help="build folder (default: build)")
    add_hosts_argument(parser, default=1)
    parser.add_argument("--lives", type=int,
                        help="of each library's processes (default: 2, by the clock 10)")
    parser.add_argument("--rounds", type=int, default=ROUNDS,
                        help=f"of each library in a life, by the clock (default: {ROUNDS})")
    parser.add_argument("--control", action="store_true",
                        help="by the clock: stock in place of ours, to see what the lab does")
    parser.add_argument("--sizes", help="BYTES:MESSAGES, separated by commas")
    parser.add_argument("--idle", type=int, default=50,
                        help="idle sockets, on one host only (default: 50)")
    parser.add_argument("--slack", type=float, default=0.03,
                        help="what counts as equal (default: 0.03)")
    parser.add_argument("--sure", type=float, default=0.95,
                        help="by the clock: how sure of a miss (default: 0.95)")
    args = parser.parse_args()
    args.build = args.build.resolve()
    args.lives = args.lives or LIVES[args.hosts]
    args.words = (args.sizes or SIZES[args.hosts]).replace(",", ":").split(":")
    args.program = args.build / "tests/bench/rsocket"
    return args


def start_server(args, library, host, address):
    listener = host.start([args.program, "server", address], env=environment(library, args.build))
    listener.wait_for_output("^ready", timeout=60)
    return listener


def figures(result):
    """Return what a client printed: {(what, of what): [figure of each round]}."""
    table = {}
    for what, of_what, figure in re.findall(r"^(\w+) (\w+) ([\d.]+)$", result.check().stdout,
                                            re.MULTILINE):
        table.setdefault((what, of_what), []).append(float(figure))
    return table


# --- one host, whose clock counts instructions ---------------------------------------------------


def live_on_one(host, args, library):
    """Run both ends once with one library. Return what the client printed."""
    host.mode(library, kill=True)
    listener = start_server(args, library, host, host.addr4)
    command = [args.program, "client", host.addr4, *args.words, "idle", str(args.idle)]
    result = host.run(command, env=environment(library, args.build), timeout=PATIENCE_S)
    listener.stop()
    return figures(result)


def measure_on_one(args):
    lives = []
    with make_lab(args.hosts) as lab:
        for number in range(args.lives):
            # Each library goes first in every other life.
            order = LIBRARIES if number % 2 == 0 else reversed(LIBRARIES)
            lives.append({library: live_on_one(lab.a, args, library) for library in order})
            print(f"life {number + 1} of {args.lives}", file=sys.stderr)
    return lives


# --- two hosts, by the clock ---------------------------------------------------------------------


def add_devices(host):
    """Give each library a device and a network, which the other does not touch."""
    script = ("set -e; rdma link del rxe0; modprobe macvlan; "
              "sysctl -qw net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2; "
              f"for n in {' '.join(map(str, NETWORKS))}; do "
              "ip link add link eth0 name mv$n type macvlan mode bridge; ip link set mv$n up; "
              f"ip address add 10.8$n.0.{host.number}/24 dev mv$n; "
              "rdma link add rxe$n type rxe netdev mv$n; "
              "until grep -q ffff:0a5$n /sys/class/infiniband/rxe$n/ports/1/gids/1; do "
              "sleep 0.1; done; done")
    host.run(["sh", "-c", script], check=True)


def connect_both(lab, args, networks):
    """Return {library: a client that waits for its turn}.

    Ours first: it owns the CM class of its device before the kernel's connection manager comes,
    which then leaves it alone.
    """
    clients = {}
    lab.b.run("mkfifo /tmp/stock /tmp/purecm", check=True)
    for library in ("purecm", "stock"):
        runs = "stock" if args.control else library
        address = f"10.8{networks[library]}.0.{lab.a.number}"
        if runs == "stock":
            for host in (lab.a, lab.b):
                host.run("modprobe rdma_ucm", check=True)
        start_server(args, runs, lab.a, address)
        other = next(name for name in LIBRARIES if name != library)
        clients[library] = lab.b.start([args.program, "turns", address, f"/tmp/{library}",
                                        f"/tmp/{other}", str(args.rounds), *args.words],
                                       env=environment(runs, args.build))
        clients[library].wait_for_output("^connected", timeout=60)
    return clients


def who_sleeps(host):
    """Return which client is in the middle of something, and does not wait for its turn."""
    for library in LIBRARIES:
        wait = host.run(f"cat /proc/$(pgrep -f 'turns .* /tmp/{library} /tmp/')/wchan").stdout
        if wait != "pipe_read":
            return library
    return "nobody"


def live_on_two(args, networks):
    """Return what the clients printed, or None where stock did not end."""
    with Lab({"a": "purecm", "b": "purecm"}) as lab:
        for host in (lab.a, lab.b):
            add_devices(host)
        clients = connect_both(lab, args, networks)
        lab.b.run("printf x >/tmp/stock", check=True)
        try:
            return {name: figures(client.wait(PATIENCE_S)) for name, client in clients.items()}
        except LabError:
            if args.control or who_sleeps(lab.b) == "stock":
                return None
            raise


def measure_on_two(args):
    lives = []
    for number in range(2 * args.lives):
        networks = NETWORKS if number % 2 == 0 else reversed(NETWORKS)
        life = live_on_two(args, dict(zip(LIBRARIES, networks)))
        if life:
            lives.append(life)
        print(f"life {len(lives)} of {args.lives}" if life else "stock did not end: not counted",
              file=sys.stderr)
        if len(lives) == args.lives:
            return lives
    raise LabError(f"stock did not end {args.lives} times; is one device at fault?")


# --- what they say -------------------------------------------------------------------------------


def ratio(key, life):
    """Return how many times as good as stock a life of ours was.

    Each figure is compared with its neighbour. What takes nothing that can be seen, such as memory
    of a host, is a little all the same.
    """
    pairs = [(max(a, 0.01), max(b, 0.01)) for a, b in zip(*(life[name][key] for name in LIBRARIES))]
    return statistics.median(b / a if key[0] in MORE_IS_BETTER else a / b for a, b in pairs)


def interval(values, sure):
    """Return between which of the sorted values the median of all possible lives is."""
    n, outside = len(values), 0.0
    low = 0
    for i in range(n // 2):
        outside += 2 * comb(n, i) / 2 ** n
        if outside > 1 - sure:
            break
        low = i + 1
    return (values[low - 1], values[n - low]) if low else (values[0], values[-1])


def print_row(key, lives, args):
    """Print medians and how many times as good as stock ours is. Return whether it is worse."""
    stock, ours = (statistics.median(figure for life in lives for figure in life[library][key])
                   for library in LIBRARIES)
    values = sorted(ratio(key, life) for life in lives)
    low, high = interval(values, args.sure)
    worse = high < 1 - args.slack
    print(f"{key[0]:11} {key[1]:>6}{stock:12.2f}{ours:12.2f} {UNITS[key[0]]:5}"
          f"{statistics.median(values):7.2f}  {low:.2f} to {high:.2f}{'  MISSED' if worse else ''}")
    return worse


def main():
    args = parse_args()
    if not (args.build / "tests/bench/rsocket").exists():
        sys.exit("rsocket.py: the benchmark is not there; build it with meson first, or say where "
                 "it is with --build")
    try:
        lives = measure_on_one(args) if args.hosts == 1 else measure_on_two(args)
    except LabError as error:
        print(f"rsocket.py: {error}", file=sys.stderr)
        return 2
    ours = "stock again" if args.control else "purecm"
    print(f"\nmedians of {args.lives} lives; ratio: above 1 we are better\n"
          f"{'':18}{'stock':>12}{ours:>12}{'':6}{'ratio':>7}")
    missed = [print_row(key, lives, args) for key in lives[0]["stock"]]
    return 1 if any(missed) else 0


if __name__ == "__main__":
    sys.exit(main())
