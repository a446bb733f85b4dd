/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The encoding of the records between library and cmportd, as rows: see proto.h. A record has its
 * type, its length in bytes including the head, the body that the layout of its type describes,
 * and, for some types, a tail without its trailing zeros.
 */
#include "lib/portd/proto/proto.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "mad/wire_known.h"

struct head {
	uint16_t type;
	uint16_t bytes;
};

static const struct wire_field head_rows[] = {
	WIRE(head, type, 0, 0, 16),
	WIRE(head, bytes, 2, 0, 16),
};
static const struct wire_layout head_layout =
	WIRE_LAYOUT("head", head, head_rows, PORTD_HEAD_BYTES);

static const struct wire_field hello_rows[] = {
	WIRE(portd_hello, version, 0, 0, 16),
	WIRE(portd_hello, resumes, 2, 0, 8),
	WIRE(portd_hello, visits, 3, 0, 8),
};

static const struct wire_field open_port_rows[] = {
	WIRE(portd_open_port, port_num, 0, 0, 8),
	WIRE_BLOB(portd_open_port, device, 4),
};

static const struct wire_field claim_rows[] = {
	WIRE(portd_claim, claim_id, 0, 0, 32),	  WIRE_ID(portd_claim, ps, 4, 0, 16),
	WIRE(portd_claim, reuseaddr, 6, 0, 8),	  WIRE(portd_claim, afonly, 7, 0, 8),
	WIRE(portd_claim, local_family, 8, 0, 8), WIRE(portd_claim, peer_family, 9, 0, 8),
	WIRE(portd_claim, local_port, 10, 0, 16), WIRE(portd_claim, peer_port, 12, 0, 16),
	WIRE(portd_claim, heard_at, 14, 0, 8),	  WIRE_ADDR(portd_claim, local_addr, 16),
	WIRE_ADDR(portd_claim, peer_addr, 32),	  WIRE(portd_claim, local_scope, 48, 0, 32),
	WIRE(portd_claim, peer_scope, 52, 0, 32),
};

static const struct wire_field lease_ports_rows[] = {
	WIRE_ID(portd_lease_ports, ps, 0, 0, 16),
	WIRE(portd_lease_ports, count, 2, 0, 16),
};

static const struct wire_field ids_rows[] = {
	WIRE_ID(portd_ids, first, 0, 0, 32),
	WIRE(portd_ids, count, 4, 0, 32),
	WIRE_ID(portd_ids, secret, 8, 0, 64),
};

/* The fields of a path, from byte @at of a struct that has one: 36 bytes. */
#define PATH_ROWS(type, at)                                                                      \
	WIRE(type, path.pkey_index, (at), 0, 16), WIRE(type, path.dlid, (at) + 2, 0, 16),        \
		WIRE(type, path.sl, (at) + 4, 0, 8), WIRE(type, path.path_bits, (at) + 5, 0, 8), \
		WIRE(type, path.sgid_index, (at) + 6, 0, 8),                                     \
		WIRE(type, path.hop_limit, (at) + 7, 0, 8),                                      \
		WIRE(type, path.traffic_class, (at) + 8, 0, 8),                                  \
		WIRE(type, path.grh, (at) + 9, 7, 1),                                            \
		WIRE(type, path.flow_label, (at) + 12, 0, 32),                                   \
		WIRE_ADDR(type, path.dgid, (at) + 16)
#define PATH_BYTES 32

static const struct wire_field tracked_rows[] = {
	WIRE(cm_record, state, 0, 0, 8),
	WIRE(cm_record, active, 1, 0, 8),
	WIRE(cm_record, handle, 2, 0, 8),
	WIRE(cm_record, packet_life_time, 3, 0, 8),
	WIRE_ID(cm_record, local_comm_id, 4, 0, 32),
	WIRE_ID(cm_record, remote_comm_id, 8, 0, 32),
	WIRE_ID(cm_record, local_qpn, 12, 0, 32),
	WIRE_ID(cm_record, remote_qpn, 16, 0, 32),
	WIRE(cm_record, local_ack_timeout, 20, 0, 8),
	WIRE_ID(cm_record, remote_ca_guid, 24, 0, 64),
	WIRE_ID(cm_record, tid, 32, 0, 64),
	PATH_ROWS(cm_record, 40),
};

static const struct wire_field reply_rows[] = {
	WIRE(portd_reply, error, 0, 0, 16),	  WIRE(portd_reply, handle, 2, 0, 8),
	WIRE(portd_reply, tos, 3, 0, 8),	  WIRE(portd_reply, port, 4, 0, 16),
	WIRE_ID(portd_reply, first, 8, 0, 32),	  WIRE(portd_reply, count, 12, 0, 32),
	WIRE_ID(portd_reply, ca_guid, 16, 0, 64), WIRE_ADDR(portd_reply, gid0, 24),
	WIRE_BLOB(portd_reply, text, 40),
};

