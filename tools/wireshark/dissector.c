/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints the Wireshark dissector: the tables that the code uses, as tables of Lua, and after them
 * the Lua sources that are its arguments. So a row of mad/, an edge of cm/fsm.c and a text of
 * tools/purecm/advice.c are written once.
 *
 * usage: dissector FILE.lua... > purecm.lua
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cm/fsm.h"
#include "cm/guard.h"
#include "lib/rsocket/stream_wire.h"
#include "mad/cm_msg.h"
#include "mad/cma_hdr.h"
#include "tools/purecm/advice.h"
#include "tools/purecm/field.h"
#include "tools/purecm/flow.h"

#define NOTE_BYTES	 128
#define NOTE_BITS_MAX	 16 /* the notes of fields up to this width are listed value by value */
#define SERVICE_SPACES	 0x10000
#define SERVICE_SPACE_AT 16
#define SPACE_END	 " port 0"

static const char *const looks[] = {
	[WIRE_DEC] = "dec",
	[WIRE_HEX] = "hex",
	[WIRE_GID] = "gid",
	[WIRE_DATA] = "data",
};

static const char *const outcome_names[] = {
#define X(name, word, text) #name,
	FLOW_OUTCOMES(X)
#undef X
};

static const struct {
	context_question *question;
	const char *name;
} questions[] = {
#define Q(name)                       \
	{                             \
		context_##name, #name \
	}
	Q(got_mra),	    Q(has_just_begun),	     Q(is_received_here),
	Q(peer_speaks),	    Q(answer_was_late),	     Q(has_no_ip_header),
	Q(has_foreign_gid), Q(has_other_address),    Q(has_other_pkey),
	Q(has_older),	    Q(has_private_data),     Q(was_rejected_by_active),
	Q(was_established), Q(dreq_names_other_qpn), Q(is_infiniband),
	Q(is_roce_v1),	    Q(waited_briefly),
#undef Q
};

static void print_quoted(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
	putchar('"');
}

/* --- fields -------------------------------------------------------------- */

/* The layouts of a dissector: the name of a protocol filter's part is the layout's in lower case.
 */
static const struct wire_layout *const layouts[] = {
	&mad_hdr_layout, &cm_req_layout,  &cm_mra_layout,  &cm_rej_layout,	&cm_rep_layout,
	&cm_rtu_layout,	 &cm_dreq_layout, &cm_drep_layout, &cm_sidr_req_layout, &cm_sidr_rep_layout,
	&cm_lap_layout,	 &cm_apr_layout,  &cma_hdr_layout, &rs_hello_layout,
};

/* Any of the host structs. */
union host {
	struct mad_hdr mad;
	struct cm_msg msg;
	struct cma_hdr cma;
	struct rs_hello rsocket;
};

static void put_value(const struct wire_field *field, union host *host, uint64_t value)
{
	uint8_t *member = (uint8_t *)host + field->offset;
	uint16_t u16 = (uint16_t)value;
	uint32_t u32 = (uint32_t)value;

	switch (field->size) {
	case 1:
		*member = (uint8_t)value;
		break;
	case 2:
		memcpy(member, &u16, sizeof(u16));
		break;
	case 4:
		memcpy(member, &u32, sizeof(u32));
		break;
	case 8:
		memcpy(member, &value, sizeof(value));
		break;
	}
}

/* What a value means, without the blank and the parentheses; empty if the value needs no
 * explanation. */
static void read_note(const struct wire_layout *layout, const struct wire_field *field,
		      uint64_t value, char note[NOTE_BYTES])
{
	union host host = { 0 };
	FILE *out = fmemopen(note, NOTE_BYTES, "w");
	size_t bytes;

	if (!out) {
		perror("fmemopen");
		exit(1);
	}
	memset(note, 0, NOTE_BYTES);
	if (layout == &cm_sidr_rep_layout && strcmp(field->name, "status") == 0) {
		fprintf(out, " (%s)", cm_sidr_status_str((uint8_t)value));
	} else {
		put_value(field, &host, value);
		field_print_note(field, &host, out);
	}
	fclose(out);
	bytes = strlen(note);
	if (bytes < 3)
		return;
	memmove(note, note + 2, bytes - 3);
	note[bytes - 3] = '\0';
}

