#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The house rules, checked: RULES at the end lists them all.

Prints a line per rule, each offence as file:line below it, and then "N passed, N failed,
N skipped". Exit status: 1 if a rule is broken.
"""
import ast
from pathlib import Path
import re
import shutil
import subprocess
import sys

ROOT = Path(__file__).resolve().parents[2]
NOT_OURS = ("build", ".git")
# REUSE-IgnoreStart
SPDX = "SPDX-License-Identifier: BSD-2-Clause"
# REUSE-IgnoreEnd
# Above the advice a line is printed; above the limit the rule fails.
FUNCTION_LINES_ADVICE, FUNCTION_LINES_MAX = 60, 100
FILE_LINES_ADVICE, FILE_LINES_MAX = 600, 900
CLANG_FORMAT = "14"

# Which declarations a public header holds is not ours to choose.
FIXED_FILES = ("include/rdma/",)

# Pages that quote what programs print, each sentence on a line of its own.
QUOTING_PAGES = ("docs/troubleshooting.md:", "tests/parity/differences.md:",
                 "tests/random/differences.md:")

# What of base/ works without I/O and clock.
PURE_BASE = ("base/hash.", "base/list.h", "base/slab.", "base/time.h", "base/timer.")

# The rooms of lib/, each above those before it; what all of them are built on; and headers that
# are data to those below: an id carries the accounts of its events, and the engine lists ids.
LIB_ROOMS = ("diag", "event", "engine", "device", "path", "id", "verbs", "sync", "names", "group",
             "conn", "rsocket")
LIB_BELOW = ("lib/api.h", "lib/net/", "lib/portd/", "base/", "cm/", "mad/")
LIB_DATA = ("lib/id/id.h", "lib/group/group.h")

# The rooms of cmportd, likewise; its state is data to all of them.
PORTD_ROOMS = ("files", "ledger", "ports", "clients", "sa", "wire", "routing", "asks")
PORTD_BELOW = ("lib/portd/proto/", "base/", "cm/", "mad/", "lib/net/")
PORTD_DATA = tuple("lib/portd/server/" + name for name in (
    "server_state.h", "limits.h", "ledger/tracked.h"))

# Folder -> what its files may include of ours, as prefixes: the arrows of docs/architecture.md.
ARROWS = (
    ("include/", ()),
    ("base/", ("base/",)),
    ("mad/sa/", ("mad/sa/", "mad/sa_msg.h", "mad/wire.h", *PURE_BASE)),
    ("mad/", ("mad/", "base/")),
    ("cm/", ("cm/", "mad/cm_msg.h", "mad/cma_hdr.h", "mad/wire.h", "mad/port.h", *PURE_BASE)),
    ("lib/net/", ("lib/net/", "base/", "mad/cm_msg.h")),
    ("lib/portd/proto/", ("lib/portd/proto/", "base/", "cm/", "mad/")),
    ("lib/portd/client/", ("lib/portd/client/", "lib/portd/proto/", "base/", "cm/", "mad/",
                           "lib/net/")),
    *(("lib/portd/server/" + room + "/", (*PORTD_BELOW, *PORTD_DATA, *(
        "lib/portd/server/" + below + "/" for below in PORTD_ROOMS[:at + 1])))
      for at, room in enumerate(PORTD_ROOMS)),
    ("lib/portd/server/", ("lib/portd/server/", *PORTD_BELOW)),
    *(("lib/" + room + "/", (*LIB_BELOW, *("lib/" + below + "/" for below in LIB_ROOMS[:at + 1]),
                             *LIB_DATA))
      for at, room in enumerate(LIB_ROOMS)),
    ("lib/", ("lib/", "base/", "cm/", "mad/")),
    ("tools/fabric/wire/", ("tools/fabric/wire/", "base/")),
    ("tools/fabric/roce/", ("tools/fabric/roce/", "tools/fabric/wire/packet.h", "mad/wire")),
    ("tools/fabric/udp/", ("tools/fabric/udp/", "tools/fabric/roce/", "tools/fabric/wire/",
                           "base/")),
    ("tools/fabric/verbs/", ("tools/fabric/verbs/", "tools/fabric/udp/", "tools/fabric/roce/",
                             "tools/fabric/wire/", "base/")),
    ("tools/fabric/umad/", ("tools/fabric/umad/", "tools/fabric/wire/")),
    ("tools/fabric/host/", ("tools/fabric/host/", "tools/fabric/udp/", "tools/fabric/roce/",
                            "tools/fabric/wire/", "base/")),
    ("tools/fabric/ipoib/", ("base/",)),
    ("tools/fabric/blocking/", ()),
    ("tools/fabric/view/", ("base/",)),
    ("tools/fabric/", ()),
    ("tools/", ("tools/", "lib/", "base/", "cm/", "mad/")),
    ("tests/", ("",)),
)

# Folder -> whose files alone may include its headers: the library has no code of the server.
ONLY_FROM = {"lib/portd/server/": ("lib/portd/server/", "tools/cmportd/", "tests/")}

# Tests that wait for a fixed time, or with a short limit, and why that decides no verdict.
FIXED_WAITS = {
    "tests/bench/": "measures time",
    "tests/fabric/queries.py": "what comes later counts as not come",
    "tests/fabric/quirks.py": "at least the interval between two probes, or resets of devices",
    "tests/fabric/resets.py": "what is closed later makes the test no harder",
    "tests/fabric/servers.py": "a server that is late",
    "tests/fabric/socket_signals.c": "interrupts a call that has begun, as recorded of stock",
    "tests/ib/membership.sh": "that nothing is left",
    "tests/ib/programs.py": "kills in the middle of something, wherever that is",
    "tests/judge/capture_golden.py": "records captures, by hand",
    "tests/lab/program_cases.py": "a server that has what it wants stays for a while",
    "tests/lab/lablib/": "settles a capture, compares clocks, ends its own threads",
    "tests/lab/selftest.py": "tries the limits themselves",
    "tests/loop/burst.c": "what comes later counts as not come",
    "tests/luck/changes.py": "a retransmission falls into the wait on any machine",
    "tests/luck/crowd.c": "a later call makes the play no easier",
    "tests/luck/death.py": "what a kernel has counted it has soon acted on",
    "tests/luck/family.c": "a thread that runs on after dlclose() would crash meanwhile",
    "tests/luck/netem.py": "how long nothing leaves a host",
    "tests/luck/removal.py": "a kernel does not say when its connection manager knows",
    "tests/luck/storm.c": "how slow a server is",
    "tests/parity/steps.c": "that nothing comes, on stock and on purecm",
    "tests/portd/confined.c": "at least the interval between two queries",
    "tests/portd/flooder_names.c": "the pace of an attacker",
    "tests/portd/many_fabric.py": "kills in the middle of something, wherever that is",
    "tests/portd/many_lab.py": "kills in the middle of something, wherever that is",
    "tests/programs/sockets.py": "how long an end is open; the row is tried again",
    "tests/random/events.c": "what has not come after two answers of the peer does not come",
    "tests/roce/loss.py": "how long a process is stopped",
    "tests/roce/programs.py": "what a capture does not have yet is not judged",
    "tests/roce/rxe_lab.py": "sends to a group again until it was heard",
    "tests/siege/siege.py": "how long an attack lasts",
    "tests/tools/kernel_lab.py": "sends a frame twice, a second apart",
    "tests/tools/make_captures.py": "records captures, by hand",
    "tests/tools/test_doctor.py": "how long a neighbour is silent",
    "tests/unit/lib/rsocket/test_wait.c": "a waker that comes late",
    "tests/worlds/": "changes a world while a program runs",
}
LIMIT_LEAST_S = 20  # that only a failure reaches
C_TEST = re.compile(r"^(?:START_)?TEST(?:_LOOP|_SIGNAL)?\(", re.MULTILINE)
C_WAIT = re.compile(r"^\t(?:u|nano)?sleep\(")  # deeper it is in a loop, which looks for something
SHELL_WAIT = re.compile(r"(?<!while )\bsleep (?:1?\d(?:\.\d+)?)(?![\d.])")  # of less than 20 s
SHELL_LOOP = re.compile(r"\b(?:do|done)\b")
SHORT_MS = r"(?:[1-9]\d{0,3}|1\d{4})"  # less than 20 s
C_LIMIT = re.compile(rf"#define\s+(?:WAIT|LIMIT|PATIENCE)_(?:MS\s+{SHORT_MS}|S\s+1?\d)\b|"
                     rf"\bck_assert\w*\(poll\([^()]*, {SHORT_MS}\), [1-9]")
WAITS = ("wait", "join", "communicate")  # methods whose first argument is a limit, in s

# What works without I/O, clock or thread: the protocol and the messages, which are all of cm/
# and mad/sa/ and these files of mad/, and what they are built on.
PURE = ("cm/", "mad/sa/", "mad/wire.", "mad/cm_msg.", "mad/cma_hdr.", "mad/cm_print.",
        "mad/port.h", "mad/sa_msg.", "tools/fabric/roce/", *PURE_BASE)
PURE_HEADERS = {"assert.h", "ctype.h", "endian.h", "errno.h", "inttypes.h", "limits.h", "stdarg.h",
                "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h",
                "arpa/inet.h", "infiniband/verbs.h", "libdeflate.h", "zlib.h"}
IMPURE_CALL = re.compile(r"\b(clock|clock_gettime|gettimeofday|time|u?sleep|nanosleep|getenv|"
                         r"s?rand|random|getrandom|open|fopen|read|write|ioctl|printf|puts)\s*\(")

INCLUDE = re.compile(r'\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')
THREAD = re.compile(r"pthread_create\(")
# Verbs that a device's firmware may execute; one of lib/ that holds locks checks that it may wait.
COMMAND = re.compile(r"\bibv_(?:query_(?:port|pkey|gid|device)\w*|open_(?:device|xrcd)|alloc_pd|"
                     r"create_(?:ah|cq|qp|srq)\w*|modify_\w+|destroy_(?:ah|cq|qp|srq)|"
                     r"(?:at|de)tach_mcast|reg_mr|dereg_mr)\(")
LOCKLESS = ("lib/rsocket/", "lib/portd/server/")  # never hold the engine's lock
# Public functions that neither lock nor wait, or do so in other public functions only.
BORDERLESS = {"rdma_create_ep", "rdma_destroy_ep", "rdma_event_str", "rdma_freeaddrinfo",
              "rdma_get_dst_port", "rdma_get_remote_ece", "rdma_get_src_port",
              "rdma_join_multicast", "rdma_set_local_ece", "purecm_reject_str", "purecm_sidr_str"}
BORDER = re.compile(r"\b(?:(?:api|sync)_return\(\s*\w+(?:\(|, )|api_enter\(|rsock_(?:call|with)\(|"
                    r"(?:send|recv)_buffer\()")
STATE = re.compile(r"(?:->|\.)state\s*=(?!=)")
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|X{3})\b")
MACHINE_PATH = re.compile(r"(?<![\w.$}>])/(?:wo" r"rk|home|Users|tmp/build|tmp/brief)\b")
WIDE = re.compile(r"^.{101}")
UNPLAIN = re.compile(r"\b(?:s?he|him|his|hers?|says?|said|tells?|told|speaks?|spoken?|silent)\b",
                     re.IGNORECASE)
UNCHECKED_COMMENTS = ("lib/portd/", "tools/purecm/", "tests/portd/", "tests/unit/portd/")
PREDICATE = re.compile(r"(\w[\w ]*[ *])(?!ibv_)(?:\w+_)?(?:is|has)_\w+\((?!\))")


def files(*suffixes):
    """Yield (name relative to the root, lines) of our files, without what a build left."""
    for folder in sorted(ROOT.iterdir()):
        if folder.name.startswith(NOT_OURS):
            continue
        for path in sorted(folder.rglob("*")) if folder.is_dir() else (folder,):
            if path.suffix in suffixes and "__pycache__" not in path.parts and is_text(path):
                yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8").splitlines()


def is_text(path):
    """Whether it is a file of ours to read; without a suffix only scripts are."""
    return path.is_file() and (path.suffix != "" or path.read_bytes()[:2] == b"#!")


def includes(suffixes=(".c", ".h")):
    """Yield (name, line number, our header or None, system header or None)."""
    for name, lines in files(*suffixes):
        for number, line in enumerate(lines, start=1):
            found = INCLUDE.match(line)
            if found:
                yield name, number, found[1], found[2]


def matches(pattern, *suffixes):
    """Yield an offence for each line of our files that the pattern is found in."""
    for name, lines in files(*suffixes):
        for number, line in enumerate(lines, start=1):
            if pattern.search(line):
                yield f"{name}:{number}: {line.strip()}"


def include_arrows():
    """folders include in one direction only"""
    for name, number, ours, _ in includes():
        allowed = next((names for folder, names in ARROWS if name.startswith(folder)), None)
        if allowed is None:
            yield f"{name}:{number}: ARROWS does not say what this folder may include"
        elif ours and not (ours.startswith(allowed) and is_for(ours, name)):
            yield f"{name}:{number}: must not include {ours}"


def is_for(header, name):
    """Whether a header's folder lets a file include it."""
    return all(name.startswith(those) for folder, those in ONLY_FROM.items()
               if header.startswith(folder))


