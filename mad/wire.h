/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The field engine: a message is a table with one row per field, in the order of the table in the
 * InfiniBand specification. The same row encodes, decodes, prints and is tested.
 *
 * Host structs hold integers in host byte order, and byte strings unchanged; the wire is
 * big-endian, most significant bit first. All bit arithmetic is in wire.c and wire_known.h.
 */
#ifndef MAD_WIRE_H
#define MAD_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum wire_kind {
	WIRE_UINT,  /* an unsigned integer of 1 to 64 bits */
	WIRE_BYTES, /* whole bytes, copied: GIDs, addresses, private data */
};

/* How a field moves between wire and member; the row macros choose the fastest way. */
enum wire_move {
	WIRE_ANY,     /* any bits, into a part of the member */
	WIRE_IN_BYTE, /* bits within one byte, one-byte member */
	WIRE_U8,      /* whole bytes, the member's full size */
	WIRE_U16,
	WIRE_U24, /* three bytes, four-byte member: QPNs, PSNs */
	WIRE_U32,
	WIRE_U64,
	WIRE_COPY, /* byte string */
};

/* How wire_print() shows a value. */
enum wire_look {
	WIRE_DEC,
	WIRE_HEX,
	WIRE_GID,  /* as an IPv6 address */
	WIRE_DATA, /* in hexadecimal, the first 32 bytes */
};

#define WIRE_NAME_BYTES 28

/* It has no pointers, so that the dynamic linker need not write to each process's copy of a row. */
struct wire_field {
	char name[WIRE_NAME_BYTES]; /* the member's name */
	uint16_t offset;	    /* of the member in the host struct */
	uint16_t size;		    /* of the member, in bytes */
	uint16_t byte;		    /* first byte on the wire, from the start of the layout */
	uint16_t bit;		    /* first bit in that byte, 0 = most significant */
	uint16_t width;		    /* in bits */
	uint16_t shift; /* lowest bit of the member that this row holds (split fields) */
	enum wire_kind kind;
	enum wire_move move;
	enum wire_look look;
};

struct wire_layout {
	const char *name; /* as in the specification: "REP" */
	const struct wire_field *field;
	size_t n_fields;
	size_t host_bytes; /* size of the host struct */
	size_t wire_bytes; /* size on the wire, including reserved bits */
};

/* Zero, or a compile error: an assertion for use in an initializer. */
#define WIRE_CHECK(condition, message)               \
	(0 * sizeof(struct {                         \
		 _Static_assert(condition, message); \
		 int unused;                         \
	 }))

#define WIRE_CHECK_NAME(member) \
	WIRE_CHECK(sizeof(#member) <= WIRE_NAME_BYTES, #member ": the name is too long")

#define WIRE_MEMBER(type, member) (((struct type *)0)->member)

/* The member's size; compiles for unsigned integers only. */
#define WIRE_UINT_SIZE(type, member)                                                            \
	(_Generic(WIRE_MEMBER(type, member), bool : 1, uint8_t : 1, uint16_t : 2, uint32_t : 4, \
		  uint64_t : 8))

/* The fastest way for an unsplit field of @bits bits in a member of @size bytes. */
#define WIRE_WAY(size, bit, bits)                                       \
	((bits) == 8 * (size) && (bit) == 0	     ? WIRE_WHOLE(size) \
	 : (bits) == 24 && (bit) == 0 && (size) == 4 ? WIRE_U24         \
	 : (bit) + (bits) <= 8 && (size) == 1	     ? WIRE_IN_BYTE     \
						     : WIRE_ANY)
#define WIRE_WHOLE(size) \
	((size) == 1 ? WIRE_U8 : (size) == 2 ? WIRE_U16 : (size) == 4 ? WIRE_U32 : WIRE_U64)

#define WIRE_UINT_ROW(type, member, at_byte, at_bit, bits, low, way, how)                        \
	{                                                                                        \
		.name = #member, .offset = offsetof(struct type, member),                        \
		.size = WIRE_UINT_SIZE(type, member) + WIRE_CHECK_NAME(member) +                 \
			WIRE_CHECK((at_bit) < 8, #member ": first bit is not in its byte") +     \
			WIRE_CHECK((at_bit) + (bits) <= 64, #member ": more than eight bytes") + \
			WIRE_CHECK((bits) > 0 && (bits) + (low) <=                               \
							 8 * sizeof(WIRE_MEMBER(type, member)),  \
				   #member ": the member cannot hold the field"),                \
		.byte = (at_byte), .bit = (at_bit), .width = (bits), .shift = (low),             \
		.kind = WIRE_UINT, .move = (way), .look = (how),                                 \
	}

#define WIRE_BYTES_ROW(type, member, at_byte, how)                                   \
	{                                                                            \
		.name = #member, .offset = offsetof(struct type, member),            \
		.size = sizeof(WIRE_MEMBER(type, member)) + WIRE_CHECK_NAME(member), \
		.byte = (at_byte), .width = 8 * sizeof(WIRE_MEMBER(type, member)),   \
		.kind = WIRE_BYTES, .move = WIRE_COPY, .look = (how),                \
	}

/*
 * The rows: struct, member, byte, first bit, width in bits. WIRE prints in decimal, WIRE_ID in
 * hexadecimal; WIRE_PART holds the member's bits from @shift up, for a field that the specification
 * splits; WIRE_ADDR and WIRE_BLOB copy bytes.
 */
#define WIRE(type, member, byte, bit, width)             \
	WIRE_UINT_ROW(type, member, byte, bit, width, 0, \
		      WIRE_WAY(WIRE_UINT_SIZE(type, member), bit, width), WIRE_DEC)
#define WIRE_ID(type, member, byte, bit, width)          \
	WIRE_UINT_ROW(type, member, byte, bit, width, 0, \
		      WIRE_WAY(WIRE_UINT_SIZE(type, member), bit, width), WIRE_HEX)
#define WIRE_PART(type, member, byte, bit, width, shift) \
	WIRE_UINT_ROW(type, member, byte, bit, width, shift, WIRE_ANY, WIRE_HEX)
#define WIRE_ADDR(type, member, byte) WIRE_BYTES_ROW(type, member, byte, WIRE_GID)
#define WIRE_BLOB(type, member, byte) WIRE_BYTES_ROW(type, member, byte, WIRE_DATA)

#define WIRE_LAYOUT(title, type, rows, bytes)                                                   \
	{                                                                                       \
		.name = (title), .field = (rows), .n_fields = sizeof(rows) / sizeof((rows)[0]), \
		.host_bytes = sizeof(struct type), .wire_bytes = (bytes),                       \
	}

/**
 * wire_encode() - encode a host struct
 * @wire: start of the layout's bytes; bits outside all rows are left unchanged
 *
 * Values are truncated to the width of their fields.
 */
void wire_encode(const struct wire_layout *layout, const void *host, uint8_t *wire);

/** wire_decode() - decode to a host struct; members without a row become zero. */
void wire_decode(const struct wire_layout *layout, const uint8_t *wire, void *host);

/** wire_print() - print fields as " name=value", in table order; @every: also fields of value 0 */
void wire_print(const struct wire_layout *layout, const void *host, int every, FILE *out);

#endif
