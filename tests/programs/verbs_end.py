#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""One end of a conversation through Debian's python3-pyverbs about one feature of verbs. The two
ends agree on addresses and keys by TCP, and connect their queue pairs themselves.

run.py starts both ends (table.py). Each says "end 0" when all was as it should be, and raises
otherwise. Debian's python, as the module is built for no other.
"""
import argparse
import enum
import json
import os
import socket
import sys
import tempfile
import time
import types

from pyverbs.addr import AH, GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ, CQEX, CompChannel, CqInitAttrEx, PollCqAttr
from pyverbs.device import DM, AllocDmAttr, Context
from pyverbs.mr import DMMR, MR, MW, MWBind, MWBindInfo
from pyverbs.pd import PD, ParentDomain, ParentDomainInitAttr
from pyverbs.qp import ECE, QP, QPAttr, QPCap, QPEx, QPInitAttr, QPInitAttrEx
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr, SrqInitAttrEx
from pyverbs.wr import SGE, RecvWR, SendWR
from pyverbs.xrcd import XRCD, XRCDInitAttr

try:
    from pyverbs import enums as ib
except ImportError:  # since rdma-core 60 or so each enum is a class
    from pyverbs import libibverbs_enums
    ib = types.SimpleNamespace(**{name: value for kind in vars(libibverbs_enums).values()
                                  if isinstance(kind, enum.EnumMeta)
                                  for name, value in kind.__members__.items()})

# Of another device: tests/roce/rxe_lab.py.
DEVICE, GID_INDEX = os.environ.get("PYVERBS_ON", "fab0"), int(os.environ.get("PYVERBS_INDEX", "1"))
PORT = 7100
SIZE, LIMIT_S, QKEY, GRH_BYTES = 4096, 20, 0x1234, 40
REMOTE = ib.IBV_ACCESS_REMOTE_WRITE | ib.IBV_ACCESS_REMOTE_READ | ib.IBV_ACCESS_REMOTE_ATOMIC
ALL = ib.IBV_ACCESS_LOCAL_WRITE | REMOTE
HELLO, REPLY = b"a question of the client", b"an answer of the server"


def same(seen, wanted, what):
    if seen != wanted:
        raise AssertionError(f"{what} is {seen}, not {wanted}")


class Talk:
    """The TCP connection between the ends, a line of JSON for each value."""

    def __init__(self, is_client, address):
        self.is_client = is_client
        if is_client:
            connection = socket.create_connection((address, PORT))
        else:
            connection = socket.create_server((address, PORT)).accept()[0]
        self.lines, self.out = connection.makefile("r"), connection.makefile("w")

    def swap(self, value=None):
        """Return what the other end gives for a value."""
        print(json.dumps(value), file=self.out, flush=True)
        line = self.lines.readline()
        if not line:
            raise AssertionError("the other end has ended")
        return json.loads(line)


class End:
    """A device, a domain, a completion queue and memory."""

    def __init__(self, talk, access=ALL):
        self.talk, self.is_client = talk, talk.is_client
        self.context = Context(name=DEVICE)
        self.domain = self.make_domain()
        self.queue = self.make_queue()
        self.memory = MR(self.domain, SIZE, access)

    def make_domain(self):
        return PD(self.context)

    def make_queue(self):
        return CQ(self.context, 64)

    def pair(self, kind=ib.IBV_QPT_RC, operations=0, srq=None):
        """Return a new queue pair, for wr_*() if it has operations."""
        cap = QPCap(max_send_wr=16, max_recv_wr=16, max_send_sge=2, max_recv_sge=2)
        if not operations:
            return QP(self.domain, QPInitAttr(qp_type=kind, scq=self.queue, rcq=self.queue,
                                              srq=srq, cap=cap))
        return QPEx(self.context, QPInitAttrEx(
            qp_type=kind, scq=self.queue, rcq=self.queue, srq=srq, cap=cap, pd=self.domain,
            comp_mask=ib.IBV_QP_INIT_ATTR_PD | ib.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
            send_ops_flags=operations))

    def way(self):
        """Return the address of the other end."""
        gid = self.talk.swap(str(self.context.query_gid(1, GID_INDEX)))
        return AHAttr(port_num=1, is_global=True,
                      gr=GlobalRoute(dgid=GID(gid), sgid_index=GID_INDEX, hop_limit=64))

    def connect(self, pair, number=None, access=0):
        """Connect a pair with the other end's. number: what that end is told, if not its own;
        access: what else is allowed."""
        peer = self.talk.swap(pair.qp_num if number is None else number)
        attributes = QPAttr(port_num=1)
        attributes.qp_access_flags = ALL | ib.IBV_ACCESS_MW_BIND | access
        attributes.dest_qp_num = peer
        attributes.path_mtu = ib.IBV_MTU_1024
        attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 4
        attributes.min_rnr_timer, attributes.timeout = 1, 14
        attributes.retry_cnt = attributes.rnr_retry = 7
        attributes.ah_attr = self.way()
        pair.to_rts(attributes)
        return pair

    def done(self, status=ib.IBV_WC_SUCCESS):
        """Return the next completion. status: or a tuple of those that are right"""
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            number, found = self.queue.poll(1)
            if number:
                wanted = status if isinstance(status, tuple) else (status,)
                same(found[0].status in wanted, True, f"status {found[0].status} in {wanted}")
                return found[0]
        raise AssertionError("nothing has completed")

    def part(self, length=64, offset=0, memory=None):
        memory = memory or self.memory
        return SGE(memory.buf + offset, length, memory.lkey)

    def expect(self, where, length=256):
        """Post a receive to a queue pair or a shared receive queue."""
        where.post_recv(RecvWR(num_sge=1, sg=[self.part(length, 1024)]))

    def send(self, pair, data, **more):
        self.memory.write(data, len(data))
        pair.post_send(SendWR(num_sge=1, sg=[self.part(len(data))],
                              send_flags=ib.IBV_SEND_SIGNALED, **more))

    def converse(self, pair, offset=0):
        """Question and answer; a receive is posted on each side."""
        self.talk.swap()  # both have posted it
        mine, other = (HELLO, REPLY) if self.is_client else (REPLY, HELLO)
        if self.is_client:
            self.send(pair, mine)
            self.done()
        heard = self.done()
        same(heard.opcode & ib.IBV_WC_RECV, ib.IBV_WC_RECV, "an opcode")
        same(self.memory.read(len(other), 1024 + offset), other, "a message")
        if not self.is_client:
            self.send(pair, mine)
            self.done()
        self.talk.swap()

    def key(self, rkey, addr):
        """Return the other end's (key, address)."""
        return self.talk.swap([rkey, addr])

    def write(self, pair, rkey, addr, data, status=ib.IBV_WC_SUCCESS):
        self.memory.write(data, len(data))
        wr = SendWR(opcode=ib.IBV_WR_RDMA_WRITE, num_sge=1, sg=[self.part(len(data))],
                    send_flags=ib.IBV_SEND_SIGNALED)
        wr.set_wr_rdma(rkey, addr)
        pair.post_send(wr)
        return self.done(status)

    def written(self, rkey, addr, look, pair):
        """The client writes to memory of the server, which looks at it."""
        theirs = self.key(rkey, addr)
        if self.is_client:
            self.write(pair, *theirs, HELLO)
        self.talk.swap()
        if not self.is_client:
            same(look(), HELLO, "what was written")
        self.talk.swap()


