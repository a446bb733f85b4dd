#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draws what PURECM_LOG=debug prints as a sequence chart: time, message, state, main fields.

    PURECM_LOG=debug rping -c -a ADDRESS 2>&1 | tools/exchange.py

Lines that are not purecm's pass through unchanged. tools/demo uses chart().
"""
import argparse
import dataclasses
import re
import shutil
import signal
import sys
import textwrap

LINE = re.compile(r"^purecm\[(\d+)\] (\d+\.\d+) (.*)$")
MESSAGE = re.compile(r"^\S+ ([<>]) (\S+): (\w+) ?(.*)$")
STEP = re.compile(r"^conn (0x[0-9a-f]+) (\w+) -> (\w+), (\w+)$")

INDENT = 38
WIDTH_MAX = 110
IDS = ("local_comm_id", "remote_comm_id")

# What is shown of a message unless all is wanted, a tuple per paragraph; a message that is not
# here is shown whole.
FIELDS = {
    "REQ": (("local_comm_id", "local_qpn", "starting_psn"), ("from", "to"),
            ("service_id", "path_mtu"),
            ("responder_resources", "initiator_depth", "retry_count", "rnr_retry_count",
             "local_cm_response_timeout", "max_cm_retries")),
    "REP": (IDS, ("local_qpn", "starting_psn", "target_ack_delay"),
            ("responder_resources", "initiator_depth", "rnr_retry_count")),
    "RTU": (IDS,),
    "DREQ": (IDS, ("remote_qpn",)),
    "DREP": (IDS,),
}

# What the steps without a message of their own mean.
STEPS = {
    "CALL_MRA": "the program is told; a repeat would be answered with MRA",
    "CALL_DESTROY": "rdma_destroy_id()",
    "CALL_FORGET": "no room for it; the peer will ask again",
}
# And those that send one.
CALLS = {
    "CALL_REQ": "rdma_connect()",
    "CALL_REP": "rdma_accept()",
    "CALL_RTU": "queue pair ready, rdma_get_cm_event()",
    "CALL_REJ": "rdma_reject()",
    "CALL_DREQ": "rdma_disconnect()",
    "CALL_DREP": "rdma_disconnect()",
}
PORT_SPACES = {0x106: "TCP", 0x111: "UDP", 0x13f: "IB", 0x002: "IPoIB"}


@dataclasses.dataclass
class Record:
    """One line of the log. A message has way, name and text; a step has conn, to and why."""

    pid: str
    time_s: float
    text: str
    way: str = ""
    name: str = ""
    conn: str = ""
    to: str = ""
    why: str = ""

    @property
    def fields(self):
        return dict(re.findall(r"([\w.]+)=(\S+)", self.text))


def parse(line):
    """Return the Record of a line, or None if the line is not purecm's."""
    found = LINE.match(line)
    if not found:
        return None
    record = Record(found[1], float(found[2]), found[3])
    message = MESSAGE.match(found[3])
    step = STEP.match(found[3])
    if message:
        record.way, record.name, record.text = message[1], message[3], message[4]
    elif step:
        record.conn, record.to, record.why = step[1], step[3], step[4]
    return record


def chart(records, whole=False, colour=False, width=None):
    """Return the lines of the chart of one process's records."""
    width = min(width or shutil.get_terminal_size((100, 24)).columns, WIDTH_MAX)
    paint = painter(colour)
    lines = [paint("2", f"{'seconds':>7}  {'message':15}state after")]
    pair_up(records)
    for record in records:
        if record.why == "shown":
            continue
        seconds = f"{record.time_s - records[0].time_s:7.3f}  "
        if record.name:
            arrow = "------->" if record.way == ">" else "<-------"
            head = paint("1", f"{record.name:5}") + paint("36", f"{arrow:10}")
            about = describe(record, whole)
        else:
            head = " " * 15
            about = [STEPS.get(record.why, CALLS.get(record.why, record.why) or record.text)]
        lines += block(seconds + head + f"{record.to:12}  ", about, width)
    return lines


def block(head, about, width):
    """Return the lines of one entry: what it is on the left, wrapped text on the right."""
    room = max(width - INDENT, 30)
    text = [part for line in about for part in textwrap.wrap(line, room, break_long_words=False)]
    first, *rest = text or [""]
    return [f"{head}{first}".rstrip(), *(" " * INDENT + line for line in rest)]


def painter(colour):
    """Return a function that wraps text in an escape sequence, or leaves it as it is."""
    if not colour:
        return lambda _, text: text
    return lambda code, text: f"\033[{code}m{text}\033[0m"


def pair_up(records):
    """Give each message the state that came of it, and mark those steps as shown.

    The step of a sent message is logged before it, that of a received one after it.
    """
    for place, record in enumerate(records):
        if not record.name:
            continue
        if record.way == ">":
            candidates = reversed(records[:place])
            ours = record.fields.get("local_comm_id")
        else:
            candidates = records[place + 1:]
            ours = record.fields.get("remote_comm_id")
        step = step_of(record, candidates, ours)
        if step:
            record.to = step.to
            record.conn = CALLS.get(step.why, "")
            step.why = "shown"


def step_of(message, candidates, ours):
    """Return the step that belongs to a message, or None: it may repeat an older one."""
    for record in candidates:
        if record.name and record.way == message.way:
            return None
        if record.to and not record.name and record.pid == message.pid and record.why != "shown":
            if ours in (None, record.conn) and (message.way == ">" or
                                                record.why == f"RX_{message.name}"):
                return record
    return None


def describe(record, whole):
    """Return the text about a message, a line per paragraph."""
    fields = record.fields
    if "src_addr" in fields:
        fields["from"] = endpoint(fields, "src_addr", fields.get("src_port", "?"))
        fields["to"] = endpoint(fields, "dst_addr", service_port(fields))
    wanted = FIELDS.get(record.name)
    if whole or not wanted:
        return [record.text]
    shown = ["  ".join(f"{name}={note(name, fields[name])}" for name in names if name in fields)
             for names in wanted]
    return [record.conn, *shown] if record.conn else shown


def endpoint(fields, name, port):
    """Return address:port; an IPv4 address fills the last 4 of 16 bytes, the others are 0."""
    address = fields[name]
    if fields.get("ip_version") == "4":
        return f"{address.removeprefix('::')}:{port}"
    return f"[{address}]:{port}"


def service_port(fields):
    return int(fields.get("service_id", "0"), 0) & 0xffff


def note(name, value):
    """Return a value with what it means, where that needs a table."""
    if name == "path_mtu":
        return f"{value} ({128 << int(value, 0)} bytes)"
    if name.endswith("cm_response_timeout"):
        return f"{value} ({4.096e-6 * 2 ** int(value, 0):.1f} s)"
    if name == "service_id":
        number = int(value, 0)
        space = PORT_SPACES.get(number >> 16, "unknown")
        return f"{value} ({space} port {number & 0xffff})"
    return value


def main():
    args = arguments()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    kept = []
    for line in sys.stdin:
        record = parse(line.rstrip("\n"))
        if record:
            kept.append(record)
        else:
            print(line, end="")
    for pid in dict.fromkeys(record.pid for record in kept):
        own = [record for record in kept if record.pid == pid]
        print(f"\nprocess {pid}\n" + "\n".join(chart(own, args.all, args.colour)))


def arguments():
    parser = argparse.ArgumentParser(description="Draw PURECM_LOG=debug lines as a chart.")
    parser.add_argument("--all", action="store_true", help="all fields of every message")
    parser.add_argument("--colour", action="store_true", help="colour the chart")
    return parser.parse_args()


if __name__ == "__main__":
    main()
