#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The demonstration in the lab: Debian's rping between stock librdmacm and purecm, both ways.

tools/demo runs it after setting up. Host a is a stock one, host b has no connection manager in
its kernel. Exit status: 0 if both connections worked.
"""
import argparse
import os
from pathlib import Path
import sys
import time

TOOLS_DIR = Path(__file__).resolve().parent
sys.path.insert(0, str(TOOLS_DIR.parent / "tests/lab"))

from lablib import Lab, LabError  # noqa: E402

import exchange  # noqa: E402

PINGS = 3
TIMEOUT_S = 60
CM_MODULES = ("ib_cm", "rdma_cm", "rdma_ucm")


def main():
    args = parse()
    started = time.monotonic()
    try:
        with Lab({"a": "stock", "b": "purecm"}, verbose=False) as lab:
            row("lab", "two hosts, a cable between them", time.monotonic() - started)
            introduce(lab, args.library)
            show(lab, args, "1. purecm connects to a stock server", lab.a, lab.b)
            show(lab, args, "2. a stock program connects to a purecm server", lab.b, lab.a)
    except LabError as error:
        print(f"\ntools/demo: {error}\nTo look around: tests/lab/lab doctor, then tests/lab/lab "
              "shell. A connection that fails here is a bug: please report the text above.",
              file=sys.stderr)
        return 1
    except (KeyboardInterrupt, BrokenPipeError):
        return 130
    conclude(args)
    return 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("library", type=Path, help="folder with our librdmacm.so.1")
    parser.add_argument("--all", action="store_true", help="all fields of every message")
    args = parser.parse_args()
    args.library = args.library.resolve()
    args.colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return args


def row(name, text, seconds):
    """Print a line of progress as tools/setup.sh does."""
    print(f"  {name:9} {text:62}{seconds:7.1f} s", flush=True)


def ours(lab, host, library):
    """Return the environment that picks the library for a host: nothing on the stock one."""
    return {"LD_LIBRARY_PATH": library, "PURECM_LOG": "debug"} if host is lab.b else {}


def introduce(lab, library):
    """Print what runs where, as the hosts themselves see it."""
    print("\nTwo hosts, on both Debian's own unmodified rping:\n")
    for host in (lab.a, lab.b):
        loaded = host.run("cut -d' ' -f1 /proc/modules").stdout.split()
        cm = " ".join(name for name in CM_MODULES if name in loaded)
        found = host.run("ldd $(command -v rping)", env=ours(lab, host, library)).stdout
        path = next((line.split()[2] for line in found.splitlines() if "librdmacm" in line), "?")
        print(f"  {host.name}  {host.addr4}   librdmacm.so.1 is {path}\n"
              f"     connection manager in the kernel: {cm or 'none'}")


def show(lab, args, heading, server_host, client_host):
    """Connect once, and print what both programs said and what crossed the cable."""
    print(f"\n{heading}\n", flush=True)
    address = server_host.addr4
    server = server_host.start(["rping", "-s", "-a", address, "-C", str(PINGS), "-v"],
                               env=ours(lab, server_host, args.library))
    wait_for_listener(lab, server_host, server)
    client = client_host.start(["rping", "-c", "-a", address, "-C", str(PINGS), "-v"],
                               env=ours(lab, client_host, args.library))
    ended = client.wait(TIMEOUT_S)
    if not ended.ok:
        say_what_it_said(client_host, ended)
        ended.check()
    results = [(client_host, ended), (server_host, server.wait(TIMEOUT_S))]
    for host, result in reversed(results):
        say_what_it_said(host, result)
    log = next(result for host, result in results if host is lab.b).stderr
    records = [record for record in map(exchange.parse, log.splitlines()) if record]
    print("  What purecm on b sent (-->) and received (<--), decoded by its own code:\n")
    for line in exchange.chart(records, args.all, args.colour):
        print(line)
    for _, result in results:
        result.check()


def wait_for_listener(lab, host, server):
    if host is lab.b:
        server.wait_for_output("listening on", TIMEOUT_S)
    else:
        host.wait_for("rdma resource show cm_id | grep -q LISTEN", TIMEOUT_S)


def say_what_it_said(host, result):
    """Print a program's output without purecm's log, which the chart shows."""
    library = "purecm" if "purecm[" in result.stderr else "stock"
    print(f"  {host.name} ({library})$ {result.command}")
    for line in result.output.splitlines():
        if line and not exchange.parse(line):
            print(f"  {host.name}| {line}")
    print(f"  {host.name}: status {result.status} after {result.seconds:.2f} s\n")


def conclude(args):
    folder = os.path.relpath(args.library)
    print(f"""
Both connections worked, and the kernel of b has no connection manager.

  any program on purecm          LD_LIBRARY_PATH={folder} PROGRAM
  its exchange, line by line     PURECM_LOG=debug, and 2>&1 | tools/exchange.py for a chart
  these two hosts, by hand       tests/lab/lab shell
  between real hosts             tools/demo --help
  all tests                      tools/check""", flush=True)


if __name__ == "__main__":
    sys.exit(main())
