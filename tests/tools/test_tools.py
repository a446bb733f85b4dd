#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The scripts of tools/: what they say of an installation, how they count tests, what they leave.

Ends with a line "N passed, N failed, N skipped".
"""
import contextlib
import functools
import os
from pathlib import Path
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path[:0] = [str(TOOLS), str(TOOLS.parent / "tests")]

from counted import summary  # noqa: E402
import run_suites  # noqa: E402


def counted(result, stdout):
    return run_suites.counts_of({"name": "p:unit / t", "result": result, "stdout": stdout})


def write_program(path, text):
    path.write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def wait_for_end(pid):
    """Wait until a process of this id runs no more; what is dead, but not reaped, has no words."""
    cmdline = Path("/proc", pid, "cmdline")
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        while cmdline.read_bytes():
            time.sleep(0.1)


def installing(dpkg_query, words):
    """Run tools/install in a tree whose packages are empty, with a dpkg-query of these commands.
    Return: what apt-get was told."""
    with tempfile.TemporaryDirectory() as folder:
        tree, programs = Path(folder, "tree"), Path(folder, "programs")
        (tree / "tools/packaging").mkdir(parents=True)
        programs.mkdir()
        for name in ("install", "setup.sh"):
            shutil.copy(TOOLS / name, tree / "tools")
        write_program(tree / "tools/packaging/build-deb", """
            folder=build/packages/$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
            mkdir -p "$folder"
            for name in purecm cmportd purecm-{fabric,dev,librdmacm1}; do
                : >"$folder/${name}_1.deb"; done""")
        write_program(programs / "dpkg-query", dpkg_query)
        write_program(programs / "apt-get", f'echo "$@" >>{folder}/told')
        write_program(programs / "sudo", 'while [[ $1 == -* ]]; do shift; done; exec "$@"')
        subprocess.run([tree / "tools/install", *words], check=True, capture_output=True,
                       env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"})
        return Path(folder, "told").read_text(encoding="utf-8")


class Install(unittest.TestCase):
    @unittest.skipIf(os.geteuid(), "only root can be a user whom sudo refuses")
    def test_who_is_not_root_and_has_no_sudo_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            Path(folder, "sudo").symlink_to(shutil.which("false"))
            try:
                done = subprocess.run([TOOLS / "install"], check=False, capture_output=True,
                                      env={"PATH": f"{folder}:{os.environ['PATH']}"}, text=True,
                                      user=65534, group=65534, extra_groups=[])
            except PermissionError:
                self.skipTest("nobody may enter this checkout")
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("neither root nor sudo", done.stderr)


    def test_who_has_nothing_to_remove_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("dpkg-query", "apt-get"):
                Path(folder, name).symlink_to(shutil.which("false"))
            done = subprocess.run([TOOLS / "install", "--remove"], check=False, text=True,
                                  capture_output=True,
                                  env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("purecm is not installed", done.stderr)

    def test_the_library_of_the_system_is_replaced_together_with_cmportd(self):
        """Else apt removes it, and what needs it."""
        said = installing(dpkg_query='[ "$4" = purecm-librdmacm1 ] && echo install ok installed',
                          words=())
        self.assertIn("purecm-librdmacm1_1.deb", said)

    def test_the_library_of_the_system_is_replaced_only_if_that_is_wanted(self):
        self.assertNotIn("purecm-librdmacm1", installing(dpkg_query="exit 1", words=()))
        self.assertIn("purecm-librdmacm1_1.deb", installing(dpkg_query="exit 1",
                                                            words=["--system"]))

    def test_what_is_slow_says_how_far_it_is(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                ["bash", "-euc", f". {TOOLS}/setup.sh; sleep() {{ command sleep .1; }}; "
                 "is_slow=1 quietly no no sh -c 'echo compiling; "
                 "until test -s said; do command sleep 0.1; done' >said; cat said"],
                check=False, text=True, capture_output=True, cwd=folder, timeout=60)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("compiling", done.stdout)


@unittest.skipUnless(shutil.which("git"), "git is missing")
class Packages(unittest.TestCase):
    def test_a_file_that_was_removed_is_not_packed(self):
        script = f"""
            eval "$(sed -n '/^release_number()/,/^}}/p; /^make_source()/,/^}}/p' \
                {TOOLS}/packaging/build-deb)"
            mkdir -p tools/packaging/debian; : >tools/packaging/debian/control; : >here; : >gone
            echo '## 1.0 (2026-01-01)' >CHANGELOG.md
            git init -q .; git add .; rm gone; make_source packed bookworm; ls packed"""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], check=False,
                                  text=True, capture_output=True, cwd=folder)
        self.assertEqual((done.returncode, done.stdout.split()),
                         (0, ["CHANGELOG.md", "debian", "here", "tools"]), done.stderr)


class Counting(unittest.TestCase):
    def test_a_program_of_check_counts_its_checks(self):
        self.assertEqual(counted("FAIL", "90%: Checks: 10, Failures: 1, Errors: 1\n"), (8, 2, 0))

    def test_a_last_line_of_counts_is_taken_as_it_is(self):
        self.assertEqual(counted("OK", "ok x\n3 passed, 0 failed, 2 skipped\n"), (3, 0, 2))

    def test_any_other_program_counts_as_one(self):
        self.assertEqual(counted("OK", "fine\n"), (1, 0, 0))
        self.assertEqual(counted("SKIP", "skipped: no tshark\n"), (0, 0, 1))

    def test_a_crash_after_good_counts_is_a_failure(self):
        self.assertEqual(counted("FAIL", "3 passed, 0 failed, 0 skipped\n"), (3, 1, 0))

    def test_a_timeout_is_a_failure(self):
        self.assertEqual(counted("TIMEOUT", "100%: Checks: 4, Failures: 0, Errors: 0\n"),
                         (4, 1, 0))

    def test_a_skip_is_reported_with_its_reason(self):
        test = {"name": "p:abi / headers", "result": "SKIP", "stdout": "skipped: no c++\n"}
        self.assertEqual(run_suites.remarks(run_suites.Program("abi", "build", test)),
                         ["skip abi: headers: skipped: no c++"])

    def test_cases_that_failed_are_named_as_their_programs_name_them(self):
        for said, case in (("FAIL rping -C 10  ipv6  2.0 s\n", "rping -C 10 ipv6 2.0 s"),
                           ("FAIL: test_it (__main__.Ping)\n", "test_it (__main__.Ping)"),
                           ("a/b.c:12:F:core:it_holds:0: not so\n", "core:it_holds:0: not so")):
            test = {"name": "p:lab / x", "result": "FAIL", "stdout": "ok   y\n" + said}
            self.assertEqual(run_suites.failed_cases(test), [f"     {case}"])


FAILS_ONCE = "#!/bin/sh\n[ -e $0.ran ] || { : >$0.ran; echo 'FAIL: one case'; exit 1; }\n"
FAILS = "#!/bin/sh\necho '2 passed, 1 failed, 0 skipped'; exit 1\n"
SKIPS_THEN = "#!/bin/sh\n[ -e $0.ran ] && exit 77; : >$0.ran; exit 1\n"
PASSES = "#!/bin/sh\necho '3 passed, 0 failed, 0 skipped'\n"
WAITS = f"#!/bin/sh\n: >$0.runs; until [ -e $0.may_end ]; do sleep 0.1; done\n{PASSES}"
# Its entry in the log is longer than what the runner writes at once.
PASSES_AT_LENGTH = f"#!/bin/sh\necho {20000 * 'x'}\necho '3 passed, 0 failed, 0 skipped'\n"
# The runner, when there is something in its log.
KILLS = """#!/bin/sh
until [ -s "$(dirname "$0")/build/meson-logs/testlog-unit.json" ]; do sleep 0.1; done
kill -9 $PPID
"""


@contextlib.contextmanager
def project(scripts):
    """Configure a project with these tests. Yields its folder."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        lines = ["project('sample')"]
        for name, text in scripts.items():
            (source / name).write_text(text, encoding="utf-8")
            (source / name).chmod(0o755)
            lines.append(f"test('{name}', find_program('./{name}'), suite: 'unit')")
        (source / "meson.build").write_text("\n".join(lines) + "\n", encoding="utf-8")
        subprocess.run(["meson", "setup", source / "build", source], check=True,
                       capture_output=True)
        yield source


