#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures sockets on this library and on stock, alternating in the same guests.

Latency is half of a round trip, send and receive are the throughput of many messages one way,
memory what an idle socket takes: of its process, and of the whole host.

By default both ends are on one host whose clock counts instructions, so that the figures are the
same on any machine, however busy: what a message costs both ends and their kernel together. With
--hosts 2 they are on two hosts with the machine's clock, which is uneven. There both libraries are
connected at once, each over a device of its own, and take turns of some 50 ms: what disturbs one
disturbs the other. The ratio of neighbours counts, and a target is missed only where the interval
that the median of all possible rounds is in (with --sure) is below it.

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
ROUNDS = {1: 2, 2: 100}
SIZES = {1: "64:400,4096:400,65536:100", 2: "64:400,4096:100,65536:20"}
NETWORKS = {"stock": 1, "purecm": 2}  # whose device and network rxeN and 10.8N.0.0/24 are
PATIENCE_S = 600


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build",
                        help="build folder (default: build)")
    add_hosts_argument(parser, default=1)
    parser.add_argument("--rounds", type=int, help="of each library (default: 2, by the clock 100)")
    parser.add_argument("--sizes", help="BYTES:MESSAGES, separated by commas")
    parser.add_argument("--idle", type=int, default=50,
                        help="idle sockets, on one host only (default: 50)")
    parser.add_argument("--slack", type=float, default=0.03,
                        help="what counts as equal (default: 0.03)")
    parser.add_argument("--sure", type=float, default=0.95,
                        help="by the clock: how sure of a miss (default: 0.95)")
    args = parser.parse_args()
    args.build = args.build.resolve()
    args.rounds = args.rounds or ROUNDS[args.hosts]
    args.words = (args.sizes or SIZES[args.hosts]).replace(",", ":").split(":")
    args.program = args.build / "tests/bench/rsocket"
    return args


def start_server(args, library, host, address):
    listener = host.start([args.program, "server", address], env=environment(library, args.build))
    listener.wait_for_output("^ready", timeout=60)
    return listener


def take_figures(result, table):
    """Add what a client printed. table: {(what, of what): [figure of each round]}."""
    for what, of_what, figure in re.findall(r"^(\w+) (\w+) ([\d.]+)$", result.check().stdout,
                                            re.MULTILINE):
        table.setdefault((what, of_what), []).append(float(figure))


# --- one host, whose clock counts instructions ---------------------------------------------------


def run_round(host, args, library, table):
    """Run both ends once with one library."""
    host.mode(library, kill=True)
    listener = start_server(args, library, host, host.addr4)
    command = [args.program, "client", host.addr4, *args.words, "idle", str(args.idle)]
    take_figures(host.run(command, env=environment(library, args.build), timeout=PATIENCE_S), table)
    listener.stop()


def measure_on_one(args, tables):
    with make_lab(args.hosts) as lab:
        for number in range(args.rounds):
            # Each library goes first in every other round.
            for library in LIBRARIES if number % 2 == 0 else reversed(LIBRARIES):
                run_round(lab.a, args, library, tables[library])
                print(f"round {number + 1} of {args.rounds}: {library}", file=sys.stderr)


# --- two hosts, by the clock ---------------------------------------------------------------------


def add_devices(host):
    """Give each library a device and a network, which the other does not touch."""
    script = ("set -e; rdma link del rxe0; modprobe macvlan; "
              "sysctl -qw net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2; "
              f"for n in {' '.join(map(str, NETWORKS.values()))}; do "
              "ip link add link eth0 name mv$n type macvlan mode bridge; ip link set mv$n up; "
              f"ip address add 10.8$n.0.{host.number}/24 dev mv$n; "
              "rdma link add rxe$n type rxe netdev mv$n; "
              "until grep -q ffff:0a5$n /sys/class/infiniband/rxe$n/ports/1/gids/1; do "
              "sleep 0.1; done; done")
    host.run(["sh", "-c", script], check=True)


def connect_both(lab, args):
    """Return {library: a client that waits for its turn}.

    Ours first: it owns the CM class of its device before the kernel's connection manager comes,
    which then leaves it alone.
    """
    clients = {}
    lab.b.run("mkfifo /tmp/stock /tmp/purecm", check=True)
    for library in ("purecm", "stock"):
        address = f"10.8{NETWORKS[library]}.0.{lab.a.number}"
        if library == "stock":
            for host in (lab.a, lab.b):
                host.run("modprobe rdma_ucm", check=True)
        start_server(args, library, lab.a, address)
        other = next(name for name in LIBRARIES if name != library)
        clients[library] = lab.b.start([args.program, "turns", address, f"/tmp/{library}",
                                        f"/tmp/{other}", str(args.rounds), *args.words],
                                       env=environment(library, args.build))
        clients[library].wait_for_output("^connected", timeout=60)
    return clients


def measure_on_two(args, tables):
    with Lab({"a": "purecm", "b": "purecm"}) as lab:
        for host in (lab.a, lab.b):
            add_devices(host)
        clients = connect_both(lab, args)
        lab.b.run("printf x >/tmp/stock", check=True)
        for library, client in clients.items():
            take_figures(client.wait(PATIENCE_S), tables[library])


def measure(args):
    """Return {library: table}."""
    tables = {library: {} for library in LIBRARIES}
    if args.hosts == 1:
        measure_on_one(args, tables)
    else:
        measure_on_two(args, tables)
    return tables


def ratios(key, stock, ours):
    """Return how many times as good as stock each round of ours is, in order of size.

    Each is compared with its neighbour. What takes nothing that can be seen, such as memory of a
    host, is a little all the same.
    """
    pairs = [(max(a, 0.01), max(b, 0.01)) for a, b in zip(stock, ours)]
    return sorted(b / a if key[0] in MORE_IS_BETTER else a / b for a, b in pairs)


def interval(values, sure):
    """Return between which of the sorted values the median of all possible rounds is."""
    n, outside = len(values), 0.0
    low = 0
    for i in range(n // 2):
        outside += 2 * comb(n, i) / 2 ** n
        if outside > 1 - sure:
            break
        low = i + 1
    return (values[low - 1], values[n - low]) if low else (values[0], values[-1])


def print_row(key, tables, args):
    """Print medians and how many times as good as stock ours is. Return whether it is worse."""
    stock, ours = (tables[library][key] for library in LIBRARIES)
    values = ratios(key, stock, ours)
    low, high = interval(values, args.sure)
    worse = high < 1 - args.slack
    print(f"{key[0]:11} {key[1]:>6}{statistics.median(stock):12.2f}"
          f"{statistics.median(ours):12.2f} {UNITS[key[0]]:5}{statistics.median(values):7.2f}"
          f"  {low:.2f} to {high:.2f}{'  MISSED' if worse else ''}")
    return worse


def main():
    args = parse_args()
    if not (args.build / "tests/bench/rsocket").exists():
        sys.exit("rsocket.py: the benchmark is not there; build it with meson first, or say where "
                 "it is with --build")
    try:
        tables = measure(args)
    except LabError as error:
        print(f"rsocket.py: {error}", file=sys.stderr)
        return 2
    print(f"\nmedians of {args.rounds} rounds; ratio: above 1 we are better\n"
          f"{'':18}{'stock':>12}{'purecm':>12}{'':6}{'ratio':>7}")
    missed = [print_row(key, tables, args) for key in tables["stock"]]
    return 1 if any(missed) else 0


if __name__ == "__main__":
    sys.exit(main())
