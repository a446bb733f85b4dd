/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The field tables of the subnet administration's records, and the two functions that use them:
 * encode and decode. To check a row, compare it with the specification's table.
 */
#include "mad/sa_msg.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define MAD_BASE_VERSION 1
#define SA_HDR_BYTES	 (SA_DATA_AT - MAD_HDR_BYTES)
#define SA_OF_PAYLOAD	 20 /* bytes of the SA header, which count as payload of a segment */

/* clang-format off */

/* IBTA vol. 1, 13.6.2, RMPP header, and 15.2.1.1, SA header; byte 0 follows the MAD header. */
static const struct wire_field sa_hdr_fields[] = {
	WIRE(sa_hdr, rmpp_version, 0, 0, 8),
	WIRE(sa_hdr, rmpp_type, 1, 0, 8),
	WIRE(sa_hdr, rmpp_resp_time, 2, 0, 5),
	WIRE_ID(sa_hdr, rmpp_flags, 2, 5, 3),
	WIRE(sa_hdr, rmpp_status, 3, 0, 8),
	WIRE(sa_hdr, rmpp_data1, 4, 0, 32),
	WIRE(sa_hdr, rmpp_data2, 8, 0, 32),
	WIRE_ID(sa_hdr, sm_key, 12, 0, 64),
	WIRE(sa_hdr, attr_offset, 20, 0, 16),
	WIRE_ID(sa_hdr, comp_mask, 24, 0, 64),
};

/* IBTA vol. 1, 15.2.5.16, PathRecord. */
static const struct wire_field sa_path_fields[] = {
	WIRE_ID(sa_path, service_id, 0, 0, 64),
	WIRE_ADDR(sa_path, dgid, 8),
	WIRE_ADDR(sa_path, sgid, 24),
	WIRE_ID(sa_path, dlid, 40, 0, 16),
	WIRE_ID(sa_path, slid, 42, 0, 16),
	WIRE(sa_path, raw_traffic, 44, 0, 1),
	WIRE_ID(sa_path, flow_label, 44, 4, 20),
	WIRE(sa_path, hop_limit, 47, 0, 8),
	WIRE_ID(sa_path, traffic_class, 48, 0, 8),
	WIRE(sa_path, reversible, 49, 0, 1),
	WIRE(sa_path, numb_path, 49, 1, 7),
	WIRE_ID(sa_path, pkey, 50, 0, 16),
	WIRE(sa_path, qos_class, 52, 0, 12),
	WIRE(sa_path, sl, 53, 4, 4),
	WIRE(sa_path, mtu_selector, 54, 0, 2),
	WIRE(sa_path, mtu, 54, 2, 6),
	WIRE(sa_path, rate_selector, 55, 0, 2),
	WIRE(sa_path, rate, 55, 2, 6),
	WIRE(sa_path, packet_life_time_selector, 56, 0, 2),
	WIRE(sa_path, packet_life_time, 56, 2, 6),
	WIRE(sa_path, preference, 57, 0, 8),
};

/* IBTA vol. 1, 15.2.5.17, MCMemberRecord. */
static const struct wire_field sa_member_fields[] = {
	WIRE_ADDR(sa_member, mgid, 0),
	WIRE_ADDR(sa_member, port_gid, 16),
	WIRE_ID(sa_member, qkey, 32, 0, 32),
	WIRE_ID(sa_member, mlid, 36, 0, 16),
	WIRE(sa_member, mtu_selector, 38, 0, 2),
	WIRE(sa_member, mtu, 38, 2, 6),
	WIRE_ID(sa_member, traffic_class, 39, 0, 8),
	WIRE_ID(sa_member, pkey, 40, 0, 16),
	WIRE(sa_member, rate_selector, 42, 0, 2),
	WIRE(sa_member, rate, 42, 2, 6),
	WIRE(sa_member, packet_life_time_selector, 43, 0, 2),
	WIRE(sa_member, packet_life_time, 43, 2, 6),
	WIRE(sa_member, sl, 44, 0, 4),
	WIRE_ID(sa_member, flow_label, 44, 4, 20),
	WIRE(sa_member, hop_limit, 47, 0, 8),
	WIRE(sa_member, scope, 48, 0, 4),
	WIRE_ID(sa_member, join_state, 48, 4, 4),
	WIRE(sa_member, proxy_join, 49, 0, 1),
};

/* IBTA vol. 1, 15.2.5.14, ServiceRecord. */
static const struct wire_field sa_service_fields[] = {
	WIRE_ID(sa_service, service_id, 0, 0, 64),
	WIRE_ADDR(sa_service, gid, 8),
	WIRE_ID(sa_service, pkey, 24, 0, 16),
	WIRE(sa_service, lease_s, 28, 0, 32),
	WIRE_BLOB(sa_service, key, 32),
	WIRE_BLOB(sa_service, name, 48),
	WIRE_BLOB(sa_service, data8, 112),
	WIRE_BLOB(sa_service, data16, 128),
	WIRE_BLOB(sa_service, data32, 144),
	WIRE_BLOB(sa_service, data64, 160),
};

