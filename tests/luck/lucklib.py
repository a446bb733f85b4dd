# SPDX-License-Identifier: BSD-2-Clause
"""What the luck tests share: the check registry, builds of the library, and agents."""
from pathlib import Path
import sys

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "lab")]

import sanitized  # noqa: E402
from lablib import Lab, LabError, LabTimeout, userland  # noqa: E402,F401
from lablib.release import RELEASES  # noqa: E402,F401

STOCK_DIR = "/usr/lib/x86_64-linux-gnu"
CHECKS = []
VARIANTS = ("asan", "tsan")
DESCRIBING = ("ip -br address", "ip neighbour", "rdma link", "rdma resource", "dmesg | tail -3",
              "head -v /sys/class/infiniband/*/ports/1/gids/[0-4]")


class Skip(Exception):
    """A check that cannot run here; the text says why."""


def check(group, long=False):
    """Register a check of a group of tests. It gets a Bench and fails by raising."""
    def register(function):
        CHECKS.append((group, long, function))
        return function
    return register


def same(seen, wanted):
    if seen != wanted:
        raise AssertionError(f"{seen!r} instead of {wanted!r}")


class Bench:
    """A lab of two hosts, and the builds to try in it. a is the host under test, b its peer."""

    def __init__(self, lab, build):
        self.lab = lab
        self.build = Path(build)

    @property
    def a(self):
        return self.lab.a

    @property
    def b(self):
        return self.lab.b

    def modes(self, a, b):
        """Have the hosts in these modes, with rxe0 present; left-over processes are killed."""
        for guest, mode in ((self.a, a), (self.b, b)):
            if guest.run("cat /run/lab/mode.now").stdout.strip() != mode:
                guest.mode(mode, kill=True)
            if not guest.run("test -d /sys/class/infiniband/rxe0").ok:
                guest.rxe_add()

    def describe(self):
        """Print what may explain a check that failed: how the links of both hosts are."""
        for guest in (self.a, self.b):
            for command in DESCRIBING:
                print(f"  {guest.name}: {command}")
                said = guest.run(command, timeout=60).output
                print("".join(f"    {line}\n" for line in said.splitlines()), end="", flush=True)

    @staticmethod
    def end_cmportd(guest):
        """Free the port for a process that wants it for itself."""
        guest.run("pkill -x cmportd; while pgrep -x cmportd; do sleep 0.05; done")

    def renew(self, guest):
        """Make rxe of a host anew; cmportd ends."""
        self.end_cmportd(guest)
        guest.rxe_del()
        guest.rxe_add()

    def program(self, name, variant=None):
        return str(self.folder(variant) / "tests" / "luck" / name)

    def folder(self, variant=None):
        if not variant:
            return self.build
        folder = sanitized.folder_of(self.build, variant)
        if not folder.exists():
            raise Skip(f"there is no {folder.name}")
        return folder

    def env(self, stock=False, variant=None, **more):
        """Environment that makes a program take this library."""
        where = STOCK_DIR if stock else self.folder(variant) / "lib"
        return {"LD_LIBRARY_PATH": where} | more

    def agent(self, guest, stock=None, variant=None, prefix=(), **env):
        """Start an agent; by default with the library that the guest's mode is for."""
        if stock is None:
            stock = guest.run("test -d /sys/module/rdma_ucm").ok
        argv = [*prefix, self.program("agent", variant)]
        return Agent(guest, argv, self.env(stock, variant, **env))


class Agent:
    """A running agent.c. Calls like p.do("listen l") return the answer."""

    count = 0

    def __init__(self, guest, argv, env):
        Agent.count += 1
        self.guest = guest
        self._fifo = f"/tmp/agent.{Agent.count}"
        self._answers = 0
        words = " ".join(argv)
        guest.run(f"mkfifo -m 666 {self._fifo}", check=True)
        self.process = guest.start(f"exec {words} <>{self._fifo}", env=env)

    def do(self, command, timeout=60):
        """Give a command and return its answer."""
        self.tell(command)
        return self.answer(timeout)

    def tell(self, command):
        """Give a command that may take a while; answer() waits for it."""
        self.guest.run(f"echo '{command}' >{self._fifo}", check=True)

    def answer(self, timeout=60):
        self._answers += 1
        found = self.process.wait_for_output(rf"^={self._answers} (.*)$", timeout)
        return found[1].strip()

    def all(self, *commands):
        """Give commands that have to succeed."""
        for command in commands:
            same((command, self.do(command)), (command, "ok"))

    def event(self, wait_ms=60000, name=""):
        """Take one event. Return: "TYPE id status", or "none" if none came.

        TIMEWAIT_EXIT comes when it comes, and is passed over.
        """
        while True:
            event = self.do(f"event {wait_ms} {name}", wait_ms / 1000 + 20)
            if not event.startswith("TIMEWAIT_EXIT"):
                return event

    def events(self, wait_ms=1500):
        """Take what there is until there is none for wait_ms. Return: a sorted list."""
        seen = []
        while (event := self.event(wait_ms)) != "none":
            seen.append(event)
        return sorted(seen)

    @property
    def warnings(self):
        return [line for line in self.process.stderr.splitlines() if "warn:" in line]

    def stop(self):
        self.process.kill(9)
        self.process.wait(20)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        if self.process.alive:
            self.stop()


def build_variant(build, variant):
    """Build the library and the programs again, with a sanitizer."""
    try:
        sanitized.build_variant(build, variant)
    except sanitized.BuildFailed as error:
        sys.exit(f"luck: the build for {variant} failed:\n{error}")