def pure_headers():
    """the protocol includes no header of I/O, time or threads"""
    for name, number, _, system in includes():
        if name.startswith(PURE) and system and system not in PURE_HEADERS:
            yield f"{name}:{number}: <{system}> in a pure file"


def pure_calls():
    """the protocol reads no clock, environment or file"""
    for name, lines in files(".c", ".h"):
        if name.startswith(PURE):
            for number, line in enumerate(strip_comments(lines), start=1):
                if IMPURE_CALL.search(line):
                    yield f"{name}:{number}: {line.strip()}"


def strip_comments(lines):
    """Return the lines with comments blanked, so that line numbers stay."""
    text = "\n".join(lines)
    return re.sub(r"/\*.*?\*/", lambda found: re.sub(r"[^\n]", " ", found[0]), text,
                  flags=re.DOTALL).split("\n")


def one_place_for_states():
    """only cm/fsm.c assigns a connection's state"""
    for offence in matches(STATE, ".c", ".h"):
        if offence.startswith("cm/") and not offence.startswith("cm/fsm.c:"):
            yield offence


def one_place_for_threads():
    """only base/thread.c makes threads, of what is installed as a library or serves it"""
    for offence in matches(THREAD, ".c"):
        if offence.startswith(("lib/", "portd/", "net/", "mad/", "sa/", "cm/")) and \
                not offence.startswith("base/thread.c:"):
            yield offence