def sends(talk, kind):
    end = End(talk)
    pair = end.pair(kind)
    end.connect(pair)
    end.expect(pair)
    end.converse(pair)


def datagrams(talk):
    end = End(talk)
    pair = end.pair(ib.IBV_QPT_UD)
    attributes = QPAttr(port_num=1)
    attributes.qkey = QKEY
    pair.to_rts(attributes)
    peer, way = talk.swap(pair.qp_num), AH(end.domain, attr=end.way())
    end.expect(pair)
    talk.swap()
    end.memory.write(HELLO, len(HELLO))
    wr = SendWR(num_sge=1, sg=[end.part(len(HELLO))], send_flags=ib.IBV_SEND_SIGNALED)
    wr.set_wr_ud(way, peer, QKEY)
    pair.post_send(wr)
    opcodes = sorted([end.done().opcode, end.done().opcode])
    same(opcodes, sorted([ib.IBV_WC_SEND, ib.IBV_WC_RECV]), "what completed")
    same(end.memory.read(len(HELLO), 1024 + GRH_BYTES), HELLO, "a datagram")
    talk.swap()


def shared_receives(talk):
    """Two queue pairs take their receives from one queue, which grows, and tells when it is low."""
    end = End(talk)
    queue = SRQ(end.domain, SrqInitAttr(SrqAttr(max_wr=2, max_sge=1)))
    queue.modify(SrqAttr(max_wr=32), ib.IBV_SRQ_MAX_WR)
    same(queue.query().max_wr >= 32, True, "the size")
    queue.modify(SrqAttr(srq_limit=3), ib.IBV_SRQ_LIMIT)
    pairs = [end.connect(end.pair(srq=queue)) for _ in range(2)]
    for _ in range(4):
        end.expect(queue)
    for pair in pairs:
        end.converse(pair)
    event = end.context.get_async_event()
    same(event.event_type, ib.IBV_EVENT_SRQ_LIMIT_REACHED, "an event")
    event.ack()


