# SPDX-License-Identifier: BSD-2-Clause
"""The addresses, permanent neighbours and routes of this host, through rtnetlink: Linux forgets
some when a link goes down or an address is removed, and they can be put back as they were."""
import collections
import socket
import struct
import time

HEAD = struct.Struct("=IHHII")  # struct nlmsghdr
REQUEST, ACK, DUMP, REPLACE, CREATE, APPEND = 1, 4, 0x300, 0x100, 0x400, 0x800
NLMSG_ERROR, NLMSG_DONE = 2, 3
RECEIVE_BYTES = 1 << 17
SECONDARY, ONLINK = 1, 4
NOT_OURS = (1, 2, 9)  # routes by a redirect, the kernel, or a router's advertisement
PERMANENT = 0x80
PATIENCE_S, PAUSE_S = 5, 0.1  # addresses of IPv6 are checked for duplicates first, for 2 s

# new: the message that adds one; the next two remove one and list them. bytes: of the struct before
# the attributes. ages: attributes that change by themselves.
Kind = collections.namedtuple("Kind", "name new bytes ages flags")
ADDRESS, NEIGHBOUR, ROUTE = KINDS = (Kind("address", 20, 8, (6, 8), CREATE),
                                     Kind("neighbour", 28, 12, (3, 4), CREATE | REPLACE),
                                     Kind("route", 24, 12, (12,), CREATE | APPEND))


def messages(data):
    """Yield (type, content) of each message."""
    at = 0
    while at < len(data):
        size, what, *_ = HEAD.unpack_from(data, at)
        yield what, data[at + HEAD.size:at + size]
        at += (size + 3) & ~3


def attributes(kind, body):
    """Yield (type, content) of each attribute."""
    at = kind.bytes
    while at < len(body):
        size, what = struct.unpack_from("=HH", body, at)
        yield what, body[at + 4:at + size]
        at += (size + 3) & ~3


def is_kept(kind, body):
    """Whether Linux does not add it by itself."""
    if kind == ROUTE:
        return body[5] not in NOT_OURS
    return kind == ADDRESS or body[8] & PERMANENT


def listed(kind):
    """All of a kind, as messages without their head, in order."""
    found = []
    for family in (socket.AF_INET, socket.AF_INET6):
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as link:
            link.send(HEAD.pack(HEAD.size + kind.bytes, kind.new + 2, REQUEST | DUMP, 1, 0) +
                      bytes([family]) + bytes(kind.bytes - 1))
            part = []
            while not any(what in (NLMSG_ERROR, NLMSG_DONE) for what, _ in part):
                part = list(messages(link.recv(RECEIVE_BYTES)))
                found += [body for what, body in part if what == kind.new and is_kept(kind, body)]
    return found


def without_state(kind, body):
    """The struct of a message without flags that only report."""
    if kind == ADDRESS:
        secondary = body[2] & SECONDARY if body[0] == socket.AF_INET else 0
        return body[:2] + bytes([secondary]) + body[3:kind.bytes]
    if kind == ROUTE:
        return body[:8] + struct.pack("=I", struct.unpack_from("=I", body, 8)[0] & ONLINK)
    return body[:kind.bytes]


def identity(kind, body):
    """What is the same as long as nobody changes it."""
    return without_state(kind, body), frozenset(
        (what, content) for what, content in attributes(kind, body) if what not in kind.ages)


def name(kind, body):
    """What people call it."""
    address = dict(attributes(kind, body)).get(1)
    return f"{kind.name} {socket.inet_ntop(body[0], address) if address else 'default'}"


def ask(message, flags, kind, body):
    """Send a request; what comes of it is seen later."""
    body = without_state(kind, body) + body[kind.bytes:]
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as link:
        link.send(HEAD.pack(HEAD.size + len(body), message, REQUEST | ACK | flags, 1, 0) + body)
        link.recv(RECEIVE_BYTES)


def take():
    """What there is now, for put_back()."""
    return {kind: listed(kind) for kind in KINDS}


def missing(kind, before):
    """Those of a kind that are not there any more."""
    now = {identity(kind, body) for body in listed(kind)}
    return [body for body in before[kind] if identity(kind, body) not in now]


def put_back_addresses(gone, before):
    """The first address of a network of IPv4 is the primary one: their order matters."""
    def interface(body):
        return body[0], body[4:8]
    ordered = {interface(body) for body in gone if body[0] == socket.AF_INET}
    again = [body for body in before if interface(body) in ordered]
    for body in again:
        ask(ADDRESS.new + 1, 0, ADDRESS, body)
    for body in again + [body for body in gone if interface(body) not in ordered]:
        ask(ADDRESS.new, ADDRESS.flags, ADDRESS, body)


def put_back(before):
    """Add what is missing since take(). Return: the names of what the kernel does not accept."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        if gone := missing(ADDRESS, before):
            put_back_addresses(gone, before[ADDRESS])
        for kind in (NEIGHBOUR, ROUTE):
            for body in missing(kind, before):
                ask(kind.new, kind.flags, kind, body)
        lost = [name(kind, body) for kind in KINDS for body in missing(kind, before)]
        if not lost or time.monotonic() > deadline:
            return lost
        time.sleep(PAUSE_S)
