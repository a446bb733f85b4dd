/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * purecm diff: compares two captures, connection by connection and message by message, and prints
 * in words what differs in the second.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tools/purecm/field.h"
#include "tools/purecm/json.h"
#include "tools/purecm/subcommand.h"
#include "tools/purecm/reading.h"

#define LATER_S	      0.1 /* more than scheduling explains */
#define INDENT	      11
#define WIDTH_DEFAULT 100
#define SIDES	      2
#define BUCKETS	      65536

/* A kind of message of a flow, from one end: the first message, and their number. */
struct said {
	enum cm_attr attr;
	enum flow_end from;
	unsigned int count;
	double after_s; /* since the previous message of the flow; 0 for the first */
	struct cm_msg msg;
};

struct talk {
	const struct flow *flow;
	struct said *said; /* ordered by the first message of each */
	unsigned int n;
	uint64_t last_ns;
	bool is_paired;
	struct talk *next; /* in its bucket */
};

/* A capture. */
struct side {
	const char *name;
	struct flows *flows;
	struct talk *talk; /* by flow number - 1 */
	uint32_t n;
};

struct diff {
	struct reading reading; /* first; only its filter */
	const char *file[SIDES];
	bool json;
	bool all;
	double later_s;

	struct side side[SIDES];
	unsigned int width;
	const struct talk *a, *b; /* flows being compared */
	const char *message;	  /* message being compared; "" for the whole flow */
	uint64_t n_pairs;
	uint64_t n_differences;
	bool has_title; /* of this pair */
};

static void take_file(void *input, char *path, struct argp_state *state)
{
	struct diff *diff = input;

	if (diff->file[1])
		argp_error(state, "two captures are compared");
	diff->file[diff->file[0] ? 1 : 0] = path;
}

static void check_options(const void *input, struct argp_state *state)
{
	const struct diff *diff = input;

	if (!diff->file[1])
		argp_error(state, "two captures are compared; name both");
	if (strcmp(diff->file[0], "-") == 0 && strcmp(diff->file[1], "-") == 0)
		argp_error(state, "standard input is one capture, not two");
}

/* clang-format off */
static const struct command_option options[] = {
	{ "all", 'a', NULL,
	  "also what always differs: ids, addresses, numbers of queue pairs and packets",
	  COMMAND_FLAG_AT(diff, all) },
	{ "later", 0, "SECONDS",
	  "report a message that comes so much later or earlier after the one before it (0.1)",
	  COMMAND_SECONDS_AT(diff, later_s, 0, 1e9) },
	{ "json", 'j', NULL, "an object a line", COMMAND_FLAG_AT(diff, json) },
	{ 0 },
};
/* clang-format on */

static const struct command_line usage = {
	.args = "A B",
	.doc = "Compares two captures: connections to the same service in their order, message by "
	       "message, field by field, and prints where B differs from A.\v"
	       "The exit status is 0 if nothing differs, else 1.",
	.options = options,
	.more = filter_options,
	.take_arg = take_file,
	.check = check_options,
};

/* --- reading -------------------------------------------------------------- */

/* Return: the entry for messages of a flow; NULL on ENOMEM. */
static struct talk *talk_of(struct side *side, const struct flow *flow)
{
	const uint32_t n = flow->number;
	struct talk *talk;

	if (n > side->n) {
		/*
		 * Flows begin one at a time, so the array doubles when their number is a power of
		 * 2.
		 */
		if ((n & (n - 1)) == 0) {
			talk = realloc(side->talk, 2ul * n * sizeof(*talk));
			if (!talk)
				return NULL;
			side->talk = talk;
		}
		side->n = n;
		side->talk[n - 1] = (struct talk){ .flow = NULL };
	}
	talk = &side->talk[n - 1];
	talk->flow = flow;
	return talk;
}

static struct said *find_said(const struct talk *talk, enum cm_attr attr, enum flow_end from)
{
	unsigned int i;

	for (i = 0; i < talk->n; i++) {
		if (talk->said[i].attr == attr && talk->said[i].from == from)
			return &talk->said[i];
	}
	return NULL;
}

/* The array is short. Return: NULL on ENOMEM. */
static struct said *add_said(struct talk *talk, const struct cm_msg *msg,
			     const struct flow_step *step, uint64_t now_ns)
{
	struct said *said = realloc(talk->said, (talk->n + 1) * sizeof(*said));

	if (!said)
		return NULL;
	talk->said = said;
	said = &talk->said[talk->n++];
	*said = (struct said){ .attr = msg->hdr.attr_id, .from = step->from, .msg = *msg };
	if (talk->n > 1)
		said->after_s = clock_span_s(talk->last_ns, now_ns);
	return said;
}

