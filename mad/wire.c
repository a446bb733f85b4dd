/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The field engine: walks the rows of a layout to encode, decode or print a message. All bit
 * arithmetic is here and in wire_known.h.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "mad/wire_known.h"

#define DATA_BYTES_SHOWN 32

static unsigned int min_uint(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* Byte by byte, most significant bits first: a field may begin and end inside a byte. */
static uint64_t bits_get(const uint8_t *wire, unsigned int bit, unsigned int width)
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

static void bits_put(uint8_t *wire, unsigned int bit, unsigned int width, uint64_t value)
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

void wire_encode_any(const struct wire_field *f, const void *host, uint8_t *wire)
{
	bits_put(wire, f->bit, f->width, member_get(f, host) >> f->shift);
}

void wire_decode_any(const struct wire_field *f, const uint8_t *wire, void *host)
{
	member_put(f, host, member_get(f, host) | bits_get(wire, f->bit, f->width) << f->shift);
}

void wire_encode(const struct wire_layout *layout, const void *host, uint8_t *wire)
{
	wire_encode_known(layout, host, wire);
}

void wire_decode(const struct wire_layout *layout, const uint8_t *wire, void *host)
{
	memset(host, 0, layout->host_bytes);
	wire_decode_known(layout, wire, host);
}

/* Return: the length without trailing zero bytes. */
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

		/* Print a split member once, with its lowest part. */
		if (f->shift || (zero && !every))
			continue;
		fprintf(out, " %s=", f->name);
		print_value(f, host, out);
	}
}
