#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Lines of --json are as docs/json-schema.json describes them, and each member has one type.

Ends with a line "N passed, N failed, N skipped".
"""
import json
from pathlib import Path
import unittest

from running import HERE, main, purecm

try:
    import jsonschema
except ImportError:
    jsonschema = None

SCHEMA = Path(__file__).resolve().parents[2] / "docs/json-schema.json"


def captures():
    """Return the captures of the lab."""
    return sorted(HERE["captures"].glob("*.pcap"))


def lines(*args):
    """Return the objects that a command prints, whatever its status."""
    return [json.loads(line) for line in purecm(*args, "--json").stdout.splitlines()]


def types(value, name=""):
    """Yield (path, type) of a value and of all its members."""
    yield name, type(value)
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield from types(inner, f"{name}.{key}")


class Json(unittest.TestCase):
    def check(self, command, objects):
        self.assertTrue(objects)
        if not jsonschema:
            self.skipTest("jsonschema is missing: apt-get install python3-jsonschema")
        schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
        checker = jsonschema.Draft202012Validator({**schema, "$ref": f"#/$defs/{command}"})
        for one in objects:
            checker.validate(one)

    def test_trace_is_as_described(self):
        for path in captures():
            self.check("trace", lines("trace", path, "--probes"))

    def test_explain_is_as_described(self):
        for path in captures():
            self.check("explain", lines("explain", path, "--probes"))

    def test_diff_is_as_described(self):
        first, *others = captures()
        for other in others:
            self.check("diff", lines("diff", "--all", first, other))

    def test_doctor_is_as_described(self):
        self.check("doctor", lines("doctor", "127.0.0.1"))

    def test_a_member_has_one_type(self):
        found = {}
        for path in captures():
            for one in lines("trace", path):
                for name, kind in types(one, one["message"]):
                    self.assertIs(found.setdefault(name, kind), kind, f"{path}: {name}")


if __name__ == "__main__":
    main(__doc__)
