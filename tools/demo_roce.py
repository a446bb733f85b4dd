#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""RoCE v2 between a kernel and a process, in the lab: Debian's rping on stock's librdmacm and rxe,
and on purecm, run by nobody on a host without any RDMA module.

tools/demo runs it after setting up. Exit status: 0 if both connections worked.
"""
import argparse
from pathlib import Path
import sys
import time

TOOLS_DIR = Path(__file__).resolve().parent
sys.path.insert(0, str(TOOLS_DIR.parent / "tests/lab"))

from lablib import Lab, LabError  # noqa: E402

from demo_lab import row  # noqa: E402

PINGS = 3
TIMEOUT_S = 60
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


def on_fabric(build, command):
    """What runs a command as nobody, with a device of its own."""
    return [*NOBODY, str(TOOLS_DIR / "fabric/fabric"), "run", "--build", str(build), "--raw",
            "--wire", "roce", "--here", "eth0", "a:" + command]


def introduce(lab):
    print("\nTwo hosts with a cable between them, on both Debian's own unmodified rping:\n")
    for host, what in ((lab.a, "root, librdmacm and rxe of Debian"),
                       (lab.b, "user 65534, purecm and the soft fabric")):
        loaded = host.run("cut -d' ' -f1 /proc/modules").stdout.split()
        rdma = " ".join(name for name in ("rdma_rxe", "ib_core", "rdma_cm") if name in loaded)
        print(f"  {host.name}  {host.addr4}   {what}\n     RDMA modules: {rdma or 'none'}")


def say(host, result):
    """Print a command, by what begins with rping, and what it printed."""
    print(f"  {host.name}$ {result.command[result.command.index('rping'):].rstrip(chr(39))}")
    for line in filter(None, result.output.splitlines()):
        print(f"  {host.name}| {line}")
    print(f"  {host.name}: status {result.status} after {result.seconds:.2f} s\n")


def show(heading, server_host, server, client_host, client):
    """Connect once, and print what both programs said."""
    print(f"\n{heading}\n", flush=True)
    serving = server_host.start(server)
    server_host.wait_for("pgrep -x rping", TIMEOUT_S)
    time.sleep(1)
    ended = client_host.start(client).wait(TIMEOUT_S)
    say(client_host, ended)
    ended.check()
    said = serving.wait(TIMEOUT_S)
    say(server_host, said)
    said.check()


def show_both(lab, build):
    serve, ask = f"rping -s -C {PINGS} -v", f"rping -c -C {PINGS} -v -a "
    show("1. nobody's process connects to the kernel's connection manager", lab.a, serve, lab.b,
         on_fabric(build, ask + lab.a.addr4))
    show("2. the kernel's connection manager connects to nobody's process", lab.b,
         on_fabric(build, serve), lab.a, ask + lab.b.addr4)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=Path)
    build = parser.parse_args().build.resolve()
    started = time.monotonic()
    try:
        with Lab({"a": "stock", "b": "bare"}, verbose=False) as lab:
            row("lab", "two hosts, a cable between them", time.monotonic() - started)
            introduce(lab)
            show_both(lab, build)
    except LabError as error:
        print(f"\ntools/demo: {error}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, BrokenPipeError):
        return 130
    print("Both connections worked, and b has no RDMA module: docs/fabric.md.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
