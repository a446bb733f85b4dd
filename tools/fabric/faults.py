# SPDX-License-Identifier: BSD-2-Clause
"""Faults of a fabric's wire: conversion from the user's syntax to the file that all senders read
(tools/fabric/wire/faults.h)."""
import re
import struct

from plan import Wrong

MAGIC = 0x6661756c
KINDS = ("loss", "duplicate", "reorder", "corrupt", "delay")
DURATION = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s)\Z")
UNITS = {"us": 1, "ms": 1000, "s": 1000000}
HELP = ("'mads:loss=0.1,delay=2ms data:loss=0.01 seed=7': of "
        + ", ".join(KINDS[:-1]) + " a share of the packets, and a delay of all")


def value_of(kind, text):
    """A share, as a number per million, or a delay in microseconds."""
    if kind == "delay":
        found = DURATION.match(text)
        if not found:
            raise Wrong(f"delay={text}: not a time like 500us, 2ms or 1s")
        return int(float(found[1]) * UNITS[found[2]])
    try:
        share = float(text)
    except ValueError:
        share = -1
    if not 0 <= share <= 1:
        raise Wrong(f"{kind}={text}: not a share between 0 and 1")
    return int(share * 1000000)


def parse(text):
    """Return the bytes of the file for a description of faults."""
    values = {what: dict.fromkeys(KINDS, 0) for what in ("mads", "data")}
    seed = 0
    for part in text.split():
        if re.match(r"seed=\d+\Z", part):
            seed = int(part[5:]) & 0xffffffff
            continue
        what, colon, list_ = part.partition(":")
        if not colon or what not in values:
            raise Wrong(f"'{part}' are no faults; this would be: {HELP}")
        for item in list_.split(","):
            kind, _, value = item.partition("=")
            if kind not in KINDS:
                raise Wrong(f"there is no fault '{kind}'; there are: {', '.join(KINDS)}")
            values[what][kind] = value_of(kind, value)
    numbers = [values[what][kind] for what in ("mads", "data") for kind in KINDS]
    return struct.pack("=2I10I", MAGIC, seed, *numbers)
