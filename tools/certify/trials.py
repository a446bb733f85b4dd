# SPDX-License-Identifier: BSD-2-Clause
"""The trials: what is tested between two hosts, and the verdict on each feature. TRIALS at the end
lists them in order."""
import contextlib
import ipaddress
import re
import time

from host import Trouble
from pair import (FAILS, LIMIT_S, MORE_TIME, SLOWER, UNTRIED, WORKS, OutOfTime, Row, last_line,
                  objects)
from scripts import drills, parity
from ways import gids_of, ip_of

MADS = 1000
ASKED_TWICE = 2
WAYS = (("umad", "qp1"), ("own", "qp1"), ("umad", "own"), ("own", "own"))
FAST_PATH = ("own", "qp1")
COUNTS = (1, 100)  # with queue pairs
STORM = 10000  # without
CROWD, FEW, EACH = 64, 8, 4
HELD, MORE = 50, 10
STORM_S = 120
PROBED_S = 20
HOLD_PORT = "7476"
NEEDED = {"NET_ADMIN": "to take a port down and to rename a device",
          "NET_RAW": "the fast path, unless the kernel permits all users QP1's Q_Key",
          "IPC_LOCK": "to lock memory beyond the limit"}
REPEATS_MAX = 0.02  # of all messages; above, some are probably lost


# --- the hosts -----------------------------------------------------------------------------------

def doctors(pair):
    for name, host, target in (("a", pair.a, pair.main.there), ("b", pair.b, pair.main.here)):
        if pair.stock[name]["library"] == "stock":
            continue
        text, status = host.run(LIMIT_S, "purecm", "doctor", "--json", target)
        found = objects(text)
        bad = [check for check in found if check["verdict"] == "bad"]
        if not found:
            yield Row(f"host {name}", FAILS, last_line(text) if status is not None else "it hung")
        for check in bad:
            yield Row(f"host {name}: {check['check']}", FAILS, check["text"],
                      check.get("remedy", ""))
        if lacking := [each for each in NEEDED if each not in pair.stock[name]["capabilities"]]:
            yield Row(f"host {name}: rights", WORKS, f"as uid {pair.stock[name]['uid']}, without "
                      + ", ".join(f"CAP_{each} ({NEEDED[each]})" for each in lacking),
                      "root has them")
        notes = [f"{check['check']}: {check['text']}" for check in found
                 if check["verdict"] == "note"]
        if found and not bad:
            yield Row(f"host {name}", WORKS, "purecm doctor finds nothing in the way"
                      + "".join(f"; {note}" for note in notes))


def addresses(pair):
    if pair.stock["a"]["library"] == "stock":
        return
    for way in pair.ways:
        if way.is_ib:  # purecm ping supports RoCE only
            why = pulse(pair, way)
            yield Row(f"address: {way.kind}", FAILS if why else WORKS, why or
                      f"{way.here} to {way.there}: a connection", why and
                      f"purecm doctor {way.there}")
            continue
        text, status = pair.a.run(LIMIT_S, "purecm", "ping", "--json", "-c", "5", "-i", "0",
                                  way.there)
        said = objects(text)
        if status or not said:
            yield Row(f"address: {way.kind}", FAILS, f"{way.there}: "
                      + (said[-1]["conclusion"] if said else last_line(text)),
                      f"purecm doctor {way.there}")
        else:
            yield Row(f"address: {way.kind}", WORKS, f"{way.here} to {way.there}: answers in "
                      f"{said[-1]['avg_ms']:.2f} ms", figures=said[-1])


# --- paths of a MAD ------------------------------------------------------------------------------

def ask_mads(host, target, qpn, sender, receiver, seconds):
    """Ask again where none is answered, since a busy host may be late."""
    number = "qp1" if receiver == "qp1" else str(qpn)
    for _ in range(ASKED_TWICE):
        text, _ = host.run(LIMIT_S + seconds, "mads", "ask", target, sender, number, str(MADS),
                           f"{1000 * seconds:.0f}")
        told = objects(text)
        said = told[-1] if told else {"sent": 0, "answered": 0, "error": last_line(text)}
        if said["answered"]:
            break
    return said


