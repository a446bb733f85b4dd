#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The packages of the commit before this one, replaced by this one's while 1,000 connections live,
then removed, purged and installed again: on a host of the lab that systemd runs, whose peer has
stock's connection manager.

Prints one line per check and then "N passed, N failed, N skipped". Exit status: 77 without
PURECM_TEST_LONG, root, mmdebstrap, the lab or git, and for a commit that changes the protocol
between library and cmportd, after which programs have to be started again.
"""
import argparse
from pathlib import Path
import shutil
import subprocess
import sys

import roots
from roots import ROOT

for folder in ("lab", "portd"):
    sys.path.insert(0, str(ROOT / "tests" / folder))

from adjacent import PROTO, git, version_of  # noqa: E402
from lablib import Lab  # noqa: E402
from packages import STOCK  # noqa: E402
import systemd_lab  # noqa: E402
from systemd_lab import same  # noqa: E402

HELD, MORE, PORT = 1000, 50, 7700
PACKAGES = ("cmportd", "purecm-librdmacm1", "purecm")
APT = "env DEBIAN_FRONTEND=noninteractive apt-get -o APT::Sandbox::User=root -q -y " \
    "--no-install-recommends --allow-downgrades " \
    "-o Dir::State::Lists=/run/apt -o Dir::Cache=/run/apt"


# All that packages need is there, and a slow host need not read what a thousand others consist of:
# neither the lists of Debian, nor more of dpkg's than what is replaced.
SMALL = """
set -e
rm -f /usr/sbin/policy-rc.d
mkdir -p /run/apt/partial /run/apt/archives/partial /run/dpkg/info /run/dpkg/triggers \\
    /run/dpkg/updates
cd /var/lib/dpkg
cp status diversions statoverride arch /run/dpkg 2>/dev/null || true
cp -r alternatives /run/dpkg
cp info/format info/librdmacm* info/rdmacm-utils* info/libc-bin* /run/dpkg/info
cp triggers/* /run/dpkg/triggers
sed -i '/man-db/d' /run/dpkg/triggers/File
mount --bind /run/dpkg /var/lib/dpkg
"""


class Host(systemd_lab.Host):
    """A host whose purecm comes by packages: those of a folder, "old" and "new"."""

    def __init__(self, guest, folder):
        guest.run(SMALL, timeout=120).check()
        super().__init__(guest)
        self.folder = folder
        self.stock, = (folder / "stock").glob("*.deb")
        self.hold, = (folder / "tree").glob("usr/lib/*/purecm/certify/hold")

    def apt(self, words):
        return self.run(f"{APT} {words}", timeout=900)

    def install(self, which):
        return self.apt("install --reinstall " + " ".join(
            f"{self.folder}/{which}/{name}_*.deb" for name in PACKAGES))


def the_commit_before_is_installed_and_serves(host):
    host.install("old")
    host.run("systemctl is-active cmportd.socket")
    host.ping()
    host.pid()


def it_is_upgraded_under_1000_connections(host):
    server = host.peer.start([str(host.hold), "server", host.peer.addr4, str(PORT)], timeout=900)
    server.wait_for_output("^ready", timeout=60)
    client = host.guest.start(host.inside(
        f"{host.hold} client {host.peer.addr4} {PORT} {HELD} {MORE}"), timeout=900)
    try:
        client.wait_for_output("^held", timeout=300)
        before = host.pid()
        host.install("new")
        after = host.pid()
        same(before != after, True)
        if not client.alive:
            raise AssertionError(f"the client ended: {client.output()[-1000:]}")
        holder = host.guest.run(f"pgrep -f '^{host.hold} client'").check().stdout.strip()
        host.guest.run(f"kill -USR1 {holder}").check()
        client.wait_for_output(f"^complete {HELD + MORE} established 0 disconnected", timeout=300)
        host.ping()
        same(host.pid(), after)
        host.guest.run(f"kill -USR1 {holder}").check()
        client.wait(300).check()
        same(f"ended {HELD + MORE} established {HELD + MORE} disconnected" in client.output(),
             True)
    finally:
        client.stop()
        server.stop()


