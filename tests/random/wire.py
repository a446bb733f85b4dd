#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Random peers: messages of purecm drill in random order and with random fields, between calls.

A sequence is a script of purecm drill without expectations. After each line comes a lookup of a
service that nobody offers: once it is answered, so is all before it. The transcript has what the
peer sent and reported after each line, with ids by their role. This program records what stock
prints in the lab; replay.py --peers plays the same with purecm on soft fabrics.

    wire.py --first N --count N      records more sequences
    wire.py --print --first N        prints a script, for purecm drill
"""
import argparse
import concurrent.futures
import fnmatch
import json
import os
from pathlib import Path
import random
import sys
import tempfile
import time

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = str(ROOT / "tools/drill"), str(ROOT / "tests/lab")
from fields import DEFAULTS, HEADER_BYTES, WITH_IP, Fields  # noqa: E402
from run import Failed, Gone, Link, Run, first_variables, value_of  # noqa: E402
from script import Script  # noqa: E402

import play  # noqa: E402

RECORDED = Path(__file__).with_name("wire.json.xz")
AGENT_PORT, SECRET = "7470", "of-the-test"
N_FABRICS, BATCH = 4, 50
PAUSES_S = (0.004, 0.05, 0.3)  # of what differs once more
LAB_PAUSE_S = 0.02
HANGS = "the agent does not answer"  # stock's rdma_destroy_id(): see README.md
ANSWER_S, TRIES, HELLOS, LIMIT_S = 1, 5, 12, 300
UNOFFERED = 0xbad  # a service id
NO_WAY_BACK = "ip route del default; ip -6 route del default"  # as in the lab
KEEPER = "rping -s -p 7999"  # without a program, purecm does not answer

# The order of a connection, of which a sequence has most and in which it puts others.
PLANS = (("call listen", "> REQ", "call accept id=id", "> RTU", "> DREQ",
          "call disconnect id=id", "call destroy id=id"),
         ("call listen", "> REQ", "call accept id=id", "> RTU", "call disconnect id=id", "> DREP",
          "call destroy id=id"),
         ("call listen", "> REQ", "call reject id=id", "call destroy id=id"),
         ("call resolve id=up", "call connect id=up", "> REP", "call establish id=up", "> DREQ",
          "call disconnect id=up", "call destroy id=up"),
         ("call resolve id=up", "call connect id=up", "> REJ", "call destroy id=up"),
         ("call listen space=udp", "> SIDR_REQ", "call accept id=id", "call destroy id=id"),
         ("call resolve id=up space=udp", "call connect id=up", "> SIDR_REP",
          "call destroy id=up"))
CALLS = ("accept", "reject", "establish", "disconnect", "notify", "destroy")
AGAIN = ("REQ", "REQ", "REP", "RTU", "DREQ", "SIDR_REQ", "SIDR_REP", "REJ", "MRA")
# What would last, or make stock take the message for one of an earlier sequence.
FIXED = ("local_qpn", "local_ca_guid", "remote_cm_response_timeout", "local_cm_response_timeout",
         "service_timeout", "info_bytes", "ari_bytes")
IDS = {"local_comm_id": ("$ours", "$ours", "$other", "$other", "0"),
       "remote_comm_id": ("$theirs", "$theirs", "$other", "0"), "request_id": ("$ours", "$other"),
       "service_id": ("$tcp_service", "$udp_service", "$tcp_service+1")}
NAMED = ("ours", "other", "our_qpn", "my_qpn", "our_guid", "here", "there", "our_ip", "their_ip")
# Of the host, the library's choice, or different each time.
UNSEEN = ("starting_psn", "local_ca_guid", "primary.local_lid", "primary.remote_lid",
          "primary.flow_label", "ip.src_port", "mad.tid", "target_ack_delay", "vendor_id", "ari")
DROPPED, INSERTED, FIELDS_CHANGED = 0.08, 0.35, (0, 0, 0, 1, 1, 2)


class Sequence:
    """Makes one script of drill."""

    def __init__(self, seed, fields):
        self.random, self.fields = random.Random(seed), fields
        self.answered = set()  # ids with which stock would wait for minutes, or crash
        self.sent = set()  # messages

    def pick(self, *values):
        return self.random.choice(values)

    def value(self, message, name):
        """Return a field's value; of bytes and numbers those that are special, too."""
        if name in IDS:
            return self.pick(*IDS[name])
        field = self.fields.find(message, name)
        if field.n_bytes:
            return "hex:" + self.pick("", "00", "ff" * min(field.n_bytes, 16),
                                      self.random.randbytes(min(field.n_bytes, 16)).hex())
        most = (1 << field.bits) - 1
        return str(self.pick(0, 1, most, most >> 1, self.random.randint(0, most)))

    def message(self, name):
        """Return a line that sends a message with a few random fields."""
        names = [each for each in self.fields.names(name)
                 if each not in FIXED and not each.startswith("mad.")]
        if self.random.random() < 0.03:
            names = ["mad.base_version", "mad.class_version", "mad.method", "mad.attr_id"]
        changed = self.random.sample(names, self.pick(*FIELDS_CHANGED))
        return " ".join([f"> {name}", *(f"{each}={self.value(name, each)}" for each in changed)])

    def call(self, line):
        """Return the line of a call, if it is one that can be made."""
        words = line.split()
        if words[1] in ("accept", "connect", "reject"):
            key = words[2]
            if key in self.answered or (words[1] == "accept" and key == "id=up"):
                return None
            self.answered.add(key)
            line += f" private_data=hex:{self.pick('', '01', 'ab' * 20)}" + \
                f" qpn=$my_qpn responder_resources={self.pick(0, 1, 4)}" * (words[1] != "reject")
        if words[1] == "establish" and words[2] in self.answered and \
                (words[2] != "id=up" or "REP" not in self.sent):
            return None
        if words[1] == "destroy" and words[2] != "id=up":
            self.answered.discard(words[2])
        return line + " = *"

    def some_line(self):
        if self.random.random() < 0.3:
            return f"call {self.pick(*CALLS)} id={self.pick('id', 'id', 'id2', 'up')}"
        return f"> {self.pick(*AGAIN)} again" if self.random.random() < 0.3 else \
            f"> {self.pick(*DEFAULTS)}"

    def lines(self):
        """Return the lines of the script."""
        plan = list(self.pick(*PLANS))
        lines = ["let other=random my_qpn=random"]
        while plan:
            new = [self.some_line()] if self.random.random() < INSERTED else []
            new += [plan.pop(0)] if self.random.random() >= DROPPED else plan.pop(0)[:0]
            for line in new:
                name = line.split()[1]
                if line.endswith("again"):
                    line = line if name in self.sent else None
                elif line.startswith(">"):
                    self.sent.add(name)
                    line = self.message(name)
                else:
                    line = self.call(line)
                lines += [line] * bool(line)
        return lines


