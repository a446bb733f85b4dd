#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""One end of a conversation through Debian's python3-pyverbs.

programs.py starts both ends (program_cases.py), with the library that LD_LIBRARY_PATH names. Each
says "end 0" when all was as it should be, and raises otherwise. Debian's python, as the module is
built for no other.
"""
import argparse
import contextlib
import sys

from pyverbs import cm_enums as cm
from pyverbs import enums as ib
from pyverbs.addr import AH, AHAttr, GlobalRoute
from pyverbs.cmid import (CMID, AddrInfo, CMEvent, CMEventChannel, ConnParam, JoinMCAttrEx, UDParam)
from pyverbs.cq import CQ
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr

PORT = "7997"
SIZE = 64
GRH_SIZE = 40
TIMEOUT_MS = 5000
ACK_TIMEOUT = 21
BACKLOG = 4
REASON = b"not today"
GROUP = "239.77.0.2"
CM_MULTICAST_QPN = 0xFFFFFF


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("end", choices=("server", "client"))
    parser.add_argument("scenario", choices=sorted(SCENARIOS))
    parser.add_argument("address", help="of the server, or one's own for a group")
    args = parser.parse_args()
    SCENARIOS[args.scenario][args.end == "client"](args.address)
    print("end 0", flush=True)


def same(seen, wanted, what):
    if seen != wanted:
        raise AssertionError(f"{what} is {seen}, not {wanted}")


def server_at(address, space=cm.RDMA_PS_TCP):
    return AddrInfo(src=address, src_service=PORT, port_space=space, flags=cm.RAI_PASSIVE)


def way_to(address, space=cm.RDMA_PS_TCP):
    return AddrInfo(dst=address, dst_service=PORT, port_space=space)


def queue_pair(kind=ib.IBV_QPT_RC):
    return QPInitAttr(qp_type=kind, cap=QPCap(max_send_wr=4, max_recv_wr=4))


def opened():
    """Return a new event channel that the end of a block closes."""
    return contextlib.closing(CMEventChannel())


def take(channel, wanted):
    """Return the channel's next event; wanted: its type."""
    event = CMEvent(channel)
    same(event.event_type, wanted, "an event")
    return event


def drop(channel, wanted):
    take(channel, wanted).ack_cm_event()


def say(cmid, text):
    memory = cmid.reg_msgs(SIZE)
    memory.write(text.ljust(SIZE), SIZE)
    cmid.post_send(memory, 0, SIZE)
    same(cmid.get_send_comp().status, ib.IBV_WC_SUCCESS, "the status of a send")


def expect(cmid, size=SIZE):
    """Return memory that the next message will be in."""
    memory = cmid.reg_msgs(size)
    cmid.post_recv(memory, size)
    return memory


def hear(cmid, memory, text, offset=0):
    completion = cmid.get_recv_comp()
    same(completion.status, ib.IBV_WC_SUCCESS, "the status of a receive")
    same(memory.read(SIZE, offset).decode().rstrip(), text, "a message")
    return completion


def sync_server(address):
    with CMID(creator=server_at(address), qp_init_attr=queue_pair()) as listener:
        listener.listen(BACKLOG)
        with listener.get_request() as child:
            memory = expect(child)
            child.accept(ConnParam())
            hear(child, memory, "a question")
            say(child, "an answer")
            child.disconnect()


def sync_client(address):
    with CMID(creator=way_to(address), qp_init_attr=queue_pair()) as cmid:
        memory = expect(cmid)
        cmid.connect(ConnParam())
        say(cmid, "a question")
        hear(cmid, memory, "an answer")
        cmid.disconnect()


def listening(channel, address, space=cm.RDMA_PS_TCP):
    listener = CMID(creator=channel, port_space=space)
    listener.bind_addr(server_at(address, space))
    listener.listen(BACKLOG)
    return listener


def request(channel, listener):
    """Return the id of the next request."""
    event = take(channel, cm.RDMA_CM_EVENT_CONNECT_REQUEST)
    child = CMID(creator=event, listen_id=listener)
    event.ack_cm_event()
    return child


