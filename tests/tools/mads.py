# SPDX-License-Identifier: BSD-2-Clause
"""CM messages, packets and captures made by hand: what no well-behaved host says.

Offsets are those of the MAD (IBTA vol. 1, chapter 12, plus 24 for the MAD header), written down
here a second time, apart from the rows of mad/.
"""
import ipaddress
import struct

ATTRS = {"REQ": 0x10, "MRA": 0x11, "REJ": 0x12, "REP": 0x13, "RTU": 0x14, "DREQ": 0x15,
         "DREP": 0x16, "SIDR_REQ": 0x17, "SIDR_REP": 0x18, "LAP": 0x19, "APR": 0x1a}
TCP = 0x01060000
ETHERNET, RAW_IP, SLL, ERF, INFINIBAND, SLL2 = 1, 101, 113, 197, 247, 276

A, B = "10.0.0.1", "10.0.0.2"


def gid(address):
    """Return the 16 bytes of an address as RoCE v2 has them."""
    ip = ipaddress.ip_address(address)
    return ip.packed if ip.version == 6 else bytes(10) + b"\xff\xff" + ip.packed


def mad(name, **parts):
    """Return a MAD; parts: b with an offset as bytes, as in b24=..., put where they say."""
    made = bytearray(256)
    struct.pack_into("!BBBBHHQH", made, 0, 1, 7, 2, 3, 0, 0, 1, ATTRS[name])
    for where, value in parts.items():
        at = int(where[1:])
        made[at:at + len(value)] = value
    return bytes(made)


def u32(value):
    return value.to_bytes(4, "big")


def u24(value):
    return value.to_bytes(3, "big")


def cma(src, dst, port=40000):
    """Return an IP CM header."""
    src, dst = ipaddress.ip_address(src), ipaddress.ip_address(dst)
    return (bytes([0, src.version << 4]) + struct.pack("!H", port) +
            src.packed.rjust(16, b"\0") + dst.packed.rjust(16, b"\0"))


def req(comm_id=0x100, qpn=0x11, port=7000, src=A, dst=B, psn=0x123, pkey=0xffff, mtu=3,
        header=None, local_gid=None, remote_gid=None):
    """Return a REQ as rdma_connect() sends it."""
    return mad("REQ", b24=u32(comm_id), b32=(TCP + port).to_bytes(8, "big"),
               b40=(0xaa00).to_bytes(8, "big"), b56=u24(qpn), b59=b"\1", b63=b"\1",
               b67=bytes([20 << 3]), b68=u24(psn), b71=bytes([20 << 3 | 7]),
               b72=pkey.to_bytes(2, "big"), b74=bytes([mtu << 4 | 7]), b75=bytes([15 << 4]),
               b76=b"\xff\xff\xff\xff", b80=gid(local_gid or src), b96=gid(remote_gid or dst),
               b117=b"\x40", b119=bytes([19 << 3]),
               b164=cma(src, dst) if header is None else header)


def rep(comm_id=0x200, remote=0x100, qpn=0x22):
    return mad("REP", b24=u32(comm_id), b28=u32(remote), b36=u24(qpn), b44=u24(0x456), b48=b"\1",
               b49=b"\1", b50=bytes([15 << 3]), b51=bytes([7 << 5]),
               b52=(0xbb00).to_bytes(8, "big"))


def ids(name, local=0x100, remote=0x200, **parts):
    """Return one of the messages that begin with two comm ids: RTU, DREP and so on."""
    return mad(name, b24=u32(local), b28=u32(remote), **parts)


def rej(reason, local=0, remote=0x100, answered=0, ari=b"", data=b""):
    return ids("REJ", local, remote, b32=bytes([answered << 6]), b33=bytes([len(ari) << 1]),
               b34=reason.to_bytes(2, "big"), b36=ari, b108=data)


def mra(local=0x200, remote=0x100, answered=0, timeout=24):
    return ids("MRA", local, remote, b32=bytes([answered << 6]), b33=bytes([timeout << 3]))


def dreq(local=0x100, remote=0x200, qpn=0x22):
    return ids("DREQ", local, remote, b32=u24(qpn))


def probe(request=0x300):
    """A peer of purecm's asks whether its fast path arrives."""
    return mad("SIDR_REQ", b24=u32(request), b28=b"\xff\xff", b32=b"\2purecm\0")


def sidr_req(request=0x300, port=7000, src=A, dst=B):
    return mad("SIDR_REQ", b24=u32(request), b28=b"\xff\xff",
               b32=(0x01110000 + port).to_bytes(8, "big"), b40=cma(src, dst))