static const struct wire_field mad_rows[] = {
	WIRE(portd_mad, port, 0, 0, 8),
	WIRE(portd_mad, again, 1, 0, 8),
	PATH_ROWS(portd_mad, 4),
};

static const struct wire_field close_rows[] = {
	WIRE_ID(portd_close, local_comm_id, 0, 0, 32),
	WIRE_ID(portd_close, remote_comm_id, 4, 0, 32),
	WIRE_ADDR(portd_close, peer_gid, 8),
	WIRE_ID(portd_close, remote_ca_guid, 24, 0, 64),
	WIRE_ID(portd_close, n_heard, 32, 0, 32),
};

static const struct wire_field gone_rows[] = {
	WIRE(portd_gone, port, 0, 0, 8),
};

static const struct wire_field port_tos_rows[] = {
	WIRE(portd_port_tos, port, 0, 0, 8),
	WIRE(portd_port_tos, tos, 1, 0, 8),
};

static const struct wire_field sa_ask_rows[] = {
	WIRE(portd_sa_ask, port, 0, 0, 8),	  WIRE_ID(portd_sa_ask, method, 1, 0, 8),
	WIRE_ID(portd_sa_ask, attr, 2, 0, 16),	  WIRE(portd_sa_ask, ask_id, 4, 0, 32),
	WIRE(portd_sa_ask, timeout_ms, 8, 0, 32), WIRE_ID(portd_sa_ask, comp_mask, 16, 0, 64),
	WIRE_BLOB(portd_sa_ask, record, 24),
};

static const struct wire_field sa_drop_rows[] = {
	WIRE(portd_sa_drop, ask_id, 0, 0, 32),
};

static const struct wire_field sa_revalidate_rows[] = {
	WIRE(portd_sa_revalidate, port, 0, 0, 8),
	WIRE_ADDR(portd_sa_revalidate, dgid, 4),
};

static const struct wire_field sa_told_rows[] = {
	WIRE(portd_sa_told, ask_id, 0, 0, 32),
	WIRE(portd_sa_told, error, 4, 0, 16),
	WIRE(portd_sa_told, left, 6, 0, 16),
	WIRE_BLOB(portd_sa_told, record, 8),
};

static const struct wire_field stat_rows[] = {
	WIRE(portd_stat, pid, 0, 0, 32),
};

static const struct wire_field stat_ask_rows[] = {
	WIRE(portd_stat_ask, ask_id, 0, 0, 32),
};

/* The head of every row of STAT_*: 6 bytes. */
#define STAT_ROWS(type) WIRE(type, row.ask_id, 0, 0, 32), WIRE(type, row.client, 4, 0, 16)

static const struct wire_field stat_port_rows[] = {
	STAT_ROWS(portd_stat_port),
	WIRE(portd_stat_port, port, 6, 0, 8),
	WIRE(portd_stat_port, port_num, 7, 0, 8),
	WIRE_BLOB(portd_stat_port, device, 8),
	WIRE_ADDR(portd_stat_port, gid0, 72),
};

static const struct wire_field stat_process_rows[] = {
	STAT_ROWS(portd_stat_process),
	WIRE(portd_stat_process, pid, 8, 0, 32),
	WIRE(portd_stat_process, uid, 12, 0, 32),
	WIRE(portd_stat_process, n_conns, 16, 0, 32),
};

static const struct wire_field stat_quota_rows[] = {
	STAT_ROWS(portd_stat_quota),
	WIRE(portd_stat_quota, was_reached, 6, 0, 8),
	WIRE(portd_stat_quota, uid, 8, 0, 32),
	WIRE(portd_stat_quota, has, 12, 0, 32),
	WIRE(portd_stat_quota, limit, 16, 0, 32),
	WIRE_BLOB(portd_stat_quota, name, 20),
};

