#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every way of docs/compile.md builds its program, which runs.

compile.py PAGE BUILD    BUILD is where the library was built

Ends with a line "N passed, N failed, N skipped".
"""
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = {"c": "main.c", "cmake": "CMakeLists.txt", "meson": "meson.build"}
SAID = "RDMA_CM_EVENT_ESTABLISHED\n"
BUILDERS = {"cmake": "cmake -S . -B made && cmake --build made && cp made/main main",
            "meson": "meson setup made && meson compile -C made && cp made/main main"}


def ways(page):
    """Yield (program that it needs, commands that make main), and the files by their names."""
    blocks = BLOCK.findall(page)
    files = {FILES[kind]: text for kind, text in blocks if kind in FILES}
    shell = "".join(text for kind, text in blocks if kind == "sh").replace("\\\n", "")
    yield from ((command.split()[0], command, files) for command in shell.splitlines())
    yield from ((name, command, files) for name, command in BUILDERS.items())


def play(command, files, build):
    """Return what is wrong with one way; '' if nothing is."""
    env = {**os.environ, "LD_LIBRARY_PATH": str(build / "lib"),
           "PKG_CONFIG_PATH": str(build / "meson-uninstalled")}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        done = subprocess.run(["sh", "-ec", f"({command}) >&2; ./main"], cwd=folder, env=env,
                              capture_output=True, text=True, check=False)
    return "" if (done.returncode, done.stdout) == (0, SAID) else done.stdout + done.stderr


def main():
    page, build = Path(sys.argv[1]).read_text(encoding="utf-8"), Path(sys.argv[2]).resolve()
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for program, command, files in ways(page):
        if not shutil.which(program):
            counts["skipped"] += 1
            continue
        wrong = play(command, files, build)
        counts["failed" if wrong else "passed"] += 1
        if wrong:
            print(f"FAIL {command}\n{wrong}")
    print(", ".join(f"{n} {what}" for what, n in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
