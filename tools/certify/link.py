# SPDX-License-Identifier: BSD-2-Clause
"""Remote control of the other host: requests are names of methods of host.Host, as one JSON object
per line, over TCP or over the standard streams of a command such as ssh."""
import json
import socket
import subprocess
import sys

import host as hosts

PORT = 7479
HELLO_S = 10


class Remote:
    """The other host; each method sends a request."""

    def __init__(self, reader, writer, end):
        self._reader, self._writer, self._end = reader, writer, end

    def __getattr__(self, order):
        return lambda *words: self._ask(order, words)

    def _ask(self, order, words):
        self._writer.write(json.dumps([order, *words]).encode() + b"\n")
        self._writer.flush()
        line = self._reader.readline()
        if not line:
            raise hosts.Trouble("the other host has gone; its `purecm certify` says why")
        answer = json.loads(line)
        if "trouble" in answer:
            raise hosts.Trouble("the other host: " + answer["trouble"])
        return answer["result"]

    def leave(self):
        """The other host ends everything it has started, and exits."""
        try:
            self._ask("close", ())
        finally:
            self._end()


def dial(name, port):
    """Connect to the host that runs `purecm certify --serve`. Return: a Remote."""
    try:
        link = socket.create_connection((name, port), HELLO_S)
    except OSError as error:
        raise hosts.Trouble(f"{name}, TCP port {port}: {error.strerror or error}; run `purecm "
                            "certify --serve` there, and let it through") from error
    link.settimeout(None)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Remote(link.makefile("rb"), link.makefile("wb"), link.close)


def start_by(command):
    """Start the other side with a command, such as ssh. Return: a Remote."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def end():
        child.stdin.close()
        child.wait(HELLO_S)
    return Remote(child.stdout, child.stdin, end)


def obey(host, reader, writer):
    """Carry out requests until the connection ends."""
    for line in reader:
        order, *words = json.loads(line)
        try:
            if order.startswith("_") or not hasattr(hosts.Host, order):
                raise hosts.Trouble(f"{order}: no such order; are both of the same version?")
            answer = {"result": getattr(host, order)(*words)}
        except (hosts.Trouble, OSError) as error:
            answer = {"trouble": str(error)}
        writer.write(json.dumps(answer).encode() + b"\n")
        writer.flush()
        if order == "close":
            return


def serve(host, port, tell):
    """Accept one connection, and carry out its requests."""
    with socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True) as door:
        tell(f"waiting for `purecm certify {socket.gethostname()}` on another host, at TCP port "
             f"{port}; whoever connects first may run purecm's programs as this user")
        link, peer = door.accept()
    with link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        tell(f"{peer[0]} conducts")
        obey(host, link.makefile("rb"), link.makefile("wb"))


def serve_standard_files(host):
    """The other end of start_by()."""
    obey(host, sys.stdin.buffer, sys.stdout.buffer)
