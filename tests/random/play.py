# SPDX-License-Identifier: BSD-2-Clause
"""Plays scripts with the player, on the soft fabric or in the lab, and compares transcripts."""
import fnmatch
from itertools import zip_longest
import json
import lzma
from pathlib import Path
import re
import sys
import tempfile

import generate

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/fabric"))
from hosts import run_on_fabric  # noqa: E402

DIFFERENCES = Path(__file__).with_name("differences.md")
RECORDED = Path(__file__).with_name("stock.json.xz")
PORT = 7900  # of the peer
HOSTS = {"fabric": ("10.77.0.1", "fd77::1", "10.77.0.2", "fd77::2"),
         "lab": ("10.77.0.1", "fd00:77::1", "10.77.0.2", "fd00:77::2")}
# First, and when what differs is played again: on a slow host it may only have been late.
PACES = ({}, {"jobs": 4, "pause_us": 30000}, {"jobs": 2, "pause_us": 150000})
LIMIT_MS = 1500  # of a call that waits
STOCK = "/usr/lib/x86_64-linux-gnu:/usr/lib64:/usr/lib"


# What depends on the run, the network, or the device, and what stands for it. Stock's path records
# have a MAC address in some fields: see tests/parity/differences.md.
MASKED = ((re.compile(r" flow 0x\w+"), " flow -"),
          (re.compile(r"path dlid \w+ slid \w+"), "path dlid - slid -"),
          (re.compile(r"beyond the flow label \w+"), "beyond the flow label -"),
          (re.compile(r"fd00:77::"), "fd77::"))
PORT_NUMBER = re.compile(r"\bport (\d{4,})")
N_PORTS = 8
THREAD = re.compile(r"^ *(peer: *)?thread: \w+")


def masked(lines):
    """Return a transcript without what depends on the run."""
    base = int(lines[0].removeprefix("base ")) if lines[0].startswith("base ") else 0

    def port(match):
        number = int(match[1]) - base
        return f"port p{number}" if number in range(N_PORTS) else match[0]

    for line in lines[1:]:
        for pattern, text in MASKED:
            line = pattern.sub(text, line)
        yield PORT_NUMBER.sub(port, line)


def parse(text):
    """Return {name: lines} of what the player printed."""
    transcripts, lines = {}, None
    for line in text.splitlines():
        if line.startswith("fabric: "):  # a warning, as when a process has no descriptor left
            continue
        if line.startswith("== "):
            lines = transcripts.setdefault(line[3:], [])
        elif lines is not None:
            lines.append(line)
    return {name: list(masked(lines)) if lines else [] for name, lines in transcripts.items()}


def steps_of(lines):
    """Return [[a step's line, what followed]] of a transcript, the peer's lines last, because the
    thread may have a result before them or after."""
    steps = []
    for line in lines:
        if not line.startswith(" ") or not steps:
            steps.append([])
        steps[-1].append(line)
    return [[call, *sorted(lines, key=lambda line: line.startswith("  peer:"))]
            for call, *lines in steps]


def command(player, where, jobs, pause_us, scripts):
    return (f"{player} play {' '.join(HOSTS[where])} {PORT} {jobs} {pause_us} {LIMIT_MS} "
            f"< {scripts}")


def on_fabric(build, scripts, jobs=16, pause_us=3000):
    """Play {name: lines} with purecm on two hosts. Return: {name: transcript}."""
    player = Path(build).resolve() / "tests/random/player"
    with tempfile.NamedTemporaryFile("w", prefix="scripts-") as file:
        file.write(generate.text_of(scripts))
        file.flush()
        done = run_on_fabric(build, 60 + len(scripts), "--mtu", "1500",
                             f"b&:{player} serve {PORT} >/dev/null",
                             f"a:{command(player, 'fabric', jobs, pause_us, file.name)}")
    if done.returncode:
        raise RuntimeError(f"status {done.returncode}: {done.stderr}")
    return parse(done.stdout)