OPERATIONS = (ib.IBV_QP_EX_WITH_RDMA_WRITE | ib.IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
              ib.IBV_QP_EX_WITH_RDMA_READ | ib.IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
              ib.IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | ib.IBV_QP_EX_WITH_ATOMIC_WRITE |
              ib.IBV_QP_EX_WITH_BIND_MW | ib.IBV_QP_EX_WITH_LOCAL_INV |
              ib.IBV_QP_EX_WITH_SEND_WITH_INV | ib.IBV_QP_EX_WITH_SEND)


def post(end, pair, operation, *words, length=8, status=ib.IBV_WC_SUCCESS):
    """One request by a function of an extended queue pair."""
    pair.wr_start()
    pair.wr_id, pair.wr_flags = 7, ib.IBV_SEND_SIGNALED
    getattr(pair, f"wr_{operation}")(*words)
    if length:
        pair.wr_set_sge(end.part(length))
    pair.wr_complete()
    return end.done(status)


def number(memory, offset=0):
    return int.from_bytes(memory.read(8, offset), sys.byteorder)


def extended(talk):
    """Write, read, atomics and atomic write by functions of an extended queue pair."""
    end = End(talk)
    pair = end.connect(end.pair(operations=OPERATIONS))
    end.memory.write((40).to_bytes(8, sys.byteorder), 8, 512)
    end.expect(pair)
    rkey, addr = end.key(end.memory.rkey, end.memory.buf + 512)
    if end.is_client:
        post(end, pair, "rdma_read", rkey, addr)
        same(number(end.memory), 40, "what was read")
        post(end, pair, "atomic_fetch_add", rkey, addr, 2)
        same(number(end.memory), 40, "what was there before the addition")
        post(end, pair, "atomic_cmp_swp", rkey, addr, 42, 77)
        same(number(end.memory), 42, "what was there before the exchange")
        post(end, pair, "atomic_write", rkey, addr + 8, (99).to_bytes(8, sys.byteorder), length=0)
        end.memory.write((11).to_bytes(8, sys.byteorder), 8)
        post(end, pair, "rdma_write_imm", rkey, addr + 16, 5)
    else:
        same(end.done().opcode, ib.IBV_WC_RECV_RDMA_WITH_IMM, "an opcode")
        same([number(end.memory, 512 + at) for at in (0, 8, 16)], [77, 99, 11], "the memory")
    talk.swap()


# The latter of rxe, whose queue pair does not allow it either.
NOT_ALLOWED = ib.IBV_WC_REM_ACCESS_ERR, ib.IBV_WC_REM_INV_REQ_ERR


def flushes(talk):
    """A write, and a flush of its range and of its region; then what the region does not allow."""
    allowed = ib.IBV_ACCESS_FLUSH_GLOBAL
    end = End(talk, ALL | allowed)
    caps = end.context.query_device_ex().device_cap_flags_ex
    same([caps >> bit & 1 for bit in (38, 39)], [1, DEVICE != "fab0"], "the flushes announced")
    pairs = [end.connect(end.pair(operations=OPERATIONS | ib.IBV_QP_EX_WITH_FLUSH), access=allowed)
             for _ in range(2)]
    rkey, addr = end.key(end.memory.rkey, end.memory.buf)
    if end.is_client:
        end.write(pairs[0], rkey, addr, HELLO)
        for level in (ib.IBV_FLUSH_RANGE, ib.IBV_FLUSH_MR):
            flushed = post(end, pairs[0], "flush", rkey, addr, len(HELLO), ib.IBV_FLUSH_GLOBAL,
                           level, length=0)
            same(flushed.opcode, ib.IBV_WC_FLUSH, "an opcode")
        post(end, pairs[1], "flush", rkey, addr, len(HELLO), ib.IBV_FLUSH_PERSISTENT,
             ib.IBV_FLUSH_RANGE, length=0, status=NOT_ALLOWED)
    talk.swap()
    if not end.is_client:
        same(end.memory.read(len(HELLO), 0), HELLO, "what was flushed")


