#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every record of the protocol between programs and cmportd, with cmportd's filter in force: a
system call that it lacks ends cmportd. On an InfiniBand port of a soft fabric.

Prints the records that were not used, and last "N passed, N failed, N skipped". Exit status: 1 if
a test failed, 77 if there can be no fabric here.
"""
import argparse
from pathlib import Path
import subprocess
import sys

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "fabric"))

from hosts import FABRIC, run_on_fabric, run_tests  # noqa: E402

LIMIT_S = 60


def every_record_passes_a_confined_cmportd(build):
    cmportd = (f"{build}/tools/cmportd/cmportd --confine=kill --detach "
               "--ports $PURECM_FABRIC/settings")
    done = run_on_fabric(
        build, LIMIT_S, "--link", "ib", f"a:touch $PURECM_FABRIC/settings; {cmportd}",
        f"a:exec {build}/tests/portd/confined $PURECM_FABRIC/settings '{cmportd}' "
        f"'{FABRIC} remove --dir $PURECM_FABRIC/../.. a'", stderr=subprocess.STDOUT)
    assert done.returncode == 0, f"status {done.returncode}: {done.stdout[-1000:]}"
    print(done.stdout.strip().splitlines()[-1])


TESTS = (every_record_passes_a_confined_cmportd,)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build")
    return run_tests(TESTS, parser.parse_args().build.resolve())


if __name__ == "__main__":
    sys.exit(main())
