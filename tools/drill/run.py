# SPDX-License-Identifier: BSD-2-Clause
"""Runs scripts of purecm drill, line by line: sends, expects, and has the agent make calls.

The program link carries the messages; the agent (drill_agent.c) makes the calls on the peer's side.
"""
import collections
import os
import selectors
import socket
import subprocess
import sys
import time

from fields import HEADER_BYTES, MAD_BYTES, WITH_IP
import script as scripts
from script import of_bytes, of_number

PS_TCP, PS_UDP = 0x0106, 0x0111
PERMISSIVE_LID = 0xffff
OUR_PORT = 40000
CALL_S = 20
HELLO_S = 10
FAREWELL_S, FAREWELLS_S, FAREWELLS_MAX = 0.1, 1, 20
SECRET = "PURECM_SECRET"
# What begins with other fields than both comm ids.
WITHOUT_IDS = ("REQ", "SIDR_REQ", "SIDR_REP")


class Failed(Exception):
    """The peer has deviated from the script, or the script cannot be carried out."""


class Gone(Exception):
    """What the drill needs is not there; the message says what."""


class Link:
    """The port, and the agent; what comes from both is queued with its time."""

    def __init__(self, command):
        """Start the program. Raise Gone if it has complained."""
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._program = subprocess.Popen(command, stdin=theirs)
        self.ends = self._socket.recv(4096)
        self.mads, self.events, self.replies = (collections.deque() for _ in range(3))
        self.theirs = set()  # comm ids of the peer, of all scripts
        self._agent, self._text = None, b""
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._socket, selectors.EVENT_READ, self._take_mads)
        if not self.ends:
            self.close()
            raise Gone

    def close(self):
        """End the program. Return: whether it has failed."""
        self.leave_agent()
        self._socket.close()
        return self._program.wait() != 0

    def send(self, mad):
        """Send a MAD unchanged."""
        try:
            self._socket.send(mad)
        except OSError as error:
            raise Gone from error

    def wait(self, until_s):
        """Wait for input until then. Return: whether there was any. Raise Gone; EOFError without
        an agent any more."""
        ready = self._selector.select(max(0, until_s - time.monotonic()))
        for key, _ in ready:
            key.data()
        return bool(ready)

    def _take_mads(self):
        try:
            mad = self._socket.recv(MAD_BYTES)
        except OSError:
            mad = b""
        if not mad:
            raise Gone
        self.mads.append((time.monotonic(), mad))

    # --- the agent -----------------------------------------------------------

    def call_agent(self, host, port):
        """Connect to it. Return: what it runs on. Raise Gone."""
        try:
            self._agent = socket.create_connection((host, port), HELLO_S)
        except OSError as error:
            raise Gone(f"agent {host} port {port}: {error.strerror or error}; start "
                       f"`purecm-agent {port}' there") from None
        self._agent.setblocking(True)
        self._text = b""
        self.events.clear()
        self.replies.clear()
        self._selector.register(self._agent, selectors.EVENT_READ, self._take_lines)
        end_s = time.monotonic() + HELLO_S
        try:
            self.say(os.environ.get(SECRET, ""))
            while not self.replies and time.monotonic() < end_s:
                self.wait(end_s)
            word, peer = self.replies.popleft()[1].split()
            if word == "hello":
                return peer
        except (EOFError, IndexError, ValueError):
            pass
        raise Gone("what listens there is no agent, serves another drill, or has another "
                   f"{SECRET} than this environment")

    def leave_agent(self):
        """Disconnect, which destroys all ids."""
        if self._agent:
            self._selector.unregister(self._agent)
            self._agent.close()
        self._agent = None

    def say(self, line):
        """Send a line to the agent. Raise EOFError if it is gone."""
        try:
            self._agent.sendall(line.encode() + b"\n")
        except OSError as error:
            raise EOFError from error

    def _take_lines(self):
        try:
            data = self._agent.recv(4096)
        except OSError:
            data = b""
        if not data:
            raise EOFError
        *lines, self._text = (self._text + data).split(b"\n")
        for line in lines:
            word, _, rest = line.decode("ascii", "replace").partition(" ")
            if word == "event":
                self.events.append((time.monotonic(), rest))
            else:
                self.replies.append((time.monotonic(), f"{word} {rest}".rstrip()))


def first_variables(ends, port):
    """Return the variables that a script begins with, from what link prints."""
    hop_limit = ends["hop_limit"]
    by_name = {"theirs": 0, "their_qpn": 0, "our_guid": int(ends["our_guid"], 16),
               "our_port": OUR_PORT, "port": port, "tcp_service": PS_TCP << 16 | port,
               "udp_service": PS_UDP << 16 | port, "ip_version": ends["ip_version"],
               "hop_limit": hop_limit, "subnet_local": int(hop_limit <= 1),
               "lid": 0 if hop_limit <= 1 else PERMISSIVE_LID}
    return {**{name: of_number(value) for name, value in by_name.items()},
            **{name: of_bytes(bytes.fromhex(ends[name]))
               for name in ("our_ip", "their_ip", "here", "there")},
            **{name: scripts.evaluate(scripts.Value("random"), {})
               for name in ("ours", "our_qpn", "our_psn")}}


