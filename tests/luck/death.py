# SPDX-License-Identifier: BSD-2-Clause
"""Processes that end: with and without the chance to say so, and those that beget others.

cmportd speaks for a process that was killed, see exit.c of tests/parity; here it is one of its own
(PURECM_PORTD=inline).
"""
import signal

from lucklib import check, same
from removal import PEER_PORT, PORT, dial, establish, listen

# Before anybody repeats anything: a kernel does so after 4.3 s.
AT_ONCE_MS = 4000
REFUSALS = "/sys/class/infiniband/rxe0/ports/1/cm_rx_msgs/rej"


class Couple:
    """A purecm agent on b and a stock one on a, each with a listener."""

    def __init__(self, bench):
        bench.modes("stock", "purecm")
        bench.end_cmportd(bench.b)
        self.bench = bench
        self.ours = bench.agent(bench.b, PURECM_PORTD="inline")
        self.stock = bench.agent(bench.a)

    def __enter__(self):
        listen(self.ours, "listener", self.bench.b.addr4, PORT)
        listen(self.stock, "listener", self.bench.a.addr4, PEER_PORT)
        return self

    def __exit__(self, *args):
        for agent in (self.ours, self.stock):
            if agent.process.alive:
                agent.stop()

    def connect(self):
        establish(self.ours, self.stock, "id", "id", self.bench.a, PEER_PORT)

    def be_connected(self):
        establish(self.stock, self.ours, "id", "id", self.bench.b, PORT)


def end(agent, number):
    agent.process.kill(number)
    agent.process.wait(30)


@check("death", long=True)
def stock_peer_that_is_killed_is_noticed_at_once(bench):
    for way in (Couple.connect, Couple.be_connected):
        with Couple(bench) as couple:
            way(couple)
            end(couple.stock, signal.SIGKILL)
            same(couple.ours.event(AT_ONCE_MS), "DISCONNECTED id 0")
            couple.ours.all("disconnect id", "destroy id")


@check("death", long=True)
def stock_peer_that_is_killed_in_the_handshake_is_noticed(bench):
    with Couple(bench) as couple:
        dial(couple.ours, "id", bench.a, PEER_PORT)
        same(couple.stock.event(60000, "id"), "CONNECT_REQUEST id 0")
        end(couple.stock, signal.SIGKILL)
        same(couple.ours.event(AT_ONCE_MS), "REJECTED id 28")
        couple.ours.all("destroy id")


@check("death", long=True)
def exit_ends_connections_at_a_stock_peer_at_once(bench):
    for way in (Couple.connect, Couple.be_connected):
        with Couple(bench) as couple:
            way(couple)
            same(couple.ours.do("exit"), "ok")
            same(couple.stock.event(AT_ONCE_MS), "DISCONNECTED id 0")


@check("death", long=True)
def exit_in_the_handshake_tells_a_stock_peer(bench):
    with Couple(bench) as couple:
        dial(couple.stock, "id", bench.b, PORT)
        same(couple.ours.event(60000, "id"), "CONNECT_REQUEST id 0")
        same(couple.ours.do("exit"), "ok")
        same(couple.stock.event(AT_ONCE_MS), "REJECTED id 28")
    with Couple(bench) as couple:
        dial(couple.ours, "id", bench.a, PEER_PORT)
        same(couple.stock.event(60000, "id"), "CONNECT_REQUEST id 0")
        before = bench.a.run(f"cat {REFUSALS}", check=True).stdout.strip()
        same(couple.ours.do("exit"), "ok")
        bench.a.wait_for(f"test $(cat {REFUSALS}) -gt {before} && sleep 0.3", timeout=30)
        if couple.stock.do("accept id") == "ok":
            raise AssertionError("the peer could accept a request that was withdrawn")


@check("death")
def kill_ends_connections_at_a_stock_peer_at_once(bench):
    for way in (Couple.connect, Couple.be_connected):
        with Couple(bench) as couple:
            way(couple)
            end(couple.ours, signal.SIGKILL)
            same(couple.stock.event(AT_ONCE_MS), "DISCONNECTED id 0")


def play(name, inline):
    def plays(bench):
        bench.modes("stock", "purecm")
        if inline:
            bench.end_cmportd(bench.b)
        result = bench.b.run([bench.program("family"), name, bench.b.addr4],
                             env=bench.env(PURECM_PORTD="inline" if inline else ""), timeout=120)
        bench.b.wait_for("! pgrep -x family", timeout=60)
        same((result.status, result.output), (0, ""))
    return plays


# What it is, the play of family.c, and whether it is played without cmportd.
for what, name, is_inline in (
        ("child_of_a_fork_before_first_use_can_connect", "fork-before-first-use", False),
        ("child_of_a_fork_after_use_is_served_by_cmportd", "fork-after-use-served", False),
        ("child_of_a_fork_after_use_is_refused_and_hurts_nobody", "fork-after-use", True),
        ("child_has_the_port_once_its_parent_is_gone", "fork-and-inherit", True),
        ("child_that_exits_leaves_its_parents_ids_alone", "fork-with-open-ids", False),
        ("exec_inherits_no_descriptor", "exec", False),
        ("library_that_is_closed_does_not_crash", "dlclose", False)):
    function = play(name, is_inline)
    function.__name__ = what
    check("death")(function)
