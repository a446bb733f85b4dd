/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * purecm explain: describes each connection; the cause and remedy of failures, and the time spent
 * in successful ones.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "tools/purecm/advice.h"
#include "tools/purecm/flow.h"
#include "tools/purecm/json.h"
#include "tools/purecm/subcommand.h"
#include "tools/purecm/reading.h"

#define INDENT	      10
#define WIDTH_DEFAULT 100

struct explain {
	struct reading reading; /* first */
	bool json;

	struct flows *flows;
	uint64_t end_ns;
	unsigned int width;
	unsigned int n[FLOW_N_OUTCOMES];
};

static void check_options(const void *input, struct argp_state *state)
{
	const struct explain *explain = input;

	reading_check(&explain->reading, state);
	if (explain->reading.filter.messages || explain->reading.filter.has_sa)
		argp_error(state, "--message chooses messages, not connections");
}

/* clang-format off */
static const struct command_option options[] = {
	{ "json", 'j', NULL, "an object a line", COMMAND_FLAG_AT(explain, json) },
	{ 0 },
};
/* clang-format on */

static const struct command_line usage = {
	.args = "[FILE]",
	.doc = "Tells for every failed connection what happened, the likely cause and the "
	       "remedy, and for every other one where its time went.",
	.options = options,
	.more = reading_options,
	.has_colors = true,
	.take_arg = reading_take_file,
	.check = check_options,
};

/* --- time spent ----------------------------------------------------------- */

static void print_resolving(const struct flow *flow, FILE *out)
{
	const struct flow_seen *req = flow_seen(flow, CM_ATTR_SIDR_REQ);
	const struct flow_seen *rep = flow_seen(flow, CM_ATTR_SIDR_REP);

	fprintf(out, "Queue pair 0x%x with Q_Key 0x%x was found", flow->sidr_rep.qpn,
		flow->sidr_rep.qkey);
	if (req->count)
		fprintf(out, " in %.1f ms", clock_span_ms(req->first_ns, rep->first_ns));
	fputs(".", out);
	if (req->count > 1)
		fprintf(out, " The SIDR_REQ was sent %u times: it or its answer was lost, or late.",
			req->count);
}

static void print_probed(const struct flow *flow, FILE *out)
{
	const struct flow_seen *req = flow_seen(flow, CM_ATTR_REQ);

	if (req->count)
		fprintf(out, "Answered in %.1f ms. ",
			clock_span_ms(req->first_ns, flow_seen(flow, CM_ATTR_REJ)->first_ns));
	fputs("`purecm ping` sends such requests, to port 0, where nobody can listen. A program "
	      "that does has named no port of its peer.",
	      out);
}

static void print_success(const struct flow *flow, FILE *out)
{
	if (flow->outcome == FLOW_FRAGMENT) {
		fputs("Only parts of it were seen.", out);
	} else if (flow->outcome == FLOW_PROBED) {
		print_probed(flow, out);
	} else if (flow->is_sidr) {
		print_resolving(flow, out);
	} else {
		delay_print(flow, out);
	}
}

/* --- one connection ------------------------------------------------------ */

char *explain_text(const struct context *context, const char *text)
{
	char *ret = NULL;
	size_t bytes;
	FILE *out = open_memstream(&ret, &bytes);

	if (!out)
		return NULL;
	if (text)
		context_print(context, text, out);
	else
		print_success(context->flow, out);
	fclose(out);
	return ret;
}

static void print_part(const struct explain *explain, const struct context *context,
		       const char *title, const char *text)
{
	char *filled = explain_text(context, text);

	printf("  %-*s", INDENT - 2, title);
	page_fill(filled ? filled : "", INDENT, INDENT, explain->width, stdout);
	free(filled);
}

static void print_prose(const struct explain *explain, const struct context *context,
			const struct advice *advice)
{
	const struct flow *flow = context->flow;
	char active[FLOW_WHO_BYTES], passive[FLOW_WHO_BYTES], service[FLOW_WHO_BYTES];

	printf("#%u ", flow->number);
	if (explain->reading.recorded) {
		page_time(flow->first_ns, stdout);
		fputs(", ", stdout);
	}
	printf("%s to %s, %s: ", flow_who(flow, FLOW_ACTIVE, active),
	       flow_who(flow, FLOW_PASSIVE, passive), flow_service(flow, service));
	command_color(advice ? COLOR_BAD : COLOR_GOOD);
	printf("%s%s", advice ? "FAILED: " : "", flow_outcome_text(flow->outcome));
	command_color(COLOR_NONE);
	puts(!advice && flow_is_one_sided(flow) ? ", seen from one side" : "");
	if (!advice) {
		print_part(explain, context, "time", NULL);
	} else {
		print_part(explain, context, "what", advice->what);
		print_part(explain, context, "cause", advice->cause);
		print_part(explain, context, "remedy", advice->remedy);
	}
	putchar('\n');
}

