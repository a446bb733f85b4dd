# SPDX-License-Identifier: BSD-2-Clause
"""Makes what a guest boots from: kernel, module tree and initramfs, kept in a cache folder.

Debian's generic kernel package is downloaded and unpacked, never installed. The cache is good as
long as the package version and the files that made it (this one and guest/) stay the same.
"""
import contextlib
import dataclasses
import fcntl
import hashlib
import json
import lzma
import os
from pathlib import Path
import shutil
import subprocess
import sys
import tempfile
import time

from . import cpio
from .errors import LabError

LAB_DIR = Path(__file__).resolve().parent.parent
CHECKOUT = LAB_DIR.parent.parent
GUEST_DIR = LAB_DIR / "guest"
META_PACKAGE = "linux-image-amd64"
IN_USE = "in-use"
XZ_MAGIC = b"\xfd7zXZ\0"

# What init loads before it has a root file system; with what these depend on.
BOOT_MODULES = ("virtio_pci", "virtio_net", "virtio_console", "9pnet_virtio", "9p", "overlay")

# Programs of busybox that init uses.
APPLETS = ("sh", "cat", "cp", "insmod", "ip", "mkdir", "mount", "sleep", "switch_root")

# Folders and files of the package that a lab may need; the whole is six times the size.
KEPT = ("boot/vmlinuz-*", "boot/config-*", "lib/modules/*/modules.*") + tuple(
    f"lib/modules/*/kernel/{part}" for part in (
        "arch/*", "crypto/*", "lib/*", "net/*", "fs/*", "block/*", "mm/*",
        "drivers/virtio/*", "drivers/infiniband/*", "drivers/nvme/*", "drivers/block/*",
        "drivers/char/*", "drivers/net/*.ko", "drivers/target/*"))


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


def prepare():
    """Return the Image to boot from; make it first if the cache has no valid one."""
    cache = cache_folder()
    if '"' in str(cache):
        raise LabError(f"the cache folder {cache} has a double quote in its name; "
                       "choose another with PURECM_LAB_CACHE")
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(f"the cache folder {cache} cannot be made ({error.strerror}); "
                       "choose another with PURECM_LAB_CACHE") from None
    with locked(cache / "lock"):
        image = cached(cache)
        if image is None:
            drop_old(cache)
            image = make(cache)
        image.hold()
        return image


