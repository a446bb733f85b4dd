#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A newcomer's first minutes on a fresh Debian: the commands of README.md, of the container image
and of the devcontainer, in roots of the releases that they name.

Ends with a line "N passed, N failed, N skipped". Exit status: 77 without PURECM_TEST_LONG, root or
mmdebstrap.
"""
import argparse
import json
from pathlib import Path
import re
import shlex
import subprocess
import sys
import time
import unittest

import roots
from roots import ROOT

sys.path.insert(0, str(ROOT / "tests/fabric"))

import ci  # noqa: E402

HERE = {}  # the folder in memory, and what main() was told
PEOPLE = "--customize-hook=rm -rf \"$1/var/lib/apt/lists\"/*"  # as an image has them
YES = "echo 'APT::Get::Assume-Yes true;' >/etc/apt/apt.conf.d/yes\n"
LEFT = r"""
find / -xdev \( -path /proc -o -path /sys -o -path /root -o -path /tmp -o -path /.old \) \
    -prune -o \( -name '*purecm*' -o -name '*cmportd*' \) -print
"""
PING = "b| ping data: rdma-ping-2"


# Projects of others: how each is built from Debian's source, and its own tests on fabrics.
SOURCE = """
echo 'deb-src http://deb.debian.org/debian bookworm main' >/etc/apt/sources.list.d/source.list
apt-get -qq update; apt-get -qq -y build-dep {name} >/dev/null
apt-get -qq source --download-only --tar-only {name} >/dev/null
tar -xf {name}_*.orig.tar.*; cd {name}-*; (./autogen.sh; ./configure; make -j2) >/dev/null 2>&1
"""
# It has no GIDs, so on RoCE it needs rdma_cm; and it names its port before it listens, so requests
# have to be slow.
QPERF = r"""
cat >tests <<'END'
for test in $(echo rc_bi_bw rc_bw rc_lat rc_rdma_read_bw rc_rdma_read_lat rc_rdma_write_bw \
        rc_rdma_write_lat rc_rdma_write_poll_lat rc_compare_swap_mr rc_fetch_add_mr \
        ver_rc_compare_swap ver_rc_fetch_add $OTHERS); do
    src/qperf 10.77.0.1 -t 1 $OPTIONS $test >said 2>&1 && echo passed || cat said
done
END
export OPTIONS OTHERS
OPTIONS='-cm 1' purecm fabric run --faults mads:delay=200ms a\&:src/qperf 'b:. ./tests'
OTHERS='uc_bi_bw uc_bw uc_lat uc_rdma_write_bw uc_rdma_write_lat uc_rdma_write_poll_lat ud_bi_bw \
    ud_bw ud_lat' purecm fabric run --link ib a\&:src/qperf 'b:. ./tests'
"""
# Its scripts want the name of an interface adapter, and its programs in PATH.
DAPL = r"""
export DAT_OVERRIDE=$PWD/dat.conf PATH=$PWD/test/dapltest:$PATH
echo "fab u2.0 nonthreadsafe default $PWD/dapl/udapl/.libs/libdaplofa.so dapl.2.0 'fab0 0' ''" |
    tr "'" '"' >dat.conf
