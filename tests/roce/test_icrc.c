/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tools/fabric/roce/icrc.c: the bytes that the ICRC covers, those it does not, and an
 * identification that is unknown to the receiver.
 */
#include <string.h>

#include "tests/unit/test.h"
#include "tools/fabric/roce/codec.h"
#include "tools/fabric/roce/icrc.h"

#define BYTES 1072

static const union ibv_gid v4[2] = {
	{ .raw = { [10] = 0xff, 0xff, 192, 0, 2, 1 } },
	{ .raw = { [10] = 0xff, 0xff, 192, 0, 2, 7 } },
};
static const union ibv_gid v6[2] = {
	{ .raw = { 0xfd, 0x77, [15] = 1 } },
	{ .raw = { 0xfd, 0x77, [15] = 2 } },
};

static uint8_t packet[BYTES];

static struct icrc_flow flow_of(const union ibv_gid gid[2], uint16_t identification)
{
	return (struct icrc_flow){ &gid[0], &gid[1], 0xc123, identification };
}

static void fill(void)
{
	for (size_t i = 0; i < sizeof(packet); i++)
		packet[i] = (uint8_t)random();
}

/* Computes the polynomial bit by bit. */
static uint32_t slow_crc32(const uint8_t *at, size_t n)
{
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < n; i++)
		for (unsigned int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (((crc ^ at[i] >> bit) & 1) ? 0xedb88320u : 0);
	return ~crc;
}

/* Annex A17 in its own order, for IPv4, without code of the product. */
static uint32_t by_hand(const struct icrc_flow *flow, const uint8_t *bytes, size_t n)
{
	uint8_t all[8 + 20 + 8 + BYTES] = { 0 };
	uint8_t *ip = all + 8, *udp = ip + 20, *bth = udp + 8;

	memset(all, 0xff, 8);
	ip[0] = 0x45;
	ip[1] = 0xff;
	ip[2] = (uint8_t)((n + 28) >> 8);
	ip[3] = (uint8_t)(n + 28);
	ip[4] = (uint8_t)(flow->identification >> 8);
	ip[5] = (uint8_t)flow->identification;
	ip[6] = 0x40;
	ip[8] = 0xff;
	ip[9] = 17;
	ip[10] = ip[11] = 0xff;
	memcpy(ip + 12, flow->sgid->raw + 12, 4);
	memcpy(ip + 16, flow->dgid->raw + 12, 4);
	udp[0] = (uint8_t)(flow->source_port >> 8);
	udp[1] = (uint8_t)flow->source_port;
	udp[2] = 4791 >> 8;
	udp[3] = 4791 & 0xff;
	udp[4] = (uint8_t)((n + 8) >> 8);
	udp[5] = (uint8_t)(n + 8);
	udp[6] = udp[7] = 0xff;
	memcpy(bth, bytes, n);
	bth[4] = 0xff;
	return slow_crc32(all, 36 + n - 4);
}

TEST(icrc_is_that_of_the_specification)
{
	struct icrc_flow flow = flow_of(v4, 0x1234);
	uint32_t icrc;

	fill();
	icrc_seal(&flow, packet, BYTES);
	icrc = by_hand(&flow, packet, BYTES);
	ck_assert_uint_eq(packet[BYTES - 4], icrc & 0xff);
	ck_assert_uint_eq(packet[BYTES - 3], icrc >> 8 & 0xff);
	ck_assert_uint_eq(packet[BYTES - 2], icrc >> 16 & 0xff);
	ck_assert_uint_eq(packet[BYTES - 1], icrc >> 24);
}

TEST_LOOP(any_identification_passes, 0, 64)
{
	struct icrc_flow flow = flow_of(v4, (uint16_t)(_i < 2 ? _i * 0xffff : random()));
	size_t n = 16 + 4 * ((size_t)_i * 4 % ((BYTES - 16) / 4));

	fill();
	icrc_seal(&flow, packet, n);
	flow.identification = _i % 3 ? (uint16_t)random() : 0;
	ck_assert(icrc_holds(&flow, packet, n));
}