def commands_are_checked():
    """in lib/, who has a device execute a command makes sure that no lock is held"""
    for name, function, number, length in functions():
        if name.startswith("lib/") and name.endswith(".c") and not name.startswith(LOCKLESS):
            lines = (ROOT / name).read_text(encoding="utf-8").splitlines()[number - 1:][:length]
            body = "\n".join(strip_comments(lines))
            if (found := COMMAND.search(body)) and "command_check();" not in body[:found.start()]:
                yield f"{name}:{number}: {function} calls {found[0]}) without command_check()"
    for name, number, ours, _ in includes():
        if name.startswith(LOCKLESS) and ours == "lib/engine/engine.h":
            yield f"{name}:{number}: LOCKLESS says that it does not hold the engine's lock"


def public_calls_are_not_cancelled():
    """in lib/, public functions put off cancellation"""
    public = set(re.findall(r"\b(\w+);", (ROOT / "lib/librdmacm.map").read_text(encoding="utf-8")))
    for name, function, number, length in functions():
        if name.startswith("lib/") and name.endswith(".c") and function in public - BORDERLESS:
            lines = (ROOT / name).read_text(encoding="utf-8").splitlines()[number - 1:][:length]
            if not BORDER.search("\n".join(strip_comments(lines))):
                yield f"{name}:{number}: {function} is not within api_enter() and api_leave()"


