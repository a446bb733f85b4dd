# SPDX-License-Identifier: BSD-2-Clause
"""What the scripts in this folder share: running commands, skipping, and where stock is."""

import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77


def skip(why):
    """Ends the test as skipped, saying why."""
    print("skipped:", why)
    sys.exit(SKIPPED)


def run(*command, **options):
    """Standard output of a command; ends the test with its messages if it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=False, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\nexit {done.returncode}\n{done.stderr}")
    return done.stdout


def require_stock_headers(compiler):
    """Skips unless the compiler finds librdmacm headers of the distribution's, not ours."""
    with tempfile.NamedTemporaryFile("w", suffix=".c") as source:
        source.write("#include <rdma/rdma_cma.h>\n")
        source.flush()
        done = subprocess.run([*compiler, "-M", source.name], capture_output=True, text=True,
                              check=False)
    if done.returncode:
        skip("no <rdma/rdma_cma.h> to compare with; install librdmacm-dev")
    header = next(word for word in done.stdout.split() if word.endswith("rdma/rdma_cma.h"))
    if "purecm" in pathlib.Path(header).read_text(encoding="utf-8"):
        skip(f"{header} is purecm's own; nothing to compare with")


def report(differences, fine):
    """Ends the test: lists what differs, or says what is fine."""
    if differences:
        sys.exit("\n".join(differences))
    print(fine)
