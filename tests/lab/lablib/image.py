# SPDX-License-Identifier: BSD-2-Clause
"""Makes what a guest boots from: kernel, module tree and initramfs, kept in a cache folder.

Debian's generic kernel package is downloaded and unpacked, never installed. The cache is good as
long as the package version and the files that made it (this one and guest/) stay the same. Each
release has a folder of its own in it.
"""
import contextlib
import dataclasses
import fcntl
import hashlib
import json
import lzma
import os
from pathlib import Path
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import time

from . import cpio, release as releases
from .apt import Apt
from .errors import LabError
from .shellout import command, one_of

LAB_DIR = Path(__file__).resolve().parent.parent
CHECKOUT = LAB_DIR.parent.parent
GUEST_DIR = LAB_DIR / "guest"
META_PACKAGE = "linux-image-amd64"
IN_USE = "in-use"
KERNEL_PACKAGES = ("linux-image-", "linux-base-", "linux-binary-", "linux-modules-")

# What init loads before it has a root file system; with what these depend on.
BOOT_MODULES = ("virtio_pci", "virtio_net", "virtio_console", "9pnet_virtio", "9p", "overlay")

# Programs of busybox that init uses.
APPLETS = ("sh", "cat", "cp", "insmod", "ip", "mkdir", "mount", "sleep", "switch_root", "tr")

# Folders and files of the packages that a lab may need; the whole is six times the size.
KEPT = ("boot/vmlinuz-*", "lib/modules/*/vmlinuz", "lib/modules/*/modules.*") + tuple(
    f"lib/modules/*/kernel/{part}" for part in (
        "arch/*", "crypto/*", "lib/*", "net/*", "fs/*", "block/*", "mm/*",
        "drivers/virtio/*", "drivers/infiniband/*", "drivers/nvme/*", "drivers/block/*",
        "drivers/char/*", "drivers/net/*.ko*", "drivers/net/bonding/*", "drivers/net/ipvlan/*",
        "drivers/target/*", "drivers/scsi/scsi_*.ko*"))


# Open files whose locks tell other labs which images to leave alone.
held = []


@dataclasses.dataclass(frozen=True)
class Image:
    """Where the parts of a prepared image lie."""

    folder: Path
    version: str
    release: str

    def hold(self):
        """Keep other labs from removing the image while this process lives."""
        file = open(self.folder / IN_USE, "a")
        fcntl.flock(file, fcntl.LOCK_SH)
        held.append(file)

    @property
    def kernel(self):
        return self.folder / "vmlinux"

    @property
    def initramfs(self):
        return self.folder / "initramfs.cpio"

    @property
    def modules(self):
        return self.folder / "root/lib/modules" / self.release


def say(text):
    """Print one line of progress, apart from what a test prints itself."""
    print(f"lab: {text}", file=sys.stderr, flush=True)


def cache_folder():
    """Return the folder that images are kept in: $PURECM_LAB_CACHE or build/lab-image."""
    return Path(os.environ.get("PURECM_LAB_CACHE") or CHECKOUT / "build/lab-image").resolve()


def prepare(release=releases.OWN):
    """Return the Image of a release to boot from; make it first if the cache has no valid one."""
    with locked_cache(release) as cache:
        image = cached(release)
        if image is None:
            drop_old(cache)
            image = make(release)
        image.hold()
        return image