def functions():
    """Yield (file, name, first line, lines) of every function; C by its braces in column 0."""
    for name, lines in files(".c"):
        for number, line in enumerate(lines, start=1):
            if line == "{":
                end = next(i for i, text in enumerate(lines[number:], number + 1) if text == "}")
                yield name, function_name(lines, number - 1), number, end - number + 1
    for name, lines in files(".py"):
        for node in ast.walk(ast.parse("\n".join(lines))):
            if isinstance(node, ast.FunctionDef):
                yield name, node.name, node.lineno, node.end_lineno - node.lineno + 1


def function_name(lines, brace):
    """Return the name of the function whose opening brace is lines[brace]."""
    first = brace - 1
    while lines[first].startswith(("\t", " ")):
        first -= 1
    found = re.search(r"([a-z_0-9]+)\)?\(", lines[first]) or re.search(r"\((\w+)", lines[first])
    return found[1] if found else lines[first]


def short_functions():
    """functions have at most 100 lines, and should have at most 60"""
    for name, function, number, length in functions():
        yield from too_long(f"{name}:{number}: {function}", length, FUNCTION_LINES_ADVICE,
                            FUNCTION_LINES_MAX)


def short_files():
    """files have at most 900 lines, and should have at most 600"""
    for name, lines in files(".c", ".h", ".py", ""):
        if not name.startswith(FIXED_FILES):
            yield from too_long(f"{name}:1:", len(lines), FILE_LINES_ADVICE, FILE_LINES_MAX)


