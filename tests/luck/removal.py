# SPDX-License-Identifier: BSD-2-Clause
"""A device that goes away under ids in every state, and one that comes instead.

rxe waits at its removal until the last process has closed its verbs context, which stock never does
and purecm not before the last id of the device is destroyed: so the removal runs in the background,
and what comes back has another name.
"""
from lucklib import check, same

NOBODY = "10.77.0.99"
PORT, OTHER_PORT, PEER_PORT = 7101, 7102, 7103
AFTER = ("resolve {0} 10.77.0.99 1 100", "route {0}", "listen {0}", "connect {0}", "accept {0}",
         "disconnect {0}", "reject {0}")


def begin(agent, name, peer, port):
    agent.all(f"id {name}", f"resolve {name} {peer.addr4} {port} 2000")
    same(agent.event(), f"ADDR_RESOLVED {name} 0")


def reach(agent, name, peer, port):
    begin(agent, name, peer, port)
    agent.all(f"route {name}")
    same(agent.event(), f"ROUTE_RESOLVED {name} 0")


def dial(agent, name, peer, port):
    reach(agent, name, peer, port)
    agent.all(f"qp {name}", f"connect {name}")


def establish(client, server, client_name, server_name, peer, port):
    dial(client, client_name, peer, port)
    same(server.event(60000, server_name), f"CONNECT_REQUEST {server_name} 0")
    server.all(f"qp {server_name}", f"accept {server_name}")
    same(client.event(), f"ESTABLISHED {client_name} 0")
    same(server.event(), f"ESTABLISHED {server_name} 0")


def disconnect(client, server, client_name, server_name):
    client.all(f"disconnect {client_name}")
    same(server.event(), f"DISCONNECTED {server_name} 0")
    server.all(f"disconnect {server_name}")
    same(client.event(), f"DISCONNECTED {client_name} 0")


def listen(agent, name, address, port):
    agent.all("channel", f"id {name}", f"bind {name} {address} {port}", f"listen {name}")


def ids_in_every_state(agent, here, peer, there):
    """Return the names of the ids, all on here's device but the wildcard listener."""
    listen(agent, "specific", here.addr4, PORT)
    agent.all("id wild", f"bind wild 0.0.0.0 {OTHER_PORT}", "listen wild")
    agent.all("id bound", f"bind bound {here.addr4} 0")
    listen(peer, "listener", there.addr4, PEER_PORT)
    establish(agent, peer, "ended", "peer-ended", there, PEER_PORT)
    disconnect(agent, peer, "ended", "peer-ended")
    establish(agent, peer, "active", "peer-active", there, PEER_PORT)
    establish(peer, agent, "peer-passive", "passive", here, PORT)
    dial(agent, "refused", there, PEER_PORT)
    peer.event(60000, "peer-refused")
    peer.all("reject peer-refused")
    same(agent.event(), "REJECTED refused 28")
    dial(agent, "waiting", there, PEER_PORT)
    peer.event(60000, "peer-waiting")
    dial(peer, "peer-asked", here, PORT)
    agent.event(60000, "asked")
    begin(agent, "resolved", there, 1)
    reach(agent, "routed", there, 1)
    dial(peer, "peer-queued", here, PORT)
    agent.all("pending 5000", "id resolving", f"resolve resolving {NOBODY} 1 2500")
    return ("specific", "wild", "bound", "ended", "active", "passive", "refused", "waiting",
            "asked", "resolved", "routed", "resolving", "queued")


def start_removal(here, agent):
    """Begin to remove rxe0, and wait until the library knows: until then its events are valid."""
    removal = here.start("rdma link del rxe0")
    here.wait_for("! test -e /dev/infiniband/umad0", timeout=30)
    # The kernel's connection manager was told before ib_umad was; this library says so.
    if not here.run("test -d /sys/module/rdma_ucm").ok:
        agent.process.wait_for_output("rxe0 is gone", timeout=30)
    here.run("sleep 0.3")
    return removal