def stock_takes_the_place_of_the_library_again(host):
    host.apt(f"install {host.stock}")
    same(host.is_true("dpkg -s purecm-librdmacm1 | grep -q 'ok installed'"), False)
    same(host.is_true("systemctl is-active cmportd.socket"), True)


def purged_it_leaves_no_process_socket_or_unit(host):
    host.apt("purge cmportd purecm purecm-librdmacm1")
    same(host.guest.run("pgrep -x cmportd").stdout, "")
    same(host.is_true("test -e /run/purecm/cmportd.sock"), False)
    same(host.is_true("systemctl cat cmportd.socket"), False)


def installed_again_it_serves(host):
    host.install("new")
    host.ping()


CHECKS = (the_commit_before_is_installed_and_serves, it_is_upgraded_under_1000_connections,
          stock_takes_the_place_of_the_library_again, purged_it_leaves_no_process_socket_or_unit,
          installed_again_it_serves)


def build_packages(args, memory, folder):
    """Build the packages of a commit and of this tree in one root, into old and new of a folder,
    with stock's library in stock, and what the program's new package has in tree."""
    roots.copy_commit(args.base, memory / "trees/old")
    roots.copy_tree(memory / "trees/new")
    roots.make(args.release, memory / "root")
    print(roots.enter(memory / "root", f"""
        apt-get -qq update
        for which in old new; do
            cp -r /shared/trees/$which /root/
            cp /shared/trees/new/tools/packaging/build-deb /root/$which/tools/packaging/
            /root/$which/tools/packaging/build-deb --here --into /shared/$which >/root/log 2>&1 ||
                {{ tail -n 40 /root/log; exit 1; }}
        done
        mkdir /shared/stock
        cd /shared/stock
        apt-get -o APT::Sandbox::User=root -qq download {STOCK[args.release]}
        """, shared=memory), end="")
    shutil.rmtree(folder, ignore_errors=True)
    for which in ("old", "new"):
        shutil.copytree(memory / which / args.release, folder / which)
    shutil.copytree(memory / "stock", folder / "stock")
    program, = (folder / "new").glob("purecm_*.deb")
    subprocess.run(["dpkg-deb", "--extract", program, folder / "tree"], check=True)


def play(args):
    """Upgrade with the packages of a folder, which hosts of all releases see: below the build."""
    release = "own" if args.release == "bookworm" else args.release
    with Lab({"a": "stock", "b": "purecm"}, release=release) as lab:
        host = Host(lab.b, args.packages)
        host.peer = lab.a
        return [systemd_lab.run(function, host) for function in CHECKS]


def why_not(args):
    if roots.why_not("ten minutes"):
        return roots.why_not("ten minutes")
    if systemd_lab.why_not(args.build):
        return systemd_lab.why_not(args.build)
    if not shutil.which("git") or not (ROOT / ".git").exists():
        return "not in a git checkout with its history"
    old = version_of(git("show", f"{args.base}:{PROTO}.h"))
    new = version_of((ROOT / f"{PROTO}.h").read_text(encoding="utf-8"))
    if old != new:
        return f"the protocol of cmportd had version {old} at {args.base}, and has {new}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("release", choices=STOCK)
    parser.add_argument("--base", default="HEAD~1", help="the commit to come from")
    parser.add_argument("--packages", type=Path, help="a folder from an earlier run, to save time")
    args = parser.parse_args()
    if why_not(args):
        print(f"skipped: {why_not(args)}")
        return roots.SKIPPED
    if not args.packages:
        with roots.folder_in_memory() as memory:
            args.packages = args.build.resolve() / "upgrade" / args.release
            build_packages(args, memory, args.packages)
    args.packages = args.packages.resolve()
    passed = play(args)
    print(f"{sum(passed)} passed, {len(passed) - sum(passed)} failed, 0 skipped")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
