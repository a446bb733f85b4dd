# SPDX-License-Identifier: BSD-2-Clause
"""QEMU's monitor protocol, as much of it as faults.py needs."""
import json

from .errors import LabError

TIMEOUT_S = 20


class Monitor:
    """One monitor connection; commands are answered in turn."""

    def __init__(self, sock):
        self._sock = sock
        self._sock.settimeout(TIMEOUT_S)
        self._lines = sock.makefile("rb")
        self._negotiated = False

    def execute(self, command, **arguments):
        """Carry out a command. Return: its answer. Raises LabError if QEMU refuses."""
        if not self._negotiated:
            self._negotiated = True
            self.execute("qmp_capabilities")
        request = {"execute": command, "arguments": arguments}
        try:
            self._sock.sendall(json.dumps(request).encode() + b"\n")
            return self._answer(command)
        except OSError as error:
            raise LabError(f"QEMU did not answer {command}: {error}") from None

    def _answer(self, command):
        """Read past the greeting and events. Return: what the command returned."""
        for line in self._lines:
            message = json.loads(line)
            if "return" in message:
                return message["return"]
            if "error" in message:
                raise LabError(f"QEMU refused {command}: {message['error']['desc']}")
        raise LabError(f"QEMU ended before it answered {command}")

    def close(self):
        self._lines.close()
        self._sock.close()
