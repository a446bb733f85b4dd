/* SPDX-License-Identifier: BSD-2-Clause */
/* A message as a line, with the important fields or with all of them. Part of show.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tools/purecm/subcommand.h"
#include "tools/purecm/field.h"
#include "tools/purecm/show.h"

#define NS_PER_US     1000
#define US_PER_S      1000000
#define NAME_COLUMNS  8
#define TIME_COLUMNS  11
#define DATE_COLUMNS  24
#define BYTES_A_LINE  32
#define STATE_COLUMNS 12
#define WIDE_COLUMNS  120

/* The fields of a line, in order; zero fields are omitted. The others are shown with -v. */
/* clang-format off */
static const char *const req_brief[] = {
	"local_comm_id", "local_qpn", "starting_psn", "service_id", "pkey", "path_mtu",
	"responder_resources", "initiator_depth", "retry_count", "rnr_retry_count",
	"local_cm_response_timeout", "max_cm_retries", NULL
};
static const char *const rep_brief[] = {
	"local_comm_id", "remote_comm_id", "local_qpn", "starting_psn", "responder_resources",
	"initiator_depth", "rnr_retry_count", "target_ack_delay", NULL
};
static const char *const ids_brief[] = { "local_comm_id", "remote_comm_id", NULL };
static const char *const mra_brief[] = {
	"local_comm_id", "remote_comm_id", "message", "service_timeout", NULL
};
static const char *const rej_brief[] = {
	"reason", "message", "local_comm_id", "remote_comm_id", "ari", NULL
};
static const char *const dreq_brief[] = {
	"local_comm_id", "remote_comm_id", "remote_qpn", NULL
};
static const char *const sidr_req_brief[] = { "request_id", "service_id", "pkey", NULL };
static const char *const sidr_rep_brief[] = { "request_id", "status", "qpn", "qkey", NULL };
static const char *const lap_brief[] = {
	"local_comm_id", "remote_comm_id", "alternate.local_lid", "alternate.remote_lid", NULL
};
static const char *const apr_brief[] = { "local_comm_id", "remote_comm_id", "status", NULL };
/* clang-format on */

static const char *const *const briefs[FLOW_MESSAGES] = {
#define AT(name) [CM_ATTR_##name - CM_ATTR_REQ]
	AT(REQ) = req_brief,  AT(MRA) = mra_brief,	     AT(REJ) = rej_brief,
	AT(REP) = rep_brief,  AT(RTU) = ids_brief,	     AT(DREQ) = dreq_brief,
	AT(DREP) = ids_brief, AT(SIDR_REQ) = sidr_req_brief, AT(SIDR_REP) = sidr_rep_brief,
	AT(LAP) = lap_brief,  AT(APR) = apr_brief,
#undef AT
};

/* Zero is significant in these: REQ as the message a REJ refers to, success. */
static bool is_said_when_zero(const char *name)
{
	return strcmp(name, "message") == 0 || strcmp(name, "status") == 0;
}

char *show_brief(const struct cm_msg *msg)
{
	const struct wire_layout *layout = cm_msg_layout(msg->hdr.attr_id);
	const char *const *name = briefs[msg->hdr.attr_id - CM_ATTR_REQ];
	const struct wire_field *field;
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return NULL;
	for (; *name; name++) {
		field = field_find(layout, *name);
		if (field_is_zero(field, &msg->req) && !is_said_when_zero(*name))
			continue;
		putc(' ', out);
		fputs(*name, out);
		putc('=', out);
		field_print(field, &msg->req, out);
		field_print_note(field, &msg->req, out);
	}
	fclose(out);
	return text;
}

void show_begin(struct show *show, const struct observation *observation)
{
	if (!show->has_begun) {
		show->has_begun = true;
		show->start_ns = show->last_ns = observation->time_ns;
	}
}

/*
 * The clock may have been set back during a capture. Not computed as a double, which took half of a
 * line's time. Return: columns.
 */