static void flip_each_bit(const union ibv_gid gid[2])
{
	struct icrc_flow flow = flow_of(gid, 7);
	size_t n = 80, bit;

	fill();
	icrc_seal(&flow, packet, n);
	for (bit = 0; bit < 8 * n; bit++) {
		packet[bit / 8] ^= (uint8_t)(1 << bit % 8);
		ck_assert_int_eq(icrc_holds(&flow, packet, n), bit / 8 == 4);
		packet[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

TEST(one_flipped_bit_over_ipv4_is_detected_except_in_variant_fields)
{
	flip_each_bit(v4);
}

TEST(one_flipped_bit_over_ipv6_is_detected_except_in_variant_fields)
{
	flip_each_bit(v6);
}

TEST(addresses_and_source_port_are_covered)
{
	struct icrc_flow flow = flow_of(v6, 0);

	fill();
	icrc_seal(&flow, packet, 64);
	ck_assert(icrc_holds(&flow, packet, 64));
	flow.source_port++;
	ck_assert(!icrc_holds(&flow, packet, 64));
	flow.source_port--;
	flow.sgid = &v6[1];
	ck_assert(!icrc_holds(&flow, packet, 64));
	flow.sgid = &v6[0];
	flow.dgid = &v6[0];
	ck_assert(!icrc_holds(&flow, packet, 64));
}

TEST(random_bytes_pass_over_ipv4_once_in_65536)
{
	struct icrc_flow flow = flow_of(v4, 0);
	unsigned int passed = 0;

	for (unsigned int i = 0; i < 200000; i++) {
		uint32_t word = (uint32_t)random() ^ (uint32_t)random() << 16;

		memcpy(packet, &word, 4);
		passed += icrc_holds(&flow, packet, 64);
	}
	ck_assert_uint_le(passed, 20); /* 3 are expected */
}

/* A flush of 24 bytes as rxe of Linux 6.12 sent it, from 10.77.0.1 to 10.77.0.2. */
static const uint8_t rxe_flush[] = {
	0x1c, 0x00, 0xff, 0xff, 0x00, 0x00, 0xc0, 0x01, 0x80, 0x00, 0x00, 0x01,
	0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x21, 0x4c, 0x20, 0x00,
	0x00, 0x00, 0x01, 0x01, 0x00, 0x00, 0x00, 0x18, 0xd9, 0x1e, 0xfb, 0x4d,
};
static const union ibv_gid rxe_gid[2] = {
	{ .raw = { [10] = 0xff, 0xff, 10, 77, 0, 1 } },
	{ .raw = { [10] = 0xff, 0xff, 10, 77, 0, 2 } },
};
static const struct icrc_flow rxe_flow = { &rxe_gid[0], &rxe_gid[1], 0xc02a, 0xf81b };

/* Its ICRC differs from that of the specification, which by_hand() computes. */
TEST(rxe_covers_the_headers_of_a_flush_twice)
{
	uint32_t icrc = by_hand(&rxe_flow, rxe_flush, sizeof(rxe_flush));

	ck_assert_uint_ne(rxe_flush[sizeof(rxe_flush) - ICRC_BYTES], icrc & 0xff);
	ck_assert(!icrc_holds(&rxe_flow, rxe_flush, sizeof(rxe_flush)));
	icrc_flush_as_rxe(true);
	ck_assert(icrc_holds(&rxe_flow, rxe_flush, sizeof(rxe_flush)));
	memcpy(packet, rxe_flush, sizeof(rxe_flush) - ICRC_BYTES);
	icrc_seal(&rxe_flow, packet, sizeof(rxe_flush));
	icrc_flush_as_rxe(false);
	ck_assert_mem_eq(packet, rxe_flush, sizeof(rxe_flush));
}

TEST_LOOP(any_identification_of_a_flush_of_rxe_passes, 0, 16)
{
	struct icrc_flow flow = rxe_flow;

	flow.identification = (uint16_t)random();
	icrc_flush_as_rxe(true);
	ck_assert(icrc_holds(&flow, rxe_flush, sizeof(rxe_flush)));
	icrc_flush_as_rxe(false);
}

TEST(too_short_payload_is_refused)
{
	struct icrc_flow flow = flow_of(v4, 0);

	for (size_t n = 0; n < 16; n++)
		ck_assert(!icrc_holds(&flow, packet, n));
}
