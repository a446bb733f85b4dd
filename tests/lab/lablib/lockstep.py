# SPDX-License-Identifier: BSD-2-Clause
"""Two hosts whose CPUs execute instructions in step, so that time between them does not depend on
the machine: see tests/bench/lockstep.c."""
import mmap
import os
import struct

WORDS = 7  # of struct shared
IS_ON, DELIVERY_US, NOTIFY = range(3)


class Lockstep:
    """For Lab(lockstep=...). The hosts run freely until begin() and after end().

    plugin: the built tests/bench/lockstep.c
    delivery_us: how long a host stands still that has sent a packet, so that the other has it
    """

    def __init__(self, plugin, delivery_us=1500):
        self.plugin = plugin
        self._fd = os.memfd_create("lockstep")
        os.truncate(self._fd, 8 * WORDS)
        self._memory = mmap.mmap(self._fd, 8 * WORDS)
        self._put(DELIVERY_US, delivery_us)

    def _put(self, word, value):
        struct.pack_into("=Q", self._memory, 8 * word, value)

    def options(self, number):
        """Return QEMU's words for the CPU of host number 1 or 2."""
        # "sleep=on": an idle host's clock goes on with the machine's.
        return ["-accel", "tcg,thread=single", "-icount", "shift=2,sleep=on", "-cpu", "max",
                "-plugin", f"file={self.plugin},shared=/proc/{os.getpid()}/fd/{self._fd},"
                f"number={number - 1}"]

    def begin(self, hosts):
        """Run both hosts in step."""
        found = {host.run("grep -w vp_notify /proc/kallsyms", check=True, timeout=60).stdout
                 .split()[0] for host in hosts}
        if len(found) != 1:
            raise RuntimeError("the hosts' kernels have modules at different addresses")
        self._put(NOTIFY, int(found.pop(), 16))
        self._put(IS_ON, 1)

    def end(self):
        """Run the hosts freely."""
        self._put(IS_ON, 0)
