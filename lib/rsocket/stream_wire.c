/* SPDX-License-Identifier: BSD-2-Clause */
/* The fields of a stream's private data, and the byte order of table entries: see stream_wire.h. */
#include "lib/rsocket/stream_wire.h"

#define SCALE_LITERAL_MAX 128
#define SCALE_COUNT_MAX	  (0x7f << 8)

static const struct wire_field hello_fields[] = {
	WIRE(rs_hello, version, 0, 0, 8),	 WIRE(rs_hello, has_iomap, 1, 6, 1),
	WIRE(rs_hello, big_endian, 1, 7, 1),	 WIRE(rs_hello, credits, 2, 0, 16),
	WIRE(rs_hello, iomap_scaled, 7, 0, 8),	 WIRE_ID(rs_hello, table_addr, 8, 0, 64),
	WIRE_ID(rs_hello, table_key, 16, 0, 32), WIRE(rs_hello, table_entries, 20, 0, 32),
	WIRE_ID(rs_hello, half_addr, 24, 0, 64), WIRE_ID(rs_hello, half_key, 32, 0, 32),
	WIRE(rs_hello, half_bytes, 36, 0, 32),
};

const struct wire_layout rs_hello_layout =
	WIRE_LAYOUT("rsocket", rs_hello, hello_fields, RS_HELLO_BYTES);

uint8_t rs_scale_encode(uint32_t count)
{
	if (count <= SCALE_LITERAL_MAX)
		return (uint8_t)count;
	if (count > SCALE_COUNT_MAX)
		count = SCALE_COUNT_MAX;
	return (uint8_t)(0x80 | count >> 8);
}

uint32_t rs_scale_decode(uint8_t scaled)
{
	if (scaled <= SCALE_LITERAL_MAX)
		return scaled;
	return (uint32_t)(scaled & 0x7f) << 8;
}

struct rs_entry rs_entry_for_peer(struct rs_entry entry, bool big_endian)
{
	if (big_endian == rs_host_is_big_endian())
		return entry;
	return (struct rs_entry){ .addr = __builtin_bswap64(entry.addr),
				  .key = __builtin_bswap32(entry.key),
				  .bytes = __builtin_bswap32(entry.bytes) };
}

struct rs_iomap_entry rs_iomap_entry_for_peer(struct rs_iomap_entry entry, bool big_endian)
{
	entry.target = rs_entry_for_peer(entry.target, big_endian);
	if (big_endian != rs_host_is_big_endian())
		entry.offset = __builtin_bswap64(entry.offset);
	return entry;
}
