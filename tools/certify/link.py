# SPDX-License-Identifier: BSD-2-Clause
"""Remote control of the other host: requests are names of methods of host.Host, as one JSON object
per line, over the standard streams of a command such as ssh, or over TCP. Over TCP both ends prove
that they know the server's secret, which is never sent: each line begins with its MAC."""
import contextlib
import getpass
import hashlib
import hmac
import json
import os
import queue
import secrets
import socket
import subprocess
import sys
import threading

import host as hosts

PORT = 7479
HELLO_S = 10
GONE_S = 90  # a host that has not answered for so long has gone
NONCE_BYTES = 16  # and of the secret; twice as many digits
STRANGERS_MAX = 64  # connections that have not proved anything yet
SECRET = "PURECM_SECRET"
CLIENT, SERVER = "client", "server"


class Link:
    """A stream of lines in both directions, with MACs if there is a key."""

    def __init__(self, reader, writer, close, key=None, role=None):
        self._reader, self._writer, self.close = reader, writer, close
        self._key = key
        self._roles = (CLIENT, SERVER) if role == CLIENT else (SERVER, CLIENT)
        self._sent = self._received = 0

    def _mac(self, role, number, text):
        if not self._key:
            return b""
        return mac(self._key, role.encode(), str(number).encode(), text) + b" "

    def send(self, value):
        """Send a value of JSON."""
        text = json.dumps(value).encode()
        self._writer.write(self._mac(self._roles[0], self._sent, text) + text + b"\n")
        self._writer.flush()
        self._sent += 1

    def receive(self, limit=-1):
        """Receive a value. Return: None at the end of the stream, or after a wrong MAC."""
        line = self._reader.readline(limit)
        proof, text = line[:line.find(b" ") + 1] if self._key else b"", line.rstrip(b"\n")
        text = text[len(proof):]
        if not text or not hmac.compare_digest(proof, self._mac(self._roles[1], self._received,
                                                                text)):
            return None
        self._received += 1
        return json.loads(text)


def mac(key, *parts):
    """The MAC of these bytes, in hexadecimal digits."""
    return hmac.new(key, b"\0".join(parts), hashlib.sha256).hexdigest().encode()


def greet(sock, secret, role):
    """Prove to the peer that we know the secret. Return: a Link, or None if the peer does not."""
    sock.settimeout(HELLO_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    ours = secrets.token_hex(NONCE_BYTES).encode()
    sock.sendall(ours)
    theirs = sock.recv(2 * NONCE_BYTES, socket.MSG_WAITALL)
    key = mac(secret, *((ours, theirs) if role == CLIENT else (theirs, ours)))
    link = Link(sock.makefile("rb"), sock.makefile("wb"), sock.close, key, role)
    link.send("hello")
    if link.receive(limit=1024) != "hello":
        sock.close()
        return None
    sock.settimeout(None)
    end_with_its_host(sock)
    return link


def end_with_its_host(sock):
    """Let calls on a connection fail when the other host vanishes without closing it."""
    for level, option, value in ((socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
                                 (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, GONE_S // 3),
                                 (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, GONE_S // 9),
                                 (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, GONE_S * 1000)):
        sock.setsockopt(level, option, value)


class Remote:
    """The other host; each method sends a request."""

    def __init__(self, link, end):
        self._link, self._end = link, end

    def __getattr__(self, order):
        return lambda *words: self._ask(order, words)

    def _ask(self, order, words):
        answer = None
        with contextlib.suppress(OSError):
            self._link.send([order, *words])
            answer = self._link.receive()
        if answer is None:
            raise hosts.Trouble("the other host has gone; its `purecm certify` says why")
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
        sock = socket.create_connection((name, port), HELLO_S)
        secret = os.environ.get(SECRET) or getpass.getpass(
            "the secret that `purecm certify --serve` has printed: ")
        link = greet(sock, secret.strip().encode(), CLIENT)
    except OSError as error:
        raise hosts.Trouble(f"{name}, TCP port {port}: {error.strerror or error}; run `purecm "
                            "certify --serve` there, and reach it through a tunnel of ssh, or "
                            "with its --listen") from error
    if not link:
        raise hosts.Trouble(f"{name}, TCP port {port}: it has another secret")
    return Remote(link, link.close)


def start_by(command):
    """Start the other side with a command, such as ssh. Return: a Remote."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def end():
        with contextlib.suppress(OSError):
            child.stdin.close()
        try:
            child.wait(HELLO_S)
        except subprocess.TimeoutExpired:
            child.kill()
    return Remote(Link(child.stdout, child.stdin, end), end)


def _next_request(link):
    try:
        return link.receive()
    except OSError as error:
        raise hosts.Trouble(f"the host that conducts has gone: {error.strerror}") from error


def obey(host, link):
    """Carry out requests until the connection ends."""
    while (request := _next_request(link)) is not None:
        order, *words = request
        try:
            if order.startswith("_") or not hasattr(hosts.Host, order):
                raise hosts.Trouble(f"{order}: no such order; are both of the same version?")
            answer = {"result": getattr(host, order)(*words)}
        except (hosts.Trouble, OSError) as error:
            answer = {"trouble": str(error)}
        link.send(answer)
        if order == "close":
            return


def accept_first(listener, secret, first):
    """Put (the Link, the address) of the first that knows the secret into a queue; a silent
    stranger keeps nobody waiting."""
    proving = threading.Semaphore(STRANGERS_MAX)

    def prove(sock, address):
        try:
            if link := greet(sock, secret, SERVER):
                first.put((link, address))
        except (OSError, ValueError):
            sock.close()
        finally:
            proving.release()

    while True:
        proving.acquire()
        sock, (address, *_) = listener.accept()
        threading.Thread(target=prove, args=(sock, address), daemon=True).start()


def serve(host, address, port, tell):
    """Accept the first connection that knows the secret, and carry out its requests."""
    secret = os.environ.get(SECRET) or secrets.token_hex(NONCE_BYTES)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.create_server((address, port), family=family,
                                    dualstack_ipv6=address == "::")
    tell(f"waiting for `purecm certify {socket.gethostname()}` on another host, at {address}, TCP "
         f"port {port}" + ("" if os.environ.get(SECRET) else f"; the secret is {secret}"))
    first = queue.Queue()
    threading.Thread(target=accept_first, args=(listener, secret.encode(), first),
                     daemon=True).start()
    link, peer = first.get()
    tell(f"{peer} conducts")
    obey(host, link)


def serve_standard_files(host):
    """The other end of start_by()."""
    obey(host, Link(sys.stdin.buffer, sys.stdout.buffer, None))
