#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""test_wireshark.py with the tshark of another release of Debian, as an ordinary user of a fresh
root, where Wireshark has to find the dissector at the place of its package.

Ends with a line "N passed, N failed, N skipped". Exit status: 77 without PURECM_TEST_LONG, root or
mmdebstrap.
"""
import argparse
from pathlib import Path
import shutil
import sys

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "packaging"))
import roots  # noqa: E402

# Beside tshark and Python what the program purecm is linked with.
IN_ROOT = ("tshark", "python3", "libibumad3", "libibverbs1", "libmicrohttpd12", "libncurses6",
           "libnl-route-3-200", "libpcap0.8")
AS_USER = "setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=/tmp"
JUDGED = AS_USER + """ python3 /tests/tools/test_wireshark.py --purecm /programs/purecm \\
    --captures /tests/tools/captures --golden /tests/judge/golden \\
    --random_pcap /programs/random_pcap --dissector /programs/purecm.lua --tshark tshark 2>&1"""
INSTALLED = """
install -D /programs/purecm.lua "$(echo /usr/lib/*-linux-gnu)/wireshark/plugins/purecm.lua"
said=$(""" + AS_USER + """ tshark -2 -r /tests/tools/captures/nobody.pcap -Y ibcm.failed \\
    -T fields -e ibcm.cause)
case $said in
*"does not run"*) echo "$(tshark --version 2>/dev/null | head -1) finds it" ;;
*) echo "tshark does not find it where the package puts it: $said"; exit 1 ;;
esac"""


def main():
    """Return: the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("release", help="of Debian")
    parser.add_argument("programs", type=Path, nargs=3, help="purecm, random_pcap, purecm.lua")
    args = parser.parse_args()
    why_not = roots.why_not(f"a root of {args.release} with its tshark is made in a minute")
    if why_not:
        print(f"{why_not}\n0 passed, 0 failed, 1 skipped")
        return roots.SKIPPED
    with roots.folder_in_memory() as folder:
        root = folder / "root"
        roots.make(args.release, root, include=IN_ROOT)
        shutil.copytree(TESTS, root / "tests")
        (root / "programs").mkdir()
        for program in args.programs:
            shutil.copy(program, root / "programs")
        try:
            for script in (JUDGED, INSTALLED):
                print(roots.enter(root, script), end="")
        except AssertionError as error:
            print(f"{error}\n0 passed, 1 failed, 0 skipped")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