static const struct wire_field stat_id_rows[] = {
	STAT_ROWS(portd_stat_id),
	WIRE(portd_stat_id, id_state, 6, 0, 8),
	WIRE(portd_stat_id, conn_state, 7, 0, 8),
	WIRE(portd_stat_id, active, 8, 0, 8),
	WIRE(portd_stat_id, port, 9, 0, 8),
	WIRE(portd_stat_id, family, 10, 0, 8),
	WIRE(portd_stat_id, qp_type, 11, 0, 8),
	WIRE_ID(portd_stat_id, ps, 12, 0, 16),
	WIRE(portd_stat_id, local_port, 14, 0, 16),
	WIRE(portd_stat_id, peer_port, 16, 0, 16),
	WIRE_ADDR(portd_stat_id, local_addr, 20),
	WIRE_ADDR(portd_stat_id, peer_addr, 36),
	WIRE_ADDR(portd_stat_id, peer_gid, 52),
	WIRE_ID(portd_stat_id, local_comm_id, 68, 0, 32),
	WIRE_ID(portd_stat_id, remote_comm_id, 72, 0, 32),
	WIRE_ID(portd_stat_id, local_qpn, 76, 0, 32),
	WIRE_ID(portd_stat_id, remote_qpn, 80, 0, 32),
	WIRE(portd_stat_id, n_requests, 84, 0, 32),
	WIRE(portd_stat_id, retries, 88, 0, 32),
	WIRE(portd_stat_id, age_ms, 92, 0, 64),
};

static const struct wire_field stat_count_rows[] = {
	STAT_ROWS(portd_stat_count),
	WIRE(portd_stat_count, port, 6, 0, 8),
	WIRE(portd_stat_count, message, 7, 0, 8),
	WIRE(portd_stat_count, what, 8, 0, 8),
	WIRE(portd_stat_count, value, 12, 0, 64),
};

static const struct wire_field stat_end_rows[] = {
	STAT_ROWS(portd_stat_end),
	WIRE(portd_stat_end, is_partial, 6, 0, 8),
	WIRE(portd_stat_end, n_rows, 8, 0, 32),
};

#define LAYOUT(type, rows, bytes) WIRE_LAYOUT(#rows, type, rows##_rows, bytes)

static const struct wire_layout layouts[PORTD_N_TYPES] = {
	[PORTD_HELLO] = LAYOUT(portd_hello, hello, 4),
	[PORTD_OPEN_PORT] = LAYOUT(portd_open_port, open_port, 4 + PORTD_DEVICE_BYTES),
	[PORTD_BIND] = LAYOUT(portd_claim, claim, 56),
	[PORTD_LISTEN] = LAYOUT(portd_claim, claim, 56),
	[PORTD_UPDATE] = LAYOUT(portd_claim, claim, 56),
	[PORTD_RELEASE] = LAYOUT(portd_claim, claim, 56),
	[PORTD_LEASE_PORTS] = LAYOUT(portd_lease_ports, lease_ports, 4),
	[PORTD_LEASE_AHEAD] = LAYOUT(portd_lease_ports, lease_ports, 4),
	[PORTD_LEASE_IDS] = LAYOUT(portd_ids, ids, 16),
	[PORTD_HOLD_IDS] = LAYOUT(portd_ids, ids, 16),
	[PORTD_TRACK] = LAYOUT(cm_record, tracked, 40 + PATH_BYTES),
	[PORTD_RESUMED] = LAYOUT(portd_ids, ids, 16),
	[PORTD_REPLY] = LAYOUT(portd_reply, reply, 40 + PORTD_TEXT_BYTES),
	[PORTD_MAD] = LAYOUT(portd_mad, mad, 4 + PATH_BYTES),
	[PORTD_CLOSE] = LAYOUT(portd_close, close, 36),
	[PORTD_GONE] = LAYOUT(portd_gone, gone, 4),
	[PORTD_SA_ASK] = LAYOUT(portd_sa_ask, sa_ask, 24 + PORTD_SA_BYTES),
	[PORTD_SA_DROP] = LAYOUT(portd_sa_drop, sa_drop, 4),
	[PORTD_SA_REVALIDATE] = LAYOUT(portd_sa_revalidate, sa_revalidate, 20),
	[PORTD_SA_TOLD] = LAYOUT(portd_sa_told, sa_told, 8 + PORTD_SA_BYTES),
	[PORTD_PORT_TOS] = LAYOUT(portd_port_tos, port_tos, 4),
	[PORTD_STAT] = LAYOUT(portd_stat, stat, 4),
	[PORTD_STAT_ASK] = LAYOUT(portd_stat_ask, stat_ask, 4),
	[PORTD_STAT_PORT] = LAYOUT(portd_stat_port, stat_port, 88),
	[PORTD_STAT_PROCESS] = LAYOUT(portd_stat_process, stat_process, 20),
	[PORTD_STAT_ID] = LAYOUT(portd_stat_id, stat_id, 100),
	[PORTD_STAT_COUNT] = LAYOUT(portd_stat_count, stat_count, 20),
	[PORTD_STAT_END] = LAYOUT(portd_stat_end, stat_end, 12),
	[PORTD_STAT_QUOTA] = LAYOUT(portd_stat_quota, stat_quota, 20 + PORTD_QUOTA_BYTES),
};

