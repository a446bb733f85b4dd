# SPDX-License-Identifier: BSD-2-Clause
"""The IP paths between two hosts, from the properties of both."""
import ipaddress
import socket
from typing import NamedTuple


class Way(NamedTuple):
    """How one host reaches the other by IP."""
    kind: str
    here: str
    there: str
    is_ib: bool = False


def ip_of(gid):
    """The IP address in a RoCE GID."""
    address = ipaddress.IPv6Address(gid)
    return address.ipv4_mapped or address


def source_for(address):
    """The address that this host would send from; None without a route."""
    family, _, _, _, where = socket.getaddrinfo(address, 4791, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(where)
        except OSError:
            return None
        return probe.getsockname()[0]


def gids_of(stock):
    """Yield (device, port, GID entry) for RoCE v2 entries."""
    for device in stock["devices"]:
        for port in device["ports"]:
            for gid in port["gids"]:
                if gid["type"] == "RoCE v2":
                    yield device, port, gid


def is_on_vlan(stock, interface):
    return interface in stock["vlans"]


def ways_of_roce(here, there):
    """Yield the Ways between GIDs with IP addresses."""
    ours = {}
    for _, _, gid in gids_of(here):
        ours.setdefault(str(ip_of(gid["gid"])), gid["interface"])
    for _, _, gid in gids_of(there):
        address, interface = ip_of(gid["gid"]), gid["interface"]
        vlan = " on a VLAN" if is_on_vlan(there, interface) else ""
        if address.is_link_local and address.version == 6:
            for source, iface in ours.items():
                if ipaddress.ip_address(source).is_link_local and \
                        is_on_vlan(here, iface) == bool(vlan):
                    yield Way("link-local" + vlan, f"{source}%{interface}", f"{address}%{iface}")
        elif not address.is_link_local and (source := source_for(str(address))) in ours:
            yield Way(f"IPv{address.version}{vlan}", source, str(address))


def addresses_on_ib(stock):
    """Yield the IP addresses of interfaces on InfiniBand ports."""
    for device in stock["devices"]:
        if any(port["link"] == "InfiniBand" for port in device["ports"]):
            yield from map(ipaddress.ip_address, device["addresses"])


def ways_of_ib(here, there):
    """Yield the Ways between IP over InfiniBand addresses."""
    ours = [str(address) for address in addresses_on_ib(here)]
    for address in addresses_on_ib(there):
        source = None if address.is_link_local else source_for(str(address))
        if source in ours:
            yield Way(f"IPv{address.version} over InfiniBand", source, str(address), True)


def ways_between(here, there, named):
    """Return the Ways: to each address of the other host in a network of this one, and to the one
    given by the user."""
    ways = [*ways_of_roce(here, there), *ways_of_ib(here, there)]
    named = socket.getaddrinfo(named, None)[0][4][0] if named else None
    if named and named not in [way.there for way in ways] and (not ways or not there["devices"]):
        ways.append(Way("IPv6" if ":" in named else "IPv4", source_for(named), named))
    return sorted(ways, key=lambda way: (way.there != named, way.kind))
