# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of the program purecm share: how it is called, and how they end."""
import argparse
from contextlib import contextmanager
import os
from pathlib import Path
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from counted import summary  # noqa: E402

HERE = {}  # what main() was told


def purecm(*args, stdin=None, env=None, stdout=subprocess.PIPE):
    """Run it. Return: what subprocess.run() does."""
    return subprocess.run([HERE["purecm"], *map(str, args)], input=stdin, stdout=stdout,
                          stderr=subprocess.PIPE, check=False, timeout=600,
                          env={**os.environ, "COLUMNS": "", **(env or {})})


def text_of(*args, **more):
    """Return the standard output of a run that has to succeed."""
    done = purecm(*args, **more)
    if done.returncode:
        raise AssertionError(f"status {done.returncode}: {done.stderr.decode()}")
    return done.stdout.decode()


def capture(name):
    """Return the path of a capture of the lab."""
    return HERE["captures"] / f"{name}.pcap"


@contextmanager
def cmportd_that(answers):
    """A socket where each client gets this answer to its first question; yield its path."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "socket"
        door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        door.bind(str(path))
        door.listen()

        def serve():
            while True:
                try:
                    guest, _ = door.accept()
                except OSError:
                    return
                with guest:
                    if guest.recv(16384) and answers:
                        guest.send(answers)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield path
        finally:
            door.shutdown(socket.SHUT_RDWR)
            thread.join()
            door.close()


def run_named(words):
    """Run the tests of the program, or those with one of the words in their names, and print the
    counts. Return: 1 if a test failed."""
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{word}*" for word in words] if words else None
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(
        loader.loadTestsFromModule(sys.modules["__main__"]))
    return summary(result)


def main(doc, **more):
    """Run the tests of the program that calls, end with 1 if any failed.

    more: further options that have to be given, name -> type
    """
    parser = argparse.ArgumentParser(description=doc.split("\n", maxsplit=1)[0])
    parser.add_argument("--purecm", required=True)
    parser.add_argument("--captures", type=Path, required=True)
    for name, kind in more.items():
        parser.add_argument("--" + name, type=kind, required=True)
    parser.add_argument("-k", action="append", help="only tests with this in their name")
    HERE.update(vars(parser.parse_args()))
    sys.exit(run_named(HERE["k"]))