def start(source, *options, path=os.environ["PATH"]):
    """Run the suites of a project. Return: the process."""
    return subprocess.Popen([sys.executable, TOOLS / "run_suites.py", source / "build", *options],
                            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            cwd=source, env={**os.environ, "PATH": path})


def run_project(path=os.environ["PATH"], **scripts):
    """Run a project with these tests. Return: the runner's status and its lines."""
    with project(scripts) as source:
        run = start(source, path=path)
        lines = run.communicate()[0].splitlines()
        return run.returncode, lines


class Runner(unittest.TestCase):
    def test_one_that_is_killed_has_failed(self):
        status, lines = run_project(good=PASSES_AT_LENGTH, kills=KILLS)
        self.assertEqual((status, lines[-1]), (1, "0 passed, 1 failed, 0 skipped"))

    def test_one_that_fails_without_a_test_that_does_has_failed(self):
        with tempfile.TemporaryDirectory() as folder:
            fails = Path(folder, "meson")
            fails.write_text(f'#!/bin/sh\n{shutil.which("meson")} "$@" && [ "$1" != test ]\n',
                             encoding="utf-8")
            fails.chmod(0o755)
            status, lines = run_project(path=f"{folder}:{os.environ['PATH']}", good=PASSES)
        self.assertEqual((status, lines[-1]), (1, "0 passed, 1 failed, 0 skipped"))

    def test_a_plain_run_plays_without_sanitizers_what_they_change(self):
        with project({"cm_walk": PASSES, "cm_other": PASSES}) as source:
            last = [start(source, f"--sanitized={source}/build",
                          *options).communicate()[0].splitlines()[-1]
                    for options in ((), ("--long",))]
        self.assertEqual(last, ["9 passed, 0 failed, 0 skipped", "12 passed, 0 failed, 0 skipped"])

    def test_one_waits_for_another_that_writes_the_same_logs(self):
        with project({"waits": WAITS}) as source:
            with start(source) as first:
                while not (source / "waits.runs").exists():
                    time.sleep(0.1)
                with start(source) as second:
                    said = next(filter(str.strip, second.stdout))
                    (source / "waits.may_end").touch()
                    last = [run.communicate()[0].splitlines()[-1] for run in (first, second)]
        self.assertIn("has to end first", said)
        self.assertEqual(last, 2 * ["3 passed, 0 failed, 0 skipped"])


