# SPDX-License-Identifier: BSD-2-Clause
"""An interface above two others, as a bond is, for the quirk lag. Called by fabric for the switch's
ends of both, and by host_process.py for the host's.

The upper interface is a bridge, since containers and small kernels lack the bonding module. What a
host sends leaves by its first slave; what is sent to its link address arrives by the second, and
broadcasts by the first: neither end forwards between the two, so there is no loop.
"""
import netlink

FLOODS = ("unicast-flood", "multicast-flood", "broadcast-flood")


def bond(name, slaves, mac, mtu):
    """Make the upper interface, in the host's namespace; it is not up yet."""
    netlink.add_link(name, "bridge", mtu)
    netlink.set_mac(name, mac)
    for slave in slaves:
        netlink.set_up(slave, name)
    netlink.forbid(slaves[1], "learning", *FLOODS)


def part_at_switch(links, mac):
    """Have the switch send to a host by its second link only, but for broadcasts."""
    netlink.forbid(links[0], "learning")
    netlink.forbid(links[1], *FLOODS)
    netlink.add_station(links[1], mac)
