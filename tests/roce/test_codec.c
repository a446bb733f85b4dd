/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/fabric/roce/codec.c: encoding and decoding of each kind of packet, and invalid packets. */
#include <errno.h>
#include <string.h>

#include "tests/roce/packets.h"
#include "tests/unit/test.h"
#include "tools/fabric/wire/counters.h"

#define ROUNDS	  50
#define LRH_BYTES 8

static uint8_t payload[ROCE_PAYLOAD_BYTES_MAX];
static uint8_t wire[ROCE_BYTES_MAX];

TEST_LOOP(packet_survives_encoding_and_decoding, 0, n_kinds)
{
	const struct kind *kind = &kinds[_i];
	const uint8_t *read_payload;
	struct fab_packet read;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct fab_packet packet = random_packet(kind, payload);
		size_t n = roce_write(&packet, payload, wire);

		ck_assert_uint_gt(n, 0);
		ck_assert_uint_eq(n % 4, 0);
		ck_assert_uint_eq(fab_packet_octets(&packet), LRH_BYTES + FAB_GRH_BYTES + n);
		ck_assert_uint_eq(wire[0], kind->opcode);
		ck_assert_uint_eq(roce_dest_qpn(wire), packet.dest_qpn);
		ck_assert_int_eq(roce_read(wire, n, &read, &read_payload), 0);
		ck_assert_mem_eq(&read, &packet, sizeof(packet));
		ck_assert_mem_eq(read_payload, payload, packet.bytes);
	}
}

/* The bytes were made by hand, from the figures of chapter 9. */
TEST(write_only_with_immediate_has_each_field_in_its_place)
{
	static const uint8_t expected[] = {
		0x0b, 0xf0, 0xff, 0xff,				/* opcode; SE, M, pad 3; P_Key */
		0x00, 0x01, 0x02, 0x03,				/* reserved; destination QP */
		0x80, 0x0a, 0x0b, 0x0c,				/* A; PSN */
		0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, /* virtual address */
		0x21, 0x22, 0x23, 0x24, 0x00, 0x00, 0x00, 0x05, /* R_Key; DMA length */
		0x31, 0x32, 0x33, 0x34,				/* immediate data */
		'h',  'e',  'l',  'l',	'o',  0,    0,	  0,	/* payload, pad */
		0,    0,    0,	  0,				/* ICRC */
	};
	static const uint8_t imm[4] = { 0x31, 0x32, 0x33, 0x34 };
	struct fab_packet packet = {
		.service = FAB_SERVICE_RC,
		.op = FAB_OP_WRITE,
		.flags = FAB_FIRST | FAB_LAST | FAB_IMM | FAB_SOLICITED | FAB_ASK_ACK,
		.pkey = 0xffff,
		.dest_qpn = 0x010203,
		.psn = 0x0a0b0c,
		.remote_addr = 0x1112131415161718,
		.rkey = 0x21222324,
		.dma_bytes = 5,
		.bytes = 5,
	};

	memcpy(&packet.imm, imm, sizeof(imm));
	ck_assert_uint_eq(roce_write(&packet, "hello", wire), sizeof(expected));
	ck_assert_mem_eq(wire, expected, sizeof(expected));
}

/* 9.7.7.2: 31 means that credits are not counted, as in our ACKs. */
TEST_LOOP(ack_is_decoded_with_any_credits, 0, 32)
{
	struct fab_packet packet = { .op = FAB_OP_ACK, .msn = 7 }, read;
	size_t n = roce_write(&packet, NULL, wire);
	const uint8_t *read_payload;

	ck_assert_uint_eq(wire[BTH_BYTES], 31);
	wire[BTH_BYTES] = (uint8_t)_i;
	ck_assert_int_eq(roce_read(wire, n, &read, &read_payload), 0);
	ck_assert_int_eq(read.op, FAB_OP_ACK);
	ck_assert_uint_eq(read.msn, 7);
}

/* Annex A19. */
TEST(flush_has_its_header_before_the_range)
{
	static const uint8_t expected[] = {
		0,    0,    0,	  0x12,				/* the whole region, persistent */
		0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, /* virtual address */
		0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34, /* R_Key; DMA length */
	};
	struct fab_packet packet = { .op = FAB_OP_FLUSH,
				     .flush = FAB_FLUSH_PERSISTENT | FAB_FLUSH_REGION,
				     .remote_addr = 0x1112131415161718,
				     .rkey = 0x21222324,
				     .dma_bytes = 0x31323334 };

	ck_assert_uint_eq(roce_write(&packet, NULL, wire), 12 + sizeof(expected) + 4);
	ck_assert_mem_eq(wire + 12, expected, sizeof(expected));
}

TEST(atomic_has_compare_and_add_in_their_places)
{
	struct fab_packet packet = { .op = FAB_OP_COMPARE_SWAP, .compare_add = 1, .swap = 2 };

	ck_assert_uint_eq(roce_write(&packet, NULL, wire), 12 + 28 + 4);
	ck_assert_uint_eq(wire[12 + 19], 2);
	ck_assert_uint_eq(wire[12 + 27], 1);
	packet.op = FAB_OP_FETCH_ADD;
	ck_assert_uint_eq(roce_write(&packet, NULL, wire), 12 + 28 + 4);
	ck_assert_uint_eq(wire[12 + 19], 1);
	ck_assert_uint_eq(wire[12 + 27], 0);
}

