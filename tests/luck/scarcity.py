# SPDX-License-Identifier: BSD-2-Clause
"""Descriptors and memory that run out, in each place of a conversation: see scarce.c."""
from lucklib import check


def scarce(bench, good, variant=None, **env):
    bench.modes("stock", "purecm")
    result = bench.b.run([bench.program("scarce", variant), good, bench.b.addr4],
                         env=bench.env(variant=variant, **env), timeout=280)
    if not result.ok:
        raise AssertionError(result.output[-3000:])


@check("scarcity", long=True)
def descriptors_may_run_out_in_any_place(bench):
    scarce(bench, "fds")


@check("scarcity", long=True)
def any_allocation_may_fail(bench):
    scarce(bench, "memory", LD_PRELOAD=bench.program("failmem.so"))


@check("scarcity", long=True)
def descriptors_may_run_out_in_any_place_and_nothing_leaks(bench):
    scarce(bench, "fds", "asan")
