# SPDX-License-Identifier: BSD-2-Clause
"""Both hosts of a certificate, the time that the trials have, and what these share."""
import contextlib
import json
import re
import secrets
import time
from typing import NamedTuple

from host import Trouble
from ways import ways_between

WORKS, SLOWER, FAILS, UNTRIED = "works", "works slower", "does not work", "not tried"
ORDER = (WORKS, UNTRIED, SLOWER, FAILS)  # by severity, the worst last
LIMIT_S = 60  # of one command
SECONDS = 300  # of all trials
MORE_TIME = "--seconds 1800"
RESERVED = 0.1  # of them, to end what was started
LEAST_S = 60  # in which a slow host tries something of the first trial, however few they are
# What each has of them; what one does not use is the others' that come later.
PLANNED_S = {"doctor": 5, "addresses": 15, "mads": 45, "drills": 80, "parity": 65,
             "connections": 30, "crowd": 15, "messages": 1, "killed-program": 7,
             "killed-cmportd": 15, "disruptions": 20, "fast-path": 2}


# A file outside of the folders that all systems have; such a path says where someone builds.
PRIVATE = re.compile(r"(?<![\w.:/])/(?!(?:usr|lib\w*|etc|sys|proc|dev|opt|run|var|s?bin)/)"
                     r"(?:[\w.+@~-]+/)+([\w.+@~-]*)")


class Row(NamedTuple):
    """A line of the certificate."""
    feature: str
    verdict: str
    why: str
    remedy: str = ""
    figures: dict = {}

    def public(self):
        """The same without the paths of someone's own files, but with their names."""
        why, remedy = (PRIVATE.sub(r".../\1", text) for text in (self.why, self.remedy))
        return self._replace(why=why, remedy=remedy)


class OutOfTime(Trouble):
    """A command did not end before all trials had to; text: what it has printed."""

    def __init__(self, text=""):
        super().__init__("no time was left to finish it")
        self.text = text


class Timed:
    """A host whose commands end when the pair's time does."""

    def __init__(self, host, pair):
        self._host, self._pair = host, pair

    def __getattr__(self, order):
        return getattr(self._host, order)

    def _limit(self, limit_s):
        if self._pair.before_cut() <= 0:
            raise OutOfTime()
        return min(limit_s, self._pair.before_cut())

    def run(self, limit_s, program, *words):
        """As Host.run(), or raise OutOfTime."""
        most_s = self._limit(limit_s)
        text, status = self._host.run(most_s, program, *words)
        if status is None and most_s < limit_s:
            raise OutOfTime(text)
        return [text, status]

    def expect(self, number, pattern, limit_s):
        """As Host.expect(), or raise OutOfTime."""
        most_s = self._limit(limit_s)
        text, status = self._host.expect(number, pattern, most_s)
        if status is None and most_s < limit_s and not re.search(pattern, text, re.MULTILINE):
            raise OutOfTime(text)
        return [text, status]


class Pair:
    """Both hosts, and what is known about them."""

    def __init__(self, here, there, named, tell, seconds=SECONDS):
        self.a, self.b, self.tell = Timed(here, self), Timed(there, self), tell
        begin = time.monotonic()
        self.end = begin + (1 - RESERVED) * seconds  # of all trials
        self.cut = max(self.end, begin + LEAST_S)  # of the last command
        self.end_of_trial = self.end
        secret = secrets.token_hex()
        for host in (here, there):
            host.share(secret)
        self.stock = {"a": here.stock(), "b": there.stock()}
        self.ways = ways_between(self.stock["a"], self.stock["b"], named)
        if not self.ways:
            raise Trouble("no address of an RDMA device of this host is in a network of the "
                          "other's; `purecm doctor ADDRESS` says more")
        self.clocks = self.read_clocks()
        self.mads = []
        self.took = {}  # seconds of each trial
        self.fast_path = None  # whether MADs from a queue pair of our own arrive at QP1

    def begin(self, names):
        """Begin the first of the trials that are left: find out when it should end."""
        now = time.monotonic()
        planned = [PLANNED_S[name] for name in names]
        self.end_of_trial = now + max(self.end - now, 0) * planned[0] / sum(planned)

    def read_clocks(self):
        """Return the seconds that either host counts, at one moment."""
        before, there, after = self.a.clock(), self.b.clock(), self.a.clock()
        return (before + after) / 2, there

    def clock_ratio(self):
        """How many seconds have gone by on host b, a second of host a's."""
        here, there = (now - then for now, then in zip(self.read_clocks(), self.clocks))
        return there / here

    def is_over(self):
        """Whether the time of all trials has been used."""
        return time.monotonic() > self.end

    def is_cut(self):
        """Whether no command may begin any more."""
        return self.before_cut() <= 0

    def before_cut(self):
        """Seconds that a command may take."""
        return self.cut - time.monotonic()

    def left(self, parts=1):
        """Seconds that the trial has left for one of its remaining parts."""
        return max(self.end_of_trial - time.monotonic(), 0) / parts

    @property
    def main(self):
        return self.ways[0]

    def directions(self, way):
        """Yield (name, requesting host, responding host, its address, the requester's)."""
        yield "a to b", self.a, self.b, way.there, way.here
        yield "b to a", self.b, self.a, way.here, way.there

    def start_cmportds(self):
        for host in (self.a, self.b):
            host.start_cmportd()

    @contextlib.contextmanager
    def without_cmportd(self, *hosts):
        """While the CM class of the ports is needed for something else."""
        for host in hosts:
            host.stop_cmportd()
        try:
            yield
        finally:
            for host in hosts:
                host.start_cmportd()

    @contextlib.contextmanager
    def served(self, host, ready, *command):
        """A program that runs as a server inside the block. Yields its number."""
        number = host.start(*command)
        try:
            text, status = host.expect(number, ready, LIMIT_S)
            if status is not None or not re.search(ready, text, re.MULTILINE):
                raise Trouble(f"{command[0]} does not start: {text.strip()[-400:] or status}")
            yield number
        finally:
            host.end(number)


def last_line(text):
    return (text.strip().splitlines() or ["it says nothing"])[-1]


def objects(text):
    """The JSON objects that were printed, a line each; the last may be incomplete."""
    return [json.loads(line) for line in text.splitlines()
            if line.startswith("{") and line.endswith("}")]