/* clang-format on */

const struct wire_layout sa_hdr_layout = WIRE_LAYOUT("SA", sa_hdr, sa_hdr_fields, SA_HDR_BYTES);
const struct wire_layout sa_path_layout = WIRE_LAYOUT("PathRecord", sa_path, sa_path_fields, 58);
const struct wire_layout sa_member_layout =
	WIRE_LAYOUT("MCMemberRecord", sa_member, sa_member_fields, 50);
const struct wire_layout sa_service_layout =
	WIRE_LAYOUT("ServiceRecord", sa_service, sa_service_fields, 176);

const struct wire_layout *sa_msg_layout(uint16_t attr_id)
{
	switch (attr_id) {
	case SA_ATTR_SERVICE_RECORD:
		return &sa_service_layout;
	case SA_ATTR_PATH_RECORD:
		return &sa_path_layout;
	case SA_ATTR_MCMEMBER_RECORD:
		return &sa_member_layout;
	}
	return NULL;
}

void sa_msg_init(struct sa_msg *msg, enum sa_method method, enum sa_attr attr, uint64_t comp_mask,
		 uint64_t tid)
{
	memset(msg, 0, sizeof(*msg));
	msg->hdr.base_version = MAD_BASE_VERSION;
	msg->hdr.mgmt_class = MAD_CLASS_SA;
	msg->hdr.class_version = MAD_SA_VERSION;
	msg->hdr.method = (uint8_t)method;
	msg->hdr.tid = tid;
	msg->hdr.attr_id = (uint16_t)attr;
	msg->sa.comp_mask = comp_mask;
}

void sa_msg_encode(const struct sa_msg *msg, uint8_t mad[MAD_BYTES])
{
	const struct wire_layout *record = sa_msg_layout(msg->hdr.attr_id);

	assert(record);
	memset(mad, 0, MAD_BYTES);
	wire_encode(&mad_hdr_layout, &msg->hdr, mad);
	wire_encode(&sa_hdr_layout, &msg->sa, mad + MAD_HDR_BYTES);
	wire_encode(record, &msg->path, mad + SA_DATA_AT);
}

static bool is_table(const struct mad_hdr *hdr)
{
	return hdr->method == (SA_METHOD_RESPONSE | SA_METHOD_GET_TABLE) && !hdr->status;
}

/* The header of an unassembled segment has the length of its payload. */
static size_t table_bytes(const struct sa_hdr *sa, size_t bytes)
{
	const uint8_t whole = SA_RMPP_ACTIVE | SA_RMPP_LAST;
	size_t data = bytes - SA_DATA_AT;

	if (bytes == MAD_BYTES && (sa->rmpp_flags & whole) == whole &&
	    sa->rmpp_data2 >= SA_OF_PAYLOAD && sa->rmpp_data2 - SA_OF_PAYLOAD < data)
		return sa->rmpp_data2 - SA_OF_PAYLOAD;
	return data;
}

static int find_table(const uint8_t *mad, size_t bytes, size_t least, struct sa_msg *msg)
{
	size_t data = table_bytes(&msg->sa, bytes);

	msg->record_bytes = msg->sa.attr_offset * (size_t)8;
	if (data && msg->record_bytes < least)
		return -EBADMSG;
	msg->table = mad + SA_DATA_AT;
	msg->n_records = data ? data / msg->record_bytes : 0;
	return 0;
}

void sa_msg_record(struct sa_msg *table, size_t i)
{
	assert(i < table->n_records);
	wire_decode(sa_msg_layout(table->hdr.attr_id), table->table + i * table->record_bytes,
		    &table->path);
}

int sa_msg_decode(const uint8_t *mad, size_t bytes, struct sa_msg *msg)
{
	const struct wire_layout *record;
	struct sa_msg read;
	int err = 0;

	if (bytes < SA_DATA_AT)
		return -EMSGSIZE;
	memset(&read, 0, sizeof(read));
	wire_decode(&mad_hdr_layout, mad, &read.hdr);
	if (bytes != MAD_BYTES && !is_table(&read.hdr))
		return -EMSGSIZE;
	if (read.hdr.base_version != MAD_BASE_VERSION || read.hdr.mgmt_class != MAD_CLASS_SA ||
	    read.hdr.class_version != MAD_SA_VERSION)
		return -EBADMSG;
	record = sa_msg_layout(read.hdr.attr_id);
	if (!record)
		return -ENOMSG;
	wire_decode(&sa_hdr_layout, mad + MAD_HDR_BYTES, &read.sa);
	if (is_table(&read.hdr))
		err = find_table(mad, bytes, record->wire_bytes, &read);
	else
		wire_decode(record, mad + SA_DATA_AT, &read.path);
	if (err)
		return err;
	if (read.n_records)
		sa_msg_record(&read, 0);
	*msg = read;
	return 0;
}
