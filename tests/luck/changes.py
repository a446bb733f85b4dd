# SPDX-License-Identifier: BSD-2-Clause
"""Addresses that come and go, and a link that goes down, under living ids."""
import time
import types

from lucklib import Skip, check, same
from removal import PEER_PORT, PORT, begin, dial, establish, listen, reach

MORE = "10.77.0.77"
QUIET_MS = 1500
PATIENCE_MS = 60000
TRIES = 4
GIVES_UP = "UNREACHABLE waiting"  # which may also take its time
REPEATED_S = 8  # by then stock and we have repeated a REQ that has no answer


class Address:
    """Another address of a host, for as long as the block lasts."""

    def __init__(self, guest):
        self.guest = guest
        self.addr4 = MORE

    def __enter__(self):
        self.guest.run(f"ip address add {MORE}/24 dev eth0", check=True)
        self.guest.wait_for("grep -q 0a4d:004d /sys/class/infiniband/rxe0/ports/1/gids/*", 30)
        return self

    def __exit__(self, *args):
        self.guest.run(f"ip address del {MORE}/24 dev eth0")


def living_ids(agent, here, peer, there):
    """Return the names of ids in all states that last."""
    listen(agent, "specific", here.addr4, PORT)
    listen(peer, "listener", there.addr4, PEER_PORT)
    agent.all("id bound", f"bind bound {here.addr4} 0")
    establish(agent, peer, "active", "peer-active", there, PEER_PORT)
    establish(peer, agent, "peer-passive", "passive", here, PORT)
    begin(agent, "resolved", there, 1)
    reach(agent, "routed", there, 1)
    agent.all("datagram group", f"bind group {here.addr4} 0", "qp group", "join group 239.70.0.9")
    same(agent.event(), "MULTICAST_JOIN group 0")
    dial(peer, "peer-asked", here, PORT)
    agent.event(PATIENCE_MS, "asked")
    dial(agent, "waiting", there, PEER_PORT)  # last: it is repeated after four seconds
    peer.event(PATIENCE_MS, "peer-waiting")


def all_events(agent):
    """Return what an agent sees until it sees nothing more, in any order."""
    seen = []
    while (event := agent.event(QUIET_MS)) != "none":
        seen.append(event)
    return sorted(seen)


def after(bench, here, there, change, restore):
    """Return what ids of here see of a change and of its end, and whether new ones connect."""
    with bench.agent(here) as agent, bench.agent(there) as peer:
        living_ids(agent, here, peer, there)
        change(here, there)
        seen = [all_events(agent)]
        restore(here, there)
        seen += [all_events(agent)]
        establish(agent, peer, "anew", "peer-anew", there, PEER_PORT)
        agent.stop()
        return seen


def after_with_stock(bench, change, restore):
    """after() of a. Where the kernel repeats a MAD while it cannot leave, rxe loses QP1, and from
    then on nothing connects (docs/findings.md): that is a matter of time, and is played again."""
    for _ in range(TRIES):
        try:
            return after(bench, bench.a, bench.b, change, restore)
        except AssertionError as error:
            why = error
            bench.renew(bench.a)
    raise Skip(f"stock failed {TRIES} times: {why}")


def both(bench, change, restore):
    bench.modes("stock", "purecm")
    stock = after_with_stock(bench, change, restore)
    bench.renew(bench.a)  # it may have lost QP1 since it connected last
    same(after(bench, bench.b, bench.a, change, restore), stock)


@check("changes", long=True)
def ids_see_the_same_of_a_link_that_goes_down_as_with_stock(bench):
    both(bench, lambda here, there: here.link_down(), lambda here, there: here.link_up())


def take_address(here, _):
    here.run(f"ip address del {here.addr4}/24 dev eth0", check=True)


def give_address(here, _):
    here.run(f"ip address add {here.addr4}/24 dev eth0", check=True)
    here.wait_for("grep -q ffff:0a4d /sys/class/infiniband/rxe0/ports/1/gids/*", 30)


