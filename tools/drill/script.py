# SPDX-License-Identifier: BSD-2-Clause
"""Scripts of purecm drill: lines into words, words into statements. purecm(1) has the grammar.

A script is read completely before anything is sent. Each error says what is valid.
"""
import dataclasses
import ipaddress
import random
import re

from fields import DEFAULTS, MESSAGES

SECONDS_MAX = 600
NUMBER = r"-?(?:0[xX][0-9a-fA-F]+|[0-9]+)"
NAME = r"[A-Za-z0-9_]+"
ALL_BITS = (1 << 64) - 1
CALLS = ("listen", "resolve", "connect", "accept", "reject", "establish", "notify", "disconnect",
         "destroy")
# Variables that each script begins with.
FIRST_NAMES = ("ours", "theirs", "our_qpn", "their_qpn", "our_psn", "our_guid", "our_port",
               "our_ip", "their_ip", "ip_version", "here", "there", "lid", "hop_limit",
               "subnet_local", "port", "tcp_service", "udp_service")


class Mistake(Exception):
    """What is wrong with a script; with the line once that is known."""


# --- values ------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Value:
    """The text after the "=" of a field. Kinds: number, range, bytes, word, variable, random, any,
    capture. Negative numbers are two's complements, as on the wire."""
    kind: str
    number: int = 0  # also the first of a range, and what is added to a variable
    last: int = 0
    name: str = ""
    data: bytes = b""

    def __str__(self):
        """As in a script."""
        if self.kind == "number":
            is_negative = self.number >> 63
            return str(self.number - (1 << 64)) if is_negative else \
                hex(self.number) if self.number > 0xffff else str(self.number)
        return {"range": f"{self.number}..{self.last}", "bytes": f"hex:{self.data.hex()}",
                "word": self.data.decode("latin-1"), "variable": f"${self.name}",
                "capture": f"?{self.name}", "any": "*", "random": "random"}[self.kind]

    def matches(self, value):
        """Return whether another value is as this one wants it; bytes need only begin so."""
        if self.kind in ("any", "capture"):
            return True
        if self.kind in ("number", "range"):
            last = self.last if self.kind == "range" else self.number
            return value.kind == "number" and self.number <= value.number <= last
        if self.kind == "word":
            return value == self
        return value.kind == self.kind and value.data.startswith(self.data)


def number(text):
    """Return an integer of a script, which is decimal, octal or hexadecimal as in C."""
    digits = text.lstrip("-")
    base = 8 if re.fullmatch("0[0-7]+", digits) else 0
    return int(text, base) & ALL_BITS


def of_number(value):
    """Return the value of an integer."""
    return Value("number", value & ALL_BITS)


def of_bytes(data):
    """Return the value of bytes."""
    return Value("bytes", data=data)


def parse(text):
    """Return a value. Raise ValueError if it is none."""
    if text == "*":
        return Value("any")
    if text == "random":
        return Value("random")
    if found := re.fullmatch(rf"\$({NAME})(?:([+-])({NUMBER}))?", text):
        more = number(found[3]) if found[3] else 0
        return Value("variable", (-more if found[2] == "-" else more) & ALL_BITS, name=found[1])
    if found := re.fullmatch(rf"\?({NAME})", text):
        return Value("capture", name=found[1])
    if found := re.fullmatch(r'"(.*)"', text):
        return of_bytes(found[1].encode("latin-1"))
    if text.startswith("hex:"):
        return of_bytes(bytes.fromhex(text.removeprefix("hex:")))
    if ":" in text:
        return of_bytes(ipaddress.IPv6Address(text).packed)
    if re.fullmatch(NUMBER, text):
        return of_number(number(text))
    if found := re.fullmatch(rf"({NUMBER})\.\.({NUMBER})", text):
        if number(found[2]) >= number(found[1]):
            return Value("range", number(found[1]), number(found[2]))
    elif re.fullmatch(NAME, text) and not text[0].isdecimal():
        return Value("word", data=text.encode())
    raise ValueError(text)


