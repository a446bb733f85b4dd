#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Debian's programs over purecm on devices that have quirks: what the connection manager makes of
them (test_quirks.c has what they are).

Prints a line a failure, and last "N passed, N failed, N skipped". Exit status: 1 if a test failed,
77 if there can be no fabric here.
"""
import json
import os
import subprocess
import sys
import tempfile

from hosts import CONNECTING, main, run_on_fabric


LIMIT_S = 60
SERVER = "a&:rping -s -P -a 10.77.0.1 >/dev/null"
CLIENT = "rping -c -a 10.77.0.1 -C 1"
# A client that comes before its server listens is refused, and tries again.
FIRST = f"for i in $(seq 50); do {CLIENT} && break; sleep 0.1; done"
LATER = 5
VENDOR = 0x5043
ALL_OPTIONS, NO_OPTIONS = (VENDOR, 7), (0, 0)


def both_counts(build):
    """A command that prints how things stand at the cmportds of both hosts."""
    stat = f"{build}/tools/purecm stat --json"
    return f"for h in a b; do PURECM_SOCKET=$PURECM_FABRIC/../$h/cmportd.sock {stat}; done; echo ."


def rows_of(output):
    """What was printed so: for each time, a list of rows."""
    times = [[]]
    for line in output.splitlines():
        if line == ".":
            times.append([])
        elif line.startswith("{"):
            times[-1].append(json.loads(line))
    return times[:-1]


def count(rows, what, message=None):
    return sum(row["value"] for row in rows if row.get("type") == "port_count"
               and row["what"] == what and message in (None, row["message"]))


def quirk_option(quirk):
    return ("--quirk", quirk) if quirk else ()


def play(build, quirk, *commands):
    """Run commands on b, with a look at the counters after each. Return: what they were."""
    look = both_counts(build)
    script = "; ".join(f"{{ {command}; }} >&2; {look}" for command in commands)
    done = run_on_fabric(build, LIMIT_S, *quirk_option(quirk), SERVER, f"b:{script}")
    rows = rows_of(done.stdout)
    if done.returncode or len(rows) != len(commands):
        raise AssertionError(f"status {done.returncode}: {done.stdout[-600:]}{done.stderr[-600:]}")
    return rows


def where_qp1_hears_qp1_only_not_even_the_first_connection_waits(build):
    """And it is known a second later, when the next probe has not been answered either."""
    later = " && ".join([CLIENT] * LATER)
    first, second, last = play(build, "no-fast-path", FIRST, later, f"sleep 1.5; {CLIENT}")
    for rows in (first, second, last):
        if count(rows, "repeated"):
            raise AssertionError(f"repeated: {count(rows, 'repeated')}")
    for message in ("REQ", "REP", "RTU"):
        received = count(second, "received", message) - count(first, "received", message)
        by_umad = count(second, "by-umad", message) - count(first, "by-umad", message)
        if (received, by_umad) != (LATER, LATER):
            raise AssertionError(f"{LATER} connections, but {received} {message} arrived, and "
                                 f"{by_umad} were sent through umad")
    if not count(last, "lost-peers") or count(last, "fast-peers"):
        raise AssertionError(f"{count(last, 'lost-peers')} peers are said to be lost")


def without_a_quirk_messages_leave_by_the_fast_path(build):
    later = " && ".join([CLIENT] * LATER)
    first, second = play(build, None, FIRST, later)
    slow = {message: count(second, "by-umad", message) - count(first, "by-umad", message)
            for message in ("REQ", "REP", "RTU", "DREQ")}  # a DREP may answer twice
    if any(slow.values()):
        raise AssertionError(f"left through umad: {slow}")
    if count(second, "fast-peers") != 2 or count(second, "lost-peers"):
        raise AssertionError(f"{count(second, 'fast-peers')} peers are said to be reached")


def each_host_sends_one_probe_in_its_first_connection_and_none_later(build):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/probes.pcap"
        later = " && ".join([CLIENT] * LATER)
        done = run_on_fabric(build, LIMIT_S, "--pcap", path, SERVER,
                             f"b:{{ {FIRST} && {later}; }} >&2")
        shown = subprocess.run([build / "tools/purecm", "trace", "--probes", "--json", "-r", path],
                               check=True, stdout=subprocess.PIPE, text=True).stdout
    probes = sorted(row["src"] for row in map(json.loads, shown.splitlines())
                    if row["message"] == "SIDR_REQ")
    if done.returncode or len(probes) != 2 or probes[0] == probes[1]:
        raise AssertionError(f"status {done.returncode}, probes of {probes}: {done.stderr[-600:]}")


def the_doctor_says_what_became_of_the_fast_path(build):
    doctor = f"{build}/tools/purecm doctor --json"
    for quirk, verdict in ((None, "ok"), ("no-fast-path", "note")):
        done = run_on_fabric(build, LIMIT_S, *quirk_option(quirk), SERVER,
                             f"b:{{ {FIRST}; sleep 1.5; {CLIENT}; }} >&2; {doctor}; true")
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        checks = {row["check"]: row for row in rows}
        if checks["fast path"]["verdict"] != verdict:
            raise AssertionError(f"{quirk}: {checks['fast path']}")


def where_qp1_hears_qp1_only_a_refusal_arrives_at_once(build):
    refused = "! rping -c -a 10.77.0.1 -p 9999 -C 1"
    rows = play(build, "no-fast-path", FIRST, f"{refused} && {refused}")
    if count(rows[1], "repeated"):
        raise AssertionError(f"repeated: {[count(row, 'repeated') for row in rows]}")


def where_qp1_hears_qp1_only_who_never_asks_is_heard(build):
    """The server's host has asked nobody, and has only answers to give."""
    refused = "! rping -c -a 10.77.0.1 -p 9999 -C 1"
    rows = play(build, "a:no-fast-path", refused, refused)
    if count(rows[1], "repeated"):
        raise AssertionError(f"repeated: {[count(row, 'repeated') for row in rows]}")


