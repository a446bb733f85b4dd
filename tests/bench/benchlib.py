# SPDX-License-Identifier: BSD-2-Clause
"""What the benchmarks in the lab have in common: their hosts, and which library a program gets.

Used by calls.py, connect.py, crowd.py, cmtime.py and rsocket.py.
"""
from pathlib import Path
import sys

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lab"))
from lablib import Lab, LabError, Lockstep  # noqa: E402,F401

LIBRARIES = ("stock", "purecm")
STOCK_LIBRARIES = "/usr/lib/x86_64-linux-gnu:/usr/lib64:/usr/lib"


def add_hosts_argument(parser, default):
    parser.add_argument("--hosts", type=int, choices=(1, 2), default=default,
                        help=f"1: instructions are counted; 2: by the clock (default: {default})")


def make_lab(hosts, cpus=None):
    """Two hosts, or one with one CPU, whose clock counts instructions.

    cpus: of each of two; as Lab() by default
    """
    if hosts == 1:
        return Lab({"a": "stock"}, cpus=1, accel="counted")
    return Lab({"a": "stock", "b": "stock"}, cpus=cpus)


def server_host(lab, hosts):
    """The host where the other end is; the client's is lab.a."""
    return lab.a if hosts == 1 else lab.b


def environment(mode, build):
    """Variables that let a program find stock's library, or ours in a build folder."""
    return {"LD_LIBRARY_PATH": STOCK_LIBRARIES if mode == "stock" else str(build / "lib")}
