# SPDX-License-Identifier: BSD-2-Clause
"""`lab doctor`: looks for what the lab needs on this host and says how to get it."""
import os
import shutil
import subprocess

from . import image, qemu, release as releases
from .errors import LabError

NEEDED_MIB = 400
MEMORY_MIB = 3000

# Program, the Debian package that has it, and what for.
PROGRAMS = (
    (qemu.QEMU, "qemu-system-x86", "runs the hosts"),
    ("setpriv", "util-linux", "ends QEMU when the lab dies"),
    ("apt-get", "apt", "downloads the kernel"),
    ("dpkg-deb", "dpkg", "unpacks the kernel"),
    ("zstd", "zstd", "unpacks kernels of newer releases"),
    ("mmdebstrap", "mmdebstrap", "makes the root of another release"),
    ("depmod", "kmod", "lists which module needs which"),
    ("modprobe", "kmod", "loads modules in a host"),
    ("ip", "iproute2", "sets up a host's network"),
    ("tc", "iproute2", "netem()"),
    ("rdma", "iproute2", "makes a host's RDMA device"),
    ("tcpdump", "tcpdump", "capture()"),
    ("rping", "rdmacm-utils", "selftest"),
    ("ibv_devinfo", "ibverbs-utils", "looking around by hand"),
)


def main():
    """Print one line per check. Return: 0 if nothing is missing, else 1."""
    checks = [*(program(*row) for row in PROGRAMS), busybox(), verbs_provider(),
              machine_type(), kernel_package(), memory(), disk(), cached_image()]
    for good, text, cure in checks:
        print(f"{'ok  ' if good else 'BAD '} {text}" + ("" if good else f"\n     {cure}"))
    bad = sum(not good for good, _, _ in checks)
    print(f"{bad} of {len(checks)} checks failed" if bad else "nothing is missing")
    return 1 if bad else 0


def install(package):
    return f"run: apt-get install --no-install-recommends {package}"


def which(name):
    """Return the path of a program that may lie in an sbin folder outside of PATH."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def program(name, package, purpose):
    return bool(which(name)), f"{name}: {purpose}", install(package)


def busybox():
    """A guest runs busybox before it has any library, so it must be static."""
    path = shutil.which("busybox")
    text = "busybox, static: first program of a host"
    if not path:
        return False, text, install("busybox-static")
    with open(path, "rb") as file:
        dynamic = b"/lib64/ld-linux" in file.read()
    return not dynamic, text, install("busybox-static") + " (it replaces busybox)"


def verbs_provider():
    found = os.path.exists("/etc/libibverbs.d/rxe.driver")
    return found, "libibverbs' rxe provider", install("ibverbs-providers")


def machine_type():
    """-netdev dgram came with QEMU 7.2."""
    text = "QEMU 7.2 or newer, for -netdev dgram"
    try:
        version = subprocess.run([qemu.QEMU, "--version"], capture_output=True, text=True,
                                 check=True).stdout.split()[3]
        new = tuple(int(part) for part in version.split(".")[:2]) >= (7, 2)
    except (OSError, subprocess.CalledProcessError, ValueError, IndexError):
        return False, text, install("qemu-system-x86")
    return new, f"{text} (it is {version})", "the lab is made for Debian 12 or newer"


def kernel_package():
    try:
        version, names = image.kernel_packages(releases.OWN)
    except LabError as error:
        return False, "kernel package", str(error)
    return True, f"kernel package: {', '.join(names)} {version}", ""


def memory():
    with open("/proc/meminfo") as file:
        free = next(int(line.split()[1]) // 1024 for line in file if "MemAvailable" in line)
    return (free >= MEMORY_MIB, f"memory: {free} MiB available, {MEMORY_MIB} wanted",
            "stop something, or give hosts less with Lab(memory_mib=512)")


def disk():
    folder = image.cache_folder()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free >> 20
    return (free >= NEEDED_MIB, f"disk: {free} MiB free below {folder}, {NEEDED_MIB} wanted",
            "set PURECM_LAB_CACHE to a folder with more room")


def cached_image():
    folder = image.cache_folder()
    state = "ready" if image.cached(releases.OWN) else "to be made by the first boot"
    return True, f"image in {folder}: {state}", ""
