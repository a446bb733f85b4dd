/* SPDX-License-Identifier: BSD-2-Clause */
/* mad/sa_msg.c: whole MADs compared with bytes on which OpenSM and we agree, and invalid MADs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mad/sa_msg.h"
#include "tests/unit/mad/hex.h"
#include "tests/unit/test.h"

/* A request for the path from fe80::10:1 to fe80::10:3, as RDMA CM sends it for IPv4. */
static const char path_question[] = "01 03 02 01 0000 0000 0000000100000002 0035 0000 00000000"
				    "00 00 00 00 00000000 00000000" /* RMPP */
				    "0000000000000000 0000 0000 000000000000780f"
				    "0000000001061c06"
				    "fe800000000000000000000000100003"
				    "fe800000000000000000000000100001"
				    "0000 0000 00000000"
				    "00 81 ffff 0200 00 00 00 00 000000000000";

/* The kernel's component mask of a join to an existing group. */
static const char member_question[] = "01 03 02 02 0000 0000 0000000100000003 0038 0000 00000000"
				      "00 00 00 00 00000000 00000000"
				      "0000000000000000 0000 0000 00000000000130c7"
				      "ff12401bffff000000000000ffffffff"
				      "fe800000000000000000000000100001"
				      "00000b1b c001 84 01 ffff 83 92"
				      "3abcde40 21 80";

static void fill_path(struct sa_msg *msg)
{
	static const struct mad_gid dgid = { { 0xfe, 0x80, [13] = 0x10, 0, 3 } };
	static const struct mad_gid sgid = { { 0xfe, 0x80, [13] = 0x10, 0, 1 } };

	sa_msg_init(msg, SA_METHOD_GET, SA_ATTR_PATH_RECORD, 0x780f, 0x100000002);
	msg->path.service_id = 0x01061c06;
	msg->path.dgid = dgid;
	msg->path.sgid = sgid;
	msg->path.reversible = 1;
	msg->path.numb_path = 1;
	msg->path.pkey = 0xffff;
	msg->path.qos_class = 0x20;
}

TEST(path_record_becomes_the_bytes_of_the_specification)
{
	uint8_t expected[MAD_BYTES], mad[MAD_BYTES];
	struct sa_msg msg;

	ck_assert_int_gt(hex_read(path_question, expected, sizeof(expected)), 0);
	fill_path(&msg);
	sa_msg_encode(&msg, mad);
	ck_assert_mem_eq(mad, expected, sizeof(mad));
}

TEST(member_record_is_read_from_the_bytes_of_the_specification)
{
	uint8_t mad[MAD_BYTES];
	struct sa_msg msg;

	ck_assert_int_gt(hex_read(member_question, mad, sizeof(mad)), 0);
	ck_assert_int_eq(sa_msg_decode(mad, sizeof(mad), &msg), 0);
	ck_assert_uint_eq(msg.sa.comp_mask, 0x130c7);
	ck_assert_uint_eq(msg.member.qkey, 0xb1b);
	ck_assert_uint_eq(msg.member.mlid, 0xc001);
	ck_assert_uint_eq(msg.member.mtu_selector, SA_SELECTOR_EXACTLY);
	ck_assert_uint_eq(msg.member.mtu, 4);
	ck_assert_uint_eq(msg.member.traffic_class, 1);
	ck_assert_uint_eq(msg.member.rate, 3);
	ck_assert_uint_eq(msg.member.packet_life_time, 18);
	ck_assert_uint_eq(msg.member.sl, 3);
	ck_assert_uint_eq(msg.member.flow_label, 0xabcde);
	ck_assert_uint_eq(msg.member.hop_limit, 0x40);
	ck_assert_uint_eq(msg.member.scope, 2);
	ck_assert_uint_eq(msg.member.join_state, SA_JOIN_FULL);
	ck_assert_uint_eq(msg.member.proxy_join, 1);
}

TEST(masks_of_the_kernel_are_made_of_our_bits)
{
	const uint64_t path = SA_PATH_SERVICE_ID | SA_PATH_DGID | SA_PATH_SGID |
			      SA_PATH_REVERSIBLE | SA_PATH_NUMB_PATH | SA_PATH_PKEY;
	const uint64_t join = SA_MEMBER_MGID | SA_MEMBER_PORT_GID | SA_MEMBER_QKEY |
			      SA_MEMBER_TRAFFIC_CLASS | SA_MEMBER_PKEY | SA_MEMBER_SL |
			      SA_MEMBER_FLOW_LABEL | SA_MEMBER_JOIN_STATE;

	ck_assert_uint_eq(path | SA_PATH_QOS_CLASS, 0x780f);
	ck_assert_uint_eq(path | SA_PATH_TRAFFIC_CLASS, 0x3c0f);
	ck_assert_uint_eq(join, 0x130c7);
	ck_assert_uint_eq(join | SA_MEMBER_MTU_SELECTOR | SA_MEMBER_MTU | SA_MEMBER_RATE_SELECTOR |
				  SA_MEMBER_RATE | SA_MEMBER_HOP_LIMIT,
			  0x173f7);
}

/* The bits of each record that are not reserved, after those of the two headers. */
#define ONES_4	"ffffffff"
#define ONES_16 "ffffffffffffffffffffffffffffffff"
#define HEADERS "ffffffffffffffffffffffff" /* RMPP */ "ffffffffffffffff ffff 0000 ffffffffffffffff"

