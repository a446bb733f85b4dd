# SPDX-License-Identifier: BSD-2-Clause
"""A process in a guest, and what became of it; Guest.start() and Guest.run() return these."""
import dataclasses
import re
import signal
import time

from .errors import LabError, LabTimeout

SHOWN_BYTES = 2000


def text_of(data):
    """Return data as text; bytes that are no UTF-8 come out as \\xNN."""
    return data.decode(errors="backslashreplace")


@dataclasses.dataclass(frozen=True)
class Result:
    """How a process ended. status: its exit status, or minus the signal that killed it."""

    command: str
    status: int
    stdout_bytes: bytes
    stderr_bytes: bytes
    seconds: float

    @property
    def ok(self):
        return self.status == 0

    @property
    def stdout(self):
        return text_of(self.stdout_bytes)

    @property
    def stderr(self):
        return text_of(self.stderr_bytes)

    @property
    def output(self):
        """Both streams, standard output first."""
        return self.stdout + self.stderr

    def check(self):
        """Return self, or raise LabError with the last output if the status is not 0."""
        if not self.ok:
            raise LabError(f"`{self.command}` ended with status {self.status}: "
                           f"{self.output[-SHOWN_BYTES:].strip()}")
        return self


class Process:
    """A process that a guest's agent started. Its own session, so one kill reaches all of it.

    channel: the Channel it was started through, whose reader thread calls the on_* methods
    with channel.changed held; everybody else waits on that condition.
    """

    def __init__(self, channel, ident, command):
        self.command = command
        self.pid = None
        self.status = None
        self._channel = channel
        self._ident = ident
        self._refusal = None
        self._streams = {1: bytearray(), 2: bytearray()}
        self._merged = bytearray()
        self._started = time.monotonic()
        self._seconds = None

    @property
    def alive(self):
        """Whether it runs still."""
        return self.status is None and not self._channel.broken

    @property
    def stdout_bytes(self):
        with self._channel.changed:
            return bytes(self._streams[1])

    @property
    def stdout(self):
        return text_of(self.stdout_bytes)

    @property
    def stderr(self):
        with self._channel.changed:
            return text_of(bytes(self._streams[2]))

    def output(self):
        """Return what it has written so far, both streams in order of arrival."""
        with self._channel.changed:
            return text_of(bytes(self._merged))

    def wait(self, timeout=30):
        """Wait for the end, timeout seconds at most. Return: Result. Leaves it running else."""
        self._channel.wait_until(lambda: self.status is not None, timeout,
                                 lambda: f"`{self.command}` did not end")
        return self.result()

    def result(self):
        """Return the Result of a process that has ended."""
        if self.status is None:
            raise LabError(f"`{self.command}` still runs: wait() for it first")
        with self._channel.changed:
            return Result(self.command, self.status, bytes(self._streams[1]),
                          bytes(self._streams[2]), self._seconds)

    def wait_for_output(self, pattern, timeout=30):
        """Wait until a regular expression matches in output(). Return: the match.

        Raises LabTimeout after timeout seconds, and LabError if the process ends without it.
        """
        regex = re.compile(pattern, re.MULTILINE)

        def settled():
            return regex.search(text_of(bytes(self._merged))) or self.status is not None

        self._channel.wait_until(settled, timeout,
                                 lambda: f"`{self.command}` did not print /{pattern}/")
        match = regex.search(self.output())
        if not match:
            raise LabError(f"`{self.command}` ended with status {self.status} before it "
                           f"printed /{pattern}/: {self.output()[-SHOWN_BYTES:].strip()}")
        return match

    def kill(self, number=signal.SIGKILL, group=True):
        """Send a signal to the process, or with group to all it started and did not detach."""
        if self.status is None:
            self._channel.send({"op": "signal", "id": self._ident, "signal": int(number),
                                "group": group})

    def stop(self, number=signal.SIGTERM, timeout=10):
        """Send a signal, and SIGKILL if that did not end it in timeout s. Return: Result."""
        self.kill(number)
        try:
            return self.wait(timeout)
        except LabTimeout:
            self.kill()
            return self.wait(timeout)

    def wait_started(self, timeout):
        """Wait until the agent says that it runs, or raise LabError with the reason."""
        self._channel.wait_until(lambda: self.pid or self._refusal, timeout,
                                 lambda: f"`{self.command}` was not started")
        if self._refusal:
            raise LabError(f"`{self.command}` cannot be started: {self._refusal}")

    def on_started(self, message, _):
        self.pid = message["pid"]

    def on_refused(self, message, _):
        self._refusal = message["error"]

    def on_output(self, message, blob):
        self._streams[message["stream"]] += blob
        self._merged += blob

    def on_exit(self, message, _):
        self._seconds = time.monotonic() - self._started
        self.status = message["status"]
