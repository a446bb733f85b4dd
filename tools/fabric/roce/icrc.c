/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ICRC: see icrc.h.
 */
#include "tools/fabric/roce/icrc.h"

#include <libdeflate.h>
#include <string.h>
#include <zlib.h>

#include "tools/fabric/roce/codec.h"

#define AFTER_LRH	 0x2144df1c /* the CRC of 8 bytes of ones, in place of the absent LRH */
#define IPV4_BYTES	 20
#define IPV6_BYTES	 40
#define UDP_BYTES	 8
#define PREFIX_BYTES_MAX (IPV6_BYTES + UDP_BYTES + BTH_BYTES)
#define IPV4_VERSION_IHL 0x45
#define IPV4_DF		 0x40
#define IP_PROTOCOL_UDP	 17
#define BTH_RESERVED_AT	 4
#define OPERATION_MASK	 0x1f
#define OPERATION_FLUSH	 28
#define ZEROS_MAX	 (ROCE_BYTES_MAX + IPV4_BYTES + UDP_BYTES)
#define CRC_ORDER_BYTES	 0xffffffff /* number of zero bytes that leave a CRC unchanged */

static bool flush_is_as_rxe;

void icrc_flush_as_rxe(bool on)
{
	__atomic_store_n(&flush_is_as_rxe, on, __ATOMIC_RELAXED);
}

/* --- the covered bytes ---------------------------------------------------- */

static uint8_t *put_u16(uint8_t *at, size_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return at + 2;
}

static uint8_t *put_ipv4(const struct icrc_flow *flow, size_t n, uint8_t *at)
{
	*at++ = IPV4_VERSION_IHL;
	*at++ = 0xff; /* type of service */
	at = put_u16(at, IPV4_BYTES + UDP_BYTES + n);
	at = put_u16(at, flow->identification);
	*at++ = IPV4_DF;
	*at++ = 0;
	*at++ = 0xff; /* time to live */
	*at++ = IP_PROTOCOL_UDP;
	at = put_u16(at, 0xffff); /* header checksum */
	memcpy(at, flow->sgid->raw + FAB_GID_IPV4_AT, 4);
	memcpy(at + 4, flow->dgid->raw + FAB_GID_IPV4_AT, 4);
	return at + 8;
}

static uint8_t *put_ipv6(const struct icrc_flow *flow, size_t n, uint8_t *at)
{
	at = put_u16(at, 0x6fff); /* version; traffic class and flow label */
	at = put_u16(at, 0xffff);
	at = put_u16(at, UDP_BYTES + n);
	*at++ = IP_PROTOCOL_UDP;
	*at++ = 0xff; /* hop limit */
	memcpy(at, flow->sgid->raw, sizeof(flow->sgid->raw));
	memcpy(at + sizeof(flow->sgid->raw), flow->dgid->raw, sizeof(flow->dgid->raw));
	return at + 2 * sizeof(flow->sgid->raw);
}

static bool is_covered_twice(const uint8_t *bytes)
{
	return __atomic_load_n(&flush_is_as_rxe, __ATOMIC_RELAXED) &&
	       (bytes[0] & OPERATION_MASK) == OPERATION_FLUSH;
}

/* The CRC of everything except the ICRC. */
static uint32_t crc_of(const struct icrc_flow *flow, const uint8_t *bytes, size_t n)
{
	uint8_t prefix[PREFIX_BYTES_MAX], *at = prefix;
	uint32_t crc;

	at = fab_gid_is_ipv4(flow->dgid) ? put_ipv4(flow, n, at) : put_ipv6(flow, n, at);
	at = put_u16(at, flow->source_port);
	at = put_u16(at, ROCE_UDP_PORT);
	at = put_u16(at, UDP_BYTES + n);
	at = put_u16(at, 0xffff); /* checksum */
	memcpy(at, bytes, BTH_BYTES);
	at[BTH_RESERVED_AT] = 0xff;
	crc = libdeflate_crc32(AFTER_LRH, prefix, (size_t)(at - prefix) + BTH_BYTES);
	crc = libdeflate_crc32(crc, bytes + BTH_BYTES, n - BTH_BYTES - ICRC_BYTES);
	return is_covered_twice(bytes) ? libdeflate_crc32(crc, bytes, n - ICRC_BYTES) : crc;
}

void icrc_seal(const struct icrc_flow *flow, uint8_t *bytes, size_t n)
{
	uint32_t icrc = crc_of(flow, bytes, n);
	unsigned int i;

	for (i = 0; i < ICRC_BYTES; i++)
		bytes[n - ICRC_BYTES + i] = (uint8_t)(icrc >> 8 * i);
}

static uint32_t stored_of(const uint8_t *bytes, size_t n)
{
	uint32_t icrc = 0;
	unsigned int i;

	for (i = 0; i < ICRC_BYTES; i++)
		icrc |= (uint32_t)bytes[n - ICRC_BYTES + i] << 8 * i;
	return icrc;
}

/*
 * Reverts the effect of @n zero bytes on a difference of CRCs. Any thread may compute a factor,
 * always with the same result.
 */
static uint32_t without_zeros(uint32_t crc, size_t n)
{
	static uint32_t factors[ZEROS_MAX];
	uint32_t factor = __atomic_load_n(&factors[n], __ATOMIC_RELAXED);

	if (!factor) {
		factor = (uint32_t)crc32_combine_gen64((z_off64_t)(CRC_ORDER_BYTES - n));
		__atomic_store_n(&factors[n], factor, __ATOMIC_RELAXED);
	}
	return (uint32_t)crc32_combine_op(crc, 0, factor);
}

/*
 * CRC is linear: the CRC for another identification differs from that for the expected one by the
 * CRC of the two identifications' difference, that is, two bytes (the first in the lower bits)
 * followed by zeros for the rest of the packet. After reverting the zeros, the upper half of the
 * difference must be zero.
 */
bool icrc_holds(const struct icrc_flow *flow, const uint8_t *bytes, size_t n)
{
	uint32_t difference;
	size_t after; /* the identification */

	if (n < ROCE_BYTES_MIN || n > ROCE_BYTES_MAX)
		return false;
	difference = crc_of(flow, bytes, n) ^ stored_of(bytes, n);
	if (!difference || !fab_gid_is_ipv4(flow->dgid))
		return !difference;
	after = IPV4_BYTES - 4 + UDP_BYTES + n - ICRC_BYTES;
	if (is_covered_twice(bytes))
		after += n - ICRC_BYTES;
	return after < ZEROS_MAX && without_zeros(difference, after) >> 16 == 0;
}
