#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the suites of a build folder, some at a time, and counts single tests; for tools/check,
which has built the folder.

A Meson test counts as what its program says: Check's "N%: Checks: N, Failures: N, Errors: N", or
a last line "N passed, N failed, N skipped"; otherwise as one. A program that fails is played once
more at the end, alone; what it says then counts, and the end names it. Exit status: 1 if anything
failed or nothing passed; more if there is no last line of counts.
"""
import argparse
import collections
from concurrent import futures
import fcntl
import functools
import json
import os
from pathlib import Path
import re
import signal
import subprocess
import sys
import threading
import time
import traceback

ROOT = Path(__file__).resolve().parents[1]

# In the order they begin. A test of several suites runs once, in the last of them here that runs.
FAST = ("style", "unit", "abi", "judge", "fabric")
LAB = ("luck", "lab", "parity")
LABS_AT_ONCE = 2  # each boots two hosts, which leave a core idle now and then
SUITES_AT_ONCE = 3  # many tests wait, and some suites have one that is long
EMULATED = (*LAB, "machines")  # what --quick leaves out
# Those that take longest begin first, or the run would wait for one of them at its end.
LONGEST = (*LAB, "fabric", "sanitize", "portd", "loop", "machines")
# With more programs at a time than there are cores, because they wait for most of their time; the
# labs of a run without --quick leave less of a core.
WAITING, PER_CORE, PER_CORE_QUICK = "fabric", 2, 3
LONG = ("bench", "long")  # alone: some measure time
# What runs a suite of another build folder again.
AGAIN = {"sanitize": "unit --sanitize", "fuzz": "style --fuzz"}
# A busy machine, than the one for which the time limits of programs are.
TIMES_SLOWER = 4
SHOWN_LINES = 60
COLUMNS = 100  # of a page
# Where more programs fail, the code is to blame, or the machine: none is played again.
REPLAYS_MAX = 10
# With more that pass only when played again, the first verdict of each counts.
FLAKES_MAX = 4
# How long the longer programs took with --long, by which --part divides them. For what has not been
# measured: of a suite whose programs are long, and of others.
TIMES = ROOT / "tests/times.txt"
TIMED_S_MIN = 20
UNTIMED_LONG_S, UNTIMED_S = 900, 3

# In a plain run unit tests run with sanitizers, and these also without: sanitizers make them
# shorter, or they count instructions.
UNSANITIZED = re.compile(r"__SANITIZE_|_SANITIZED\b|SLAB_ONE_BY_ONE|unit/steps\.h")

COUNTS = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped\s*\Z", re.MULTILINE)
CHECKS = re.compile(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)", re.MULTILINE)
# What names a case that failed: ours, unittest's, Check's, TAP's.
FAILED_CASE = re.compile(r"^ *(?:FAIL:? |ERROR: |not ok )(.*)$|^\S+:\d+:[FE]:(.*)$", re.MULTILINE)
NAMED_CASES = 3
PROGRESS = re.compile(r"^\s*\d+/\d+ (?:\S+ / )?(.+?) +([A-Z]+) +([\d.]+)s")

running = set()  # Meson's test runners

Counts = collections.namedtuple("Counts", "passed failed skipped", defaults=(0, 0, 0))
# A Meson test that has run: its suite, build folder and entry in the log; no folder, no test: the
# runner of the suite did not run to its end.
Program = collections.namedtuple("Program", "suite build test")


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.stdout.reconfigure(errors="backslashreplace")  # a test may print what the locale has not
    try:
        return run(parse())
    except (KeyboardInterrupt, BrokenPipeError):
        return 130
    except Exception:  # the caller has to print the last line
        traceback.print_exc()
        return 2


def run(args):
    suites = chosen(args)
    if args.list:
        print_programs(args, suites)
        return 0
    logs = args.build / "meson-logs"
    logs.mkdir(exist_ok=True)
    with (logs / ".lock").open("w") as lock:
        wait_for_others(lock)
        return play(args, suites)


def wait_for_others(lock):
    """Wait until no other run writes the logs of the build folder."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("another run in this build folder has to end first", flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)