@check("changes", long=True)
def ids_see_the_same_of_an_address_that_goes_as_with_stock(bench):
    both(bench, take_address, give_address)


@check("changes", long=True)
def ids_see_the_same_of_a_peer_with_another_link_address_as_with_stock(bench):
    def neighbour(here, there, hw):
        here.run(f"ip neighbour replace {there.addr4} lladdr {hw} dev eth0 nud permanent",
                 check=True)

    def change(here, there):
        neighbour(here, there, "02:00:00:00:00:55")

    def restore(here, there):
        hw = there.run("cat /sys/class/net/eth0/address", check=True).stdout.strip()
        neighbour(here, there, hw)
    both(bench, change, restore)


class Bond:
    """A bond whose link address is that of its active slave, of two macvlans, and on it an RDMA
    device; the peer has an address in its subnet. Both are objects with an addr4."""

    addr4, slaves = "10.83.0.1", ("mac1", "mac2")

    def __init__(self, guest, peer):
        self.guest = guest
        self.there = peer
        self.peer = types.SimpleNamespace(addr4="10.83.0.2")

    def __enter__(self):
        self.there.run(f"ip address add {self.peer.addr4}/24 dev eth0", check=True)
        self.guest.run(
            "set -e; modprobe macvlan; modprobe bonding max_bonds=0; "
            "sysctl -q net.ipv4.conf.all.arp_ignore=1; "
            "ip link add bond0 type bond mode active-backup fail_over_mac active miimon 50; "
            + "".join(f"ip link add link eth0 name {slave} type macvlan mode bridge; "
                      f"ip link set {slave} master bond0; " for slave in self.slaves)
            + f"ip link set bond0 up; ip address add {self.addr4}/24 dev bond0; "
            "rdma link add rxe1 type rxe netdev bond0", check=True)
        self.guest.wait_for("grep -q 0a53:0001 /sys/class/infiniband/rxe1/ports/1/gids/*", 30)
        return self

    def fail_over(self, slave):
        self.guest.run(f"ip link set bond0 type bond active_slave {slave}", check=True)

    def __exit__(self, *args):
        self.guest.run("rdma link del rxe1; ip link del bond0; ip link del mac1; ip link del mac2")
        self.there.run(f"ip address del {self.peer.addr4}/24 dev eth0")


def after_failovers(bench, here, there):
    """Return what ids of here see of each failover of the bond that they use."""
    with Bond(here, there) as bond, bench.agent(here) as agent, bench.agent(there) as peer:
        living_ids(agent, bond, peer, bond.peer)
        seen = []
        for slave in ("mac2", "mac1", "mac2"):
            bond.fail_over(slave)
            seen.append([event for event in all_events(agent) if not event.startswith(GIVES_UP)])
        agent.stop()
        return seen


@check("changes", long=True)
def ids_see_the_same_of_a_bond_that_fails_over_as_with_stock(bench):
    bench.modes("stock", "purecm")
    stock = after_failovers(bench, bench.a, bench.b)
    same(after_failovers(bench, bench.b, bench.a), stock)


@check("changes", long=True)
def messages_that_are_repeated_without_their_address_leave_the_port_alive(bench):
    """Over stock they kill it (docs/findings.md): nothing connects anew."""
    def change(here, there):
        take_address(here, there)
        time.sleep(REPEATED_S)
    bench.modes("stock", "purecm")
    after(bench, bench.b, bench.a, change, give_address)


@check("changes", long=True)
def listener_on_all_addresses_serves_one_that_comes_and_none_that_has_gone(bench):
    bench.modes("stock", "purecm")
    with bench.agent(bench.b) as agent, bench.agent(bench.a) as peer:
        listen(agent, "wild", "0.0.0.0", PORT)
        peer.all("channel")
        with Address(bench.b) as more:
            establish(peer, agent, "to-more", "from-peer", more, PORT)
            agent.all("id late", f"bind late {MORE} 0")
        if agent.do("id gone") != "ok" or agent.do(f"bind gone {MORE} 0") == "ok":
            raise AssertionError("an address that has gone can be bound to")
        agent.stop()