class Pair:
    """A lab's two hosts: the player with either library on a, its peer with stock on b."""

    def __init__(self, lab, build, mode):
        self.lab = lab
        self.player = Path(build).resolve() / "tests/random/player"
        self.mode = mode
        self.env = {"LD_LIBRARY_PATH": STOCK if mode == "stock" else str(self.player.parents[2]
                                                                             / "lib")}
        for host in (lab.a, lab.b):
            host.run(f"ip route replace 239.0.0.0/8 dev {host.interface}", check=True)
        loaded = lab.a.run([self.player, "library"], env=self.env, check=True).stdout
        assert loaded.startswith(str(self.player.parents[2])) == (mode == "purecm"), loaded
        self.peer = lab.b.start(["chrt", "-i", "0", self.player, "serve", str(PORT)],
                                env={"LD_LIBRARY_PATH": STOCK})
        self.peer.wait_for_output("^ready", timeout=60)

    def play(self, scripts, jobs=24, pause_us=2000):
        """Return {name: transcript}. Players run when nothing else does: what a call has started
        in the kernel, or in another process, has then come to its end."""
        self.lab.a.write_file("/tmp/scripts", generate.text_of(scripts).encode())
        text = command(self.player, "lab", jobs, pause_us, "/tmp/scripts")
        done = self.lab.a.run(f"exec chrt -i 0 {text}", env=self.env,
                              timeout=300 + 3 * len(scripts))
        return parse(done.stdout)


def first_difference(stock, purecm):
    """Return (number of steps that are alike, stock's next step, purecm's), or None."""
    if stock == purecm:
        return None
    both = steps_of(stock), steps_of(purecm)
    for i, (ours, theirs) in enumerate(zip(*both)):
        if ours != theirs:
            return i, ours, theirs
    shorter = min(map(len, both))
    return (shorter, *(steps[shorter] if len(steps) > shorter else ["nothing"] for steps in both))


def differing(recorded, paces, play_at, compare):
    """Return {name: difference} of those of {name: (script, transcript)} that differ at each pace.

    play_at({name: script}, pace) returns {name: transcript}; compare(stock's transcript, purecm's)
    a difference that counts, or None
    """
    found = dict.fromkeys(recorded)
    for pace in paces:
        played = play_at({name: recorded[name][0] for name in found}, pace) if found else {}
        found = {name: compare(recorded[name][1], played.get(name, [])) for name in found}
        found = {name: what for name, what in found.items() if what}
    return found


def load(path, every=1):
    """Return {name: (script, transcript)} of a record, or of each @every-th of it."""
    with lzma.open(path, "rt") as file:
        return dict(list(json.load(file).items())[::every])


def store(path, recorded):
    with lzma.open(path, "wt", preset=9) as file:
        json.dump(recorded, file)


def plain(step):
    """Return a step as if it had been played at this end, by the first thread, without signals."""
    call, *lines = step
    if call.startswith("b ") and lines:
        call = f"{call[2:]} {lines.pop(0).removeprefix('  peer:')}".rstrip()
        lines = [line.removeprefix("  peer:") for line in lines]
    if call.startswith("t ") and lines:
        call = f"{call} {THREAD.sub('', lines.pop(0)).strip()}"
    return [re.sub(r"\b([iprs])\d\b", r"\1N", line).strip()
            for line in (call.removeprefix("t ").removeprefix("! "), *lines)]


def kind_of(difference):
    """Return what makes two differences one: the first lines that differ, without numbers; if they
    are not those of the call, after it."""
    ours, theirs = map(plain, difference[1:])
    pairs = list(zip_longest(ours, theirs, fillvalue=""))
    at = next((i for i, pair in enumerate(pairs) if len(set(pair)) > 1), 0)
    return tuple(f"{ours[0]} / {line}".strip() if at else line for line in pairs[at])


def known_differences(where="lab"):
    """Return [(pattern of stock's line, of purecm's)] of differences.md; on the fabric those of the
    device, too."""
    rows = [[cell.strip().strip("`") for cell in line.strip("|").split("|")]
            for line in DIFFERENCES.read_text(encoding="utf-8").splitlines()
            if line.startswith("|")]
    return [(row[0], row[1]) for row in rows
            if len(row) == 3 and (where == "fabric" or not row[2].startswith("fabric:"))]


def is_known(difference, rows):
    """Whether a row has it, also if no descriptor was free."""
    kinds = [kind_of(difference)]
    if all(line.startswith("x ") for line in kinds[0]):
        kinds.append(tuple(line[2:] for line in kinds[0]))
    return any(fnmatch.fnmatchcase(stock, row[0].strip()) and fnmatch.fnmatchcase(purecm, row[1])
               for row in rows for stock, purecm in kinds)
