/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any packets in a capture: parsed or skipped, followed, shown in every form and explained. A
 * packet of the input is a byte for the link type, two for its size, and its bytes.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tools/purecm/advice.h"
#include "tools/purecm/flow.h"
#include "tools/purecm/observation.h"
#include "tools/purecm/show.h"

#define PACKET_HEAD_BYTES 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const int links[] = { LINK_ETHERNET,   LINK_RAW_IP, LINK_SLL, LINK_ERF,
			     LINK_INFINIBAND, LINK_SLL2,   9999 };

static void print_all_ways(struct show *show, const struct shown *shown)
{
	show_begin(show, shown->observation);
	show_line(show, shown);
	show_verbose(show, shown);
	show_json(show, shown);
	show_chart(show, shown);
}

static void take(struct flows *flows, struct show *show, const struct observation *observation)
{
	struct flow_step step;
	struct cm_msg msg;
	const struct shown shown = { observation, &msg, &step };

	if (!observation_is_cm(observation) || cm_msg_decode(observation->mad, MAD_BYTES, &msg)) {
		show_other(show, observation, true);
		show_other_json(show, observation);
	} else if (flows_take(flows, observation, &msg, &step) == 0) {
		print_all_ways(show, &shown);
	}
}

static void explain(const struct flows *flows, FILE *out)
{
	const struct advice *advice;
	struct context context = { .flows = flows };
	uint32_t i;

	for (i = 0; i < flows_count(flows); i++) {
		context.flow = flows_get(flows, i);
		advice = advice_find(&context);
		if (!advice != !flow_has_failed(context.flow))
			abort();
		if (!advice)
			delay_print(context.flow, out);
		if (advice && (context_print(&context, advice->what, out) ||
			       context_print(&context, advice->cause, out) ||
			       context_print(&context, advice->remedy, out)))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static FILE *nowhere;
	struct show show = { .width = 80 };
	struct observation observation = { .time_ns = 0 };
	struct flows *flows = flows_new(FLOWS_MAX, false);
	size_t n;
	int link;

	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	show.out = nowhere;
	while (flows && bytes >= PACKET_HEAD_BYTES) {
		link = links[data[0] % (sizeof(links) / sizeof(links[0]))];
		n = (size_t)data[1] << 8 | data[2];
		data += PACKET_HEAD_BYTES;
		bytes -= PACKET_HEAD_BYTES;
		if (n > bytes)
			n = bytes;
		observation.time_ns += 1000000000;
		if (frame_find_mad(link, data, n, &observation) == 1)
			take(flows, &show, &observation);
		data += n;
		bytes -= n;
	}
	if (flows)
		explain(flows, nowhere);
	flows_free(flows);
	return 0;
}
