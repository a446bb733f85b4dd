# SPDX-License-Identifier: BSD-2-Clause
"""Drills and the scenarios of parity: scripts with known outcomes, of which a slow host plays as
many as there is time for."""
import contextlib
import ipaddress
from pathlib import Path
import re

import compare
from host import HERE
from pair import (FAILS, LIMIT_S, MORE_TIME, UNTRIED, WORKS, OutOfTime, Row, last_line, objects)

AS_STOCK = "as stock, event by event"
LAB = "10.77.0.1", "10.77.0.2"  # client and server in stock.txt
PARTS = 10  # of a run, to end it in time
PART_S = 900  # as a slow host needs
AGENT_PORT = "7478"
CLOCKS_MAX = 1.25  # ratio of their rates; an emulated host may have found a wrong one at its boot
NO_HURRY = "active-connect.drill"  # whose first message may come late
# Scenarios and words that depend on the device or the lab, not on the connection manager.
OF_THE_DEVICE = ("options-path-connect", "options-path-full", "exit-client-unheard",
                 "multicast-data-two")
OF_THE_PORT = re.compile(r"\b(mtu|path_mtu|rate|life|timeout|sgid_index|hop|port_num) [\dx/]+")
# What a device's driver has for enhanced connection establishment; rxe, in stock.txt, has nothing.
OF_THE_VENDOR = re.compile(r"\b(vendor) \w+ options \w+ (comp_mask 0)\b")
FLUSH = re.compile(r"\b(access_flags 0x)30(?=[\da-f]\b)")  # if a device can


def in_time(pair, directions, names):
    """Yield parts of the names, each from all over the list, until the time of the trial has been
    used; directions: that are left, this one included."""
    end = pair.end_of_trial - pair.left() * (directions - 1) / directions
    for i in range(PARTS):
        if i and pair.left() <= pair.end_of_trial - end:
            return
        yield names[i::PARTS]


def not_played(count):
    return f"; {count} were not played for want of time (--seconds)" if count else ""


def drills(pair):
    names = [path.name for path in sorted(HERE.glob("drill/*.drill"))]
    for i, (name, driller, tested, target, _) in enumerate(pair.directions(pair.main)):
        feature = f"protocol, message by message ({name[-1]} tested)"
        if pair.main.is_ib:
            yield Row(feature, UNTRIED, "purecm drill speaks RoCE")
            continue
        if not driller.has_own_cmportd():
            yield Row(feature, UNTRIED, "the other host's CM class is not free",
                      "systemctl stop cmportd.socket cmportd.service there")
            continue
        played, told, failed, said, late = [], [], [], "", []
        with pair.without_cmportd(driller), \
                pair.served(tested, "^ready", "purecm-agent", AGENT_PORT, "::"):
            for some in in_time(pair, 2 - i, names):
                more_told, more_failed, said = drill(pair, driller, target, some)
                told += more_told
                failed += more_failed
                played += some[:len(more_told)] if pair.is_cut() else some
                if len(more_told) < len(some):
                    break
            late = [Path(each["script"]).name for each in failed]
            if late and not pair.is_cut():  # a busy host may have been late: once more
                again, still_failed, said = drill(pair, driller, target, late)
                failed = still_failed if len(again) == len(late) else failed
        why = "; ".join(f"{Path(each['script']).stem}, line {each['line']}: {each['text']}"
                        for each in failed[:5]) or ("" if len(told) == len(played) else said)
        if late:
            why = f"{len(late)} were tried twice" + (f"; {why}" if why else "")
        ok = len(told) - len(failed)
        if not played or (failed and pair.is_cut()):
            yield Row(feature, UNTRIED, f"{OutOfTime()}: {ok} of {len(played)} drills passed",
                      MORE_TIME)
            continue
        yield unless_clocks_differ(pair, Row(
            feature, WORKS if ok == len(played) else FAILS,
            f"{ok} of {len(played)} drills passed" + not_played(len(names) - len(played))
            + (f"; {why}" if why else "")))


def unless_clocks_differ(pair, row):
    """Return the row; without a verdict if it fails and the other host waits too short or too long
    by this one's clock."""
    ratio = pair.clock_ratio()
    if row.verdict != FAILS or 1 / CLOCKS_MAX < ratio < CLOCKS_MAX:
        return row
    return Row(row.feature, UNTRIED, f"while a second goes by on host a, {ratio:.2f} go by on host "
               f"b, and drills measure times; {row.why}",
               "boot the host whose clock is wrong again")


