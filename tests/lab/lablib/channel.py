# SPDX-License-Identifier: BSD-2-Clause
"""The host's end of a guest's control port and serial console; guest.py owns one per guest.

The frames on the control port are described in ../guest/agent.py.
"""
import json
import os
import selectors
import signal
import struct
import threading
import time

from .errors import LabError, LabTimeout
from .process import Process, text_of

HEADER = struct.Struct("!II")
CHUNK_BYTES = 1 << 16
CONSOLE_KEPT_BYTES = 1 << 18
# How much longer than on an idle machine whatever is waited for may take; meson test sets it.
PATIENCE = float(os.environ.get("PURECM_LAB_PATIENCE", "1"))


def patient(timeout):
    """Return a timeout in seconds as it counts on this machine."""
    return PATIENCE * timeout


class Channel:
    """Reads control and console sockets in a thread and wakes whoever waits for a change."""

    def __init__(self, name, control, console):
        self.name = name
        self.changed = threading.Condition()
        self.ready = False
        self.broken = None
        self._control = control
        self._sending = threading.Lock()
        self._received = bytearray()
        self._console = bytearray()
        self._processes = {}
        self._last_ident = 0
        self._thread = threading.Thread(target=self._read_all, args=(control, console),
                                        name=f"lab-{name}", daemon=True)
        self._thread.start()

    def console(self):
        """Return what the serial console printed, its last 256 KiB at most."""
        with self.changed:
            return text_of(bytes(self._console)).replace("\r", "")

    def spawn(self, argv, env, cwd, stdin, command):
        """Ask the agent to start a process. Return: the Process, not known to run yet."""
        with self.changed:
            self._last_ident += 1
            ident = self._last_ident
            process = self._processes[ident] = Process(self, ident, command)
        self.send({"op": "spawn", "id": ident, "argv": argv, "env": env, "cwd": cwd}, stdin)
        return process

    def send(self, message, blob=b""):
        """Send one frame to the agent."""
        text = json.dumps(message).encode()
        try:
            with self._sending:
                self._control.sendall(HEADER.pack(len(text), len(blob)) + text + blob)
        except OSError as error:
            self._break(f"its control port is gone ({error})")
            self._raise_if_broken()

    def wait_until(self, condition, timeout, what):
        """Wait until condition() holds, timeout seconds at most.

        condition is called with changed held; what() gives the text for LabTimeout. Raises
        LabError if the guest goes away first.
        """
        timeout = patient(timeout)
        end = time.monotonic() + timeout
        with self.changed:
            while not condition():
                self._raise_if_broken()
                left = end - time.monotonic()
                if left <= 0:
                    raise LabTimeout(f"host {self.name}: {what()} within {timeout} s")
                self.changed.wait(min(left, 1))

    def give_up(self, reason):
        """The guest is about to be ended on purpose: its processes are gone."""
        self._break(reason)
        with self.changed:
            for process in self._processes.values():
                if process.status is None:
                    process.on_exit({"status": -signal.SIGKILL}, b"")
            self.changed.notify_all()

    def join(self):
        """Wait for the reader thread, which ends when QEMU does."""
        self._thread.join(timeout=5)

    def _raise_if_broken(self):
        if self.broken:
            tail = text_of(bytes(self._console))[-4000:].replace("\r", "").strip()
            raise LabError(f"host {self.name} went away: {self.broken}; its serial console "
                           f"printed last:\n{tail or '(nothing)'}")

    def _break(self, reason):
        with self.changed:
            self.broken = self.broken or reason
            self.changed.notify_all()

    def _read_all(self, control, console):
        """The reader thread: until both sockets are at their end."""
        with selectors.DefaultSelector() as selector:
            selector.register(control, selectors.EVENT_READ, self._take_control)
            selector.register(console, selectors.EVENT_READ, self._take_console)
            while selector.get_map():
                for key, _ in selector.select():
                    try:
                        data = key.fileobj.recv(CHUNK_BYTES)
                    except OSError:
                        data = b""
                    if data:
                        key.data(data)
                    else:
                        selector.unregister(key.fileobj)
        self._break("QEMU ended")

    def _take_console(self, data):
        with self.changed:
            self._console += data
            del self._console[:-CONSOLE_KEPT_BYTES]

    def _take_control(self, data):
        self._received += data
        with self.changed:
            while self._take_frame():
                pass
            self.changed.notify_all()

    def _take_frame(self):
        """Handle the first frame received. Return: whether there was a whole one."""
        if len(self._received) < HEADER.size:
            return False
        text_bytes, blob_bytes = HEADER.unpack_from(self._received)
        end = HEADER.size + text_bytes + blob_bytes
        if len(self._received) < end:
            return False
        message = json.loads(self._received[HEADER.size:end - blob_bytes])
        blob = bytes(self._received[end - blob_bytes:end])
        del self._received[:end]
        if message["event"] == "hello":
            self.ready = True
        else:
            process = self._processes[message["id"]]
            getattr(process, "on_" + message["event"])(message, blob)
        return True