static int print_time(const struct show *show, const struct observation *observation)
{
	const int64_t since_ns = (int64_t)(observation->time_ns - show->start_ns);
	const uint64_t us = (uint64_t)((since_ns < 0 ? -since_ns : since_ns) + NS_PER_US / 2) /
			    NS_PER_US;
	char text[32];

	if (show->is_absolute) {
		page_time(observation->time_ns, show->out);
		putc(' ', show->out);
		return DATE_COLUMNS;
	}
	snprintf(text, sizeof(text), "%s%" PRIu64 ".%06" PRIu64, since_ns < 0 ? "-" : "",
		 us / US_PER_S, us % US_PER_S);
	return fprintf(show->out, "%*s ", TIME_COLUMNS, text);
}

static const char *const way_marks[] = {
	[WAY_UNKNOWN] = "",
	[WAY_OUT] = "> ",
	[WAY_IN] = "< ",
};

static void widen_column(struct show *show, const char *who)
{
	int columns = (int)strlen(who);

	if (columns > show->who_columns)
		show->who_columns = columns;
}

static enum command_color color_of(const struct shown *shown)
{
	if (shown->step->is_stray || shown->step->is_copy)
		return COLOR_FAINT;
	if (shown->msg->hdr.attr_id == CM_ATTR_REJ)
		return COLOR_BAD;
	return shown->step->nth > 1 ? COLOR_NOTE : COLOR_NONE;
}

/* Return: columns printed. */
static int print_head(struct show *show, const struct shown *shown)
{
	const struct flow_step *step = shown->step;
	char active[FLOW_WHO_BYTES], passive[FLOW_WHO_BYTES], number[16];
	int columns;

	flow_who(step->flow, FLOW_ACTIVE, active);
	flow_who(step->flow, FLOW_PASSIVE, passive);
	widen_column(show, active);
	widen_column(show, passive);
	snprintf(number, sizeof(number), "#%u", step->flow->number);
	columns = print_time(show, shown->observation) +
		  fprintf(show->out, "%s%-4s %-*s %s %-*s ", way_marks[shown->observation->way],
			  number, show->who_columns, active,
			  step->from == FLOW_ACTIVE ? "-->" : "<--", show->who_columns, passive);
	command_color(color_of(shown));
	columns += fprintf(show->out, "%-*s", NAME_COLUMNS,
			   cm_msg_layout(shown->msg->hdr.attr_id)->name);
	command_color(COLOR_NONE);
	return columns;
}

static bool is_narrow(const struct show *show)
{
	return show->width && show->width < WIDE_COLUMNS;
}

/* In columns if there is room, otherwise as words. Return: columns used. */
static int print_states(const struct show *show, const struct flow_step *step, FILE *words)
{
	const char *active = cm_state_str(step->state[FLOW_ACTIVE]);
	const char *passive = cm_state_str(step->state[FLOW_PASSIVE]);

	if (is_narrow(show)) {
		if (!step->flow->is_sidr)
			fprintf(words, "%s | %s ", active, passive);
		return 0;
	}
	if (step->flow->is_sidr)
		return fprintf(show->out, " %*s", 2 * STATE_COLUMNS + 3, "");
	return fprintf(show->out, " %*s | %-*s", STATE_COLUMNS, active, STATE_COLUMNS, passive);
}

/* What is new in a message: its brief fields, or that it is repeated. */
static void print_notes(const struct shown *shown, FILE *out)
{
	const struct flow_step *step = shown->step;
	const struct flow_seen *seen = flow_seen(step->flow, (enum cm_attr)shown->msg->hdr.attr_id);
	char *brief = NULL;

	if (step->is_copy) {
		fputs("the same packet, captured once more", out);
		return;
	}
	if (step->is_stray)
		fputs("ignored: means nothing to its receiver in this state; ", out);
	if (step->nth > 1)
		fprintf(out, "repeated: number %u, %.3f s after the first", step->nth,
			clock_span_s(seen->first_ns, shown->observation->time_ns));
	else
		brief = show_brief(shown->msg);
	fputs(brief ? brief : "", out);
	free(brief);
}

void show_line(struct show *show, const struct shown *shown)
{
	int column = print_head(show, shown);
	char *text = NULL;
	size_t bytes;
	FILE *words = open_memstream(&text, &bytes);

	if (words) {
		column += print_states(show, shown->step, words);
		print_notes(shown, words);
		fclose(words);
	}
	putc(' ', show->out);
	page_fill(text ? text : "", (unsigned int)column + 1, TIME_COLUMNS + 1, show->width,
		  show->out);
	free(text);
}

