# SPDX-License-Identifier: BSD-2-Clause
"""The frequency of this machine's time stamp counter, which is that of an emulated CPU.

A kernel measures it at boot by other timers. On a busy machine its CPU stands still in between, and
the frequency that it finds is sometimes far too low: 435 MHz instead of 2596, so that its clock was
six times as fast as the machine's, and all timeouts six times as short. So it is told.
"""
import ctypes
import functools
import mmap
import platform
import time

RDTSC = b"\x0f\x31\x48\xc1\xe2\x20\x48\x09\xd0\xc3"  # rdtsc; shl $32, %rdx; or %rdx, %rax; ret
INTERVAL_S, TRIES = 0.1, 50


@functools.cache
def khz():
    """Return the frequency, or None if it cannot be measured."""
    if platform.machine() != "x86_64":
        return None
    try:
        code = mmap.mmap(-1, mmap.PAGESIZE,
                         prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        return None
    code.write(RDTSC)
    start = ctypes.c_char.from_buffer(code)
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(start))
    first_ns, first = sample(read)
    time.sleep(INTERVAL_S)
    last_ns, last = sample(read)
    return round((last - first) * 1e6 / (last_ns - first_ns))


def sample(read):
    """Return a time and the counter then, from the try that was interrupted least."""
    tries = [(time.monotonic_ns(), read(), time.monotonic_ns()) for _ in range(TRIES)]
    begin, count, end = min(tries, key=lambda one: one[2] - one[0])
    return (begin + end) / 2, count
