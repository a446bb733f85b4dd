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

/* --- before a datagram --------------------------------------------------- */

struct ud_header {
	uint8_t version; /* 4 or 6 */
	uint8_t bytes;	 /* of the header */
	uint16_t port;
	uint32_t flowinfo;
	uint8_t addr4[4];
	uint8_t addr6[16];
};

static const struct wire_field ud4_fields[] = {
	WIRE(ud_header, version, 0, 0, 8),
	WIRE(ud_header, bytes, 1, 0, 8),
	WIRE(ud_header, port, 2, 0, 16),
	WIRE_BLOB(ud_header, addr4, 4),
};

static const struct wire_field ud6_fields[] = {
	WIRE(ud_header, version, 0, 0, 8), WIRE(ud_header, bytes, 1, 0, 8),
	WIRE(ud_header, port, 2, 0, 16),   WIRE_ID(ud_header, flowinfo, 4, 0, 32),
	WIRE_ADDR(ud_header, addr6, 8),
};

static const struct wire_layout ud4_layout = WIRE_LAYOUT("UD", ud_header, ud4_fields, UD4_BYTES);
static const struct wire_layout ud6_layout = WIRE_LAYOUT("UD", ud_header, ud6_fields, UD6_BYTES);

size_t dgram_ud_bytes(int family)
{
	return family == AF_INET6 ? UD6_BYTES : UD4_BYTES;
}

size_t dgram_ud_encode(const union addr *from, uint8_t *wire)
{
	bool is_v6 = from->sa.sa_family == AF_INET6;
	struct ud_header header = { .version = is_v6 ? 6 : 4,
				    .bytes = (uint8_t)dgram_ud_bytes(from->sa.sa_family),
				    .port = addr_port(from) };

	memset(wire, 0, header.bytes);
	if (is_v6) {
		header.flowinfo = ntohl(from->in6.sin6_flowinfo);
		memcpy(header.addr6, &from->in6.sin6_addr, sizeof(header.addr6));
	} else {
		memcpy(header.addr4, &from->in4.sin_addr, sizeof(header.addr4));
	}
	wire_encode(is_v6 ? &ud6_layout : &ud4_layout, &header, wire);
	return header.bytes;
}

static void set_v4(union addr *ret, const uint8_t addr4[4], uint16_t port)
{
	*ret = (union addr){
		.in4 = {.sin_family = AF_INET, .sin_port = htons(port)}
	};
	memcpy(&ret->in4.sin_addr, addr4, sizeof(ret->in4.sin_addr));
}

static void set_v6(union addr *ret, const uint8_t addr6[16], uint16_t port)
{
	*ret = (union addr){
		.in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)}
	};
	memcpy(&ret->in6.sin6_addr, addr6, sizeof(ret->in6.sin6_addr));
}

ssize_t dgram_ud_decode(const uint8_t *wire, size_t bytes, union addr *ret)
{
	struct ud_header header;

	if (bytes >= UD4_BYTES && wire[0] == 4 && wire[1] == UD4_BYTES) {
		wire_decode(&ud4_layout, wire, &header);
		set_v4(ret, header.addr4, header.port);
	} else if (bytes >= UD6_BYTES && wire[0] == 6 && wire[1] == UD6_BYTES) {
		wire_decode(&ud6_layout, wire, &header);
		set_v6(ret, header.addr6, header.port);
		ret->in6.sin6_flowinfo = htonl(header.flowinfo);
	} else {
		return -EBADMSG;
	}
	return header.bytes;
}

/* --- on the UDP socket --------------------------------------------------- */

struct udp_header {
	uint32_t tag;
	uint8_t version;
	uint8_t op;
	uint8_t bytes;
	uint32_t qpn;
	uint8_t addr4[4];
	uint8_t addr6[16];
};

#define UDP_FIELDS                                                               \
	WIRE_ID(udp_header, tag, 0, 0, 32), WIRE(udp_header, version, 4, 0, 8),  \
		WIRE(udp_header, op, 5, 0, 8), WIRE(udp_header, bytes, 6, 0, 8), \
		WIRE(udp_header, qpn, 9, 0, 24)

static const struct wire_field udp4_fields[] = {
	UDP_FIELDS,
	WIRE_BLOB(udp_header, addr4, 12),
};

static const struct wire_field udp6_fields[] = {
	UDP_FIELDS,
	WIRE_ADDR(udp_header, addr6, 12),
};

static const struct wire_layout udp4_layout =
	WIRE_LAYOUT("UDP", udp_header, udp4_fields, UDP4_BYTES);
static const struct wire_layout udp6_layout =
	WIRE_LAYOUT("UDP", udp_header, udp6_fields, UDP6_BYTES);

size_t dgram_udp_encode(const struct dgram_udp *from, uint8_t *wire)
{
	bool is_v6 = from->addr.sa.sa_family == AF_INET6;
	struct udp_header header = { .tag = UDP_TAG,
				     .version = is_v6 ? 6 : 4,
				     .op = (uint8_t)from->op,
				     .bytes = is_v6 ? UDP6_BYTES : UDP4_BYTES,
				     .qpn = from->qpn };

	memset(wire, 0, header.bytes);
	if (is_v6)
		memcpy(header.addr6, &from->addr.in6.sin6_addr, sizeof(header.addr6));
	else
		memcpy(header.addr4, &from->addr.in4.sin_addr, sizeof(header.addr4));
	wire_encode(is_v6 ? &udp6_layout : &udp4_layout, &header, wire);
	return header.bytes;
}

static bool is_valid(const struct udp_header *header, uint8_t version, uint8_t bytes)
{
	return header->tag == UDP_TAG && header->version == version && header->bytes == bytes &&
	       (header->op == DGRAM_DATA || header->op == DGRAM_CONTROL);
}

ssize_t dgram_udp_decode(const uint8_t *wire, size_t bytes, struct dgram_udp *ret)
{
	struct udp_header header = { 0 };

	*ret = (struct dgram_udp){ 0 };
	if (bytes >= UDP4_BYTES)
		wire_decode(&udp4_layout, wire, &header);
	if (is_valid(&header, 4, UDP4_BYTES)) {
		set_v4(&ret->addr, header.addr4, 0);
	} else if (bytes >= UDP6_BYTES && is_valid(&header, 6, UDP6_BYTES)) {
		wire_decode(&udp6_layout, wire, &header);
		set_v6(&ret->addr, header.addr6, 0);
	} else {
		return -EBADMSG;
	}
	ret->op = (enum dgram_op)header.op;
	ret->qpn = header.qpn;
	return header.bytes;
}