@contextlib.contextmanager
def locked(path):
    """Hold an exclusive lock on path, so that two labs do not prepare at once."""
    with open(path, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another lab that prepares {path.parent}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def recipe_digest():
    """Return a digest of every file that decides what an image holds."""
    digest = hashlib.sha256()
    for path in sorted([*GUEST_DIR.iterdir(), Path(__file__), Path(cpio.__file__)]):
        if path.is_file():
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def image_folder(cache):
    """Return the folder in the cache for images made by the present recipe."""
    return cache / recipe_digest()[:12]


def cached(cache):
    """Return the Image in the cache, or None if there is none, or apt offers another kernel."""
    folder = image_folder(cache)
    try:
        stamp = json.loads((folder / "stamp.json").read_text())
    except (OSError, ValueError):
        return None
    if not in_use(folder) and not is_current(stamp):
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
    """Remove all images that no lab runs from."""
    for folder in cache.iterdir():
        if folder.is_dir() and not in_use(folder):
            shutil.rmtree(folder)


def is_current(stamp):
    """Whether apt still offers the kernel in stamp; a host where apt fails keeps what it has."""
    try:
        return kernel_package() == (stamp["package"], stamp["version"])
    except LabError:
        return True


def kernel_package():
    """Return (name, version) of the package that linux-image-amd64 depends on now."""
    fields = dict(line.split(": ", 1)
                  for line in command(["apt-cache", "show", "--no-all-versions", META_PACKAGE])
                  .splitlines() if ": " in line)
    names = [part.split()[0] for part in fields.get("Depends", "").split(",")
             if part.strip().startswith("linux-image-")]
    if not names:
        raise LabError(f"apt knows no {META_PACKAGE}: run `apt-get update`; the lab needs "
                       "Debian 12's own package sources (main)")
    return names[0], fields["Version"]


def make(cache):
    """Make a new image in the cache. Return: it."""
    started = time.monotonic()
    package, version = kernel_package()
    folder = image_folder(cache)
    folder.mkdir()
    unpack(fetch(package, version, cache), folder / "root")
    release = one_of(folder / "root/lib/modules", "*").name
    command(["depmod", "-b", str(folder / "root"), release])
    image = Image(folder, version, release)
    image.kernel.write_bytes(bare_kernel(one_of(folder / "root/boot", "vmlinuz-*")))
    image.initramfs.write_bytes(initramfs(image))
    (folder / "stamp.json").write_text(json.dumps(
        {"package": package, "version": version, "release": release}))
    say(f"image ready in {folder} after {time.monotonic() - started:.1f} s")
    return image


def fetch(package, version, cache):
    """Return the path of the package in the cache; download it if it is not there."""
    deb = cache / f"{package}_{version.replace(':', '%3a')}_amd64.deb"
    if not deb.exists():
        for old in cache.glob("*.deb"):
            old.unlink()
        say(f"downloading {package} {version}, about 70 MB")
        download(package, version, cache)
    return deb


def unpack(deb, root):
    """Unpack what KEPT names of a package into a new folder root."""
    say(f"unpacking {deb.name}")
    root.mkdir()
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as tar:
        command(["tar", "-x", "-C", str(root), "--wildcards", "--no-wildcards-match-slash",
                 *(f"./{pattern}" for pattern in KEPT)], stdin=tar.stdout)


def download(package, version, folder):
    """Fetch the package with apt; into folder once it is whole."""
    with tempfile.TemporaryDirectory(dir=folder) as work:
        # apt fetches as user _apt when that user can write here.
        os.chmod(work, 0o777)
        command(["apt-get", "download", "-q", f"{package}={version}"], cwd=work,
                advice="run `apt-get update` and look that Debian's mirror can be reached")
        deb = one_of(Path(work), "*.deb")
        deb.rename(folder / deb.name)


def bare_kernel(path):
    """Return the ELF kernel inside a bzImage: decompressing it under emulation takes seconds."""
    data = path.read_bytes()
    start = data.find(XZ_MAGIC)
    if start < 0:
        raise LabError(f"{path} is not compressed with xz as Debian 12's kernels are")
    elf = lzma.LZMADecompressor().decompress(data[start:])
    if not elf.startswith(b"\x7fELF"):
        raise LabError(f"{path} does not hold an ELF kernel")
    return elf


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
        archive.file(f"modules/{path.name}", path.read_bytes(), 0o644)
    archive.file("modules.order", "".join(f"{p.name}\n" for p in modules).encode(), 0o644)
    return archive.finish()


def in_load_order(tree, names):
    """Return the paths of the named modules and of all they depend on, each after its needs."""
    depends = {}
    for line in (tree / "modules.dep").read_text().splitlines():
        module, needs = line.split(":")
        depends[Path(module).name.removesuffix(".ko")] = (module, needs.split())
    order = []
    for name in names:
        if name not in depends:
            raise LabError(f"the kernel package has no module {name}: {tree}")
        module, needs = depends[name]
        # modules.dep names direct and indirect needs, the deepest last.
        for path in [*reversed(needs), module]:
            if tree / path not in order:
                order.append(tree / path)
    return order


def one_of(folder, pattern):
    """Return the only path in folder that matches pattern."""
    found = list(folder.glob(pattern))
    if len(found) != 1:
        raise LabError(f"{folder} should hold one {pattern} but holds {len(found)}; "
                       "remove that folder and run `tests/lab/lab prepare`")
    return found[0]


def command(argv, advice="run `tests/lab/lab doctor`", **kwargs):
    """Run a host command. Return: its output. Raises LabError with its last words."""
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              errors="replace", check=False, **kwargs)
    except FileNotFoundError:
        raise LabError(f"{argv[0]} is missing: run `tests/lab/lab doctor`") from None
    if done.returncode:
        raise LabError(f"`{' '.join(argv)}` ended with status {done.returncode}: "
                       f"{done.stderr.strip()[-500:]}; {advice}")
    return done.stdout
