#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Sequences of calls from seeds, as scripts for the player.

A sequence is made of a few plans, each of which leads an id through its life as programs do. Plans
are interleaved, some calls are left out, others are put in between: so most calls are made in
states in which they do something, and some in any other. The same seed makes the same script.

    generate.py FIRST COUNT      prints scripts
"""
import random
import sys

HOSTS4 = ("self4", "peer4", "any4", "lo4", "none4")
HOSTS6 = ("self6", "peer6", "any6", "lo6", "none6")
PARAMS = ("d", "d", "null", "D", "X", "z", "f", "m", "r", "")
MODES = ("accept", "accept", "accept", "reject", "hold", "close")
OPTIONS = ("tos 32", "reuse 1", "reuse 0", "afonly 1", "afonly 0", "ack 16", "short 1", "path 0",
           "name 1", "level 1")
GROUPS = ("group4", "group4", "other4", "group6", "self4", "any4")
DROPPED, INSERTED = 0.06, 0.15


class Sequence:
    """Makes one script."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.n_ids = 0
        self.next_port = 0
        self.n_peer = 0

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

    @staticmethod
    def events(channel):
        """What takes the events of an id; those of a synchronous one are its own."""
        return [] if channel == "sync" else [f"events {channel}"]

    def family(self):
        return self.pick("4", "4", "4", "6")

    # Plans.

    def active(self):
        """An id connects to the peer, or to a listener of its own process."""
        id_, channel, port = self.new_id(), self.channel(), self.new_port()
        ps, family, host = self.pick("tcp", "tcp", "tcp", "udp", "ib"), self.family(), "peer"
        steps = []
        if self.chance(0.9):
            steps.append(f"peer listen {port} {ps} {self.pick(*MODES)}")
        steps.append(f"create {id_} {channel} {ps}")
        if self.chance(0.2):
            steps.append(f"bind {id_} {self.pick('self', 'any')}{family} "
                         f"{self.pick('0', self.new_port())}")
        if self.chance(0.2):
            steps.append(f"option {id_} {self.pick('tos 32', 'ack 16', 'reuse 1')}")
        steps.append(f"addr {id_} {self.pick('-', '-', 'self' + family)} {host}{family} {port}")
        steps += self.events(channel) + [f"route {id_}"] + self.events(channel)
        steps += self.with_qp(id_, ps)
        steps += [f"connect {id_} {self.pick(*PARAMS)}"] + self.events(channel)
        return steps + self.established(id_, channel)

    def with_qp(self, id_, ps):
        kind = "ud" if ps in ("udp", "ipoib") else "rc"
        if self.chance(0.1):
            return [f"ece {id_} {self.pick('7', '0')}"]
        if self.chance(0.1):
            return [f"srq {id_}", f"qp {id_} {kind}"]
        return [f"qp {id_} {self.pick(kind, kind, kind, kind, 'uc')}",
                *[f"recv {id_}"] * self.pick(0, 1, 2)]

    def established(self, id_, channel):
        steps = [self.pick(f"disconnect {id_}", f"peer disconnect r{self.n_peer}",
                           f"attr {id_} 3", f"establish {id_}", f"ports {id_}",
                           f"send {id_}", f"peer send r{self.n_peer}", f"poll {id_}")
                 for _ in range(self.pick(1, 2, 3, 4))]
        self.n_peer += 1
        return [*steps, *self.events(channel), f"destroy {id_}", *self.events(channel)]

    def passive(self):
        """An id listens, and the peer connects."""
        id_, channel, port = self.new_id(), self.pick("c0", "c0", "c1", "sync"), self.new_port()
        ps, family, child = self.pick("tcp", "tcp", "tcp", "udp", "ib"), self.family(), "i5"
        steps = [f"create {id_} {channel} {ps}",
                 f"bind {id_} {self.pick('self', 'any')}{family} {port}",
                 f"listen {id_} {self.pick(0, 1, 10)}", f"peer dial self{family} {port} {ps}"]
        steps += [f"request {id_}"] if channel == "sync" else self.events(channel)
        steps += self.with_qp(child, ps)
        if self.chance(0.2):
            steps += [f"attr {child} {state}" for state in (1, 2, 3)]
        steps.append(self.pick(f"reject {child} 5", *[f"accept {child} {self.pick(*PARAMS)}"] * 4))
        if self.chance(0.2):
            steps.append(f"notify {child} est")
        steps += self.events(channel) + self.established(child, channel)
        return steps + [f"destroy {id_}"]

    def own(self):
        """Two ids of the process connect with each other."""
        passive, active, port = self.new_id(), self.new_id(), self.new_port()
        a, b = self.pick("c0", "c1"), self.pick("c0", "c1")
        ps, family, child = self.pick("tcp", "tcp", "udp"), self.family(), "i5"
        steps = [f"create {passive} {a} {ps}", f"bind {passive} self{family} {port}",
                 f"listen {passive} 5", f"create {active} {b} {ps}",
                 f"addr {active} - self{family} {port}", f"events {b}", f"route {active}",
                 f"events {b}", *self.with_qp(active, ps), f"connect {active} {self.pick(*PARAMS)}",
                 f"events {a}", *self.with_qp(child, ps),
                 self.pick(f"reject {child} 5", *[f"accept {child} {self.pick(*PARAMS)}"] * 4),
                 f"events {b}", f"events {a}", f"disconnect {self.pick(active, child)}",
                 f"events {a}", f"events {b}"]
        return steps + [f"destroy {i}" for i in self.random.sample([passive, active, child], 3)]

    def group(self):
        """An id joins multicast groups."""
        id_, channel, family = self.new_id(), self.channel(), self.family()
        steps = [f"create {id_} {channel} {self.pick('udp', 'udp', 'ipoib')}",
                 self.pick(f"bind {id_} self{family} 0", f"addr {id_} - group4 0",
                           f"addr {id_} - peer{family} 0"),
                 *self.events(channel), *self.with_qp(id_, "udp")]
        groups = [self.pick(*GROUPS) for _ in range(self.pick(1, 2, 3))]
        for group in groups:
            steps += [f"join {id_} {group} {self.pick('plain', 'full', 'sendonly')}",
                      *self.events(channel)]
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
        """rdma_getaddrinfo() and rdma_create_ep()."""
        id_, port, family = self.new_id(), self.new_port(), self.family()
        ps = self.pick("tcp", "tcp", "udp")
        kind = self.pick("ud" if ps == "udp" else "rc", "-")
        if self.chance(0.5):
            return [f"peer listen {port} {ps} {self.pick('accept', 'close', 'reject')}",
                    f"ep {id_} peer{family} {port} {ps} 2 {kind}",
                    f"connect {id_} {self.pick('d', 'D', 'null')}", f"disconnect {id_}",
                    f"destroy {id_}"]
        return [f"ep {id_} {self.pick('self', 'any')}{family} {port} {ps} 3 {kind}",
                f"listen {id_} 1", f"peer dial self{family} {port} {ps}", f"request {id_}",
                "accept i5 d", "peer disconnect r0", "disconnect i5", "destroy i5",
                f"destroy {id_}"]

    def lookup(self):
        """Addresses that are odd, or do not resolve."""
        id_, channel = self.new_id(), self.pick("c0", "c1")
        host = self.pick(*HOSTS4, *HOSTS6, "ib:peer4", "ib:self4", "bad")
        steps = [f"create {id_} {channel} {self.pick('tcp', 'udp', 'ib', 'ipoib')}"]
        for _ in range(self.pick(1, 2)):
            steps += [f"addr {id_} {self.pick('-', 'self4', 'none4', 'lo4')} {host} "
                      f"{self.new_port()}", f"wait {channel}"]
        return [*steps, f"route {id_}", f"events {channel}", f"destroy {id_}",
                f"info {self.pick('self4', 'peer6', '-')} {self.pick('p1', '-')} "
                f"{self.pick('tcp', 'udp')} {self.pick(0, 1, 2, 3, 7)}"]

    def sockets(self):
        """Two sockets of the process, and what passes between them."""
        port, family = self.new_port(), self.family()
        ends = self.random.sample(("s1", "s2"), 2)
        steps = [f"s:new s0 {family}", f"s:new s1 {family}"]
        if self.chance(0.3):
            steps.insert(1, self.socket_option("s0"))
        steps += [f"s:bind s0 {self.pick('self', 'any')}{family} {port}", "s:listen s0",
                  f"s:connect s1 self{family} {port}", "s:poll s0 r", "s:accept s0 s2",
                  "s:poll s1 w", f"s:connect s1 self{family} {port}", "s:names s1"]
        for _ in range(self.pick(2, 4, 8)):
            steps += self.pick([f"s:send {ends[0]} {self.pick(1, 100, 5000)}",
                                f"s:poll {ends[1]} r",
                                f"s:recv {ends[1]} {self.pick(1, 50, 70000)} "
                                f"{self.pick('peek', '-', '-')}"],
                               [f"s:recv {ends[0]} 10 -"], [f"s:shut {ends[0]} {self.pick(0, 1)}"],
                               [self.socket_option(ends[0])], [self.any_socket_call()])
        return [*steps, *(f"s:close {end}" for end in self.random.sample(("s0", "s1", "s2"), 3))]

    def socket_option(self, socket):
        name = self.pick("reuse", "rcvbuf", "sndbuf", "keepalive", "error", "linger", "oob",
                         "nodelay", "keepidle", "maxseg", "v6only", "sqsize", "rqsize", "inline",
                         "iomap", "none")
        return f"s:option {socket} {name} {self.pick('get', 'get', '0', '1', '16', '5000')}"

    def any_socket_call(self):
        socket = self.pick("s0", "s1", "s2")
        return self.pick(f"s:new {socket} 4", f"s:bind {socket} any4 {self.new_port()}",
                         f"s:listen {socket}", f"s:connect {socket} self4 {self.new_port()}",
                         f"s:accept {socket} s3", f"s:names {socket}", f"s:shut {socket} 2",
                         f"s:send {socket} 10", f"s:recv {socket} 100 -", f"s:close {socket}",
                         self.socket_option(socket))

    # Single calls.

    def any_call(self):
        id_ = self.some_id()
        host = self.pick(*HOSTS4[:3], *HOSTS6[:3], "lo4", "ib:self4", "bad")
        port = self.pick("0", self.new_port())
        return self.pick(
            f"create {id_} {self.channel()} {self.pick('tcp', 'udp', 'ib', 'ipoib', 'none')}",
            f"bind {id_} {host} {port}", f"listen {id_} {self.pick(0, 1, 10)}",
            f"addr {id_} - {host} {port}", f"route {id_}", *self.with_qp(id_, "tcp"),
            f"delqp {id_}", f"connect {id_} {self.pick(*PARAMS)}",
            f"accept {id_} {self.pick(*PARAMS)}", f"reject {id_} {self.pick('5', 'ece', '200')}",
            f"establish {id_}", f"disconnect {id_}", f"disconnect {id_}",
            f"notify {id_} {self.pick('est', 'mig', 'bad')}",
            f"join {id_} {self.pick(*GROUPS)} {self.pick('plain', 'full')}",
            f"leave {id_} {self.pick(*GROUPS)}", f"option {id_} {self.pick(*OPTIONS)}",
            f"migrate {id_} {self.pick('c0', 'c1', 'sync')}", f"attr {id_} {self.pick(1, 2, 3, 6)}",
            f"ports {id_}", f"ece {id_} {self.pick('get', '7')}", f"events {self.pick('c0', 'c1')}",
            f"hold {self.pick('c0', 'c1')}", f"recv {id_}", f"send {id_}", f"poll {id_}",
            f"destroy {id_}", f"peer {self.pick('accept', 'reject', 'disconnect', 'destroy')} "
            f"r{self.pick(0, 0, 1, 2)}")

    def lines(self):
        plans = [getattr(self, name)() for name in self.random.choices(
            ("active", "passive", "own", "group", "conflict", "endpoint", "lookup", "sockets"),
            (5, 5, 3, 2, 2, 2, 1, 2), k=self.pick(1, 2, 2, 3))]
        lines = []
        while any(plans):
            plan = self.random.choice([plan for plan in plans if plan])
            for _ in range(self.pick(1, 2, 4, 8)):
                if plan and not self.chance(DROPPED):
                    lines.append(plan.pop(0))
                elif plan:
                    plan.pop(0)
                if self.chance(INSERTED):
                    lines.append(self.any_call())
        return [*lines, "events c0", "events c1"]


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
