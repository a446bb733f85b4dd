# SPDX-License-Identifier: BSD-2-Clause
"""A lab: one or two hosts, booted together and gone together."""
import dataclasses
import os
import sys
import time

from . import image, link, qemu, release as releases, tsc, userland
from .errors import LabError
from .guest import MODES, Guest


@dataclasses.dataclass(frozen=True)
class LabConfig:
    """What all guests of a lab have in common."""

    cpus: int
    memory_mib: int
    accel: str
    env: dict
    cwd: str
    root: str = "/"
    shares: tuple = ()
    nics: int = 1
    lockstep: object = None

    def acceleration(self, number):
        """Return QEMU's words for the CPU.

        With "counted" the guest's clock goes on by 2 ns with each instruction, and when there is
        nothing to do at once to the next timer: what it measures does not depend on the machine.
        """
        if self.lockstep:
            return self.lockstep.options(number)
        if self.accel == "counted":
            return ["-accel", "tcg,thread=single", "-icount", "shift=1,sleep=off", "-cpu", "max"]
        if self.accel == "tcg":
            return ["-accel", "tcg,thread=multi", "-cpu", "max"]
        return ["-accel", self.accel, "-cpu", "host"]

    def clock(self):
        """Return the kernel's words for a CPU whose time stamp counter is the machine's."""
        khz = tsc.khz() if self.accel == "tcg" and not self.lockstep else None
        return [f"tsc_early_khz={khz}"] if khz else []

    def python(self):
        """Return the interpreter for the agent: the system's, else the one that runs us."""
        if self.root != "/":
            return "/usr/bin/python3"
        system = "/usr/bin/python3"
        return system if os.access(system, os.X_OK) else os.path.realpath(sys.executable)


class Lab:
    """Context manager; boots on entry. Each host is an attribute: lab.a, lab.b.

    hosts: name -> "stock", "purecm" or "bare"; one or two of them
    cpus: per guest; 2 on a machine that has 4 or more, else 1
    boot_timeout: seconds until both must be ready
    env: variables for every command in every guest
    cwd: folder commands run in; the checkout by default
    accel: QEMU's accelerator; $PURECM_LAB_ACCEL or "tcg" by default; "counted" for a host alone
    release: of Debian, whose kernel and userland the guests have: see release.py;
        $PURECM_LAB_RELEASE or the host's own by default
    nics: network interfaces per guest, eth0, eth1 ...; all are on one wire, only eth0 is set up
    lockstep: Lockstep, for two hosts of one CPU that can execute instructions in step
    verbose: print a line on what takes long
    """

    def __init__(self, hosts=None, *, cpus=None, memory_mib=1024, boot_timeout=120, env=None,
                 cwd=None, accel=None, release=None, nics=1, lockstep=None, verbose=True):
        modes = dict(hosts or {"a": "stock", "b": "purecm"})
        check_hosts(modes)
        self.release = releases.named(release or os.environ.get("PURECM_LAB_RELEASE") or "own")
        config = LabConfig(cpus or qemu.cpu_count(), memory_mib,
                           accel or os.environ.get("PURECM_LAB_ACCEL") or "tcg",
                           dict(env or {}), str(cwd or image.CHECKOUT),
                           str(userland.root_of(self.release)), shares_of(self.release), nics,
                           lockstep)
        self.guests = {name: Guest(name, number, mode, config)
                       for number, (name, mode) in enumerate(modes.items(), start=1)}
        self._cable = ()
        self._boot_timeout = boot_timeout
        self._verbose = verbose
        self.boot_seconds = None

    def __getattr__(self, name):
        try:
            return self.__dict__["guests"][name]
        except KeyError:
            raise AttributeError(f"the lab has no host or attribute {name!r}") from None

    def __enter__(self):
        try:
            self._boot()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """End both guests. May be called twice."""
        for guest in self.guests.values():
            guest.shut_down()
        for end in self._cable:
            end.close()

    def _boot(self):
        prepared = image.prepare(self.release)
        started = time.monotonic()
        hosts = [f"{address} {guest.name}" for guest in self.guests.values()
                 for address in (guest.addr4, guest.addr6)]
        self._cable = link.cable() if len(self.guests) == 2 else ()
        for guest, end in zip(self.guests.values(), self._cable or (None,)):
            guest.prepare(prepared, hosts, end)
            guest.boot()
        for guest in self.guests.values():
            guest.wait_ready(max(30, started + self._boot_timeout - time.monotonic()))
        self.boot_seconds = time.monotonic() - started
        if self._verbose:
            image.say(f"{' and '.join(self.guests)} ready after {self.boot_seconds:.1f} s")


def shares_of(release):
    """Return the folders of the host that guests with another root see beside it."""
    if release.is_own:
        return ()
    folders = (image.CHECKOUT, image.cache_folder())
    return tuple(str(folder) for folder in folders
                 if not any(other in folder.parents for other in folders))


def check_hosts(modes):
    """Raise LabError unless a lab can be made of these."""
    if not 1 <= len(modes) <= 2:
        raise LabError(f"a lab has one or two hosts, not {len(modes)}")
    for name, mode in modes.items():
        if mode not in MODES:
            raise LabError(f"host {name}: mode {mode!r} is none of {', '.join(MODES)}")
        if not name.isidentifier() or hasattr(Lab, name) or name in ("guests", "boot_seconds"):
            raise LabError(f"{name!r} cannot be the name of a host")
