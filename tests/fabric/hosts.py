# SPDX-License-Identifier: BSD-2-Clause
"""What the scripts share that run commands on hosts of a soft fabric: starting it, and counting."""
import argparse
from pathlib import Path
import subprocess
import sys

ROOT = Path(__file__).resolve().parents[2]
FABRIC = ROOT / "tools/fabric/fabric"
SKIPPED = 77
sys.path.insert(0, str(ROOT / "tools/fabric"))
from plan import DEVICES  # noqa: E402

# Devices of the fabric that have connections.
CONNECTING = [name for name, (quirks, _) in DEVICES.items() if "no-cm" not in quirks]
PATIENCE = 5  # how much longer than on an idle machine it may take


class Skip(Exception):
    """There can be no fabric, or no lab, here."""


class SkipOne(Exception):
    """Why one of the tests cannot be played here."""


def run_on_fabric(build, limit_s, *words, stderr=subprocess.PIPE, env=None, prefix=()):
    """Run `fabric run` with its options and commands, as words after a command that prefix may
    have. Return: the ended process."""
    limit = ["--timeout", str(PATIENCE * limit_s)]
    done = subprocess.run([*prefix, FABRIC, "run", "--build", build, "--raw", *limit, *words],
                          env=env, stdout=subprocess.PIPE, stderr=stderr, text=True, check=False)
    if done.returncode == SKIPPED:
        raise Skip(done.stderr or done.stdout)
    return done


def run_tests(tests, subject):
    """Call each test with its subject, and print what failed and the counts. Return: the status."""
    failed = skipped = 0
    try:
        for test in tests:
            try:
                test(subject)
            except SkipOne as skip:
                skipped += 1
                print(f"skipped: {test.__name__}: {skip}")
            except (AssertionError, StopIteration, IndexError) as wrong:
                failed += 1
                print(f"FAIL {test.__name__}: {wrong!r}")
    except Skip as skip:
        print(f"{skip}0 passed, 0 failed, {len(tests)} skipped")
        return SKIPPED
    print(f"{len(tests) - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def main(doc, tests, subject_of=lambda build: build):
    """Run a script's tests with the build folder, or what is made of it. Return: the status."""
    parser = argparse.ArgumentParser(description=doc.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    return run_tests(tests, subject_of(parser.parse_args().build.resolve()))


def play_files(doc, paths, why_not, play):
    """Run a script that has a test a file: play(path, build) returns why the file does not work, or
    None; why_not() why nothing can be tested here, or None. Return: the status."""
    parser = argparse.ArgumentParser(description=doc.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    build = parser.parse_args().build.resolve()
    reason = why_not()
    if reason:
        print(f"skipped: {reason}\n0 passed, 0 failed, 1 skipped")
        return SKIPPED
    failed, paths = 0, sorted(paths)
    for path in paths:
        why = play(path, build)
        failed += bool(why)
        print(f"FAIL {path.name}: {why}" if why else f"ok   {path.name}", flush=True)
    print(f"{len(paths) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not paths else 0