def try_mads(pair, way, ways_left):
    """Add {from, to, direction, ...} for all paths over an address to the pair's; ways_left:
    addresses to try, this one included."""
    before = len(pair.mads)
    for name, asker, answerer, target, back in pair.directions(way):
        with pair.served(answerer, "qpn", "mads", "answer", back) as number:
            qpn = objects(answerer.said(number)[0])[0]["qpn"]
            for sender, receiver in WAYS:
                if receiver == "own" and not qpn:
                    said = {"sent": 0, "answered": 0, "error": "it has no such queue pair"}
                else:
                    parts = 2 * len(WAYS) * ways_left - (len(pair.mads) - before)
                    said = ask_mads(asker, target, qpn, sender, receiver, pair.left(parts))
                pair.mads.append({"from": sender, "to": receiver, "kind": way.kind,
                                  "direction": name, **said})


def judge_mads(sender, receiver, some, wanted):
    """Return the Row of a path, from the results in both directions over all addresses; wanted:
    how many MADs there were to send."""
    words = {"umad": "QP1", "own": "a queue pair of its own", "qp1": "QP1"}
    feature = f"MAD from {words[sender]} to {words[receiver]}"
    if not some:
        return Row(feature, UNTRIED, str(OutOfTime()), MORE_TIME)
    dead = [one for one in some if not one["answered"]]
    lost = sum(one["sent"] - one["answered"] for one in some)
    sent = sum(one["sent"] for one in some)
    took = [f"{one['kind']} {one['direction']} {one['median_us']:.0f} us" for one in some
            if one["answered"]]
    if dead:
        where = ", ".join(f"{one['kind']} {one['direction']}" for one in dead)
        error = next((f" ({one['error']})" for one in dead if "error" in one), "")
        needed = (sender, receiver) == ("umad", "qp1")
        return Row(feature, FAILS if needed else SLOWER, "none arrives: "
                   + (where if len(dead) < len(some) else "whatever the address") + error
                   + ("" if needed else "; purecm does without"))
    fewer = f" (of {wanted}, as this host is slow)" if sent < wanted else ""
    return Row(feature, WORKS, f"{lost} of {sent} lost{fewer}; median round trip: "
               + ", ".join(took))


def has_roce_v1(stock):
    return any(gid["type"] == "IB/RoCE v1" for device in stock["devices"]
               for port in device["ports"] if port["link"] == "Ethernet" for gid in port["gids"])


def mads(pair):
    if pair.main.is_ib:
        yield Row("ways of a MAD", UNTRIED, "on InfiniBand purecm sends all messages through umad, "
                  "from QP1 to QP1: no other way is needed")
        return
    if not (pair.a.has_own_cmportd() and pair.b.has_own_cmportd()):
        yield Row("ways of a MAD", UNTRIED, "the CM class of a port is not free: a cmportd or the "
                  "kernel's connection manager has it",
                  "systemctl stop cmportd.socket cmportd.service; then certify again, as root")
        return
    with pair.without_cmportd(pair.a, pair.b), contextlib.suppress(OutOfTime):
        for i, way in enumerate(pair.ways):
            if i == 0 or pair.left():
                try_mads(pair, way, len(pair.ways) - i)
    for sender, receiver in WAYS:
        yield judge_mads(sender, receiver, [one for one in pair.mads
                                            if (one["from"], one["to"]) == (sender, receiver)],
                         2 * MADS * len(pair.ways))
    if all(map(has_roce_v1, pair.stock.values())):
        yield Row("MAD over RoCE v1", UNTRIED, "purecm has RoCE v2 only")
    fast = [one["answered"] for one in pair.mads
            if (one["from"], one["to"], one["kind"]) == (*FAST_PATH, pair.main.kind)]
    pair.fast_path = all(fast) if fast else None