@contextlib.contextmanager
def locked_cache(release):
    """Hold a lock on a release's folder in the cache, so that two labs do not prepare at once.
    Yields the folder."""
    cache = cache_folder() / release.name
    if '"' in str(cache):
        raise LabError(f"the cache folder {cache} has a double quote in its name; "
                       "choose another with PURECM_LAB_CACHE")
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(f"the cache folder {cache} cannot be made ({error.strerror}); "
                       "choose another with PURECM_LAB_CACHE") from None
    with open(cache / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another lab that prepares {cache}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield cache


def recipe_digest():
    """Return a digest of every file that decides what an image holds."""
    digest = hashlib.sha256()
    for path in sorted([*GUEST_DIR.iterdir(), Path(__file__), Path(cpio.__file__)]):
        if path.is_file():
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def image_folder(release):
    """Return the folder for images of a release that were made by the present recipe."""
    return cache_folder() / release.name / f"image-{recipe_digest()[:12]}"


def cached(release):
    """Return the Image in the cache, or None if there is none, or apt offers another kernel."""
    folder = image_folder(release)
    try:
        stamp = json.loads((folder / "stamp.json").read_text())
    except (OSError, ValueError):
        return None
    if not in_use(folder) and not is_current(release, stamp):
        return None
    return Image(folder, stamp["version"], stamp["release"])


def in_use(folder):
    """Whether a lab runs from the image in folder; see Image.hold()."""
    try:
        with open(folder / IN_USE) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    return False


def drop_old(cache):
    """Remove all images of a release that no lab runs from."""
    for folder in cache.glob("image-*"):
        if not in_use(folder):
            shutil.rmtree(folder)


def is_current(release, stamp):
    """Whether apt still offers the kernel in stamp; a host where apt fails keeps what it has."""
    try:
        return apt_of(release).show(META_PACKAGE).get("Version") in (None, stamp["version"])
    except LabError:
        return True


# --- the kernel's packages ---------------------------------------------------------------------


def apt_of(release):
    """Return the Apt of a release, with lists that are not old."""
    apt = Apt(release.suite, cache_folder() / release.name / "apt")
    apt.refresh()
    return apt


def kernel_packages(release):
    """Return (version, names) of the packages that linux-image-amd64 stands for now."""
    apt = apt_of(release)
    fields = apt.show(META_PACKAGE)
    names = kernel_dependencies(fields)
    for name in names:  # which grows
        names += [part for part in kernel_dependencies(apt.show(name)) if part not in names]
    if not names:
        raise LabError(f"apt knows no {META_PACKAGE}: run `apt-get update`; the lab needs "
                       "Debian's own package sources (main)")
    return fields["Version"], sorted(names)


def kernel_dependencies(fields):
    """Return the names of packages with parts of a kernel that a package depends on."""
    names = [part.split()[0] for part in fields.get("Depends", "").split(",") if part.split()]
    return [name for name in names if name.startswith(KERNEL_PACKAGES)]


def make(release):
    """Make a new image in the cache. Return: it."""
    started = time.monotonic()
    version, packages = kernel_packages(release)
    folder = image_folder(release)
    folder.mkdir()
    debs = [fetch(release, package, version) for package in packages]
    for deb in debs:
        unpack(deb, folder / "root")
    for old in set(folder.parent.glob("*.deb")) - set(debs):
        old.unlink()
    kernel = one_of(folder / "root/lib/modules", "*").name
    command(["depmod", "-b", folder / "root", kernel])
    image = Image(folder, version, kernel)
    image.kernel.write_bytes(bare_kernel(one_of(folder / "root", "**/vmlinuz*")))
    image.initramfs.write_bytes(initramfs(image))
    (folder / "stamp.json").write_text(json.dumps({"version": version, "release": kernel}))
    say(f"image ready in {folder} after {time.monotonic() - started:.1f} s")
    return image


def fetch(release, package, version):
    """Return the path of the package in the cache; download it if it is not there."""
    cache = cache_folder() / release.name
    deb = cache / f"{package}_{version.replace(':', '%3a')}_amd64.deb"
    if not deb.exists():
        say(f"downloading {package} {version}, 15 to 110 MB")
        apt_of(release).download(package, version, cache)
    return deb


def kept(name):
    """Return whether a lab may need a package's file, or one in a folder that KEPT names."""
    return any(KEPT_PATTERN[pattern].match(name) for pattern in KEPT)


KEPT_PATTERN = {pattern: re.compile(re.escape(pattern).replace(r"\*", "[^/]*") + "(/.*)?$")
                for pattern in KEPT}


def unpack(deb, root):
    """Unpack what KEPT names of a package into the folder root. Below usr/ or not is the same."""
    say(f"unpacking {deb.name}")
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as dpkg:
        with tarfile.open(fileobj=dpkg.stdout, mode="r|") as tar:
            for member in tar:
                member.name = member.name.removeprefix("./").removeprefix("usr/")
                if kept(member.name):
                    tar.extract(member, root)
        # The end of an archive is padded; unread, it would break dpkg-deb's pipe.
        dpkg.stdout.read()
    if dpkg.returncode:
        raise LabError(f"{deb} cannot be unpacked; remove it and run `tests/lab/lab prepare`")


def bare_kernel(path):
    """Return the ELF kernel inside a bzImage: decompressing it under emulation takes seconds."""
    data = path.read_bytes()
    # The kernel's boot protocol: sectors of set-up code, then where the payload is in what follows.
    offset, length = struct.unpack_from("<II", data, 0x248)
    start = (data[0x1f1] + 1) * 512 + offset
    elf = decompressed(data[start:start + length], path)
    if not elf.startswith(b"\x7fELF"):
        raise LabError(f"{path} does not hold an ELF kernel")
    return elf


def decompressed(data, path):
    """Return what data holds, whichever of Debian's ways to compress a kernel it is."""
    if data.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMADecompressor().decompress(data)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        # The last four bytes are the kernel's own: the size of what comes out.
        done = subprocess.run(["zstd", "-dcq"], input=data[:-4], stdout=subprocess.PIPE,
                              check=False)
        if done.returncode == 0:
            return done.stdout
    raise LabError(f"{path} is compressed in a way that is neither xz nor zstd, or is damaged")


# --- the initramfs -----------------------------------------------------------------------------


def initramfs(image):
    """Return the archive that the guest's kernel unpacks at its start."""
    modules = in_load_order(image.modules, BOOT_MODULES)
    busybox = shutil.which("busybox")
    if not busybox:
        raise LabError("busybox is missing: run `apt-get install busybox-static`")
    archive = cpio.Archive()
    for name in ("bin", "modules", "lab", "proc", "sys", "dev"):
        archive.folder(name)
    archive.file("bin/busybox", Path(busybox).read_bytes(), 0o755)
    for applet in APPLETS:
        archive.link(f"bin/{applet}", "busybox")
    archive.file("init", (GUEST_DIR / "init").read_bytes(), 0o755)
    for path in sorted(GUEST_DIR.iterdir()):
        if path.is_file() and path.name != "init":
            archive.file(f"lab/{path.name}", path.read_bytes(), 0o755)
    for path in modules:
        archive.file(f"modules/{plain_name(path)}", module_bytes(path), 0o644)
    archive.file("modules.order", "".join(f"{plain_name(p)}\n" for p in modules).encode(), 0o644)
    return archive.finish()


def plain_name(path):
    """Return the name of a module's file when it is not compressed."""
    return path.name.removesuffix(".xz")


def module_bytes(path):
    """Return a module that busybox can load, which decompresses none."""
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def in_load_order(tree, names):
    """Return the paths of the named modules and of all they depend on, each after its needs.
    What is built into the kernel is not among them."""
    depends = {}
    for line in (tree / "modules.dep").read_text().splitlines():
        module, needs = line.split(":")
        depends[module_name(module)] = (module, needs.split())
    built_in = {module_name(line) for line in (tree / "modules.builtin").read_text().splitlines()}
    order = []
    for name in names:
        if name in built_in:
            continue
        if name not in depends:
            raise LabError(f"the kernel package has no module {name}: {tree}")
        module, needs = depends[name]
        # modules.dep names direct and indirect needs, the deepest last.
        for path in [*reversed(needs), module]:
            if tree / path not in order:
                order.append(tree / path)
    return order


def module_name(path):
    """Return the name of a module by its file."""
    return Path(path).name.removesuffix(".xz").removesuffix(".ko")
