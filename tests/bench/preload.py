#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures programs that know only TCP on two hosts of the soft fabric, with librspreload.so and
without, in turns.

Prints a line per measurement: the median by TCP, by RDMA, and how much better RDMA is. The fabric's
device is a program on the same cores, and its TCP is the kernel's between two of its namespaces.
"""
import argparse
import dataclasses
import os
from pathlib import Path
import re
import shutil
import statistics
import sys
import tempfile

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/programs"))

from row import A  # noqa: E402
import run  # noqa: E402
import sockets  # noqa: E402

ROWS = {row.name: row for row in sockets.ROWS}


def benchmark(options):
    """redis-benchmark's GET, at 20 connections."""
    return dataclasses.replace(ROWS["redis-benchmark"], client=(
        f"redis-benchmark -h {A} -p 8000 -t get -c 20 -q {options} | tr '\\r' '\\n' | tail -2"))


def iperf3(size):
    return dataclasses.replace(ROWS["iperf3"], client=(
        f"iperf3 -c {A} -p 8000 -t 2 -l {size} -f m"), figure=r"([\d.]+) Mbits/sec +receiver")


# What, how, and whether more is better.
MEASUREMENTS = (
    ("sockperf ping-pong, us", ROWS["sockperf"], False),
    ("iperf3, 1 KiB a write, Mbit/s", iperf3(1024), True),
    ("iperf3, 64 KiB a write, Mbit/s", iperf3(65536), True),
    ("redis-benchmark, requests/s", benchmark("-n 40000"), True),
    ("redis-benchmark -P 16, requests/s", benchmark("-n 200000 -P 16"), True),
)


def measure(row, build, folder):
    status, output = run.play(row, build, folder)
    wrong = run.judge(dataclasses.replace(row, said=()), status, output)
    found = re.findall(row.figure, output, re.M)
    if wrong or not found:
        sys.exit(f"preload.py: {row.name}: {wrong or 'no figure'}\n{output[-2000:]}")
    return float(found[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--rounds", default=5, type=int)
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="preload-")
    os.chmod(folder, 0o777)
    for title, row, is_more_better in MEASUREMENTS:
        missing = run.missing_packages(row)
        if missing:
            print(f"{title}: not installed: {' '.join(missing)}")
            continue
        values = {by_rdma: [] for by_rdma in (0, row.by_rdma)}
        for _ in range(arguments.rounds):
            for by_rdma, found in values.items():
                found.append(measure(dataclasses.replace(row, by_rdma=by_rdma),
                                     arguments.build.resolve(), folder))
        tcp, rdma = map(statistics.median, values.values())
        ratio = rdma / tcp if is_more_better else tcp / rdma
        print(f"preload: {title:36} {tcp:12.2f} {rdma:12.2f} {ratio:7.2f}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
