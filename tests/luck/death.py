# SPDX-License-Identifier: BSD-2-Clause
"""Processes that end: with and without the chance to say so, and those that beget others.

A process of ours that is killed cannot say anything, and until there is a daemon that outlives it,
nobody speaks for it: its peer keeps the connection until it wants to end it itself. Then the next
process of ours on that host answers; without one the peer's DREQ runs out of retries, after 98 s
for a kernel and 50 s for us.
"""
import signal

from lucklib import check, same
from removal import PEER_PORT, PORT, dial, establish, listen


class Couple:
    """A purecm puppet on b and a stock one on a, each with a listener."""

    def __init__(self, bench):
        bench.modes("stock", "purecm")
        self.bench = bench
        self.ours, self.stock = bench.puppet(bench.b), bench.puppet(bench.a)

    def __enter__(self):
        listen(self.ours, "listener", self.bench.b.addr4, PORT)
        listen(self.stock, "listener", self.bench.a.addr4, PEER_PORT)
        return self

    def __exit__(self, *args):
        for puppet in (self.ours, self.stock):
            if puppet.process.alive:
                puppet.stop()

    def connect(self):
        establish(self.ours, self.stock, "id", "id", self.bench.a, PEER_PORT)

    def be_connected(self):
        establish(self.stock, self.ours, "id", "id", self.bench.b, PORT)


def end(puppet, number):
    puppet.process.kill(number)
    puppet.process.wait(10)


@check("death")
def stock_peer_that_is_killed_is_noticed_within_a_second(bench):
    for way in (Couple.connect, Couple.be_connected):
        with Couple(bench) as couple:
            way(couple)
            end(couple.stock, signal.SIGKILL)
            same(couple.ours.event(1000), "DISCONNECTED id 0")
            couple.ours.all("disconnect id", "destroy id")


@check("death")
def stock_peer_that_is_killed_in_the_handshake_is_noticed(bench):
    with Couple(bench) as couple:
        dial(couple.ours, "id", bench.a, PEER_PORT)
        same(couple.stock.event(10000, "id"), "CONNECT_REQUEST id 0")
        end(couple.stock, signal.SIGKILL)
        same(couple.ours.event(1000), "REJECTED id 28")
        couple.ours.all("destroy id")


@check("death")
def exit_ends_connections_at_a_stock_peer_within_a_second(bench):
    for way in (Couple.connect, Couple.be_connected):
        with Couple(bench) as couple:
            way(couple)
            same(couple.ours.do("exit"), "ok")
            same(couple.stock.event(1000), "DISCONNECTED id 0")


@check("death")
def exit_in_the_handshake_tells_a_stock_peer(bench):
    with Couple(bench) as couple:
        dial(couple.stock, "id", bench.b, PORT)
        same(couple.ours.event(10000, "id"), "CONNECT_REQUEST id 0")
        same(couple.ours.do("exit"), "ok")
        same(couple.stock.event(1000), "REJECTED id 28")
    with Couple(bench) as couple:
        dial(couple.ours, "id", bench.a, PEER_PORT)
        same(couple.stock.event(10000, "id"), "CONNECT_REQUEST id 0")
        same(couple.ours.do("exit"), "ok")
        bench.a.run("sleep 0.3")
        if couple.stock.do("accept id") == "ok":
            raise AssertionError("the peer could accept a request that was withdrawn")


@check("death")
def next_process_answers_for_one_that_was_killed(bench):
    with Couple(bench) as couple:
        couple.connect()
        end(couple.ours, signal.SIGKILL)
        same(couple.stock.event(1000), "none")
        with bench.puppet(bench.b) as heir:
            listen(heir, "listener", bench.b.addr4, PORT)
            couple.stock.all("disconnect id")
            same(couple.stock.event(1000), "DISCONNECTED id 0")
            establish(couple.stock, heir, "anew", "anew", bench.b, PORT)


@check("death", long=True)
def killed_peer_of_ours_is_given_up_after_all_retries(bench):
    bench.modes("purecm", "purecm")
    with bench.puppet(bench.a) as survivor, bench.puppet(bench.b) as victim:
        listen(victim, "listener", bench.b.addr4, PORT)
        survivor.all("channel")
        establish(survivor, victim, "id", "id", bench.b, PORT)
        end(victim, signal.SIGKILL)
        same(survivor.event(1000), "none")
        survivor.all("disconnect id")
        same(survivor.event(60000), "DISCONNECTED id -110")


def play(name):
    def plays(bench):
        bench.modes("stock", "purecm")
        result = bench.b.run([bench.program("family"), name, bench.b.addr4], env=bench.env(),
                             timeout=60)
        bench.b.wait_for("! pgrep -x family", timeout=20)
        same((result.status, result.output), (0, ""))
    return plays


for what, name in (("child_of_a_fork_before_first_use_can_connect", "fork-before-first-use"),
                   ("child_of_a_fork_after_use_is_refused_and_hurts_nobody", "fork-after-use"),
                   ("child_has_the_port_once_its_parent_is_gone", "fork-and-inherit"),
                   ("child_that_exits_leaves_its_parents_ids_alone", "fork-with-open-ids"),
                   ("exec_inherits_no_descriptor", "exec"),
                   ("library_that_is_closed_does_not_crash", "dlclose")):
    function = play(name)
    function.__name__ = what
    check("death")(function)