/* --- the full decode ------------------------------------------------------ */

static void print_blob(const struct wire_field *field, const void *host, FILE *out)
{
	const uint8_t *bytes = (const uint8_t *)host + field->offset;
	uint16_t i, end = field->size;

	while (end > 0 && !bytes[end - 1])
		end--;
	if (!end)
		fprintf(out, "%u bytes, all zero", field->size);
	for (i = 0; i < end; i++)
		fprintf(out, "%s%02x",
			i && i % BYTES_A_LINE == 0 ? "\n                                  " : "",
			bytes[i]);
}

static void print_all(const char *title, const struct wire_layout *layout, const void *host,
		      FILE *out)
{
	const struct wire_field *field;
	size_t i;

	fprintf(out, "    %s\n", title);
	for (i = 0; i < layout->n_fields; i++) {
		field = &layout->field[i];
		if (field_is_part(layout, field))
			continue;
		fprintf(out, "      %-27s ", field->name);
		if (field->look == WIRE_DATA)
			print_blob(field, host, out);
		else
			field_print(field, host, out);
		field_print_note(field, host, out);
		putc('\n', out);
	}
}

static void print_packet(const struct observation *observation, FILE *out)
{
	char src[WHO_BYTES], dst[WHO_BYTES];

	fprintf(out, "    packet %" PRIu64 ": %s to %s, from queue pair 0x%x to 1, pkey 0x%04x\n",
		observation->number, who_str(&observation->src, src),
		who_str(&observation->dst, dst), observation->src_qpn, observation->pkey);
}

static void print_cma(const struct cm_msg *msg, FILE *out)
{
	const uint8_t *data = ip_header_of(msg);
	struct cma_hdr cma;

	if (!data)
		return;
	if (cma_hdr_read(data, &cma))
		print_all("IP CM header, the first 36 bytes of the private data", &cma_hdr_layout,
			  &cma, out);
	else
		fputs("    the private data does not begin with an IP CM header\n", out);
}

void show_verbose(struct show *show, const struct shown *shown)
{
	const struct wire_layout *layout = cm_msg_layout(shown->msg->hdr.attr_id);

	show_line(show, shown);
	print_packet(shown->observation, show->out);
	print_all("MAD header", &mad_hdr_layout, &shown->msg->hdr, show->out);
	print_all(layout->name, layout, &shown->msg->req, show->out);
	print_cma(shown->msg, show->out);
	putc('\n', show->out);
}

/* --- other MADs ---------------------------------------------------------- */

static const struct {
	uint8_t method;
	const char *name;
} methods[] = {
	{ 0x01, "Get" },     { 0x02, "Set" },	       { 0x12, "GetTable" },   { 0x15, "Delete" },
	{ 0x81, "GetResp" }, { 0x92, "GetTableResp" }, { 0x95, "DeleteResp" },
};

const struct wire_layout *sa_decode(const uint8_t mad[MAD_BYTES], struct sa_msg *ret)
{
	memset(ret, 0, sizeof(*ret));
	wire_decode(&mad_hdr_layout, mad, &ret->hdr);
	return sa_msg_decode(mad, MAD_BYTES, ret) ? NULL : sa_msg_layout(ret->hdr.attr_id);
}

const char *sa_name(const struct mad_hdr *hdr, char *buf, size_t bytes)
{
	const struct wire_layout *layout = sa_msg_layout(hdr->attr_id);
	const char *method = "method";
	char attr[16];
	size_t i;

	for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (methods[i].method == hdr->method)
			method = methods[i].name;
	}
	snprintf(attr, sizeof(attr), "0x%x", hdr->attr_id);
	snprintf(buf, bytes, "%s %s", method, layout ? layout->name : attr);
	return buf;
}

static void print_fields(const struct wire_layout *layout, const void *host, FILE *out)
{
	size_t i;

	for (i = 0; i < layout->n_fields; i++) {
		if (field_is_zero(&layout->field[i], host))
			continue;
		fprintf(out, " %s=", layout->field[i].name);
		field_print(&layout->field[i], host, out);
	}
}

