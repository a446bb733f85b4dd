#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""tests/parity on a soft fabric: purecm on both hosts, compared with what two stock kernels did.
Some scenarios on each device, too, others on each; with $PURECM_TEST_LONG all on each.

In a build with sanitizers what these find in a scenario's processes, cmportd or fabric-host is a
failure, too. What stock did was taken down in the lab and stands in tests/fabric/stock.txt. After a
change of a scenario it is taken anew:

    names=$(tests/fabric/parity.py --names)
    tests/parity/run.py --stock-only --families v4 --keep DIR --only $names
    tests/fabric/parity.py --take DIR

or of the new ones only: what is not in DIR stays as it is.

Prints a line per difference and then "N passed, N failed, N skipped".
"""
import argparse
import os
from pathlib import Path
import re
import signal
import subprocess
import sys
import tempfile

from hosts import CONNECTING, ROOT, SKIPPED, Skip, run_on_fabric

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "tests/parity"))

import compare  # noqa: E402

REFERENCE = HERE / "stock.txt"
DIFFERENCES = ROOT / "tests/parity/differences.md"
LIMIT_S = 300
# Each device has its own order of GIDs, another port, and its driver's options for ECE.
OWN = re.compile(r"\b(sgid_index) \d+|\b(port_num) (?:0x)?[12]\b|"
                 r"\b(vendor) \w+ options \w+ comp_mask 0\b")
EVERY = 27  # scenario is played on each device in a plain run: all devices play a third of all
PATH_MTU_1024 = "1500"  # as the lab's interfaces have it
KILLED_MEANWHILE = re.compile(r"^==\d+==Unable to get registers from thread \d+\.\n", re.MULTILINE)

# Scenarios that show the device or the lab, not the connection manager.
NOT_HERE = {
    "options-path-connect": "rxe has its own idea of what ibv_query_qp says before a path is set",
    "options-path-full": "rxe does not keep the service level of an address vector",
    "exit-client-unheard": "it changes the lab's neighbours, as root",
    "multicast-data-two": "a member does not hear its own datagrams here",
}


def scenarios(program):
    """The names of those for two hosts that wait for no long timers."""
    listed = subprocess.run([program, "list"], capture_output=True, text=True, check=True).stdout
    return [scenario.name for scenario in compare.parse_list(listed)
            if scenario.pair and scenario.pace == "quick" and scenario.family in ("any", "v4")]


def take(folder, names):
    """Write down what `run.py --keep` kept of stock; of others, what was known stays."""
    known = compare.parse_output(REFERENCE.read_text(encoding="utf-8"))
    said = {f"{name}.{side}": lines for name, sides in known.items() if name in names
            for side, lines in sides.items()}
    for path in Path(folder, "stock-stock/v4").iterdir():
        if path.stem in names:
            text = compare.without_port(path.read_text(encoding="utf-8")).strip("\n")
            said[path.name] = text.splitlines() if text else []
    text = []
    for key in sorted(said):
        text += ["== " + " ".join(key.rsplit(".", 1)), *said[key]]
    REFERENCE.write_text("\n".join(text) + "\n", encoding="utf-8")


def found_by_sanitizers(folder):
    """Return what they wrote, without a leak check's word on a process killed meanwhile."""
    said = "".join(path.read_text(errors="replace") for path in sorted(Path(folder).iterdir()))
    return KILLED_MEANWHILE.sub("", said)


def play(build, program, names, folder, device):
    """Return {scenario: {side: lines}} of this library, or raise RuntimeError."""
    env = dict(os.environ)
    for name, more in (("ASAN_OPTIONS", ":handle_segv=0:handle_abort=0"),
                       ("UBSAN_OPTIONS", ":halt_on_error=1:print_stacktrace=1")):
        env[name] = f"log_path={folder}/{name}{more}"
    done = run_on_fabric(
        build, LIMIT_S, "--mtu", PATH_MTU_1024, *(["--device", device] if device else []),
        f"b&:{program} server >/dev/null 2>&1",
        f"a:{program} client fd77::2 10.77.0.1 10.77.0.2 {' '.join(names)} 2>/dev/null", env=env)
    # 1: some scenario gave up, and the comparison says which.
    if done.returncode not in (0, 1):
        raise RuntimeError(f"status {done.returncode}: {done.stderr}")
    if found := found_by_sanitizers(folder):
        raise RuntimeError(found)
    text = compare.without_port(done.stdout)
    return compare.parse_output(OWN.sub(r"\1\2\3 own", text) if device else text)


def rounds(names, args):
    """Yield (device, names of scenarios): what a program sees is the same whatever the device."""
    is_long = os.environ.get("PURECM_TEST_LONG")
    yield None, names if is_long else names[::args.every]
    for i, device in enumerate(CONNECTING):
        if args.device in (None, device):
            yield device, names if is_long else names[EVERY * i // len(CONNECTING)::EVERY]


def play_rounds(program, names, args):
    """Return (passed, failed, skipped)."""
    text = REFERENCE.read_text(encoding="utf-8")
    reference = compare.parse_output(text)
    of_any_device = compare.parse_output(OWN.sub(r"\1\2\3 own", text))
    counts = []
    for device, some in rounds(names, args):
        with tempfile.TemporaryDirectory(prefix="parity-") as folder:
            said = play(args.build, program, some, folder, device)
        counts.append(judge(some, of_any_device if device else reference, said, device or "fabric"))
        print("%s: %d as stock, %d other, %d not compared" % (device or "without quirks",
                                                              *counts[-1]), flush=True)
    return tuple(map(sum, zip(*counts)))


def judge(names, reference, outputs, label):
    """Print what differs. Return: (passed, failed, skipped)."""
    rows, later = compare.load_differences(DIFFERENCES)
    passed = failed = skipped = 0
    for name in names:
        if name in NOT_HERE:
            print(f"skip {name}: {NOT_HERE[name]}")
        if name in NOT_HERE or name not in reference or compare.reason_to_wait(later, name):
            skipped += 1
            continue
        diff = compare.compare(rows, name, reference[name], outputs.get(name, {}), label)
        print("\n".join(diff), end="\n" if diff else "")
        failed += bool(diff)
        passed += not diff
    return passed, failed, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--every", default=1, type=int, metavar="N", help="so many-th scenario, "
                        "except with PURECM_TEST_LONG")
    parser.add_argument("--device", choices=CONNECTING, help="besides the one without quirks (all)")
    parser.add_argument("--take", metavar="DIR", help="what run.py --keep kept")
    parser.add_argument("--names", action="store_true", help="print the scenarios' names and end")
    args = parser.parse_args()
    program = args.build / "tools/certify/parity"
    # A background job of a shell ignores it, and some scenarios interrupt a process.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    names = scenarios(program)
    if args.names:
        print(" ".join(names))
        return 0
    if args.take:
        take(args.take, names)
        return 0
    try:
        counts = play_rounds(program, names, args)
    except RuntimeError as error:
        print(error)
        counts = (0, 1, 0)
    except Skip as skip:
        print(skip)
        counts = (0, 0, len(names))
    print("%d passed, %d failed, %d skipped" % counts)
    if counts[1]:
        return 1
    return 0 if counts[0] else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
