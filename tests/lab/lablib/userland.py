# SPDX-License-Identifier: BSD-2-Clause
"""The root file system that guests of another release have, kept in the cache, and purecm built in
it."""
import hashlib
import os
from pathlib import Path
import shutil
import subprocess
import sys
import time

from . import image
from .apt import KEYRING, MIRROR, OLD_IS_GOOD
from .errors import LabError
from .shellout import command

# What it mounts in the root is gone when it ends, in whatever way.
MMDEBSTRAP = (("unshare", "--mount", "mmdebstrap", "--mode=root") if os.geteuid() == 0 else
              ("mmdebstrap", "--mode=unshare"))
MAX_AGE_S = 30 * 24 * 3600  # then the release is looked at again


def root_of(release):
    """Return the root of a release; make it first if the cache has none."""
    if release.is_own:
        return Path("/")
    with image.locked_cache(release) as cache:
        root = cache / f"root-{digest(release)}"
        if not is_recent(root):
            make(release, cache, root)
        return root


def digest(release):
    return hashlib.sha256(" ".join(release.packages).encode()).hexdigest()[:12]


def is_recent(root):
    stamp = root / "etc/purecm-lab"
    return stamp.exists() and time.time() - stamp.stat().st_mtime < MAX_AGE_S


def make(release, cache, root):
    """Make the root with mmdebstrap, beside an old one, which is kept if that fails."""
    started = time.monotonic()
    new = cache / "root-new"
    remove(new)
    image.say(f"making a root of Debian's {release.suite}, about 250 MB to download")
    try:
        command([*MMDEBSTRAP, "--quiet", "--variant=minbase",
                 f"--include={','.join(release.packages)}", f"--aptopt={OLD_IS_GOOD}",
                 f"--keyring={KEYRING}", release.suite, new, MIRROR],
                advice="run `tests/lab/lab doctor`")
    except LabError as error:
        if not (root / "etc/purecm-lab").exists():
            raise
        image.say(f"the root that is there is kept: {error}")
        return
    (new / "etc/purecm-lab").write_text(release.name + "\n")
    for old in cache.glob("root-*"):
        if old != new:
            remove(old)
    new.rename(root)
    image.say(f"root ready in {root} after {time.monotonic() - started:.1f} s")


def remove(folder):
    if folder.exists():
        shutil.rmtree(folder)


def build_or_exit(release, targets):
    """As build(), but end the program if it fails: with status 77 if there can be no root here."""
    try:
        root_of(release)
    except LabError as error:
        print(f"skipped: there can be no root of {release.name} here: {error}")
        sys.exit(77)
    try:
        return build(release, targets)
    except LabError as error:
        sys.exit(str(error))


def build(release, targets):
    """Build purecm in a release's root, for guests that have it. Return: the build folder, which
    is build-RELEASE of the checkout; what runs there is judged by what it does, not by its speed.

    targets: of ninja
    """
    folder = image.CHECKOUT / f"build-{release.name}"
    folder.mkdir(exist_ok=True)
    run(release, image.CHECKOUT, f"""
        cd "{image.CHECKOUT}"
        [ -e "{folder}/build.ninja" ] || meson setup -Doptimization=0 "{folder}"
        ninja -C "{folder}" {" ".join(targets)}""", "purecm does not build")
    return folder


def run(release, folder, script, failure):
    """Run a shell script in a release's root, which has this machine's folder at the same path.
    Raises LabError with what failed, and what the script printed.
    """
    root = root_of(release)
    inside = f"{root}{folder}"
    os.makedirs(inside, exist_ok=True)
    script = f"""
        set -e
        mount --bind '{folder}' '{inside}'
        mount -t proc proc '{root}/proc'
        exec chroot '{root}' /bin/sh -ec '{script}'
    """
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise LabError(f"{failure} in a root of {release.name}:\n{done.stdout[-3000:]}")
