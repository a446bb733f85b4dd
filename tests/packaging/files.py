#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The packaging files against the tree: versions, symbols, what goes into which package, licences.

Ends with a line "N passed, N failed, N skipped".
"""
import argparse
import json
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from counted import summary  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
DEBIAN = ROOT / "tools/packaging/debian"
SPEC = ROOT / "tools/packaging/purecm.spec"
# The folders of the spec's macros, as patterns of a shell.
MACROS = {"_prefix": "/usr", "_bindir": "/usr/bin", "_libdir": "/usr/lib*",
          "_privatelibdir": "/usr/lib*/purecm", "_libexecdir": "/usr/libexec",
          "_datadir": "/usr/share", "_mandir": "/usr/share/man", "_includedir": "/usr/include",
          "unit_dir": "*lib/systemd/system"}
HERE = {}  # what main() was told
NOBODY = 65534

# Under the licence in LICENSE without a line that says so: what cannot hold one, or holds only
# values that a program or a tool's format prescribes.
NO_SPDX = (".md", ".json", ".png", ".svg", ".txt", ".pcap", ".pcapng", ".map", ".build", ".drill",
           ".supp", ".hex", ".yml", ".xz")
NO_SPDX_IN = ("tests/fuzz/corpus/", "tests/tools/captures/", "tests/judge/golden/",
              "tools/packaging/debian/", "docs/man/functions/", "docs/certificates/")
NO_SPDX_NAMES = ("LICENSE", "dep5", "meson_options.txt", ".clang-format", ".editorconfig",
                 ".gitignore")


def text(path):
    return path.read_text(encoding="utf-8")


def meson(what):
    return json.loads(subprocess.run(["meson", "introspect", HERE["build"], what],
                                     capture_output=True, text=True, check=True).stdout)


def meson_version():
    return re.search(r"^  version: '([\d.]+)'", text(ROOT / "meson.build"), re.MULTILINE)[1]


def releases():
    """Return the versions of CHANGELOG.md as tuples, newest first."""
    found = re.findall(r"^## (\d+)\.(\d+)\.(\d+) \(\d{4}-\d\d-\d\d\)$",
                       text(ROOT / "CHANGELOG.md"), re.MULTILINE)
    return [tuple(map(int, version)) for version in found]


def newest_release():
    """Return version and date of the newest release of CHANGELOG.md."""
    return re.search(r"^## (\S+) \((.*)\)$", text(ROOT / "CHANGELOG.md"), re.MULTILINE).groups()


def install_patterns(*paths):
    """Return what .install files take of what meson installs, as regular expressions."""
    lines = [line.split()[0] for path in paths for line in text(path).splitlines()]
    globs = [line.replace("${env:UNIT_DIR}", "*lib/systemd/system") for line in lines
             if line.startswith(("usr/", "${env:"))]
    return [re.compile("/" + re.escape(line).replace(r"\*", ".*") + "(/|$)") for line in globs]


def spec_patterns():
    """Return what the spec's packages take of what meson installs, as regular expressions."""
    lines = re.findall(r"^[%/]\S*/\S*$", text(SPEC).partition("\n%files\n")[2], re.MULTILINE)
    paths = [re.sub("%{(.*?)}", lambda macro: MACROS[macro[1]], line) for line in lines]
    return [re.compile(re.escape(path).replace(r"\*", ".*") + "(/|$)") for path in paths]


class Versions(unittest.TestCase):
    def test_the_changelog_begins_with_the_version_of_meson_build(self):
        self.assertEqual(".".join(map(str, releases()[0])), meson_version())

    def test_the_spec_has_the_version_of_meson_build(self):
        self.assertEqual(re.findall("^Version: (.*)$", text(SPEC), re.MULTILINE),
                         [meson_version()])

    def test_manual_pages_say_the_release(self):
        version, date = newest_release()
        for path in (ROOT / "docs/man").glob("*.[178]"):
            with self.subTest(path.name):
                self.assertRegex(text(path), rf'\n\.TH \S+ \d "{date}" "purecm {version}" ')

    def test_releases_are_in_order(self):
        self.assertEqual(releases(), sorted(releases(), reverse=True))

    def test_every_heading_of_the_changelog_is_a_release_but_what_is_unreleased(self):
        headings = re.findall("^## (.*)$", text(ROOT / "CHANGELOG.md"), re.MULTILINE)
        self.assertEqual(len(headings) - (headings[0] == "Unreleased"), len(releases()))

    def test_programs_say_the_version(self):
        for program in ("tools/purecm", "tools/cmportd/cmportd"):
            with self.subTest(program):
                told = subprocess.run([HERE["build"] / program, "--version"], check=True,
                                      capture_output=True, text=True).stdout
                self.assertEqual(told.split()[-1], meson_version())


