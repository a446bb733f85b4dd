# SPDX-License-Identifier: BSD-2-Clause
"""Packages of a Debian release, by apt: of the host's own, or of another with lists and sources of
its own in a folder of the cache. Nothing is installed, and the host's apt never sees another's."""
import os
from pathlib import Path
import tempfile
import time

from .errors import LabError
from .shellout import command, one_of

MIRROR = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
MAX_AGE_S = 24 * 3600  # of the lists of another release

# The Release file of a mirror that is no longer updated expires; its packages are still good.
OLD_IS_GOOD = 'Acquire::Check-Valid-Until "false"'

CONFIG = """\
Dir::State "{folder}/state";
Dir::State::status "/dev/null";
Dir::Cache "{folder}/cache";
Dir::Etc::sourcelist "{folder}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Acquire::Languages "none";
{old_is_good};
"""


class Apt:
    """The packages of one release.

    suite: as the mirror calls it; None for what the host's own apt offers
    folder: for lists and sources of another suite
    kind: "deb-src" for sources instead
    """

    def __init__(self, suite, folder, kind="deb"):
        self.suite = suite
        self._kind = kind
        self._folder = Path(folder)

    def refresh(self):
        """Fetch the lists of another release if they are older than a day.

        Without a mirror, lists that are there are good enough.
        """
        if not self.suite:
            return
        stamp = self._folder / "updated"
        if stamp.exists() and time.time() - stamp.stat().st_mtime < MAX_AGE_S:
            return
        for name in ("state/lists/partial", "cache/archives/partial"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        (self._folder / "apt.conf").write_text(
            CONFIG.format(folder=self._folder, old_is_good=OLD_IS_GOOD))
        (self._folder / "sources.list").write_text(
            f"{self._kind} [signed-by={KEYRING}] {MIRROR} {self.suite} main\n")
        try:
            command(["apt-get", "update", "-q"], env=self.env(),
                    advice=f"look that {MIRROR} can be reached")
        except LabError:
            if not stamp.exists():
                raise
            return
        stamp.touch()

    def show(self, package):
        """Return the fields of the newest version of a package."""
        text = command(["apt-cache", "show", "--no-all-versions", package], env=self.env(),
                       advice="run `apt-get update`; the lab needs Debian's own package sources")
        return dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)

    def download(self, package, version, folder):
        """Fetch a package into folder; it is there once it is whole. Return: its path."""
        with tempfile.TemporaryDirectory(dir=folder) as work:
            # apt fetches as user _apt when that user can write here.
            os.chmod(work, 0o777)
            command(["apt-get", "download", "-q", f"{package}={version}"], cwd=work,
                    env=self.env(),
                    advice="run `apt-get update` and look that Debian's mirror can be reached")
            deb = one_of(Path(work), "*.deb")
            return deb.rename(Path(folder) / deb.name)

    def env(self):
        """Return the environment of a command of apt."""
        own = {"APT_CONFIG": str(self._folder / "apt.conf")} if self.suite else {}
        return {**os.environ, **own}
