#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The tables of figures in pages are those of tests/bench/figures.txt, which has what
the programs of tests/bench have printed. A table is between the lines
"<!-- figures: NAME -->" and "<!-- end of figures -->".

figures.py           compare, exit 1 if a page differs
figures.py --write   write the tables anew
"""
import argparse
from pathlib import Path
import re
import sys

ROOT = Path(__file__).resolve().parents[2]
MEASURED = ROOT / "tests/bench/figures.txt"
PAGES = ("README.md", "docs/scale.md", "docs/fabric.md")
TABLE = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)
LINE = re.compile(r"(\S.*?) {2,}([\d.]+|-) +([\d.]+) *(?:us|MB/s|KiB)? +"
                  r"(?:[\d.]+|-)(?: +([\d.]+))?")

# What begins a line of the file, and how a page names it.
PRICE = (
    ("counted, both ends, 1000: connect,", "work of a connect, 1,000 at once, µs"),
    ("counted, both ends, 1: disconnect,", "work of a single disconnect, µs"),
    ("1 CPU, 500: full connect, program's QPs", "500 connects at once, hosts of 1 CPU, s"),
    ("2 CPU, 500: full connect, program's QPs", "500 connects at once, hosts of 2 CPUs, s"),
    ("1 CPU, 500: disconnect, program's QPs", "500 disconnects at once, s"),
    ("counted, both hosts: system calls", "system calls of a connection"),
    ("counted, both hosts: wake-ups", "wake-ups of a connection"),
    ("idle: KiB of memory", "memory of an idle process, KiB"),
    ("latency 64", "socket: latency of 64 bytes, µs"),
    ("send 4096", "socket: throughput of 4 KiB messages, MB/s (more is better)"),
)
TARGETS = (
    *((f"counted, both ends, {count}: {step},", f"work of a {step}, {count:,} at once, µs")
      for step in ("connect", "disconnect") for count in (1, 100, 1000)),
    *((f"{cpus} CPU, 500: {key}", f"500 at once, {cpus} CPU: {text}, s") for cpus in (1, 2)
      for key, text in (("full connect, program's QPs", "connect, the program's queue pairs"),
                        ("full connect, no QPs", "connect, no queue pairs"),
                        ("connect, rdma_create_qp()", "connect, `rdma_create_qp()`"),
                        ("disconnect, program's QPs", "disconnect"))),
    ("1 CPU, 500: REQs repeated", "500 at once, 1 CPU: REQs retransmitted"),
    *((f"{cpus} CPU, 16 processes x 62, s", f"16 processes x 62 connects, {cpus} CPU, s")
      for cpus in (1, 2)),
    *PRICE[5:8],
    ("core, 1000: million handshakes", "core alone, 1,000 connections: million handshakes/s"),
    ("core, 1000000: million handshakes", "the same, a million"),
    ("core, a million: bytes each", "bytes of one of a million connections"),
)
SOCKETS = (
    ("preload: sockperf ping-pong", "sockperf, µs"),
    *((f"preload: iperf3, {size} KiB", f"iperf3 -l {size}K, Mbit/s (more is better)")
      for size in (1, 64)),
    ("preload: redis-benchmark, req", "redis-benchmark, requests/s (more is better)"),
    ("preload: redis-benchmark -P 16", "redis-benchmark -P 16"),
)
DEVICE = (
    ("ib_send_lat", "`ib_send_lat`, 64 bytes, µs"),
    ("ib_write_lat", "`ib_write_lat`, 64 bytes, µs"),
    ("ib_read_lat", "`ib_read_lat`, 64 bytes, µs"),
    ("ib_send_bw", "`ib_send_bw`, 64 KiB, MB/s (more is better)"),
    ("ib_write_bw", "`ib_write_bw`, 64 KiB, MB/s (more is better)"),
    ("ib_read_bw", "`ib_read_bw`, 64 KiB, MB/s (more is better)"),
)
# Rows, what is compared, and whether there are targets.
TABLES = {"price": (PRICE, "stock | purecm", False), "targets": (TARGETS, "stock | purecm", True),
          "sockets": (SOCKETS, "TCP | RDMA", False),
          "device": (DEVICE, "rxe | soft fabric", False)}


def measured():
    """Return {beginning of a line, with single spaces: (stock, purecm, wanted)}."""
    found = {}
    for line in MEASURED.read_text(encoding="utf-8").splitlines():
        line = re.sub(r"^(latency|send|receive) +", r"\1 ", line)
        row = LINE.match(line)
        if row and not line.startswith("#"):
            found[row[1]] = row.groups()[1:]
    return found


def number(text):
    """Return a figure with three digits at most, or all of those before the point."""
    value = float(text)
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def table(name, figures):
    """Return the lines of a table."""
    rows, compared, has_targets = TABLES[name]
    text = f"| | {compared} | ratio |" + " wanted |" * has_targets + "\n"
    text += "|---|---|---|---|" + "---|" * has_targets + "\n"
    for key, what in rows:
        (stock, purecm, wanted), = [row for line, row in figures.items() if line.startswith(key)]
        has_ratio = stock != "-" and float(stock)
        ratio = f"{float(purecm) / float(stock):.2f}" if has_ratio else ""
        text += f"| {what} | {number(stock) if stock != '-' else ''} | {number(purecm)} | {ratio} |"
        text += f" {number(wanted)} |\n" if has_targets else "\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--write", action="store_true", help="write the tables anew")
    args = parser.parse_args()
    figures, bad, good = measured(), 0, 0
    for page in PAGES:
        old = (ROOT / page).read_text(encoding="utf-8")
        new = TABLE.sub(lambda found: found[1] + table(found[2], figures) + found[3], old)
        good += len(TABLE.findall(new))
        if args.write:
            (ROOT / page).write_text(new, encoding="utf-8")
        elif old != new:
            bad += 1
            print(f"{page} has other figures than {MEASURED}: run {sys.argv[0]} --write")
    print(f"{0 if bad else good} passed, {bad} failed, 0 skipped")
    return 1 if bad or not good else 0


if __name__ == "__main__":
    sys.exit(main())