class Packages(unittest.TestCase):
    def test_the_symbols_are_those_of_the_library(self):
        listed = {"@".join(line.split("@@"))
                  for line in text(ROOT / "tests/abi/symbols.txt").split()}
        nodes = {f"{node}@{node}" for node in (name.split("@")[1] for name in listed)}
        packaged = re.findall(r"^ (\S+@\S+) ", text(DEBIAN / "purecm-librdmacm1.symbols"),
                              re.MULTILINE)
        self.assertEqual(sorted(packaged), sorted(listed | nodes))

    def test_whatever_is_installed_is_in_a_package(self):
        debian = install_patterns(DEBIAN / "not-installed", *DEBIAN.glob("*.install"))
        prefix = next(option["value"] for option in meson("--buildoptions")
                      if option["name"] == "prefix")
        for patterns in debian, spec_patterns():
            for path in meson("--installed").values():
                path = "/usr" + path.removeprefix(prefix)
                self.assertTrue(any(pattern.match(path) for pattern in patterns), path)

    def test_modules_are_those_that_the_page_of_deployment_names(self):
        page = text(ROOT / "docs/deployment.md")
        conf = text(ROOT / "tools/packaging/modules/modprobe.d/purecm.conf")
        names = re.findall("^install (.+) /bin/false$", conf, re.MULTILINE)
        self.assertIn(f"modprobe -r {' '.join(names)}", page)

    def test_the_copyright_file_has_the_licence(self):
        words = text(DEBIAN / "copyright").replace("\n .\n", "\n").split()
        licence = text(ROOT / "LICENSE").partition("authors\n")[2].split()
        self.assertEqual(words[-len(licence):], licence)


@unittest.skipIf(os.geteuid(), "links of another user need root")
class Building(unittest.TestCase):
    def test_root_follows_no_link_of_another_user(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = Path(folder, "kept")
            kept.mkdir()
            Path(kept, "purecm_1.deb").touch()
            release = text(Path("/etc/os-release"))
            release = re.search(r"^VERSION_CODENAME=(\w+)", release, re.MULTILINE)[1]
            for link in Path(folder, "into"), Path(folder, "into", release):
                link.parent.mkdir(exist_ok=True)
                link.symlink_to(kept)
                os.lchown(link, NOBODY, NOBODY)
                done = subprocess.run(
                    [ROOT / "tools/packaging/build-deb", "--here", "--into", f"{folder}/into"],
                    capture_output=True, text=True, check=False)
                self.assertIn(f"{link} is a link of nobody", done.stderr)
                self.assertEqual(os.listdir(kept), ["purecm_1.deb"])
                link.unlink()


class Licences(unittest.TestCase):
    def test_every_file_says_its_licence_or_cannot(self):
        listing = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True,
                                 check=False)
        if listing.returncode:
            self.skipTest("not in a git checkout, so that there may be files of others")
        for name in listing.stdout.splitlines():
            path = ROOT / name
            if path.suffix in NO_SPDX or path.name in NO_SPDX_NAMES or \
                    name.startswith(NO_SPDX_IN) or not path.is_file():
                continue
            with self.subTest(name):
                head = path.read_bytes()[:300]
                self.assertIn(b"SPDX-License-Identifier: BSD-2-Clause", head)


    @unittest.skipUnless(shutil.which("reuse"), "reuse is missing: apt-get install reuse")
    def test_reuse_knows_licence_and_owner_of_every_file(self):
        done = subprocess.run(["reuse", "--root", ROOT, "lint"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=Path)
    HERE["build"] = parser.parse_args().build.resolve()
    result = unittest.main(argv=sys.argv[:1], exit=False).result
    return summary(result)


if __name__ == "__main__":
    sys.exit(main())
