# SPDX-License-Identifier: BSD-2-Clause
"""A headless Chromium for tests: what it makes of a page, what it paints, whom a page calls.

Nobody is called in truth, by Chromium neither: no name is resolved.
"""
import collections
import json
from pathlib import Path
import shutil
import struct
import subprocess
import tempfile
import zlib

PROGRAM = next((name for name in ("chromium", "chromium-browser", "google-chrome")
                if shutil.which(name)), None)
NO_PAGE = "not an origin"  # who asks when Chromium asks on its own account
BYTES_A_PIXEL = {2: 3, 6: 4}  # by colour type: RGB, RGBA


def browse(page, *options):
    """Open a page. Return what Chromium prints."""
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND",
             f"--user-data-dir={profile}", *options, Path(page).as_uri()],
            capture_output=True, check=False, timeout=900)
    if done.returncode:
        raise AssertionError(done.stderr.decode()[-2000:])
    return done.stdout.decode()


def requests(page, log):
    """Return the addresses that a page makes Chromium ask for; log: a file to be written."""
    browse(page, f"--log-net-log={log}", "--dump-dom")
    text = Path(log).read_text(encoding="utf-8").rstrip().rstrip(",")
    told = json.loads(text if text.endswith("]}") or text.endswith("}") else text + "]}")
    return {event["params"]["url"] for event in told["events"]
            if event.get("params", {}).get("initiator", NO_PAGE) != NO_PAGE}


# --- pictures ---------------------------------------------------------------------------------


def chunks(png):
    """Yield (kind, data) of each chunk."""
    at = 8
    while at < len(png):
        size, kind = struct.unpack_from("!I4s", png, at)
        yield kind, png[at + 8:at + 8 + size]
        at += 12 + size


def nearest(left, above, corner):
    """Return the Paeth predictor of the PNG specification."""
    guess = left + above - corner
    return min((abs(guess - value), order, value)
               for order, value in enumerate((left, above, corner)))[2]


FILTERS = (
    lambda left, above, corner: 0,
    lambda left, above, corner: left,
    lambda left, above, corner: above,
    lambda left, above, corner: (left + above) // 2,
    nearest,
)


def unfiltered(kind, line, before, step):
    """Return a line of a picture; kind: its filter, before: the line above it."""
    line, guess = bytearray(line), FILTERS[kind]
    for i, byte in enumerate(line if kind else ()):
        left, corner = (line[i - step], before[i - step]) if i >= step else (0, 0)
        line[i] = (byte + guess(left, before[i], corner)) & 0xff
    return line


def lines_of(png):
    """Yield the lines of a picture of eight bits a colour, and the bytes of a pixel."""
    parts = collections.defaultdict(bytes)
    for kind, data in chunks(png):
        parts[kind] += data
    width, height, depth, colours = struct.unpack_from("!IIBB", parts[b"IHDR"])
    assert depth == 8, depth
    step = BYTES_A_PIXEL[colours]
    data, stride = zlib.decompress(parts[b"IDAT"]), 1 + width * step
    before = bytearray(stride - 1)
    for row in range(height):
        line = data[row * stride:(row + 1) * stride]
        before = unfiltered(line[0], line[1:], before, step)
        yield before, step


def size(png):
    return struct.unpack_from("!II", png, 16)


def colours(png):
    """Return how many pixels have which colour, as "#rrggbb"."""
    ret = collections.Counter()
    for line, step in lines_of(png):
        ret.update(f"#{line[i:i + 3].hex()}" for i in range(0, len(line), step))
    return ret