def play(args, suites):
    """Run the suites. Return: the exit status."""
    started = time.monotonic()
    args.end = started + args.seconds
    print("\npurecm: tests", flush=True)
    names = names_of(args, suites)
    if args.part and not any(names.values()):
        print("this part has none\n0 passed, 0 failed, 0 skipped")
        return 0
    programs = list(run_all(args, suites, names))
    if args.times:
        note_times(programs)
    flakes = play_again(args, programs)
    notes = remarks_on_flakes([programs[i] for i in flakes])
    if len(flakes) <= FLAKES_MAX:
        programs = [flakes.get(i, program) for i, program in enumerate(programs)]
    notes = [note for program in programs for note in remarks(program)] + notes
    total = total_of(program.test for program in programs)
    print("\n" + "".join(f"{note}\n" for note in notes), end="")
    print(f"{time.monotonic() - started:.0f} s; logs: {args.build}/meson-logs")
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return 1 if total.failed or not total.passed else 0


def run_all(args, suites, names):
    """Run the suites, of those that are in @names only these tests. Yields each Program."""
    suites = [suite for suite in suites if names.get(suite, True)]
    first = [suite for suite in LONGEST if suite in suites]
    rest = [suite for suite in suites if suite not in LONGEST + LONG]
    with futures.ThreadPoolExecutor(SUITES_AT_ONCE) as pool:
        try:
            waiting = [pool.submit(run_suite, args, suite, suites, names.get(suite))
                       for suite in first + rest]
            for future in futures.as_completed(waiting):
                yield from summary(*future.result())
        except BaseException:
            # They end their tests before themselves, but only if they can say so.
            pool.shutdown(wait=False, cancel_futures=True)
            for meson in list(running):
                meson.terminate()
            raise
    for suite in suites:
        if suite in LONG:
            yield from summary(*run_suite(args, suite, suites, names.get(suite)))


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--sanitized", type=Path, metavar="BUILD",
                        help="another build folder, whose unit tests run too")
    parser.add_argument("--fuzzed", type=Path, metavar="BUILD",
                        help="another build folder, whose fuzz targets run too")
    parser.add_argument("--suite", action="append", help="only this one; may be repeated")
    parser.add_argument("--quick", action="store_true", help="no suite that emulates machines")
    parser.add_argument("--long", action="store_true", help="also the longest ones")
    parser.add_argument("--part", type=part, metavar="K/N", help="the K-th of N parts that take "
                        "about the same time")
    parser.add_argument("--list", action="store_true", help="name the programs instead, with the "
                        "seconds that each takes")
    parser.add_argument("--times", action="store_true", help=f"note in {TIMES.name} how long each "
                        "program took")
    parser.add_argument("--seconds", type=float, default=float("inf"),
                        help="what has not ended after this time has failed")
    return parser.parse_args()


def part(text):
    """Return K and N of a text K/N."""
    k, n = map(int, text.split("/"))
    if not 1 <= k <= n:
        raise ValueError
    return k, n


def print_programs(args, suites):
    """Print the name of each program of this part, with its time."""
    times = known_times()
    names = names_of(args, suites)
    for suite in suites:
        for name in names.get(suite, names_in(args, suite, suites)):
            print(f"{seconds_of(times, suite, name):6.0f} s  {suite}: {name}")


def names_of(args, suites):
    """Return the names of the tests to run of each suite that does not run as a whole."""
    if args.part:
        return part_of(args, suites)
    return {"unit": names_in(args, "unit", suites)} if is_unit_sanitized(args, suites) else {}


def is_unit_sanitized(args, suites):
    return {"unit", "sanitize"} <= set(suites) and not args.suite and not args.long