def where_one_of_two_hosts_has_that_quirk_nobody_waits_either(build):
    for host in ("a", "b"):
        rows = play(build, f"{host}:no-fast-path", FIRST, f"{CLIENT} && {CLIENT}")
        if count(rows[1], "repeated"):
            raise AssertionError(f"{host}, repeated: {[count(row, 'repeated') for row in rows]}")


def without_cmportd_nothing_is_lost_for_good_either(build):
    inline = "export PURECM_PORTD=inline; "
    done = run_on_fabric(build, LIMIT_S, "--quirk", "no-fast-path",
                         f"a:{inline} ucmatose -c 2 -C 1 -S 64",
                         f"b:{inline} for i in $(seq 50); do ucmatose -c 2 -C 1 -S 64 -s 10.77.0.1 "
                         "&& exit; sleep 0.1; done; exit 1")
    if done.returncode:
        raise AssertionError(f"status {done.returncode}: {done.stdout[-600:]}{done.stderr[-600:]}")


def where_completions_have_service_levels_nothing_is_repeated(build):
    """As where they have packet types for them, which all other tests of programs show."""
    later = " && ".join([CLIENT] * LATER)
    rows = play(build, "sent-sl", FIRST, later)
    if count(rows[1], "repeated"):
        raise AssertionError(f"repeated: {[count(row, 'repeated') for row in rows]}")


def programs_run_on_each_device(build):
    """All of them with $PURECM_TEST_LONG, else the worst."""
    sockets = "rstream -C 10 -S 4096 -T v"
    for device in CONNECTING if os.environ.get("PURECM_TEST_LONG") else ["worst"]:
        done = run_on_fabric(build, LIMIT_S, "--device", device, SERVER, f"a&:{sockets} >/dev/null",
                             f"b:{{ {FIRST} && {sockets} -s 10.77.0.1; }}")
        if done.returncode or "custom" not in done.stdout:
            raise AssertionError(f"{device}: {done.stdout[-600:]}{done.stderr[-600:]}")


