# SPDX-License-Identifier: BSD-2-Clause
"""Sources of Debian from which rows of table.py are built: fetched by apt-get, which the machine's
own settings do not change, built once, and kept in the build folder."""
import os
from pathlib import Path
import platform
import subprocess
import sys

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lab"))

from lablib.apt import Apt  # noqa: E402
from lablib.errors import LabError  # noqa: E402

# A mirror may have one and not the other.
FETCH = """apt-get source -q {name} || {{
	apt-get source -q --tar-only --download-only {name} && tar xf {name}_*.orig.tar.*; }}"""
END_OF_LOG = 1500


class BuildFailed(Exception):
    """The end of what its build printed."""


def ready(row, build):
    """Fetch what a row needs, and build it or raise BuildFailed. Return: (its folder, ""), or
    (None, why there is none)."""
    name = row.source
    folder = build / "sources" / name
    stamp = folder / "built"
    if not stamp.exists() or stamp.read_text() != row.build:
        folder.mkdir(parents=True, exist_ok=True)
        failure = fetch(name, folder, build)
        if failure:
            return None, failure
        make(row, folder)
        stamp.write_text(row.build)
    return unpacked(folder), ""


def unpacked(folder):
    """The folder of a source, or None."""
    return next((path for path in folder.iterdir() if path.is_dir()), None)


def fetch(name, folder, build):
    """Return why there is no source in folder, or ""."""
    if unpacked(folder):
        return ""
    try:
        apt = Apt(platform.freedesktop_os_release()["VERSION_CODENAME"],
                  build / "sources/apt", kind="deb-src")
        apt.refresh()
    except LabError as error:
        return f"no lists of sources: {error}"
    return run(FETCH.format(name=name), folder, apt.env(), "apt-get source")


def make(row, folder):
    failure = run(row.build, unpacked(folder), {}, "its build")
    if failure:
        raise BuildFailed(failure)


def run(script, folder, env, what):
    with open(folder / "log", "w+", encoding="utf-8", errors="replace") as log:
        # A root of another release does not have ours.
        env = {**os.environ, "TMPDIR": str(folder), **env}
        done = subprocess.run(["sh", "-ec", script], cwd=folder, env=env, stdout=log,
                              stderr=subprocess.STDOUT, check=False)
        log.seek(0)
        text = log.read()
    return f"{what} failed: {text[-END_OF_LOG:]}" if done.returncode else ""


def script_of(row):
    """What a maintainer copies: how to fetch, build and test, in shell."""
    lines = ["#!/bin/sh -e", f"# apt-get install {row.package}"]
    if row.source:
        lines += [f"apt-get source {row.source}", f"cd {row.source}-*/", row.build.strip()]
    ends = ([f"a&:{row.server}"] if row.server else []) + [f"{'b' if row.server else 'a'}:"
                                                           f"{row.client}"]
    words = " ".join(['purecm fabric run', *row.options, *(f'"{quoted(end)}"' for end in ends)])
    return "\n".join([*lines, words]).replace("{source}", "$PWD")


def quoted(text):
    """For double quotes of the shell, {source} but not quoted."""
    for char in "\\\"$`":
        text = text.replace(char, "\\" + char)
    return text.replace("{fabric}", "purecm fabric")
