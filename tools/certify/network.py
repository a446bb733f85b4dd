# SPDX-License-Identifier: BSD-2-Clause
"""The addresses, routes and permanent neighbours of this host: Linux forgets some when a link goes
down or an address is removed, and ip(8) puts back those that it has saved."""
import re
import subprocess
import sys
import tempfile
import time

SAVED = {("addr",): (), ("-4", "route"): ("table", "all"), ("-6", "route"): ("table", "all")}
SHOWN = {"address": ("-o", "addr"), "route": ("-4", "route", "show", "table", "all"),
         "IPv6 route": ("-6", "route", "show", "table", "all"),
         "neighbour": ("neigh", "show", "nud", "permanent")}
# Routes by a redirect, the kernel, or a router's advertisement, which Linux adds by itself.
NOT_OURS, PROTOCOLS_NOT_OURS = re.compile(r"proto (redirect|kernel|ra)\b"), (1, 2, 9)
MAGIC_BYTES, PROTOCOL_AT = 4, 16 + 5  # before the messages; in each, in its struct rtmsg
# What changes by itself.
AGES = re.compile(r"[0-9]+sec|tentative|dadfailed|linkdown|dynamic")
PATIENCE_S, PAUSE_S = 5, 0.1  # addresses of IPv6 are checked for duplicates first, for 2 s


def ip(*words, given=b""):
    """Return what ip prints; what comes of it is seen later."""
    with tempfile.TemporaryFile() as file:  # ip reads it more than once
        file.write(given)
        file.seek(0)
        return subprocess.run(["ip", *words], stdin=file, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False).stdout


def shown():
    """What there is, as {(kind, text)}."""
    return {(kind, " ".join(AGES.sub("", line).split())) for kind, words in SHOWN.items()
            for line in ip(*words).decode().splitlines() if not NOT_OURS.search(line)}


def ours(routes):
    """Return those of saved messages that Linux does not add by itself."""
    at = MAGIC_BYTES
    kept = routes[:at]
    while at < len(routes):
        size = int.from_bytes(routes[at:at + 4], sys.byteorder)
        if routes[at + PROTOCOL_AT] not in PROTOCOLS_NOT_OURS:
            kept += routes[at:at + size]
        at += size
    return kept


def take():
    """What there is now, for put_back()."""
    saved = {words: ip(*words, "save", *which) for words, which in SAVED.items()}
    return {words: ours(messages) if "route" in words else messages
            for words, messages in saved.items()}, shown()


def put_back(before, interface=None):
    """Add what is missing since take(); of an @interface, all addresses of IPv4 in their order, as
    the first of a network is its primary one. Return: the names of what the kernel does not
    accept."""
    saved, those = before
    deadline = time.monotonic() + PATIENCE_S
    if interface:
        ip("-4", "addr", "flush", "dev", interface)
    while True:
        for kind, line in those:
            if kind == "neighbour":
                ip("neigh", "replace", *line.replace("PERMANENT", "nud permanent").split())
        for words, messages in saved.items():
            ip(*words, "restore", given=messages)
        lost = those - shown()
        if not lost or time.monotonic() > deadline:
            return sorted(f"{kind} {line}" for kind, line in lost)
        time.sleep(PAUSE_S)
