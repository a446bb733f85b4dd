/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The headers of datagram sockets: see dgram_wire.h.
 */
#include "lib/rsocket/dgram_wire.h"

#include <errno.h>
#include <string.h>

#define UDP_TAG 0x55555555

/* Members of both kinds of headers: see the fields. */
struct header {
	uint32_t tag;
	uint8_t version; /* 4 or 6 */
	uint8_t op;
	uint8_t bytes; /* size of the header */
	uint16_t port;
	uint32_t flowinfo;
	uint32_t qpn;
	union {
		uint8_t addr[16]; /* as in addr_pack() */
		struct {
			uint8_t zeros[12];
			uint8_t addr4[4];
		};
	};
};

#define UD_FIELDS \
	WIRE(header, version, 0, 0, 8), WIRE(header, bytes, 1, 0, 8), WIRE(header, port, 2, 0, 16)

static const struct wire_field ud4_fields[] = {
	UD_FIELDS,
	WIRE_BLOB(header, addr4, 4),
};

static const struct wire_field ud6_fields[] = {
	UD_FIELDS,
	WIRE_ID(header, flowinfo, 4, 0, 32),
	WIRE_ADDR(header, addr, 8),
};

#define UDP_FIELDS                                                                                 \
	WIRE_ID(header, tag, 0, 0, 32), WIRE(header, version, 4, 0, 8), WIRE(header, op, 5, 0, 8), \
		WIRE(header, bytes, 6, 0, 8), WIRE(header, qpn, 9, 0, 24)

static const struct wire_field udp4_fields[] = {
	UDP_FIELDS,
	WIRE_BLOB(header, addr4, 12),
};

static const struct wire_field udp6_fields[] = {
	UDP_FIELDS,
	WIRE_ADDR(header, addr, 12),
};

/* One for IPv4, one for IPv6. */
static const struct wire_layout ud_layouts[2] = {
	WIRE_LAYOUT("UD", header, ud4_fields, 8),
	WIRE_LAYOUT("UD", header, ud6_fields, DGRAM_UD_BYTES_MAX),
};

static const struct wire_layout udp_layouts[2] = {
	WIRE_LAYOUT("UDP", header, udp4_fields, 16),
	WIRE_LAYOUT("UDP", header, udp6_fields, DGRAM_UDP_BYTES_MAX),
};

/* Sets the members of the address. Return: the size of the header in bytes. */
static size_t encode_header(const struct wire_layout layouts[2], struct header header,
			    const union addr *addr, uint8_t *wire)
{
	bool is_v6 = addr->sa.sa_family == AF_INET6;
	size_t bytes = layouts[is_v6].wire_bytes;

	header.version = addr_pack(addr, header.addr);
	header.bytes = (uint8_t)bytes;
	header.flowinfo = is_v6 ? ntohl(addr->in6.sin6_flowinfo) : 0;
	memset(wire, 0, bytes);
	wire_encode(&layouts[is_v6], &header, wire);
	return bytes;
}

/* Return: the size of the header in bytes, or -EBADMSG. */
static ssize_t decode_header(const struct wire_layout layouts[2], const uint8_t *wire, size_t bytes,
			     struct header *ret)
{
	for (int is_v6 = 0; is_v6 < 2 && bytes >= layouts[is_v6].wire_bytes; is_v6++) {
		wire_decode(&layouts[is_v6], wire, ret);
		if (ret->version == (is_v6 ? 6 : 4) && ret->bytes == layouts[is_v6].wire_bytes)
			return ret->bytes;
	}
	return -EBADMSG;
}

static union addr header_addr(const struct header *header)
{
	union addr addr;

	addr_unpack(header->version, header->addr, header->port, 0, &addr);
	if (header->version == 6)
		addr.in6.sin6_flowinfo = htonl(header->flowinfo);
	return addr;
}

size_t dgram_ud_encode(const union addr *from, uint8_t *wire)
{
	return encode_header(ud_layouts, (struct header){ .port = addr_port(from) }, from, wire);
}

ssize_t dgram_ud_decode(const uint8_t *wire, size_t bytes, union addr *ret)
{
	struct header header;
	ssize_t result = decode_header(ud_layouts, wire, bytes, &header);

	if (result >= 0)
		*ret = header_addr(&header);
	return result;
}

size_t dgram_udp_encode(const struct dgram_udp *from, uint8_t *wire)
{
	struct header header = { .tag = UDP_TAG, .op = (uint8_t)from->op, .qpn = from->qpn };

	return encode_header(udp_layouts, header, &from->addr, wire);
}

ssize_t dgram_udp_decode(const uint8_t *wire, size_t bytes, struct dgram_udp *ret)
{
	struct header header;
	ssize_t result = decode_header(udp_layouts, wire, bytes, &header);

	if (result < 0)
		return result;
	if (header.tag != UDP_TAG || (header.op != DGRAM_DATA && header.op != DGRAM_CONTROL))
		return -EBADMSG;
	*ret = (struct dgram_udp){ .op = (enum dgram_op)header.op,
				   .qpn = header.qpn,
				   .addr = header_addr(&header) };
	return result;
}
