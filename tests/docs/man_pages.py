#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds the manual pages against the library: each function has a page, with the prototype that the
compiler knows, and man has nothing to complain about.

Ends with a line "N passed, N failed, N skipped".
"""
import argparse
from pathlib import Path
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from counted import summary  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
BY_HAND = sorted((ROOT / "docs/man").glob("*.[1-9]"))
HEADERS = ("rdma/rdma_cma.h", "rdma/rdma_verbs.h", "rdma/rsocket.h", "purecm/purecm.h")
HERE = argparse.Namespace(pages=None, cc="cc")

EXPORTED = re.compile(r"^\t\t(\w+);$", re.M)
INLINE = re.compile(r"^static (?:__inline__|inline) [^;{]*?\b(rdma_\w+)\(", re.M)
SYNOPSIS = re.compile(r"^\.SH SYNOPSIS\n\.nf\n\\fB#include <(.*?)>\\fR\n\.PP\n(.*?)\n\.fi",
                      re.M | re.S)
RETURNS = re.compile(r"^ \* Return: (.*?)\*/", re.M | re.S)
EXAMPLE = re.compile(r"^\.RS 4\n\.nf\n(.*?)\n\.fi", re.M | re.S)
CODE = re.compile(r"\bE[A-Z]{3,}\b")
EVENT = re.compile(r"^\tRDMA_CM_EVENT_(\w+) = \d+,$", re.M)


def header(name):
    return (ROOT / "include" / name).read_text(encoding="utf-8")


def page(name):
    return (HERE.pages / f"{name}.3").read_text(encoding="utf-8")


def pages():
    return {path.stem: path.read_text(encoding="utf-8") for path in HERE.pages.glob("*.3")}


def functions():
    """Return the names of all public functions: what is exported, and what is inline."""
    found = set(EXPORTED.findall((ROOT / "lib/librdmacm.map").read_text(encoding="utf-8")))
    return found.union(*(INLINE.findall(header(name)) for name in HEADERS))


def synopsis(text):
    """Return the header that a page names, and its prototype on one line."""
    found = SYNOPSIS.search(text)
    return found[1], " ".join(re.sub(r"\\f[BR]", "", found[2]).split())


def section(text, title):
    found = re.search(rf"^\.SH {title}\n(.*?)(?=^\.SH |\Z)", text, re.M | re.S)
    return found[1] if found else ""


def contract(name, text):
    """Return what a header says of a function, from its title to its prototype."""
    begin = text.index(f" {name}() - ")
    return text[begin:text.index("*/", begin) + 2]


def compiles(lines):
    done = subprocess.run([*HERE.cc.split(), "-x", "c", "-fsyntax-only", "-std=gnu11",
                           "-D_GNU_SOURCE", "-Werror", f"-I{ROOT}/include", "-"],
                          input="\n".join(lines) + "\n", capture_output=True, text=True,
                          check=False)
    return done.returncode == 0, done.stderr


def program(example):
    """Return an example as lines that can be compiled."""
    code = example.replace(r"\&", "").replace(r"\-", "-").replace(r"\e", "\\").split("\n")
    if not code[0].startswith("static"):
        code = ["int f(struct rdma_cm_event *event);", "int f(struct rdma_cm_event *event) {",
                "(void)event;", "{", *code, "}", "return 0; }"]
    return ["#include <stdio.h>", *(f"#include <{name}>" for name in HEADERS), *code]


def lint(path, level):
    done = subprocess.run(["mandoc", "-T", "lint", "-W", level, str(path)], capture_output=True,
                          text=True, check=False)
    return done.stdout + done.stderr


class EveryFunction(unittest.TestCase):
    def test_has_a_page_and_no_other_has(self):
        self.assertGreater(len(functions()), 90)
        self.assertEqual(set(pages()), functions())

    def test_has_the_prototype_that_the_compiler_knows(self):
        told = [synopsis(text) for text in pages().values()]
        lines = [f"#include <{name}>" for name in HEADERS] + [code for _, code in told]
        good, complaint = compiles(lines)
        self.assertTrue(good, complaint)

    def test_has_its_header(self):
        for name, text in pages().items():
            good, complaint = compiles([f"#include <{synopsis(text)[0]}>", f"void *f = &{name};"])
            self.assertTrue(good, complaint)

    def test_has_the_names_of_its_arguments(self):
        for name, text in pages().items():
            head, code = synopsis(text)
            known = " ".join(re.sub(r"/\*.*?\*/", "", header(head), flags=re.S).split())
            self.assertIn(code.rstrip(";").replace("...)", "..."), known.replace("... )", "..."))

    def test_explains_its_arguments(self):
        for name, text in pages().items():
            told = section(text, "ARGUMENTS")
            for argument in re.findall(r"@(\w+):", contract(name, header(synopsis(text)[0]))):
                self.assertIn(rf"\fI{argument}\fR" + "\n", told, name)

    def test_explains_the_codes_of_its_contract(self):
        for name, text in pages().items():
            returns = RETURNS.search(contract(name, header(synopsis(text)[0])))
            for code in CODE.findall(returns[1] if returns else ""):
                self.assertIn(code, section(text, "ERRORS") + section(text, "RETURN VALUE"), name)

    def test_that_ends_with_an_event_has_a_list_of_them(self):
        for name, text in pages().items():
            for event in re.findall(r"Done with (RDMA_\w+)",
                                    contract(name, header(synopsis(text)[0]))):
                self.assertIn(event, section(text, "EVENTS"), name)

    def test_has_examples_that_compile(self):
        found = [(name, example) for name, text in pages().items()
                 for example in EXAMPLE.findall(section(text, "EXAMPLE"))]
        self.assertGreater(len(found), 2)
        for name, example in found:
            good, complaint = compiles(program(example))
            self.assertTrue(good, f"{name}: {complaint}")

    def test_stands_for_itself(self):
        for name, text in pages().items():
            self.assertNotRegex(text, r"(?i)\bas there\b|\blists above\b", name)


class Overview(unittest.TestCase):
    def test_has_every_event(self):
        told = (ROOT / "docs/man/rdma_cm.7").read_text(encoding="utf-8")
        known = set(EVENT.findall(header("rdma/rdma_cma.h"))) - {"INTERNAL"}
        self.assertEqual(set(re.findall(r"^\.B RDMA_CM_EVENT_(\w+)$", told, re.M)), known)

    def test_names_pages_that_are_there(self):
        known = functions() | {path.stem for path in BY_HAND} | {
            "socket", "epoll", "poll", "select"}
        for path in BY_HAND:
            for name in re.findall(r"^\.BR ((?:rdma_|purecm)\w+) \(\d\)",
                                   path.read_text(encoding="utf-8"), re.M):
                self.assertIn(name, known, path)


class Judges(unittest.TestCase):
    def test_mandoc_has_nothing_to_say_of_pages_that_are_made(self):
        for path in sorted(HERE.pages.glob("*.3")):
            self.assertEqual(lint(path, "style"), "")

    def test_mandoc_has_no_warning_for_pages_by_hand(self):
        for path in BY_HAND:
            self.assertEqual(lint(path, "warning"), "")

    def test_a_prototype_that_is_wrong_is_noticed(self):
        wrong = synopsis(page("rdma_listen"))[1].replace("int backlog", "long backlog")
        self.assertFalse(compiles(["#include <rdma/rdma_cma.h>", wrong])[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--pages", type=Path, required=True, help="folder of the pages made")
    parser.add_argument("--cc", default="cc", help="C compiler")
    parser.parse_args(namespace=HERE)
    return summary(unittest.main(argv=sys.argv[:1], exit=False, verbosity=0).result)


if __name__ == "__main__":
    sys.exit(main())