def evaluate(value, variables):
    """Return a value without variables and chance. Raise LookupError or TypeError."""
    if value.kind == "random":  # 24 bits fit everywhere; 0 and all ones are special in places
        return of_number(random.SystemRandom().randrange(2, 0xfffff2))
    if value.kind != "variable":
        return value
    found = variables[value.name]
    if not value.number:
        return found
    if found.kind != "number":
        raise TypeError(value.name)
    return of_number(found.number + value.number)


def takes(field, value):
    """Return whether a field can have a value: "", or what is wrong."""
    if value.kind in ("number", "range"):
        return "kind" if not field.bits else \
            "size" if max(value.number, value.last) >> field.bits else ""
    if value.kind == "bytes":
        return "kind" if field.bits else "size" if len(value.data) > field.n_bytes else ""
    return "kind" if value.kind == "word" else ""


# --- lines -------------------------------------------------------------------

@dataclasses.dataclass
class Setting:
    """One NAME=VALUE, or NAME!=VALUE."""
    name: str
    is_not: bool
    value: Value
    field: object = None  # of messages


@dataclasses.dataclass
class Line:
    """A statement."""
    number: int
    verb: str = ""
    peer: str = ""  # the only one that it is for; "": all
    times: tuple = ()  # of sending, or first and last of arriving, after the line before
    name: str = ""  # of the message, the call or the event
    again: bool = False
    result: str = "0"  # of a call
    settings: list = dataclasses.field(default_factory=list)


class Script:
    """A file of lines."""

    def __init__(self, path, fields):
        """Read it. Raise Mistake with the line and what was expected there; OSError."""
        self.path, self.fields = path, fields
        self.lines, self.needs_agent = [], False
        self._names, self._has_why, at = set(FIRST_NAMES), False, 0
        try:
            with open(path, encoding="latin-1") as text:
                for at, line in enumerate(text, start=1):
                    self._take_line(line, at)
            if not self.lines:
                raise Mistake("expected at least one line, not the end")
        except Mistake as mistake:
            raise Mistake(f"{path}:{at}: {mistake}") from None

    def _take_line(self, text, at):
        words = cut(text)
        if words[:1] == ["why"]:
            self._has_why = len(words) > 1
            if not self._has_why:
                raise Mistake("expected a reason, not the end of the line")
        elif words:
            self.lines.append(line := Line(at))
            if words[0].endswith(":") and len(words[0]) > 1:
                line.peer = words.pop(0)[:-1]
                if not self._has_why:
                    raise Mistake("expected a line `why REASON' before the first that is for "
                                  f"{line.peer} only")
            if words and words[0].startswith("+"):
                line.times = times_of(words.pop(0))
            self._take_statement(line, words)

    def _take_statement(self, line, words):
        kinds = {">": self._take_message, "<": self._take_message, "call": self._take_call,
                 "event": self._take_event, "let": self._take_let, "quiet": self._take_quiet}
        line.verb = words.pop(0) if words else ""
        if line.verb not in kinds:
            raise Mistake("expected >, <, call, event, let, quiet or why, not "
                          f"{line.verb or 'the end of the line'}")
        if line.times and line.verb in ("<", "event") and len(line.times) == 1:
            raise Mistake(f"expected a range, as +{line.times[0]:g}..{line.times[0] + 1:g}: "
                          "nothing comes at a point of time")
        if len(line.times) == 2 and line.verb not in ("<", "event"):
            raise Mistake(f"expected one time, as +{line.times[0]:g}: only what comes from the "
                          "peer has a range")
        kinds[line.verb](line, words)

    def _take_message(self, line, words):
        line.name = one_of(words, MESSAGES, "a message")
        self._take_settings(line, words)

    def _take_call(self, line, words):
        line.name = one_of(words, CALLS, "a call")
        if words[-2:-1] == ["="]:
            line.result = words.pop()
            words.pop()
        self.needs_agent = True
        self._take_settings(line, words)

    def _take_event(self, line, words):
        if not words or "=" in words[0]:
            raise Mistake("expected an event, as ESTABLISHED, not "
                          f"{words[0] if words else 'the end of the line'}")
        line.name = words.pop(0)
        self.needs_agent = True
        self._take_settings(line, words)

    def _take_let(self, line, words):
        if not words:
            raise Mistake("expected NAME=VALUE, not the end of the line")
        self._take_settings(line, words)
        self._names.update(setting.name for setting in line.settings)

    def _take_quiet(self, line, words):
        found = [seconds(word) for word in words]
        if len(found) != 1 or found[0] is None:
            raise Mistake(f"expected a number of seconds up to {SECONDS_MAX}, not "
                          f"{' '.join(words) or 'the end of the line'}")
        line.times = (0, found[0])

    # --- settings ------------------------------------------------------------

    def _take_settings(self, line, words):
        for word in words:
            if word == "again" and line.verb in (">", "<"):
                line.again = True
            else:
                line.settings.append(self._setting(line, word))

    def _setting(self, line, word):
        found = re.fullmatch(r"([^=]+?)(!?)=(.*)", word, re.DOTALL)
        if not found:
            raise Mistake(f"expected NAME=VALUE, not `{word}'")
        try:
            setting = Setting(found[1], bool(found[2]), parse(found[3]))
        except ValueError:
            raise Mistake(f"{found[1]}: expected a number, N..M, \"text\", hex:..., a GID, $name, "
                          f"?name, random or *, not `{found[3]}'") from None
        if line.verb in (">", "<"):
            setting.field = self.fields.find(line.name, setting.name)
            check_field(line, setting, found[3])
        self._check_use(line, setting, word)
        return setting

    def _check_use(self, line, setting, word):
        """Values to compare with and values to set differ in what they may be."""
        value, is_asked = setting.value, line.verb in ("<", "event")
        if value.kind == "variable" and value.name not in self._names:
            raise Mistake(f"${value.name} has no value here: expected a variable that was given "
                          "one before")
        if not is_asked and (setting.is_not or value.kind in ("any", "capture", "range")):
            raise Mistake(f"`{word}' asks, which only lines with < and event do: expected "
                          f"{setting.name}=VALUE")
        if is_asked and value.kind == "random":
            raise Mistake("nothing can be expected to be random")
        if value.kind == "capture":
            self._names.add(value.name)


