# SPDX-License-Identifier: BSD-2-Clause
"""Packet capture on a guest's interface; Guest.capture() returns one of these."""
from pathlib import Path
import signal
import time

from .errors import LabError

# tcpdump ends at once when told to: give what is on its way the time to arrive.
SETTLE_S = 0.2


class Capture:
    """Context manager: captures while the block runs, then writes the file on the host."""

    def __init__(self, guest, path, packet_filter):
        """path: file on the host to write; packet_filter: pcap-filter(7) expression"""
        self.path = Path(path).resolve()
        self._guest = guest
        self._filter = packet_filter
        self._process = None

    def __enter__(self):
        self._process = self._guest.start(
            ["tcpdump", "-i", self._guest.interface, "-n", "-s", "0", "-U", "--immediate-mode",
             "-Z", "root", "-w", "-", self._filter])
        self._process.wait_for_output(r"listening on")
        return self

    def __exit__(self, *_):
        time.sleep(SETTLE_S)
        try:
            self._process.stop(signal.SIGINT)
        except LabError:
            # The block crashed its host: what came before is what the test wants to see.
            pass
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(self._process.stdout_bytes)
