/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The headers of datagram sockets: see dgram_wire.h.
 */
#include "lib/rsocket/dgram_wire.h"

#include <errno.h>
#include <string.h>

#define UDP_TAG	   0x55555555
#define UD4_BYTES  8
#define UD6_BYTES  24
#define UDP4_BYTES 16
#define UDP6_BYTES 28

/* Of either kind: see the fields. */
struct header {
	uint32_t tag;
	uint8_t version; /* 4 or 6 */
	uint8_t op;
	uint8_t bytes; /* of the header */
	uint16_t port;
	uint32_t flowinfo;
	uint32_t qpn;
	uint8_t addr4[4];
	uint8_t addr6[16];
};

static struct header header_from(const union addr *from)
{
	struct header header = { .version = 4 };

	if (from->sa.sa_family == AF_INET6) {
		header.version = 6;
		header.flowinfo = ntohl(from->in6.sin6_flowinfo);
		memcpy(header.addr6, &from->in6.sin6_addr, sizeof(header.addr6));
	} else {
		memcpy(header.addr4, &from->in4.sin_addr, sizeof(header.addr4));
	}
	return header;
}

static union addr header_addr(const struct header *header)
{
	union addr addr = { 0 };

	if (header->version == 6) {
		addr.in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
						  .sin6_port = htons(header->port),
						  .sin6_flowinfo = htonl(header->flowinfo) };
		memcpy(&addr.in6.sin6_addr, header->addr6, sizeof(header->addr6));
	} else {
		addr.in4 = (struct sockaddr_in){ .sin_family = AF_INET,
						 .sin_port = htons(header->port) };
		memcpy(&addr.in4.sin_addr, header->addr4, sizeof(header->addr4));
	}
	return addr;
}

/* --- before a datagram --------------------------------------------------- */

#define UD_FIELDS \
	WIRE(header, version, 0, 0, 8), WIRE(header, bytes, 1, 0, 8), WIRE(header, port, 2, 0, 16)

static const struct wire_field ud4_fields[] = {
	UD_FIELDS,
	WIRE_BLOB(header, addr4, 4),
};

static const struct wire_field ud6_fields[] = {
	UD_FIELDS,
	WIRE_ID(header, flowinfo, 4, 0, 32),
	WIRE_ADDR(header, addr6, 8),
};

static const struct wire_layout ud4_layout = WIRE_LAYOUT("UD", header, ud4_fields, UD4_BYTES);
static const struct wire_layout ud6_layout = WIRE_LAYOUT("UD", header, ud6_fields, UD6_BYTES);

size_t dgram_ud_encode(const union addr *from, uint8_t *wire)
{
	struct header header = header_from(from);

	header.bytes = header.version == 6 ? UD6_BYTES : UD4_BYTES;
	header.port = addr_port(from);
	memset(wire, 0, header.bytes);
	wire_encode(header.version == 6 ? &ud6_layout : &ud4_layout, &header, wire);
	return header.bytes;
}

ssize_t dgram_ud_decode(const uint8_t *wire, size_t bytes, union addr *ret)
{
	struct header header = { 0 };

	if (bytes >= UD4_BYTES && wire[0] == 4 && wire[1] == UD4_BYTES)
		wire_decode(&ud4_layout, wire, &header);
	else if (bytes >= UD6_BYTES && wire[0] == 6 && wire[1] == UD6_BYTES)
		wire_decode(&ud6_layout, wire, &header);
	else
		return -EBADMSG;
	*ret = header_addr(&header);
	return header.bytes;
}

/* --- on the UDP socket --------------------------------------------------- */

#define UDP_FIELDS                                                                                 \
	WIRE_ID(header, tag, 0, 0, 32), WIRE(header, version, 4, 0, 8), WIRE(header, op, 5, 0, 8), \
		WIRE(header, bytes, 6, 0, 8), WIRE(header, qpn, 9, 0, 24)

static const struct wire_field udp4_fields[] = {
	UDP_FIELDS,
	WIRE_BLOB(header, addr4, 12),
};

static const struct wire_field udp6_fields[] = {
	UDP_FIELDS,
	WIRE_ADDR(header, addr6, 12),
};

static const struct wire_layout udp4_layout = WIRE_LAYOUT("UDP", header, udp4_fields, UDP4_BYTES);
static const struct wire_layout udp6_layout = WIRE_LAYOUT("UDP", header, udp6_fields, UDP6_BYTES);

size_t dgram_udp_encode(const struct dgram_udp *from, uint8_t *wire)
{
	struct header header = header_from(&from->addr);
	bool is_v6 = header.version == 6;

	header.tag = UDP_TAG;
	header.op = (uint8_t)from->op;
	header.bytes = is_v6 ? UDP6_BYTES : UDP4_BYTES;
	header.qpn = from->qpn;
	memset(wire, 0, header.bytes);
	wire_encode(is_v6 ? &udp6_layout : &udp4_layout, &header, wire);
	return header.bytes;
}

static bool is_valid_udp(const struct header *header, uint8_t version, uint8_t bytes)
{
	return header->tag == UDP_TAG && header->version == version && header->bytes == bytes &&
	       (header->op == DGRAM_DATA || header->op == DGRAM_CONTROL);
}

ssize_t dgram_udp_decode(const uint8_t *wire, size_t bytes, struct dgram_udp *ret)
{
	struct header header = { 0 };

	*ret = (struct dgram_udp){ 0 };
	if (bytes >= UDP4_BYTES)
		wire_decode(&udp4_layout, wire, &header);
	if (!is_valid_udp(&header, 4, UDP4_BYTES)) {
		if (bytes < UDP6_BYTES || !is_valid_udp(&header, 6, UDP6_BYTES))
			return -EBADMSG;
		wire_decode(&udp6_layout, wire, &header);
	}
	ret->addr = header_addr(&header);
	ret->op = (enum dgram_op)header.op;
	ret->qpn = header.qpn;
	return header.bytes;
}