def check_field(line, setting, text):
    """Raise Mistake if a message has no such field, or it cannot have the value."""
    field = setting.field
    if not field:
        raise Mistake(f"{line.name} has no field `{setting.name}': expected one of `purecm drill "
                      f"--fields {line.name}'")
    wrong = takes(field, setting.value)
    if wrong == "size" and field.bits:
        raise Mistake(f"{setting.name} has {field.bits} bits: expected less than {text}")
    if wrong == "size":
        raise Mistake(f"{setting.name} has {field.n_bytes} bytes: expected no more")
    if wrong:
        wanted = "a number" if field.bits else '"text", hex:... or a GID'
        raise Mistake(f"{setting.name}: expected {wanted}, not `{text}'")


def cut(text):
    """Return the words of a line; quotes preserve blanks, and a word with # begins a comment."""
    words = []
    for word in re.findall(r'(?:"[^"]*"?|[^\s"])+', text.replace("\0", " ")):
        if word.startswith("#"):
            break
        if word.count('"') % 2:
            raise Mistake('expected a closing "')
        words.append(word)
    return words


def one_of(words, names, what):
    """Take the first word. Raise Mistake if it is none of these."""
    if not words or words[0] not in names:
        raise Mistake(f"expected {what} ({', '.join(names)}), not "
                      f"{words[0] if words else 'the end of the line'}")
    return words.pop(0)


def seconds(text):
    """Return a number of seconds, or None."""
    is_number = re.fullmatch(r"[0-9]+\.?[0-9]*|\.[0-9]+", text)
    return float(text) if is_number and float(text) <= SECONDS_MAX else None


def times_of(word):
    """Return the one or two times of +0.5 or +0.5..2."""
    times = tuple(map(seconds, word[1:].split("..")))
    if len(times) > 2 or None in times or list(times) != sorted(times):
        raise Mistake(f"expected a time, as +0.5 or +0.5..2, not `{word}'")
    return times


def defaults(message, fields):
    """Return the settings that a message is sent with."""
    return [Setting(name, False, parse(value), fields.find(message, name))
            for name, value in (word.split("=") for word in DEFAULTS[message].split())]