TEST_LOOP(truncated_header_is_refused, 0, n_kinds)
{
	struct fab_packet packet = random_packet(&kinds[_i], payload), read;
	const uint8_t *read_payload;
	size_t n, cut;

	packet.bytes = 0;
	n = roce_write(&packet, NULL, wire);
	for (cut = 0; cut < n; cut++)
		ck_assert_int_eq(roce_read(wire, cut, &read, &read_payload), -EBADMSG);
}

TEST_LOOP(packets_without_data_have_no_payload, 0, n_kinds)
{
	struct fab_packet packet = random_packet(&kinds[_i], payload), read;
	const uint8_t *read_payload;
	size_t n;

	packet.bytes = 0;
	n = roce_write(&packet, NULL, wire);
	ck_assert_int_eq(roce_read(wire, n + 4, &read, &read_payload),
			 kinds[_i].has_payload ? 0 : -EBADMSG);
}

TEST(pad_that_is_longer_than_the_payload_is_refused)
{
	struct fab_packet packet = { .op = FAB_OP_SEND, .flags = FAB_FIRST | FAB_LAST }, read;
	const uint8_t *read_payload;
	size_t n = roce_write(&packet, NULL, wire);

	wire[1] |= 0x30;
	ck_assert_int_eq(roce_read(wire, n, &read, &read_payload), -EBADMSG);
}

TEST(other_transport_version_is_refused)
{
	struct fab_packet packet = { .op = FAB_OP_SEND, .flags = FAB_FIRST | FAB_LAST }, read;
	const uint8_t *read_payload;
	size_t n = roce_write(&packet, NULL, wire);

	wire[1] |= 1;
	ck_assert_int_eq(roce_read(wire, n, &read, &read_payload), -EBADMSG);
}

static int read_aeth(uint8_t opcode, uint8_t syndrome, struct fab_packet *ret)
{
	const uint8_t *read_payload;

	memset(wire, 0, 20);
	wire[0] = opcode;
	wire[12] = syndrome;
	return roce_read(wire, 20, ret, &read_payload);
}

/* IBTA vol. 1, tables 43 to 45. */
TEST_LOOP(each_syndrome_is_ack_nak_or_reserved, 0, 256)
{
	unsigned int kind = (unsigned int)_i >> 5, value = (unsigned int)_i & 31;
	bool is_good = kind == 0 || kind == 1 || (kind == 3 && value <= 3);
	struct fab_packet read;

	ck_assert_int_eq(read_aeth(0x11, (uint8_t)_i, &read), is_good ? 0 : -EBADMSG);
	if (is_good)
		ck_assert_int_eq(read.op, kind ? FAB_OP_NAK : FAB_OP_ACK);
	ck_assert_int_eq(read_aeth(0x10, (uint8_t)_i, &read), kind == 0 ? 0 : -EBADMSG);
}

static bool is_a_kind(unsigned int opcode)
{
	unsigned int service = opcode >> 5, operation = opcode & 31;

	if (service == 3)
		return operation == 4 || operation == 5;
	return service == 0 || service == 5
		       ? operation <= 20 || operation == 22 || operation == 23 || operation == 28 ||
				 operation == 29
		       : operation <= 11;
}

TEST_LOOP(unknown_opcode_is_reported_and_that_of_no_service_dropped, 0, 256)
{
	const uint8_t *read_payload;
	struct fab_packet read;
	unsigned int service = (unsigned int)_i >> 5;
	int err;

	memset(wire, 0, sizeof(wire));
	wire[0] = (uint8_t)_i;
	err = roce_read(wire, 64, &read, &read_payload);
	if (service != 0 && service != 1 && service != 3 && service != 5)
		ck_assert_int_eq(err, -EBADMSG);
	else if (!is_a_kind((unsigned int)_i))
		ck_assert(err == 0 && read.op == FAB_OP_UNKNOWN);
	else
		ck_assert_int_ne(read.op, err ? -1 : FAB_OP_UNKNOWN);
}

TEST(packet_without_a_roce_form_is_not_encoded)
{
	struct fab_packet packet = { .op = FAB_OP_EVENT };

	ck_assert_uint_eq(roce_write(&packet, NULL, wire), 0);
	packet = (struct fab_packet){ .op = FAB_OP_SEND,
				      .flags = FAB_FIRST | FAB_LAST,
				      .bytes = ROCE_PAYLOAD_BYTES_MAX + 1 };
	ck_assert_uint_eq(roce_write(&packet, payload, wire), 0);
	packet = (struct fab_packet){ .op = FAB_OP_READ, .service = FAB_SERVICE_UC };
	ck_assert_uint_eq(roce_write(&packet, NULL, wire), 0);
}
