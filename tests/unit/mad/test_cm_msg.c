/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mad/cm_msg.c and mad/cm_print.c: whole MADs compared with vectors, invalid MADs, and printed
 * messages.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mad/cm_msg.h"
#include "tests/unit/mad/hex.h"
#include "tests/unit/mad/vectors.h"
#include "tests/unit/test.h"

/* A valid RTU, to be modified in one place. */
static void encode_rtu(uint8_t mad[MAD_BYTES])
{
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_RTU, 1);
	cm_msg_encode(&msg, mad);
}

static int decode_with(unsigned int byte, uint8_t value)
{
	uint8_t mad[MAD_BYTES];
	struct cm_msg msg;

	encode_rtu(mad);
	mad[byte] = value;
	return cm_msg_decode(mad, sizeof(mad), &msg);
}

static const struct wire_field *req_field(const char *name)
{
	size_t i = 0;

	while (strcmp(cm_req_layout.field[i].name, name) != 0)
		ck_assert_uint_lt(++i, cm_req_layout.n_fields);
	return &cm_req_layout.field[i];
}

static const char *print(const struct cm_msg *msg)
{
	static char text[1024];
	FILE *out = fmemopen(text, sizeof(text), "w");

	ck_assert_ptr_nonnull(out);
	cm_msg_print(msg, out);
	fclose(out);
	return text;
}

TEST_LOOP(message_becomes_the_bytes_of_the_specification, 0, n_vectors)
{
	uint8_t expected[MAD_BYTES], mad[MAD_BYTES];

	ck_assert_int_gt(hex_read(vectors[_i].hex, expected, sizeof(expected)), 0);
	cm_msg_encode(&vectors[_i].msg, mad);
	ck_assert_mem_eq(mad, expected, sizeof(mad));
}

TEST_LOOP(bytes_of_the_specification_become_the_message, 0, n_vectors)
{
	uint8_t mad[MAD_BYTES];
	struct cm_msg expected;
	struct cm_msg msg;

	ck_assert_int_gt(hex_read(vectors[_i].hex, mad, sizeof(mad)), 0);
	memset(&expected, 0, sizeof(expected));
	memcpy(&expected, &vectors[_i].msg, sizeof(expected));
	ck_assert_int_eq(cm_msg_decode(mad, sizeof(mad), &msg), 0);
	ck_assert_mem_eq(&msg, &expected, sizeof(msg));
}

TEST(every_attribute_has_a_vector)
{
	int i = 0;

	for (unsigned int attr = CM_ATTR_REQ; attr <= CM_ATTR_APR; attr++)
		ck_assert_uint_eq(vectors[i++].msg.hdr.attr_id, attr);
	ck_assert_int_eq(i, n_vectors);
}

TEST(encode_writes_all_bytes)
{
	uint8_t zeros[MAD_BYTES], ones[MAD_BYTES];

	memset(zeros, 0, sizeof(zeros));
	memset(ones, 0xff, sizeof(ones));
	encode_rtu(zeros);
	encode_rtu(ones);
	ck_assert_mem_eq(zeros, ones, sizeof(zeros));
}

TEST(attribute_outside_the_class_has_no_layout)
{
	ck_assert_ptr_null(cm_msg_layout(0x0f));
	ck_assert_ptr_null(cm_msg_layout(0x1b));
	ck_assert_ptr_null(cm_msg_layout(0));
	ck_assert_ptr_null(cm_msg_layout(0xffff));
}

TEST(short_mad_is_refused)
{
	uint8_t mad[MAD_BYTES];
	struct cm_msg msg;

	encode_rtu(mad);
	ck_assert_int_eq(cm_msg_decode(mad, sizeof(mad) - 1, &msg), -EMSGSIZE);
}

TEST(long_mad_is_refused)
{
	uint8_t mad[MAD_BYTES + 1] = { 0 };
	struct cm_msg msg;

	encode_rtu(mad);
	ck_assert_int_eq(cm_msg_decode(mad, sizeof(mad), &msg), -EMSGSIZE);
}

TEST(other_base_version_is_refused)
{
	ck_assert_int_eq(decode_with(0, 0x80), -EBADMSG);
}

TEST(other_class_is_refused)
{
	ck_assert_int_eq(decode_with(1, 0x03), -EBADMSG);
}

TEST(other_class_version_is_refused)
{
	ck_assert_int_eq(decode_with(2, 1), -EBADMSG);
}

