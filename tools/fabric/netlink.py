# SPDX-License-Identifier: BSD-2-Clause
"""Network interfaces through rtnetlink, because a container may lack `ip`.

Only what a fabric needs: create interfaces, bring them up, add addresses and a default route."""
import errno
import fcntl
import ipaddress
import os
import socket
import struct

RTM_NEWLINK, RTM_SETLINK, RTM_NEWADDR, RTM_NEWROUTE, RTM_NEWNEIGH = 16, 19, 20, 24, 28
REQUEST, ACK, CREATE, EXCLUSIVE = 1, 4, 0x400, 0x200
NLMSG_ERROR = 2
IFF_UP = 1
IFLA_ADDRESS, IFLA_IFNAME, IFLA_MTU, IFLA_MASTER = 1, 3, 4, 10
IFLA_LINKINFO, IFLA_NET_NS_PID = 18, 19
IFLA_INFO_KIND, IFLA_INFO_DATA, VETH_INFO_PEER = 1, 2, 1
IFA_ADDRESS, IFA_LOCAL, IFA_FLAGS, IFA_F_NODAD = 1, 2, 8, 2
IFLA_PROTINFO = 12
RTA_GATEWAY, RT_TABLE_MAIN, RTPROT_STATIC, RTN_UNICAST = 5, 254, 4, 1
NDA_LLADDR, NUD_NOARP, NTF_MASTER = 2, 0x40, 4
BRIDGE_PORT = {"learning": 8, "unicast-flood": 9, "multicast-flood": 27, "broadcast-flood": 30}
NESTED = 0x8000
SIOCGIFADDR = 0x8915


def attribute(kind, payload):
    """Encode an attribute, padded."""
    data = struct.pack("HH", len(payload) + 4, kind) + payload
    return data + bytes(-len(data) % 4)


def text(kind, value):
    return attribute(kind, value.encode() + b"\0")


def number(kind, value):
    return attribute(kind, struct.pack("I", value))


class Failure(Exception):
    """What the kernel did not do, why, and what helps."""


def ask(what, message, flags, body, module=None):
    """Send one request. Raise Failure if the kernel refuses it: where it does not know the request,
    it lacks the module."""
    head = struct.pack("IHHII", 16 + len(body), message, flags | REQUEST | ACK, 1, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as link:
            link.send(head + body)
            answer = link.recv(65536)
    except OSError as error:
        raise Failure(f"{what}: rtnetlink: {error.strerror}; a container's seccomp profile may "
                      "deny it") from error
    kind, error = struct.unpack_from("=4xH10xi", answer)
    if kind == NLMSG_ERROR and error:
        advice = (f": the kernel has no module {module}; as the machine's root, `modprobe {module}`"
                  " loads it, or says that this kernel comes without it")
        raise Failure(f"{what}: {os.strerror(-error)}"
                      + advice * (module is not None and -error == errno.EOPNOTSUPP))


def index_of(name):
    return socket.if_nametoindex(name)


def address_of(name):
    """Return the first IPv4 address of an interface, "" if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        try:
            answer = fcntl.ioctl(link, SIOCGIFADDR, struct.pack("16s16x", name.encode()))
        except OSError:
            return ""
    return socket.inet_ntoa(answer[20:24])


def ifinfo(index=0, flags=0, change=0):
    return struct.pack("BxHiII", socket.AF_UNSPEC, 0, index, flags, change)


def add_link(name, kind, mtu=0, data=b""):
    """Create an interface of a kind: bridge, dummy ..."""
    info = text(IFLA_INFO_KIND, kind)
    if data:
        info += attribute(IFLA_INFO_DATA | NESTED, data)
    body = ifinfo() + text(IFLA_IFNAME, name) + attribute(IFLA_LINKINFO | NESTED, info)
    if mtu:
        body += number(IFLA_MTU, mtu)
    ask(f"interface {name}", RTM_NEWLINK, CREATE | EXCLUSIVE, body, kind)


def add_veth(name, peer, peer_pid, peer_mac, mtu):
    """Create a veth pair, with the second end in the network namespace of a process."""
    far = ifinfo() + text(IFLA_IFNAME, peer) + number(IFLA_MTU, mtu)
    far += number(IFLA_NET_NS_PID, peer_pid) + attribute(IFLA_ADDRESS, peer_mac)
    add_link(name, "veth", mtu, attribute(VETH_INFO_PEER | NESTED, far))


def set_up(name, master=None):
    """Bring an interface up, as part of a bridge if given."""
    body = ifinfo(index_of(name), IFF_UP, IFF_UP)
    if master:
        body += number(IFLA_MASTER, index_of(master))
    ask(f"interface {name} up", RTM_SETLINK, 0, body)


def forbid(name, *what):
    """Have a port of a bridge do without some of BRIDGE_PORT."""
    options = b"".join(attribute(BRIDGE_PORT[each], b"\0") for each in what)
    body = struct.pack("BxHiII", socket.AF_BRIDGE, 0, index_of(name), 0, 0)
    ask(f"options of port {name}", RTM_SETLINK, 0,
        body + attribute(IFLA_PROTINFO | NESTED, options))


def add_station(name, mac):
    """Have a bridge send what is for a link address out of this port, always."""
    body = struct.pack("BxxxiHBB", socket.AF_BRIDGE, index_of(name), NUD_NOARP, NTF_MASTER, 0)
    ask(f"station of port {name}", RTM_NEWNEIGH, CREATE, body + attribute(NDA_LLADDR, mac))


def set_mac(name, mac):
    ask(f"link address of {name}", RTM_SETLINK, 0,
        ifinfo(index_of(name)) + attribute(IFLA_ADDRESS, mac))


def family_of(ip):
    """The family of an address; None if the kernel is without IPv6, and it is of that."""
    if ip.version == 6 and not os.path.exists("/proc/net/if_inet6"):
        return None
    return socket.AF_INET if ip.version == 4 else socket.AF_INET6


def add_address(name, address):
    """Add an address with a prefix, "10.0.0.1/24", usable at once (no DAD)."""
    interface = ipaddress.ip_interface(address)
    family = family_of(interface)
    if family is None:
        return
    body = struct.pack("BBBBI", family, interface.network.prefixlen, 0, 0, index_of(name))
    body += attribute(IFA_LOCAL, interface.packed) + attribute(IFA_ADDRESS, interface.packed)
    body += number(IFA_FLAGS, IFA_F_NODAD)
    ask(f"{address} on {name}", RTM_NEWADDR, CREATE | EXCLUSIVE, body)


def add_default_route(gateway):
    """Send what is for no other network to a router."""
    ip = ipaddress.ip_address(gateway)
    family = family_of(ip)
    if family is None:
        return
    body = struct.pack("BBBBBBBBI", family, 0, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, 0, RTN_UNICAST,
                       0)
    ask(f"a route to {gateway}", RTM_NEWROUTE, CREATE | EXCLUSIVE,
        body + attribute(RTA_GATEWAY, ip.packed))
