/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The field engine: walks the rows of a layout to encode, decode or print a message. Called by
 * cm_msg.c and by everyone else who owns a layout. Bits are moved here and nowhere else.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "mad/wire.h"

#define DATA_BYTES_SHOWN 32

static unsigned int min_uint(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* Byte by byte, most significant bits first: a field may begin and end inside a byte. */
static uint64_t odd_bits_get(const uint8_t *wire, unsigned int bit, unsigned int width)
{
	uint64_t value = 0;

	while (width) {
		unsigned int n = min_uint(8 - bit, width);
		unsigned int low = 8 - bit - n;

		value = value << n | (*wire++ >> low & ((1u << n) - 1));
		width -= n;
		bit = 0;
	}
	return value;
}

static void odd_bits_put(uint8_t *wire, unsigned int bit, unsigned int width, uint64_t value)
{
	while (width) {
		unsigned int n = min_uint(8 - bit, width);
		unsigned int low = 8 - bit - n;
		uint8_t mask = ((1u << n) - 1) << low;

		width -= n;
		*wire = (*wire & ~mask) | (value >> width << low & mask);
		wire++;
		bit = 0;
	}
}

static uint32_t u32_get(const uint8_t *wire)
{
	return (uint32_t)wire[0] << 24 | (uint32_t)wire[1] << 16 | (uint32_t)wire[2] << 8 | wire[3];
}

static void u32_put(uint8_t *wire, uint32_t value)
{
	wire[0] = (uint8_t)(value >> 24);
	wire[1] = (uint8_t)(value >> 16);
	wire[2] = (uint8_t)(value >> 8);
	wire[3] = (uint8_t)value;
}

/* Whole bytes are most of what there is, and the compiler knows how to load and store them. */
static uint64_t bits_get(const uint8_t *wire, unsigned int bit, unsigned int width)
{
	if (bit)
		return odd_bits_get(wire, bit, width);
	switch (width) {
	case 8:
		return *wire;
	case 16:
		return (uint64_t)(wire[0] << 8 | wire[1]);
	case 24:
		return (uint64_t)(wire[0] << 16 | wire[1] << 8 | wire[2]);
	case 32:
		return u32_get(wire);
	case 64:
		return (uint64_t)u32_get(wire) << 32 | u32_get(wire + 4);
	default:
		return odd_bits_get(wire, bit, width);
	}
}

static void bits_put(uint8_t *wire, unsigned int bit, unsigned int width, uint64_t value)
{
	switch (bit ? 0 : width) {
	case 8:
		*wire = (uint8_t)value;
		return;
	case 24:
		*wire++ = (uint8_t)(value >> 16);
		__attribute__((fallthrough)); /* a comment is enough for gcc alone */
	case 16:
		wire[0] = (uint8_t)(value >> 8);
		wire[1] = (uint8_t)value;
		return;
	case 64:
		u32_put(wire, (uint32_t)(value >> 32));
		wire += 4;
		__attribute__((fallthrough));
	case 32:
		u32_put(wire, (uint32_t)value);
		return;
	default:
		odd_bits_put(wire, bit, width, value);
	}
}

static uint64_t member_get(const struct wire_field *field, const void *host)
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

static void member_put(const struct wire_field *field, void *host, uint64_t value)
{
	uint8_t *member = (uint8_t *)host + field->offset;
	uint32_t u32 = value;
	uint16_t u16 = value;

	switch (field->size) {
	case 1:
		*member = value;
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

void wire_encode(const struct wire_layout *layout, const void *host, uint8_t *wire)
{
	for (size_t i = 0; i < layout->n_fields; i++) {
		const struct wire_field *f = &layout->field[i];

		if (f->kind == WIRE_BYTES)
			memcpy(wire + f->byte, (const uint8_t *)host + f->offset, f->size);
		else
			bits_put(wire + f->byte, f->bit, f->width, member_get(f, host) >> f->shift);
	}
}

void wire_decode(const struct wire_layout *layout, const uint8_t *wire, void *host)
{
	memset(host, 0, layout->host_bytes);
	for (size_t i = 0; i < layout->n_fields; i++) {
		const struct wire_field *f = &layout->field[i];

		if (f->kind == WIRE_BYTES) {
			memcpy((uint8_t *)host + f->offset, wire + f->byte, f->size);
		} else {
			uint64_t part = bits_get(wire + f->byte, f->bit, f->width) << f->shift;

			member_put(f, host, member_get(f, host) | part);
		}
	}
}

/* How many bytes there are up to the last one that is not zero. */
static size_t used_bytes(const uint8_t *data, size_t bytes)
{
	while (bytes && !data[bytes - 1])
		bytes--;
	return bytes;
}

static void print_data(const uint8_t *data, size_t bytes, FILE *out)
{
	size_t used = used_bytes(data, bytes);

	for (size_t i = 0; i < used && i < DATA_BYTES_SHOWN; i++)
		fprintf(out, "%02x", data[i]);
	if (used > DATA_BYTES_SHOWN)
		fputs("...", out);
}

static void print_gid(const uint8_t raw[16], FILE *out)
{
	char text[INET6_ADDRSTRLEN];

	fputs(inet_ntop(AF_INET6, raw, text, sizeof(text)), out);
}

static void print_value(const struct wire_field *field, const void *host, FILE *out)
{
	const uint8_t *member = (const uint8_t *)host + field->offset;

	switch (field->look) {
	case WIRE_DEC:
		fprintf(out, "%" PRIu64, member_get(field, host));
		break;
	case WIRE_HEX:
		fprintf(out, "0x%" PRIx64, member_get(field, host));
		break;
	case WIRE_GID:
		print_gid(member, out);
		break;
	case WIRE_DATA:
		print_data(member, field->size, out);
		break;
	}
}

void wire_print(const struct wire_layout *layout, const void *host, int every, FILE *out)
{
	for (size_t i = 0; i < layout->n_fields; i++) {
		const struct wire_field *f = &layout->field[i];
		bool zero = !used_bytes((const uint8_t *)host + f->offset, f->size);

		/* A split member is printed once, with its lowest part. */
		if (f->shift || (zero && !every))
			continue;
		fprintf(out, " %s=", f->name);
		print_value(f, host, out);
	}
}