def route_to(channel, address, space=cm.RDMA_PS_TCP):
    """Return an id with its route resolved."""
    cmid = CMID(creator=channel, port_space=space)
    cmid.resolve_addr(way_to(address, space), TIMEOUT_MS)
    drop(channel, cm.RDMA_CM_EVENT_ADDR_RESOLVED)
    cmid.resolve_route(TIMEOUT_MS)
    drop(channel, cm.RDMA_CM_EVENT_ROUTE_RESOLVED)
    return cmid


def set_ack_timeout(cmid):
    cmid.set_option(cm.RDMA_OPTION_ID, cm.RDMA_OPTION_ID_ACK_TIMEOUT, ACK_TIMEOUT, 1)


def expect_ack_timeout(cmid):
    attributes, _ = cmid.query_qp(ib.IBV_QP_TIMEOUT)
    same(attributes.timeout, ACK_TIMEOUT, "the queue pair's ACK timeout")


def async_server(address):
    with opened() as channel, listening(channel, address) as listener:
        set_ack_timeout(listener)
        with request(channel, listener) as child:
            set_ack_timeout(child)
            child.create_qp(queue_pair())
            memory = expect(child)
            child.accept(ConnParam())
            drop(channel, cm.RDMA_CM_EVENT_ESTABLISHED)
            expect_ack_timeout(child)
            hear(child, memory, "a question")
            say(child, "an answer")
            drop(channel, cm.RDMA_CM_EVENT_DISCONNECTED)
            child.disconnect()


def async_client(address):
    with opened() as channel, route_to(channel, address) as cmid:
        set_ack_timeout(cmid)
        cmid.create_qp(queue_pair())
        memory = expect(cmid)
        cmid.connect(ConnParam())
        drop(channel, cm.RDMA_CM_EVENT_ESTABLISHED)
        expect_ack_timeout(cmid)
        say(cmid, "a question")
        hear(cmid, memory, "an answer")
        cmid.disconnect()
        drop(channel, cm.RDMA_CM_EVENT_DISCONNECTED)


def reject_server(address):
    with opened() as channel, listening(channel, address) as listener:
        with request(channel, listener) as child:
            child.reject(REASON)


def reject_client(address):
    with opened() as channel, route_to(channel, address) as cmid:
        cmid.create_qp(queue_pair())
        cmid.connect(ConnParam())
        event = take(channel, cm.RDMA_CM_EVENT_REJECTED)
        same(event.private_data[:len(REASON)], REASON, "the reason")
        event.ack_cm_event()


def own_queue_pair(cmid):
    domain = PD(cmid.context)
    queue = CQ(cmid.context, 8)
    attributes = QPInitAttr(qp_type=ib.IBV_QPT_RC, scq=queue, rcq=queue,
                            cap=QPCap(max_send_wr=4, max_recv_wr=4))
    return QP(domain, attributes)


def move(cmid, queue_pair_, *states):
    for state in states:
        attributes, mask = cmid.init_qp_attr(state)
        queue_pair_.modify(attributes, mask)


def external_server(address):
    with opened() as channel, listening(channel, address) as listener:
        with request(channel, listener) as child:
            pair = own_queue_pair(child)
            move(child, pair, ib.IBV_QPS_INIT, ib.IBV_QPS_RTR, ib.IBV_QPS_RTS)
            child.accept(ConnParam(qp_num=pair.qp_num))
            drop(channel, cm.RDMA_CM_EVENT_ESTABLISHED)
            same(pair.query(ib.IBV_QP_STATE)[0].qp_state, ib.IBV_QPS_RTS, "the queue pair's state")
            drop(channel, cm.RDMA_CM_EVENT_DISCONNECTED)
            child.disconnect()


