#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The library of one commit with cmportd of another, on the soft fabric: this tree and the last
release, this tree and the commit before the last change of their protocol. If PORTD_VERSION is the
same they work together and replace each other under live connections; if not, each refuses the
other in plain words. In either case this tree's cmportd ends the connections of programs that were
killed together with the other's, or says that it cannot read them.

Prints "N passed, N failed, N skipped". Exit status: 1 if a test failed, 77 without
PURECM_TEST_LONG, a git repository, or a fabric.
"""
import argparse
import os
from pathlib import Path
import re
import subprocess
import sys
import tempfile

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "fabric"))

from hosts import ROOT, SKIPPED, run_on_fabric, run_tests  # noqa: E402

PROTO = "lib/portd/proto/proto"
VERSION = re.compile(r"^#define PORTD_VERSION\s+(\d+)", re.MULTILINE)
LIMIT_S = 60
PORT, HELD, MORE = 7700, 100, 10

# What a host does: the build whose library it has, and the one whose cmportd the library finds.
# Libraries before 9f7b1075 take the fabric's entries in infiniband_mad for nodes of the kernel's,
# those before e098b2f0 also its device in infiniband, so these are taken away.
HOST = """
umount /sys/class/infiniband_mad /sys/class/infiniband || true
place=$PURECM_FABRIC/installed
mkdir -p $place/lib $place/tools/cmportd
cp -d {library}/lib/librdmacm.so.1 {library}/lib/librdmacm.so.1.5.0 $place/lib
ln -s {first}/tools/cmportd/cmportd $place/tools/cmportd
lib="env LD_LIBRARY_PATH=$place/lib:$LD_LIBRARY_PATH PURECM_LOG=warn"
served_by() {{
    for one in /proc/[0-9]*; do
        tr '\\0' ' ' <$one/cmdline | grep -q "^cmportd --socket=$PURECM_FABRIC/" || continue
        echo ${{one#/proc/}} $(readlink $one/exe)
    done 2>/dev/null
}}
"""
REPLACE = """
$lib {hold} client 10.77.0.2 {port} {held} {more} >$PURECM_FABRIC/said 2>&1 & client=$!
until grep -sq ^held $PURECM_FABRIC/said; do sleep 0.05; kill -0 $client; done
served_by | grep " {first}/"
ln -sf {next}/tools/cmportd/cmportd $place/tools/cmportd
kill $(served_by | cut -d ' ' -f 1)
until served_by | grep " {next}/"; do sleep 0.05; kill -0 $client; done
kill -USR1 $client
until grep -q ^complete $PURECM_FABRIC/said; do sleep 0.05; kill -0 $client; done
kill -USR1 $client
wait $client
cat $PURECM_FABRIC/said
"""
# A program and its cmportd are killed, and only the state file knows of their connections.
INHERIT = """
until grep -sq ^ready $PURECM_FABRIC/../b/said; do sleep 0.05; done
$lib {hold} client 10.77.0.2 {port} {held} 1 >$PURECM_FABRIC/said 2>&1 & client=$!
until grep -sq ^held $PURECM_FABRIC/said; do
    sleep 0.05
    kill -0 $client || {{ cat $PURECM_FABRIC/said; exit 1; }}
done
served_by | grep " {first}/"
kill -STOP $client
kill -KILL $(served_by | cut -d ' ' -f 1)
while served_by | grep -q .; do sleep 0.05; done
kill -KILL $client
{next}/tools/cmportd/cmportd --idle 0 >$PURECM_FABRIC/log 2>&1 & portd=$!
server=$(cat $PURECM_FABRIC/../b/server)
for i in $(seq 200); do
    kill -USR1 $server
    sleep 0.1
    grep -q " {held} disconnected" $PURECM_FABRIC/../b/said && echo inherited && break
    grep -q "stored by another version" $PURECM_FABRIC/log && echo refused && break
done
tail -n 1 $PURECM_FABRIC/../b/said
cat $PURECM_FABRIC/log
kill $portd
"""


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True,
                          check=True).stdout.strip()


def version_of(text):
    return int(VERSION.search(text)[1])


def last_release():
    """Return the last tag, or the commit before that which began this version of CHANGELOG.md."""
    tags = git("tag", "--merged", "HEAD~1", "--sort=-creatordate", "--list", "v*").split()
    if tags:
        return tags[0]
    heading = re.search(r"^## [\d.]+ \(", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
                        re.MULTILINE)[0]
    return git("log", "--format=%h", f"-S{heading}", "--", "CHANGELOG.md").split()[-1] + "~1"


def before_the_protocol_changed():
    return git("log", "-1", "--format=%h", "--", f"{PROTO}.c", f"{PROTO}.h") + "~1"


class Pair:
    """This tree's build, and another commit's."""

    def __init__(self, build, commit, folder):
        self.build, self.commit = build, commit
        self.other = folder / commit.strip("~1") / "build"
        source = self.other.parent
        source.mkdir()
        tar = subprocess.run(["git", "-C", ROOT, "archive", commit], stdout=subprocess.PIPE,
                             check=True)
        subprocess.run(["tar", "-C", source, "--extract"], input=tar.stdout, check=True)
        for command in (["meson", "setup", self.other, source, "-Dtests=false", "-Dwerror=false"],
                        ["ninja", "-C", self.other, "-j2", "lib/librdmacm.so.1.5.0",
                         "tools/cmportd/cmportd"]):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, check=False)
            if done.returncode:
                raise SystemExit(f"{commit} cannot be built: {done.stdout[-3000:]}")
        texts = [(tree / f"{PROTO}.h").read_text(encoding="utf-8") for tree in (source, ROOT)]
        self.versions = [version_of(text) for text in texts]
        print(f"{commit}: protocol {self.versions[0]}, here {self.versions[1]}", flush=True)

    def host(self, library, first, script):
        return HOST.format(library=library, first=first) + script

    def run(self, *hosts, gap="1"):
        done = run_on_fabric(self.build, LIMIT_S, "--gap", gap, *hosts, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout


def they_talk(pair):
    status, told = pair.run(
        "a&:" + pair.host(pair.build, pair.other, "$lib rping -s -C 3 -v"),
        "b:" + pair.host(pair.other, pair.build, "$lib rping -c -a 10.77.0.1 -C 3 -v; served_by"))
    assert status == 0 and "ping data: rdma-ping-2" in told, told
    assert f" {pair.build}/tools/cmportd/cmportd" in told, told


def they_replace_each_other(pair):
    for first, last in ((pair.other, pair.build), (pair.build, pair.other)):
        replace = REPLACE.format(hold=f"{pair.build}/tools/certify/hold", port=PORT, held=HELD,
                                 more=MORE, first=first, next=last)
        status, told = pair.run(
            f"b&:exec {pair.build}/tools/certify/hold server 10.77.0.2 {PORT}",
            "a:set -e\n" + pair.host(first, first, replace))
        all_of_them = HELD + MORE
        assert status == 0, told
        assert f"complete {all_of_them} established 0 disconnected" in told, told
        assert f"ended {all_of_them} established {all_of_them} disconnected" in told, told


def connections_of_the_other_are_ended_or_refused_in_words(pair):
    same = pair.versions[0] == pair.versions[1]
    for first, last in ((pair.other, pair.build), (pair.build, pair.other))[:1 + same]:
        inherit = INHERIT.format(hold=f"{pair.build}/tools/certify/hold", port=PORT, held=HELD,
                                 first=first, next=last)
        status, told = pair.run(
            f"b&:echo $$ >$PURECM_FABRIC/server; exec {pair.build}/tools/certify/hold server "
            f"10.77.0.2 {PORT} >$PURECM_FABRIC/said",
            "a:set -e\n" + pair.host(first, first, inherit))
        words = told.split()
        assert "inherited" in words or ("refused" in words and not same), (status, told)
        print(f"{pair.commit}: {'inherited' if 'inherited' in words else 'refused'}", flush=True)


def they_refuse_each_other_in_words(pair):
    theirs, ours = pair.versions
    for library, first, versions in ((pair.other, pair.build, (ours, theirs)),
                                     (pair.build, pair.other, (theirs, ours))):
        status, told = pair.run("a:" + pair.host(library, first, "$lib rping -s -C 1; exit 3"))
        said = "this cmportd speaks version {}, the library version {}".format(*versions)
        assert status and said in " ".join(told.split()), told


def play(pair):
    same = pair.versions[0] == pair.versions[1]
    tests = (they_talk, they_replace_each_other) if same else (they_refuse_each_other_in_words,)
    return run_tests((*tests, connections_of_the_other_are_ended_or_refused_in_words), pair)


def why_not():
    if not os.environ.get("PURECM_TEST_LONG"):
        return "five minutes; PURECM_TEST_LONG=1 or tools/check --long runs it"
    if subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD~1"], capture_output=True,
                      check=False).returncode:
        return "not in a git checkout with its history"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--base", help="another commit, instead of the two")
    args = parser.parse_args()
    if why_not():
        print(f"skipped: {why_not()}")
        return SKIPPED
    bases = [args.base] if args.base else [last_release(), before_the_protocol_changed()]
    with tempfile.TemporaryDirectory(prefix="purecm-adjacent-") as folder:
        statuses = [play(Pair(args.build.resolve(), base, Path(folder))) for base in bases]
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main())
