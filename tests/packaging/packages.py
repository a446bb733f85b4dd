#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The Debian packages of one release: builds them in a fresh root, and installs, uses, replaces and
removes them in another, of which each test has a copy of its own.

Ends with a line "N passed, N failed, N skipped". Exit status: 77 without PURECM_TEST_LONG, root or
mmdebstrap.
"""
import argparse
from pathlib import Path
import re
import subprocess
import sys
import unittest

import roots
from roots import ROOT

STOCK = {"bookworm": "librdmacm1", "trixie": "librdmacm1t64"}  # the library's package
GNU_CPU = {"arm64": "aarch64"}
HERE = {}  # what main() was told, and the folder of the root

# What the packages and the tests depend on, so that a copy of the root needs no mirror for it;
# rdmacm-utils brings stock's librdmacm1.
IN_ROOT = ("rdmacm-utils", "ibverbs-providers", "python3", "libibumad-dev", "libibverbs-dev",
           "libnl-3-dev", "libnl-route-3-dev", "libpcap-dev", "libncurses-dev", "kmod", "mount",
           "dpkg-dev", "gcc", "libc6-dev", "pkgconf", "apt-utils", "libdeflate-dev", "zlib1g-dev",
           "libseccomp-dev", "libmicrohttpd-dev", "autopkgtest")

PRELUDE = """
install() { apt-get install -qq --no-install-recommends "$@" >/dev/null; }
ours() { for name; do set -- "$@" "/packages/${name}"_*.deb; shift; done; install "$@"; }
installed() { dpkg-query -W -f='${db:Status-Status}\\n' "$1" 2>/dev/null | grep -qx installed; }
library_of() {
    dpkg -S "$(realpath "$(ldd "$1" | sed -n 's/.*librdmacm.* => \\(\\S*\\).*/\\1/p')")" |
        sed 's/:.*//'
}
as_user() { setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=/nonexistent "$@"; }
files() {
    find / -xdev \\( -path /proc -o -path /sys -o -path /packages -o -path /tmp \\) -prune -o \\
        \\( -name '*purecm*' -o -name '*cmportd*' \\) -print
}
"""

RPING = """as_user purecm fabric run 'a:rping -s -C 3 -v' 'b:rping -c -a 10.77.0.1 -C 3 -v'\n"""


def in_root(script):
    """Run a script in a copy of the root. Return: what it printed."""
    return roots.enter(HERE["root"], PRELUDE + script)


def stock():
    return STOCK[HERE["release"]]


class Packages(unittest.TestCase):
    def test_the_programs_leave_the_systems_library_alone(self):
        library = in_root("ours purecm cmportd purecm-fabric; library_of /usr/bin/rping")
        self.assertEqual(library, stock() + "\n")

    def test_the_fabric_runs_purecm_although_stock_is_the_systems(self):
        told = in_root("ours purecm cmportd purecm-fabric\n" + RPING)
        self.assertIn("b| ping data: rdma-ping-2", told)

    def test_purecm_run_takes_its_own_copy(self):
        maps = in_root("ours purecm cmportd; purecm run -- cat /proc/self/maps")
        self.assertRegex(maps, r"/usr/lib/[^/]+/purecm/librdmacm\.so\.1")

    def test_the_library_replaces_stocks_and_programs_stay(self):
        library = in_root("ours purecm-librdmacm1 cmportd; installed rdmacm-utils; apt-get check\n"
                          f"! installed {stock()}\n"
                          "library_of /usr/bin/rping")
        self.assertTrue(library.endswith("\npurecm-librdmacm1\n"), library)

    def test_rping_runs_for_an_ordinary_user_over_the_systems_library(self):
        told = in_root("ours purecm-librdmacm1 purecm cmportd purecm-fabric\n"
                       + (ROOT / "tools/packaging/debian/tests/rping").read_text(encoding="utf-8"))
        self.assertIn("b| ping data: rdma-ping-2", told)

    def test_the_doctor_takes_both_copies_of_the_library_for_one(self):
        told = in_root("ours purecm-librdmacm1 purecm cmportd; purecm doctor || true\n")
        self.assertIn("programs use purecm's library", told)

    def test_installing_stocks_library_gives_it_back(self):
        library = in_root("ours purecm-librdmacm1 cmportd\n"
                          f"install {stock()}; installed rdmacm-utils\n"
                          "! installed purecm-librdmacm1\n"
                          "library_of /usr/bin/rping")
        self.assertEqual(library, stock() + "\n")

    def test_removing_the_library_leaves_no_program_without_one(self):
        in_root("ours purecm-librdmacm1 cmportd; apt-get remove -qq purecm-librdmacm1 >/dev/null\n"
                "! installed purecm-librdmacm1; ! installed rdmacm-utils; apt-get check\n")

    def test_the_socket_is_enabled_and_the_service_waits_for_it(self):
        links = in_root("ours cmportd; find /etc/systemd -name 'cmportd*'")
        self.assertEqual(links, "/etc/systemd/system/sockets.target.wants/cmportd.socket\n")

    def test_purging_leaves_nothing_behind(self):
        left = in_root("files >/tmp/before; ours purecm cmportd purecm-librdmacm1 purecm-fabric "
                       "purecm-dev purecm-doc purecm-modules\n"
                       "mkdir /run/purecm; touch /run/purecm/state # as cmportd under systemd\n"
                       "apt-get purge -qq '*purecm*' cmportd >/dev/null\n"
                       "files | grep -vxFf /tmp/before || true")
        self.assertEqual([line for line in left.splitlines() if line.startswith("/")], [])

    def test_they_can_be_installed_again(self):
        told = in_root("ours purecm cmportd purecm-librdmacm1 purecm-fabric\n"
                       "apt-get purge -qq purecm cmportd purecm-librdmacm1 purecm-fabric "
                       f"{stock()}+ >/dev/null\n"
                       "ours purecm cmportd purecm-librdmacm1 purecm-fabric\n" + RPING)
        self.assertIn("b| ping data: rdma-ping-2", told)

    def test_modules_are_ruled_only_by_their_package(self):
        rules = ("{ modprobe --showconfig; cat /usr/lib/modules-load.d/* /lib/modules-load.d/*; } "
                 "2>/dev/null | grep -c '^install ib_cm /bin/false\\|^ib_umad$' || true\n")
        told = in_root("ours purecm cmportd purecm-librdmacm1\n" + rules + "ours purecm-modules\n"
                       + rules + "apt-get purge -qq purecm-modules >/dev/null\n" + rules)
        counts = [line for line in told.splitlines() if line.isdigit()]
        self.assertEqual([counts[0] == "0", counts[1] != "0", counts[2] == "0"], [True] * 3, told)

    def test_the_doctor_knows_an_installation_removed_in_part(self):
        told = in_root("ours purecm-librdmacm1 purecm cmportd purecm-modules\n"
                       f"apt-get purge -qq purecm-librdmacm1 {stock()}+ >/dev/null\n"
                       "purecm doctor || true\n"
                       "apt-get purge -qq cmportd >/dev/null; purecm doctor || true\n")
        told = " ".join(told.split())
        self.assertIn("/usr/lib/modprobe.d/purecm.conf bars the kernel's modules", told)
        self.assertIn("does not run, and is not installed", told)

    def test_a_program_is_compiled_and_runs(self):
        in_root("ours purecm purecm-dev cmportd; ! installed purecm-librdmacm1\n"
                + (ROOT / "tools/packaging/debian/tests/compile").read_text(encoding="utf-8"))

    def test_a_program_depends_on_what_it_uses(self):
        program = """