def device_goes(bench, here, there, variant=None):
    """Return what the ids of an agent on here see of a removal, as text lines."""
    with bench.agent(here, variant=variant, PURECM_LOG="warn") as agent, \
            bench.agent(there) as peer:
        names = ids_in_every_state(agent, here, peer, there)
        removal = start_removal(here, agent)
        seen = []
        while (event := agent.event(3500, "queued")) != "none":
            seen.append(event)
        # Stock looks for the neighbour first, and only then for a device.
        report = [event.replace("ing -110", "ing -19") for event in seen]
        for name in names:
            if f"DEVICE_REMOVAL {name} 0" in seen:
                # Stock says ENXIO of an id whose device is gone, whatever is asked.
                report += [call for call in AFTER if agent.do(call.format(name)) == "ok"]
        report += [f"destroy {name}: {agent.do('destroy ' + name)}" for name in names
                   if name != "wild" and (name != "queued" or any("queued" in e for e in seen))]
        same(agent.do("exit"), "ok")
        same(agent.process.wait(30).status, 0)
        removal.wait(30)
        return sorted(report)


@check("removal", long=True)
def ids_in_every_state_see_the_same_as_with_stock(bench):
    bench.modes("stock", "purecm")
    stock = device_goes(bench, bench.a, bench.b)
    bench.modes("stock", "purecm")
    same(device_goes(bench, bench.b, bench.a), stock)


@check("removal", long=True)
def removal_leaves_nothing_that_is_gone_says_address_sanitizer(bench):
    bench.modes("stock", "purecm")
    device_goes(bench, bench.b, bench.a, "asan")


@check("removal")
def id_that_is_only_bound_hears_of_the_removal(bench):
    bench.modes("stock", "purecm")
    with bench.agent(bench.b) as agent:
        agent.all("channel", "id bound", f"bind bound {bench.b.addr4} 0")
        removal = bench.b.start("rdma link del rxe0")
        same(agent.event(), "DEVICE_REMOVAL bound 0")
        agent.all("destroy bound")
        agent.stop()
        removal.wait(30)


class Spare:
    """Another interface and, on it, an RDMA device: rxe does not come back where it is missed."""

    addr4, peer_addr4 = "10.78.0.2", "10.78.0.1"

    def __init__(self, guest, peer):
        self.guest = guest
        self.peer = peer
        peer.run(f"ip address add {self.peer_addr4}/24 dev eth0", check=True)
        guest.run("modprobe macvlan && ip link add link eth0 name mac0 type macvlan mode bridge && "
                  f"ip address add {self.addr4}/24 dev mac0 && ip link set mac0 up && "
                  "sysctl -q net.ipv4.conf.all.arp_ignore=1", check=True)

    def plug_in(self):
        self.guest.run("rdma link add rxe1 type rxe netdev mac0", check=True)
        self.guest.wait_for("grep -q 0a4e:0002 /sys/class/infiniband/rxe1/ports/1/gids/*", 30)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.guest.run("rdma link del rxe1; ip link del mac0")
        self.peer.run(f"ip address del {self.peer_addr4}/24 dev eth0")


@check("removal")
def device_that_comes_later_serves_old_listeners_and_new_ids(bench):
    bench.modes("stock", "purecm")
    here, there = bench.b, bench.a
    with Spare(here, there) as spare, bench.agent(here) as agent, bench.agent(there) as peer:
        listen(agent, "wild", "0.0.0.0", PORT)
        peer.all("channel")
        removal = here.start("rdma link del rxe0")
        here.wait_for("! test -e /dev/infiniband/umad0", timeout=30)
        same(agent.event(500), "none")
        spare.plug_in()
        establish(peer, agent, "to-wild", "from-peer", spare, PORT)
        agent.stop()
        removal.wait(30)


@check("removal", long=True)
def device_that_comes_later_is_found_without_a_listener(bench):
    bench.modes("stock", "purecm")
    with Spare(bench.b, bench.a) as spare, bench.agent(bench.b) as agent:
        agent.all("channel", "id early", f"bind early {bench.b.addr4} 0")
        spare.plug_in()
        agent.all("id late", f"bind late {spare.addr4} {PORT}", "listen late", "id dialler",
                   f"resolve dialler {spare.peer_addr4} 1 2000")
        same(agent.event(), "ADDR_RESOLVED dialler 0")
        agent.stop()