static int take_observation(void *arg, const struct observation *observation)
{
	struct side *side = arg;
	struct flow_step step;
	struct talk *talk;
	struct said *said;
	struct cm_msg msg;
	int err;

	if (!observation_decode(observation, &msg))
		return 0;
	err = flows_take(side->flows, observation, &msg, &step);
	if (err || step.is_copy)
		return err;
	talk = talk_of(side, step.flow);
	if (!talk)
		return -ENOMEM;
	said = find_said(talk, msg.hdr.attr_id, step.from);
	if (!said)
		said = add_said(talk, &msg, &step, observation->time_ns);
	if (!said)
		return -ENOMEM;
	said->count++;
	talk->last_ns = observation->time_ns;
	return 0;
}

static int read_side(struct side *side, const char *file)
{
	const struct reading reading = { .file = file };

	side->name = file;
	side->flows = flows_new(FLOWS_MAX, false);
	return side->flows ? reading_run(&reading, take_observation, side) : -ENOMEM;
}

static void free_side(struct side *side)
{
	uint32_t i;

	for (i = 0; i < side->n; i++)
		free(side->talk[i].said);
	free(side->talk);
	flows_free(side->flows);
}

/* --- output --------------------------------------------------------------- */

static void print_title(struct diff *diff)
{
	char a[FLOW_TITLE_BYTES], b[FLOW_TITLE_BYTES];

	if (diff->has_title)
		return;
	diff->has_title = true;
	printf("%sA %s\nB %s\n", diff->n_differences ? "\n" : "", flow_title(diff->a->flow, a),
	       flow_title(diff->b->flow, b));
}

/* @what: "responder_resources", or another name of what differs; @text is for people. */
static void print_difference(struct diff *diff, const char *what, const char *text)
{
	if (diff->json) {
		json_begin(NULL, stdout);
		json_uint("a", diff->a->flow->number, stdout);
		json_uint("b", diff->b->flow->number, stdout);
		json_text("message", diff->message, stdout);
		json_text("what", what, stdout);
		json_text("text", text, stdout);
		json_end(stdout);
	} else {
		print_title(diff);
		printf("  %-*s", INDENT - 2, diff->message);
		page_fill(text, INDENT, INDENT, diff->width, stdout);
	}
	diff->n_differences++;
}

/* --- fields --------------------------------------------------------------- */

/* These fields differ between any two connections or hosts; a difference has no meaning. */
static bool is_of_one(const char *name)
{
	static const char *const ends[] = { "comm_id",	"_qpn",	    "qpn",   "_psn",
					    "_guid",	"_gid",	    "_lid",  "request_id",
					    "ari",	"src_port", "_addr", "flow_label",
					    "ari_bytes" };
	const size_t n = strlen(name);
	size_t i;

	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		if (n >= strlen(ends[i]) && strcmp(name + n - strlen(ends[i]), ends[i]) == 0)
			return true;
	}
	return false;
}

static bool is_equal(const struct wire_field *field, const void *a, const void *b)
{
	return memcmp((const char *)a + field->offset, (const char *)b + field->offset,
		      field->size) == 0;
}

static void print_value(const struct wire_field *field, const void *host, FILE *out)
{
	field_print(field, host, out);
	field_print_note(field, host, out);
}

static void compare_field(struct diff *diff, const struct wire_field *field, const void *a,
			  const void *b)
{
	char *text = NULL;
	size_t bytes;
	FILE *out;

	if (is_equal(field, a, b) || (!diff->all && is_of_one(field->name)))
		return;
	out = open_memstream(&text, &bytes);
	if (!out)
		return;
	fprintf(out, "%s is ", field->name);
	print_value(field, a, out);
	fputs(" in A, ", out);
	print_value(field, b, out);
	fputs(" in B", out);
	fclose(out);
	print_difference(diff, field->name, text);
	free(text);
}

static void compare_rows(struct diff *diff, const struct wire_layout *layout, const void *a,
			 const void *b)
{
	size_t i;

	for (i = 0; i < layout->n_fields; i++) {
		if (!field_is_part(layout, &layout->field[i]) && layout->field[i].look != WIRE_DATA)
			compare_field(diff, &layout->field[i], a, b);
	}
}

