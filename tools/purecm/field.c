/* SPDX-License-Identifier: BSD-2-Clause */
/* Fields: values, formatting, meaning. Notes are in a table by field name. */
#include "tools/purecm/field.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "mad/cm_msg.h"
#include "tools/purecm/json.h"

uint64_t field_uint(const struct wire_field *field, const void *host)
{
	uint64_t value = 0;

	if (field->kind != WIRE_UINT)
		return 0;
		/* On big-endian machines the low bytes of value are its last. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	memcpy(&value, (const uint8_t *)host + field->offset, field->size);
#else
	memcpy((uint8_t *)&value + sizeof(value) - field->size,
	       (const uint8_t *)host + field->offset, field->size);
#endif
	return value;
}

bool field_is_zero(const struct wire_field *field, const void *host)
{
	const uint8_t *bytes = (const uint8_t *)host + field->offset;
	uint16_t i;

	for (i = 0; i < field->size; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

const struct wire_field *field_find(const struct wire_layout *layout, const char *name)
{
	size_t i;

	for (i = 0; i < layout->n_fields; i++) {
		if (strcmp(layout->field[i].name, name) == 0)
			return &layout->field[i];
	}
	return NULL;
}

bool field_is_part(const struct wire_layout *layout, const struct wire_field *field)
{
	return field_find(layout, field->name) != field;
}

static void print_bytes(const struct wire_field *field, const void *host, FILE *out)
{
	const uint8_t *bytes = (const uint8_t *)host + field->offset;
	uint16_t i, end = field->size;

	while (end > 1 && !bytes[end - 1])
		end--;
	for (i = 0; i < end; i++)
		fprintf(out, "%02x", bytes[i]);
}

static void print_gid(const struct wire_field *field, const void *host, FILE *out)
{
	char text[INET6_ADDRSTRLEN] = "?";

	inet_ntop(AF_INET6, (const uint8_t *)host + field->offset, text, sizeof(text));
	fputs(text, out);
}

void field_print(const struct wire_field *field, const void *host, FILE *out)
{
	if (field->kind == WIRE_UINT)
		fprintf(out, field->look == WIRE_DEC ? "%" PRIu64 : "0x%" PRIx64,
			field_uint(field, host));
	else if (field->look == WIRE_GID)
		print_gid(field, host, out);
	else
		print_bytes(field, host, out);
}

/* --- meaning of values ---------------------------------------------------- */

double encoded_s(unsigned int t)
{
	return 4.096e-6 * (double)(1ull << (t & 31));
}

static void note_time(uint64_t value, FILE *out)
{
	double s = encoded_s((unsigned int)value);

	if (s >= 0.1)
		fprintf(out, " (%.1f s)", s);
	else
		fprintf(out, " (%.3g ms)", s * 1000);
}

static void note_mtu(uint64_t value, FILE *out)
{
	if (value >= 1 && value <= 5)
		fprintf(out, " (%u bytes)", 128u << value);
}

static void note_reason(uint64_t value, FILE *out)
{
	fprintf(out, " (%s)", cm_rej_reason_str((uint16_t)value));
}

static void note_choice(const char *const *choice, size_t n, uint64_t value, FILE *out)
{
	if (value < n && choice[value])
		fprintf(out, " (%s)", choice[value]);
}

#define NOTE_CHOICE(list, value, out) \
	note_choice(list, sizeof(list) / sizeof((list)[0]), value, out)

static void note_message(uint64_t value, FILE *out)
{
	static const char *const message[] = { "REQ", "REP", "another" };

	NOTE_CHOICE(message, value, out);
}

static void note_transport(uint64_t value, FILE *out)
{
	static const char *const transport[] = { "RC", "UC", "RD", "extended" };

	NOTE_CHOICE(transport, value, out);
}

const uint8_t *ip_header_of(const struct cm_msg *msg)
{
	if (msg->hdr.attr_id == CM_ATTR_REQ && cma_service_is_ip(msg->req.service_id))
		return msg->req.private_data;
	if (msg->hdr.attr_id == CM_ATTR_SIDR_REQ && cma_service_is_ip(msg->sidr_req.service_id))
		return msg->sidr_req.private_data;
	return NULL;
}

const char *service_space(uint64_t service_id)
{
	/* clang-format off */
	static const struct {
		uint64_t block;
		const char *name;
	} spaces[] = {
		{ 0x0001, "SDP" },
		{ 0x0106, "TCP" },
		{ 0x0111, "UDP" },
		{ 0x013f, "IB" },
		{ 0x0002, "IPoIB" }
	};
	/* clang-format on */
	size_t i;

	for (i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		if (service_id >> 16 == spaces[i].block)
			return spaces[i].name;
	}
	return NULL;
}

static void note_service(uint64_t value, FILE *out)
{
	if (service_space(value))
		fprintf(out, " (%s port %u)", service_space(value), (unsigned int)(value & 0xffff));
}

/* clang-format off */
static const struct {
	const char *field;
	void (*note)(uint64_t value, FILE *out);
} notes[] = {
	{ "local_ack_timeout", note_time },
	{ "local_cm_response_timeout", note_time },
	{ "message", note_message },
	{ "path_mtu", note_mtu },
	{ "primary.local_ack_timeout", note_time },
	{ "alternate.local_ack_timeout", note_time },
	{ "reason", note_reason },
	{ "remote_cm_response_timeout", note_time },
	{ "service_id", note_service },
	{ "service_timeout", note_time },
	{ "target_ack_delay", note_time },
	{ "transport_service_type", note_transport },
};
/* clang-format on */

void field_print_note(const struct wire_field *field, const void *host, FILE *out)
{
	size_t i;

	for (i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
		if (strcmp(notes[i].field, field->name) == 0)
			notes[i].note(field_uint(field, host), out);
	}
}

/* --- JSON ---------------------------------------------------------------- */

void field_print_json(const struct wire_field *field, const void *host, FILE *out)
{
	char *text = NULL;
	size_t bytes;
	FILE *memory;

	if (field->kind == WIRE_UINT && field->size < sizeof(uint64_t)) {
		json_uint(field->name, field_uint(field, host), out);
		return;
	}
	memory = open_memstream(&text, &bytes);
	if (!memory)
		return;
	field_print(field, host, memory);
	fclose(memory);
	json_text(field->name, text, out);
	free(text);
}
