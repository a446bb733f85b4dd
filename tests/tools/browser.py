# SPDX-License-Identifier: BSD-2-Clause
"""A headless Chromium for tests: what it makes of a page, what it paints, whom a page calls.

Nobody but this machine is called in truth, by Chromium neither: no name is resolved.
"""
import base64
import collections
import contextlib
import json
import os
from pathlib import Path
import shutil
import struct
import subprocess
import tempfile
import time
import zlib

PROGRAM = next((name for name in ("chromium", "chromium-browser", "google-chrome")
                if shutil.which(name)), None)
NO_PAGE = "not an origin"  # who asks when Chromium asks on its own account
BYTES_A_PIXEL = {2: 3, 6: 4}  # by colour type: RGB, RGBA


WAIT_S = 120  # only a failure takes so long


def command(profile, *options):
    return [PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            f"--user-data-dir={profile}", *options]


def browse(page, *options):
    """Open a page. Return what Chromium prints."""
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run([*command(profile, *options), Path(page).as_uri()],
                              capture_output=True, check=False, timeout=900,
                              env={**os.environ, "TMPDIR": profile})
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


class Tab:
    """A page that stays open, by the DevTools protocol: JSON, each ended by a zero byte."""

    def __init__(self, told, tell):
        self.told, self.tell, self.session, self.number = told, tell, None, 0
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session and not method.startswith("Browser."):
            message["sessionId"] = self.session
        self.tell.write(json.dumps(message).encode() + b"\0")
        self.tell.flush()
        while True:
            line = bytearray()
            while not line.endswith(b"\0"):
                byte = self.told.read(1)
                if not byte:
                    raise AssertionError(f"Chromium ended at {method}")
                line += byte
            answer = json.loads(line[:-1])
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]

    def value(self, expression):
        """Return the value of an expression in JavaScript."""
        return self.call("Runtime.evaluate", expression=expression,
                         returnByValue=True)["result"].get("value")

    def open(self, url, until="document.readyState == 'complete'"):
        """Open a page and wait until an expression about it is true."""
        self.call("Page.navigate", url=url)
        end = time.monotonic() + WAIT_S
        while not self.value(f"location.href == {json.dumps(url)} && ({until})"):
            if time.monotonic() > end:
                raise AssertionError(f"{url}: not in {WAIT_S} s: {until}")
            time.sleep(0.1)

    def picture(self):
        """Return what is seen, as a PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])


@contextlib.contextmanager
def tab(*options):
    """Yield a Tab of a Chromium of its own, which ends with it."""
    (from_us, tell), (told, to_us) = os.pipe(), os.pipe()
    # Its own processes may write a little longer than it lives.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, \
            open(told, "rb") as answers, open(tell, "wb", buffering=0) as orders:
        words = command(profile, "--remote-debugging-pipe", *options)
        with subprocess.Popen(["sh", "-c", f'exec "$@" 3<&{from_us} 4>&{to_us}', "sh", *words],
                              pass_fds=(from_us, to_us), stderr=subprocess.DEVNULL,
                              env={**os.environ, "TMPDIR": profile}) as chromium:
            os.close(from_us)
            os.close(to_us)
            try:
                opened = Tab(answers, orders)
                yield opened
                opened.call("Browser.close")
            finally:
                chromium.terminate()
                chromium.wait()


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