def too_long(what, length, advice, limit):
    """Yield an offence above the limit; print a line above the advice."""
    if length > limit:
        yield f"{what} has {length} lines, over {limit}"
    elif length > advice:
        print(f"note {what} has {length} lines, over {advice}")


def plain_comments():
    """comments of C use he, she, say, tell, speak and silent for no program or message"""
    for name, lines in files(".c", ".h"):
        if not name.startswith(UNCHECKED_COMMENTS):
            text = "\n".join(lines)
            for comment in re.finditer(r"/\*.*?\*/", text, re.DOTALL):
                found = UNPLAIN.search(comment[0])
                if found and not found[0].isupper():
                    number = text.count("\n", 0, comment.start() + found.start()) + 1
                    yield f"{name}:{number}: {found[0]}"


def predicates():
    """functions whose names have is_ or has_ return bool, outside of tests"""
    for name, lines in files(".c", ".h"):
        for number, line in enumerate(lines, start=1):
            if (found := PREDICATE.match(line)) and "bool" not in found[1] and \
                    not name.startswith("tests/"):
                yield f"{name}:{number}: {line}"


def narrow_lines():
    """lines of scripts have at most 100 columns"""
    yield from matches(WIDE, ".py", ".sh", ".build", "")


def narrow_pages():
    """lines of pages have at most 100 columns"""
    for offence in matches(WIDE, ".md"):
        if not offence.startswith(QUOTING_PAGES):
            yield offence


