#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures connections on this library and on stock, alternating in the same two guests.

Emulated hosts are slow and a loaded machine makes them slower, so only the ratio of medians
counts. With --hosts 1 both ends are on one host with one CPU whose clock counts instructions: what
both together have to do, the same on any machine, but not what they do side by side.

Prints a table with a line for each step and number of connections, and ends with status 1 if a
target is missed: TARGETS.
"""
import argparse
from pathlib import Path
import statistics
import sys

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from benchlib import LabError, add_hosts_argument, environment, make_lab, server_host  # noqa: E402

# Step -> (greatest ratio purecm/stock, for how many connections)
TARGETS = {
    "connect": (1.0, (100, 1000)),
    "disconnect": (1.0, (100, 1000)),
    "resolve_addr": (0.5, (1, 100, 1000)),
    "resolve_route": (0.5, (1, 100, 1000)),
}
STEPS = ("create_id", "resolve_addr", "resolve_route", "create_qp", "connect", "disconnect",
         "destroy_qp", "destroy_id", "all")
SERVER_STEPS = ("create_qp", "accept", "disconnect", "destroy")


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build",
                        help="build folder (default: build)")
    parser.add_argument("--program", type=Path, help="the benchmark, if not in the build")
    add_hosts_argument(parser, default=2)
    parser.add_argument("--rounds", type=int, default=5, help="of each library (default: 5)")
    parser.add_argument("--counts", default="1,100,1000", help="connections at a time")
    parser.add_argument("--fake-qpn", action="store_true",
                        help="no queue pairs: the connection manager alone; has no targets")
    parser.add_argument("--mixed", action="store_true",
                        help="also one round of each library against the other")
    parser.add_argument("--stock-only", action="store_true", help="measure stock alone")
    args = parser.parse_args()
    args.program = args.program or args.build / "tools/certify/connect"
    args.build = args.build.resolve()
    return args


class Bench:
    """The lab, and every figure measured in it."""

    def __init__(self, lab, args):
        self.lab = lab
        self.args = args
        # {(client's mode, server's mode): {(count, step): [us, one for each round]}}
        self.client = {}
        self.server = {}

    def environment(self, mode):
        return environment(mode, self.args.build)

    def command(self, role, *words):
        fake = ["-f"] if self.args.fake_qpn else []
        return [self.args.program, role, *fake, *words]

    def round(self, client, server):
        """Run all counts once with one library on each host."""
        host = server_host(self.lab, self.args.hosts)
        self.lab.a.mode(client, kill=True)
        if host is not self.lab.a:
            host.mode(server, kill=True)
        listener = host.start(self.command("server", host.addr4), env=self.environment(server))
        try:
            listener.wait_for_output("^ready", timeout=30)
            result = self.lab.a.run(self.command("client", "-n", self.args.counts, host.addr4),
                                    env=self.environment(client), timeout=300)
        finally:
            shares = listener.stop()
        if not result.ok:
            raise LabError(f"{client} client, {server} server: {result.output.strip()}\n"
                           f"server: {shares.output.strip()}")
        self.enter(self.client.setdefault((client, server), {}), result.stdout)
        self.enter_shares(self.server.setdefault((client, server), {}), shares.stdout)

    @staticmethod
    def enter(table, text):
        for line in text.splitlines():
            count, step, us = line.split()
            table.setdefault((int(count), step), []).append(float(us))

    @staticmethod
    def enter_shares(table, text):
        """Enter lines such as "server 100 create_qp 200.1 accept 300.2 ..."."""
        for line in text.splitlines():
            words = line.split()
            if words[:1] != ["server"]:
                continue
            for step, us in zip(words[2::2], words[3::2]):
                table.setdefault((int(words[1]), step), []).append(float(us))


def ratio_text(row, step, count, checked):
    """Return (ratio column, whether a target is missed)."""
    if len(row) < 2 or not row[0]:
        return "", False
    ratio = row[1] / row[0]
    limit, counts = TARGETS.get(step, (None, ()))
    if not checked or limit is None or count not in counts:
        return f"{ratio:6.2f}", False
    missed = ratio > limit
    return f"{ratio:6.2f}  {'MISSED' if missed else 'ok'}, at most {limit}", missed


def print_table(title, steps, tables, checked):
    """Print medians of several pairings side by side; return what missed its target."""
    missed = []
    names = [f"{client}/{server}" if client != server else client for client, server in tables]
    print(f"\n{title}, us for each connection, medians")
    print(f"{'':6}{'':14}" + "".join(f"{name:>14}" for name in names) + "   ratio")
    keys = next(iter(tables.values()), {})
    for count in sorted({count for count, _ in keys}):
        for step in steps:
            row = [statistics.median(table[count, step]) for table in tables.values()
                   if (count, step) in table]
            if len(row) < len(tables):
                continue
            text, miss = ratio_text(row, step, count, checked)
            print(f"{count:6} {step:13}" + "".join(f"{us:14.1f}" for us in row) + f"  {text}")
            if miss:
                missed.append(f"{step} at {count}")
    return missed


def warm_up(bench, args):
    """Read cmportd from the machine's disk: where instructions are counted the clock leaps ahead
    while a file is waited for, and a program gives up the cmportd that it has started."""
    for host in {bench.lab.a, server_host(bench.lab, args.hosts)}:
        host.run([args.build / "tools/cmportd/cmportd", "--version"], timeout=120)


def measure(bench, args):
    warm_up(bench, args)
    pure = ("stock",) if args.stock_only else ("stock", "purecm")
    for number in range(args.rounds):
        # Each library goes first in every other round.
        for mode in pure if number % 2 == 0 else reversed(pure):
            bench.round(mode, mode)
            print(f"round {number + 1} of {args.rounds}: {mode}", file=sys.stderr)
    if args.mixed and not args.stock_only and args.hosts == 2:
        bench.round("purecm", "stock")
        bench.round("stock", "purecm")


def ordered(tables):
    """Return the pairings in the table's order: stock, purecm, then mixed ones."""
    order = [("stock", "stock"), ("purecm", "purecm"), ("purecm", "stock"), ("stock", "purecm")]
    return {key: tables[key] for key in order if key in tables}


def main():
    args = parse_args()
    if not args.program.exists():
        sys.exit(f"connect.py: {args.program} is not there; build it with meson first")
    try:
        with make_lab(args.hosts) as lab:
            bench = Bench(lab, args)
            measure(bench, args)
    except LabError as error:
        print(f"connect.py: {error}", file=sys.stderr)
        return 2
    missed = print_table("client" + (" without queue pairs" if args.fake_qpn else ""), STEPS,
                         ordered(bench.client), not args.fake_qpn and args.hosts == 2)
    print_table("server's calls", SERVER_STEPS, ordered(bench.server), False)
    if missed:
        print(f"\nmissed: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