def part_of(args, suites):
    """Return the names of the tests of each suite that are in this part: the next longest test
    always goes to the part that takes the least time so far."""
    times = known_times()
    tests = sorted(((seconds_of(times, suite, name), suite, name) for suite in suites
                    for name in names_in(args, suite, suites)), reverse=True)
    number, n_parts = args.part
    taken = [0] * n_parts
    names = {suite: [] for suite in suites}
    for seconds, suite, name in tests:
        least = taken.index(min(taken))
        taken[least] += seconds
        if least == number - 1:
            names[suite].append(name)
    return names


def names_in(args, suite, suites):
    """Return the names of the tests that run_suite() runs for a suite."""
    build, name = folder_of(args, suite)
    others = left_to_others(build, name, suites)
    ends = unsanitized() if suite == "unit" and is_unit_sanitized(args, suites) else ""
    return [test for test, of_test in tests_by_name(build) if name in of_test
            and not of_test & others and test.endswith(ends)]


@functools.cache
def unsanitized():
    """Return how the names of the unit tests end that also run without sanitizers."""
    return tuple(file.stem.removeprefix("test") for file in (ROOT / "tests/unit").rglob("test_*.c")
                 if UNSANITIZED.search(file.read_text(encoding="utf-8")))


def known_times():
    """Return the seconds of each program, as {"suite: name": seconds}."""
    lines = TIMES.read_text(encoding="utf-8").splitlines() if TIMES.exists() else []
    return {name: float(seconds) for seconds, name in (line.split(" ", 1) for line in lines)}


def seconds_of(times, suite, name):
    untimed_s = UNTIMED_LONG_S if suite in LAB + LONG else UNTIMED_S
    return times.get(f"{suite}: {name}", untimed_s)


def note_times(programs):
    times = known_times()
    times.update({f"{program.suite}: {title(program.test)}": program.test["duration"]
                  for program in programs if program.build
                  and program.test["duration"] >= TIMED_S_MIN})
    TIMES.write_text("".join(f"{seconds:.0f} {name}\n" for name, seconds in sorted(times.items())),
                     encoding="utf-8")


def total_of(tests):
    """Return the sum of what Meson tests count for."""
    return Counts(*map(sum, zip(Counts(), *map(counts_of, tests))))


@functools.cache
def tests_by_name(build):
    """Return the name and the suites of each test of the build folder."""
    listing = subprocess.run(["meson", "introspect", build, "--tests"], capture_output=True,
                             text=True, check=True).stdout
    return [(test["name"], {suite.split(":")[-1] for suite in test["suite"]})
            for test in json.loads(listing)]


def suites_of_tests(build):
    """Return the suites of each test of the build folder."""
    return [suites for _, suites in tests_by_name(build)]


def known_suites(build):
    """Return all suites that the build folder has tests of, in the order they are to run."""
    found = set().union(*suites_of_tests(build))
    order = [*FAST, *sorted(found - {*FAST, *LAB, *LONG}), *LAB, *LONG]
    return [suite for suite in order if suite in found]


def chosen(args):
    """Return the suites to run; "sanitize" is the unit suite of another folder, "fuzz" of one
    more."""
    known = known_suites(args.build)
    if args.suite:
        unknown = set(args.suite) - set(known)
        if unknown:
            sys.exit(f"there is no suite {', '.join(unknown)}; there are {', '.join(known)}")
        suites = [suite for suite in known if suite in args.suite]
    else:
        suites = [suite for suite in known if not (args.quick and suite in EMULATED)
                  and not (suite in LONG and not args.long)]
    suites = [suite for suite in suites if has_own_tests(args.build, suite, suites)]
    if args.sanitized:
        suites.insert(suites.index("unit") + 1 if "unit" in suites else 0, "sanitize")
    if args.fuzzed:
        # Before the lab, for which it is a minute of nothing to see.
        suites.insert(next((i for i, suite in enumerate(suites) if suite in LAB + LONG),
                           len(suites)), "fuzz")
    return suites


