/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The field engine for layouts that the compiler knows: it compiles the rows to straight-line code,
 * a few instructions each. For code on the fast path (cm_msg.c, lib/portd/proto/proto.c), and for
 * wire.c, which applies it to any layout.
 */
#ifndef MAD_WIRE_KNOWN_H
#define MAD_WIRE_KNOWN_H

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "mad/wire.h"

#define WIRE_STRAIGHT inline __attribute__((always_inline))

/* Unroll the loop over known rows; clang decides for itself. */
#ifdef __clang__
#define WIRE_UNROLL
#else
#define WIRE_UNROLL _Pragma("GCC unroll 64")
#endif

static WIRE_STRAIGHT uint64_t wire_member(const struct wire_field *field, const void *host)
{
	const uint8_t *member = (const uint8_t *)host + field->offset;
	uint64_t u64 = 0;
	uint32_t u32;
	uint16_t u16;

	switch (field->size) {
	case 1:
		return *member;
	case 2:
		memcpy(&u16, member, sizeof(u16));
		return u16;
	case 4:
		memcpy(&u32, member, sizeof(u32));
		return u32;
	default:
		assert(field->size == 8);
		memcpy(&u64, member, sizeof(u64));
		return u64;
	}
}

static WIRE_STRAIGHT void wire_set_member(const struct wire_field *field, void *host,
					  uint64_t value)
{
	uint8_t *member = (uint8_t *)host + field->offset;
	uint32_t u32 = (uint32_t)value;
	uint16_t u16 = (uint16_t)value;

	switch (field->size) {
	case 1:
		*member = (uint8_t)value;
		return;
	case 2:
		memcpy(member, &u16, sizeof(u16));
		return;
	case 4:
		memcpy(member, &u32, sizeof(u32));
		return;
	default:
		assert(field->size == 8);
		memcpy(member, &value, sizeof(value));
	}
}

/* The number of bytes that have bits of the field: at most eight, see WIRE_UINT_ROW(). */
static WIRE_STRAIGHT size_t wire_bytes(const struct wire_field *field)
{
	return (field->bit + field->width + 7u) / 8;
}

static WIRE_STRAIGHT void wire_encode_any(const struct wire_field *field, const void *host,
					  uint8_t *wire)
{
	const uint64_t first = UINT64_MAX >> field->bit;
	const uint64_t mask = first & ~(first >> (field->width - 1) >> 1);
	uint64_t value = wire_member(field, host) >> field->shift;
	uint64_t bits = 0;

	memcpy(&bits, wire, wire_bytes(field));
	value = value << (64 - field->width) >> field->bit;
	bits = htobe64((be64toh(bits) & ~mask) | value);
	memcpy(wire, &bits, wire_bytes(field));
}

/* Keeps the member's other bits. */
static WIRE_STRAIGHT void wire_decode_any(const struct wire_field *field, const uint8_t *wire,
					  void *host)
{
	uint64_t bits = 0;

	memcpy(&bits, wire, wire_bytes(field));
	bits = be64toh(bits) << field->bit >> (64 - field->width);
	wire_set_member(field, host, wire_member(field, host) | bits << field->shift);
}

static WIRE_STRAIGHT uint8_t wire_mask(const struct wire_field *field)
{
	return (uint8_t)((1u << field->width) - 1);
}

static WIRE_STRAIGHT unsigned int wire_low(const struct wire_field *field)
{
	return 8u - field->bit - field->width;
}

static WIRE_STRAIGHT void wire_encode_field(const struct wire_field *field, const void *host,
					    uint8_t *wire)
{
	const uint8_t *member = (const uint8_t *)host + field->offset;
	uint16_t u16;
	uint32_t u32;
	uint64_t u64;

	switch (field->move) {
	case WIRE_ANY:
		wire_encode_any(field, host, wire);
		return;
	case WIRE_IN_BYTE:
		*wire = (uint8_t)((*wire & ~(wire_mask(field) << wire_low(field))) |
				  (*member & wire_mask(field)) << wire_low(field));
		return;
	case WIRE_U8:
		*wire = *member;
		return;
	case WIRE_U16:
		memcpy(&u16, member, sizeof(u16));
		u16 = htobe16(u16);
		memcpy(wire, &u16, sizeof(u16));
		return;
	case WIRE_U24:
		memcpy(&u32, member, sizeof(u32));
		u32 = htobe32(u32 << 8);
		memcpy(wire, &u32, 3);
		return;
	case WIRE_U32:
		memcpy(&u32, member, sizeof(u32));
		u32 = htobe32(u32);
		memcpy(wire, &u32, sizeof(u32));
		return;
	case WIRE_U64:
		memcpy(&u64, member, sizeof(u64));
		u64 = htobe64(u64);
		memcpy(wire, &u64, sizeof(u64));
		return;
	case WIRE_COPY:
		memcpy(wire, member, field->size);
		return;
	}
}

static WIRE_STRAIGHT void wire_decode_field(const struct wire_field *field, const uint8_t *wire,
					    void *host)
{
	uint8_t *member = (uint8_t *)host + field->offset;
	uint16_t u16;
	uint32_t u32 = 0;
	uint64_t u64;

	switch (field->move) {
	case WIRE_ANY:
		wire_decode_any(field, wire, host);
		return;
	case WIRE_IN_BYTE:
		*member = *wire >> wire_low(field) & wire_mask(field);
		return;
	case WIRE_U8:
		*member = *wire;
		return;
	case WIRE_U16:
		memcpy(&u16, wire, sizeof(u16));
		u16 = be16toh(u16);
		memcpy(member, &u16, sizeof(u16));
		return;
	case WIRE_U24:
		memcpy(&u32, wire, 3);
		u32 = be32toh(u32) >> 8;
		memcpy(member, &u32, sizeof(u32));
		return;
	case WIRE_U32:
		memcpy(&u32, wire, sizeof(u32));
		u32 = be32toh(u32);
		memcpy(member, &u32, sizeof(u32));
		return;
	case WIRE_U64:
		memcpy(&u64, wire, sizeof(u64));
		u64 = be64toh(u64);
		memcpy(member, &u64, sizeof(u64));
		return;
	case WIRE_COPY:
		memcpy(member, wire, field->size);
		return;
	}
}

/** wire_encode_known() - as wire_encode() */
static WIRE_STRAIGHT void wire_encode_known(const struct wire_layout *layout, const void *host,
					    uint8_t *wire)
{
	WIRE_UNROLL
	for (size_t i = 0; i < layout->n_fields; i++)
		wire_encode_field(&layout->field[i], host, wire + layout->field[i].byte);
}

/** wire_decode_known() - as wire_decode(), to a zeroed host struct */
static WIRE_STRAIGHT void wire_decode_known(const struct wire_layout *layout, const uint8_t *wire,
					    void *host)
{
	WIRE_UNROLL
	for (size_t i = 0; i < layout->n_fields; i++)
		wire_decode_field(&layout->field[i], wire + layout->field[i].byte, host);
}

#endif