cd /tmp; mkdir debian; printf 'Source: x\\n\\nPackage: x\\nArchitecture: any\\n' >debian/control
printf '#include <purecm/purecm.h>\\n#include <rdma/rdma_cma.h>\\n%s\\n' \\
    "int main(void) { return !CALL; }" >x.c
cc x.c -lrdmacm -o x; dpkg-shlibdeps -O x
"""
        needs = in_root("ours purecm-librdmacm1 purecm purecm-dev cmportd\n"
                        + program.replace("CALL", "rdma_create_event_channel()"))
        self.assertIn("librdmacm1 (>= 1.0.15)", needs)
        self.assertNotIn("purecm", needs)
        needs = in_root("ours purecm-librdmacm1 purecm purecm-dev cmportd\n"
                        + program.replace("CALL", "purecm_reject_str(8)"))
        self.assertIn("purecm-librdmacm1 (>= 0.3.0)", needs)

    def test_autopkgtest_passes(self):
        told = in_root("""
cd /tree; cp -r tools/packaging/debian debian
version=$(dpkg-deb -f /packages/purecm_*.deb Version)
printf 'purecm (%s) unstable; urgency=low\\n\\n  * x\\n\\n -- x <x@example.org>  %s\\n' \\
    "$version" "$(date -R)" >debian/changelog
