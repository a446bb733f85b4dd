#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What hosts that never prove themselves take of a program with sockets, on a soft fabric, while
an honest one connects to it.

Prints a line per test and then "N passed, N failed, N skipped".
"""
import argparse
from pathlib import Path
import shutil
import sys

from preloaded import PRELOAD, TWICE_SERVER
from programs import Failure, RETRY, ROOT, SKIPPED, Tests

PORT = 7471  # rstream's
OPTIONS = "-C 100 -S 4096 -T v"
DESCRIPTORS = 1024
HONEST = "z"
LIMIT_S = 60


def half_open(tests, hosts, count):
    """Each host sends as many requests, which take descriptors of the listening socket's process
    until an RTU comes."""
    asked = "$PURECM_FABRIC/../asked"
    command = f"{tests.build}/tests/fabric/half_open 10.77.0.1 {PORT} {count}"
    serve = f"ulimit -n {DESCRIPTORS}; rstream -b 10.77.0.1 {OPTIONS}"
    strangers = [f"{host}&:({RETRY.format(command)}) >>{asked}" for host in hosts]
    client = f"timeout {LIMIT_S} sh -c '{RETRY}'".format(f"rstream -s 10.77.0.1 {OPTIONS}")
    wait = f"until [ $(grep -c asked {asked}) -ge {len(hosts)} ]; do sleep 0.1; done"
    done = tests.run("--hosts", ",".join(["a", *hosts, HONEST]), f"a&:{serve}", *strangers,
                     f"{HONEST}:{wait}; {client}")
    if done.returncode or f"{HONEST}| custom" not in done.stdout:
        raise Failure(f"status {done.returncode}: {done.stdout[-800:]}{done.stderr[-800:]}")


# What an agent says of a request for datagrams has their key.
CONTROLLING = """
import socket
s = socket.create_connection(('127.0.0.1', 7470))
s.sendall(b'x\\nlisten space=udp port=7174\\n')
asked = (line for line in s.makefile() if 'CONNECT_REQUEST' in line)
print(sum('qkey=' in next(asked) for _ in range(32)), 'with a key', flush=True)
"""


def surplus(tests):
    """One more request comes to an agent than it can have ids, of which the listener has one: it
    destroys the id when it has printed the event."""
    agent = f"PURECM_SECRET=x LD_PRELOAD={tests.build}/tests/fabric/libspoil.so " \
            f"{tests.build}/tools/purecm-agent 7470"
    done = tests.run("--timeout", str(LIMIT_S), f"a&:{agent}",
                     "b&:" + RETRY.format("udaddy -s 10.77.0.1 -c 32"),
                     "a:" + RETRY.format(f'python3 -c "{CONTROLLING}" 2>/dev/null'))
    if "a| 32 with a key" not in done.stdout:
        raise Failure(f"status {done.returncode}: {done.stdout[-800:]}{done.stderr[-800:]}")


# The client stops itself; the server sends, closes and exits while it is stopped.
STOPPING = """
import os, signal, socket
s = socket.create_connection(('10.77.0.1', 8000))
s.sendall(b'x')
os.kill(os.getpid(), signal.SIGSTOP)
print('got', sum(map(len, iter(lambda: s.recv(1 << 16), b''))), flush=True)
"""
CLOSING = """
import socket, subprocess, time
s = socket.create_server(('10.77.0.1', 8000))
c = s.accept()[0]
c.recv(1)
subprocess.run(['sh', '-c', 'until grep -q stopped {said}; do sleep 0.1; done'])
c.sendall(bytes(20000))
began = time.monotonic()
{end}
print('prompt' if time.monotonic() - began < {prompt_s} else 'late', flush=True)
"""
PROMPT_S = 12  # a queue pair gives up its peer after 17 s, a request after 16


def stopped(tests, end):
    """A server of one thread ends the connection of a stopped client: others need not wait, and the
    client gets what was sent when it goes on, although the server has exited by then."""
    said = "$PURECM_FABRIC/../said"
    client = f"python3 -c \"{STOPPING}\" & until grep -q '^State:.T' /proc/$!/status; do " \
             f"sleep 0.1; done; echo stopped >{said}; " \
             f"until grep -q 'prompt\\|late' {said}; do sleep 0.1; done; kill -CONT $!; wait $!; " \
             f"cat {said}"
    server = f"python3 -c \"{CLOSING.format(said=said, end=end, prompt_s=PROMPT_S)}\""
    done = tests.run(f"a&:touch {said}; {PRELOAD} {server} >>{said}",
                     f"b:export {PRELOAD}; {client}")
    if done.returncode or "b| got 20000" not in done.stdout or "b| prompt" not in done.stdout:
        raise Failure(f"status {done.returncode}: {done.stdout[-800:]}{done.stderr[-800:]}")


TWICE_CLIENT = f"""
import socket, time
for _ in range(2):
    began = time.monotonic()
    c = socket.create_connection(('10.77.0.1', 8000))
    print(c.recv(9), 'late' if time.monotonic() - began > {PROMPT_S} else 'prompt')
    c.close()
"""


def without_rdma(tests):
    """A host that knows nothing of RDMA: a client does not wait long for it, and then knows."""
    done = tests.run(f'a&:python3 -c "{TWICE_SERVER}"', "b:" + RETRY.format(
        f'PURECM_LOG=warn {PRELOAD} python3 -c "{TWICE_CLIENT}" 2>&1'))
    wanted = ("TCP to 10.77.0.1 port 8000: Connection timed out",
              "TCP to 10.77.0.1 port 8000: Host is down")
    if done.returncode or done.stdout.count("b| b'hello' prompt") != 2 or \
            not all(text in done.stdout for text in wanted):
        raise Failure(f"status {done.returncode}: {done.stdout[-800:]}{done.stderr[-800:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build",
                        help="build folder (default: build)")
    tests = Tests(parser.parse_args().build.resolve())
    try:
        if not shutil.which("rstream") or tests.run("--hosts", "1", "a:true").returncode:
            print("no rstream or no fabric here\n0 passed, 0 failed, 1 skipped")
            return SKIPPED
        tests.test("600 half-open connections of a host", half_open, tests, ["b"], 600)
        tests.test("100 half-open connections of each of 8 hosts", half_open, tests,
                   list("bcdefghi"), 100)
        tests.test("more requests than purecm-agent has ids", surplus, tests)
        tests.test("two connections to a host without RDMA", without_rdma, tests)
        tests.test("close() of a stopped client", stopped, tests, "c.close()")
        tests.test("shutdown() of a stopped client", stopped, tests,
                   "c.shutdown(socket.SHUT_RDWR)")
        return tests.summary()
    finally:
        shutil.rmtree(tests.folder)


if __name__ == "__main__":
    sys.exit(main())