/* Data after the body of a record, up to its trailing zeros: most of a CM message is zero. */
struct tail {
	size_t at; /* in struct portd_record */
	size_t bytes;
};

static const struct tail tails[PORTD_N_TYPES] = {
	[PORTD_MAD] = { offsetof(struct portd_record, mad.mad), MAD_BYTES },
};

/* Required in common by all versions. */
_Static_assert(PORTD_HELLO == 1 && PORTD_REPLY == 14, "they understand each other's refusal");

enum manner {
	ASKED,
	ONE_WAY,
	ANSWER,
	DATA,
	TOLD,
};

static const enum manner manners[PORTD_N_TYPES] = { [PORTD_NONE] = ANSWER,
#define X(name, manner) [PORTD_##name] = manner,
						    PORTD_RECORDS(X)
#undef X
};

static const char *const names[PORTD_N_TYPES] = { [PORTD_NONE] = "?",
#define X(name, manner) [PORTD_##name] = #name,
						  PORTD_RECORDS(X)
#undef X
};

static size_t used_bytes(const uint8_t *data, size_t bytes)
{
	uint64_t word;

	for (; bytes >= sizeof(word); bytes -= sizeof(word)) {
		memcpy(&word, data + bytes - sizeof(word), sizeof(word));
		if (word)
			break;
	}
	while (bytes && !data[bytes - 1])
		bytes--;
	return bytes;
}

bool portd_put(struct portd_datagram *datagram, const struct portd_record *record)
{
	const struct tail *tail = &tails[record->type];
	const uint8_t *from = (const uint8_t *)record + tail->at;
	size_t tail_bytes = used_bytes(from, tail->bytes);
	size_t body_bytes = layouts[record->type].wire_bytes;
	struct head head = { record->type, (uint16_t)(PORTD_HEAD_BYTES + body_bytes + tail_bytes) };
	uint8_t *wire = datagram->data + datagram->bytes;

	assert(record->type > PORTD_NONE && record->type < PORTD_N_TYPES);

	if (sizeof(datagram->data) - datagram->bytes < head.bytes)
		return false;
	wire_encode_known(&head_layout, &head, wire);
	wire += PORTD_HEAD_BYTES;
	memset(wire, 0, body_bytes);
	if (record->type == PORTD_MAD) /* nearly all records */
		wire_encode_known(&layouts[PORTD_MAD], &record->mad, wire);
	else
		wire_encode(&layouts[record->type], &record->hello, wire);
	memcpy(wire + body_bytes, from, tail_bytes);
	datagram->bytes += head.bytes;
	return true;
}

int portd_get(struct portd_datagram *datagram, struct portd_record *ret)
{
	const uint8_t *wire = datagram->data + datagram->at;
	size_t left = datagram->bytes - datagram->at;
	struct head head = { 0 };
	const struct tail *tail;
	size_t least;

	if (left == 0)
		return -ENODATA;
	if (left < PORTD_HEAD_BYTES)
		return -EPROTO;
	wire_decode_known(&head_layout, wire, &head);
	if (head.type == PORTD_NONE || head.type >= PORTD_N_TYPES || head.bytes > left)
		return -EPROTO;
	tail = &tails[head.type];
	least = PORTD_HEAD_BYTES + layouts[head.type].wire_bytes;
	if (head.bytes < least || head.bytes > least + tail->bytes)
		return -EPROTO;
	ret->type = (enum portd_type)head.type;
	if (head.type == PORTD_MAD) {
		memset(&ret->mad, 0, offsetof(struct portd_mad, mad));
		wire_decode_known(&layouts[PORTD_MAD], wire + PORTD_HEAD_BYTES, &ret->mad);
	} else {
		wire_decode(&layouts[head.type], wire + PORTD_HEAD_BYTES, &ret->hello);
	}
	memset((uint8_t *)ret + tail->at, 0, tail->bytes);
	memcpy((uint8_t *)ret + tail->at, wire + least, head.bytes - least);
	datagram->at += head.bytes;
	return 0;
}

const char *portd_type_str(enum portd_type type)
{
	return names[type < PORTD_N_TYPES ? type : PORTD_NONE];
}

bool portd_is_asked(enum portd_type type)
{
	return manners[type] == ASKED || manners[type] == ONE_WAY;
}

bool portd_is_told(enum portd_type type)
{
	return manners[type] == TOLD;
}

bool portd_is_one_way(enum portd_type type)
{
	return manners[type] == ONE_WAY;
}
