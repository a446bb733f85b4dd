# SPDX-License-Identifier: BSD-2-Clause
"""The cable between two guests: a pair of datagram sockets, one packet a datagram.

The lab keeps both ends open, so that a guest can die and come back while its peer notices nothing.
"""
import select
import socket
import threading

POLL_S = 0.1


class LinkEnd:
    """One guest's end of the cable; its QEMU inherits the socket."""

    def __init__(self, sock):
        self._sock = sock
        self._sink = None
        self._dead = threading.Event()

    def fileno(self):
        return self._sock.fileno()

    def discard(self):
        """Throw away what arrives while the guest is dead; unread, it would block the peer."""
        if not self._sink:
            self._dead.set()
            self._sink = threading.Thread(target=self._swallow, name="lab-link", daemon=True)
            self._sink.start()

    def deliver(self):
        """End discard(): a guest is about to read for itself."""
        if self._sink:
            self._dead.clear()
            self._sink.join()
            self._sink = None

    def close(self):
        self.deliver()
        self._sock.close()

    def _swallow(self):
        while self._dead.is_set():
            if select.select([self._sock], [], [], POLL_S)[0]:
                self._sock.recv(1)


def cable():
    """Return the two LinkEnds of a new cable."""
    return tuple(LinkEnd(sock)
                 for sock in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
