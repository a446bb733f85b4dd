#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A TCP server that forks for each connection, and a client of it, which know nothing of RDMA.

    forking.py server ADDRESS CLIENTS
    forking.py client ADDRESS CLIENTS

Each client sends text and gets it back with the number of the child that served it, all of them at
the same time. Prints "forked N" where N children have answered.
"""
import os
import socket
import socketserver
import sys
import threading
import time

PORT = 8000
BYTES = 200_000
PATIENCE_S = 30


class Handler(socketserver.StreamRequestHandler):
    """Runs in the child: gets a number of bytes and as many bytes, and sends them back."""

    def handle(self):
        size = int(self.rfile.readline())
        self.wfile.write(b"%d\n" % os.getpid() + self.rfile.read(size))


class Server(socketserver.ForkingTCPServer):
    allow_reuse_address = True
    request_queue_size = 64


def serve(address, clients):
    with Server((address, PORT), Handler) as server:
        for _ in range(clients):
            server.handle_request()


def connect(address):
    """The server may not be up yet."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return socket.create_connection((address, PORT), PATIENCE_S)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def talk(address, children, number):
    data = bytes([number % 256]) * BYTES
    with connect(address) as conn:
        conn.settimeout(None)
        conn.sendall(b"%d\n" % BYTES)
        sender = threading.Thread(target=conn.sendall, args=(data,))
        sender.start()
        with conn.makefile("rb") as answer:
            child = int(answer.readline())
            if answer.read() == data:
                children.add(child)
        sender.join()


def ask(address, clients):
    children = set()
    threads = [threading.Thread(target=talk, args=(address, children, i)) for i in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"forked {len(children)}")


if __name__ == "__main__":
    {"server": serve, "client": ask}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
