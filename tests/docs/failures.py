#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""docs/troubleshooting.md quotes what `purecm explain` prints for faults: for captures of stock
kernels, and for lines of the kernel's trace.

Ends with a line "N passed, N failed, N skipped".
"""
import argparse
from pathlib import Path
import re
import subprocess
import sys

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/tools"))
import mads  # noqa: E402

CAPTURES = ROOT / "tests/tools/captures"
KERNEL = "x [0] . {0}.000000: {1}: cm.id=0 src=10.0.0.1:1 dst=10.0.0.2:2 tos=0 {2}\n"
ADDR_ERROR = KERNEL.format(1, "cm_event_handler", "ADDR_ERROR (1/-19)")
ADDR_TIMEOUT = KERNEL.format(1, "cm_event_handler", "ADDR_ERROR (1/-110)")
NO_ANSWER = (KERNEL.format(1, "cm_send_req", "qp_num=7")
             + KERNEL.format(70, "cm_event_handler", "UNREACHABLE (7/-110)"))
SENT_TO_LID = ("x [0] . 1.1: ib_mad_ib_send_mad: 0:1 QP1 : hdr : class 0x7 tid 0x77 attr_id 0x10 "
               "attr_mod 0x0  => dlid 0x00000007 sl 0\n")
ON_INFINIBAND = NO_ANSWER.replace("\n", "\n" + SENT_TO_LID, 1)
V1 = mads.pcap([(at, mads.roce_v1(mads.A, mads.B, mads.req())) for at in (0, 6)])

# In the order of the page: what is explained.
FAULTS = [(["--kernel=-"], ADDR_ERROR), (["--kernel=-"], ADDR_TIMEOUT),
          (["-r", CAPTURES / "nobody.pcap"], ""), (["-r", CAPTURES / "refused.pcap"], ""),
          ([f"--kernel={CAPTURES / 'kernel-6.1-partition.txt'}"], ""),
          (["-r", CAPTURES / "partition.pcap"], ""), (["--kernel=-"], NO_ANSWER),
          (["-r", "-"], V1), (["--kernel=-"], ON_INFINIBAND),
          ([f"--kernel={CAPTURES / 'kernel-6.1-backlog.txt'}"], ""),
          ([f"--kernel={CAPTURES / 'kernel-6.1-backlog.txt'}"], ""),
          (["-r", CAPTURES / "slow.pcap"], ""), (["-r", CAPTURES / "silent.pcap"], ""),
          (["-r", CAPTURES / "lossy.pcap"], "")]


def quotes():
    """Return the quoted texts of the page, each as one line."""
    page = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    return [" ".join(line.lstrip("> ") for line in quote.splitlines())
            for quote in re.findall(r"(?:^> .*\n)+", page, re.MULTILINE)]


def explained(purecm, words, text):
    done = subprocess.run([purecm, "explain", *words],
                          input=text if isinstance(text, bytes) else text.encode(),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return " ".join(done.stdout.decode().split())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("purecm")
    purecm = parser.parse_args().purecm
    failed = 0 if len(quotes()) == len(FAULTS) else 1
    if failed:
        print(f"FAIL: {len(quotes())} quotes for {len(FAULTS)} faults")
    for quote, (words, text) in zip(quotes(), FAULTS):
        if quote not in explained(purecm, words, text):
            failed += 1
            print(f"FAIL: '{quote}' is not what explain {words} says: "
                  f"{explained(purecm, words, text)}")
    print(f"{max(len(FAULTS) - failed, 0)} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
