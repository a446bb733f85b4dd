# SPDX-License-Identifier: BSD-2-Clause
"""Bad luck for a host: packet loss, links and devices that go away, hangs, crashes.

Guest inherits these, so a test writes lab.a.netem("loss 30%").
"""
import contextlib

from .errors import LabError

NIC_ID = "nic"
ETHERNETS = "$(cd /sys/class/net; echo eth?)"
CM_REQUESTS = (0x10, 0x17)
ATTRIBUTE_ID_OFFSET = 20 + 8 + 12 + 8 + 16  # after the headers of IPv4, UDP, BTH and DETH


class Netem:
    """What netem() returns: already in force; as a context manager it ends with the block."""

    def __init__(self, guest):
        self._guest = guest

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._guest.netem_clear()


class Faults:
    """Mixin of Guest, which brings run(), boot(), shut_down(), _machine and _link."""

    def netem(self, spec):
        """Treat what this host sends as tc-netem(8) says: "loss 30%", "delay 5ms reorder 25%".

        Replaces an earlier one. What the host receives is untouched: call it on the peer too.
        """
        self.run("modprobe sch_netem", check=True)
        self.run(f"tc qdisc replace dev {self.interface} root netem {spec}", check=True)
        return Netem(self)

    @contextlib.contextmanager
    def netem_of_requests(self, spec):
        """Context manager: as netem(), of the CM REQs and SIDR_REQs that this host sends by
        RoCE v2 and IPv4 only, by any of its Ethernet interfaces."""
        filters = "; ".join(f"tc filter add dev $d parent 1: u32 match u16 {attribute} 0xffff "
                            f"at {ATTRIBUTE_ID_OFFSET} flowid 1:4" for attribute in CM_REQUESTS)
        self.run(f"set -e; modprobe -a sch_netem sch_prio cls_u32; for d in {ETHERNETS}; do "
                 "tc qdisc replace dev $d root handle 1: prio bands 4; "
                 f"tc qdisc add dev $d parent 1:4 netem {spec}; {filters}; done", check=True)
        try:
            yield
        finally:
            self.run(f"for d in {ETHERNETS}; do tc qdisc del dev $d root; done", check=True)

    def netem_clear(self):
        """Send as before again; harmless if netem() was never called."""
        self.run(f"! tc qdisc show dev {self.interface} | grep -q netem || "
                 f"tc qdisc del dev {self.interface} root", check=True)

    def link_down(self):
        """Take the interface down as an administrator would; its IPv6 addresses go."""
        self.run(["ip", "link", "set", self.interface, "down"], check=True)

    def link_up(self, timeout=30):
        """Bring the interface up with all its addresses and wait until rxe has its GIDs."""
        self.run(["ip", "link", "set", self.interface, "up"], check=True)
        self.run(["ip", "address", "replace", f"{self.addr6}/64", "dev", self.interface,
                  "nodad"], check=True)
        self._settle(timeout)

    def unplug(self):
        """Pull the network cable: carrier goes, addresses stay."""
        self._monitor().execute("set_link", name=NIC_ID, up=False)
        self.wait_for(f"grep -q 0 /sys/class/net/{self.interface}/carrier")

    def plug(self, timeout=30):
        """Plug the cable in again and wait until rxe is active."""
        self._monitor().execute("set_link", name=NIC_ID, up=True)
        self.wait_for(f"grep -q 1 /sys/class/net/{self.interface}/carrier")
        self._settle(timeout)

    def rxe_del(self):
        """Remove the RDMA device; processes that use it see a device that is gone."""
        self.run(["rdma", "link", "del", self.device], check=True)

    def rxe_add(self, timeout=30):
        """Make the RDMA device again and wait until it has its GIDs."""
        self._settle(timeout, "rxe")

    def freeze(self):
        """Stop the whole host, its clock too, as if it hung; thaw() lets it go on.

        run() and start() time out in between.
        """
        self._monitor().execute("stop")

    def thaw(self):
        """End freeze()."""
        self._monitor().execute("cont")

    def crash(self):
        """End the host without a farewell on the wire, until reboot().

        Its processes are gone: they end with status -9 here.
        """
        self.shut_down("crash() ended it")
        if self._link:
            self._link.discard()

    def reboot(self, timeout=120):
        """crash(), unless that was before, and boot again, in the mode the host was in last."""
        if self._machine:
            self.crash()
        if self._link:
            self._link.deliver()
        self.boot()
        self.wait_ready(timeout)

    def _monitor(self):
        if self._machine is None:
            raise LabError(f"host {self.name} has been shut down")
        return self._machine.monitor

    def _settle(self, timeout, what="settle"):
        result = self.run(["/run/lab/mode", what], timeout=timeout)
        if not result.ok:
            raise LabError(f"host {self.name}: {result.output.strip()}")