def drill(pair, driller, target, names):
    """Play scripts. Return (what was said of each, of those that failed, the last line).

    A process that has sent nothing before plays another one first: its first message may be held in
    umad for a second while the kernel resolves the peer's link address, and come too late."""
    before = [] if NO_HURRY in names else [NO_HURRY]
    agent = f"{target}:{AGENT_PORT}" if ":" not in target else f"[{target}]:{AGENT_PORT}"
    try:
        text, _ = driller.run(PART_S, "purecm", "drill", "--json", "--to", target, "--agent", agent,
                              *(["--qp1"] if pair.fast_path is False else []),
                              *(f"@DATA/drill/{each}" for each in before + names))
    except OutOfTime as late:
        text = late.text
    told = objects(text)[len(before):]
    return told, [each for each in told if each["result"] != "ok"], last_line(text)


def without_device(text):
    text = OF_THE_VENDOR.sub(r"\1 own \2", compare.without_port(text))
    return FLUSH.sub(r"\1", OF_THE_PORT.sub(r"\1 own", text))


def with_addresses_of_the_lab(text, client, server):
    """Replace both hosts' addresses by those in stock.txt."""
    known = dict(zip((client, server), LAB))
    either = "|".join(map(re.escape, known))
    return re.sub(rf"(?<![\d.])({either})(?![\d.])", lambda found: known[found[1]], text)


def parity(pair):
    """The quick scenarios for two hosts over IPv4, compared with stock; both ways if one is."""
    if not ipaddress.ip_address(pair.main.there.split("%")[0]).version == 4:
        yield Row(AS_STOCK, UNTRIED, "there is no IPv4 address")
        return
    if pair.main.is_ib:
        yield Row(AS_STOCK, UNTRIED, "what stock does is known of RoCE only")
        return
    if pair.stock["b"]["library"] != "stock":
        yield as_stock(pair, AS_STOCK, 1, pair.a, pair.b, pair.main.there, pair.main.here)
        return
    for i, (direction, *ends) in enumerate(pair.directions(pair.main)):
        yield as_stock(pair, f"{AS_STOCK} ({direction})", 2 - i, *ends)


def as_stock(pair, feature, directions, *where):
    """Play the scenarios with the client on one host and the server on the other; where: both, and
    their addresses. Return: the Row.
    """
    reference = compare.parse_output(without_device((HERE / "stock.txt").read_text("utf-8")))
    rows, later = compare.load_differences(HERE / "differences.md")
    listed, _ = pair.a.run(LIMIT_S, "parity", "list")
    names = [scenario.name for scenario in compare.parse_list(listed)
             if scenario.pair and scenario.pace == "quick" and scenario.family in ("any", "v4")
             and scenario.name in reference and scenario.name not in OF_THE_DEVICE
             and not compare.reason_to_wait(later, scenario.name)]
    ends = pair, *where
    played, differ, broken = [], {}, ""
    with contextlib.suppress(OutOfTime):
        for some in in_time(pair, directions, names):
            more, broken = compared(ends, reference, rows, some)
            played += some
            differ |= more
            if broken:
                break
    late = 0 if broken or pair.is_cut() else len(differ)
    if late:  # a busy host may not have answered in time: once more
        with contextlib.suppress(OutOfTime):
            differ, broken = compared(ends, reference, rows, list(differ))
    why = f"{len(played) - len(differ)} of {len(played)} scenarios as two stock kernels"
    why += not_played(len(names) - len(played))
    if late:
        why += f"; {late} were tried twice"
    if broken:
        why += f"; the run did not end: {broken}"
    if differ:
        why += "; other: " + ", ".join(differ)
    if not played or (differ and pair.is_cut()):
        return Row(feature, UNTRIED, f"{OutOfTime()}: {why}", MORE_TIME)
    return Row(feature, FAILS if differ else WORKS, why,
               figures={"differences": {name: diff[:40] for name, diff in differ.items()}})


def compared(ends, reference, rows, names):
    """Play scenarios. Return ({name: difference} of those that differ, why they did not end)."""
    pair, asker, answerer, target, back = ends
    with pair.served(answerer, "^ready", "parity", "server"):
        text, status = asker.run(PART_S, "parity", "client", target, back, target, *names)
    text = with_addresses_of_the_lab(without_device(text), back, target)
    said = compare.parse_output(text)
    differ = {name: diff for name in names
              if (diff := compare.compare(rows, name, reference[name], said.get(name, {}),
                                          "here"))}
    return differ, last_line(text) if status is None or not said else ""