def opening_comments():
    """a file opens with its licence and with what it is"""
    for name, lines in files(".c", ".h"):
        if lines[:1] != [f"/* {SPDX} */"]:
            yield f"{name}:1: not /* {SPDX} */"
        elif not lines[1:] or not lines[1].startswith("/*"):
            yield f"{name}:2: no comment saying what the file is"
    for name, lines in files(".py", ".sh"):
        head = [line for line in lines[:3] if not line.startswith("#!")]
        if not head or head[0] != f"# {SPDX}":
            yield f"{name}:1: no {SPDX}"
        elif not head[1:] or not head[1].startswith(('"""', "#")):
            yield f"{name}:2: nothing says what the file is"


def finished():
    """nothing is marked as to be done"""
    yield from matches(UNFINISHED, ".c", ".h", ".py", ".sh", ".md", ".build", "")


def no_machine_paths():
    """no path of one machine"""
    yield from matches(MACHINE_PATH, ".c", ".h", ".py", ".sh", ".md", ".build", ".txt", "")


def mended_flakes():
    """a program that passed only when played again, and twice, is mended or not in the plain run"""
    rows = [[cell.strip() for cell in line.split("|")[3:6]] for line in
            (ROOT / "tests/flakes.md").read_text(encoding="utf-8").splitlines()
            if line.startswith("| 20")]
    programs = [program for program, _, mended in rows if not mended]
    for program in sorted({name for name in programs if programs.count(name) > 1}):
        yield f"tests/flakes.md: {program} has more than one row that nothing mended"


def printable_names():
    """who reads the name of a process, which its user chooses, makes it printable"""
    for name, lines in files(".c"):
        text = "\n".join(lines)
        if not name.startswith("tests/") and '/comm"' in text and "make_printable" not in text:
            yield f"{name}: reads /proc/PID/comm, without text_make_printable()"


def no_fixed_waits():
    """tests wait for a condition for 20 s or more, compare no durations; or FIXED_WAITS says why"""
    for name, lines in files(".c", ".h", ".py", ".sh", ""):
        if name.startswith("tests/") and not name.startswith(tuple(FIXED_WAITS)):
            if name.endswith(".py"):
                yield from python_waits(name, lines)
            elif name.endswith((".c", ".h")):
                yield from c_waits(name, lines)
            yield from shell_waits(name, "\n".join(lines))


def c_waits(name, lines):
    """Yield an offence for each wait of a fixed time in a C file."""
    for number, line in enumerate(lines, start=1):
        if C_WAIT.match(line) or C_LIMIT.search(line):
            yield f"{name}:{number}: {line.strip()}"


def shell_waits(name, text):
    """Yield an offence for each wait of a fixed time in a shell's words; one in a loop looks for
    something."""
    for wait in SHELL_WAIT.finditer(text):
        before = SHELL_LOOP.findall(text, 0, wait.start())[-1:]
        after = SHELL_LOOP.search(text, wait.end())
        if before != ["do"] or not after or after[0] != "done":
            yield f"{name}:{text.count(chr(10), 0, wait.start()) + 1}: {wait[0]}"


def python_waits(name, lines):
    """Yield an offence for each wait of a fixed time, each short limit, and each comparison of a
    time that something took, in a Python file."""
    tree = ast.parse("\n".join(lines))
    polls = {id(inner) for loop in ast.walk(tree) if isinstance(loop, (ast.For, ast.While))
             for inner in ast.walk(loop)}
    constants = {ast.unparse(node.targets[0]): node.value.value for node in tree.body
                 if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)}
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        called = ast.unparse(node.func).split(".")[-1]
        limits = [word.value for word in node.keywords if word.arg == "timeout"]
        limits += node.args[:called in WAITS]
        if called == "sleep" and id(node) not in polls:
            yield f"{name}:{node.lineno}: a wait of a fixed time"
        for limit in (constants.get(ast.unparse(limit), getattr(limit, "value", None))
                      for limit in limits):
            if isinstance(limit, (int, float)) and limit < LIMIT_LEAST_S:
                yield f"{name}:{node.lineno}: a limit of {limit} s"
    for node in filter(is_comparison, ast.walk(tree)):
        if any(map(is_duration, ast.walk(node))):
            yield f"{name}:{node.lineno}: compares the time that something took"


