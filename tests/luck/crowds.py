# SPDX-License-Identifier: BSD-2-Clause
"""Many threads on one channel, and whole programs, over builds with sanitizers."""
import re

from lucklib import HERE, check, same

FINDING = re.compile(r"(ERROR|WARNING): (Address|Thread|Leak)Sanitizer|runtime error:")
LEAK = re.compile(r"leak of .*? allocated from:\n((?:    #.*\n)+)")
THREAD_OPTIONS = f"second_deadlock_stack=1:suppressions={HERE}/thread.supp"
OURS = re.compile(r"/(lib|net|cm|mad)/\w+\.c:\d+$")


def crowd(bench, variant, *words, program="crowd", **env):
    bench.modes("stock", "purecm")
    result = bench.b.run([bench.program(program, variant), bench.b.addr4, *words],
                         env=bench.env(variant=variant, **env), timeout=300)
    if not result.ok or FINDING.search(result.output):
        raise AssertionError(f"status {result.status}: {result.output[:3000]}")


@check("threads")
def threads_share_a_channel_and_are_cancelled_while_they_wait(bench):
    crowd(bench, None, "100", "8")


@check("threads", long=True)
def threads_race_for_nothing_says_thread_sanitizer(bench):
    crowd(bench, "tsan", "50", "4", "calm", TSAN_OPTIONS=THREAD_OPTIONS)


@check("threads", long=True)
def threads_use_all_of_the_api_at_once(bench):
    crowd(bench, None, "200", program="tangle")


@check("threads", long=True)
def threads_that_use_all_of_the_api_race_for_nothing_says_thread_sanitizer(bench):
    crowd(bench, "tsan", "30", program="tangle", TSAN_OPTIONS=THREAD_OPTIONS)


@check("threads", long=True)
def threads_that_use_all_of_the_api_touch_nothing_freed_says_address_sanitizer(bench):
    crowd(bench, "asan", "40", program="tangle", ASAN_OPTIONS="use_sigaltstack=0")


@check("threads", long=True)
def threads_use_nothing_that_is_gone_says_address_sanitizer(bench):
    # It cannot unwind a cancelled thread from its signal stack.
    crowd(bench, "asan", "50", "4", ASAN_OPTIONS="use_sigaltstack=0")


def our_leaks(text):
    """Leaks whose memory the library itself asked for; others are the programs' or libibverbs'."""
    stacks = [[line for line in stack.splitlines() if "libsanitizer" not in line]
              for stack in LEAK.findall(text)]
    return [stack for stack in stacks if stack and OURS.search(stack[0])]


def sanitized(bench, server, client):
    """Run both programs over the library with AddressSanitizer; neither may hurt it or leak."""
    bench.modes("purecm", "purecm")
    env = bench.env(variant="asan", LD_PRELOAD="libasan.so.8", PURECM_LOG="debug",
                    ASAN_OPTIONS="use_sigaltstack=0", LSAN_OPTIONS="exitcode=0")
    listener = bench.a.start(server, env=env)
    listener.wait_for_output("listening on", timeout=60)
    results = [bench.b.run(client, env=env, timeout=100), listener.wait(100)]
    for result in results:
        same(result.status, 0)
        finding = FINDING.search(result.stderr.replace("ERROR: LeakSanitizer", ""))
        if finding:
            raise AssertionError(result.stderr[finding.start():][:3000])
        same(our_leaks(result.stderr), [])


@check("threads")
def rping_over_address_sanitizer_finds_and_leaks_nothing(bench):
    address = bench.a.addr4
    sanitized(bench, ["rping", "-s", "-a", address, "-C", "10"],
              ["rping", "-c", "-a", address, "-C", "10"])


@check("threads", long=True)
def ucmatose_over_address_sanitizer_finds_and_leaks_nothing(bench):
    sanitized(bench, ["ucmatose", "-c", "100"], ["ucmatose", "-s", bench.a.addr4, "-c", "100"])