def watch(build):
    """Return a command that starts a cmportd, $portd, which a $watcher keeps in use, but no device.
    """
    stat = f"{build}/tools/purecm stat"
    return (f"{stat} --watch=0.1 >$PURECM_FABRIC/watched 2>&1 & watcher=$!; "
            "until [ -s $PURECM_FABRIC/watched ]; do sleep 0.1; done; "
            f"{build}/tools/cmportd/cmportd --idle 1 & portd=$!; "
            f"until {stat} >/dev/null 2>&1; do sleep 0.1; done;")


def a_device_that_nobody_uses_is_closed_and_opened_again(build):
    """While cmportd runs on for a watcher; stat has rows of ports that are open."""
    stat = f"{build}/tools/purecm stat --json"
    look = f"{stat}; echo ."
    closed = f"while {stat} | grep -q port_count; do sleep 0.1; done"
    done = run_on_fabric(build, LIMIT_S, "--device", "mlx4-vf", SERVER,
                         f"b:{watch(build)} {{ {FIRST}; }} >&2; {look}; {closed}; {look}; "
                         f"{CLIENT} >&2; {look}; kill $watcher")
    sent = [count(rows, "sent", "REQ") for rows in rows_of(done.stdout)]
    if sent != [1, 0, 1]:
        raise AssertionError(f"REQs that open ports have sent: {sent}: {done.stderr[-600:]}")


def of_a_device_that_nobody_uses_no_descriptor_stays_open(build):
    """A driver can only be unloaded when nobody has its uverbs and umad nodes open. cmportd has a
    few descriptors of its own since it first served anybody."""
    count_them = "ls /proc/$portd/fd | wc -l"
    use = ("rping -s -a 10.77.0.1 & user=$!; until [ $({count}) -gt {more} ]; do sleep 0.1; done; "
           "{count}; kill $user; until [ $({count}) -lt {more} ]; do sleep 0.1; done; {count}; ")
    uses = "".join(use.format(count=count_them, more="$((before + 8))") for _ in range(2))
    done = run_on_fabric(build, LIMIT_S, "--hosts", "1",
                         f"a:{watch(build)} before=$({count_them}); {uses} kill $watcher")
    opened = [int(line) for line in done.stdout.splitlines() if line.isdigit()]
    if len(opened) != 4 or opened[3] != opened[1]:
        raise AssertionError(f"descriptors of cmportd: {opened}: {done.stderr[-600:]}")


def where_commands_take_their_time_connections_are_made(build):
    """A queue pair needs three of them at each end, an address handle one."""
    done = run_on_fabric(build, LIMIT_S, "--slow", "20000", "--slow", "b:50000", SERVER,
                         f"b:{FIRST}")
    if done.returncode:
        raise AssertionError(f"status {done.returncode}: {done.stdout[-600:]}{done.stderr[-600:]}")


def on_a_device_without_connection_manager_calls_say_that_there_is_none(build):
    """And nobody repeats it in the log."""
    portd = (f"PURECM_LOG=warn {build}/tools/cmportd/cmportd --open --idle 0 "
             "--log $PURECM_FABRIC/log --detach")
    done = run_on_fabric(build, LIMIT_S, "--device", "efa",
                         f"a:{portd}; rping -c -a 10.77.0.2 -C 1; rping -s -a 10.77.0.1 -C 1; "
                         "sleep 3; echo; cat $PURECM_FABRIC/log; ibv_devinfo")
    text = done.stdout
    if text.count("No such device") < 2 or "fab0" not in text:
        raise AssertionError(text[-1500:])
    said = [line for line in text.splitlines() if "fab0" in line and "hca_id" not in line]
    if len(said) > 1:
        raise AssertionError(f"it is said again: {said}")


def order(build, words):
    """A command that has the fabric do something to one of its hosts."""
    return f"{build}/tools/purecm fabric {words.replace(' ', ' --dir $PURECM_FABRIC/../.. ', 1)}"


