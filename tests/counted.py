# SPDX-License-Identifier: BSD-2-Clause
"""The last line of a test program of unittest, which tools/run_suites.py reads."""


def summary(result):
    """Print why tests were skipped, and the counts of a unittest result. Return: the exit status.

    A test that fails in several of its parts counts once. The tests of a class whose set-up fails
    are not in result.testsRun, the failure is.
    """
    for test, why in result.skipped:
        print(f"skipped: {test.id()}: {why}")
    failed = len({test.id().split(" ")[0] for test, _ in result.failures + result.errors})
    skipped = len(result.skipped)
    passed = max(result.testsRun - failed - skipped, 0)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed + skipped else 0
