# SPDX-License-Identifier: BSD-2-Clause
"""Commands on the host, and what they leave in a folder."""
import subprocess

from .errors import LabError


def command(argv, advice="run `tests/lab/lab doctor`", **kwargs):
    """Run a host command. Return: its output. Raises LabError with its last words."""
    argv = [str(word) for word in argv]
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              errors="replace", check=False, **kwargs)
    except FileNotFoundError:
        raise LabError(f"{argv[0]} is missing: run `tests/lab/lab doctor`") from None
    if done.returncode:
        raise LabError(f"`{' '.join(argv)}` ended with status {done.returncode}: "
                       f"{done.stderr.strip()[-500:]}; {advice}")
    return done.stdout


def one_of(folder, pattern):
    """Return the only path in folder that matches pattern."""
    found = list(folder.glob(pattern))
    if len(found) != 1:
        raise LabError(f"{folder} should hold one {pattern} but holds {len(found)}; "
                       "remove that folder and run `tests/lab/lab prepare`")
    return found[0]
