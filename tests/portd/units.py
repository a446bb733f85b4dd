#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What systemd says to our units: that they are right, and how much the services give away.

Ends with a line "N passed, N failed, N skipped". Exit status: 77 without systemd-analyze.
"""
import argparse
from pathlib import Path
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
# Of 100; 19 when this was written, most of it for what the service says that it needs.
EXPOSURE_MAX = 22
UNITS = ("cmportd.socket", "cmportd.service", "purecm-export.service")


def copy_units(build, folder):
    """Copy the units, services with programs of the build, which exist. Return: paths."""
    source = Path(__file__).resolve().parents[2] / "tools/cmportd/cmportd.socket"
    service = (build / "tools/cmportd/cmportd.service").read_text(encoding="utf-8")
    service = re.sub(r"^ExecStart=.*", f"ExecStart={build}/tools/cmportd/cmportd", service,
                     flags=re.MULTILINE)
    (folder / UNITS[0]).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / UNITS[1]).write_text(service, encoding="utf-8")
    export = (build / "tools/monitoring/purecm-export.service").read_text(encoding="utf-8")
    export = re.sub(r"^ExecStart=\S+", f"ExecStart={build}/tools/purecm", export,
                    flags=re.MULTILINE)
    (folder / UNITS[2]).write_text(export, encoding="utf-8")
    return [folder / unit for unit in UNITS]


def analyze(*words):
    return subprocess.run(["systemd-analyze", *map(str, words)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, timeout=600)


def units_are_right(units):
    """systemd has nothing to say against the units"""
    done = analyze("verify", "--man=no", *units)
    return [line for line in done.stdout.splitlines()
            if "cmportd" in line or "purecm" in line or done.returncode]


def exposure_is_small(units):
    """the services give away no more than they have to"""
    done = [analyze("security", "--offline=true", f"--threshold={EXPOSURE_MAX}", "--no-pager",
                    unit) for unit in units[1:]]
    return [line for one in done if one.returncode for line in one.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=Path)
    build = parser.parse_args().build.resolve()
    if not shutil.which("systemd-analyze"):
        print("skipped: systemd-analyze is missing: apt-get install systemd")
        return SKIPPED
    failed = 0
    with tempfile.TemporaryDirectory(prefix="purecm-test-") as folder:
        units = copy_units(build, Path(folder))
        for check in (units_are_right, exposure_is_small):
            complaints = check(units)
            print(f"{'FAIL' if complaints else 'ok':4} {check.__doc__}")
            print("".join(f"     {line}\n" for line in complaints), end="")
            failed += bool(complaints)
    print(f"{2 - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
