# SPDX-License-Identifier: BSD-2-Clause
"""The plan of a fabric: hosts, their addresses, the commands on them; and validation of the
options."""
import dataclasses
import re
import string

HOSTS_MAX = 200
PORTS_MAX = 2  # wire/page.h
SUBNETS_MAX = 8  # wire/route.h
PKEYS_MAX = 15
SLOW_US_MAX = 10 ** 6
PKEY_DEFAULT = 0xffff
LID_ROUTER = 0xbf00
QUIRKS = {  # wire/quirks.h
    "no-fast-path": "MADs for QP1 leave from QP1 only; from other queue pairs they are lost",
    "no-cm": "no connection manager: datagrams only, no umad, and GIDs are not IP addresses",
    "gids-last": "the GID table is filled from its end",
    "sent-sl": "of a datagram over RoCE, a completion has the SL and not the packet type",
    "second-port": "the interface is that of port 2; port 1 is down, and has none",
    "grh-required": "on InfiniBand: no packet leaves without a global route header (EINVAL)",
    "lag": "the interface is a bond of two, its own alone has GIDs, and packets come by either",
    "umad-blocks": "the first write to umad for each peer takes a second",
    "ece": "queue pairs have options of their vendor, on which connections agree",
    "strict-notify": "arming a completion queue that is not empty makes no event",
    "windows-2a": "memory windows of type 2 are of type 2A, not 2B",
    "no-direct": "between hosts of one machine, too, all writes go by packets",
    "rxe-flush": "with --wire roce: the ICRC of flushes is that of rxe",
}
DEVICES = {  # name: (quirks, and limits of wire/page.h; source)
    "mlx5": (("inline=800", "ud-inline=800", "slow=100", "ece"),
             "its driver; a command of its firmware takes 20 to 500 us"),
    "mlx5-lag": (("inline=800", "ud-inline=800", "slow=100", "lag", "ece"),
                 "Linux 7907f23adc18 (one device for both ports of a bond), cfc1a89e449c (a slave "
                 "for each queue pair, and one QP1 for each slave)"),
    "mlx4": (("second-port",), "its driver: one device for two ports; here only port 2 is used"),
    "mlx4-vf": (("no-fast-path",), "assumed: QP1 of a VF is a proxy, nobody has tried"),
    "bnxt_re": (("inline=96", "ud-inline=96"), "its driver, queues of fixed size"),
    "irdma": (("inline=101", "ud-inline=101", "no-sl"), "its driver, older devices"),
    "hns": (("ud-inline=32",), "its driver, hip08"),
    "qedr": (("inline=128", "ud-inline=128"), "its driver"),
    "efa": (("no-cm",), "its driver: UD and SRD only, no CM class"),
    "worst": (("inline=96", "ud-inline=32", "wr=1024", "no-sl", "no-fast-path", "gids-last",
               "second-port", "umad-blocks"),
              "the least of all the others but efa"),
}
NAME = re.compile(r"[a-z][a-z0-9-]{0,14}\Z")
ROUTER = ("10.77.0.254", "fd77::fffe")  # of all hosts; it knows no other network
DIR_BYTES_MAX = 60  # the names of sockets in it must fit into sun_path


class Wrong(Exception):
    """An error that the user can correct; the text says what."""


@dataclasses.dataclass
class Host:
    """A host of the fabric; its number, from 1, is in its addresses, its GUID and its LID."""
    name: str
    number: int

    ports: int = 1
    is_lag: bool = False

    @property
    def interfaces(self):
        """The interfaces of its ports."""
        return [f"fab{i}" for i in range(self.ports)]

    def slaves(self, i):
        """What interface i is made of: itself, or two others."""
        name = self.interfaces[i]
        return [f"{name}s1", f"{name}s2"] if self.is_lag else [name]

    def addresses(self, i):
        """The addresses of interface i, with their prefixes."""
        ipv6 = f"fd77:0:0:{i}::{self.number:x}" if i else f"fd77::{self.number:x}"
        return f"10.77.{i}.{self.number}/24", f"{ipv6}/64"

    def mac(self, i):
        return bytes([0x02, 0x50, 0x43, i, self.number >> 8, self.number & 255])


@dataclasses.dataclass
class Command:
    """A command on a host; background commands end with the last of the others."""
    host: Host
    text: str
    background: bool

    def __str__(self):
        first, *more = self.text.strip().splitlines()
        return f"'{self.host.name}{'&' * self.background}:{first}{' ...' * bool(more)}'"


def hosts_of(text, ports=1):
    """The hosts of --hosts: their number, or their names."""
    if not 1 <= ports <= PORTS_MAX:
        raise Wrong(f"--ports {ports}: a host has 1 to {PORTS_MAX}")
    if text.isdigit():
        count = int(text)
        if not 1 <= count <= HOSTS_MAX:
            raise Wrong(f"--hosts {text}: a fabric has 1 to {HOSTS_MAX} hosts")
        letters = string.ascii_lowercase
        names = list(letters[:count]) if count <= 26 else [f"h{i}" for i in range(1, count + 1)]
    else:
        names = text.split(",")
    for name in names:
        if not NAME.match(name):
            raise Wrong(f"--hosts: '{name}' cannot be a host's name: a letter, then letters, "
                        "digits and '-', 15 at most")
        if names.count(name) > 1:
            raise Wrong(f"--hosts: two hosts are called {name}")
    return [Host(name, number, ports) for number, name in enumerate(names, start=1)]