def a_device_that_is_renamed_stays_the_same(build):
    """For the server, which listens, for cmportd, and for a program that comes later."""
    renamed = " && ".join(order(build, f"rename {host} roce{host}") for host in "ab")
    seen = " && ".join(f"{build}/tools/purecm fabric exec {host} 'until [ -e /sys/class/infiniband/"
                       f"roce{host} ]; do sleep 0.1; done'" for host in "ab")
    before, after = play(build, None, FIRST, f"{renamed} && {seen} && {CLIENT} && ibv_devices")
    named = {row["device"] for row in after if row.get("what") == "fast-peers"}
    if named != {"rocea/1", "roceb/1"}:
        raise AssertionError(f"ports after it: {named}")
    if count(after, "sent", "REQ") != 1 + count(before, "sent", "REQ"):
        raise AssertionError(f"{count(after, 'sent', 'REQ')} REQs were sent")


def a_device_that_was_reset_has_connections_again(build):
    """The client's, and the server's, whose program has to begin anew, as with any device."""
    serve = "a&:while sleep 0.1; do rping -s -a 10.77.0.1 >/dev/null; done"
    reset = "; ".join(f"{order(build, f'reset {host}')}; sleep 0.5; {FIRST} && echo {host}"
                      for host in "ba")
    done = run_on_fabric(build, LIMIT_S, serve, f"b:{FIRST}; {{ {reset}; }} | grep -x '[ab]'")
    # The server may write after it.
    if [line for line in done.stdout.splitlines() if line in ("a", "b")] != ["b", "a"]:
        raise AssertionError(f"{done.stdout[-600:]}{done.stderr[-600:]}")


def a_server_on_all_addresses_outlives_its_driver(build):
    """The device goes, comes back and gets another name; the server's program does nothing. No
    uevents arrive on a fabric."""
    reset = f"{order(build, 'reset a')} && sleep 0.5 && {order(build, 'rename a rocea')}"
    done = run_on_fabric(build, LIMIT_S, "a&:rping -s -P >/dev/null",
                         f"b:{{ {FIRST} && {reset} && {FIRST} && echo again; }} | grep -x again")
    if "again" not in done.stdout.splitlines():  # the server may write after it
        raise AssertionError(f"{done.stdout[-600:]}{done.stderr[-600:]}")


def a_write_to_umad_that_blocks_holds_up_nobody_else(build):
    """While the first message to a peer is written, for a second, connections to another one are
    made. Who is slow may miss that second, but not with each of four peers."""
    hosts = "abcdef"
    servers = [f"{host}&:rping -s -P -a 10.77.0.{number} >/dev/null"
               for number, host in enumerate(hosts, start=1) if host != "b"]
    stat = f"{build}/tools/purecm stat"
    script = FIRST + "".join(
        f"; (rping -c -a 10.77.0.{number} -C 1; echo new) & "
        f"until {stat} | grep -q 10.77.0.{number}: || ! kill -0 $!; do sleep 0.01; done; "
        f"{CLIENT}; echo known; wait $!" for number in (3, 4, 5, 6))
    done = run_on_fabric(build, LIMIT_S, "--hosts", ",".join(hosts), "--quirk", "b:umad-blocks",
                         *servers, f"b:{{ {script}; }}")
    said = [line for line in done.stdout.splitlines() if line in ("new", "known")]
    firsts = said[::2]
    if sorted(said) != ["known"] * 4 + ["new"] * 4 or "known" not in firsts:
        raise AssertionError(f"{said}: {done.stderr[-600:]}")