def sidr_rep(request=0x300, status=0, port=7000):
    return mad("SIDR_REP", b24=u32(request), b28=bytes([status]), b32=u24(0x33),
               b36=(0x01110000 + port).to_bytes(8, "big"), b44=u32(0x1234567))


# --- packets ----------------------------------------------------------------

def bth(payload, src_qpn=1, dst_qpn=1, opcode=0x64, qkey=0x80010000):
    """Return BTH, DETH, payload and an invariant CRC of zero."""
    return (bytes([opcode, 0, 0xff, 0xff, 0]) + u24(dst_qpn) + bytes(4) +
            u32(qkey) + b"\0" + u24(src_qpn) + payload + bytes(4))


def udp(payload, port=4791):
    return struct.pack("!HHHH", 0xc000, port, 8 + len(payload), 0) + payload


def ip(src, dst, payload):
    """Return an IP packet of either version."""
    src, dst = ipaddress.ip_address(src), ipaddress.ip_address(dst)
    if src.version == 6:
        return (struct.pack("!IHBB", 6 << 28, len(payload), 17, 64) + src.packed + dst.packed +
                payload)
    return (struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0, 64, 17, 0) + src.packed +
            dst.packed + payload)


def ip_type(src):
    return b"\x86\xdd" if ":" in src else b"\x08\0"


def ethernet(src, dst, made, vlans=()):
    """Return a RoCE v2 frame."""
    tags = b"".join(b"\x81\0" + vlan.to_bytes(2, "big") for vlan in vlans)
    return bytes(12) + tags + ip_type(src) + ip(src, dst, udp(bth(made)))


def grh(src, dst, payload):
    return struct.pack("!IHBB", 6 << 28, len(payload), 27, 64) + gid(src) + gid(dst) + payload


def roce_v1(src, dst, made):
    return bytes(12) + b"\x89\x15" + grh(src, dst, bth(made))


def lrh(src_lid, dst_lid, payload, is_global=False):
    return struct.pack("!BBHHH", 0, 3 if is_global else 2, dst_lid, 74, src_lid) + payload


def erf(payload, kind, extensions=0, at_s=0):
    """Return an ERF record, of InfiniBand (21) or Ethernet (2), whose frame follows two bytes of
    padding; each extension header says whether another follows."""
    payload = bytes(2 if kind == 2 else 0) + payload
    more = [0x80 if n + 1 < extensions else 0 for n in range(extensions)]
    headers = b"".join(bytes([flag | 1]) + bytes(7) for flag in more)
    size = 16 + len(headers) + len(payload)
    return (struct.pack("<Q", int(at_s * 2**32)) + bytes([kind | (0x80 if extensions else 0), 4]) +
            struct.pack("!HHH", size, 0, len(payload)) + headers + payload)


def sll(src, dst, made):
    return bytes(14) + ip_type(src) + ip(src, dst, udp(bth(made)))


def sll2(src, dst, made):
    return ip_type(src) + bytes(18) + ip(src, dst, udp(bth(made)))


def pcap(packets, link=ETHERNET, first_s=1000):
    """Return a capture; packets: (seconds, frame)"""
    made = bytearray(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 262144, link))
    for seconds, frame in packets:
        us = round((first_s + seconds) * 1000000)
        made += struct.pack("<IIII", us // 1000000, us % 1000000, len(frame), len(frame)) + frame
    return bytes(made)


def block(kind, body):
    """Return a block of a pcapng file."""
    padded = body + bytes(-len(body) % 4)
    size = struct.pack("<I", 12 + len(padded))
    return struct.pack("<I", kind) + size + padded + size


def pcapng(packets):
    """Return a capture of several interfaces; packets: (link type, frame), a second apart"""
    links = list(dict(packets))
    made = block(0x0a0d0d0a, struct.pack("<IHHq", 0x1a2b3c4d, 1, 0, -1))
    made += b"".join(block(1, struct.pack("<HHI", link, 0, 262144)) for link in links)
    return made + b"".join(
        block(6, struct.pack("<IIIII", links.index(link), *divmod(n * 1000000, 1 << 32),
                             len(frame), len(frame)) + frame)
        for n, (link, frame) in enumerate(packets))


def story(*told, src=A, dst=B):
    """Return a capture of messages as RoCE v2; told: (seconds, ">" or "<", MAD)"""
    return pcap([(seconds, ethernet(*((src, dst) if way == ">" else (dst, src)), made))
                 for seconds, way, made in told])