def pkey_of(text):
    """A P_Key as a number."""
    try:
        pkey = int(text, 0)
    except ValueError:
        pkey = 0
    if not 0 < pkey & 0x7fff or pkey > 0xffff:
        raise Wrong(f"'{text}' is no P_Key: from 0x1 to 0xffff, and 0x8000 is none")
    return pkey


def pkeys_listed(text):
    """P_Keys with commas between them, as fabric-host reads them."""
    return ",".join(f"0x{pkey_of(pkey):04x}" for pkey in text.split(","))


def meant(option, text, found):
    """Return (hosts, value) of an option for all hosts of @found or, as in "b:VALUE", for one."""
    name, colon, value = text.rpartition(":")
    if colon and name not in found:
        raise Wrong(f"{option} {text}: there is no host {name}")
    return [name] if colon else list(found), value


def pkeys_of(text, hosts):
    """The partitions of --pkeys: {host: [P_Keys]}."""
    found = {host.name: [] for host in hosts}
    for part in filter(None, text.split(",")):
        names, pkey = meant("--pkeys", part, found)
        for host in names:
            found[host].append(pkey_of(pkey))
    if any(len(pkeys) > PKEYS_MAX for pkeys in found.values()):
        raise Wrong(f"--pkeys: a port has {PKEYS_MAX} besides the default")
    return found


def options_of(arguments, hosts):
    """The device options of each host's fabric-host: {host: [options]}."""
    named = named_of("--quirk", "quirk", arguments.quirk, QUIRKS, hosts)
    for host, devices in named_of("--device", "device", arguments.device, DEVICES, hosts).items():
        named[host] += [one for device in devices for one in DEVICES[device][0]]
    for text in arguments.slow:
        names, us = meant("--slow", text, named)
        if not us.isdigit() or not 0 < int(us) <= SLOW_US_MAX:
            raise Wrong(f"--slow {text}: [HOST:]MICROSECONDS, from 1 to {SLOW_US_MAX}")
        for host in names:
            named[host].append(f"slow={us}")
    return {host: [f"--limit={one}" if "=" in one else f"--quirk={one}" for one in some]
            for host, some in named.items()}


def check_ports(arguments, hosts):
    """Raise if the quirks of ports are not possible with the other options."""
    options = options_of(arguments, hosts)
    for host in hosts:
        host.is_lag = "--quirk=lag" in options[host.name]
    if any(host.is_lag for host in hosts) and (arguments.link == "ib" or arguments.here):
        raise Wrong("a bond of two interfaces (lag) is for --link roce, and not for --here")
    if any("--quirk=second-port" in some for some in options.values()) and (
            arguments.link == "ib" or arguments.ports > 1):
        raise Wrong("a device whose port 2 alone is used (second-port) is for --link roce and "
                    "--ports 1")


def named_of(option, kind, texts, known, hosts):
    """The names in an option: {host: [names]}."""
    found = {host.name: [] for host in hosts}
    for text in texts:
        names, name = meant(option, text, found)
        if name not in known:
            raise Wrong(f"{option} {text}: there is no such {kind}; there are: {', '.join(known)}")
        for host in names:
            found[host].append(name)
    return found


def check_subnets(arguments, hosts):
    """Raise if this InfiniBand configuration is impossible."""
    is_ib = arguments.link == "ib"
    if not is_ib and (arguments.lmc or arguments.subnets > 1 or arguments.pkeys):
        raise Wrong("--lmc, --subnets and --pkeys are for --link ib")
    if not 1 <= arguments.subnets <= min(SUBNETS_MAX, len(hosts)):
        raise Wrong(f"--subnets {arguments.subnets}: from 1 to the number of hosts, and "
                    f"{SUBNETS_MAX} at most")
    if is_ib and (len(hosts) * arguments.ports + 1) << arguments.lmc > LID_ROUTER:
        raise Wrong(f"--lmc {arguments.lmc}: there are not that many LIDs for {len(hosts)} hosts")
    ip_pkey = pkey_of(arguments.ip_pkey)
    if any(ip_pkey not in (PKEY_DEFAULT, *pkeys)
           for pkeys in pkeys_of(arguments.pkeys, hosts).values()):
        raise Wrong(f"--ip-pkey {arguments.ip_pkey}: not all hosts are in that partition (--pkeys)")


def check(arguments, hosts):
    """Raise if options are impossible together."""
    check_subnets(arguments, hosts)
    check_ports(arguments, hosts)
    if not 576 <= arguments.mtu <= 65000:
        raise Wrong(f"--mtu {arguments.mtu}: from 576 to 65000")
    if arguments.here and arguments.ports != 1:
        raise Wrong("--here is for hosts with one port")
    if arguments.here and len(hosts) != 1 and arguments.link != "ib":
        raise Wrong("--here is for --hosts 1, or for --link ib, whose devices need no addresses")
    if arguments.link == "ib" and arguments.wire == "roce":
        raise Wrong("--wire roce is for --link roce: InfiniBand has no UDP")
    if arguments.link == "ib" and arguments.pcap:
        raise Wrong("--pcap is for --link roce: InfiniBand has no RoCE v2 packets")


def command_of(text, hosts):
    """Parse "a:COMMAND" or "a&:COMMAND"."""
    name, colon, command = text.partition(":")
    background = name.endswith("&")
    host = next((host for host in hosts if host.name == name.rstrip("&")), None)
    if not colon or not command.strip():
        raise Wrong(f"'{text}' is no command: HOST:COMMAND is, as in 'a:rping -s'")
    if not host:
        raise Wrong(f"'{text}': there is no host {name.rstrip('&')} in this fabric of "
                    + ", ".join(host.name for host in hosts))
    return Command(host, command, background)