def windows(talk):
    """A window of each type opens a part of the server's memory; then it is closed."""
    end = End(talk, ib.IBV_ACCESS_LOCAL_WRITE | ib.IBV_ACCESS_MW_BIND)
    pair = end.connect(end.pair(operations=OPERATIONS))
    info = MWBindInfo(end.memory, end.memory.buf, 64, ib.IBV_ACCESS_REMOTE_WRITE)
    first = MW(end.domain, ib.IBV_MW_TYPE_1)
    pair.bind_mw(first, MWBind(info, ib.IBV_SEND_SIGNALED))
    end.done()
    end.written(first.rkey, end.memory.buf, lambda: end.memory.read(len(HELLO), 0), pair)
    second = MW(end.domain, ib.IBV_MW_TYPE_2)
    key = (second.rkey & ~0xff) | ((second.rkey + 1) & 0xff)
    end.memory.write(bytes(64), 64)
    post(end, pair, "bind_mw", second, key, info, length=0)
    end.written(key, end.memory.buf, lambda: end.memory.read(len(HELLO), 0), pair)
    post(end, pair, "local_inv", key, length=0)
    theirs = end.key(key, end.memory.buf)
    if end.is_client:
        end.write(pair, *theirs, HELLO, ib.IBV_WC_REM_ACCESS_ERR)
    talk.swap()


def changed(talk):
    """A region loses an access, and gets it again."""
    end = End(talk)
    pairs = [end.connect(end.pair()) for _ in range(2)]
    end.memory.rereg(ib.IBV_REREG_MR_CHANGE_ACCESS, None, 0, 0, ib.IBV_ACCESS_LOCAL_WRITE)
    theirs = end.key(end.memory.rkey, end.memory.buf)
    if end.is_client:
        end.write(pairs[0], *theirs, HELLO, ib.IBV_WC_REM_ACCESS_ERR)
    talk.swap()
    end.memory.rereg(ib.IBV_REREG_MR_CHANGE_ACCESS, None, 0, 0, ALL)
    end.written(end.memory.rkey, end.memory.buf, lambda: end.memory.read(len(HELLO), 0), pairs[1])


def device_memory(talk):
    end = End(talk)
    pair = end.connect(end.pair())
    memory = DM(end.context, AllocDmAttr(length=64))
    region = DMMR(end.domain, 64, ALL | ib.IBV_ACCESS_ZERO_BASED, memory, 0)
    end.written(region.rkey, 0, lambda: memory.copy_from_dm(0, len(HELLO)), pair)
    region.close()
    memory.close()


def on_demand(talk):
    """All memory of the process, registered at once, and a region by itself; both are ordered as
    the device likes."""
    end = End(talk, ALL | ib.IBV_ACCESS_ON_DEMAND | ib.IBV_ACCESS_RELAXED_ORDERING)
    pair = end.connect(end.pair())
    end.written(end.memory.rkey, end.memory.buf, lambda: end.memory.read(len(HELLO), 0), pair)
    whole = MR(end.domain, 0, ALL | ib.IBV_ACCESS_ON_DEMAND, implicit=True)
    end.memory.write(bytes(64), 64)
    end.written(whole.rkey, end.memory.buf, lambda: end.memory.read(len(HELLO), 0), pair)


def parent_domain(talk):
    class Inside(End):
        def make_domain(self):
            self.first = PD(self.context)
            return ParentDomain(self.context, attr=ParentDomainInitAttr(pd=self.first))

    end = Inside(talk)
    pair = end.connect(end.pair())
    end.expect(pair)
    end.converse(pair)


def events(talk):
    """Completions are waited for, not polled."""
    class Waiting(End):
        def make_queue(self):
            self.channel = CompChannel(self.context)
            queue = CQ(self.context, 64, None, self.channel, 0)
            queue.req_notify()
            return queue

        def done(self, status=ib.IBV_WC_SUCCESS):
            found = self.queue.poll(1)[1]
            if not found:
                self.channel.get_cq_event(self.queue)
                self.queue.req_notify()
                return self.done(status)
            same(found[0].status, status, "a status")
            return found[0]

    end = Waiting(talk)
    pair = end.connect(end.pair())
    end.expect(pair)
    end.converse(pair)
    end.queue.ack_events(1)


def timestamps(talk):
    """An extended completion queue says when, by the clock that the device shows."""
    class Dated(End):
        times = []

        def make_queue(self):
            return CQEX(self.context, CqInitAttrEx(
                cqe=64, wc_flags=ib.IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                ib.IBV_WC_EX_WITH_BYTE_LEN))

        def done(self, status=ib.IBV_WC_SUCCESS):
            end = time.monotonic() + LIMIT_S
            while self.queue.start_poll(PollCqAttr()) == 2:  # ENOENT
                if time.monotonic() > end:
                    raise AssertionError("nothing has completed")
            same(self.queue.status, status, "a status")
            self.times.append(self.queue.read_timestamp())
            self.opcode = self.queue.read_opcode()
            self.queue.end_poll()
            return self

    end = Dated(talk)
    pair = end.connect(end.pair())
    end.expect(pair)
    before = end.context.query_rt_values_ex(ib.IBV_VALUES_MASK_RAW_CLOCK)[1]
    end.converse(pair)
    after = end.context.query_rt_values_ex(ib.IBV_VALUES_MASK_RAW_CLOCK)[1]
    same(sorted([before, *end.times, after]), [before, *end.times, after], "the order of times")


