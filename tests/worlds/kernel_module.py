# SPDX-License-Identifier: BSD-2-Clause
"""Builds module/lab_dcb.c for a lab's kernel, with Debian's headers, which are not installed, and
the compiler of that kernel's release."""
from pathlib import Path
import shutil

from lablib import LabError, image, userland
from lablib.shellout import command, one_of

SOURCE = Path(__file__).resolve().parent / "module"


def build(release):
    """Return the path of the module for the kernel of a release."""
    kernel = image.prepare(release)
    folder = kernel.folder / "lab_dcb"
    headers = unpack_headers(release, kernel, folder)
    for file in SOURCE.iterdir():
        shutil.copy(file, folder)
    make = ["make", "-C", str(headers), f"M={folder}", "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"]
    if release.is_own:
        command(make, advice="apt-get install make gcc")
    else:
        userland.run(release, folder, " ".join(make), "lab_dcb.c does not build")
    return folder / "lab_dcb.ko"


def unpack_headers(release, kernel, folder):
    """Unpack the headers that belong to a kernel. Return: the folder that modules are built in."""
    root = folder / "headers"
    usr_src = root / "usr/src"
    if not root.exists():
        folder.mkdir(exist_ok=True)
        apt = image.apt_of(release)
        for package in header_packages(apt, f"linux-headers-{kernel.release}"):
            deb = apt.download(package, apt.show(package)["Version"], folder)
            command(["dpkg-deb", "-x", deb, root])
            deb.unlink()
    headers = usr_src / f"linux-headers-{kernel.release}"
    common = one_of(usr_src, "linux-headers-*-common")
    # The package names the place where it would be installed; since 7.2 as the output folder, too.
    (headers / "Makefile").write_text(f"KBUILD_OUTPUT={headers}\ninclude {common}/Makefile\n")
    return headers


def header_packages(apt, package):
    """Return the packages with the headers of a kernel, and the programs that build modules."""
    depends = apt.show(package).get("Depends")
    if not depends:
        raise LabError(f"apt knows no {package}: run `apt-get update`")
    names = [part.split()[0] for part in depends.split(",")]
    return [package] + [name for name in names if name.startswith(("linux-headers-",
                                                                   "linux-kbuild-"))]