TEST(other_method_is_refused)
{
	ck_assert_int_eq(decode_with(3, 0x83), -EBADMSG);
}

TEST(unknown_attribute_is_refused)
{
	ck_assert_int_eq(decode_with(17, 0x1b), -ENOMSG);
	ck_assert_int_eq(decode_with(16, 0x01), -ENOMSG);
}

TEST(refused_mad_leaves_the_message_unchanged)
{
	uint8_t mad[MAD_BYTES];
	struct cm_msg msg = { .hdr.tid = 42 };

	encode_rtu(mad);
	mad[17] = 0x1b;
	ck_assert_int_eq(cm_msg_decode(mad, sizeof(mad), &msg), -ENOMSG);
	ck_assert_uint_eq(msg.hdr.tid, 42);
}

TEST(message_is_printed_on_one_line)
{
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_DREQ, 1);
	msg.dreq.local_comm_id = 0x1a2b;
	msg.dreq.remote_qpn = 0x11;
	msg.dreq.private_data[1] = 0xff;
	ck_assert_str_eq(print(&msg),
			 "DREQ local_comm_id=0x1a2b remote_qpn=0x11 private_data=00ff");
}

TEST(printed_rejection_has_its_reason)
{
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_REJ, 1);
	msg.rej.reason = 8;
	ck_assert_str_eq(print(&msg), "REJ reason=8 (invalid service id: nobody listens there)");
}

#ifdef __GLIBC__ /* inet_ntop() of other libraries writes ::a00:1 */
TEST(cma_header_is_printed_by_field)
{
	static const char header[] = "0040c350 000000000000000000000000 0a000001"
				     "000000000000000000000000 0a000002 cafe";
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_REQ, 1);
	msg.req.service_id = 0x1061b58;
	ck_assert_int_eq(hex_read(header, msg.req.private_data, CM_REQ_PRIVATE_BYTES), 38);
	ck_assert_str_eq(print(&msg), "REQ service_id=0x1061b58 private_data=cafe ip_version=4 "
				      "src_port=50000 src_addr=::10.0.0.1 dst_addr=::10.0.0.2");
}
#endif

TEST(private_data_without_cma_header_is_printed_completely)
{
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_SIDR_REQ, 1);
	msg.sidr_req.service_id = 0x1111b58;
	msg.sidr_req.private_data[0] = 0x55;
	ck_assert_str_eq(print(&msg), "SIDR_REQ service_id=0x1111b58 private_data=55");
}

TEST(unknown_message_is_printed_by_number)
{
	struct cm_msg msg = { .hdr.attr_id = 0x99 };

	ck_assert_str_eq(print(&msg), "attribute 0x99");
}

TEST(every_reason_has_a_phrase)
{
	for (unsigned int reason = 0; reason <= UINT16_MAX; reason++)
		ck_assert_ptr_nonnull(cm_rej_reason_str(reason));
	ck_assert_str_eq(cm_rej_reason_str(28), "rejected by the consumer");
	ck_assert_str_eq(cm_rej_reason_str(0), "reserved reason");
	ck_assert_str_eq(cm_rej_reason_str(34), "reserved reason");
	ck_assert_str_eq(cm_rej_reason_str(65535), "reserved reason");
}

TEST(every_sidr_status_has_a_phrase)
{
	uint8_t status;

	for (status = 0; status < 6; status++)
		ck_assert_str_ne(cm_sidr_status_str(status), "reserved status");
	ck_assert_str_eq(cm_sidr_status_str(6), "reserved status");
	ck_assert_str_eq(cm_sidr_status_str(255), "reserved status");
}

/* IBTA vol. 1, table 106: the alternate path has the layout of the primary one, 44 bytes later. */
TEST(alternate_path_has_the_layout_of_the_primary_one)
{
	char name[64] = "alternate";

	for (size_t i = 0; i < cm_req_layout.n_fields; i++) {
		const struct wire_field *primary = &cm_req_layout.field[i], *alternate;

		if (strncmp(primary->name, "primary.", 8) != 0)
			continue;
		strcpy(name + 9, primary->name + 7);
		alternate = req_field(name);
		ck_assert_uint_eq(alternate->byte, primary->byte + 44);
		ck_assert_uint_eq(alternate->bit, primary->bit);
		ck_assert_uint_eq(alternate->width, primary->width);
	}
}
