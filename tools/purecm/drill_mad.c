/* SPDX-License-Identifier: BSD-2-Clause */
/* Fields of messages by name: lookup, defaults, setting, comparison. */
#include "tools/purecm/drill_mad.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/purecm/field.h"

#define IDS "local_comm_id=$ours remote_comm_id=$theirs "
#define IP_HEADER                                          \
	"ip.ip_version=$ip_version ip.src_port=$our_port " \
	"ip.src_addr=$our_ip ip.dst_addr=$their_ip "

/* clang-format off */
static const struct {
	uint16_t attr_id;
	const char *name;
	const char *defaults; /* in the syntax of scripts */
} messages[] = {
	{ CM_ATTR_REQ, "REQ",
	  "local_comm_id=$ours service_id=$tcp_service local_ca_guid=$our_guid local_qpn=$our_qpn "
	  "responder_resources=1 initiator_depth=1 remote_cm_response_timeout=20 "
	  "starting_psn=$our_psn local_cm_response_timeout=20 retry_count=7 pkey=0xffff path_mtu=3 "
	  "rnr_retry_count=7 max_cm_retries=15 primary.local_lid=$lid primary.remote_lid=$lid "
	  "primary.local_gid=$here primary.remote_gid=$there primary.hop_limit=$hop_limit "
	  "primary.subnet_local=$subnet_local primary.local_ack_timeout=19 " IP_HEADER },
	{ CM_ATTR_MRA, "MRA", IDS "message=0 service_timeout=20" },
	{ CM_ATTR_REJ, "REJ", IDS "message=0 reason=28" },
	{ CM_ATTR_REP, "REP",
	  IDS "local_qpn=$our_qpn starting_psn=$our_psn responder_resources=1 initiator_depth=1 "
	  "target_ack_delay=15 rnr_retry_count=7 local_ca_guid=$our_guid" },
	{ CM_ATTR_RTU, "RTU", IDS },
	{ CM_ATTR_DREQ, "DREQ", IDS "remote_qpn=$their_qpn" },
	{ CM_ATTR_DREP, "DREP", IDS },
	{ CM_ATTR_SIDR_REQ, "SIDR_REQ",
	  "request_id=$ours pkey=0xffff service_id=$udp_service " IP_HEADER },
	{ CM_ATTR_SIDR_REP, "SIDR_REP",
	  "request_id=$theirs status=0 qpn=$our_qpn service_id=$udp_service qkey=0x1234567" },
	{ CM_ATTR_LAP, "LAP", IDS "remote_qpn=$their_qpn remote_cm_response_timeout=20" },
	{ CM_ATTR_APR, "APR", IDS },
};
/* clang-format on */

#define N_MESSAGES (sizeof(messages) / sizeof(messages[0]))

uint16_t drill_message_attr(const char *name)
{
	size_t i;

	for (i = 0; i < N_MESSAGES; i++) {
		if (strcmp(messages[i].name, name) == 0)
			return messages[i].attr_id;
	}
	return 0;
}

const char *drill_message_defaults(uint16_t attr_id)
{
	size_t i;

	for (i = 0; i < N_MESSAGES; i++) {
		if (messages[i].attr_id == attr_id)
			return messages[i].defaults;
	}
	return "";
}

/* --- lookup --------------------------------------------------------------- */

static int find_row(const struct wire_layout *layout, const char *name, enum drill_part part,
		    struct drill_field *ret)
{
	const struct wire_field *row = field_find(layout, name);
	size_t i;

	if (!row)
		return -ENOENT;
	*ret = (struct drill_field){ .part = part, .row = row };
	if (row->kind == WIRE_BYTES)
		ret->n_bytes = row->size;
	for (i = 0; row->kind == WIRE_UINT && i < layout->n_fields; i++) {
		if (strcmp(layout->field[i].name, name) == 0)
			ret->bits += layout->field[i].width;
	}
	return 0;
}

static int find_raw(const char *number, struct drill_field *ret)
{
	char *end;
	unsigned long at = strtoul(number, &end, 10);

	if (*end || end == number || at >= MAD_BYTES)
		return -ENOENT;
	*ret = (struct drill_field){ .part = DRILL_IN_RAW, .at = (unsigned int)at, .bits = 8 };
	return 0;
}

static bool has_ip(uint16_t attr_id)
{
	return attr_id == CM_ATTR_REQ || attr_id == CM_ATTR_SIDR_REQ;
}

/* The offset of private data in the MAD. */
static const struct wire_field *private_row(uint16_t attr_id)
{
	return field_find(cm_msg_layout(attr_id), "private_data");
}

static int find_user_data(uint16_t attr_id, struct drill_field *ret)
{
	const struct wire_field *row = private_row(attr_id);

	*ret = (struct drill_field){ .part = DRILL_IN_RAW,
				     .at = MAD_HDR_BYTES + row->byte + CMA_HDR_BYTES,
				     .n_bytes = row->size - CMA_HDR_BYTES };
	return 0;
}

int drill_field_find(uint16_t attr_id, const char *name, struct drill_field *ret)
{
	if (strncmp(name, "mad.", 4) == 0)
		return find_row(&mad_hdr_layout, name + 4, DRILL_IN_HEADER, ret);
	if (strncmp(name, "byte.", 5) == 0)
		return find_raw(name + 5, ret);
	if (has_ip(attr_id) && strncmp(name, "ip.", 3) == 0)
		return find_row(&cma_hdr_layout, name + 3, DRILL_IN_IP, ret);
	if (has_ip(attr_id) && strcmp(name, "user_data") == 0)
		return find_user_data(attr_id, ret);
	return find_row(cm_msg_layout(attr_id), name, DRILL_IN_BODY, ret);
}

