/* SPDX-License-Identifier: BSD-2-Clause */
/* An agent that queries the subnet administrator: see sa_rig.h. */
#include "tests/fabric/sa_rig.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/test.h"

#define TRY_MS	      150
#define TRIES	      60
#define HEADERS_BYTES 56

struct buffer {
	struct ib_user_mad head;
	struct umad_sa_packet packet;
};

void sa_rig_open(struct sa_rig *rig, uint8_t rmpp_version)
{
	struct umad_reg_attr attr = { .mgmt_class = UMAD_CLASS_SUBN_ADM,
				      .mgmt_class_version = 2,
				      .rmpp_version = rmpp_version };

	rig->fd = umad_open_port("fab0", 1);
	ck_assert_int_ge(rig->fd, 0);
	ck_assert_int_eq(umad_register2(rig->fd, &attr, &rig->agent), 0);
	rig->table = calloc(1, TABLE_BYTES);
}

void sa_rig_close(struct sa_rig *rig)
{
	free(rig->table);
	close(rig->fd);
}

void sa_rig_send(struct sa_rig *rig, uint8_t method, uint16_t attr, uint64_t mask,
		 const void *record, size_t bytes)
{
	struct buffer buffer = { .packet = { .sm_key = { 0 } } };

	umad_set_addr(&buffer, 1, 1, 0, (int)0x80010000);
	buffer.packet.mad_hdr = (struct umad_hdr){
		.base_version = 1,
		.mgmt_class = UMAD_CLASS_SUBN_ADM,
		.class_version = 2,
		.method = method,
		.tid = htobe64(++rig->tid),
		.attr_id = htons(attr),
	};
	buffer.packet.comp_mask = htobe64(mask);
	memcpy(buffer.packet.data, record, bytes);
	ck_assert_int_eq(
		umad_send(rig->fd, (int)rig->agent, &buffer, sizeof(buffer.packet), TRY_MS, TRIES),
		0);
}

/* Return: the number of bytes, without umad's header. */
static unsigned int receive(struct sa_rig *rig)
{
	int bytes = TABLE_BYTES - (int)umad_size();

	ck_assert_int_eq(umad_recv(rig->fd, rig->table, &bytes, WAIT_MS), (int)rig->agent);
	ck_assert_int_eq(umad_status(rig->table), 0);
	return (unsigned int)bytes;
}

unsigned int sa_rig_status(struct sa_rig *rig)
{
	struct umad_sa_packet *packet = umad_get_mad(rig->table);

	ck_assert_uint_eq(receive(rig), MAD_BYTES);
	return ntohs(packet->mad_hdr.status) >> 8;
}

unsigned int sa_rig_table(struct sa_rig *rig, unsigned int record_bytes)
{
	struct umad_sa_packet *packet = umad_get_mad(rig->table);
	unsigned int bytes = receive(rig) - HEADERS_BYTES;

	ck_assert_uint_eq(packet->mad_hdr.method, UMAD_SA_METHOD_GET_TABLE_RESP);
	ck_assert_uint_eq(packet->mad_hdr.status, 0);
	ck_assert_uint_eq(ntohs(packet->attr_offset) * 8u, record_bytes);
	ck_assert_uint_eq(bytes % record_bytes, 0);
	return bytes / record_bytes;
}

const uint8_t *sa_rig_record(const struct sa_rig *rig, unsigned int i, unsigned int record_bytes)
{
	return rig->table + umad_size() + HEADERS_BYTES + (size_t)i * record_bytes;
}