rm -f /packages/*-dbgsym_*
autopkgtest --no-built-binaries /packages/*.deb . -- null 2>&1
""")
        self.assertEqual(set(re.findall(r"^(rping|compile) +(\w+)", told, re.MULTILINE)),
                         {("rping", "PASS"), ("compile", "PASS")}, told[-3000:])

    def test_the_programs_say_the_version_of_the_package(self):
        told = in_root("ours purecm cmportd; purecm --version; "
                       "/usr/libexec/purecm/cmportd --version; dpkg-query -W purecm")
        versions = re.findall(r"(\d+\.\d+\.\d+)(?:~deb\d+)?$", told, re.MULTILINE)
        self.assertEqual((len(versions), len(set(versions))), (3, 1), told)


def wrong_with(packages, arch):
    """Yield what is wrong with packages that were cross built; nothing can be installed here."""
    control = (ROOT / "tools/packaging/debian/control").read_text(encoding="utf-8")
    for name, kind in re.findall(r"^Package: (.*)\nArchitecture: (.*)$", control, re.MULTILINE):
        found = list(packages.glob(f"{name}_*_{'all' if kind == 'all' else arch}.deb"))
        if len(found) != 1:
            yield f"{name}: {len(found)} packages"
        listing = "".join(subprocess.run(["dpkg-deb", "--contents", path], capture_output=True,
                                         text=True, check=True).stdout for path in found)
        if re.search(r"/lib/[^/ ]+-linux-gnu", listing) and kind != "all" and \
                f"/lib/{GNU_CPU[arch]}-linux-gnu" not in listing:
            yield f"{name}: has files of another architecture"


def cross_built(folder, release, arch):
    """Build packages for another architecture and look at them. Return: the exit status."""
    subprocess.run([ROOT / "tools/packaging/build-deb", "--release", release, "--arch", arch,
                    "--into", folder], check=True, timeout=3600)
    wrong = list(wrong_with(Path(folder) / release, arch))
    print("\n".join([*wrong, f"{int(not wrong)} passed, {len(wrong)} failed, 0 skipped"]))
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("release", choices=["bookworm", "trixie"])
    parser.add_argument("--packages", type=Path, help="a folder of packages, which are not built")
    parser.add_argument("--arch", choices=GNU_CPU, help="cross build for this one, no more")
    parser.add_argument("--only", help="tests whose names contain this")
    args = parser.parse_args()
    HERE.update(vars(args))
    reason = roots.why_not("four minutes")
    if reason:
        print(f"skipped: {reason}")
        return roots.SKIPPED
    with roots.folder_in_memory() as folder:
        if args.arch:
            return cross_built(folder, args.release, args.arch)
        packages = args.packages or folder / args.release
        if not args.packages:
            subprocess.run([ROOT / "tools/packaging/build-deb", "--release", args.release,
                            "--into", folder], check=True, timeout=3600)
        HERE["root"] = folder / "root"
        roots.copy_tree(folder / "tree")
        roots.make(args.release, HERE["root"], "--customize-hook=mkdir \"$1/packages\"",
                   f"--customize-hook=copy-in '{folder}/tree' /",
                   f"--customize-hook=cp '{packages.resolve()}'/*.deb \"$1/packages\"",
                   include=IN_ROOT)
        result = unittest.main(argv=sys.argv[:1] + (["-k", args.only] if args.only else []),
                               exit=False).result
    return roots.summary(result)


if __name__ == "__main__":
    sys.exit(main())