def external_client(address):
    with opened() as channel, route_to(channel, address) as cmid:
        pair = own_queue_pair(cmid)
        move(cmid, pair, ib.IBV_QPS_INIT)
        cmid.connect(ConnParam(qp_num=pair.qp_num))
        drop(channel, cm.RDMA_CM_EVENT_CONNECT_RESPONSE)
        move(cmid, pair, ib.IBV_QPS_RTR, ib.IBV_QPS_RTS)
        cmid.establish()
        same(pair.query(ib.IBV_QP_STATE)[0].qp_state, ib.IBV_QPS_RTS, "the queue pair's state")
        cmid.disconnect()
        drop(channel, cm.RDMA_CM_EVENT_DISCONNECTED)


def udp_server(address):
    with opened() as channel, listening(channel, address, cm.RDMA_PS_UDP) as listener:
        with request(channel, listener) as child:
            child.create_qp(queue_pair(ib.IBV_QPT_UD))
            memory = expect(child, SIZE + GRH_SIZE)
            child.accept(ConnParam(qp_num=child.qpn))
            hear(child, memory, "a question", GRH_SIZE)


def udp_client(address):
    with opened() as channel, route_to(channel, address, cm.RDMA_PS_UDP) as cmid:
        cmid.create_qp(queue_pair(ib.IBV_QPT_UD))
        cmid.connect(ConnParam())
        event = take(channel, cm.RDMA_CM_EVENT_ESTABLISHED)
        found = UDParam(event)
        memory = cmid.reg_msgs(SIZE)
        memory.write("a question".ljust(SIZE), SIZE)
        cmid.post_ud_send(memory, AH(cmid.pd, attr=found.ah_attr), found.qp_num, 0, SIZE)
        same(cmid.get_send_comp().status, ib.IBV_WC_SUCCESS, "the status of a send")
        event.ack_cm_event()


def by_way_of(channel, address):
    """Return an id, bound to address and with a queue pair, and the group to join."""
    way = AddrInfo(src=address, dst=GROUP, port_space=cm.RDMA_PS_UDP)
    cmid = CMID(creator=channel, port_space=cm.RDMA_PS_UDP)
    cmid.bind_addr(way)
    cmid.resolve_addr(way, TIMEOUT_MS)
    drop(channel, cm.RDMA_CM_EVENT_ADDR_RESOLVED)
    cmid.create_qp(queue_pair(ib.IBV_QPT_UD))
    # The module joins what is a source address to it.
    return cmid, AddrInfo(src=GROUP, port_space=cm.RDMA_PS_UDP, flags=cm.RAI_PASSIVE)


def join(channel, cmid, group, options):
    """Return the event of having joined."""
    cmid.join_multicast(mc_attr=JoinMCAttrEx(
        group, cm.RDMA_CM_JOIN_MC_ATTR_ADDRESS | cm.RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS, options))
    return take(channel, cm.RDMA_CM_EVENT_MULTICAST_JOIN)


def multicast_server(address):
    with opened() as channel:
        cmid, group = by_way_of(channel, address)
        memory = expect(cmid, SIZE + GRH_SIZE)
        cmid.join_multicast(addr=group)
        drop(channel, cm.RDMA_CM_EVENT_MULTICAST_JOIN)
        hear(cmid, memory, "to all", GRH_SIZE)
        cmid.leave_multicast(group)
        cmid.close()


def multicast_client(address):
    with opened() as channel:
        cmid, group = by_way_of(channel, address)
        event = join(channel, cmid, group, cm.RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER)
        found = UDParam(event)
        memory = cmid.reg_msgs(SIZE)
        memory.write("to all".ljust(SIZE), SIZE)
        cmid.post_ud_send(memory, AH(cmid.pd, attr=found.ah_attr), CM_MULTICAST_QPN, 0, SIZE)
        same(cmid.get_send_comp().status, ib.IBV_WC_SUCCESS, "the status of a send")
        event.ack_cm_event()
        cmid.leave_multicast(group)
        cmid.close()


SCENARIOS = {
    "sync": (sync_server, sync_client),
    "async": (async_server, async_client),
    "reject": (reject_server, reject_client),
    "external": (external_server, external_client),
    "udp": (udp_server, udp_client),
    "multicast": (multicast_server, multicast_client),
}

if __name__ == "__main__":
    sys.exit(main())