def is_comparison(node):
    """Return whether a node compares two values, or asserts that one is less than the other."""
    return isinstance(node, ast.Compare) or (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and
        node.func.attr.startswith(("assertLess", "assertGreater")))


def is_duration(node):
    """Return whether a node is a time since then, or the variable of one."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return ast.unparse(node.left) == "time.monotonic()"
    return isinstance(node, ast.Name) and node.id.startswith("took")


def written_tests_are_counted():
    """docs/testing.md says how many tests are written, in hundreds"""
    number = sum(len(C_TEST.findall("\n".join(lines))) for name, lines in files(".c")
                 if name.startswith("tests/"))
    number += sum(map(n_python_tests, (node for name, lines in files(".py")
                                       if name.startswith("tests/")
                                       for node in ast.walk(ast.parse("\n".join(lines))))))
    said = f"More than {number // 100 * 100:,} tests are written"
    if said not in (ROOT / "docs/testing.md").read_text(encoding="utf-8"):
        yield f"docs/testing.md: does not say: {said}; there are {number:,}"


def n_python_tests(node):
    """Return how many tests a node of a syntax tree is: a function, or the elements of TESTS."""
    if isinstance(node, ast.FunctionDef):
        return node.name.startswith("test_") or any(
            isinstance(word, ast.Name) and word.id in ("check", "long_check")
            for word in node.decorator_list)
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TESTS":
        return len(getattr(node.value, "elts", ()))
    return 0


def clang_format():
    """C is formatted as .clang-format says"""
    program = shutil.which("clang-format-" + CLANG_FORMAT) or shutil.which("clang-format")
    if not program:
        raise Skip("clang-format is missing: apt-get install clang-format")
    version = subprocess.run([program, "--version"], capture_output=True, text=True,
                             check=True).stdout
    if f"version {CLANG_FORMAT}." not in version:
        raise Skip(f"versions format differently: {CLANG_FORMAT} is wanted, not {version.strip()}")
    names = [ROOT / name for name, _ in files(".c", ".h")]
    done = subprocess.run([program, "--dry-run", *names], capture_output=True, text=True,
                          check=False)
    places = re.findall(r"^(.+):(\d+):\d+: .*-Wclang-format-violations", done.stderr, re.MULTILINE)
    lines = {}
    for path, line in places:
        lines.setdefault(str(Path(path).relative_to(ROOT)), []).append(line)
    for name, numbers in lines.items():
        yield f"{name}:{numbers[0]}: {len(numbers)} places; run: clang-format -i {name}"


class Skip(Exception):
    """A rule that cannot be checked here; the text says why."""


RULES = (include_arrows, pure_headers, pure_calls, one_place_for_states, one_place_for_threads,
         commands_are_checked, public_calls_are_not_cancelled, short_functions, short_files,
         plain_comments, predicates, narrow_lines, narrow_pages, opening_comments, finished,
         no_machine_paths, mended_flakes, printable_names, no_fixed_waits,
         written_tests_are_counted, clang_format)


def verdict_of(rule):
    """Print what a rule says. Return: "ok", "FAIL" or "skip"."""
    try:
        offences, verdict, why = list(rule()), "ok", ""
    except Skip as reason:
        offences, verdict, why = [], "skip", f": {reason}"
    if offences:
        verdict = "FAIL"
    print(f"{verdict:4} {rule.__doc__}{why}")
    for offence in offences:
        print(f"     {offence}")
    return verdict


def main():
    verdicts = [verdict_of(rule) for rule in RULES]
    failed = verdicts.count("FAIL")
    print(f"{verdicts.count('ok')} passed, {failed} failed, {verdicts.count('skip')} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