class Player:
    """Plays scripts, in the host of the drill."""

    def __init__(self, link, address, pause_s):
        self.fields = Fields(link)
        self.link = Link([link, "--", address])
        self.address, self.pause_s = address, pause_s
        self.names, self.heard = {}, set()

    def play(self, lines):
        """Return the transcript of a script."""
        with tempfile.NamedTemporaryFile("w", suffix=".drill") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            script = Script(file.name, self.fields)
        self.call_agent()
        run = Run(script, self.link, first_variables(json.loads(self.link.ends), 7471),
                  ANSWER_S, False)
        self.names, self.heard = {}, set()
        said = []
        for text, line in zip(lines, script.lines):
            try:
                answer = run.step(line)
                self.learn(run.variables)
                if line.verb != "let":
                    said += [text + f" {answer}" * bool(answer), *self.answers(run)]
            except (Failed, EOFError) as why:
                said += [text, f"  {why}"]
        run.end()
        return said

    def call_agent(self):
        """Stock's agent may be in rdma_destroy_id() for 100 s."""
        for _ in range(HELLOS):
            try:
                return self.link.call_agent(self.address, AGENT_PORT)
            except Gone:
                self.link.leave_agent()
        raise Gone

    def learn(self, variables):
        """Note what has a role."""
        for name, value in variables.items():
            if name in NAMED:
                self.names.setdefault(str(value), f"${name}")

    def answers(self, run):
        """Return what the peer sends and reports."""
        said = []
        for _ in range(2):
            self.wait_for_lookup(run)
            self.wait_for_agent()
        while self.link.mads:
            mad = self.link.mads.popleft()[1]
            message = run.fields.message_of(mad)
            if not message or not (self.is_of_time(message, mad) or is_unoffered(run, mad) or
                                   run.is_for_others(message, mad)):
                said.append(self.shown(run, message, mad))
        said += [f"event {' '.join(map(self.named, text.split()))}"
                 for _, text in self.link.events if "TIMEWAIT" not in text]
        self.link.events.clear()
        self.link.replies.clear()
        return ["  " + line for line in said]

    def is_of_time(self, message, mad):
        """Whether a message is a retransmission, which no message of ours causes."""
        return message in ("REQ", "SIDR_REQ", "DREQ") and mad[HEADER_BYTES:] in self.heard

    def wait_for_lookup(self, run):
        """Look up what nobody offers, and wait for the answer."""
        request_id = random.SystemRandom().randbytes(4)
        mad = run.fields.header("SIDR_REQ", time.time_ns() & 0xffffffffffff)
        for name, value in (("request_id", int.from_bytes(request_id, "big")), ("pkey", 0xffff),
                            ("service_id", UNOFFERED)):
            run.fields.find("SIDR_REQ", name).put(mad, value)
        for _ in range(TRIES):
            self.link.send(mad)
            end_s = time.monotonic() + ANSWER_S
            while self.link.wait(end_s) or time.monotonic() < end_s:
                if any(each[HEADER_BYTES:HEADER_BYTES + 4] == request_id
                       for _, each in self.link.mads):
                    return
        raise Failed("no answer to a lookup")

    def wait_for_agent(self):
        self.link.say("ping")
        end_s = time.monotonic() + ANSWER_S
        while not any("no-such-call" in text for _, text in self.link.replies):
            if not self.link.wait(end_s) and time.monotonic() > end_s:
                raise Failed("no answer from the agent")
        for each in [each for each in self.link.replies if "no-such-call" in each[1]]:
            self.link.replies.remove(each)
        end_s = time.monotonic() + self.pause_s
        while time.monotonic() < end_s:
            self.link.wait(end_s)

    def named(self, word):
        """Return a word of an event with the role of its value, and without trailing zeros."""
        name, _, value = word.partition("=")
        if value.startswith("hex:"):
            data = bytes.fromhex(value[4:])
            return f"{name}={data.rstrip(bytes(1)).hex()} of {len(data)}"
        try:
            value = str(int(value, 0)) if int(value, 0) <= 0xffff else hex(int(value, 0))
        except ValueError:
            pass
        return f"{name}={self.names.get(value, value)}" if value else name

    def shown(self, run, message, mad):
        """Return a message as text. A retransmission is one with a known body."""
        if not message:
            return "< no CM message"
        body = bytes(mad[HEADER_BYTES:])
        run.learn_theirs(message, mad)
        words = [f"< {message}{' again' * (body in self.heard)}"]
        self.heard.add(body)
        for name in run.fields.names(message):
            value = value_of(run.fields.find(message, name), mad)
            if name in UNSEEN or name.startswith("mad.") or \
                    (name == "private_data" and message in WITH_IP) or \
                    not (value.number or value.data.strip(b"\0")):
                continue
            text = str(value)
            if name == "local_comm_id" or (name == "request_id" and message == "SIDR_REQ"):
                self.names.setdefault(text, f"theirs{len(self.heard)}")
            if value.data:
                text = self.names.get(text) or "hex:" + value.data.rstrip(b"\0").hex()
            words.append(f"{name}={self.names.get(text, text)}")
        return " ".join(words)


