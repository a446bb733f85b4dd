# SPDX-License-Identifier: BSD-2-Clause
"""A root of Debian 13 with the programs of table.py, kept in the lab's cache, and purecm built in
it. enter() plays rows there."""
import dataclasses
import os
from pathlib import Path
import sys

import table

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lab"))

from lablib import LabError, userland  # noqa: E402
from lablib.release import COMPILERS, PROGRAMS, RELEASES  # noqa: E402

SKIPPED = 77
WHERE = "PURECM_PROGRAMS_RELEASE"
PARTS = ("lib/librdmacm.so.1.5.0", "tools/cmportd/cmportd", "tools/fabric/fabric-host",
         "tools/fabric/fabric", *(f"tools/fabric/lib/{name}" for name in (
             "libibverbs.so.1", "libibumad.so.3", "libfabric-ipoib.so", "libfabric-blocking.so",
             "libfabric-view.so")))

# Arguments: the root, the checkout, a program and its arguments, which run in the root. It becomes
# the root of a mount namespace, as nobody may make a user namespace in a chroot.
ENTER = """
set -e
root=$1; checkout=$2; shift 2
mount --bind "$root" "$root"
mount -t tmpfs tmpfs "$root/tmp"
chmod 1777 "$root/tmp"
mkdir -p "$root$checkout"
mount --bind "$checkout" "$root$checkout"
cd "$root"
mount -t proc proc proc
mount --rbind /dev dev
mount --rbind /sys sys
mkdir -p .old
pivot_root . .old
umount -l .old
exec env LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
"""


def release():
    """Return the Release of the lab's that has all programs of the table."""
    rows = [row for row in table.rows_of("trixie") if not row.absent]
    packages = {package for row in rows for package in row.package.split()}
    return dataclasses.replace(RELEASES["trixie"], name="trixie-programs", packages=tuple(
        sorted({*PROGRAMS, *COMPILERS, *packages, "python3", "libnl-route-3-dev", "binutils"})))


def enter(arguments):
    """Run this program again in the root, on what is built there. Does not return."""
    if os.geteuid():
        print("skipped: only root can make a root of Debian 13")
        sys.exit(SKIPPED)
    build = userland.build_or_exit(release(), PARTS)
    os.environ[WHERE] = "trixie"
    os.execvp("unshare", ["unshare", "--mount", "sh", "-c", ENTER, "sh",
                          str(userland.root_of(release())), str(ROOT), "/usr/bin/python3", "-B",
                          str(ROOT / "tests/programs/run.py"), *arguments, "--build", str(build)])
