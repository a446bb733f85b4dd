# SPDX-License-Identifier: BSD-2-Clause
"""Fresh roots of Debian releases in memory, which tests enter in copies of their own. All mounts
are in a mount namespace of this process and gone when it ends, in whatever way.
"""
import contextlib
import os
from pathlib import Path
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
ROOT = Path(__file__).resolve().parents[2]
OWN_MOUNTS = "PURECM_TEST_OWN_MOUNTS"

# Arguments: the folder of the root, a folder to mount on, a script, a folder that is /shared.
ENTER = """
mount -t tmpfs tmpfs "$2"
mkdir "$2/upper" "$2/work" "$2/root"
mount -t overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" overlay "$2/root"
cd "$2/root"
mount -t proc proc proc
mount --rbind /dev dev
mount --rbind /sys sys
mkdir shared
mount --bind "$4" shared
mkdir .old
pivot_root . .old
umount -l .old
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \\
    DEBIAN_FRONTEND=noninteractive bash -euc "$3"
"""


def why_not(what):
    """Return why no root can be made or entered here, None if it can."""
    if not os.environ.get("PURECM_TEST_LONG"):
        return f"{what}; PURECM_TEST_LONG=1 or tools/check --long runs it"
    if os.geteuid():
        return "only root can make a root"
    if not shutil.which("mmdebstrap"):
        return "mmdebstrap is missing: apt-get install mmdebstrap"
    return None


@contextlib.contextmanager
def folder_in_memory():
    """Yield a folder in memory, where also temporary files of commands are. The program begins
    again, in a mount namespace of its own."""
    if OWN_MOUNTS not in os.environ:
        sys.stdout.flush()
        os.environ[OWN_MOUNTS] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])
    with tempfile.TemporaryDirectory(prefix="purecm-roots-") as folder:
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        try:
            yield Path(folder)
        finally:
            os.environ["TMPDIR"] = tempfile.tempdir = "/tmp"
            subprocess.run(["umount", "-l", folder], check=True)


def make(release, folder, *options, include=()):
    """Make a root of a release."""
    subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", "--skip=cleanup/apt",
                    *(f"--include={name}" for name in include),
                    "--customize-hook=cp /etc/resolv.conf \"$1/etc\"",
                    "--customize-hook=echo force-unsafe-io >\"$1/etc/dpkg/dpkg.cfg.d/unsafe-io\"",
                    "--customize-hook=chmod 755 \"$1\"", *options, release, folder],
                   check=True, timeout=1800)


def enter(root, script, timeout=1800, shared=None):
    """Run a script of bash in a copy of a root, where a folder is /shared. Return: what it
    printed."""
    with tempfile.TemporaryDirectory(prefix="copy-") as place, \
            tempfile.TemporaryDirectory(prefix="shared-") as nothing:
        done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh",
                               "-euc", ENTER, "sh", root, place, script, shared or nothing],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, timeout=timeout)
    if done.returncode:
        raise AssertionError(f"status {done.returncode}: {script}\n{done.stdout[-6000:]}")
    return done.stdout


def copy_commit(commit, folder):
    """Copy what git has of a commit."""
    folder.mkdir(parents=True)
    tar = subprocess.run(["git", "-C", ROOT, "archive", commit], stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "-C", folder, "--extract"], input=tar.stdout, check=True)


def copy_tree(folder):
    """Copy what git has of this checkout, with what is not committed yet."""
    listing = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others",
                              "--exclude-standard"], check=True, capture_output=True).stdout
    tar = subprocess.run(["tar", "-C", ROOT, "--null", "--files-from=-", "--create"], input=listing,
                         stdout=subprocess.PIPE, check=True).stdout
    folder.mkdir(parents=True)
    subprocess.run(["tar", "-C", folder, "--extract"], input=tar, check=True)


def summary(result):
    """Print the closing line of a unittest result. Return: the exit status."""
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0