static void print_member(const struct context *context, const char *name, const char *text)
{
	char *filled = explain_text(context, text);

	json_text(name, filled, stdout);
	free(filled);
}

static void print_object(const struct context *context, const struct advice *advice)
{
	const struct flow *flow = context->flow;
	uint16_t attr;

	json_begin(NULL, stdout);
	json_uint("connection", flow->number, stdout);
	json_text("outcome", flow_outcome_word(flow->outcome), stdout);
	json_bool("failed", advice, stdout);
	print_member(context, "active", "{active}");
	print_member(context, "passive", "{passive}");
	print_member(context, "service", "{service}");
	json_begin("messages", stdout);
	for (attr = CM_ATTR_REQ; attr <= CM_ATTR_APR; attr++) {
		if (flow_seen(flow, attr)->count)
			json_uint(cm_msg_layout(attr)->name, flow_seen(flow, attr)->count, stdout);
	}
	json_end(stdout);
	json_fixed("seconds", clock_span_s(flow->first_ns, flow->last_ns), 6, stdout);
	if (flow_seen(flow, CM_ATTR_REJ)->count)
		json_uint("reason", flow->rej.reason, stdout);
	if (!advice) {
		print_member(context, "time", NULL);
	} else {
		print_member(context, "what", advice->what);
		print_member(context, "cause", advice->cause);
		print_member(context, "remedy", advice->remedy);
	}
	json_end(stdout);
}

/* --- all of them --------------------------------------------------------- */

static void print_summary(const struct explain *explain)
{
	unsigned int total = 0;
	enum flow_outcome i;

	for (i = 0; i < FLOW_N_OUTCOMES; i++)
		total += explain->n[i];
	printf("%u connection%s", total, total == 1 ? "" : "s");
	for (i = 0; i < FLOW_N_OUTCOMES; i++) {
		if (explain->n[i])
			printf("%s %u %s", total ? ":" : ",", explain->n[i], flow_outcome_word(i));
		if (explain->n[i])
			total = 0;
	}
	putchar('\n');
}

static uint64_t last_of(const struct flows *flows)
{
	uint64_t last_ns = 0;
	uint32_t i;

	for (i = 0; i < flows_count(flows); i++) {
		if (flows_get(flows, i)->last_ns > last_ns)
			last_ns = flows_get(flows, i)->last_ns;
	}
	return last_ns;
}

static void explain_flow(struct explain *explain, const struct flow *flow)
{
	const struct context context = { explain->flows, flow, explain->end_ns };
	const struct advice *advice;

	if (!filter_takes_flow(&explain->reading.filter, flow) ||
	    !filter_takes_outcome(&explain->reading.filter, flow->outcome))
		return;
	explain->n[flow->outcome]++;
	advice = advice_find(&context);
	if (explain->json)
		print_object(&context, advice);
	else
		print_prose(explain, &context, advice);
}

int explain_main(int argc, char **argv)
{
	struct explain explain = { .reading = { .file = NULL } };
	uint32_t i;
	int err;

	command_parse(&usage, argc, argv, &explain);
	err = reading_flows(&explain.reading, &explain.flows);
	if (!explain.flows)
		return STATUS_FAILED;
	/* The recording shows that no response has arrived up to now. */
	explain.end_ns = explain.reading.recorded ? clock_ns_of(CLOCK_REALTIME)
						  : last_of(explain.flows);
	explain.width = page_width();
	if (!explain.width)
		explain.width = WIDTH_DEFAULT;
	for (i = 0; i < flows_count(explain.flows); i++)
		explain_flow(&explain, flows_get(explain.flows, i));
	if (!explain.json)
		print_summary(&explain);
	if (!flows_count(explain.flows))
		complain("for what fails before the first message see PURECM_LOG=warn PROGRAM "
			 "and `purecm doctor ADDRESS'");
	flows_free(explain.flows);
	return err ? STATUS_FAILED : STATUS_OK;
}
