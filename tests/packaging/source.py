#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The source tarball of `meson dist`: builds and passes its tests where there is no git, and
rpmbuild makes packages of it that are cut as Debian's.

Ends with a line "N passed, N failed, N skipped". Exit status: 77 without PURECM_TEST_LONG, git or
rpmbuild.
"""
import argparse
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from files import DEBIAN, install_patterns
import roots

HERE = {}  # what main() was told, the tarball, and a folder
# What no .install file names: debian/rules and debian/*.links bring it, or rpmbuild does.
BROUGHT = re.compile(r"/purecm/(librdmacm\.so\.1|rsocket)|/usr/share/licenses/|/\.build-id|"
                     r"/purecm-(agent|export)\.1|/usr/share/doc/|/usr/lib/mod")


def run(*command, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, **options)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}\n{done.stdout[-5000:]}")
    return done.stdout


class Tarball(unittest.TestCase):
    def test_it_builds_and_passes_without_git(self):
        folder = HERE["folder"] / "unpacked"
        folder.mkdir()
        run("tar", "-C", folder, "-xf", HERE["tarball"])
        tree, = folder.iterdir()
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder)}
        run("meson", "setup", "build", cwd=tree, env=environment)
        run("ninja", "-C", "build", "-j2", cwd=tree, env=environment)
        told = run("meson", "test", "-C", "build", "--no-rebuild", "--suite", "unit", "--suite",
                   "style", "--suite", "docs", cwd=tree, env=environment)
        self.assertRegex(told, r"\nOk: +[1-9]\d+")

    def test_rpmbuild_makes_packages_of_debians_cut(self):
        top = HERE["folder"] / "rpm"
        run("rpmbuild", "-ta", "--nodeps", "--define", f"_topdir {top}", HERE["tarball"])
        packages = {re.sub("-devel$", "-dev", path.name.rsplit("-", maxsplit=2)[0]): path
                    for path in top.glob("RPMS/*/*.rpm")}
        self.assertEqual(sorted(packages), sorted(
            re.findall("^Package: (.*)$", (DEBIAN / "control").read_text(encoding="utf-8"),
                       re.MULTILINE)))
        for name, path in packages.items():
            patterns = install_patterns(DEBIAN / f"{name}.install")
            for line in run("rpm", "-q", "--list", "-p", path).splitlines():
                line = line.replace("/usr/lib64/", "/usr/lib/any/")
                known = BROUGHT.search(line) or any(pattern.match(line) for pattern in patterns)
                self.assertTrue(known or self.is_folder_of(line, patterns), f"{name}: {line}")

    @staticmethod
    def is_folder_of(path, patterns):
        return any(pattern.match(path + "/x") or pattern.pattern.startswith(re.escape(path) + "/")
                   for pattern in patterns)


def why_not():
    if not os.environ.get("PURECM_TEST_LONG"):
        return "five minutes; PURECM_TEST_LONG=1 or tools/check --long runs it"
    for program, package in (("git", "git"), ("rpmbuild", "rpm")):
        if not shutil.which(program):
            return f"{program} is missing: apt-get install {package}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--only", help="tests whose names contain this")
    args = parser.parse_args()
    if why_not():
        print(f"skipped: {why_not()}")
        return roots.SKIPPED
    with tempfile.TemporaryDirectory(prefix="purecm-source-") as folder:
        run("meson", "dist", "-C", args.build, "--no-tests", "--allow-dirty", "--formats", "xztar")
        HERE["folder"] = Path(folder)
        HERE["tarball"], = (args.build.resolve() / "meson-dist").glob("*.tar.xz")
        result = unittest.main(argv=sys.argv[:1] + (["-k", args.only] if args.only else []),
                               exit=False).result
    return roots.summary(result)


if __name__ == "__main__":
    sys.exit(main())
