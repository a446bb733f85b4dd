/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message as a line of JSON: one object per line, with all fields by their names in the
 * specification. Part of show.h. Integers that a double cannot represent exactly are strings.
 */
#include <inttypes.h>

#include "tools/purecm/field.h"
#include "tools/purecm/sa.h"
#include "tools/purecm/show.h"

#define NS_PER_S UINT64_C(1000000000)

static void print_text(const char *name, const char *text, FILE *out)
{
	fprintf(out, ",\"%s\":", name);
	print_json_string(text, out);
}

static void print_fields(const char *title, const struct wire_layout *layout, const void *host,
			 FILE *out)
{
	size_t i;
	int n = 0;

	fprintf(out, ",\"%s\":{", title);
	for (i = 0; i < layout->n_fields; i++) {
		if (field_is_part(layout, &layout->field[i]))
			continue;
		if (n++)
			putc(',', out);
		field_print_json(&layout->field[i], host, out);
	}
	putc('}', out);
}

static void print_observation(const struct observation *observation, FILE *out)
{
	static const char *const ways[] = {
		[WAY_UNKNOWN] = NULL,
		[WAY_OUT] = "out",
		[WAY_IN] = "in",
	};
	char who[WHO_BYTES];

	fprintf(out, "{\"time\":\"%" PRIu64 ".%09" PRIu64 "\",\"packet\":%" PRIu64,
		observation->time_ns / NS_PER_S, observation->time_ns % NS_PER_S,
		observation->number);
	print_text("src", who_str(&observation->src, who), out);
	print_text("dst", who_str(&observation->dst, who), out);
	if (ways[observation->way])
		print_text("way", ways[observation->way], out);
}

static void print_step(const struct flow_step *step, FILE *out)
{
	char text[FLOW_WHO_BYTES];

	fprintf(out, ",\"connection\":%u,\"nth\":%u,\"ignored\":%s,\"copy\":%s", step->flow->number,
		step->nth, step->is_stray ? "true" : "false", step->is_copy ? "true" : "false");
	print_text("from", step->from == FLOW_ACTIVE ? "active" : "passive", out);
	print_text("active", flow_who(step->flow, FLOW_ACTIVE, text), out);
	print_text("passive", flow_who(step->flow, FLOW_PASSIVE, text), out);
	print_text("service", flow_service(step->flow, text), out);
	print_text("outcome", flow_outcome_word(step->flow->outcome), out);
	if (step->flow->is_sidr)
		return;
	print_text("active_state", cm_state_str(step->state[FLOW_ACTIVE]), out);
	print_text("passive_state", cm_state_str(step->state[FLOW_PASSIVE]), out);
}

void show_json(struct show *show, const struct shown *shown)
{
	const struct wire_layout *layout = cm_msg_layout(shown->msg->hdr.attr_id);
	const struct flow *flow = shown->step->flow;

	print_observation(shown->observation, show->out);
	print_text("message", layout->name, show->out);
	print_step(shown->step, show->out);
	print_fields("mad", &mad_hdr_layout, &shown->msg->hdr, show->out);
	print_fields("fields", layout, &shown->msg->req, show->out);
	if (flow->has_cma &&
	    (shown->msg->hdr.attr_id == CM_ATTR_REQ || shown->msg->hdr.attr_id == CM_ATTR_SIDR_REQ))
		print_fields("cma", &cma_hdr_layout, &flow->cma, show->out);
	fputs("}\n", show->out);
}

void show_other_json(struct show *show, const struct observation *observation)
{
	const struct wire_layout *layout;
	struct sa_msg msg;
	char name[48];

	layout = sa_decode(observation->mad, &msg);
	print_observation(observation, show->out);
	if (observation_is_cm(observation))
		print_text("message", "unknown", show->out);
	else
		print_text("message", sa_name(&msg.hdr, name, sizeof(name)), show->out);
	print_fields("mad", &mad_hdr_layout, &msg.hdr, show->out);
	if (layout && !observation_is_cm(observation))
		print_fields("fields", layout, &msg.path, show->out);
	fputs("}\n", show->out);
}
