/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of SA records and names of methods and attributes.
 */
#include "tools/purecm/sa.h"

#include <stdio.h>

#define SA_DATA_AT     56
#define SA_DATA_BYTES  (MAD_BYTES - SA_DATA_AT)
#define ATTR_PATH      0x35
#define ATTR_MC_MEMBER 0x38

/* clang-format off */

/* IBTA vol. 1, 15.2.5.16, PathRecord: struct, member, byte, first bit, width. */
static const struct wire_field path_fields[] = {
	WIRE_ID(sa_path_record, service_id, 0, 0, 64),
	WIRE_ADDR(sa_path_record, dgid, 8),
	WIRE_ADDR(sa_path_record, sgid, 24),
	WIRE_ID(sa_path_record, dlid, 40, 0, 16),
	WIRE_ID(sa_path_record, slid, 42, 0, 16),
	WIRE_ID(sa_path_record, flow_label, 44, 4, 20),
	WIRE(sa_path_record, hop_limit, 47, 0, 8),
	WIRE_ID(sa_path_record, tclass, 48, 0, 8),
	WIRE(sa_path_record, reversible, 49, 0, 1),
	WIRE(sa_path_record, numb_path, 49, 1, 7),
	WIRE_ID(sa_path_record, pkey, 50, 0, 16),
	WIRE(sa_path_record, qos_class, 52, 0, 12),
	WIRE(sa_path_record, sl, 53, 4, 4),
	WIRE(sa_path_record, mtu, 54, 2, 6),
	WIRE(sa_path_record, rate, 55, 2, 6),
	WIRE(sa_path_record, packet_life_time, 56, 2, 6),
};

/* IBTA vol. 1, 15.2.5.17, MCMemberRecord. */
static const struct wire_field member_fields[] = {
	WIRE_ADDR(sa_mc_member_record, mgid, 0),
	WIRE_ADDR(sa_mc_member_record, port_gid, 16),
	WIRE_ID(sa_mc_member_record, qkey, 32, 0, 32),
	WIRE_ID(sa_mc_member_record, mlid, 36, 0, 16),
	WIRE(sa_mc_member_record, mtu, 38, 2, 6),
	WIRE_ID(sa_mc_member_record, tclass, 39, 0, 8),
	WIRE_ID(sa_mc_member_record, pkey, 40, 0, 16),
	WIRE(sa_mc_member_record, rate, 42, 2, 6),
	WIRE(sa_mc_member_record, packet_life_time, 43, 2, 6),
	WIRE(sa_mc_member_record, sl, 44, 0, 4),
	WIRE_ID(sa_mc_member_record, flow_label, 44, 4, 20),
	WIRE(sa_mc_member_record, hop_limit, 47, 0, 8),
	WIRE(sa_mc_member_record, scope, 48, 0, 4),
	WIRE(sa_mc_member_record, join_state, 48, 4, 4),
};


static const struct record {
	uint16_t attr_id;
	struct wire_layout layout;
} records[] = {
	{ ATTR_PATH, WIRE_LAYOUT("PathRecord", sa_path_record, path_fields, SA_DATA_BYTES) },
	{ ATTR_MC_MEMBER, WIRE_LAYOUT("MCMemberRecord", sa_mc_member_record, member_fields,
	  SA_DATA_BYTES) },
};

static const struct {
	uint8_t method;
	const char *name;
} methods[] = {
	{ 0x01, "Get" },
	{ 0x02, "Set" },
	{ 0x12, "GetTable" },
	{ 0x15, "Delete" },
	{ 0x81, "GetResp" },
	{ 0x92, "GetTableResp" },
	{ 0x95, "DeleteResp" },
};
/* clang-format on */

static const struct wire_layout *find_layout(uint16_t attr_id)
{
	size_t i;

	for (i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		if (records[i].attr_id == attr_id)
			return &records[i].layout;
	}
	return NULL;
}

const struct wire_layout *sa_decode(const uint8_t mad[MAD_BYTES], struct mad_hdr *ret_hdr,
				    union sa_record *ret_record)
{
	const struct wire_layout *layout;

	wire_decode(&mad_hdr_layout, mad, ret_hdr);
	layout = find_layout(ret_hdr->attr_id);
	if (layout)
		wire_decode(layout, mad + SA_DATA_AT, ret_record);
	return layout;
}

const char *sa_name(const struct mad_hdr *hdr, char *buf, size_t bytes)
{
	const struct wire_layout *layout = find_layout(hdr->attr_id);
	const char *method = "method";
	char attr[16];
	size_t i;

	for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (methods[i].method == hdr->method)
			method = methods[i].name;
	}
	snprintf(attr, sizeof(attr), "0x%x", hdr->attr_id);
	snprintf(buf, bytes, "%s %s", method, layout ? layout->name : attr);
	return buf;
}