int drill_field_takes(const struct drill_field *field, const struct drill_value *value)
{
	const uint64_t most = value->kind == DRILL_RANGE ? value->last : value->number;

	switch (value->kind) {
	case DRILL_NUMBER:
	case DRILL_RANGE:
		if (!field->bits)
			return -EINVAL;
		return field->bits < 64 && most >> field->bits ? -ERANGE : 0;
	case DRILL_BYTES:
		if (field->bits)
			return -EINVAL;
		return value->n_bytes > field->n_bytes ? -ERANGE : 0;
	case DRILL_WORD:
		return -EINVAL;
	case DRILL_VARIABLE:
	case DRILL_RANDOM:
	case DRILL_ANY:
	case DRILL_CAPTURE:
		return 0;
	}
	return -EINVAL;
}

/* --- a message ----------------------------------------------------------- */

/* The offset of the host struct of a part's rows. */
static size_t host_at(enum drill_part part)
{
	if (part == DRILL_IN_HEADER)
		return offsetof(struct drill_mad, msg.hdr);
	if (part == DRILL_IN_IP)
		return offsetof(struct drill_mad, ip);
	return offsetof(struct drill_mad, msg.req);
}

static size_t member_at(const struct drill_field *field)
{
	if (field->part == DRILL_IN_RAW)
		return offsetof(struct drill_mad, raw) + field->at;
	return host_at(field->part) + field->row->offset;
}

void drill_mad_begin(struct drill_mad *mad, uint16_t attr_id, uint64_t tid)
{
	memset(mad, 0, sizeof(*mad));
	cm_msg_init(&mad->msg, (enum cm_attr)attr_id, tid);
}

static void set_number(void *member, uint16_t size, uint64_t number)
{
	const uint8_t *bytes = (const uint8_t *)&number;

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	bytes += sizeof(number) - size;
#endif
	memcpy(member, bytes, size);
}

static void set_bytes(void *member, size_t size, const struct drill_value *value)
{
	memset(member, 0, size);
	memcpy(member, value->bytes, value->n_bytes);
}

void drill_mad_set(struct drill_mad *mad, const struct drill_field *field,
		   const struct drill_value *value)
{
	uint8_t *member = (uint8_t *)mad + member_at(field);

	if (field->bits)
		set_number(member, field->row ? field->row->size : 1, value->number);
	else
		set_bytes(member, field->n_bytes, value);
	if (field->part == DRILL_IN_HEADER)
		wire_encode(&mad_hdr_layout, &mad->msg.hdr, mad->raw);
}

void drill_mad_encode(struct drill_mad *mad)
{
	const uint16_t attr_id = mad->msg.hdr.attr_id;
	const struct wire_field *row;

	cm_msg_encode(&mad->msg, mad->raw);
	if (!has_ip(attr_id) || !mad->ip.ip_version)
		return;
	row = private_row(attr_id);
	wire_encode(&cma_hdr_layout, &mad->ip, mad->raw + MAD_HDR_BYTES + row->byte);
}

int drill_mad_decode(const uint8_t raw[MAD_BYTES], struct drill_mad *ret)
{
	int err;

	memset(ret, 0, sizeof(*ret));
	memcpy(ret->raw, raw, MAD_BYTES);
	err = cm_msg_decode(raw, MAD_BYTES, &ret->msg);
	if (!err && has_ip(ret->msg.hdr.attr_id))
		wire_decode(&cma_hdr_layout,
			    raw + MAD_HDR_BYTES + private_row(ret->msg.hdr.attr_id)->byte,
			    &ret->ip);
	return err;
}

void drill_mad_get(const struct drill_mad *mad, const struct drill_field *field,
		   struct drill_value *ret)
{
	const uint8_t *member = (const uint8_t *)mad + member_at(field);

	memset(ret, 0, sizeof(*ret));
	ret->kind = field->bits ? DRILL_NUMBER : DRILL_BYTES;
	if (field->bits && field->row) {
		ret->number = field_uint(field->row, (const uint8_t *)mad + host_at(field->part));
	} else if (field->bits) {
		ret->number = *member;
	} else {
		ret->n_bytes = field->n_bytes;
		memcpy(ret->bytes, member, field->n_bytes);
	}
}

bool drill_mad_is_same(const uint8_t a[MAD_BYTES], const uint8_t b[MAD_BYTES])
{
	return cm_mad_attr(a) == cm_mad_attr(b) &&
	       memcmp(a + MAD_HDR_BYTES, b + MAD_HDR_BYTES, CM_BODY_BYTES) == 0;
}

bool drill_value_matches(const struct drill_value *wanted, const struct drill_value *value)
{
	switch (wanted->kind) {
	case DRILL_NUMBER:
		return value->kind == DRILL_NUMBER && value->number == wanted->number;
	case DRILL_RANGE:
		return value->kind == DRILL_NUMBER && value->number >= wanted->number &&
		       value->number <= wanted->last;
	case DRILL_WORD:
	case DRILL_BYTES:
		if (value->kind != wanted->kind || value->n_bytes < wanted->n_bytes)
			return false;
		if (wanted->kind == DRILL_WORD && value->n_bytes != wanted->n_bytes)
			return false;
		return memcmp(value->bytes, wanted->bytes, wanted->n_bytes) == 0;
	case DRILL_ANY:
	case DRILL_CAPTURE:
		return true;
	case DRILL_VARIABLE:
	case DRILL_RANDOM:
		return false;
	}
	return false;
}
