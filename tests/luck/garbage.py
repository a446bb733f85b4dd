# SPDX-License-Identifier: BSD-2-Clause
"""Peers that lie: see flood.c for what they say, and victim.c for whom it must not hurt."""
from pathlib import Path
import re
import struct
import tempfile

from lucklib import check, same
from removal import PORT, establish, listen

PAIRS = 50
GROWTH_MAX = 400_000  # bytes: the pool of spare connections, and no more the more garbage comes


def flood(bench, kind, count, ids):
    """Write count MADs from b to a's QP1."""
    gids = "/sys/class/infiniband/rxe0/ports/1/gids"
    index = bench.b.run(f"grep -l 0a4d:0002 {gids}/*", check=True).stdout.strip().rsplit("/", 1)[1]
    bench.b.run(f"busybox ping -c 1 -w 5 {bench.a.addr4}", check=True)
    words = [bench.program("flood"), "rxe0", index, f"::ffff:{bench.a.addr4}", str(count), kind,
             *ids, bench.b.addr4, bench.a.addr4]
    return bench.b.run(words, timeout=120, check=True)


def count_packets(path):
    """How many packets a pcap file has."""
    with open(path, "rb") as file:
        data = file.read()
    at, n = 24, 0
    while at < len(data):
        at += 16 + struct.unpack_from("<I", data, at + 8)[0]
        n += 1
    return n


def sit_through(bench, count, seconds):
    """Flood a victim. Return: its counters, and how many packets came back."""
    bench.modes("purecm", "purecm")
    # It has the library in itself, which looks for ../tools/cmportd/cmportd: in tests/ that is
    # another one.
    bench.a.run(f"cd {Path(bench.program('victim')).parents[2]} && "
                "mount --bind tools/cmportd tests/tools/cmportd", check=True)
    victim = bench.a.start([bench.program("victim"), bench.a.addr4, str(PAIRS), str(seconds)],
                           env={"PURECM_PORTD": "inline"})
    ids = victim.wait_for_output(r"ready (\w+) (\w+)", timeout=60).groups()
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        with bench.b.capture(file.name, f"udp port 4791 and src host {bench.a.addr4}"):
            flood(bench, "any", count, ids)
            result = victim.wait(seconds + 60)
        n_answers = count_packets(file.name)
    if not result.ok:
        raise AssertionError(result.output)
    counters = {name: int(n) for name, n in re.findall(r"(?m)^([A-Z_]+) (-?\d+)$", result.stdout)}
    return counters, n_answers


def judge_flood(bench, count, seconds):
    seen, n_answers = sit_through(bench, count, seconds)
    print(f"        {count} lies, {n_answers} answers: {seen}", flush=True)
    for counter in ("UNKNOWN", "ALIEN", "UNSUPPORTED"):
        if not seen[counter]:
            raise AssertionError(f"{counter} counted nothing: {seen}")
    if seen["MALFORMED"]:
        raise AssertionError(f"the cmportd in the process let malformed messages through: {seen}")
    if n_answers > count:
        raise AssertionError(f"{n_answers} answers to {count} messages")
    if seen["GROWTH"] > GROWTH_MAX:
        raise AssertionError(f"memory grew by {seen['GROWTH']} bytes")
    if not seen["EXCHANGED"] or not seen["MORE"]:
        raise AssertionError(f"the victim did nothing: {seen}")
    return seen


@check("garbage", long=True)
def twenty_thousand_lies_hurt_nobody(bench):
    judge_flood(bench, 20000, 12)


@check("garbage", long=True)
def half_a_million_lies_hurt_nobody_and_take_no_more_memory(bench):
    judge_flood(bench, 500000, 180)


def comm_id_of(agent):
    """The comm id of an agent's established connection, from its log."""
    return agent.process.wait_for_output(r"conn 0x(\w{8}) \w+ -> ESTABLISHED", timeout=30)[1]


@check("garbage", long=True)
def dreq_with_the_right_ids_and_the_wrong_queue_pair_ends_nothing(bench):
    bench.modes("purecm", "purecm")
    debug = {"PURECM_LOG": "debug"}
    with bench.agent(bench.a, **debug) as agent, bench.agent(bench.b, **debug) as peer:
        listen(peer, "listener", bench.b.addr4, PORT)
        agent.all("channel")
        establish(agent, peer, "id", "id", bench.b, PORT)
        flood(bench, "dreq", 500, (comm_id_of(agent), comm_id_of(peer)))
        same((agent.event(1000), peer.event(100)), ("none", "none"))
        agent.all("disconnect id")
        same(peer.event(), "DISCONNECTED id 0")
