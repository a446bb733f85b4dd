#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Sequences of calls from seeds, as scripts for the player.

A sequence is made of a few plans, each of which leads ids of either end, or of both, through their
life as programs do. Plans are interleaved, some calls are left out, others are put in between: so
most calls are made in states in which they do something, and some in any other. The same seed makes
the same script.

    generate.py FIRST COUNT      prints scripts
"""
import random
import sys

HOSTS4 = ("self4", "peer4", "any4", "lo4", "none4")
HOSTS6 = ("self6", "peer6", "any6", "lo6", "none6")
PARAMS = ("d", "d", "null", "D", "X", "z", "f", "m", "r", "")
OPTIONS = ("tos 32", "reuse 1", "reuse 0", "afonly 1", "afonly 0", "ack 16", "short 1", "path 0",
           "name 1", "level 1")
GROUPS = ("group4", "group4", "other4", "group6", "self4", "any4")
SOCKET_OPTIONS = ("reuse", "rcvbuf", "sndbuf", "keepalive", "error", "linger", "oob", "nodelay",
                  "keepidle", "maxseg", "v6only", "sqsize", "rqsize", "inline", "iomap", "none")
SENDS = ("send", "send", "write", "writev", "sendto", "sendmsg")
RECEIVES = ("recv", "recv", "read", "readv", "recvfrom", "recvmsg")
DROPPED, INSERTED = 0.06, 0.15
# Before a call: by the thread, while signals arrive, without a free descriptor.
PREFIXES = ("t ", "! ", "x ")
PREFIXED = 0.08
WITHOUT_PREFIX = ("events", "wait", "hold")


class Sequence:
    """Makes one script."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.n_ids = 0
        self.next_port = 0

    def pick(self, *values):
        return self.random.choice(values)

    def chance(self, share):
        return self.random.random() < share

    def new_id(self):
        self.n_ids += 1
        return f"i{(self.n_ids - 1) % 5}"

    def new_port(self):
        self.next_port += 1
        return f"p{(self.next_port - 1) % 8}"

    def channel(self):
        return self.pick("c0", "c0", "c0", "c1", "sync")

    def child(self):
        return self.pick("i5", "i5", "i5", "i6", "i7")

    def some_id(self):
        return self.pick(*(f"i{n}" for n in range(min(max(self.n_ids, 1), 5))), self.child())

    def family(self):
        return self.pick("4", "4", "4", "6")

    def kind(self, ps):
        return "ud" if ps in ("udp", "ipoib") else \
            self.pick("rc", "rc", "rc", "rc", "rc", "uc", "xs")

    @staticmethod
    def events(end, channel):
        """What takes the events of an id; those of a synchronous one are its own."""
        return [] if channel == "sync" else [f"{end}events {channel}"]

    # Plans. An end is "" or "b ", the other host.

    def meeting(self):
        """An id listens, another connects; on two hosts or on one."""
        here, there = self.pick(("", "b "), ("b ", ""), ("", "b "), ("b ", ""), ("", ""))
        active, passive, port = self.new_id(), self.new_id(), self.new_port()
        ps, family, child = self.pick("tcp", "tcp", "tcp", "udp", "ib"), self.family(), "i5"
        both = [self.channel() if end == "" else self.pick("c0", "c0", "c1")
                for end in (here, there)]
        if here == there:
            both = [self.pick("c0", "c1") for _ in both]
        steps = [f"{there}create {passive} {both[1]} {ps}",
                  f"{there}bind {passive} {self.pick('self', 'any')}{family} {port}",
                  f"{there}listen {passive} {self.pick(0, 1, 10)}",
                  f"{here}create {active} {both[0]} {ps}"]
        if self.chance(0.2):
            steps.append(f"{here}bind {active} {self.pick('self', 'any')}{family} "
                         f"{self.pick('0', self.new_port())}")
        if self.chance(0.2):
            steps.append(f"{here}option {active} {self.pick('tos 32', 'ack 16', 'reuse 1')}")
        host = "self" if here == there else "peer"
        steps += [f"{here}addr {active} {self.pick('-', '-', 'self' + family)} {host}{family} "
                  f"{port}", *self.events(here, both[0]), f"{here}route {active}",
                  *self.events(here, both[0]), *self.with_qp(here, active, ps),
                  f"{here}{self.by_thread(both[0])}connect {active} {self.pick(*PARAMS)}"]
        steps += [f"{there}{self.by_thread(both[1])}request {passive}"] if both[1] == "sync" else \
            self.events(there, both[1])
        steps += self.with_qp(there, child, ps)
        if self.chance(0.2):
            steps += [f"{there}attr {child} {state}" for state in (1, 2, 3)]
        steps.append(there + self.pick(f"reject {child} 5", *[
            f"{self.by_thread(both[1])}accept {child} {self.pick(*PARAMS)}"] * 4))
        if self.chance(0.1):
            steps.append(f"{there}notify {child} est")
        steps += self.events(here, both[0]) + self.events(there, both[1])
        for _ in range(self.pick(1, 2, 3, 4, 5)):
            steps.append(self.established(*self.pick((here, active), (there, child))))
        steps += self.events(here, both[0]) + self.events(there, both[1])
        ends = [(here, active), (there, passive), (there, child)]
        return steps + [f"{end}destroy {id_}" for end, id_ in self.random.sample(ends, 3)]

    def by_thread(self, channel):
        """A call of a synchronous id waits, so mostly the thread makes it."""
        return "t " if channel == "sync" and self.chance(0.9) else ""

    def with_qp(self, end, id_, ps):
        if self.chance(0.1):
            return [f"{end}ece {id_} {self.pick('7', '0')}"]
        how = self.pick("", "", "", " ex")
        steps = [f"{end}srq {id_}{how}"] if self.chance(0.1) else []
        return [*steps, f"{end}qp {id_} {self.kind(ps)}{how}",
                *[f"{end}recv {id_}"] * self.pick(0, 1, 2)]

    def established(self, end, id_):
        return end + self.pick(f"disconnect {id_}", f"attr {id_} 3", f"establish {id_}",
                               f"ports {id_}", f"send {id_}", f"send {id_}", f"poll {id_}")

    def group(self):
        """An id joins multicast groups."""
        id_, channel, family = self.new_id(), self.channel(), self.family()
        steps = [f"create {id_} {channel} {self.pick('udp', 'udp', 'ipoib')}",
                 self.pick(f"bind {id_} self{family} 0", f"addr {id_} - group4 0",
                           f"addr {id_} - peer{family} 0"),
                 *self.events("", channel), *self.with_qp("", id_, "udp")]
        groups = [self.pick(*GROUPS) for _ in range(self.pick(1, 2, 3))]
        for group in groups:
            steps += [f"join {id_} {group} {self.pick('plain', 'full', 'sendonly')}",
                      *self.events("", channel)]
        return steps + [f"leave {id_} {group}" for group in groups] + [f"destroy {id_}"]

    def conflict(self):
        """Ids that want the same port."""
        steps, port, ids = [], self.new_port(), []
        for _ in range(self.pick(2, 3)):
            ids.append(self.new_id())
            family = self.family()
            steps.append(f"create {ids[-1]} {self.channel()} {self.pick('tcp', 'tcp', 'udp')}")
            if self.chance(0.4):
                steps.append(f"option {ids[-1]} {self.pick('reuse 1', 'afonly 1', 'afonly 0')}")
            steps.append(f"bind {ids[-1]} {self.pick('self', 'any', 'lo')}{family} {port}")
            if self.chance(0.6):
                steps.append(f"listen {ids[-1]} 0")
        return steps + [f"destroy {i}" for i in ids]

    def endpoint(self):
        """rdma_getaddrinfo() and rdma_create_ep(), at one end or at both."""
        active, passive, port = self.new_id(), self.new_id(), self.new_port()
        ps, family = self.pick("tcp", "tcp", "udp"), self.family()
        kind = self.pick("ud" if ps == "udp" else "rc", "-")
        here, there = self.pick(("", "b "), ("b ", ""))
        return [f"{there}ep {passive} {self.pick('self', 'any')}{family} {port} {ps} 3 {kind}",
                f"{there}listen {passive} 1",
                f"{here}ep {active} peer{family} {port} {ps} 2 {kind}",
                f"{here}t connect {active} {self.pick('d', 'D', 'null')}",
                f"{there}t request {passive}", f"{there}accept i5 d",
                f"{here}disconnect {active}", f"{there}disconnect i5", f"{there}destroy i5",
                f"{here}{self.pick('destroy', 'destroyep')} {active}",
                f"{there}{self.pick('destroy', 'destroyep')} {passive}"]

    def lookup(self):
        """Addresses that are odd, or do not resolve."""
        id_, channel = self.new_id(), self.pick("c0", "c1")
        host = self.pick(*HOSTS4, *HOSTS6, "ib:peer4", "ib:self4", "bad")
        steps = [f"create {id_} {channel} {self.pick('tcp', 'udp', 'ib', 'ipoib')}"]
        for _ in range(self.pick(1, 2)):
            steps += [f"addr {id_} {self.pick('-', 'self4', 'none4', 'lo4')} {host} "
                      f"{self.new_port()}", f"wait {channel}"]
        return [*steps, f"route {id_}", f"events {channel}", f"destroy {id_}",
                *(f"info {self.pick('self4', 'peer6', 'lo4', 'any6', '-')} "
                  f"{self.pick('p1', '-', '0')} {self.pick('tcp', 'udp', 'ib', 'ipoib', 'none')} "
                  f"{self.pick(0, 1, 2, 3, 4, 7)}" for _ in range(self.pick(1, 3))), "devices"]

    def sockets(self):
        """Two sockets, of the same process or of both ends, and what passes between them."""
        here, there = self.pick(("", ""), ("", "b "), ("b ", ""))
        port, family = self.new_port(), self.family()
        host = "self" if here == there else "peer"
        ends = self.random.sample(((here, "s1"), (there, "s2")), 2)
        steps = [f"{there}s:new s0 {family}", f"{here}s:new s1 {family}"]
        if self.chance(0.3):
            steps.insert(1, there + self.socket_option("s0"))
        steps += [f"{there}s:bind s0 {self.pick('self', 'any')}{family} {port}",
                  f"{there}s:listen s0", f"{here}s:connect s1 {host}{family} {port}",
                  f"{there}s:poll s0 r", f"{there}s:accept s0 s2", f"{here}s:poll s1 w",
                  f"{here}s:connect s1 {host}{family} {port}", f"{here}s:names s1"]
        for _ in range(self.pick(2, 4, 8)):
            (one, a), (two, b) = ends if self.chance(0.7) else ends[::-1]
            steps += self.pick(
                [f"{one}s:{self.pick(*SENDS)} {a} {self.pick(1, 100, 5000)}", f"{two}s:poll {b} r",
                 f"{two}s:{self.pick(*RECEIVES)} {b} {self.pick(1, 50, 70000)} "
                 f"{self.pick('peek', 'all', '-', '-')}"],
                [f"{one}s:recv {a} 10 -"], [f"{one}s:shut {a} {self.pick(0, 1)}"],
                [f"{one}s:iomap {a} {self.pick(0, 4096)}", f"{two}s:iowrite {b} 10"],
                [one + self.socket_option(a)], [one + self.any_socket_call()])
        ends.append((there, "s0"))
        return [*steps, *(f"{end}s:close {s}" for end, s in self.random.sample(ends, 3))]

    def socket_option(self, socket):
        option = self.pick(*SOCKET_OPTIONS)
        value = self.pick("get", "get", "0", "1", "16", "5000")
        if option == "rcvbuf" and value == "0":  # rxe of 6.12 registers no memory of no bytes
            value = "1"
        return f"s:option {socket} {option} {value}"

    def any_socket_call(self):
        socket = self.pick("s0", "s1", "s2")
        return self.pick(f"s:new {socket} 4 {self.pick('-', '-', 'dgram')}",
                         f"s:bind {socket} any4 {self.new_port()}", f"s:listen {socket}",
                         f"s:connect {socket} self4 {self.new_port()}", f"s:accept {socket} s3",
                         f"s:names {socket}", f"s:shut {socket} 2", f"s:send {socket} 10",
                         f"s:recv {socket} 100 -", f"s:close {socket}", f"s:select {socket}",
                         self.socket_option(socket))

    # Single calls.

    def any_call(self):
        id_ = self.some_id()
        host = self.pick(*HOSTS4[:3], *HOSTS6[:3], "lo4", "ib:self4", "bad")
        port = self.pick("0", self.new_port())
        return self.pick("", "", "b ") + self.pick(
            f"create {id_} {self.channel()} {self.pick('tcp', 'udp', 'ib', 'ipoib', 'none')}",
            f"bind {id_} {host} {port}", f"listen {id_} {self.pick(0, 1, 10)}",
            f"addr {id_} - {host} {port}", f"route {id_}", *self.with_qp("", id_, "tcp"),
            f"delqp {id_}", f"connect {id_} {self.pick(*PARAMS)}",
            f"accept {id_} {self.pick(*PARAMS)}", f"reject {id_} {self.pick('5', 'ece', '200')}",
            f"establish {id_}", f"disconnect {id_}", f"disconnect {id_}",
            f"notify {id_} {self.pick('est', 'mig', 'bad')}",
            f"join {id_} {self.pick(*GROUPS)} {self.pick('plain', 'full')}",
            f"leave {id_} {self.pick(*GROUPS)}", f"option {id_} {self.pick(*OPTIONS)}",
            f"migrate {id_} {self.pick('c0', 'c1', 'sync')}", f"attr {id_} {self.pick(1, 2, 3, 6)}",
            f"ports {id_}", f"ece {id_} {self.pick('get', '7')}", f"events {self.pick('c0', 'c1')}",
            f"hold {self.pick('c0', 'c1')}", f"recv {id_}", f"send {id_}", f"poll {id_}",
            f"destroy {id_}", f"destroy {id_}", self.any_socket_call())

    def prefixed(self, line):
        """Return a line, now and then with a prefix."""
        end, call = ("b ", line[2:]) if line.startswith("b ") else ("", line)
        if not self.chance(PREFIXED) or call.split()[0] in WITHOUT_PREFIX or call[1] == " ":
            return line
        return end + self.pick(*PREFIXES) + call

    def lines(self):
        plans = [getattr(self, name)() for name in self.random.choices(
            ("meeting", "group", "conflict", "endpoint", "lookup", "sockets"),
            (10, 2, 2, 2, 1, 3), k=self.pick(1, 2, 2, 3))]
        lines = []
        while any(plans):
            plan = self.random.choice([plan for plan in plans if plan])
            for _ in range(self.pick(1, 2, 4, 8)):
                if plan and not self.chance(DROPPED):
                    lines.append(self.prefixed(plan.pop(0)))
                elif plan:
                    plan.pop(0)
                if self.chance(INSERTED):
                    lines.append(self.prefixed(self.any_call()))
        return [*lines, *(f"{end}events {channel}" for end in ("", "b ") for channel in
                          ("c0", "c1"))]


def script(seed):
    """Return the lines of a seed's script."""
    return Sequence(seed).lines()


def text_of(scripts):
    """Return {name: lines} as the player reads it."""
    return "".join(f"== {name}\n" + "".join(line + "\n" for line in lines)
                   for name, lines in scripts.items())


if __name__ == "__main__":
    sys.stdout.write(text_of({seed: script(seed) for seed in range(
        int(sys.argv[1]), int(sys.argv[1]) + int(sys.argv[2]))}))
