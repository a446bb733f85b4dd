/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The field engine: walks the rows of a layout to encode, decode or print a message. All bit
 * arithmetic is in wire_known.h.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "mad/wire_known.h"

#define DATA_BYTES_SHOWN 32

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
		fprintf(out, "%" PRIu64, wire_member(field, host));
		break;
	case WIRE_HEX:
		fprintf(out, "0x%" PRIx64, wire_member(field, host));
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
