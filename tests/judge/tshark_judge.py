#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Lets tshark, who knows nothing of our rows, read random messages that they encoded.

The generator writes a capture file and says what it put into every field; tshark decodes the file,
and the two are compared field by field. Fails on the first seed that disagrees, or when a field
that tshark knows was never compared.
"""
import argparse
import collections
import ipaddress
import json
import shlex
import shutil
import subprocess
import sys
import tempfile

MAD_FIELDS = {
    "mad.base_version": "mad.baseversion",
    "mad.mgmt_class": "mad.mgmtclass",
    "mad.class_version": "mad.classversion",
    "mad.method": "mad.method",
    "mad.status": "mad.status",
    "mad.class_specific": "mad.classspecific",
    "mad.tid": "mad.transactionid",
    "mad.attr_id": "mad.attributeid",
    "mad.attr_mod": "mad.attributemodifier",
}

CMA_FIELDS = {
    "cma.ip_version": "cm.req.ip_cm.ipv",
    "cma.src_port": "cm.req.ip_cm.sport",
    "cma.src_addr": ("cm.req.ip_cm.sip4", "cm.req.ip_cm.sip6"),
    "cma.dst_addr": ("cm.req.ip_cm.dip4", "cm.req.ip_cm.dip6"),
}

SA_FIELDS = {
    "sa.sm_key": "sa.smkey",
    "sa.attr_offset": "sa.attributeoffset",
    "sa.comp_mask": "sa.componentmask",
}

# Our name -> tshark's, without "infiniband."; where tshark has two, it shows one of them.
FIELDS = {
    "REQ": {
        "local_comm_id": "cm.req",
        "service_id": "cm.req.serviceid",
        "local_ca_guid": "cm.req.localcaguid",
        "local_qkey": "cm.req.localqkey",
        "local_qpn": "cm.req.localqpn",
        "responder_resources": "cm.req.responderres",
        "local_eecn": "cm.req.localeecn",
        "initiator_depth": "cm.req.initdepth",
        "remote_eecn": "cm.req.remoteeecn",
        "remote_cm_response_timeout": "cm.req.remoteresptout",
        "transport_service_type": "cm.req.transpsvctype",
        "flow_control": "cm.req.e2eflowctrl",
        "starting_psn": "cm.req.startpsn",
        "local_cm_response_timeout": "cm.req.localresptout",
        "retry_count": "cm.req.retrcount",
        "pkey": "cm.req.pkey",
        "path_mtu": "cm.req.pppmtu",
        "rdc_exists": "cm.req.rdcexist",
        "rnr_retry_count": "cm.req.rnrretrcount",
        "max_cm_retries": "cm.req.maxcmretr",
        "srq": "cm.req.srq",
        "extended_transport_type": "cm.req.ext_transport",
        "primary.local_lid": "cm.req.prim_locallid",
        "primary.remote_lid": "cm.req.prim_remotelid",
        "primary.local_gid": ("cm.req.prim_localgid_ipv4", "cm.req.prim_localgid"),
        "primary.remote_gid": ("cm.req.prim_remotegid_ipv4", "cm.req.prim_remotegid"),
        "primary.flow_label": "cm.req.prim_flowlabel",
        "primary.traffic_class": "cm.req.prim_tfcclass",
        "primary.hop_limit": "cm.req.prim_hoplim",
        "primary.sl": "cm.req.prim_sl",
        "primary.subnet_local": "cm.req.prim_subnetlocal",
        "primary.local_ack_timeout": "cm.req.prim_localacktout",
        "alternate.local_lid": "cm.req.alt_locallid",
        "alternate.remote_lid": "cm.req.alt_remotelid",
        "alternate.local_gid": "cm.req.alt_localgid",
        "alternate.remote_gid": "cm.req.alt_remotegid",
        "alternate.flow_label": "cm.req.alt_flowlabel",
        "alternate.traffic_class": "cm.req.alt_tfcclass",
        "alternate.hop_limit": "cm.req.alt_hoplim",
        "alternate.sl": "cm.req.alt_sl",
        "alternate.subnet_local": "cm.req.alt_subnetlocal",
        "alternate.local_ack_timeout": "cm.req.alt_localacktout",
        "private_data": ("cm.req.private", "cm.req.ip_cm"),
    },
    "REP": {
        "local_comm_id": "cm.rep",
        "remote_comm_id": "cm.rep.remotecommid",
        "local_qkey": "cm.rep.localqkey",
        "local_qpn": "cm.rep.localqpn",
        "local_eecn": "cm.rep.localeecn",
        "starting_psn": "cm.rep.startpsn",
        "responder_resources": "cm.rep.respres",
        "initiator_depth": "cm.rep.initdepth",
        "target_ack_delay": "cm.rep.tgtackdelay",
        "failover_accepted": "cm.rep.failoveracc",
        "flow_control": "cm.rep.e2eflowctrl",
        "rnr_retry_count": "cm.rep.rnrretrcount",
        "srq": "cm.rep.srq",
        "local_ca_guid": "cm.rep.localcaguid",
        "private_data": "cm.rep.private",
    },
    "RTU": {
        "local_comm_id": "cm.rtu.localcommid",
        "remote_comm_id": "cm.rtu.remotecommid",
        "private_data": "cm.rtu.private",
    },
    "REJ": {
        "local_comm_id": "cm.rej.localcommid",
        "remote_comm_id": "cm.rej.remotecommid",
        "message": "cm.rej.msgrej",
        "ari_bytes": "cm.rej.rejinfolen",
        "reason": "cm.rej.reason",
        "ari": "cm.rej.ari",
        "private_data": "cm.rej.private",
    },
    "DREQ": {
        "local_comm_id": "cm.dreq.localcommid",
        "remote_comm_id": "cm.dreq.remotecommid",
        "remote_qpn": "cm.req.remoteqpneecn",
        "private_data": "cm.dreq.private",
    },
    "DREP": {
        "local_comm_id": "cm.drsp.localcommid",
        "remote_comm_id": "cm.drsp.remotecommid",
        "private_data": "cm.drsp.private",
    },
    "PathRecord": {
        "dgid": "pathrecord.dgid",
        "sgid": "pathrecord.sgid",
        "dlid": "pathrecord.dlid",
        "slid": "pathrecord.slid",
        "raw_traffic": "pathrecord.rawtraffic",
        "flow_label": "pathrecord.flowlabel",
        "hop_limit": "pathrecord.hoplimit",
        "traffic_class": "pathrecord.tclass",
        "reversible": "pathrecord.reversible",
        "numb_path": "pathrecord.numbpath",
        "pkey": "pathrecord.p_key",
        "sl": "pathrecord.sl",
        "mtu_selector": "pathrecord.mtuselector",
        "mtu": "pathrecord.mtu",
        "rate_selector": "pathrecord.rateselector",
        "rate": "pathrecord.rate",
        "packet_life_time_selector": "pathrecord.packetlifetimeselector",
        "packet_life_time": "pathrecord.packetlifetime",
        "preference": "pathrecord.preference",
    },
    "MCMemberRecord": {
        "mgid": "mcmemberrecord.mgid",
        "port_gid": "mcmemberrecord.portgid",
        "qkey": "mcmemberrecord.q_key",
        "mlid": "mcmemberrecord.mlid",
        "mtu_selector": "mcmemberrecord.mtuselector",
        "mtu": "mcmemberrecord.mtu",
        "traffic_class": "mcmemberrecord.tclass",
        "pkey": "mcmemberrecord.p_key",
        "rate_selector": "mcmemberrecord.rateselector",
        "rate": "mcmemberrecord.rate",
        "packet_life_time_selector": "mcmemberrecord.packetlifetimeselector",
        "packet_life_time": "mcmemberrecord.packetlifetime",
        "sl": "mcmemberrecord.sl",
        "flow_label": "mcmemberrecord.flowlabel",
        "hop_limit": "mcmemberrecord.hoplimit",
        "scope": "mcmemberrecord.scope",
        "join_state": "mcmemberrecord.joinstate",
        "proxy_join": "mcmemberrecord.proxyjoin",
    },
}
SA_RECORDS = ("PathRecord", "MCMemberRecord")

# tshark 4.0 shows the first 12 of a flow label's 20 bits, and takes the packet rate, six bits at
# the end of the same word, from its beginning: the one is compared as far as it goes, the other
# not.
FLOW_LABEL_BITS_LOST = 8
TSHARK_ERRORS = ("primary.packet_rate", "alternate.packet_rate")


class Disagreement(Exception):
    pass


def fail(text):
    sys.exit("tshark_judge: " + text)


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        fail("%s failed with status %d:\n%s" % (command[0], done.returncode, done.stderr))
    return done.stdout


def flatten(layer, out):
    for name, value in layer.items():
        if isinstance(value, dict):
            flatten(value, out)
        elif isinstance(value, str):
            out[name.removeprefix("infiniband.")] = value
    return out


def packets_of_tshark(tshark, capture):
    packets = json.loads(run([tshark, "-r", capture, "-T", "json"]))
    return [flatten(packet["_source"]["layers"].get("infiniband", {}), {}) for packet in packets]


def messages_of_generator(text):
    for line in text.splitlines():
        name, *fields = line.split()
        yield name, dict(field.split("=") for field in fields)


def same_bytes(ours, theirs):
    """Addresses may be shown as such, and by their IPv4 part only."""
    if "." in theirs and ":" not in theirs:
        return bytes.fromhex(ours)[12:] == ipaddress.IPv4Address(theirs).packed
    digits = theirs.replace(":", "")
    if len(digits) == len(ours) and theirs.count(":") != 7:
        return digits == ours
    return bytes.fromhex(ours) == ipaddress.IPv6Address(theirs).packed


def same(name, ours, theirs):
    if name.endswith("flow_label"):
        return int(theirs, 0) in (int(ours), int(ours) >> FLOW_LABEL_BITS_LOST)
    if name.endswith(("gid", "_addr", "ari", "private_data")):
        return same_bytes(ours, theirs)
    return int(ours) == int(theirs, 0)


def table_of(message):
    return MAD_FIELDS | FIELDS.get(message, {}) | CMA_FIELDS | SA_FIELDS


def compare(number, message, ours, theirs, judged):
    table = table_of(message)
    for name, value in ours.items():
        known = table.get(name, ())
        for field in (known,) if isinstance(known, str) else known:
            if field not in theirs:
                continue
            if not same(name, value, theirs[field]):
                raise Disagreement("packet %d, %s.%s: we wrote %s, tshark reads %s in %s" %
                                   (number, message, name, value, theirs[field], field))
            judged[message, name, field] += 1


def expected_judgements():
    for message, table in FIELDS.items():
        extra = CMA_FIELDS if message == "REQ" else SA_FIELDS if message in SA_RECORDS else {}
        for name, known in (MAD_FIELDS | table | extra).items():
            for field in (known,) if isinstance(known, str) else known:
                yield message, name, field


def report(judged, unknown, count):
    never = [key for key in expected_judgements() if not judged[key]]
    print("%d messages, %d comparisons of %d fields" % (count, sum(judged.values()), len(judged)))
    for message, names in sorted(unknown.items()):
        print("not known to tshark: %s: %s" % (message, ", ".join(sorted(names))))
    if never:
        fail("tshark knows these fields but never showed them:\n  " +
             "\n  ".join("%s.%s (%s)" % key for key in never))


def judge(tshark, generator, seed, count):
    judged, unknown = collections.Counter(), collections.defaultdict(set)
    with tempfile.TemporaryDirectory() as folder:
        capture = folder + "/random.pcap"
        said = run([*shlex.split(generator), capture, str(seed), str(count), "sa"])
        messages = list(messages_of_generator(said))
        packets = packets_of_tshark(tshark, capture)
    if len(packets) != len(messages):
        fail("%d messages written, but tshark reads %d packets" % (len(messages), len(packets)))
    for number, ((message, ours), theirs) in enumerate(zip(messages, packets), 1):
        compare(number, message, ours, theirs, judged)
        table = table_of(message)
        unknown[message] |= {name for name in ours if name not in table}
    report(judged, unknown, len(messages))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("generator", help="the random_pcap program, or words that run it")
    parser.add_argument("--tshark", default="tshark")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=660)
    args = parser.parse_args()
    if not shutil.which(args.tshark):
        fail("%s is not installed; apt-get install tshark" % args.tshark)
    try:
        judge(args.tshark, args.generator, args.seed, args.count)
    except Disagreement as disagreement:
        fail("seed %d, %s" % (args.seed, disagreement))


if __name__ == "__main__":
    main()