def xrc(talk):
    """A message names the shared receive queue of the other end's domain."""
    end = End(talk)
    with tempfile.TemporaryFile() as file:
        domain = XRCD(end.context, XRCDInitAttr(
            ib.IBV_XRCD_INIT_ATTR_FD | ib.IBV_XRCD_INIT_ATTR_OFLAGS, os.O_CREAT, file.fileno()))
    wanted = SrqInitAttrEx(max_wr=4)
    wanted.srq_type, wanted.pd, wanted.xrcd, wanted.cq = (ib.IBV_SRQT_XRC, end.domain, domain,
                                                          end.queue)
    wanted.comp_mask = (ib.IBV_SRQ_INIT_ATTR_TYPE | ib.IBV_SRQ_INIT_ATTR_PD |
                        ib.IBV_SRQ_INIT_ATTR_CQ | ib.IBV_SRQ_INIT_ATTR_XRCD)
    queue = SRQ(end.context, wanted)
    target = QP(end.context, QPInitAttrEx(qp_type=ib.IBV_QPT_XRC_RECV, xrcd=domain,
                                          comp_mask=ib.IBV_QP_INIT_ATTR_XRCD))
    initiator = QP(end.context, QPInitAttrEx(
        qp_type=ib.IBV_QPT_XRC_SEND, scq=end.queue, pd=end.domain,
        comp_mask=ib.IBV_QP_INIT_ATTR_PD, cap=QPCap(max_send_wr=4, max_recv_wr=0, max_recv_sge=0)))
    # Each end's initiator is connected with the other's target.
    attached = ((initiator, target), (target, initiator))[::1 if end.is_client else -1]
    for pair, _ in attached:
        end.connect(pair)
    end.expect(queue)
    there = talk.swap(queue.get_srq_num())
    end.memory.write(HELLO, len(HELLO))
    wr = SendWR(num_sge=1, sg=[end.part(len(HELLO))], send_flags=ib.IBV_SEND_SIGNALED)
    wr.set_qp_type_xrc(there)
    initiator.post_send(wr)
    end.done()
    end.done()
    same(end.memory.read(len(HELLO), 1024), HELLO, "a message")
    talk.swap()
    target.close()
    initiator.close()
    queue.close()
    domain.close()


def options(talk):
    """The server's queue pair takes the options of the client's (--quirk ece)."""
    end = End(talk)
    pair = end.pair()
    mine = pair.query_ece()
    theirs = talk.swap([mine.vendor_id, mine.options])
    same(theirs, [mine.vendor_id, mine.options], "what the other has")
    if not end.is_client:
        pair.set_ece(ECE(vendor_id=theirs[0], options=theirs[1] & 1))
    same(pair.query_ece().options, mine.options if end.is_client else 1, "the options")
    end.connect(pair)
    end.expect(pair)
    end.converse(pair)


def imports(talk):
    """The server's region is known to another context of its own by handle."""
    end = End(talk)
    pair = end.connect(end.pair())
    context = Context(cmd_fd=os.dup(end.context.cmd_fd))
    domain = PD(context, handle=end.domain.handle)
    region = MR(domain, handle=end.memory.handle)
    end.written(region.rkey, end.memory.buf, lambda: end.memory.read(len(HELLO), 0), pair)
    region.unimport()
    domain.unimport()


FEATURES = {
    "RC": lambda talk: sends(talk, ib.IBV_QPT_RC),
    "UC": lambda talk: sends(talk, ib.IBV_QPT_UC),
    "UD": datagrams,
    "SRQ": shared_receives,
    "extended-QP": extended,
    "flush": flushes,
    "windows": windows,
    "rereg": changed,
    "device-memory": device_memory,
    "on-demand": on_demand,
    "parent-domain": parent_domain,
    "events": events,
    "timestamps": timestamps,
    "XRC": xrc,
    "ECE": options,
    "import": imports,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("end", choices=("server", "client"))
    parser.add_argument("feature", choices=sorted(FEATURES))
    parser.add_argument("address", help="of the server")
    args = parser.parse_args()
    FEATURES[args.feature](Talk(args.end == "client", args.address))
    sys.stdout.write("end 0\n")  # in one piece: both ends write to one pipe


if __name__ == "__main__":
    sys.exit(main())