/* The note of the largest value stands for all values that have no other one. */
static void print_notes(const struct wire_layout *layout, const struct wire_field *field)
{
	const uint64_t largest = (UINT64_C(1) << field->width) - 1;
	char other[NOTE_BYTES], note[NOTE_BYTES];
	uint64_t value;
	int n = 0;

	read_note(layout, field, largest, other);
	for (value = 0; value < largest; value++) {
		read_note(layout, field, value, note);
		if (strcmp(note, other) == 0)
			continue;
		printf("%s[%" PRIu64 "]=", n++ ? "," : ",note={", value);
		print_quoted(note);
	}
	if (other[0]) {
		printf("%sother=", n++ ? "," : ",note={");
		print_quoted(other);
	}
	if (n)
		putchar('}');
}

static void print_field(const struct wire_layout *layout, const struct wire_field *field)
{
	printf("    {name=\"%s\",byte=%u,bit=%u,width=%u,shift=%u,look=\"%s\"", field->name,
	       field->byte, field->bit, field->width, field->shift, looks[field->look]);
	if (field->kind == WIRE_UINT && field->width <= NOTE_BITS_MAX && !field->shift)
		print_notes(layout, field);
	puts("},");
}

static void print_layouts(void)
{
	size_t i, row;

	puts("local layouts = {");
	for (i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		printf("  {name=\"%s\",bytes=%zu,\n", layouts[i]->name, layouts[i]->wire_bytes);
		for (row = 0; row < layouts[i]->n_fields; row++)
			print_field(layouts[i], &layouts[i]->field[row]);
		puts("  },");
	}
	puts("}");
}

/* The upper bits of a service id that are a port space, by the text for its port 0. */
static void print_service_spaces(void)
{
	const struct wire_field *field = field_find(&cm_req_layout, "service_id");
	const size_t end_bytes = strlen(SPACE_END);
	char note[NOTE_BYTES];
	uint64_t space;
	size_t bytes;

	puts("local service_spaces = {");
	for (space = 0; space < SERVICE_SPACES; space++) {
		read_note(&cm_req_layout, field, space << SERVICE_SPACE_AT, note);
		bytes = strlen(note);
		if (bytes < end_bytes || strcmp(note + bytes - end_bytes, SPACE_END) != 0)
			continue;
		note[bytes - end_bytes] = '\0';
		printf("  [0x%" PRIx64 "]=\"%s\",\n", space, note);
	}
	puts("}");
}

/* The port spaces whose requests begin with a CMA header. */
static void print_ip_spaces(void)
{
	uint64_t space;

	printf("local ip_spaces = {");
	for (space = 0; space < SERVICE_SPACES; space++) {
		if (cma_service_is_ip(space << SERVICE_SPACE_AT))
			printf("[0x%" PRIx64 "]=true,", space);
	}
	puts("}");
}

/* --- messages and states ------------------------------------------------- */

static void print_constants(void)
{
	printf("local MAD_BYTES = %d\nlocal MAD_HDR_BYTES = %d\nlocal MAD_CLASS_CM = %d\n"
	       "local MAD_CM_VERSION = %d\nlocal MAD_METHOD_SEND = %d\n",
	       MAD_BYTES, MAD_HDR_BYTES, MAD_CLASS_CM, MAD_CM_VERSION, MAD_METHOD_SEND);
	printf("local CMA_HDR_BYTES = %d\nlocal RS_HELLO_BYTES = %d\nlocal RS_VERSION = %d\n",
	       CMA_HDR_BYTES, RS_HELLO_BYTES, RS_VERSION);
	printf("local COPY_S = %g\n", FLOW_COPY_NS / 1e9);
}

