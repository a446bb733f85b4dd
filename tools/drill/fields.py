# SPDX-License-Identifier: BSD-2-Clause
"""Fields of messages by name, from the rows that the program link prints.

In addition to the rows of a message, `mad.NAME` are the rows of the common header, `ip.NAME` those
of the header that the RDMA IP CM puts in front of private data, `user_data` is the data after it,
and `byte.N` any byte of the MAD.
"""
import json
import subprocess

MAD_BYTES, HEADER_BYTES, IP_BYTES = 256, 24, 36
FIRST_ATTR = 0x10  # of REQ; the others follow in the order of MESSAGES
HEADER = {"base_version": 1, "mgmt_class": 7, "class_version": 2, "method": 3}
WITH_IP = ("REQ", "SIDR_REQ")

IDS = "local_comm_id=$ours remote_comm_id=$theirs"
IP_HEADER = ("ip.ip_version=$ip_version ip.src_port=$our_port ip.src_addr=$our_ip "
             "ip.dst_addr=$their_ip")
# What each message is sent with, in the syntax of scripts.
DEFAULTS = {
    "REQ": "local_comm_id=$ours service_id=$tcp_service local_ca_guid=$our_guid "
           "local_qpn=$our_qpn responder_resources=1 initiator_depth=1 "
           "remote_cm_response_timeout=20 starting_psn=$our_psn local_cm_response_timeout=20 "
           "retry_count=7 pkey=0xffff path_mtu=3 rnr_retry_count=7 max_cm_retries=15 "
           "primary.local_lid=$lid primary.remote_lid=$lid primary.local_gid=$here "
           "primary.remote_gid=$there primary.hop_limit=$hop_limit "
           f"primary.subnet_local=$subnet_local primary.local_ack_timeout=19 {IP_HEADER}",
    "MRA": f"{IDS} message=0 service_timeout=20",
    "REJ": f"{IDS} message=0 reason=28",
    "REP": f"{IDS} local_qpn=$our_qpn starting_psn=$our_psn responder_resources=1 "
           "initiator_depth=1 target_ack_delay=15 rnr_retry_count=7 local_ca_guid=$our_guid",
    "RTU": IDS,
    "DREQ": f"{IDS} remote_qpn=$their_qpn",
    "DREP": IDS,
    "SIDR_REQ": f"request_id=$ours pkey=0xffff service_id=$udp_service {IP_HEADER}",
    "SIDR_REP": "request_id=$theirs status=0 qpn=$our_qpn service_id=$udp_service "
                "qkey=0x1234567",
    "LAP": f"{IDS} remote_qpn=$their_qpn remote_cm_response_timeout=20",
    "APR": IDS,
}
MESSAGES = tuple(DEFAULTS)


class Field:
    """Bits of a MAD: a number, of one or more parts (first bit, width, shift), or whole bytes."""

    def __init__(self, rows, at, order):
        """Rows as link prints them, from a byte on; fields of a higher order are set later."""
        self.parts = [(8 * (at + byte) + bit, width, shift)
                      for _, byte, bit, width, shift, _ in rows]
        self.n_bytes = rows[0][3] // 8 if rows[0][5] else 0
        self.bits = 0 if self.n_bytes else sum(width for _, width, _ in self.parts)
        self.order = order

    def put(self, mad, value):
        """Set it in a MAD, a bytearray, to a number or to bytes, which are padded with zeros."""
        if self.n_bytes:
            at = self.parts[0][0] // 8
            mad[at:at + self.n_bytes] = value.ljust(self.n_bytes, b"\0")
            return
        bits = int.from_bytes(mad, "big")
        for first, width, shift in self.parts:
            low = 8 * MAD_BYTES - first - width
            mask = (1 << width) - 1
            bits = bits & ~(mask << low) | (value >> shift & mask) << low
        mad[:] = bits.to_bytes(MAD_BYTES, "big")

    def get(self, mad):
        """Return the number or the bytes in a MAD."""
        if self.n_bytes:
            at = self.parts[0][0] // 8
            return bytes(mad[at:at + self.n_bytes])
        bits = int.from_bytes(mad, "big")
        return sum((bits >> (8 * MAD_BYTES - first - width) & (1 << width) - 1) << shift
                   for first, width, shift in self.parts)


class Fields:
    """The fields of all messages."""

    def __init__(self, link):
        """From what this program prints."""
        self.rows = json.loads(subprocess.run([link, "--rows"], stdout=subprocess.PIPE,
                                              check=True).stdout)

    def names(self, message):
        """Yield the names of its fields, without those that stand for many."""
        yield from dict.fromkeys(row[0] for row in self.rows[message])
        if message in WITH_IP:
            yield "user_data"
            yield from (f"ip.{row[0]}" for row in self.rows["ip"])
        yield from (f"mad.{row[0]}" for row in self.rows["mad"])

    def _named(self, layout, name, at, order):
        rows = [row for row in self.rows[layout] if row[0] == name]
        return Field(rows, at, order) if rows else None

    def find(self, message, name):
        """Return a field, or None."""
        kind, _, rest = name.partition(".")
        if kind == "mad":
            return self._named("mad", rest, 0, 2)
        if kind == "byte":
            is_one = rest.isdecimal() and int(rest) < MAD_BYTES
            return Field([("", int(rest), 0, 8, 0, False)], 0, 2) if is_one else None
        private = next((row[1] for row in self.rows[message] if row[0] == "private_data"), 0)
        if message in WITH_IP and kind == "ip":
            return self._named("ip", rest, HEADER_BYTES + private, 1)
        if message in WITH_IP and name == "user_data":
            size = next(row[3] for row in self.rows[message] if row[0] == "private_data")
            return Field([("", private + IP_BYTES, 0, size - 8 * IP_BYTES, 0, True)],
                         HEADER_BYTES, 2)
        return self._named(message, name, HEADER_BYTES, 0)

    def header(self, message, tid):
        """Return a MAD, a bytearray, of which only the header is set."""
        mad = bytearray(MAD_BYTES)
        for name, value in {**HEADER, "tid": tid,
                            "attr_id": FIRST_ATTR + MESSAGES.index(message)}.items():
            self.find(message, f"mad.{name}").put(mad, value)
        return mad

    def message_of(self, mad):
        """Return the name of the message in a MAD; None if it is none of the CM class."""
        of_mad = {name: self.find("REQ", f"mad.{name}").get(mad) for name in (*HEADER, "attr_id")}
        attr = of_mad.pop("attr_id") - FIRST_ATTR
        return MESSAGES[attr] if of_mad == HEADER and 0 <= attr < len(MESSAGES) else None