def a_device_of_a_bond_has_connections_by_both_of_its_interfaces(build):
    """The bond alone has GIDs, of its one port; what is sent to it comes by the other interface."""
    names = "fab0s1/tx", "fab0s1/rx", "fab0s2/tx", "fab0s2/rx"
    packets = " ".join(f"/sys/class/net/{name.replace('/', '/statistics/')}_packets"
                       for name in names)
    seen = ("cd /sys/class/infiniband/fab0; echo seen $(ls device/net) $(ls ports) "
            f"$(cat ports/1/gid_attrs/ndevs/* 2>/dev/null | sort -u) $(cat {packets})")
    done = run_on_fabric(build, LIMIT_S, "--device", "mlx5-lag", "--wire", "roce", SERVER,
                         f"b:{FIRST.replace('-C 1', '-C 100')} >&2; {seen}; "
                         f"{build}/tools/purecm stat --json; echo .")
    rows = rows_of(done.stdout)[0]
    line = next((line for line in done.stdout.splitlines() if line.startswith("seen ")), "nothing")
    _, function, ports, above, *counts = line.split()
    if (function, ports, above) != ("fab0s1", "1", "fab0"):
        raise AssertionError(f"the device's interface, its ports, and its GIDs' interface: {line}")
    if count(rows, "fast-peers") != 1:
        raise AssertionError(f"MADs do not leave by the fast path: {rows}")
    number = dict(zip(names, map(int, counts)))
    if number["fab0s1/tx"] < 100 or number["fab0s2/rx"] < 100 or number["fab0s2/tx"] > 10:
        raise AssertionError(f"packets of the interfaces: {number}")


def where_infiniband_requires_a_grh_connections_are_made(build):
    done = run_on_fabric(build, LIMIT_S, "--link", "ib", "--quirk", "grh-required", SERVER,
                         "a&:udaddy >/dev/null", f"b:{{ {FIRST}; }} && udaddy -s 10.77.0.1")
    if done.returncode:
        raise AssertionError(f"status {done.returncode}: {done.stdout[-600:]}{done.stderr[-600:]}")


def options_said(build, *options):
    """Have b connect to a. Return (vendor, options) of the REQ and of the REP."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/said.pcap"
        done = run_on_fabric(build, LIMIT_S, "--pcap", path, *options, SERVER,
                             f"b:{{ {FIRST}; }} >&2")
        if done.returncode:
            raise AssertionError(f"status {done.returncode}: {done.stderr[-600:]}")
        shown = subprocess.run([build / "tools/purecm", "trace", "--json", "-r", path], check=True,
                               stdout=subprocess.PIPE, text=True).stdout
    rows = {row["message"]: row for row in map(json.loads, shown.splitlines())}
    return [(rows[name]["fields"]["vendor_id"], rows[name]["mad"]["attr_mod"])
            for name in ("REQ", "REP")]


def connections_agree_on_options_of_the_vendor(build):
    """A REP has the vendor of the REQ: with none its options have no meaning."""
    for options, wanted in ((("--quirk", "ece"), [ALL_OPTIONS, ALL_OPTIONS]),
                            (("--quirk", "a:ece"), [NO_OPTIONS, (0, 7)]),
                            (("--quirk", "b:ece"), [ALL_OPTIONS, (VENDOR, 0)]),
                            ((), [NO_OPTIONS, NO_OPTIONS])):
        said = options_said(build, *options)
        assert said == wanted, (options, said)


TESTS = (
    connections_agree_on_options_of_the_vendor,
    a_device_of_a_bond_has_connections_by_both_of_its_interfaces,
    where_infiniband_requires_a_grh_connections_are_made,
    a_device_that_is_renamed_stays_the_same,
    a_device_that_was_reset_has_connections_again,
    a_server_on_all_addresses_outlives_its_driver,
    a_write_to_umad_that_blocks_holds_up_nobody_else,
    on_a_device_without_connection_manager_calls_say_that_there_is_none,
    programs_run_on_each_device,
    a_device_that_nobody_uses_is_closed_and_opened_again,
    of_a_device_that_nobody_uses_no_descriptor_stays_open,
    where_commands_take_their_time_connections_are_made,
    where_qp1_hears_qp1_only_not_even_the_first_connection_waits,
    without_a_quirk_messages_leave_by_the_fast_path,
    each_host_sends_one_probe_in_its_first_connection_and_none_later,
    the_doctor_says_what_became_of_the_fast_path,
    where_qp1_hears_qp1_only_a_refusal_arrives_at_once,
    where_qp1_hears_qp1_only_who_never_asks_is_heard,
    where_one_of_two_hosts_has_that_quirk_nobody_waits_either,
    without_cmportd_nothing_is_lost_for_good_either,
    where_completions_have_service_levels_nothing_is_repeated,
)

if __name__ == "__main__":
    sys.exit(main(__doc__, TESTS))
