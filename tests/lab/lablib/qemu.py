# SPDX-License-Identifier: BSD-2-Clause
"""Starts one emulated machine; guest.py calls it. All its connections are sockets of ours that it
inherits, so that nothing lies in the file system and nothing is left when a process dies."""
import os
import shutil
import socket
import subprocess

from .errors import LabError
from .faults import NIC_ID
from .qmp import Monitor

QEMU = "qemu-system-x86_64"

# Mostly for speed: under emulation each of the kernel's precautions costs boot time or rate.
KERNEL_ARGS = (
    "console=ttyS0", "panic=-1", "mitigations=off", "nokaslr", "tsc=reliable", "clocksource=tsc",
    "random.trust_cpu=on", "audit=0", "apparmor=0", "selinux=0", "nowatchdog", "loglevel=4",
    "net.ifnames=0", "cryptomgr.notests=1", "no_timer_check", "init_on_alloc=0",
    "hardened_usercopy=off", "rcupdate.rcu_expedited=1")


class Machine:
    """A running QEMU and our ends of its sockets: control, console and terminal."""

    def __init__(self, image, config, variables, link):
        """
        config: LabConfig
        variables: LAB_* of the guest, see ../guest/
        link: LinkEnd, which stays the caller's; None without another guest
        """
        self.control, control = socket.socketpair()
        self.console, console = socket.socketpair()
        self.terminal, terminal = socket.socketpair()
        monitor_end, monitor = socket.socketpair()
        self.monitor = Monitor(monitor_end)
        ends = {"control": control, "console": console, "terminal": terminal,
                "monitor": monitor}
        argv = pdeathsig() + arguments(image, config, variables, link, ends)
        inherited = [end.fileno() for end in ends.values()]
        if link:
            inherited.append(link.fileno())
        try:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, pass_fds=inherited,
                                            stdout=console, stderr=console,
                                            start_new_session=True)
        except FileNotFoundError:
            self.close_sockets()
            raise LabError(f"{QEMU} is missing: run `tests/lab/lab doctor`") from None
        finally:
            for end in ends.values():
                end.close()

    def stop(self):
        """End QEMU at once: a guest has nothing to save."""
        self.process.kill()
        self.process.wait()

    def close_sockets(self):
        for end in (self.control, self.console, self.terminal, self.monitor):
            end.close()


def pdeathsig():
    """Return the command that makes QEMU die with us, even when we are killed."""
    setpriv = shutil.which("setpriv")
    if not setpriv:
        raise LabError("setpriv is missing: run `apt-get install util-linux`")
    return [setpriv, "--pdeathsig", "KILL", "--"]


def arguments(image, config, variables, link, ends):
    """Return QEMU's command line."""
    number = int(variables["LAB_NUMBER"])
    words = [f'{name}="{value}"' for name, value in variables.items()]
    argv = [
        QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-name", f"lab-{variables['LAB_NAME']}", "-M", "q35,vmport=off,hpet=off,usb=off",
        *config.acceleration(number), "-smp", smp(config.cpus), "-m", str(config.memory_mib),
        "-kernel", str(image.kernel).replace(",", ",,"),
        "-initrd", str(image.initramfs).replace(",", ",,"),
        "-append", " ".join((*KERNEL_ARGS, *config.clock(), *words)),
        *virtfs("hostroot", config.root),
        *(word for n, path in enumerate(config.shares) for word in virtfs(f"share{n}", path)),
        "-device", "virtio-serial-pci",
        "-device", "virtconsole,chardev=terminal",
        "-device", "virtserialport,chardev=control,name=lab.control",
        "-serial", "chardev:console",
        *network(link, config.nics, number),
        "-mon", "chardev=monitor,mode=control",
    ]
    for name, end in ends.items():
        argv += ["-chardev", f"socket,id={name},fd={end.fileno()}"]
    return argv


def virtfs(tag, path):
    """Return the option that shares a folder, read-only."""
    # multidevs=remap: file systems mounted below it are shared as well.
    return ["-virtfs", f"local,path={path.replace(',', ',,')},mount_tag={tag},security_model=none,"
            "readonly=on,multidevs=remap"]


def smp(cpus):
    """Return the option for the CPUs, one of them never plugged in.

    With room for a single one QEMU leaves out the guest's memory barriers, also those between the
    guest and its devices, which run in another thread: now and then a virtio queue stands still.
    """
    return f"{cpus},maxcpus={cpus + 1}"


def network(link, nics, number):
    """Return the options for a guest's network interfaces and what they are plugged into: the
    cable, or a hub, which has the cable if there is one and more interfaces than one."""
    cable = f"dgram,id=cable,local.type=fd,local.str={link.fileno()}" if link else ""
    options = ["-netdev", cable] if cable else []
    if cable and nics > 1:
        options += ["-netdev", "hubport,id=uplink,hubid=0,netdev=cable"]
    for nic in range(nics):
        plug = "cable"
        if not cable or nics > 1:
            plug = f"plug{nic}"
            options += ["-netdev", f"hubport,id={plug},hubid=0"]
        options += ["-device", f"virtio-net-pci,netdev={plug},mac={mac(number, nic)},romfile=,"
                    f"id={NIC_ID}{nic or ''},speed=10000,duplex=full"]
    return options


def mac(number, nic=0):
    """Return the hardware address of an interface of guest number 1, 2 ..."""
    return f"52:54:00:77:{nic:02x}:{number:02x}"


def cpu_count():
    """Return how many CPUs each of two guests gets by default: never more than we may use."""
    return 2 if len(os.sched_getaffinity(0)) >= 4 else 1