cd test/dapltest/scripts
sed -i '1s/sh$/bash/' cl.sh # which it is written for, and calls itself
purecm fabric run 'a&:bash srv.sh fab' 'b:./cl.sh 10.77.0.1 regression fab'
"""
# What each prints of a test that has passed, and how often.
PROJECTS = {"qperf": (QPERF, "b| passed\n", 12 + 21), "dapl": (DAPL, "End of Work", 14 + 1)}


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def fresh_root(release):
    """Return the folder of a root of a release, made once, with the tree in /root/purecm."""
    folder = HERE["folder"] / release
    if not folder.exists():
        tree = HERE["folder"] / "tree"
        if not tree.exists():
            roots.copy_tree(tree)
        roots.make(release, folder, PEOPLE, f"--customize-hook=copy-in '{tree}' /root",
                   "--customize-hook=mv \"$1/root/tree\" \"$1/root/purecm\"")
    return folder


def first_commands():
    """Return the commands of README.md that install, test without hardware, and remove."""
    install, remove, try_it = re.findall(r"(?:^    .*\n)+", text("README.md"), re.MULTILINE)[:3]
    return install + try_it + remove


class Docker:
    """Runs a Dockerfile's commands: each stage is a script, in a copy of the root that it names;
    what one stage has for another is in a folder that all see."""

    def __init__(self, path):
        self.stages = []
        for line in re.sub(r"\\\n", " ", text(path)).splitlines():
            word, _, rest = line.partition(" ")
            if word == "FROM":
                self.stages.append((rest.split()[0], []))
            elif word == "RUN":
                self.stages[-1][1].append(rest)
            elif word == "COPY":
                self.stages[-1][1].append(self.copy(*rest.split()))
            elif word == "ENTRYPOINT":
                self.entry = " ".join(json.loads(rest))
            elif line and not line.startswith("#"):
                raise AssertionError(f"{path}: {word} is not known here")

    @staticmethod
    def copy(*words):
        """Return the command that stands for COPY: the context is /root/purecm."""
        if words[0].startswith("--from="):
            return f"cp -r /kept{words[1]} {words[2]}"
        return f"cp -rT /root/purecm/{words[0]} {words[1]}"

    @staticmethod
    def release(image):
        """Return the release that has the content of an image of Debian's."""
        tag = image.removeprefix("debian:").removesuffix("-slim")
        return {"stable": "trixie", "12": "bookworm", "13": "trixie"}[tag]

    def script(self, after):
        """Return one script for all stages, which are of one release: each but the last leaves
        what it has in /packages; @after is run in the image."""
        *first, (_, last) = self.stages
        lines = []
        for _, commands in first:
            lines += ["(", *commands, ")", "mkdir /kept; cp -r /packages /kept/; rm -r /packages"]
        return "\n".join([*lines, *last, after])


class Newcomer(unittest.TestCase):
    def first_minutes(self, release):
        root = fresh_root(release)
        began = time.monotonic()
        told = roots.enter(root, YES + "cd /root/purecm\n" + first_commands() + LEFT)
        print(f"{release}: {time.monotonic() - began:.0f} s from a checkout to rping and back",
              flush=True)
        self.assertIn(PING, told)
        self.assertEqual([line for line in told.splitlines() if line.startswith("/")], [], told)

    def test_five_minutes_on_debian_12(self):
        self.first_minutes("bookworm")

    def test_five_minutes_on_debian_13(self):
        self.first_minutes("trixie")

    def test_the_library_becomes_the_systems_and_stocks_comes_back(self):
        told = roots.enter(fresh_root("bookworm"), YES + """
            chmod 755 /root; chown -R games: /root/purecm; cd /root/purecm
            apt-get update >/dev/null; apt-get install -qq rdmacm-utils >/dev/null
            of() {
                path=$(ldd /usr/bin/rping | sed -n 's/.*rdmacm.* => \\(\\S*\\).*/\\1/p')
                dpkg -S "$(realpath "$path")"
            }
            tools/install; stat --format 'built %Y' build/packages/*/purecm_*.deb
            tools/install --system; stat --format 'built %Y' build/packages/*/purecm_*.deb
            of; tools/install --remove; of
            setpriv --reuid=games --clear-groups rm -r build # although root has made it
            """)
        owners = re.findall(r"^(\S+):amd64: ", told, re.MULTILINE)
        self.assertEqual(owners, ["purecm-librdmacm1", "librdmacm1"], told)
        self.assertEqual(len(set(re.findall(r"^built (\d+)$", told, re.MULTILINE))), 1, told)


class Builds(unittest.TestCase):
    def equal_twice(self, release):
        told = roots.enter(fresh_root(release), """
            cp -r /root/purecm /root/another; cd /
            apt-get -qq update
            (umask 022; TZ=UTC LC_ALL=C /root/purecm/tools/packaging/build-deb --here --into /a)
            (umask 077; TZ=Pacific/Chatham LC_ALL=C.UTF-8 taskset -c 0 setarch -R \\
                /root/another/tools/packaging/build-deb --here --into /b)
            cd /a/*
            for package in *.deb; do cmp $package /b/*/$package; echo "equal $package"; done
            """)
        names = re.findall("^equal (.*)$", told, re.MULTILINE)
        self.assertGreaterEqual(len([name for name in names if "dbgsym" not in name]), 7, told)

    def test_two_builds_are_equal_bit_by_bit_on_debian_12(self):
        self.equal_twice("bookworm")

    def test_two_builds_are_equal_bit_by_bit_on_debian_13(self):
        self.equal_twice("trixie")


