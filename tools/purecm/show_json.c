/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message as a line of JSON, with all fields by their names in the specification. Part of show.h.
 */
#include "tools/purecm/field.h"
#include "tools/purecm/json.h"
#include "tools/purecm/show.h"

static void print_fields(const char *title, const struct wire_layout *layout, const void *host,
			 FILE *out)
{
	size_t i;

	json_begin(title, out);
	for (i = 0; i < layout->n_fields; i++) {
		if (!field_is_part(layout, &layout->field[i]))
			field_print_json(&layout->field[i], host, out);
	}
	json_end(out);
}

static void print_observation(const struct observation *observation, FILE *out)
{
	static const char *const ways[] = { [WAY_OUT] = "out", [WAY_IN] = "in" };
	char who[WHO_BYTES];

	json_begin(NULL, out);
	json_time(observation->time_ns, out);
	json_uint("packet", observation->number, out);
	json_text("src", who_str(&observation->src, who), out);
	json_text("dst", who_str(&observation->dst, who), out);
	json_text("way", ways[observation->way], out);
}

static void print_step(const struct flow_step *step, FILE *out)
{
	char text[FLOW_WHO_BYTES];

	json_uint("connection", step->flow->number, out);
	json_uint("nth", step->nth, out);
	json_bool("ignored", step->is_stray, out);
	json_bool("copy", step->is_copy, out);
	json_text("from", step->from == FLOW_ACTIVE ? "active" : "passive", out);
	json_text("active", flow_who(step->flow, FLOW_ACTIVE, text), out);
	json_text("passive", flow_who(step->flow, FLOW_PASSIVE, text), out);
	json_text("service", flow_service(step->flow, text), out);
	json_text("outcome", flow_outcome_word(step->flow->outcome), out);
	if (step->flow->is_sidr)
		return;
	json_text("active_state", cm_state_str(step->state[FLOW_ACTIVE]), out);
	json_text("passive_state", cm_state_str(step->state[FLOW_PASSIVE]), out);
}

void show_json(struct show *show, const struct shown *shown)
{
	const struct wire_layout *layout = cm_msg_layout(shown->msg->hdr.attr_id);
	const struct flow *flow = shown->step->flow;

	print_observation(shown->observation, show->out);
	json_text("message", layout->name, show->out);
	print_step(shown->step, show->out);
	print_fields("mad", &mad_hdr_layout, &shown->msg->hdr, show->out);
	print_fields("fields", layout, &shown->msg->req, show->out);
	if (flow->has_cma &&
	    (shown->msg->hdr.attr_id == CM_ATTR_REQ || shown->msg->hdr.attr_id == CM_ATTR_SIDR_REQ))
		print_fields("cma", &cma_hdr_layout, &flow->cma, show->out);
	json_end(show->out);
}

void show_other_json(struct show *show, const struct observation *observation)
{
	const bool is_cm = observation_is_cm(observation);
	const struct wire_layout *layout;
	struct sa_msg msg;
	char name[48];

	layout = sa_decode(observation->mad, &msg);
	print_observation(observation, show->out);
	json_text("message", is_cm ? "unknown" : sa_name(&msg.hdr, name, sizeof(name)), show->out);
	print_fields("mad", &mad_hdr_layout, &msg.hdr, show->out);
	if (layout && !is_cm)
		print_fields("fields", layout, &msg.path, show->out);
	json_end(show->out);
}
