#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures the soft fabric's device against rxe, both in one emulated host of two CPUs.

Two programs, each on a CPU of its own, talk over rxe0, and over a fabric of two hosts (by the unix
wire), in turns. Prints a row for each program: the medians, and the median and the range of the
ratios of neighbouring runs, below 1 where the fabric is faster; ends with status 1 if a median is
not. Not a test, because it takes minutes.
"""
import argparse
from pathlib import Path
import re
import statistics
import sys

from benchlib import Lab, LabError, environment

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/roce"))
from rxe_lab import Kernel, gid_indices  # noqa: E402

LIMIT_S = 600
LISTENS = "ss -ltn | grep -q :18515"
US, MB = "us", "MB/s"


def perftest(program, options, unit):
    """Its row: name, server, client, pattern of the figure, unit."""
    column = r"\S+ +\S+ +(\S+)" if unit == US else r"\S+ +(\S+)"
    command = f"{program} -d %dev -x %gid -m 1024 {options}"
    return (f"{program} {options}", command, f"{command} %server",
            rf"^(?:b\|)? +\d+ +\d+ +{column}", unit)


def ucx(options):
    """UCX's transport without its endpoints, which need its datagrams: they time out on rxe."""
    command = "UCX_IB_GID_INDEX=%gid ucx_perftest -p 18515"
    return (f"ucx_perftest {options}", command,
            f"{command} %server -d %dev:1 -w 100 {options}",
            r"^(?:b\|)? *Final: +\d+ +\S+ +(\S+)", US)


def fi_pingpong(options):
    """By rdma_cm."""
    command = f"fi_pingpong -p verbs {options}"
    return (f"fi_pingpong {options}", f"{command} -B 18515", f"{command} -P 18515 %server",
            r"^(?:b\|)? *64 +\S+ +=\S+ +\S+ +\S+ +\S+ +(\S+)", US)


PROGRAMS = (
    *(perftest(f"ib_{verb}_lat", "-s 64 -n 1000", US) for verb in ("send", "write", "read")),
    *(perftest(f"ib_{verb}_bw", "-s 65536 -n 300", MB) for verb in ("send", "write", "read")),
    ucx("-x rc_verbs -t am_lat -s 48 -n 1000"),
    fi_pingpong("-e msg -S 64 -I 1000"))


def figure(row, done):
    found = re.findall(row[3], done.stdout, re.MULTILINE)
    if not done.ok or not found:
        raise LabError(f"{row[0]}: status {done.status}: {done.output}")
    return float(found[-1])


def commands(row, device, gid, server):
    """Return the server's and the client's."""
    return [text.replace("%dev", device).replace("%gid", gid).replace("%server", server)
            for text in row[1:3]]


def of_rxe(row, host, gid):
    server, client = commands(row, "rxe0", gid, host.addr4)
    env = environment("stock", None)
    running = host.start(f"taskset -c 0 sh -c '{server}'", env=env)
    try:
        host.wait_for(LISTENS, LIMIT_S, process=running)
        return figure(row, host.run(f"taskset -c 1 sh -c '{client}'", env=env,
                                    timeout=LIMIT_S))
    finally:
        running.stop()


def of_fabric(row, host, build):
    server, client = commands(row, "fab0", "1", "10.77.0.1")
    done = host.run([ROOT / "tools/fabric/fabric", "run", "--build", build, "--timeout",
                     str(LIMIT_S), f"a&:taskset -c 0 sh -c '{server}'",
                     f"b:taskset -c 1 sh -c '{client}'"], timeout=LIMIT_S)
    return figure(row, done)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--rounds", default=5, type=int, help="of both (5)")
    parser.add_argument("--only", default="", help="programs whose names match this")
    args = parser.parse_args()
    missed = 0
    print(f"{'':32}{'rxe':>9} {'fabric':>9} {'':5} ratio")
    with Lab({"a": "stock"}, cpus=2) as lab:
        lab.a.run("modprobe -a bridge veth tun", check=True)
        gid = gid_indices(Kernel(lab.a), (lab.a.addr4,))[lab.a.addr4]
        for row in (row for row in PROGRAMS if re.search(args.only, row[0])):
            pairs = [(of_rxe(row, lab.a, gid), of_fabric(row, lab.a, args.build.resolve()))
                     for _ in range(args.rounds)]
            ratios = [fabric / rxe if row[4] == US else rxe / fabric for rxe, fabric in pairs]
            rxe, fabric = map(statistics.median, zip(*pairs))
            ratio = statistics.median(ratios)
            missed += ratio >= 1
            print(f"{row[0]:32}{rxe:9.1f} {fabric:9.1f} {row[4]:5} {ratio:5.2f} "
                  f"({min(ratios):.2f} to {max(ratios):.2f})", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