/* Compares the program's own data, after the IP CM header, if there is one. */
static void compare_data(struct diff *diff, const struct cm_msg *a, const struct cm_msg *b)
{
	const struct wire_layout *layout = cm_msg_layout(a->hdr.attr_id);
	const bool has_header = ip_header_of(a) && ip_header_of(b);
	struct cma_hdr of_a, of_b;
	struct wire_field field;
	size_t i;

	if (has_header) {
		wire_decode(&cma_hdr_layout, ip_header_of(a), &of_a);
		wire_decode(&cma_hdr_layout, ip_header_of(b), &of_b);
		compare_rows(diff, &cma_hdr_layout, &of_a, &of_b);
	}
	for (i = 0; i < layout->n_fields; i++) {
		field = layout->field[i];
		if (field.look != WIRE_DATA)
			continue;
		if (has_header) {
			field.offset += CMA_HDR_BYTES;
			field.size -= CMA_HDR_BYTES;
		}
		compare_field(diff, &field, &a->req, &b->req);
	}
}

static void compare_header(struct diff *diff, const struct mad_hdr *a, const struct mad_hdr *b)
{
	static const char *const names[] = { "class_version", "status", "attr_mod" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		compare_field(diff, field_find(&mad_hdr_layout, names[i]), a, b);
}

/* --- messages ------------------------------------------------------------- */

static const char *side_of(enum flow_end end)
{
	return end == FLOW_ACTIVE ? "active" : "passive";
}

static void compare_counts(struct diff *diff, const struct said *a, const struct said *b)
{
	char text[128];

	if (a->count == b->count)
		return;
	snprintf(text, sizeof(text), "is sent %u time%s in A, %u in B", a->count,
		 a->count == 1 ? "" : "s", b->count);
	print_difference(diff, "count", text);
}

static void compare_times(struct diff *diff, const struct said *a, const struct said *b)
{
	const double later_s = b->after_s - a->after_s;
	char text[160];

	if (later_s <= diff->later_s && -later_s <= diff->later_s)
		return;
	snprintf(text, sizeof(text),
		 "comes %.3g s %s in B: %.3f s after the message before it, in A %.3f s",
		 later_s < 0 ? -later_s : later_s, later_s < 0 ? "earlier" : "later", b->after_s,
		 a->after_s);
	print_difference(diff, "time", text);
}

static void say_only(struct diff *diff, const struct said *said, char side)
{
	char text[160];

	if (!filter_takes_message(&diff->reading.filter, &said->msg))
		return;
	diff->message = cm_msg_layout(said->attr)->name;
	snprintf(text, sizeof(text), "of the %s side: only in %c%s%s", side_of(said->from), side,
		 said->attr == CM_ATTR_REJ ? ", with the reason " : "",
		 said->attr == CM_ATTR_REJ ? cm_rej_reason_str(said->msg.rej.reason) : "");
	print_difference(diff, "only", text);
}

static void compare_said(struct diff *diff, const struct said *a, const struct said *b)
{
	if (!filter_takes_message(&diff->reading.filter, &a->msg))
		return;
	diff->message = cm_msg_layout(a->attr)->name;
	compare_header(diff, &a->msg.hdr, &b->msg.hdr);
	compare_rows(diff, cm_msg_layout(a->attr), &a->msg.req, &b->msg.req);
	compare_data(diff, &a->msg, &b->msg);
	compare_counts(diff, a, b);
	compare_times(diff, a, b);
}

static void compare_outcomes(struct diff *diff)
{
	char text[256];

	if (diff->a->flow->outcome == diff->b->flow->outcome)
		return;
	diff->message = "";
	snprintf(text, sizeof(text), "A: %s; B: %s", flow_outcome_text(diff->a->flow->outcome),
		 flow_outcome_text(diff->b->flow->outcome));
	print_difference(diff, "outcome", text);
}

static void compare_talks(struct diff *diff, const struct talk *a, const struct talk *b)
{
	const struct said *other;
	unsigned int i;

	diff->a = a;
	diff->b = b;
	diff->has_title = false;
	diff->n_pairs++;
	for (i = 0; i < a->n; i++) {
		other = find_said(b, a->said[i].attr, a->said[i].from);
		if (other)
			compare_said(diff, &a->said[i], other);
		else
			say_only(diff, &a->said[i], 'A');
	}
	for (i = 0; i < b->n; i++) {
		if (!find_said(a, b->said[i].attr, b->said[i].from))
			say_only(diff, &b->said[i], 'B');
	}
	compare_outcomes(diff);
}

/* --- connections ---------------------------------------------------------- */

static bool is_taken(const struct diff *diff, const struct talk *talk)
{
	return filter_takes_flow(&diff->reading.filter, talk->flow) &&
	       filter_takes_outcome(&diff->reading.filter, talk->flow->outcome);
}

/* Flows of B without a partner: those to one service are in one bucket, in their order. */
static struct talk *bucket[BUCKETS];

static struct talk **find_bucket(const struct flow *flow, bool any_service)
{
	const uint64_t key[2] = { flow->is_sidr, any_service ? 0 : flow->service_id };

	return &bucket[hash_bytes(key, sizeof(key)) % BUCKETS];
}

static void fill_buckets(struct diff *diff, bool any_service)
{
	struct talk *b, **at;
	uint32_t i;

	memset(bucket, 0, sizeof(bucket));
	for (i = diff->side[1].n; i > 0; i--) {
		b = &diff->side[1].talk[i - 1];
		if (b->is_paired || !is_taken(diff, b))
			continue;
		at = find_bucket(b->flow, any_service);
		b->next = *at;
		*at = b;
	}
}

/* Takes the next flow of B that may correspond to one of A. Return: NULL if there is none. */
static struct talk *take_partner(const struct talk *a, bool any_service)
{
	struct talk **at = find_bucket(a->flow, any_service), *b;

	for (; (b = *at); at = &b->next) {
		if (b->flow->is_sidr == a->flow->is_sidr &&
		    (any_service || b->flow->service_id == a->flow->service_id)) {
			*at = b->next;
			return b;
		}
	}
	return NULL;
}

/* First pairs flows to the same service, then the remaining ones. */
static void pair_up(struct diff *diff, bool any_service)
{
	struct talk *a, *b;
	uint32_t i;

	fill_buckets(diff, any_service);
	for (i = 0; i < diff->side[0].n; i++) {
		a = &diff->side[0].talk[i];
		if (a->is_paired || !is_taken(diff, a))
			continue;
		b = take_partner(a, any_service);
		if (!b)
			continue;
		a->is_paired = b->is_paired = true;
		compare_talks(diff, a, b);
	}
}

static void say_unpaired(struct diff *diff, int side)
{
	char title[FLOW_TITLE_BYTES];
	const struct talk *talk;
	uint32_t i;

	for (i = 0; i < diff->side[side].n; i++) {
		talk = &diff->side[side].talk[i];
		if (talk->is_paired || !is_taken(diff, talk))
			continue;
		if (diff->json) {
			json_begin(NULL, stdout);
			json_uint(side ? "b" : "a", talk->flow->number, stdout);
			json_text("what", "only", stdout);
			json_end(stdout);
		} else {
			printf("%sonly in %c: %s: %s\n", diff->n_differences ? "\n" : "",
			       "AB"[side], flow_title(talk->flow, title),
			       flow_outcome_text(talk->flow->outcome));
		}
		diff->n_differences++;
	}
}

static void compare_all(struct diff *diff)
{
	pair_up(diff, false);
	pair_up(diff, true);
	say_unpaired(diff, 0);
	say_unpaired(diff, 1);
	if (diff->json)
		return;
	printf("%s%llu pair%s of connections: ", diff->n_differences ? "\n" : "",
	       (unsigned long long)diff->n_pairs, diff->n_pairs == 1 ? "" : "s");
	if (diff->n_differences)
		printf("%llu difference%s\n", (unsigned long long)diff->n_differences,
		       diff->n_differences == 1 ? "" : "s");
	else
		puts("nothing differs");
}

int diff_main(int argc, char **argv)
{
	struct diff diff = { .later_s = LATER_S };
	int i, err = 0;

	command_parse(&usage, argc, argv, &diff);
	diff.width = page_width();
	if (!diff.width)
		diff.width = WIDTH_DEFAULT;
	for (i = 0; i < SIDES && (!err || err == SOURCE_CUT); i++) {
		int of_side = read_side(&diff.side[i], diff.file[i]);

		err = of_side ? of_side : err;
	}
	if (!err || err == SOURCE_CUT)
		compare_all(&diff);
	for (i = 0; i < SIDES; i++)
		free_side(&diff.side[i]);
	return err || diff.n_differences ? STATUS_FAILED : STATUS_OK;
}