def has_own_tests(build, suite, suites):
    """Return whether a suite has a test that is in none of those that run after it."""
    later = left_to_others(build, suite, suites)
    return any(suite in of_test and not of_test & later for of_test in suites_of_tests(build))


def left_to_others(build, suite, suites):
    """Return the suites whose tests do not run in this one: those that follow among @suites, and
    those of the lab in one that is not, whether they follow or not."""
    known = known_suites(build)
    later = known[known.index(suite) + 1:]
    return {other for other in later if other in suites or suite not in LAB}


def folder_of(args, suite):
    """Return the build folder of a suite, and the suite's name there."""
    return {"sanitize": (args.sanitized, "unit"),
            "fuzz": (args.fuzzed, "fuzz")}.get(suite, (args.build, suite))


def run_suite(args, suite, suites, names):
    """Run one suite, or its tests of these @names. Return: what summary() says of it."""
    build, name = folder_of(args, suite)
    slow = suite in LAB + LONG
    if slow:
        print(f"  {suite:9} two at a time; a few minutes", flush=True)
    which = ["--suite", name, *(names or [])]
    for other in sorted(left_to_others(build, name, suites)):
        which += ["--no-suite", other]
    if slow or suite == WAITING:
        per_core = PER_CORE_QUICK if args.quick else PER_CORE
        which += ["--num-processes", str(LABS_AT_ONCE if slow else per_core * os.cpu_count())]
    started = time.monotonic()
    tests, last_words = meson_test(args, build, which, f"testlog-{suite}", slow)
    return suite, build, tests, time.monotonic() - started, last_words


def meson_test(args, build, which, logbase, is_shown):
    """Run Meson's test runner. Return: the entries of its log, and what it printed, for the case
    that there are none."""
    log = build / f"meson-logs/{logbase}.json"
    log.unlink(missing_ok=True)
    command = ["meson", "test", "-C", build, "--no-rebuild", "--logbase", logbase,
               "--timeout-multiplier", str(TIMES_SLOWER), *which]
    environment = {**os.environ, "PURECM_TEST_LONG": "1" if args.long else "",
                   "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}
    printed = []
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env=environment) as meson:
        timer = threading.Timer(min(max(args.end - time.monotonic(), 0), threading.TIMEOUT_MAX),
                                meson.terminate)
        timer.daemon = True
        timer.start()
        running.add(meson)
        try:
            for line in meson.stdout:
                printed.append(line)
                found = PROGRESS.match(line)
                if found and is_shown:
                    name, verdict, seconds = found.groups()
                    print(f"            {verdict:9} {name:50}{float(seconds):7.1f} s", flush=True)
        except BaseException:
            meson.terminate()
            meson.communicate()
            raise
        finally:
            running.discard(meson)
            timer.cancel()
    tests = tests_of(log)
    if meson.returncode and not total_of(tests).failed:
        tests = []  # it did not get to its end
    return tests, "".join(printed[-SHOWN_LINES:])


def tests_of(log):
    """Return the entries of a log of Meson's test runner; none if it is not whole."""
    try:
        return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError):
        return []


def summary(suite, build, tests, seconds, last_words):
    """Print the line about a suite, and its failures. Return: its Programs."""
    if not tests:
        print(f"  {suite:9} the test runner did not run to its end:\n{last_words}")
        return [Program(suite, None, {"name": "the test runner", "result": "FAIL"})]
    total = total_of(tests)
    text = ", ".join(f"{number} {what}" for what, number in total._asdict().items() if number)
    programs = f" in {len(tests)} programs" if len(tests) > 1 else ""
    print(f"  {suite:9} {text + programs:62}{seconds:7.1f} s")
    for test in tests:
        if counts_of(test).failed:
            print(excerpt(test))
    sys.stdout.flush()
    return [Program(suite, build, test) for test in tests]


