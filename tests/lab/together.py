#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests of several folders in two hosts that boot once for all of them: a boot takes as long as
many of them.

Host a is in mode purecm and b in mode stock when a test begins, and when it has ended. Ends with a
line "N passed, N failed, N skipped"; skipped where QEMU is missing.
"""
import argparse
import importlib
import os
from pathlib import Path
import shutil
import sys
import unittest

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
sys.path[:0] = str(HERE), str(TESTS)

from counted import summary  # noqa: E402
from lablib import Lab  # noqa: E402

SKIPPED = 77
MODULES = "judge/umad_lab", "tools/tool_lab", "drill/drill_lab", "parity/alone_lab"
LONG = bool(os.environ.get("PURECM_TEST_LONG"))


class LabTest(unittest.TestCase):
    """A test of hosts a and b, by what is built in a folder: purecm and cmportd are paths there."""

    a = b = build = purecm = cmportd = None


def tests_of(module, words):
    """Return the tests of a module, or those with one of the words in their names."""
    folder, name = os.path.split(module)
    sys.path.insert(0, str(TESTS / folder))
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{word}*" for word in words] if words else None
    return loader.loadTestsFromModule(importlib.import_module(name))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=Path, help="Meson build folder")
    parser.add_argument("-k", action="append", help="only tests with this in their names")
    args = parser.parse_args()
    if not shutil.which("qemu-system-x86_64"):
        print("QEMU is missing: apt-get install qemu-system-x86\n0 passed, 0 failed, 1 skipped")
        return SKIPPED
    LabTest.build = args.build.resolve()
    LabTest.purecm = str(LabTest.build / "tools/purecm")
    LabTest.cmportd = str(LabTest.build / "tools/cmportd/cmportd")
    tests = unittest.TestSuite(tests_of(module, args.k) for module in MODULES)
    with Lab({"a": "purecm", "b": "stock"}) as lab:
        LabTest.a, LabTest.b = lab.a, lab.b
        return summary(unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(tests))


if __name__ == "__main__":
    # Under the name by which the modules import it, so that there is one LabTest.
    sys.exit(importlib.import_module("together").main())
