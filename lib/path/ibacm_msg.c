/* SPDX-License-Identifier: BSD-2-Clause */
/* Encodes requests to ibacm and decodes its responses: see ibacm_msg.h. */
#include "lib/path/ibacm_msg.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <string.h>

#define VERSION		 1
#define OP_RESOLVE	 1
#define OP_ANSWER	 0x80 /* with the opcode of the request */

#define FLAG_SOURCE	 1u
#define FLAG_DESTINATION 2u
#define FLAG_NO_DELAY	 (1u << 30)

#define TYPE_IPV4	 2
#define TYPE_IPV6	 3
#define TYPE_PATH	 0x10

/* clang-format off */
static const struct wire_field header_fields[] = {
	WIRE(ibacm_header, version, 0, 0, 8),
	WIRE(ibacm_header, opcode, 1, 0, 8),
	WIRE(ibacm_header, status, 2, 0, 8),
	WIRE(ibacm_header, length, 6, 0, 16),
	WIRE_ID(ibacm_header, tid, 8, 0, 64),
};

static const struct wire_field entry_fields[] = {
	WIRE_ID(ibacm_entry, flags, 0, 0, 32),
	WIRE_ID(ibacm_entry, type, 4, 0, 16),
	WIRE_BLOB(ibacm_entry, data, 8),
};
/* clang-format on */

const struct wire_layout ibacm_header_layout =
	WIRE_LAYOUT("ibacm header", ibacm_header, header_fields, IBACM_HEADER_BYTES);
const struct wire_layout ibacm_entry_layout =
	WIRE_LAYOUT("ibacm entry", ibacm_entry, entry_fields, IBACM_ENTRY_BYTES);

/* The field engine writes big-endian; swapping first yields the host's order. */
static void put_header(const struct ibacm_header *header, uint8_t *wire)
{
	struct ibacm_header swapped = *header;

	swapped.length = htobe16(header->length);
	swapped.tid = htobe64(header->tid);
	wire_encode(&ibacm_header_layout, &swapped, wire);
}

static void put_entry(const struct ibacm_entry *entry, uint8_t *wire)
{
	struct ibacm_entry swapped = *entry;

	swapped.flags = htobe32(entry->flags);
	swapped.type = htobe16(entry->type);
	wire_encode(&ibacm_entry_layout, &swapped, wire);
}

/* --- requests ------------------------------------------------------------- */

static bool put_address(const struct sockaddr *sa, uint32_t flags, uint8_t *wire)
{
	struct ibacm_entry entry = { .flags = flags };

	switch (sa ? sa->sa_family : AF_UNSPEC) {
	case AF_INET:
		entry.type = TYPE_IPV4;
		memcpy(entry.data, &((const struct sockaddr_in *)sa)->sin_addr, 4);
		break;
	case AF_INET6:
		entry.type = TYPE_IPV6;
		memcpy(entry.data, &((const struct sockaddr_in6 *)sa)->sin6_addr, 16);
		break;
	default:
		return false;
	}
	put_entry(&entry, wire);
	return true;
}

static bool is_gid(const struct sockaddr *sa)
{
	return sa && sa->sa_family == AF_IB;
}

/* GIDs are passed as a path record without other fields. */
static size_t put_gids(const struct ibacm_question *question, uint8_t *wire)
{
	struct ibacm_entry entry = { .type = TYPE_PATH };
	struct ibv_path_record path = { 0 };

	if (is_gid(question->src))
		memcpy(&path.sgid, &((const struct sockaddr_ib *)question->src)->sib_addr, 16);
	if (is_gid(question->dst))
		memcpy(&path.dgid, &((const struct sockaddr_ib *)question->dst)->sib_addr, 16);
	memcpy(entry.data, &path, sizeof(path));
	put_entry(&entry, wire);
	return IBACM_ENTRY_BYTES;
}

static size_t put_addresses(const struct ibacm_question *question, uint8_t *wire)
{
	uint32_t flags = question->no_delay ? FLAG_NO_DELAY : 0;
	size_t bytes = 0;

	if (put_address(question->src, FLAG_SOURCE, wire))
		bytes += IBACM_ENTRY_BYTES;
	if (put_address(question->dst, FLAG_DESTINATION | flags, wire + bytes))
		bytes += IBACM_ENTRY_BYTES;
	return bytes;
}

size_t ibacm_encode(const struct ibacm_question *question, uint64_t tid,
		    uint8_t wire[IBACM_MESSAGE_BYTES])
{
	struct ibacm_header header = { .version = VERSION, .opcode = OP_RESOLVE, .tid = tid };
	size_t bytes;

	memset(wire, 0, IBACM_MESSAGE_BYTES);
	if (is_gid(question->src) || is_gid(question->dst))
		bytes = put_gids(question, wire + IBACM_HEADER_BYTES);
	else
		bytes = put_addresses(question, wire + IBACM_HEADER_BYTES);
	if (!bytes)
		return 0;
	header.length = (uint16_t)(IBACM_HEADER_BYTES + bytes);
	put_header(&header, wire);
	return header.length;
}

/* --- responses ------------------------------------------------------------- */

int ibacm_check(const uint8_t wire[IBACM_HEADER_BYTES], uint64_t tid, size_t *ret_bytes)
{
	struct ibacm_header header;

	wire_decode(&ibacm_header_layout, wire, &header);
	header.length = be16toh(header.length);
	header.tid = be64toh(header.tid);
	if (header.version != VERSION || (header.opcode & ~OP_ANSWER) != OP_RESOLVE ||
	    header.tid != tid || header.length < IBACM_HEADER_BYTES ||
	    header.length > IBACM_MESSAGE_BYTES ||
	    (header.length - IBACM_HEADER_BYTES) % IBACM_ENTRY_BYTES)
		return -EBADMSG;
	*ret_bytes = header.length - IBACM_HEADER_BYTES;
	return header.status ? -ENOENT : 0;
}

static void take_source(const struct ibacm_entry *entry, struct ibacm_answer *answer)
{
	if (!(entry->flags & FLAG_SOURCE))
		return;
	addr_set_any(&answer->src, entry->type == TYPE_IPV4 ? AF_INET : AF_INET6);
	if (entry->type == TYPE_IPV4)
		memcpy(&answer->src.in4.sin_addr, entry->data, 4);
	else
		memcpy(&answer->src.in6.sin6_addr, entry->data, 16);
}

void ibacm_decode(const uint8_t *wire, size_t bytes, struct ibacm_answer *ret)
{
	struct ibacm_entry entry;
	struct ibv_path_data *path;
	size_t at;

	memset(ret, 0, sizeof(*ret));
	for (at = 0; at < bytes; at += IBACM_ENTRY_BYTES) {
		wire_decode(&ibacm_entry_layout, wire + at, &entry);
		entry.flags = be32toh(entry.flags);
		entry.type = be16toh(entry.type);
		if (entry.type == TYPE_PATH) {
			path = &ret->path[ret->n_paths++];
			path->flags = entry.flags;
			memcpy(&path->path, entry.data, sizeof(path->path));
		} else if (entry.type == TYPE_IPV4 || entry.type == TYPE_IPV6) {
			take_source(&entry, ret);
		}
	}
}