/* Attribute id, name, the call that sends the message, and where it usually finds both ends. */
static void print_messages(void)
{
	struct cm_msg msg;
	uint16_t attr;

	puts("local messages = {");
	for (attr = CM_ATTR_REQ; attr <= CM_ATTR_APR; attr++) {
		const struct flow_usual *usual = flow_step_usual(attr);
		enum cm_event call;

		cm_msg_init(&msg, attr, 1);
		call = cm_call_of(&msg);
		printf("  [0x%x]={name=\"%s\"", attr, cm_msg_layout(attr)->name);
		if (call != CM_NO_EVENT)
			printf(",call=\"%s\"", cm_event_str(call));
		printf(",usual={from=\"%s\",to=\"%s\"}},\n", cm_state_str(usual->sender),
		       cm_state_str(usual->receiver));
	}
	puts("}");
}

static void print_edges(void)
{
	enum cm_state state;
	enum cm_event event;

	puts("local edges = {");
	for (state = 0; state < CM_N_STATES; state++) {
		printf("  %s={", cm_state_str(state));
		for (event = 0; event < CM_N_EVENTS; event++) {
			const struct cm_edge *edge = cm_edge_of(state, event);

			if (edge->act)
				printf("%s=\"%s\",", cm_event_str(event), cm_state_str(edge->to));
		}
		puts("},");
	}
	puts("}");
}

/* --- outcomes and advice ------------------------------------------------- */

static void print_outcomes(void)
{
	struct flow flow = { .number = 0 };

	puts("local outcomes = {");
	for (flow.outcome = 0; flow.outcome < FLOW_N_OUTCOMES; flow.outcome++)
		printf("  %s={word=\"%s\",text=\"%s\",failed=%s},\n", outcome_names[flow.outcome],
		       flow_outcome_word(flow.outcome), flow_outcome_text(flow.outcome),
		       flow_has_failed(&flow) ? "true" : "false");
	puts("}");
}

static const char *question_name(context_question *question)
{
	size_t i;

	for (i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		if (questions[i].question == question)
			return questions[i].name;
	}
	fputs("dissector: a row of advice asks what questions[] does not have\n", stderr);
	exit(1);
}

static void print_advice(const struct advice *advice)
{
	size_t i;

	printf("  {outcome=\"%s\",is_sidr=%s,", outcome_names[advice->outcome],
	       advice->is_sidr ? "true" : "false");
	if (advice->reason != ADVICE_ANY)
		printf("reason=%d,", advice->reason);
	printf("fits={");
	for (i = 0; i < sizeof(advice->fits) / sizeof(advice->fits[0]); i++) {
		if (advice->fits[i])
			printf("\"%s\",", question_name(advice->fits[i]));
	}
	printf("},\n   what=");
	print_quoted(advice->what);
	printf(",\n   cause=");
	print_quoted(advice->cause);
	printf(",\n   remedy=");
	print_quoted(advice->remedy);
	puts("},");
}

static void print_all_advice(void)
{
	const struct advice *advice;
	size_t i;

	puts("local advice = {");
	for (i = 0; (advice = advice_get(i)); i++)
		print_advice(advice);
	puts("}");
}

static int copy(const char *name)
{
	FILE *in = fopen(name, "r");
	int c;

	if (!in) {
		fprintf(stderr, "dissector: %s: %s\n", name, strerror(errno));
		return -errno;
	}
	putchar('\n');
	while ((c = getc(in)) != EOF)
		putchar(c);
	fclose(in);
	return 0;
}

int main(int argc, char **argv)
{
	int i;

	puts("-- SPDX-License-Identifier: BSD-2-Clause\n"
	     "-- The messages of the InfiniBand connection manager, for Wireshark and tshark.\n"
	     "-- Generated from the tables of purecm; see `man purecm`, WIRESHARK.\n");
	print_constants();
	print_layouts();
	print_service_spaces();
	print_ip_spaces();
	print_messages();
	print_edges();
	print_outcomes();
	print_all_advice();
	for (i = 1; i < argc; i++) {
		if (copy(argv[i]))
			return 1;
	}
	return fflush(stdout) ? 1 : 0;
}
