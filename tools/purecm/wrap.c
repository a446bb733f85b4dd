/* SPDX-License-Identifier: BSD-2-Clause */
/* The headers of a MAD, which frame.c decodes. */
#include "tools/purecm/wrap.h"

#include <string.h>

#include "tools/purecm/frame.h"

#define MAC_BYTES    12
#define IP4_BYTES    20
#define IP6_BYTES    40
#define UDP_BYTES    8
#define LRH_BYTES    8
#define BTH_BYTES    12
#define DETH_BYTES   8
#define ICRC_BYTES   4
#define ROCE_BYTES   (UDP_BYTES + BTH_BYTES + DETH_BYTES + MAD_BYTES + ICRC_BYTES)
#define LRH_WORDS    ((LRH_BYTES + BTH_BYTES + DETH_BYTES + MAD_BYTES + ICRC_BYTES) / 4)
#define PROTO_UDP    17
#define HOP_LIMIT    64
#define UD_SEND_ONLY 0x64
#define QPN_GSI	     1
#define LNH_LOCAL    2
#define SPORT	     0xc000 /* of RoCE v2: any port from here on */

static const uint8_t qkey_gsi[4] = { 0x80, 0x01 };

static uint8_t *put_bytes(uint8_t *at, const void *bytes, size_t n)
{
	memcpy(at, bytes, n);
	return at + n;
}

static uint8_t *put16(uint8_t *at, unsigned int value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return at + 2;
}

static uint8_t *put24(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 16);
	return put16(at + 1, value & 0xffff);
}

static unsigned int check_sum(const uint8_t *bytes, size_t n)
{
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i < n; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

static uint8_t *put_ip4(uint8_t *at, const struct observation *observation)
{
	uint8_t *ip = at;

	memset(ip, 0, IP4_BYTES);
	ip[0] = 0x45;
	put16(ip + 2, IP4_BYTES + ROCE_BYTES);
	ip[6] = 0x40; /* don't fragment */
	ip[8] = HOP_LIMIT;
	ip[9] = PROTO_UDP;
	put_bytes(ip + 12, observation->src.raw + 12, 4);
	put_bytes(ip + 16, observation->dst.raw + 12, 4);
	put16(ip + 10, check_sum(ip, IP4_BYTES));
	return ip + IP4_BYTES;
}

static uint8_t *put_ip6(uint8_t *at, const struct observation *observation)
{
	const uint8_t head[8] = { 0x60, [4] = ROCE_BYTES >> 8, ROCE_BYTES & 0xff, PROTO_UDP,
				  HOP_LIMIT };

	at = put_bytes(at, head, sizeof(head));
	at = put_bytes(at, observation->src.raw, 16);
	return put_bytes(at, observation->dst.raw, 16);
}

/* Ethernet, IP and UDP; RoCE v2 allows a zero UDP checksum. */
static uint8_t *put_roce(uint8_t *at, const struct observation *observation)
{
	const bool ip4 = observation_is_ip4(&observation->src) &&
			 observation_is_ip4(&observation->dst);

	memset(at, 0, MAC_BYTES);
	at = put16(at + MAC_BYTES, ip4 ? 0x0800 : 0x86dd);
	at = ip4 ? put_ip4(at, observation) : put_ip6(at, observation);
	at = put16(at, SPORT);
	at = put16(at, ROCE_UDP_PORT);
	at = put16(at, ROCE_BYTES);
	return put16(at, 0);
}

static uint8_t *put_lrh(uint8_t *at, const struct observation *observation)
{
	at[0] = 0;
	at[1] = LNH_LOCAL;
	at = put16(at + 2, observation_lid(&observation->dst));
	at = put16(at, LRH_WORDS);
	return put16(at, observation_lid(&observation->src));
}

static uint8_t *put_bth(uint8_t *at, const struct observation *observation)
{
	memset(at, 0, BTH_BYTES);
	at[0] = UD_SEND_ONLY;
	put16(at + 2, observation->pkey);
	put24(at + 5, QPN_GSI);
	at = put_bytes(at + BTH_BYTES, qkey_gsi, sizeof(qkey_gsi));
	*at++ = 0;
	return put24(at, observation->src_qpn);
}

size_t wrap_mad(const struct observation *observation, uint8_t ret_packet[WRAP_BYTES_MAX],
		int *ret_link_type)
{
	const bool has_lids = observation_lid(&observation->src) &&
			      observation_lid(&observation->dst);
	uint8_t *at = has_lids ? put_lrh(ret_packet, observation)
			       : put_roce(ret_packet, observation);

	at = put_bth(at, observation);
	at = put_bytes(at, observation->mad, MAD_BYTES);
	memset(at, 0, ICRC_BYTES);
	*ret_link_type = has_lids ? LINK_INFINIBAND : LINK_ETHERNET;
	return (size_t)(at + ICRC_BYTES - ret_packet);
}
