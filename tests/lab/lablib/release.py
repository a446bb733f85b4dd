# SPDX-License-Identifier: BSD-2-Clause
"""The Debian releases whose kernel, and userland, a lab can have: a row each."""
import dataclasses

from .errors import LabError

# The programs that tests run in a guest, and the tools that build purecm.
PROGRAMS = ("iproute2", "kmod", "procps", "psmisc", "util-linux", "python3-minimal", "tcpdump",
            "ibverbs-providers", "ibverbs-utils", "rdmacm-utils", "librdmacm1", "perftest", "qperf",
            "python3-pyverbs", "iputils-ping", "ethtool", "systemd")
COMPILERS = ("gcc", "libc6-dev", "make", "pkg-config", "meson", "ninja-build", "librdmacm-dev",
             "libibverbs-dev", "libibumad-dev", "libnl-3-dev", "libpcap-dev", "check",
             "libncurses-dev", "libdeflate-dev", "zlib1g-dev", "libseccomp-dev",
             "libmicrohttpd-dev")


@dataclasses.dataclass(frozen=True)
class Release:
    """A release of Debian.

    name: what a test and the command line call it
    suite: what the mirror calls it; None for the host's own, whose root the guests then have
    packages: of the root that guests have otherwise
    """

    name: str
    suite: str | None
    packages: tuple = ()

    @property
    def is_own(self):
        """Whether guests have the host's own root."""
        return self.suite is None


RELEASES = {
    row.name: row for row in (
        Release("own", None),                               # Debian 12: Linux 6.1, rdma-core 44
        Release("trixie", "trixie", PROGRAMS + COMPILERS),  # Debian 13: Linux 6.12, rdma-core 56
        Release("sid", "sid", PROGRAMS + COMPILERS),        # the newest of both
    )}

OWN = RELEASES["own"]


def named(name):
    """Return the Release of that name."""
    if name not in RELEASES:
        raise LabError(f"there is no release {name!r}; there are {', '.join(RELEASES)}")
    return RELEASES[name]
