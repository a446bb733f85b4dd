#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `meson install` puts where, whether a library there finds its cmportd, and how that begins.

Ends with a line "N passed, N failed, N skipped".
"""
import argparse
import json
import os
from pathlib import Path
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from counted import summary  # noqa: E402

NOBODY = 65534
SERVED_S = 100
ENOENT = 2
HERE = {}  # what main() was told


def run(*command, status=0, **more):
    """Run a program to its end. Return: what it printed on both streams."""
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, timeout=600, **more)
    if done.returncode != status:
        raise AssertionError(f"{command[0]}: status {done.returncode}, not {status}: "
                             f"{done.stdout}")
    return done.stdout


def meson_options():
    """Return the option values of the build folder, by name."""
    listing = json.loads(run("meson", "introspect", HERE["build"], "--buildoptions"))
    return {option["name"]: option["value"] for option in listing}


def server_of(path):
    """Return the id of the process that listens on a socket, None if nobody does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        try:
            client.connect(str(path))
        except OSError:
            return None
        creds = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return struct.unpack("3i", creds)[0]


def wait_until(condition):
    """Return what the condition says, once it is true or time is up."""
    end = time.monotonic() + SERVED_S
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


class Case(unittest.TestCase):
    """A folder of one's own with a socket in it; whoever serves it at the end is ended."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="purecm-test-")
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        self.socket = self.folder / "s"
        self.addCleanup(self.end_server)
        # Should a test be killed, what it has started goes by itself.
        self.environment = {**os.environ, "PURECM_IDLE_S": "30"}

    def end_server(self):
        pid = server_of(self.socket)
        if pid:
            os.kill(pid, signal.SIGTERM)
            wait_until(lambda: server_of(self.socket) is None)

    def spawned_by(self, *command, **more):
        """Run a probe. Return: its answer, and the program that serves the socket then."""
        answer = int(run(*command, env=self.environment, **more))
        if answer:
            return answer, None
        pid = wait_until(lambda: server_of(self.socket))
        return answer, pid and os.readlink(f"/proc/{pid}/exe")

    def tree(self):
        """Make a folder like that of a build: lib/probe and tools/cmportd/cmportd. Return: both."""
        probe, program = self.folder / "lib/probe", self.folder / "tools/cmportd/cmportd"
        for source, copy in ((HERE["probe"], probe), (cmportd(), program)):
            copy.parent.mkdir(parents=True)
            shutil.copy2(source, copy)
        self.folder.chmod(0o755)
        return probe, program


def cmportd():
    return HERE["build"] / "tools/cmportd/cmportd"


class Installed(Case):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory(prefix="purecm-install-")
        cls.addClassCleanup(cls.holder.cleanup)
        cls.root = Path(cls.holder.name)
        run("meson", "install", "-C", HERE["build"], "--no-rebuild", "--destdir", cls.root)
        options = meson_options()
        cls.prefix = cls.root / options["prefix"].lstrip("/")
        cls.dirs = {name: cls.prefix / options[name]
                    for name in ("bindir", "libdir", "libexecdir", "includedir", "mandir",
                                 "datadir")}

    def program(self):
        return self.dirs["libexecdir"] / "purecm/cmportd"

    def units(self):
        return {unit.name: unit.read_text(encoding="utf-8")
                for unit in self.root.rglob("systemd/system/cmportd.*")}

    def test_everything_is_where_a_distribution_expects_it(self):
        for where, name in (("libdir", "librdmacm.so"), ("libdir", "librdmacm.so.1"),
                            ("libdir", "librdmacm.a"),
                            ("libdir", "pkgconfig/librdmacm.pc"),
                            ("includedir", "rdma/rdma_cma.h"),
                            ("includedir", "infiniband/ib.h"),
                            ("includedir", "purecm/purecm.h"),
                            ("libexecdir", "purecm/cmportd"),
                            ("bindir", "purecm"), ("bindir", "purecm-agent"),
                            ("bindir", "purecm-export"),
                            ("libdir", "purecm/certify/parity"),
                            ("libdir", "purecm/certify/drill/active-connect.drill"),
                            ("libdir", "purecm/drill/drill"),
                            ("libdir", "purecm/fabric/fabric-host"),
                            ("libdir", "purecm/fabric/lib/libibverbs.so.1"),
                            ("libdir", "purecm/fabric/lib/libibumad.so.3"),
                            ("mandir", "man1/purecm.1"),
                            ("mandir", "man3/rdma_connect.3"),
                            ("mandir", "man7/rdma_cm.7"),
                            ("mandir", "man8/cmportd.8"),
                            ("datadir", "bash-completion/completions/purecm"),
                            ("datadir", "doc/purecm/README.md"),
                            ("datadir", "doc/purecm/portd-protocol.md")):
            with self.subTest(name):
                self.assertTrue((self.dirs[where] / name).exists())
        self.assertEqual(set(self.units()), {"cmportd.socket", "cmportd.service"})

    def test_nothing_else_is_installed(self):
        tops = {"bin", "lib", "librdmacm", "include", "libexec", "share", self.dirs["libdir"].name}
        for path in self.root.rglob("*"):
            if path.is_file():
                self.assertTrue(tops.intersection(path.relative_to(self.root).parts), path)
                self.assertFalse(path.suffix == ".a" and path.name != "librdmacm.a", path)

    def test_the_static_library_has_the_names_of_the_shared_one(self):
        static = run("nm", "-g", "--defined-only", self.dirs["libdir"] / "librdmacm.a")
        shared = run("nm", "-D", "--defined-only", self.dirs["libdir"] / "librdmacm.so.1")
        names = {line.split()[2] for line in static.splitlines() if len(line.split()) == 3}
        self.assertEqual(names, {line.split()[2].split("@")[0] for line in shared.splitlines()
                                 if line.split()[1] != "A"})

    def test_the_version_is_one_that_programs_ask_for(self):
        text = (self.dirs["libdir"] / "pkgconfig/librdmacm.pc").read_text(encoding="utf-8")
        self.assertIn("\nVersion: 1.3.60.0\n", text)

    def test_the_unit_starts_the_program_that_was_installed(self):
        wanted = "/" + str(self.program().relative_to(self.root))
        self.assertIn(f"\nExecStart={wanted} $CMPORTD_OPTIONS\n", self.units()["cmportd.service"])

    def test_the_socket_unit_is_where_programs_look(self):
        default = run(self.program(), "--help")
        self.assertIn("ListenSequentialPacket=/run/purecm/cmportd.sock\n",
                      self.units()["cmportd.socket"])
        self.assertIn("/run/purecm/cmportd.sock", "".join(default.split()))

    def test_purecm_there_runs_programs_over_the_library_there(self):
        maps = run(self.dirs["bindir"] / "purecm", "run", "--", "cat", "/proc/self/maps")
        self.assertIn(str((self.dirs["libdir"] / "librdmacm.so.1").resolve()), maps)

    def test_purecm_there_makes_a_fabric_of_what_is_there(self):
        shown = run(self.dirs["bindir"] / "purecm", "fabric", "run", "--hosts", "1",
                    "a:echo $LD_LIBRARY_PATH; exec cat /proc/$PPID/task/$PPID/children")
        if "no user and network namespaces" in shown:
            self.skipTest(shown)
        libdir = self.dirs["libdir"].resolve()
        self.assertIn(f"a| {libdir}/purecm/fabric/lib:{libdir}", shown)

    def test_purecm_there_certifies_with_what_is_there(self):
        purecm = self.dirs["bindir"] / "purecm"
        conduct = f"PURECM_SECRET=x {purecm} certify 10.77.0.2 --only addresses killed-program "\
            f"--output {self.root}/page"
        shown = run(purecm, "fabric", "run", "--hosts", "2", "--raw",
                    f"b&:PURECM_SECRET=x {purecm} certify --serve --listen :: 2>&1",
                    f"a:for i in $(seq 100); do {conduct} && exit; sleep 0.1; done; exit 1")
        if "no user and network namespaces" in shown:
            self.skipTest(shown)
        self.assertIn("its peer saw 50 of 50 connections end", shown)

    def test_a_library_there_finds_it(self):
        library = self.dirs["libdir"] / "libprobe.so"
        shutil.copy2(HERE["library"], library)
        self.addCleanup(library.unlink)
        self.assertEqual(self.spawned_by(HERE["probe"], self.socket, library),
                         (0, str(self.program())))

    def test_a_library_that_is_named_from_another_folder_finds_it(self):
        library = self.dirs["libdir"] / "libprobe.so"
        shutil.copy2(HERE["library"], library)
        self.addCleanup(library.unlink)
        answer = self.spawned_by(HERE["probe"], self.socket, "./libprobe.so",
                                 cwd=self.dirs["libdir"])
        self.assertEqual(answer, (0, str(self.program())))


class Found(Case):
    def test_a_library_in_the_build_folder_finds_that_of_the_build(self):
        probe, program = self.tree()
        self.assertEqual(self.spawned_by(probe, self.socket), (0, str(program)))

    def test_a_program_that_another_user_owns_is_not_started(self):
        if os.geteuid():
            self.skipTest("only root can be somebody else too")
        probe, program = self.tree()
        os.chown(program, NOBODY, NOBODY)
        self.refused(probe)

    def test_a_setuid_program_starts_only_what_is_installed(self):
        if os.geteuid():
            self.skipTest("only root can be somebody else too")
        if os.statvfs(self.folder).f_flag & os.ST_NOSUID:
            self.skipTest("the folder for temporary files is mounted with nosuid")
        probe, _ = self.tree()
        probe.chmod(0o4755)
        self.refused(probe, user=NOBODY)

    def refused(self, probe, **more):
        options = meson_options()
        installed = Path(options["prefix"]) / options["libexecdir"] / "purecm/cmportd"
        if installed.exists():
            self.skipTest(f"{installed} is installed and would be found")
        self.assertEqual(self.spawned_by(probe, self.socket, **more), (-ENOENT, None))


class Beginning(Case):
    def cmportd(self, *words, status=0):
        return run(cmportd(), f"--socket={self.socket}", *words, status=status,
                   env=self.environment)

    def test_detach_returns_when_it_serves(self):
        self.cmportd("--detach")
        self.assertIsNotNone(server_of(self.socket))

    def test_detach_is_content_with_another(self):
        self.cmportd("--detach")
        pid = server_of(self.socket)
        self.cmportd("--detach")
        self.assertEqual(server_of(self.socket), pid)

    def test_a_second_one_says_who_is_first(self):
        self.cmportd("--detach")
        self.assertIn(f"by process {server_of(self.socket)}", self.cmportd(status=1))

    def test_it_leaves_when_it_is_idle(self):
        self.cmportd("--detach", "--idle=1")
        self.assertTrue(wait_until(lambda: not self.socket.exists()))

    def test_it_leaves_at_sigterm(self):
        self.cmportd("--detach")
        os.kill(server_of(self.socket), signal.SIGTERM)
        self.assertTrue(wait_until(lambda: not self.socket.exists()))

    def test_bad_arguments_are_named(self):
        for words, said in ((["--idle=soon"], "soon is no number"), (["--idle=-1"], "-1"),
                            (["--lgo"], "lgo"), (["--socket=/" + 200 * "x"], "too long")):
            with self.subTest(words):
                self.assertIn(said, self.cmportd(*words, status=2))

    def test_it_says_its_version(self):
        self.assertRegex(self.cmportd("--version"), r"^cmportd \(purecm\) \d+\.\d+\.\d+\n$")

    def test_a_log_that_cannot_be_written_is_named(self):
        self.assertIn("/nowhere/log", self.cmportd("--log=/nowhere/log", status=1))

    def test_the_log_is_a_file_if_wanted(self):
        log = self.folder / "log"
        self.cmportd("--detach", "--verbose", f"--log={log}")
        self.end_server()
        for line in log.read_text(encoding="utf-8").splitlines():
            self.assertRegex(line, r"^cmportd: ")

    def test_it_runs_without_standard_streams(self):
        command = f"exec {cmportd()} --socket={self.socket} --idle=1 <&- >&- 2>&-"
        run("/bin/sh", "-c", command, env=self.environment)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--probe", type=Path, required=True)
    parser.add_argument("--library", type=Path, required=True)
    HERE.update({name: path.resolve() for name, path in vars(parser.parse_args()).items()})
    result = unittest.main(argv=sys.argv[:1], exit=False).result
    return summary(result)


if __name__ == "__main__":
    sys.exit(main())