def value_of(field, mad):
    """Return the value of a field of a MAD."""
    found = field.get(mad)
    return of_bytes(found) if field.n_bytes else of_number(found)


class Run:
    """A script being carried out."""

    def __init__(self, script, link, variables, timeout_s, verbose):
        self.script, self.link, self.timeout_s, self.verbose = script, link, timeout_s, verbose
        self.fields = script.fields
        self.variables = variables
        self.line = None
        self.begun_s = self.step_s = time.monotonic()  # of the script, and the last line's end
        self._tid = time.time_ns()
        # Messages for other comm ids than those of this script are ignored.
        self._ours, self._past = set(), frozenset(link.theirs)
        self._sent, self._heard = {}, {}  # the latest by message

    def all(self, peer):
        """Carry out the lines for a peer. Raise Failed."""
        for line in self.script.lines:
            if line.peer in ("", peer):
                self.step(line)

    def step(self, line):
        """Carry out a line. Return: the answer to a call. Raise Failed."""
        verbs = {">": self._send, "<": self._expect, "call": self._call, "event": self._event,
                 "let": self._let, "quiet": self._quiet}
        self.line = line
        answer = verbs[line.verb](line)
        if line.verb not in ("<", "event"):
            self.step_s = time.monotonic()
        return answer

    def end(self):
        """Let the peer end what there is; no comm id is ours any more, so each DREQ is answered."""
        self.link.leave_agent()
        self._ours.clear()
        end_s = time.monotonic() + FAREWELLS_S
        for _ in range(FAREWELLS_MAX):
            if time.monotonic() >= end_s or \
                    not self._next_mad(time.monotonic() + FAREWELL_S, is_over=True):
                break

    def _trace(self, what, text):
        if self.verbose:
            print(f"{time.monotonic() - self.begun_s:9.3f} {what} {text}", file=sys.stderr)

    def _trace_mad(self, way, mad):
        message = self.fields.message_of(mad)
        if not self.verbose:
            return
        said = [message or "not a CM message"]
        for name in self.fields.names(message) if message else ():
            value = value_of(self.fields.find(message, name), mad)
            if not name.startswith("mad.") and (value.number or value.data.strip(b"\0")):
                said.append(f"{name}={value}")
        self._trace(way, " ".join(said))

    def _wait(self, until_s):
        while time.monotonic() < until_s:
            self.link.wait(until_s)

    # --- sending -------------------------------------------------------------

    def _send(self, line):
        self._wait(self.step_s + (line.times or (0,))[0])
        if not line.again:
            self._sent[line.name] = mad = self._made(line)
            if line.name != "SIDR_REP":  # whose first field is the peer's id
                self._ours.add(bytes(mad[HEADER_BYTES:HEADER_BYTES + 4]))
        elif line.name not in self._sent:
            raise Failed(f"no {line.name} was sent that could be sent again")
        self._trace_mad(">", self._sent[line.name])
        self.link.send(self._sent[line.name])

    def _made(self, line):
        self._tid += 1
        mad = self.fields.header(line.name, self._tid & scripts.ALL_BITS)
        settings = {setting.name: setting
                    for setting in scripts.defaults(line.name, self.fields) + line.settings}
        without_ip = line.name in WITH_IP and \
            not self._evaluated(settings["ip.ip_version"]).number
        for setting in sorted(settings.values(), key=lambda setting: setting.field.order):
            value = self._evaluated(setting)
            if scripts.takes(setting.field, value):
                raise Failed(f"{setting.name} cannot be {setting.value}")
            if not (without_ip and setting.field.order == 1):
                setting.field.put(mad, value.data if setting.field.n_bytes else value.number)
        return mad

    def _evaluated(self, setting):
        try:
            return scripts.evaluate(setting.value, self.variables)
        except (LookupError, TypeError):
            raise Failed(f"{setting.name} cannot be {setting.value}") from None

    # --- expecting -----------------------------------------------------------

    def is_for_others(self, message, mad):
        """Whether a message is for a connection of an earlier script. A DREQ is answered."""
        local, remote = (mad[HEADER_BYTES + at:HEADER_BYTES + at + 4] for at in (0, 4))
        if message in WITHOUT_IDS or not any(remote):
            return local in self._past
        if remote in self._ours:
            return False
        if message == "DREQ":
            answer = self.fields.header("DREP", self.fields.find("DREQ", "mad.tid").get(mad))
            answer[HEADER_BYTES:HEADER_BYTES + 8] = remote + local
            self._trace_mad(">", answer)
            self.link.send(answer)
        return True

    def _next_mad(self, end_s, is_over=False):
        """Return (its time, the message, the MAD), or None at the end."""
        while True:
            while not self.link.mads:
                if not self.link.wait(end_s) and time.monotonic() >= end_s:
                    return None
            at_s, mad = self.link.mads.popleft()
            self._trace_mad("<", mad)
            message = self.fields.message_of(mad)
            if not message and not is_over:
                raise Failed("the peer sent what is no CM message")
            if not message or not self.is_for_others(message, mad):
                return at_s, message, mad

    def _end_of(self, line):
        return self.step_s + (line.times[1] if line.times else self.timeout_s)

    def _expect(self, line):
        end_s = self._end_of(line)
        while True:
            found = self._next_mad(end_s)
            if not found:
                raise Failed(f"expected {line.name}{' again' * line.again} within "
                             f"{end_s - self.step_s:.1f} s, nothing came")
            at_s, message, mad = found
            # A retransmission may have another transaction id.
            is_repeated = self._heard.get(message) == mad[HEADER_BYTES:]
            is_wanted = line.again and message == line.name
            if not is_repeated or is_wanted:
                break
        if is_wanted and not is_repeated:
            raise Failed(f"expected the same {line.name} again, got another")
        self._heard[message] = mad[HEADER_BYTES:]
        if message != line.name:
            raise Failed(f"expected {line.name}, got {message}")
        for setting in line.settings:
            self._compare(setting, value_of(setting.field, mad))
        self.learn_theirs(message, mad)
        self._check_time(line, at_s)

    def _compare(self, setting, value):
        try:
            wanted = scripts.evaluate(setting.value, self.variables)
        except (LookupError, TypeError):
            raise Failed(f"{setting.name}: {setting.value} has no value") from None
        if wanted.matches(value) == setting.is_not:
            raise Failed(f"expected {self.line.name} {setting.name}{'!' * setting.is_not}={wanted},"
                         f" got {setting.name}={value}")
        if setting.value.kind == "capture":
            self.variables[setting.value.name] = value

    def learn_theirs(self, message, mad):
        """Note the peer's ids in a message."""
        if message in ("REQ", "REP", "SIDR_REQ"):
            theirs = bytes(mad[HEADER_BYTES:HEADER_BYTES + 4])
            self.link.theirs.add(theirs)
            self.variables["theirs"] = of_number(int.from_bytes(theirs, "big"))
        if message in ("REQ", "REP"):
            self.variables["their_qpn"] = value_of(self.fields.find(message, "local_qpn"), mad)

    def _check_time(self, line, at_s):
        after_s = max(0, at_s - self.step_s)
        if line.times and after_s < line.times[0]:
            raise Failed(f"expected {line.name} {line.times[0]:g} to {line.times[1]:g} s after the "
                         f"line before, came after {after_s:.3f}")
        self.step_s = at_s

    # --- the agent -----------------------------------------------------------

    def _call(self, line):
        self._wait(self.step_s + (line.times or (0,))[0])
        text = " ".join([line.name, *(f"{setting.name}={self._evaluated(setting)}"
                                      for setting in line.settings)])
        self._trace("call", text)
        self.step_s = time.monotonic()
        try:
            self.link.say(text)
            while not self.link.replies:
                if not self.link.wait(self.step_s + CALL_S) and \
                        time.monotonic() >= self.step_s + CALL_S:
                    raise TimeoutError(f"nothing in {CALL_S} s")
        except (EOFError, TimeoutError) as error:
            raise Failed(f"the agent does not answer: {error or 'it is gone'}") from None
        answer = self.link.replies.popleft()[1]
        self._trace("=", answer)
        if line.result not in ("*", answer):
            raise Failed(f"expected {line.name} = {line.result}, got {answer}")
        return answer

    def _event(self, line):
        end_s = self._end_of(line)
        try:
            while not self.link.events:
                if not self.link.wait(end_s) and time.monotonic() >= end_s:
                    raise Failed(f"expected event {line.name} within {end_s - self.step_s:.1f} s, "
                                 "none came")
        except EOFError:
            raise Failed("the agent is gone") from None
        at_s, text = self.link.events.popleft()
        self._trace("event", text)
        name, *words = text.split()
        if name != line.name:
            raise Failed(f"expected event {line.name}, got {text}")
        values = dict(word.split("=", maxsplit=1) for word in words if "=" in word)
        for setting in line.settings:
            try:
                self._compare(setting, scripts.parse(values[setting.name]))
            except (KeyError, ValueError):
                raise Failed(f"{line.name} has no `{setting.name}'") from None
        self._check_time(line, at_s)

    # --- the rest ------------------------------------------------------------

    def _let(self, line):
        for setting in line.settings:
            self.variables[setting.name] = self._evaluated(setting)

    def _quiet(self, line):
        end_s = self._end_of(line)
        found = self._next_mad(end_s)
        if found:
            raise Failed(f"expected {line.times[1]:g} s without messages, got {found[1]}")
        if self.link.events:
            raise Failed(f"expected {line.times[1]:g} s without events, got "
                         f"{self.link.events.popleft()[1]}")
