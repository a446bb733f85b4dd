#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs built against the distribution's librdmacm find every symbol and version in ours."""

import argparse
import os
import pathlib
import shutil
import tempfile

import abi

# All of Debian's rdmacm-utils and perftest, by name, so that other distributions can serve.
PROGRAMS = """cmtime mckey rcopy rdma_client rdma_server rdma_xclient rdma_xserver riostream rping
    rstream ucmatose udaddy udpong ib_atomic_bw ib_atomic_lat ib_read_bw ib_read_lat ib_send_bw
    ib_send_lat ib_write_bw ib_write_lat raw_ethernet_bw raw_ethernet_burst_lat raw_ethernet_fs_rate
    raw_ethernet_lat""".split()


def complaints(program, folder):
    """What the loader finds wrong with a program that takes librdmacm from the folder."""
    listing = abi.run("sh", "-c", 'ldd -r "$0" 2>&1', program,
                      env={**os.environ, "LD_LIBRARY_PATH": folder, "LC_ALL": "C"})
    bad = [f"{program}: {line.strip()}" for line in listing.splitlines()
           if "undefined symbol" in line or "not found" in line]
    if "librdmacm.so.1" in listing and folder not in listing:
        bad.append(f"{program}: took another librdmacm.so.1 than ours")
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    args = parser.parse_args()

    installed = [path for path in map(shutil.which, PROGRAMS) if path]
    if not installed:
        abi.skip("none of the programs is installed; install rdmacm-utils and perftest")
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "librdmacm.so.1").symlink_to(pathlib.Path(args.library).resolve())
        found = [line for program in installed for line in complaints(program, folder)]
    absent = sorted(set(PROGRAMS) - {os.path.basename(path) for path in installed})
    abi.report(found, f"{len(installed)} programs resolve; not installed: {absent or 'none'}")


if __name__ == "__main__":
    main()