def is_unoffered(run, mad):
    """Whether a message is the answer to a lookup of wait_for_lookup()."""
    return run.fields.message_of(mad) == "SIDR_REP" and \
        run.fields.find("SIDR_REP", "service_id").get(mad) == UNOFFERED


def play_here(args):
    """In a host: play {name: lines} of the standard input, print {name: transcript}."""
    os.environ["PURECM_SECRET"] = SECRET
    player = Player(args.play[0], args.play[1], float(args.play[2]))
    print(json.dumps({name: player.play(lines) for name, lines in json.load(sys.stdin).items()}))
    player.link.close()


def command(build, address, pause_s, scripts):
    return (f"/usr/bin/python3 {Path(__file__).resolve()} --play {build}/tools/drill/link "
            f"{address} {pause_s} < {scripts}")


def on_fabric(build, scripts, pause_s):
    """Return {name: transcript} of purecm."""
    with tempfile.NamedTemporaryFile("w", prefix="wire-") as file:
        json.dump(scripts, file)
        file.flush()
        done = play.run_on_fabric(
            build, LIMIT_S, "--gap", "0.5", "--mtu", "1500",
            f"b&:{NO_WAY_BACK}; exec {KEEPER}",
            f"b&:PURECM_SECRET={SECRET} exec {build}/tools/purecm-agent {AGENT_PORT} ::",
            f"a:{command(build, '10.77.0.2', pause_s, file.name)}")
    if done.returncode:
        raise RuntimeError(f"status {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def on_fabrics(build, scripts, pause_s):
    shares = [dict(list(scripts.items())[i::N_FABRICS]) for i in range(min(N_FABRICS,
                                                                           len(scripts)))]
    with concurrent.futures.ThreadPoolExecutor(N_FABRICS) as pool:
        parts = list(pool.map(lambda share: on_fabric(build, share, pause_s), shares))
    return {name: lines for part in parts for name, lines in part.items()}


def on_stock(lab, args, scripts):
    """Return {name: transcript} of stock in the lab."""
    if not scripts:
        return {}
    lab.a.write_file("/tmp/scripts", json.dumps(scripts).encode())
    text = command(args.build, lab.b.addr4, LAB_PAUSE_S, "/tmp/scripts")
    return json.loads(lab.a.run(text, timeout=1200, check=True).stdout)


def record(args):
    """Play sequences on stock in the lab, and what differs from purecm there once more; keep those
    in which stock did the same, and those of other seeds."""
    from lablib import Lab
    fields = Fields(args.build / "tools/drill/link")
    scripts = {str(seed): Sequence(seed, fields).lines()
               for seed in range(args.first, args.first + args.count)}
    with Lab({"a": "purecm", "b": "stock"}, cpus=1) as lab:
        agent = lab.b.start([str(args.build / "tools/purecm-agent"), AGENT_PORT, "::"],
                            env={"LD_LIBRARY_PATH": play.STOCK, "PURECM_SECRET": SECRET},
                            timeout=7000)
        agent.wait_for_output("^ready", timeout=60)
        names = list(scripts)
        recorded = {name: pair for name, pair in play.load(RECORDED).items()
                    if name not in scripts}
        for at in range(0, len(names), BATCH):
            part = {name: scripts[name] for name in names[at:at + BATCH]}
            new = {name: (part[name], lines)
                   for name, lines in on_stock(lab, args, part).items()}
            again = on_stock(lab, args, {name: part[name]
                                         for name in differences(args.build, new)})
            recorded |= {name: pair for name, pair in new.items()
                         if again.get(name, pair[1]) == pair[1] and
                         not any(HANGS in line for line in pair[1])}
            play.store(RECORDED, recorded)
            print(f"{len(recorded)} of {at + len(part)} sequences recorded", flush=True)
        agent.stop()
    return 0


def first_difference(stock, purecm):
    """Return (the line before, [stock's line], [purecm's]), or None."""
    at = next((i for i, pair in enumerate(zip(stock + [""], purecm + [""]))
               if pair[0] != pair[1]), None)
    if at is None or stock == purecm:
        return None
    before = next((line for line in reversed(stock[:at]) if not line.startswith("  ")), "")
    return before, stock[at:at + 1], purecm[at:at + 1]


def differences(build, recorded):
    """Return {name: difference} of those that differ at each pace."""
    rows = [[cell.strip().strip("`") for cell in line.strip("|").split("|")]
            for line in play.DIFFERENCES.read_text(encoding="utf-8").splitlines()
            if line.startswith("| wire")]

    def compare(stock, purecm):
        what = first_difference(stock, purecm)
        texts = what and (what[0], "".join(what[1]).strip(), "".join(what[2]).strip())
        return what if what and not any(all(map(fnmatch.fnmatchcase, texts, row[1:4]))
                                        for row in rows) else None

    return play.differing(recorded, PAUSES_S,
                          lambda scripts, pause_s: on_fabrics(build, scripts, pause_s), compare)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=play.ROOT / "build", type=Path)
    parser.add_argument("--first", default=1, type=int, help="the first seed (1)")
    parser.add_argument("--count", default=1000, type=int, help="how many seeds (1000)")
    parser.add_argument("--print", action="store_true", help="print the first script")
    parser.add_argument("--play", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.build = args.build.resolve()
    if args.play:
        return play_here(args)
    if args.print:
        print(*Sequence(args.first, Fields(args.build / "tools/drill/link")).lines(), sep="\n")
        return 0
    return record(args)


if __name__ == "__main__":
    sys.exit(main())