class Replay(unittest.TestCase):
    def test_what_passes_when_played_again_has_passed_and_is_named(self):
        flaky = {f"flaky{i}": FAILS_ONCE for i in range(4)}
        status, lines = run_project(good=PASSES, bad=FAILS, **flaky)
        self.assertEqual((status, lines[-1]), (1, "9 passed, 1 failed, 0 skipped"))
        again = next(i for i, line in enumerate(lines) if line.startswith("passed when played"))
        rows = sorted(line.split(" | ")[2:4] for line in lines[again + 1:again + 5])
        self.assertEqual(rows, [[f"unit: {name}", "one case"] for name in flaky])

    def test_the_row_about_it_has_room_for_the_commit_that_mends_it(self):
        test = {"name": "p:unit / t", "result": "FAIL", "stdout": f"FAIL {99 * 'x'}\n"}
        row = run_suites.flake_row(run_suites.Program("unit", "build", test))
        self.assertTrue(row.endswith("xxx | |"))
        self.assertLessEqual(len(row), 100 - 8)

    def test_what_is_skipped_when_played_again_has_failed(self):
        status, lines = run_project(good=PASSES, skips=SKIPS_THEN)
        self.assertEqual((status, lines[-1]), (1, "3 passed, 1 failed, 0 skipped"))

    def test_the_row_about_it_has_its_columns_whatever_failed_and_without_git(self):
        test = {"name": "p:unit / t", "result": "FAIL", "stdout": "FAIL ping | tee\n"}
        with mock.patch.dict(os.environ, PATH="/nonexistent", clear=True), \
                mock.patch.object(run_suites.subprocess, "run",
                                  functools.partial(subprocess.run, executable="/bin/sh")):
            row = run_suites.flake_row(run_suites.Program("unit", "build", test))
        self.assertRegex(row, r"^\| \S+ \| \? \| unit: t \| ping / tee \| \|$")

    def test_five_that_pass_when_played_again_fail_the_run(self):
        status, lines = run_project(**{f"flaky{i}": FAILS_ONCE for i in range(5)})
        self.assertEqual((status, lines[-1]), (1, "0 passed, 5 failed, 0 skipped"))


