# SPDX-License-Identifier: BSD-2-Clause
"""What the parent process of a fabric waits for: output and ends of commands."""
import contextlib
import os
import selectors
import sys
import time

from plan import Wrong


class Watch:
    """Waits for output and ends of commands."""

    def __init__(self, fabric):
        self.fabric, self.status, self.text, self.listens = fabric, {}, {}, {}
        self.ready = selectors.DefaultSelector()
        for host in fabric.hosts:
            self.ready.register(fabric.links[host.name][0], selectors.EVENT_READ, host)
        for number, (end, _) in enumerate(fabric.outputs):
            self.ready.register(end, selectors.EVENT_READ, number)

    def until(self, condition, limit_s):
        """Work until a condition holds; None for no limit. Return: whether it holds."""
        deadline = None if limit_s is None else time.monotonic() + limit_s
        while not condition():
            left = None if deadline is None else max(deadline - time.monotonic(), 0)
            for key, _ in self.ready.select(left):
                if isinstance(key.data, int):
                    self.output(key.data)
                else:
                    self.message(key.data)
            if left == 0:
                return condition()
        return True

    def message(self, host):
        message = self.fabric.read(host)
        if message is None or "died" in message:
            raise Wrong(f"host {host.name} is gone")
        if "settled" in message:
            self.listens[message["settled"]] = message["listens"]
            return
        self.status[message["ended"]] = message["status"]
        if message["status"]:
            self.report_failure(message["ended"], message["status"])

    def report_failure(self, number, status):
        """Unless it is the last command: then the status of the fabric says it."""
        commands = self.fabric.commands
        left = [str(command) for n, command in enumerate(commands)
                if not command.background and n not in self.status]
        if not left and not commands[number].background:
            return
        how = f"signal {-status}" if status < 0 else f"status {status}"
        print(f"fabric: {commands[number]} has ended with {how}"
              + (f"; waiting for {', '.join(left)}" if left else ""), file=sys.stderr)

    def output(self, number):
        """Return: whether there was any; at its end it is no longer watched."""
        end = self.fabric.outputs[number][0]
        data = os.read(end, 65536)
        if not data:
            self.ready.unregister(end)
            os.close(end)
        self.show(number, data)
        return bool(data)

    def show(self, number, data):
        if self.fabric.arguments.raw:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            return
        name = self.fabric.commands[number].host.name
        lines = (self.text.pop(number, b"") + data).split(b"\n")
        if data:
            self.text[number] = lines.pop()
        for line in lines:
            if line or data:
                sys.stdout.buffer.write(f"{name}| ".encode() + line + b"\n")
        sys.stdout.buffer.flush()

    def drain(self, numbers):
        """Read the remaining output of commands; a child of theirs may still hold the other end."""
        for number in numbers & {key.data for key in self.ready.get_map().values()
                                 if isinstance(key.data, int)}:
            os.set_blocking(self.fabric.outputs[number][0], False)
            with contextlib.suppress(BlockingIOError):
                while self.output(number):
                    pass
