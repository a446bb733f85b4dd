#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes random calls of libibverbs (random_verbs.c) on the soft fabric, and compares what they lead
to with what they led to on rxe, which rxe.json.xz has. The fabric's ways to carry data differ (by
memory where that is possible, by sockets only, by RoCE v2); what the calls lead to must not. A
sequence that differs is played again, more slowly.

Prints each difference and then "N passed, N failed, N skipped".
"""
import argparse
from itertools import zip_longest
import json
import lzma
from pathlib import Path
import re
import sys

from hosts import ROOT, SKIPPED, Skip, run_on_fabric

sys.path[:0] = [str(ROOT / "tests/random"), str(ROOT / "tests/lab")]
import play  # noqa: E402

RECORDED = Path(__file__).with_name("rxe.json.xz")
WAYS = ((), ("--quirk", "no-direct"), ("--wire", "roce"))
QUIET_MS, RXE_QUIET_MS = (20, 100, 300), 40
JOBS, RXE_JOBS, RECORD_S = 32, 8, 420

# What rxe does otherwise: tools/fabric/device.md has the reasons. Of these lines either will do.
ALIKE = (("local QP operation error", "local protection error"),
         ("local QP operation error", "local length error"),
         ("remote operation error", "remote invalid request error"),
         ("memory management operation error", "memory bind operation error"))
# Events that only rxe has, or only the fabric.
ONLY_ON = (re.compile("  event 5"), re.compile("  event (2|3|16)"))
# The first lines that differ; the rest of the sequence is not compared.
RECEIVE = r"  q\d receive \d+: "
SEND = r"  q\d send \d+: "
ENDS = (
    (r"  q\d is in state 6|" + RECEIVE + "Work Request Flushed Error", r"  q\d is in state 5"),
    (r"q\d: .*to state 6, .* = EINVAL", r"q\d: .*to state 6, .* = 0"),
    (SEND + "RNR retry counter exceeded", f"{SEND}(remote access|local protection) error|"
     r"  q\d is in state 6"),
    (RECEIVE + "remote access error", RECEIVE + "Work Request Flushed Error"),
    (f"{SEND}remote (access|invalid request|operation) error", SEND + "Work Request Flushed Error"),
    (SEND + "success, opcode 0", SEND + "local length error"),
    (SEND + "success, opcode [56]", SEND + "memory bind operation error"),
    (r"q\d: post .* = EINVAL", r"q\d: post .* flags [89a-f], .* = 0"),
    (r"q\d: post .* to q\d.* = 0", r"q\d: post .* to q\d.* = EINVAL"),
    (r"q\d: query, state 0,.*", r"q\d: query, state 0,.*"),
    (r"  q\d is in state 3", r"  q\d is in state 6"),
    (r"q\d: .*index wrong to .* = ENODATA", r"q\d: .* = EINVAL"),
    # On an emulated machine, four milliseconds are too short for rxe.
    (SEND + "transport retry counter exceeded", SEND + "success, .*"),
    (r"mr\d: dereg = EINVAL", r"mr\d: dereg = EBUSY"),
)


def command(build, seeds, device, quiet_ms, folder, jobs=JOBS):
    """Return the shell's command that plays sequences; one that ends has a last line."""
    play_one = (f"{build}/tests/fabric/random_verbs {device} % {quiet_ms} >{folder}/play.% && "
                f"echo end >>{folder}/play.%")
    numbers = " ".join(map(str, seeds))
    return (f"echo {numbers} | tr ' ' '\\n' | timeout {RECORD_S} xargs -P {jobs} -I% sh -c "
            f"'{play_one}'; cat {folder}/play.*")


def parse(text):
    """Return {seed: lines} of sequences that came to their end."""
    parts = re.split(r"^== (\d+)\n", text, flags=re.MULTILINE)
    played = {int(seed): lines.splitlines() for seed, lines in zip(parts[1::2], parts[2::2])}
    return {seed: lines for seed, lines in played.items() if lines[-1:] == ["end"]}


def on_fabric(build, seeds, way, quiet_ms):
    done = run_on_fabric(build, RECORD_S, "--mtu", "1500", "--hosts", "1", *way,
                         "a:" + command(build, seeds, "fab0", quiet_ms, "$PURECM_FABRIC"))
    if done.returncode:
        raise RuntimeError(f"status {done.returncode}: {done.stderr}")
    return parse(done.stdout)


def on_rxe(build, seeds):
    from lablib import Lab  # pylint: disable=import-outside-toplevel
    with Lab({"a": "stock"}) as lab:
        return parse(lab.a.run(command(build, seeds, "rxe0", RXE_QUIET_MS, "/tmp", RXE_JOBS),
                               env={"LD_LIBRARY_PATH": play.STOCK}, timeout=RECORD_S + 60).stdout)


def is_alike(ours, theirs):
    return ours == theirs or any(ours and ours.replace(*pair) == theirs for pair in ALIKE)


def first_difference(rxe, fabric):
    """Return (step of rxe, of the fabric, the first lines of them that differ), or None."""
    both = [[line for line in lines if not only.fullmatch(line)]
            for lines, only in zip((rxe, fabric), ONLY_ON)]
    for steps in zip_longest(*map(play.steps_of, both), fillvalue=[]):
        for pair in zip_longest(*steps, fillvalue=""):
            if not is_alike(*pair):
                return *steps, pair
    return None


def is_known(difference):
    if difference[2][0].startswith("  memory") or difference[2][1].startswith("  memory"):
        # How much was done before an error is open, and the header of a datagram is the sender's.
        return " to q" in difference[0][0] or any("error" in line for line in difference[0])
    return any(re.fullmatch(ours, difference[2][0]) and re.fullmatch(theirs, difference[2][1])
               for ours, theirs in ENDS)


def differences(build, recorded, way):
    """Return {seed: difference} of those that differ at each pace."""
    found = dict.fromkeys(recorded)
    for quiet_ms in QUIET_MS:
        played = on_fabric(build, found, way, quiet_ms)
        found = {seed: first_difference(recorded[seed], played.get(seed, [])) for seed in found}
        found = {seed: what for seed, what in found.items() if what and not is_known(what)}
        if not found:
            break
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--record", type=int, metavar="N", help="play N sequences on rxe, in the "
                        "lab, and keep what they lead to")
    parser.add_argument("--all", action="store_true", help="each sequence in each way, not in one")
    args = parser.parse_args()
    build = args.build.resolve()
    if args.record:
        played = on_rxe(build, range(1, args.record + 1))
        print(f"{len(played)} of {args.record} sequences ended")
        with lzma.open(RECORDED, "wt", preset=9) as file:
            json.dump(played, file)
        return 0
    with lzma.open(RECORDED, "rt") as file:
        recorded = {int(seed): lines for seed, lines in json.load(file).items()}
    failed = n_played = 0
    try:
        for i, way in enumerate(WAYS):
            part = recorded if args.all else dict(list(recorded.items())[i::len(WAYS)])
            n_played += len(part)
            for seed, (rxe, fabric, _) in differences(build, part, way).items():
                failed += 1
                print(f"FAIL sequence {seed} {' '.join(way)}", *("- " + line for line in rxe),
                      *("+ " + line for line in fabric), sep="\n")
    except Skip as skip:
        print(f"{skip}0 passed, 0 failed, {len(recorded)} skipped")
        return SKIPPED
    print(f"{n_played - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