def counts_of(host):
    """Return {what: count} of all ports of its cmportd."""
    text, _ = host.run(LIMIT_S, "purecm", "stat", "--json")
    count = dict.fromkeys(("sent", "repeated", "by-umad", "fast-peers", "lost-peers"), 0)
    for row in objects(text):
        if row.get("type") == "port_count":
            count[row["what"]] = count.get(row["what"], 0) + row["value"]
    return count


def messages(pair):
    """How many were repeated before cmportd is killed, which loses some."""
    count = counts_of(pair.a)
    repeated, sent = count["repeated"], count["sent"]
    if sent and repeated > max(2, REPEATS_MAX * sent):
        yield Row("messages", SLOWER, f"{repeated} of {sent} had to be sent again: something "
                  "loses them, or the other host is slow", "purecm explain --recorded", count)
    elif sent:
        yield Row("messages", WORKS, f"{repeated} of {sent} were sent again", figures=count)


def probed_counts(pair):
    """Return counts_of() the first host once it knows about a peer's fast path. It learns that from
    probes only while the peer sends other messages, so connections are made until then."""
    count, end = counts_of(pair.a), time.monotonic() + PROBED_S
    _, asker, answerer, target, _ = next(iter(pair.directions(pair.main)))
    while (count["sent"] and not (count["fast-peers"] or count["lost-peers"])
           and time.monotonic() < end):
        with pair.served(answerer, "^ready", "connect", "server"):
            connect(asker, target, "-n", "1")
        count = counts_of(pair.a)
    return count


def fast_path(pair):
    """The state of cmportd's fast path after all those connections."""
    is_known = pair.main.is_ib or pair.fast_path is False
    count = counts_of(pair.a) if is_known else probed_counts(pair)
    reached, lost = count["fast-peers"], count["lost-peers"]
    figures = {key: count[key] for key in ("sent", "repeated", "by-umad")}
    if pair.main.is_ib:
        yield Row("fast path", WORKS, "on InfiniBand umad resolves no link addresses: there is no "
                  "other path", figures=figures)
    elif lost and pair.fast_path:
        yield Row("fast path", FAILS, "MADs from a queue pair of its own arrive, and cmportd does "
                  "not use it", figures=figures)
    elif lost or pair.fast_path is False:
        yield Row("fast path", SLOWER, "what a queue pair other than QP1 sends does not arrive, "
                  "and purecm sends through umad: no message is lost, each costs more",
                  "the administrator of the hypervisor or of the switch may allow it; cmportd "
                  "--qp1 does not try", figures)
    elif reached:
        yield Row("fast path", WORKS, "purecm sends from a queue pair of its own", figures=figures)
    else:
        yield Row("fast path", UNTRIED, "cmportd has not asked the other host anything")


# --- connections ---------------------------------------------------------------------------------

def connect(host, target, *options, limit_s=LIMIT_S):
    """Return ({count: {step: us}}, cause of the failure)."""
    text, status = host.run(limit_s, "connect", "client", *options, target)
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[0].isdigit():
            found.setdefault(int(words[0]), {})[words[1]] = float(words[2])
    return found, "" if status == 0 else last_line(text) if status is not None else "it hung"


