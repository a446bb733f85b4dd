# SPDX-License-Identifier: BSD-2-Clause
"""Plays scenarios on the lab's two hosts for run.py: host a is the client, b the server."""
import threading

import compare
from lablib import LabError, LabTimeout

# The address families as run.py names them, and which scenarios link-local addresses get.
LINK_LOCAL = ("args-ports", "bind-own", "conflict-one-process", "resolve-peer", "resolve-source",
              "resolve-bound", "resolve-scopeless", "connect-basic", "connect-own-address",
              "connect-traffic",
              "refuse-no-listener", "refuse-with-data", "disconnect-client", "external-connect",
              "destroy-connected", "datagram-lookup", "datagram-own-address", "exit-client")

# Two hosts' scenarios that IPv6 gets: what depends on addresses, and one of each other kind. With
# --long it gets all.
V6 = LINK_LOCAL + ("connect-dual-stack", "connect-two-families", "refuse-other-family",
                   "params-most-data", "params-timeout", "disconnect-server", "destroy-child",
                   "sync-connect", "state-connected", "exit-server", "datagram-other-family",
                   "datagram-refused")

# For scenarios in which an address resolves, but nobody answers; matches NO_HOST in gone.c.
GONE_MAC = "02:00:00:00:00:99"
GONE = ("10.77.0.99", "fd00:77::63", "fe80::5054:ff:fe77:63")

# Kind of route, and the last part of the networks that have it; matches resolve.c.
MULTICAST = "239.0.0.0/8"
ROUTES = (("unreachable", "198.51.100.0/24", "2001:db8:1::/48"),
          ("prohibit", "198.51.101.0/24", "2001:db8:2::/48"),
          ("blackhole", "198.51.102.0/24", "2001:db8:3::/48"))
NO_RDMA = ("198.51.103.0/24", "2001:db8:4::/48")

# Seconds: for a scenario on average, and for the slowest of those that wait for timers.
QUICK = 90
SLOW = 600


def set_up_commands(interface):
    """Yield the commands that give a host the neighbours and routes that scenarios use."""
    for address in GONE:
        yield f"ip neigh replace {address} lladdr {GONE_MAC} nud permanent dev {interface}"
    for kind, v4, v6 in ROUTES:
        yield f"ip route replace {kind} {v4}"
        yield f"ip -6 route replace {kind} {v6}"
    yield f"ip route replace {MULTICAST} dev {interface}"
    yield "modprobe dummy"
    yield "ip link show norma >/dev/null 2>&1 || ip link add norma type dummy"
    yield "ip link set norma up"
    for network in NO_RDMA:
        yield f"ip route replace {network} dev norma"


def addresses(host, family):
    """Return a host's address in a family, as the parity program takes it."""
    return {"v4": host.addr4, "v6": host.addr6,
            "ll": f"{host.link_local}%{host.interface}"}[family]


def fits(scenario, family, args):
    """Return whether a scenario is played in a family; IPv4 gets all."""
    if family == "ll":
        return scenario.name in LINK_LOCAL
    is_choice = args.sample or scenario.pair or scenario.pace != "quick"
    if family == "v6" and not args.long and is_choice:
        return scenario.name in V6
    return scenario.family in ("any", family)


class Stage:
    """A lab with one library on each host."""

    def __init__(self, lab, args, client, server):
        self.lab = lab
        self.args = args
        self.client = client
        self.server = server
        self.results = {}
        self.lock = threading.Lock()

    def library(self, mode):
        """Return the environment that makes a program use a library.

        The program may carry a run path to the build, so stock has to be named, too.
        """
        if mode == "stock":
            return {"LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu:/usr/lib64:/usr/lib"}
        return {"LD_LIBRARY_PATH": str(self.args.build / "lib")}

    def prepare(self, host, mode):
        """Give a host its mode and set-up, and make sure that the right library is loaded."""
        host.mode(mode, kill=True)
        host.run("set -e; " + "; ".join(set_up_commands(host.interface)), check=True)
        loaded = host.run([self.args.program, "library"], env=self.library(mode),
                          check=True).stdout.strip()
        ours = loaded.startswith(str(self.args.build))
        if ours != (mode == "purecm"):
            raise LabError(f"host {host.name} is to run {mode}, but the program loads {loaded}")

    def play(self, scenarios):
        """Return {(family, scenario): {side: lines}}."""
        self.prepare(self.lab.a, self.client)
        self.prepare(self.lab.b, self.server)
        server = self.lab.b.start([self.args.program, "server"], env=self.library(self.server))
        try:
            server.wait_for_output("^ready", timeout=60)
            self.play_together([s for s in scenarios if not s.alone])
            self.play_alone([s for s in scenarios if s.alone])
        finally:
            server.stop()
        return self.results

    def play_together(self, scenarios):
        """Play local and pair, quick and slow scenarios and all families side by side."""
        groups = [[s for s in scenarios if s.pair == pair and (s.pace == "quick") == quick]
                  for pair in (False, True) for quick in (False, True)]
        threads = [threading.Thread(target=self.play_group, args=(family, group))
                   for family in self.args.families for group in self.split(group_list=groups)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    @staticmethod
    def split(group_list):
        """Yield the groups, slow ones cut into single scenarios: each waits for its own timer."""
        for group in group_list:
            if group and group[0].pace != "quick":
                yield from ([scenario] for scenario in group)
            else:
                yield group

    def play_alone(self, scenarios):
        for family in self.args.families:
            for scenario in scenarios:
                self.play_group(family, [scenario])

    def command(self, family, group):
        """Return the parity client's command line for scenarios of one kind."""
        a, b = (addresses(host, family) for host in (self.lab.a, self.lab.b))
        # Scenarios may cut off the family they use.
        control = self.lab.b.addr6 if family == "v4" else self.lab.b.addr4
        kind = ["client", control] if group[0].pair else ["local"]
        return [self.args.program, *kind, a, b, *(scenario.name for scenario in group)]

    def play_group(self, family, group):
        """Play scenarios one after the other, enter what they print."""
        group = [scenario for scenario in group if fits(scenario, family, self.args)]
        if not group:
            return
        limit = sum(QUICK if s.pace == "quick" else SLOW for s in group)
        try:
            output = self.run_client(self.command(family, group), limit)
        except LabError as error:
            output = "\n".join(f"== {s.name} client\n{compare.GAVE_UP}: {error}" for s in group)
        outputs = compare.parse_output(output)
        with self.lock:
            for scenario in group:
                self.results[family, scenario.name] = outputs.get(
                    scenario.name, {"client": [f"{compare.GAVE_UP}: not played"]})

    def run_client(self, command, limit):
        """Run a parity client; what it printed counts even if it does not end."""
        process = self.lab.a.start(command, env=self.library(self.client))
        try:
            process.wait(limit)
        except LabTimeout:
            process.kill()
        if self.args.keep:
            self.keep_times(process.stderr)
        return process.stdout

    def keep_times(self, text):
        """Keep how long each scenario took, for whoever wants to know where the time goes."""
        with self.lock, open(self.args.keep / "times", "a", encoding="utf-8") as file:
            for line in text.splitlines():
                file.write(f"{self.client}/{self.server} {line}\n")