def repository(release):
    """Return a folder with the packages for a release, built once unless main() was given one."""
    if HERE["packages"]:
        return HERE["packages"].resolve()
    folder = HERE["folder"] / "packages" / release
    if not folder.exists():
        subprocess.run([ROOT / "tools/packaging/build-deb", "--release", release, "--into",
                        folder.parent], check=True, timeout=3600)
    return folder


class Services(unittest.TestCase):
    def play(self, name, run_last):
        """Play what a service runs: its last command, the tests, by a script."""
        path = ROOT / "docs/examples/ci" / name
        *commands, last = ci.commands_of(path)
        image = re.search(r"image:? '?(debian:\w+)", path.read_text(encoding="utf-8"))[1]
        release = Docker.release(image)
        told = roots.enter(fresh_root(release), "\n".join([
            "apt-get -qq update; apt-get install -y -qq iproute2 >/dev/null",
            "export PURECM_URL=file:///shared; mkdir /job; cd /job",
            *commands, "cat >/last <<'END'", last, "END", run_last]), shared=repository(release))
        self.assertIn("| ping data: rdma-ping-2", told)

    def test_all_that_github_runs(self):
        self.play("github.yml", "bash -e /last")

    def test_all_that_jenkins_runs(self):
        self.play("Jenkinsfile", "sh -xe /last")

    def test_all_that_gitlab_runs(self):
        self.play("gitlab.yml", shlex.join(["unshare", "-Urnm", "sh", "-ec", ci.NETWORK, "sh",
                                            "/last", ci.CONFINED]))


class Strangers(unittest.TestCase):
    def project(self, name):
        """From a root with nothing, by the first lines of the recipe, but for making packages."""
        *commands, _ = ci.commands_of(ROOT / "docs/examples/ci/github.yml")
        tests, passed, count = PROJECTS[name]
        root, packages = fresh_root("bookworm"), repository("bookworm")
        began = time.monotonic()
        told = roots.enter(root, "\n".join(["export PURECM_URL=file:///shared; mkdir /job; cd /job",
                                            *commands, SOURCE.format(name=name), tests]),
                           shared=packages)
        print(f"{name}: {time.monotonic() - began:.0f} s from an empty root to the last test",
              flush=True)
        self.assertEqual(told.count(passed), count, told[-3000:])

    def test_qperf_is_tested(self):
        self.project("qperf")

    def test_dapl_is_tested(self):
        self.project("dapl")


class Images(unittest.TestCase):
    def test_the_image_of_the_examples(self):
        docker = Docker("docs/examples/Dockerfile")
        self.assertEqual(docker.stages[-1][0], "debian:stable-slim")
        told = roots.enter(fresh_root(docker.release("debian:stable-slim")), docker.script(
            "setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=/nonexistent "
            f"{docker.entry} fabric run 'a&:rping -s -C 3 -v' 'b:rping -c -a 10.77.0.1 -C 3 -v'"))
        self.assertIn(PING, told)

    def test_the_devcontainer(self):
        docker = Docker(".devcontainer/Dockerfile")
        image = docker.stages[0][0]
        created = json.loads(text(".devcontainer/devcontainer.json"))["postCreateCommand"]
        told = roots.enter(fresh_root(docker.release(image)), docker.script(
            f"cd /root/purecm\n{created}\n"
            "meson test -C build --no-rebuild --suite unit --print-errorlogs -q"))
        self.assertRegex(told, r"Fail: +0\b")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", help="tests whose names contain this")
    parser.add_argument("--packages", type=Path, help="a folder of packages, which are not built")
    args = parser.parse_args()
    HERE.update(vars(args))
    reason = roots.why_not("ten minutes")
    if reason:
        print(f"skipped: {reason}")
        return roots.SKIPPED
    with roots.folder_in_memory() as folder:
        HERE["folder"] = folder
        result = unittest.main(argv=sys.argv[:1] + (["-k", args.only] if args.only else []),
                               exit=False).result
    return roots.summary(result)


if __name__ == "__main__":
    sys.exit(main())
