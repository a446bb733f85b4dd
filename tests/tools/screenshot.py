#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""docs/wireshark.png is what a real Wireshark shows with the dissector: tools/wireshark/screenshot
takes the picture once more, and one of another capture, which has to differ.

Ends with a line "N passed, N failed, N skipped"; skipped where a program is missing.
"""
import argparse
from pathlib import Path
import shutil
import subprocess
import sys
import tempfile

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ("wireshark", "Xvfb", "xdotool", "import", "compare")
PIXELS = 1280 * 900
SAME, OTHER = PIXELS // 500, PIXELS // 20  # pixels that differ: a cursor at most; another text


def pixels_apart(dissector, capture, packet, folder):
    """Return by how many pixels a picture of a packet differs from that in docs."""
    picture = Path(folder) / "picture.png"
    subprocess.run([ROOT / "tools/wireshark/screenshot", dissector,
                    ROOT / "tests/tools/captures" / capture, str(packet), picture], check=True,
                   timeout=300)
    done = subprocess.run(["compare", "-metric", "AE", "-fuzz", "10%", picture,
                           ROOT / "docs/wireshark.png", "null:"], capture_output=True, text=True,
                          check=False)
    return float(done.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("dissector")
    dissector = parser.parse_args().dissector
    missing = [program for program in PROGRAMS if not shutil.which(program)]
    if missing:
        print(f"missing: {', '.join(missing)}: apt-get install wireshark xvfb xdotool imagemagick")
        print("0 passed, 0 failed, 1 skipped")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        same = pixels_apart(dissector, "silent.pcap", 2, folder)
        other = pixels_apart(dissector, "nobody.pcap", 2, folder)
    passed = same <= SAME and other >= OTHER
    if not passed:
        print(f"FAIL: {same:.0f} pixels differ from docs/wireshark.png, at most {SAME} may; of "
              f"another capture {other:.0f}, at least {OTHER} have to. If the dissector shows "
              f"something else now: tools/wireshark/screenshot {dissector} "
              "tests/tools/captures/silent.pcap 2 docs/wireshark.png")
    print(f"{int(passed)} passed, {int(not passed)} failed, 0 skipped")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
