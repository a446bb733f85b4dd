/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocol of stream sockets besides data: the private data of REQ and REP, the immediate data
 * of messages, and the table entries that are written to the peer's memory.
 *
 * Entries are in the byte order of the host that owns the memory, everything else is big-endian.
 */
#ifndef LIB_RSOCKET_STREAM_WIRE_H
#define LIB_RSOCKET_STREAM_WIRE_H

#include <stdbool.h>

#include "mad/wire.h"

#define RS_VERSION	 1
#define RS_HELLO_BYTES	 40
#define RS_TABLE_ENTRIES 2 /* the halves of a receive buffer */

/* The private data of REQ and REP. */
struct rs_hello {
	uint8_t version;
	bool has_iomap;
	bool big_endian;
	uint16_t credits;     /* number of messages that it can receive */
	uint8_t iomap_scaled; /* see rs_scale_decode() */
	uint64_t table_addr;  /* entries of halves, followed by those of buffers for riowrite() */
	uint32_t table_key;
	uint32_t table_entries; /* number of entries of halves */
	uint64_t half_addr;	/* the first half of its receive buffer */
	uint32_t half_key;
	uint32_t half_bytes;
};

extern const struct wire_layout rs_hello_layout;

/** rs_scale_encode() - encode a number of entries in 8 bits, rounded down */
uint8_t rs_scale_encode(uint32_t count);
uint32_t rs_scale_decode(uint8_t scaled);

/*
 * The operation of a message, the upper 3 bits of its immediate data, and the meaning of its value.
 */
enum rs_op {
	RS_OP_DATA = 0,	 /* bytes written to the current half */
	RS_OP_WRITE = 2, /* local: a riowrite(), which sends no message */
	RS_OP_SGL = 4,	 /* credit, up to this message number */
	RS_OP_IOMAP = 6, /* index of the entry that was written */
	RS_OP_CTRL = 7,	 /* enum rs_ctrl */
};

enum rs_ctrl {
	RS_CTRL_DISCONNECT = 0, /* no longer sends or receives */
	RS_CTRL_KEEPALIVE = 1,
	RS_CTRL_SHUTDOWN = 2, /* no longer sends */
};

#define RS_VALUE_BITS 29

/** rs_message() - the immediate data of a message, in host order, as for the next two */
static inline uint32_t rs_message(enum rs_op op, uint32_t value)
{
	return (uint32_t)op << RS_VALUE_BITS | value;
}

static inline unsigned int rs_message_op(uint32_t message)
{
	return message >> RS_VALUE_BITS;
}

static inline uint32_t rs_message_value(uint32_t message)
{
	return message & ((1U << RS_VALUE_BITS) - 1);
}

/* A table entry in memory: where its reader may write to. */
struct rs_entry {
	uint64_t addr;
	uint32_t key;
	uint32_t bytes;
};

struct rs_iomap_entry {
	uint64_t offset;
	struct rs_entry target;
};

_Static_assert(sizeof(struct rs_entry) == 16, "written into the peer's memory");
_Static_assert(sizeof(struct rs_iomap_entry) == 24, "written into the peer's memory");

/** rs_entry_for_peer() - convert an entry for a big-endian or little-endian peer */
struct rs_entry rs_entry_for_peer(struct rs_entry entry, bool big_endian);
struct rs_iomap_entry rs_iomap_entry_for_peer(struct rs_iomap_entry entry, bool big_endian);

/** rs_host_is_big_endian() - return whether this host is big-endian */
static inline bool rs_host_is_big_endian(void)
{
	return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
}

#endif