# What the packages of a tree are: all there.
ALL_THERE = "for name; do [[ $name == -* ]] || printf 'installed:%s ' \"$name\"; done"
BUILDS_LONG = """custom_target('long', output: 'long', build_by_default: true,
  command: ['sh', '-c', 'echo $$ >../pid; exec sleep 1000'])
"""
KILLS_RUNNER = """#!/bin/bash
read -r _ _ _ parent _ </proc/$PPID/stat; kill -9 $parent; exec sleep 1000
"""


class Check(unittest.TestCase):
    """tools/check in a tree that has one test."""

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.folder.chmod(0o755)
        self.tree = self.folder / "tree"
        (self.tree / "tools").mkdir(parents=True)
        (self.tree / "tests").mkdir()
        for name in ("check", "setup.sh", "alone", "run_suites.py"):
            shutil.copy(TOOLS / name, self.tree / "tools")
        for name, text in (("dpkg-query", ALL_THERE), ("apt-get", f"touch {self.folder}/asked")):
            write_program(self.folder / name, text)
        (self.tree / "tests/meson.build").write_text(
            "test('t', find_program('../t'), suite: 'unit')\n", encoding="utf-8")
        self.write(PASSES)

    def write(self, test, build=""):
        (self.tree / "t").write_text(test, encoding="utf-8")
        (self.tree / "t").chmod(0o755)
        (self.tree / "meson.build").write_text(f"project('sample')\nsubdir('tests')\n{build}",
                                               encoding="utf-8")

    def start(self, *options, program="tools/check", **environment):
        path = f"{self.folder}:{os.environ['PATH']}"
        return subprocess.Popen([self.tree / program, "--suite", *(options or ["unit"])],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, cwd=self.folder,
                                env={**os.environ, "PATH": path, **environment})

    def last_line(self, *options, **environment):
        return self.start(*options, **environment).communicate()[0].splitlines()[-1]

    def test_a_copy_of_a_checkout_tests_itself(self):
        self.assertEqual(self.last_line(), "3 passed, 0 failed, 0 skipped")
        shutil.copytree(self.tree, self.folder / "copy", symlinks=True)
        self.tree = self.folder / "copy"
        self.write(FAILS)
        self.assertEqual(self.last_line(), "2 passed, 1 failed, 0 skipped")

    def test_it_is_found_by_a_symbolic_link_whatever_the_shell_is_set_to(self):
        (self.tree / "link").symlink_to(self.tree / "tools/check")
        self.assertEqual(self.last_line(program="link", CDPATH="/usr", SECONDS="99999"),
                         "3 passed, 0 failed, 0 skipped")

    def test_the_name_of_a_suite_is_no_pattern(self):
        self.assertIn("unit", self.last_line("uni."))
        self.assertFalse((self.tree / "build").exists())

    def test_a_runner_that_is_killed_has_failed(self):
        self.write(KILLS_RUNNER)
        self.assertEqual(self.last_line(), "0 passed, 1 failed, 0 skipped")

    def test_what_builds_ends_with_it(self):
        self.write(PASSES, BUILDS_LONG)
        run = self.start()
        pid = self.tree / "pid"
        while not (pid.exists() and pid.read_text(encoding="utf-8")):
            time.sleep(0.1)
        os.kill(run.pid, signal.SIGKILL)
        run.communicate()
        wait_for_end(pid.read_text(encoding="utf-8").strip())

    def test_apt_is_not_asked(self):
        self.last_line()
        self.assertFalse((self.folder / "asked").exists())


