#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The counters of ports: what Debian's perfquery and ibqueryerrors say of them on an InfiniBand
fabric, what /sys shows, and whether tshark reads the answers as they were meant.

Prints what failed, then "N passed, N failed, N skipped".
"""
import json
from pathlib import Path
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import hosts

FABRIC = f"{hosts.FABRIC} {{}} --dir $PURECM_FABRIC/../.. {{}}; "
SWITCH = 0xbe00
HEADERS_WORDS = 7  # LRH, BTH and ICRC
SENDS = 1000  # of ibv_rc_pingpong, each way
SEND_WORDS = HEADERS_WORDS - 1 + 4096 // 4
MAD_WORDS = HEADERS_WORDS - 1 + (8 + 256) // 4
LIMIT_S = 60
DUMP = re.compile(r"^rcv buf\n((?:[0-9a-f]{4}[ \n]+)+)", re.M)


def said(build, *words):
    done = hosts.run_on_fabric(build, LIMIT_S, "--link", "ib", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def counters(text):
    """Return what each perfquery in a text has printed, as {counter: value}."""
    return [{name: int(value) for name, value in re.findall(r"^(\w+):\.+(\d+)$", part, re.M)}
            for part in text.split("# Port ")[1:]]


def pingpong(build, after, *options, n=SENDS):
    """Have a and b exchange messages, and then a run a command. Return: what it says.

    If the last packets are lost, one end fails because the other has ended."""
    run = f"ibv_rc_pingpong -n {n} {{}} >$PURECM_FABRIC/log 2>&1"
    wait = "until test -e $PURECM_FABRIC/../{}/ended; do sleep 0.1; done; "
    done = "touch $PURECM_FABRIC/ended; "
    over = "$PURECM_FABRIC/../a/over"
    return said(build, *options,
                f"a:{run.format('')}; touch {over}; {wait.format('b')}{after}; {done}",
                f"b:until {run.format('10.77.0.1')} || test -e {over}; do sleep 0.1; done; "
                f"{done}{wait.format('a')}")


def a_port_and_the_switch_count_the_same_packets(build):
    """Besides the messages there are acknowledgements, a packet or two of MADs, and on a busy
    machine a few messages that are sent again."""
    ca, switch = counters(pingpong(build, f"perfquery -x 2 1; perfquery -x {SWITCH} 2"))
    for name in ("Xmit", "Rcv"):
        other = {"Xmit": "Rcv", "Rcv": "Xmit"}[name]
        assert SENDS <= ca[f"Port{name}Pkts"] <= 2 * SENDS + 10, ca
        assert SENDS * SEND_WORDS <= ca[f"Port{name}Data"] < (SENDS + 10) * (SEND_WORDS + 10), ca
        assert abs(switch[f"Port{other}Pkts"] - ca[f"Port{name}Pkts"]) <= 2, (ca, switch)
        assert ca[f"PortMulticast{name}Pkts"] == 0, ca


def a_reset_is_of_one_attribute(build):
    """Since then a port has answered two and three requests."""
    basic, extended = counters(pingpong(build, "perfquery -R 2 1; perfquery 2 1; perfquery -x 2 1"))
    assert basic["PortXmitPkts"] == 2, basic
    assert extended["PortXmitPkts"] > SENDS, extended


def a_lost_packet_is_an_error_of_the_switch_port(build):
    text = pingpong(build, f"ibqueryerrors; perfquery {SWITCH} 2", "--faults",
                    "data:loss=0.05 seed=3", n=SENDS // 10)
    errors = [int(found) for found in re.findall(
        r"^ +GUID 0x50430000ff0000 port 2: \[PortRcvErrors == (\d+)\]", text, re.M)]
    assert len(errors) == 1 and 0 < errors[0] < 50, text
    assert counters(text)[0]["PortRcvErrors"] == errors[0], text
    assert "50430000000200 port" not in text, text


def a_link_that_went_down_is_counted(build):
    """An order is carried out some time after it was given."""
    wait = "until ibv_devinfo | grep -q {}; do sleep 0.02; done; "
    link = counters(said(
        build, f"b:{FABRIC.format('port', 'b down')}{wait.format('PORT_DOWN')}"
        f"{FABRIC.format('port', 'b up')}{wait.format('PORT_ACTIVE')}"
        f"perfquery 2 1; perfquery {SWITCH} 2"))
    assert [port["LinkDownedCounter"] for port in link] == [1, 1], link


def packets_to_a_group_are_multicast(build):
    member, sender = counters(said(
        build, "a:mckey -m 239.1.1.1 -b 10.77.0.1 -C 7 >$PURECM_FABRIC/log && perfquery -x 1 1 && "
        "perfquery -x 2 1 && touch $PURECM_FABRIC/ended",
        "b:mckey -m 239.1.1.1 -s -b 10.77.0.2 -C 7 >$PURECM_FABRIC/log; "
        "until test -e $PURECM_FABRIC/../a/ended; do sleep 0.1; done"))
    assert member["PortMulticastRcvPkts"] == sender["PortMulticastXmitPkts"] == 7, (member, sender)
    assert member["PortMulticastXmitPkts"] == 0 < sender["PortUnicastXmitPkts"], (member, sender)


def sys_shows_what_perfquery_says(build):
    """It follows twice a second. A question to the own port is not on the wire, one to b is
    answered twice: what the class can, and the counters."""
    folder = "/sys/class/infiniband/fab0/ports/1/counters"
    text = pingpong(build, "perfquery -R -x 1 1; perfquery -x 2 1 >$PURECM_FABRIC/log; "
                    f"cd {folder}; ls; until test $(cat port_rcv_packets) = 2; do sleep 0.1; done; "
                    "cat port_rcv_data")
    *names, words = text.split()
    assert len(names) == 21 and {"symbol_error", "link_downed", "VL15_dropped"} <= set(names), names
    assert int(words) == 2 * MAD_WORDS, text


def sys_counts_on_roce(build):
    path = "/sys/class/infiniband/fab0/ports/1/counters/port_xmit_data"
    done = hosts.run_on_fabric(
        build, LIMIT_S, f"a:ibv_rc_pingpong -g 1 >$PURECM_FABRIC/log; until test $(cat {path}) -gt "
        f"{SENDS * SEND_WORDS}; do sleep 0.1; done",
        "b:until ibv_rc_pingpong -g 1 10.77.0.1 >$PURECM_FABRIC/log 2>&1; do sleep 0.1; done")
    assert done.returncode == 0, done.stdout + done.stderr


def writes_without_packets_are_counted_at_both_ends(build):
    """Of the thousand each way, all but the first ones need none (docs/fabric.md)."""
    folder = "/sys/class/infiniband/fab0/ports/1/counters"
    counted = "".join(f"until test $(cat {folder}/port_{name}_packets) -ge {SENDS}; do sleep 0.1; "
                      "done; " for name in ("xmit", "rcv"))
    run = f"ib_write_lat -n {SENDS} -s 8 {{}} >$PURECM_FABRIC/log 2>&1"
    done = hosts.run_on_fabric(
        build, LIMIT_S, f"a:{run.format('')}; {counted}",
        f"b:until {run.format('10.77.0.1')}; do sleep 0.1; done; {counted}")
    assert done.returncode == 0, done.stdout + done.stderr


def capture_of(mads):
    """A capture file of MADs, each as a datagram to QP1 over RoCE v2."""
    data = struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1)
    for mad in mads:
        bth = struct.pack(">BBHII", 100, 0, 0xffff, 1, 0)
        payload = bth + struct.pack(">II", 0x80010000, 1) + mad + bytes(4)
        udp = struct.pack(">HHHH", 49152, 4791, 8 + len(payload), 0) + payload
        packet = (bytes(12) + b"\x08\0" + struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0,
                                                     64, 17, 0, bytes([10, 0, 0, 1]),
                                                     bytes([10, 0, 0, 2])) + udp)
        data += struct.pack("<IIII", 0, 0, len(packet), len(packet)) + packet
    return data


def counters_of_tshark(packet):
    """Those of one packet, or {}."""
    def walk(layer):
        for name, value in layer.items():
            if isinstance(value, dict):
                yield from walk(value)
            elif name.startswith("infiniband.portcounters"):
                yield name, value
    return dict(walk(packet["_source"]["layers"]))


def tshark_reads_what_perfquery_reads(build):
    """Of the two attributes; before each, perfquery asks what the class can."""
    done = hosts.run_on_fabric(
        build, LIMIT_S, "--link", "ib", "a:perfquery -ddd 2 1 2>&1; perfquery -ddd -x 2 1 2>&1")
    assert done.returncode == 0, done.stdout
    mads = [bytes.fromhex(re.sub(r"\s", "", dump)) for dump in DUMP.findall(done.stdout)]
    assert len(mads) == 4 and {len(mad) for mad in mads} == {256}, done.stdout
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mads.pcap")
        path.write_bytes(capture_of(mads))
        shown = subprocess.run(["tshark", "-r", path, "-T", "json"], capture_output=True, text=True,
                               check=True).stdout
    read = [{name.rpartition(".")[2]: value for name, value in values.items()}
            for values in map(counters_of_tshark, json.loads(shown)) if values]
    assert "_ws.malformed" not in shown and len(read) == 2, shown
    for ours, theirs in zip(counters(done.stdout), read):
        both = {name: value for name, value in ours.items() if name.lower() in theirs}
        assert len(both) >= 9, (ours, theirs)
        assert both == {name: int(theirs[name.lower()], 0) for name in both}, (ours, theirs)
        assert ours["PortXmitPkts"], ours


TESTS = (a_port_and_the_switch_count_the_same_packets, a_reset_is_of_one_attribute,
         a_lost_packet_is_an_error_of_the_switch_port, a_link_that_went_down_is_counted,
         packets_to_a_group_are_multicast, sys_shows_what_perfquery_says, sys_counts_on_roce,
         writes_without_packets_are_counted_at_both_ends, tshark_reads_what_perfquery_reads)

if __name__ == "__main__":
    missing = [name for name in ("perfquery", "ibqueryerrors", "ibv_rc_pingpong", "ib_write_lat",
                                "tshark")
               if not shutil.which(name)]
    if missing:
        print(f"missing: {', '.join(missing)}\n0 passed, 0 failed, {len(TESTS)} skipped")
        sys.exit(hosts.SKIPPED)
    sys.exit(hosts.main(__doc__, TESTS))
