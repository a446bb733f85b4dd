#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The alerts and the dashboard for what `purecm export` serves, as Debian's promtool judges them.

Ends with a line "N passed, N failed, N skipped". Exit status: 77 without promtool.
"""
import json
from pathlib import Path
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from counted import summary  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ALERTS = ROOT / "tools/monitoring/purecm-alerts.yml"
DASHBOARD = ROOT / "tools/monitoring/purecm-grafana.json"
SOURCES = [ROOT / "tools/purecm/stat_export.c", *(ROOT / "tools/monitoring").glob("*.c")]
SKIPPED = 77


def promtool(*words, text=None):
    """Run it. Return: its output; an error of its is a failure."""
    done = subprocess.run(["promtool", *map(str, words)], input=text, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, timeout=600)
    if done.returncode:
        raise AssertionError(done.stdout)
    return done.stdout


def served():
    """Return the names of all metrics that the program has."""
    return set(re.findall(r'"(purecm_\w+)"', "".join(path.read_text() for path in SOURCES)))


def used(text):
    """Return the names of metrics that expressions use, without what a histogram adds."""
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in re.findall(r"purecm_\w+", text)}


def expressions():
    return [target["expr"] for panel in json.loads(DASHBOARD.read_text())["panels"]
            for target in panel["targets"]]


class Alerts(unittest.TestCase):
    def test_they_are_right(self):
        self.assertIn("6 rules found", promtool("check", "rules", ALERTS))

    def test_each_fires_when_it_should_and_not_otherwise(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            file.write((HERE / "alerts_test.yml").read_text().replace("RULES", str(ALERTS)))
            file.flush()
            promtool("test", "rules", file.name)

    def test_they_use_metrics_that_exist(self):
        exprs = re.findall(r"expr: (.*?)\n +(?:for|labels):", ALERTS.read_text(), re.DOTALL)
        self.assertEqual(len(exprs), 6)
        self.assertLessEqual(used("".join(exprs)), served())


class Dashboard(unittest.TestCase):
    def test_its_expressions_are_right(self):
        rules = [{"record": f"panel:{n}", "expr": expr.replace("$__rate_interval", "5m")}
                 for n, expr in enumerate(expressions())]
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            json.dump({"groups": [{"name": "panels", "rules": rules}]}, file)  # which is YAML, too
            file.flush()
            self.assertIn(f"{len(rules)} rules found", promtool("check", "rules", file.name))

    def test_it_uses_metrics_that_exist(self):
        self.assertLessEqual(used("".join(expressions())), served())

    def test_panels_have_names_and_places_of_their_own(self):
        panels = json.loads(DASHBOARD.read_text())["panels"]
        for key in ("id", "title", "gridPos"):
            self.assertEqual(len({str(panel[key]) for panel in panels}), len(panels), key)


def main():
    if not shutil.which("promtool"):
        print("promtool is missing: apt-get install prometheus\n0 passed, 0 failed, 6 skipped")
        return SKIPPED
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(
        unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]))
    return summary(result)


if __name__ == "__main__":
    sys.exit(main())