static const struct {
	enum sa_attr attr;
	const char *bits;
} whole[] = {
	{ SA_ATTR_PATH_RECORD, HEADERS "ffffffffffffffff" ONES_16 ONES_16
				       "ffff ffff 8fffffff ff ff ffff ffff ff ff ff ff" },
	{ SA_ATTR_MCMEMBER_RECORD,
	  HEADERS ONES_16 ONES_16 ONES_4 "ffff ff ff ffff ff ff ffffffff ff 80" },
	{ SA_ATTR_SERVICE_RECORD,
	  HEADERS "ffffffffffffffff" ONES_16 "ffff 0000" ONES_4 ONES_16 ONES_16 ONES_16 ONES_16
		  ONES_16 ONES_16 ONES_16 ONES_16 ONES_16 },
};

TEST_LOOP(every_bit_that_is_not_reserved_is_read_and_written, 0,
	  sizeof(whole) / sizeof(whole[0])) /* loop test: _i is the row */
{
	uint8_t expected[MAD_BYTES - MAD_HDR_BYTES], mad[MAD_BYTES];
	struct sa_msg msg;

	ck_assert_int_gt(hex_read(whole[_i].bits, expected, sizeof(expected)), 0);
	sa_msg_init(&msg, SA_METHOD_GET, whole[_i].attr, 0, 0);
	sa_msg_encode(&msg, mad);
	memset(mad + MAD_HDR_BYTES, 0xff, sizeof(expected));
	ck_assert_int_eq(sa_msg_decode(mad, sizeof(mad), &msg), 0);
	sa_msg_encode(&msg, mad);
	ck_assert_mem_eq(mad + MAD_HDR_BYTES, expected, sizeof(expected));
}

static int decode_with(unsigned int byte, uint8_t value)
{
	uint8_t mad[MAD_BYTES];
	struct sa_msg msg;

	fill_path(&msg);
	sa_msg_encode(&msg, mad);
	mad[byte] = value;
	return sa_msg_decode(mad, sizeof(mad), &msg);
}

TEST(other_classes_are_refused)
{
	ck_assert_int_eq(decode_with(0, 2), -EBADMSG);
	ck_assert_int_eq(decode_with(1, MAD_CLASS_CM), -EBADMSG);
	ck_assert_int_eq(decode_with(2, 1), -EBADMSG);
}

TEST(unknown_attribute_is_refused)
{
	ck_assert_int_eq(decode_with(17, 0x11), -ENOMSG);
}

TEST(short_mad_is_refused)
{
	uint8_t mad[MAD_BYTES] = { 0 };
	struct sa_msg msg;

	ck_assert_int_eq(sa_msg_decode(mad, sizeof(mad) - 1, &msg), -EMSGSIZE);
}

/* --- tables -------------------------------------------------------------- */

#define RECORD_BYTES 176
#define N_RECORDS    3

static uint8_t table[SA_DATA_AT + N_RECORDS * RECORD_BYTES];

/* A table of services 1, 2, 3 with records of @record_bytes. */
static int decode_table(size_t record_bytes, size_t bytes, struct sa_msg *ret)
{
	struct sa_msg msg;
	size_t i;

	sa_msg_init(&msg, SA_METHOD_GET, SA_ATTR_SERVICE_RECORD, 0, 5);
	msg.hdr.method = 0x92;
	msg.sa.attr_offset = (uint16_t)(record_bytes / 8);
	sa_msg_encode(&msg, table);
	for (i = 0; i < N_RECORDS; i++)
		table[SA_DATA_AT + i * RECORD_BYTES + 7] = (uint8_t)(i + 1);
	return sa_msg_decode(table, bytes, ret);
}

TEST(table_has_consecutive_records)
{
	struct sa_msg msg;

	ck_assert_int_eq(decode_table(RECORD_BYTES, sizeof(table), &msg), 0);
	ck_assert_uint_eq(msg.n_records, N_RECORDS);
	ck_assert_uint_eq(msg.service.service_id, 1);
	sa_msg_record(&msg, 2);
	ck_assert_uint_eq(msg.service.service_id, 3);
}

TEST(incomplete_last_record_of_a_table_is_ignored)
{
	struct sa_msg msg;

	ck_assert_int_eq(decode_table(RECORD_BYTES, sizeof(table) - 1, &msg), 0);
	ck_assert_uint_eq(msg.n_records, N_RECORDS - 1);
}

TEST(table_may_be_empty)
{
	struct sa_msg msg;

	ck_assert_int_eq(decode_table(0, SA_DATA_AT, &msg), 0);
	ck_assert_uint_eq(msg.n_records, 0);
}

TEST(table_of_records_that_are_too_short_is_refused)
{
	struct sa_msg msg = { .n_records = 9 };

	ck_assert_int_eq(decode_table(0, sizeof(table), &msg), -EBADMSG);
	ck_assert_int_eq(decode_table(RECORD_BYTES - 8, sizeof(table), &msg), -EBADMSG);
	ck_assert_uint_eq(msg.n_records, 9);
	ck_assert_int_eq(decode_table(RECORD_BYTES, SA_DATA_AT - 1, &msg), -EMSGSIZE);
}

TEST_LOOP(unassembled_segment_has_its_payload_length, 0, 4)
{
	static const struct {
		uint32_t payload;
		unsigned int n;
	} row[] = { { 20, 0 }, { 20 + 176, 1 }, { 19, 1 }, { 1000, 1 } };
	struct sa_msg msg;

	decode_table(RECORD_BYTES, MAD_BYTES, &msg);
	msg.sa.rmpp_flags = SA_RMPP_ACTIVE | SA_RMPP_LAST | 2;
	msg.sa.rmpp_data2 = row[_i].payload;
	sa_msg_encode(&msg, table);
	ck_assert_int_eq(sa_msg_decode(table, MAD_BYTES, &msg), 0);
	ck_assert_uint_eq(msg.n_records, row[_i].n);
}