def play_again(args, programs):
    """Play the programs that failed once more, one at a time. Return: those that passed now, as
    {number in @programs: Program}."""
    failed = {i: program for i, program in enumerate(programs)
              if program.build and counts_of(program.test).failed}
    if not failed or len(failed) > REPLAYS_MAX:
        return {}
    print(f"  {'again':9} {len(failed)} programs that failed, one at a time", flush=True)
    flakes = {}
    for number, (i, program) in enumerate(failed.items()):
        tests, _ = meson_test(args, program.build, [title(program.test)],
                              f"testlog-again-{number}", True)
        if total_of(tests).passed and not total_of(tests).failed:
            flakes[i] = program._replace(test=tests[0])
    return flakes


def counts_of(test):
    """Return what one Meson test counts for; one failure at least if Meson says it failed."""
    text = test.get("stdout", "")
    verdict = test["result"]
    ours = COUNTS.search(text)
    checks = CHECKS.findall(text)
    if ours:
        counts = Counts(*map(int, ours.groups()))
    elif checks:
        ran, failures, errors = (sum(map(int, column)) for column in zip(*checks))
        counts = Counts(ran - failures - errors, failures + errors, 0)
    else:
        counts = Counts(passed=verdict == "OK")
    if verdict == "SKIP":
        return counts if counts.skipped else Counts(skipped=1)
    if verdict != "OK" and not counts.failed:
        return counts._replace(failed=1)
    return counts


def title(test):
    return test["name"].split(" / ", maxsplit=1)[-1]


def remarks(program):
    """Return a line for the end if the program failed or skipped something."""
    suite, test, counts = program.suite, program.test, counts_of(program.test)
    if counts.failed:
        why = "out of time" if test["result"] == "INTERRUPT" else test["result"].lower()
        return [f"FAIL {suite}: {title(test)} ({why}); again: "
                f"tools/check --suite {AGAIN.get(suite, suite)}", *failed_cases(test)]
    if counts.skipped:
        reasons = re.findall(r"^\s*skip.*$", test.get("stdout", ""), re.MULTILINE | re.IGNORECASE)
        why = reasons[-1].strip() if reasons else "it does not say why"
        return [f"skip {suite}: {title(test)}: {why}"]
    return []


def remarks_on_flakes(programs):
    """Return lines for the end about programs, as they failed, that passed when played again."""
    if not programs:
        return []
    few = (f"more than {FLAKES_MAX}, so each counts as failed" if len(programs) > FLAKES_MAX else
           "both outputs are in the logs; please add the lines to tests/flakes.md")
    return [f"passed when played again ({few}):", *map(flake_row, programs)]


def flake_row(program):
    """Return the row of tests/flakes.md about a program that failed once."""
    git = "git rev-parse --short=8 HEAD 2>/dev/null || echo ?"  # there may be none
    commit = subprocess.run(["sh", "-c", git], capture_output=True, text=True, check=False).stdout
    case = (failed_cases(program.test) or [program.test["result"].lower()])[0].strip()
    case = case.replace("|", "/")
    begin = (f"| {time.strftime('%F')} | {commit.strip()} | "
             f"{program.suite}: {title(program.test)} | ")
    room = COLUMNS - len(f"{begin} | 01234567 |")  # for the commit that will mend it
    return f"{begin}{case[:max(room, 1)]} | |"


def failed_cases(test):
    """Return a line for each of the first cases that failed, as the test's program names them."""
    found = [" ".join((ours or checks).split())
             for ours, checks in FAILED_CASE.findall(test.get("stdout", ""))]
    more = [f"and {len(found) - NAMED_CASES} more"] if len(found) > NAMED_CASES else []
    return [f"     {case}" for case in found[:NAMED_CASES] + more]


def excerpt(test):
    """Return the end of what a failed test printed, each line marked."""
    output = test.get("stdout", "") + test.get("stderr", "")
    lines = output.rstrip().splitlines()[-SHOWN_LINES:]
    return "\n".join([f"            {title(test)}: {test['result']}",
                      *(f"            | {line}" for line in lines)])


if __name__ == "__main__":
    sys.exit(main())