def connections(pair):
    for i, (name, asker, answerer, target, _) in enumerate(pair.directions(pair.main)):
        us, seconds = None, pair.left(2 - i)
        with pair.served(answerer, "^ready", "connect", "server"):
            for count in COUNTS:
                found, why = connect(asker, target, "-n", str(count))
                us = found.get(count, {}).get("all")
                yield connected(f"{count} connections with queue pairs ({name})", found, count, why)
        # A slow host makes fewer, so that the verdict does not depend on its speed.
        fits = int(seconds / 2 * 1e6 / us) if us else STORM
        count = STORM if fits >= STORM else max(fits // 100 * 100, 100)
        with pair.served(answerer, "^ready", "connect", "server", "-f"):
            found, why = connect(asker, target, "-f", "-n", str(count), limit_s=3 * STORM_S)
            yield connected(f"{STORM} connections at once ({name})", found, count, why)


def connected(feature, found, count, why):
    """Return the Row for a number of connections."""
    took = found.get(count, {})
    fewer = "" if feature.startswith(f"{count} ") else f"{count}, as this host is slow: "
    return Row(feature, FAILS if why else WORKS, fewer + (why or
               f"{took['connect']:.0f} us each to connect, {took['all']:.0f} us each from create "
               "to destroy"), figures=took)


def pulse(pair, way=None):
    """Return why a connection fails now, or an empty text."""
    try:
        with pair.served(pair.b, "^ready", "connect", "server", "-f"):
            return connect(pair.a, (way or pair.main).there, "-f", "-n", "1")[1]
    except OutOfTime:
        raise
    except Trouble as trouble:
        return str(trouble)


class Holding:
    """Connections between two hosts held by the program hold."""

    def __init__(self, pair, count, more):
        self.pair, self.count, self.more = pair, count, more
        self.server = self.client = None

    def __enter__(self):
        a, b, there = self.pair.a, self.pair.b, self.pair.main.there
        with contextlib.ExitStack() as unless_held:
            unless_held.push(self)
            self.server = b.start("hold", "server", there, HOLD_PORT)
            self.expect(b, self.server, "^ready", "hold server")
            self.client = a.start("hold", "client", there, HOLD_PORT, str(self.count),
                                  str(self.more))
            self.expect(a, self.client, "^held", "connecting")
            unless_held.pop_all()
        return self

    def __exit__(self, *_):
        for host, number in ((self.pair.a, self.client), (self.pair.b, self.server)):
            if number:
                host.end(number)

    @staticmethod
    def expect(host, number, pattern, what):
        text, _ = host.expect(number, pattern, LIMIT_S)
        if not re.search(pattern, text, re.MULTILINE):
            raise Trouble(f"{what}: {last_line(text)}")
        return text

    def connect_more(self):
        self.pair.a.signal(self.client, "SIGUSR1")
        self.expect(self.pair.a, self.client, "^complete", "new connections")

    def disconnect(self):
        self.pair.a.signal(self.client, "SIGUSR1")
        self.expect(self.pair.a, self.client, "^ended", "disconnecting")

    def disconnected(self):
        """Number of disconnects that the server has seen."""
        b = self.pair.b
        seen = b.said(self.server)[0].count("\ncount")
        b.signal(self.server, "SIGUSR1")
        text = self.expect(b, self.server, r"(^count.*\n(.*\n)*){%d}" % (seen + 1), "hold server")
        return int(re.findall(r"(\d+) disconnected", text)[-1])


def crowd(pair):
    """As many programs as the time suffices for, by that of a few."""
    seconds = pair.left()
    took = gather(pair, FEW)
    count = CROWD if took * CROWD / FEW < seconds - took else FEW
    if count > FEW:
        took = gather(pair, count)
    fewer = "" if count == CROWD else f"{count}, as this host is slow: "
    yield Row(f"{CROWD} programs at once", WORKS, f"{fewer}{count * EACH} connections of {count} "
              f"programs in {took:.1f} s", figures={"seconds": took})


def gather(pair, count):
    """Start so many programs that connect. Return: how many seconds it took."""
    begin = time.monotonic()
    server = pair.b.start("hold", "server", pair.main.there, HOLD_PORT)
    clients = []
    try:
        Holding.expect(pair.b, server, "^ready", "hold server")
        clients = [pair.a.start("hold", "client", pair.main.there, HOLD_PORT, str(EACH), "0")
                   for _ in range(count)]
        for client in clients:
            Holding.expect(pair.a, client, "^held", "a program of the crowd")
        return time.monotonic() - begin
    finally:
        for client in clients:
            pair.a.signal(client, "SIGKILL")
        for client in clients:
            pair.a.end(client)
        pair.b.end(server)


def killed_program(pair):
    with Holding(pair, HELD, 0) as holding:
        begin = time.monotonic()
        pair.a.signal(holding.client, "SIGKILL")
        while (seen := holding.disconnected()) < HELD and time.monotonic() < begin + LIMIT_S:
            time.sleep(0.05)
        took = time.monotonic() - begin
    yield Row("a program is killed", WORKS if seen >= HELD else FAILS,
              f"its peer saw {seen} of {HELD} connections end within {took:.1f} s")


def killed_cmportd(pair):
    for name, host in (("a", pair.a), ("b", pair.b)):
        feature = f"cmportd of {name} is killed"
        if not host.has_own_cmportd():
            yield Row(feature, UNTRIED, "it serves others, too, or the host has none")
            continue
        with Holding(pair, HELD, MORE) as holding:
            host.stop_cmportd("SIGKILL")
            host.start_cmportd()
            holding.connect_more()
            holding.disconnect()
        yield Row(feature, WORKS, f"{HELD} connections stayed, {MORE} were made after, all ended "
                  "in order")


# --- disruptions ---------------------------------------------------------------------------------

def entry_of(pair, side, address):
    """Return (device, port, GID entry) of an address, or Nones."""
    wanted = ipaddress.ip_address(address.split("%")[0])
    return next(((device, port, gid) for device, port, gid in gids_of(pair.stock[side])
                 if ip_of(gid["gid"]) == wanted), (None, None, None))


def disrupted(pair, feature, *words):
    """Disrupt host b for a moment. Return: the Row."""
    try:
        pair.b.disrupt(*words)
    except Trouble as trouble:
        return Row(feature, UNTRIED, str(trouble), "it needs root, iproute2 and rdma(8)")
    deadline = time.monotonic() + LIMIT_S
    begin = time.monotonic()
    while (why := pulse(pair)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return Row(feature, FAILS if why else WORKS,
               f"no connection in {LIMIT_S} s after it: {why}" if why else
               f"connections {time.monotonic() - begin:.1f} s after it")


def disruptions(pair):
    if not pair.stock["b"]["may_disrupt"]:
        yield Row("port down, address gone, device renamed", UNTRIED,
                  "nobody allowed it", "purecm certify --serve --disrupt on host b")
        return
    device, port, gid = entry_of(pair, "b", pair.main.there)
    if not device:
        yield Row("port down, address gone, device renamed", UNTRIED,
                  f"/sys does not say which device has {pair.main.there}")
        return
    yield disrupted(pair, "the port goes down for a second", "down", gid["interface"],
                    str(port["number"]))
    yield disrupted(pair, "the address goes away for a second", "address", gid["interface"],
                    pair.main.there)
    yield disrupted(pair, "the device has another name for a second", "rename", device["name"],
                    "certify0")


# (name, trial, whether connections must work after it)
TRIALS = (
    ("doctor", doctors, False),
    ("addresses", addresses, False),
    ("mads", mads, True),
    ("drills", drills, True),
    ("parity", parity, True),
    ("connections", connections, True),
    ("crowd", crowd, True),
    ("messages", messages, False),
    ("killed-program", killed_program, True),
    ("killed-cmportd", killed_cmportd, True),
    ("disruptions", disruptions, True),
    ("fast-path", fast_path, False),
)


def run(pair, names):
    """Run the trials with these names. Yield Rows that may be published."""
    for row in run_all(pair, names):
        yield row.public()


def run_all(pair, names):
    """Likewise, of whatever text."""
    for i, (name, trial, has_pulse) in enumerate(TRIALS):
        if name not in names:
            continue
        if pair.took and pair.is_over():
            yield Row(name, UNTRIED, "no time was left for it", MORE_TIME)
            continue
        pair.tell(name)
        pair.begin([each for each, _, _ in TRIALS[i:] if each in names])
        begin = time.monotonic()
        try:
            pair.start_cmportds()
            yield from trial(pair)
            why = pulse(pair) if has_pulse else ""
            if why:
                yield Row(f"connections after {name}", FAILS, why)
        except OutOfTime as trouble:
            yield Row(name, UNTRIED, str(trouble), MORE_TIME)
        except Trouble as trouble:
            yield Row(name, FAILS, str(trouble))
        pair.took[name] = time.monotonic() - begin
        pair.tell(f"{name} took {pair.took[name]:.1f} s")
