#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""purecm(1) and the completion of shells say what the program itself says.

Ends with a line "N passed, N failed, N skipped".
"""
import os
from pathlib import Path
import re
import shutil
import subprocess
import unittest

from running import HERE, main, text_of

OPTION = re.compile(r"(?<![\w-])--[a-z-]+")
OF_EVERY_COMMAND = {"--help", "--usage", "--version", "--commands"}

# Calls the completion as bash does, with the words of a command line.
COMPLETE = """. "$1"; shift; compopt() { :; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_purecm purecm "${@: -1}" "${@: -2:1}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def commands():
    return text_of("--commands").split()


def page():
    return HERE["page"].read_text(encoding="utf-8").replace("\\-", "-")


def completed(*words):
    """Return what bash offers for the last of some words."""
    folder = str(Path(HERE["purecm"]).parent)
    done = subprocess.run(["bash", "-c", COMPLETE, "bash", HERE["completion"], *words],
                          capture_output=True, text=True, check=True,
                          env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
    return done.stdout.split()


class Manual(unittest.TestCase):
    def test_man_has_nothing_to_complain_about(self):
        checkers = (("mandoc", "-T", "lint", "-W", "warning"), ("groff", "-man", "-ww", "-z"),
                    ("man", "--warnings", "-l"))
        checker = next((words for words in checkers if shutil.which(words[0])), None)
        if not checker:
            self.skipTest("neither mandoc nor groff nor man: apt-get install man-db")
        done = subprocess.run([*checker, str(HERE["page"])], capture_output=True, text=True,
                              check=False, env={**os.environ, "MANPAGER": "cat"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_it_names_every_option_and_no_other(self):
        told = set(OPTION.findall(page()))
        real = set().union(*(OPTION.findall(text_of(*words, "--help"))
                             for words in [*zip(commands()), ("fabric", "run")]))
        self.assertEqual(real - OF_EVERY_COMMAND - told, set())
        self.assertEqual(told - OF_EVERY_COMMAND - real, set())

    def test_every_command_has_a_section(self):
        for name in commands():
            self.assertIn(f".SH PURECM {name.upper()}\n", page())

    def test_every_outcome_is_explained(self):
        words = re.search(r"end so: ([a-z, \n-]+)\n +-p", text_of("trace", "--help"))[1]
        for word in re.findall(r"[a-z-]+", re.sub(r"\s+", " ", words)):
            self.assertIn(word, page())


@unittest.skipUnless(shutil.which("bash"), "bash is missing")
class Completion(unittest.TestCase):
    def test_of_commands(self):
        self.assertEqual(completed("purecm", "t"), ["top", "trace", "timeline"])

    def test_of_options(self):
        for name in commands():
            offered = {word.rstrip("=") for word in completed("purecm", name, "--")}
            self.assertEqual(offered, set(OPTION.findall(text_of(name, "--help"))), name)

    def test_of_words(self):
        self.assertEqual(completed("purecm", "trace", "-o", "rej"), ["rejected"])
        self.assertEqual(completed("purecm", "explain", "--outcome", "=", "g"), ["gave-up"])
        self.assertEqual(completed("purecm", "trace", "-m", "si"), ["SIDR_REQ", "SIDR_REP"])

    def test_of_the_fabric(self):
        self.assertEqual(completed("purecm", "fabric", "re"), ["remove", "reset", "rename"])
        self.assertIn("--faults", completed("purecm", "fabric", "run", "--fa"))

    def test_of_help(self):
        self.assertEqual(completed("purecm", "help", "ti"), ["timeline"])

    def test_what_follows_two_dashes_is_a_program_and_its_words(self):
        self.assertIn("bash", completed("purecm", "run", "--", "bash"))
        self.assertEqual(completed("purecm", "run", "--", "bash", "--tr"), [])


if __name__ == "__main__":
    main(__doc__, page=Path, completion=str)