void show_other(struct show *show, const struct observation *observation, bool verbose)
{
	char src[WHO_BYTES], dst[WHO_BYTES], name[48];
	const struct wire_layout *layout;
	struct sa_msg msg;

	layout = sa_decode(observation->mad, &msg);
	print_time(show, observation);
	fprintf(show->out, "%s%-4s %-*s --> %-*s ", way_marks[observation->way], "-",
		show->who_columns, who_str(&observation->src, src), show->who_columns,
		who_str(&observation->dst, dst));
	if (observation_is_cm(observation))
		fprintf(show->out,
			"not a CM message that is known: class version %u, method 0x%x, "
			"attribute 0x%x",
			msg.hdr.class_version, msg.hdr.method, msg.hdr.attr_id);
	else
		fprintf(show->out, "SA       %s", sa_name(&msg.hdr, name, sizeof(name)));
	if (!observation_is_cm(observation) && msg.hdr.status)
		fprintf(show->out, " status=0x%x", msg.hdr.status);
	if (layout && !observation_is_cm(observation) && !verbose)
		print_fields(layout, &msg.path, show->out);
	putc('\n', show->out);
	if (verbose) {
		print_packet(observation, show->out);
		print_all("MAD header", &mad_hdr_layout, &msg.hdr, show->out);
		if (layout && !observation_is_cm(observation))
			print_all(layout->name, layout, &msg.path, show->out);
		putc('\n', show->out);
	}
}

/* --- a connection as a sequence chart ------------------------------------- */

#define CHART_STATE_COLUMNS 13
#define ARROW_COLUMNS	    20
#define FIELD_INDENT	    13
#define GAP_NS		    1000000000ull

static void print_title(struct show *show, const struct flow *flow)
{
	char title[FLOW_TITLE_BYTES];

	fprintf(show->out, "%s\n\n", flow_title(flow, title));
	fprintf(show->out, "%11s  %-*s %*s  %s\n", "seconds", CHART_STATE_COLUMNS, "active",
		ARROW_COLUMNS, "", "passive");
}

/* Prints "----- REQ ---->", with the name centred. */
static void print_arrow(const char *name, bool right, FILE *out)
{
	int dashes = ARROW_COLUMNS - 3 - (int)strlen(name);
	int before = dashes / 2;

	if (!right)
		putc('<', out);
	for (; dashes > 0; dashes--) {
		putc('-', out);
		if (--before == 0)
			fprintf(out, " %s ", name);
	}
	if (right)
		putc('>', out);
}

/* Marks a long pause. */
static void print_gap(struct show *show, uint64_t now_ns)
{
	if (now_ns > show->last_ns + GAP_NS)
		fprintf(show->out, "%11s  %-*s %s\n", "...", CHART_STATE_COLUMNS, "",
			"nothing for long");
}

static void print_notes_below(struct show *show, const struct shown *shown)
{
	char *text = NULL;
	size_t bytes;
	FILE *words = open_memstream(&text, &bytes);

	if (words) {
		print_notes(shown, words);
		fclose(words);
	}
	fprintf(show->out, "%*s", FIELD_INDENT, "");
	page_fill(text ? text : "", FIELD_INDENT, FIELD_INDENT, show->width ? show->width : 100,
		  show->out);
	free(text);
}

void show_chart(struct show *show, const struct shown *shown)
{
	const struct flow_step *step = shown->step;

	if (!show->has_title)
		print_title(show, step->flow);
	show->has_title = true;
	print_gap(show, shown->observation->time_ns);
	show->last_ns = shown->observation->time_ns;
	fprintf(show->out, "%11.6f  %-*s ",
		clock_span_s(show->start_ns, shown->observation->time_ns), CHART_STATE_COLUMNS,
		step->flow->is_sidr ? "" : cm_state_str(step->state[FLOW_ACTIVE]));
	print_arrow(cm_msg_layout(shown->msg->hdr.attr_id)->name, step->from == FLOW_ACTIVE,
		    show->out);
	fprintf(show->out, "  %s\n",
		step->flow->is_sidr ? "" : cm_state_str(step->state[FLOW_PASSIVE]));
	print_notes_below(show, shown);
}