class Ci(unittest.TestCase):
    def test_what_the_example_runs_has_options_of_check(self):
        example = (TOOLS.parent / "docs/examples/check.yml").read_text(encoding="utf-8")
        commands = re.findall(r"run: \.ci/run(.*)", example)
        self.assertEqual(len(commands), 2)
        for words in commands:
            words = words.replace("${{ matrix.part }}", "1").split()
            subprocess.run([TOOLS / "check", *words, "--list"], check=True, capture_output=True)


class Alone(unittest.TestCase):
    def begin(self, folder, *command):
        return subprocess.Popen([TOOLS / "alone", *command], env={**os.environ, "TMPDIR": folder},
                                stdout=subprocess.PIPE, text=True)

    def test_the_next_run_removes_the_folder_of_one_that_was_killed_and_of_no_other(self):
        with tempfile.TemporaryDirectory() as folder:
            living, killed = (self.begin(folder, "sh", "-c", "echo $TMPDIR; exec sleep 1000")
                              for _ in range(2))
            paths = [Path(run.stdout.readline().strip()) for run in (living, killed)]
            killed.kill()
            killed.communicate()
            self.assertTrue(all(path.exists() for path in paths))
            self.begin(folder, "true").communicate()
            self.assertEqual([path.exists() for path in paths], [True, False])
            living.terminate()
            living.communicate()
            self.assertEqual(os.listdir(folder), [])

    @unittest.skipUnless(os.geteuid() == 0, "only root's runs have a mount namespace")
    def test_a_run_within_one_of_a_closed_folder_removes_nothing_of_it(self):
        with tempfile.TemporaryDirectory() as closed, tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            checkout = Path(closed, "checkout")
            checkout.mkdir()
            alone = shutil.copy(TOOLS / "alone", checkout)
            within = f"touch $TMPDIR/mine; TMPDIR={folder} ./alone true; ls $TMPDIR/mine >&2"
            done = subprocess.run([alone, "sh", "-c", within], cwd=checkout, check=False, text=True,
                                  env={**os.environ, "TMPDIR": folder}, capture_output=True)
            self.assertRegex(done.stderr, r"^\S+/mine\n\Z")

    @unittest.skipUnless(os.geteuid() == 0, "only root's runs have a mount namespace")
    def test_others_reach_a_checkout_below_closed_folders_also_by_a_link(self):
        with tempfile.TemporaryDirectory() as closed, tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            checkout = Path(closed, "also/checkout")
            checkout.mkdir(parents=True)
            checkout.parent.chmod(0o700)
            link = Path(folder, "link")
            link.symlink_to(checkout)
            as_nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups ls -d \"$(pwd -P)\""
            done = subprocess.run([TOOLS / "alone", "sh", "-c", as_nobody], cwd=link, check=True,
                                  env={**os.environ, "TMPDIR": folder}, capture_output=True)
            self.assertEqual(done.stderr, b"")
            self.assertEqual(checkout.parent.stat().st_mode & 0o777, 0o700)

    def test_what_an_ordinary_user_leaves_is_ended(self):
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        leaves = f"{shutil.which('setsid')} sleep 1000 >/dev/null & echo $!"
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            shutil.copy(TOOLS / "alone", folder)
            done = subprocess.run([*(user if os.geteuid() == 0 else []), f"{folder}/alone", "sh",
                                   "-c", leaves], check=True, capture_output=True, text=True,
                                  cwd=folder, env={**os.environ, "TMPDIR": folder})
        wait_for_end(done.stdout.strip())

    def test_names_of_sockets_fit_below_the_folder_also_where_that_of_tmpdir_is_long(self):
        with tempfile.TemporaryDirectory(prefix=60 * "x") as folder:
            path = self.begin(folder, "sh", "-c", "echo $TMPDIR").communicate()[0].strip()
            self.assertLess(len(path), 50)


def main():
    return summary(unittest.main(exit=False).result)


if __name__ == "__main__":
    sys.exit(main())
