/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that poll: see poller.h.
 */
#include "tools/fabric/verbs/poller.h"

#include <sys/eventfd.h>

#include "tools/fabric/verbs/carrier.h"
#include "tools/fabric/verbs/tick.h"

#define NS_PER_MS	1000000
#define POLLS_BEFORE	64u
#define POLLS_PER_MS	4
#define POLLS_SHIFT_MAX 12

static void begin_count(struct fab_poller *poller, uint64_t now_ns)
{
	poller->n_polls = 0;
	poller->since_ns = now_ns;
	poller->n_at_tick = 0;
	poller->ticked_ns = now_ns;
}

static bool is_fast(uint32_t n_polls, uint64_t ns)
{
	return n_polls >= ns / NS_PER_MS * POLLS_PER_MS;
}

void poller_polled(struct fab_context *context)
{
	struct fab_poller *poller = &context->poller;
	uint64_t now_ns;

	if (++poller->n_polls < POLLS_BEFORE << poller->n_failed || poller->has_packets)
		return;
	now_ns = carrier_now_ns(context);
	if (is_fast(poller->n_polls, now_ns - poller->since_ns)) {
		poller->has_packets = true;
		tick_start(context);
	}
	begin_count(poller, now_ns);
}

void poller_arms(struct fab_context *context)
{
	if (context->poller.has_packets)
		eventfd_write(context->wake_fd, 1);
	context->poller.has_packets = false;
	begin_count(&context->poller, carrier_now_ns(context));
}

bool poller_has_packets(const struct fab_context *context)
{
	return context->poller.has_packets;
}

void poller_ticked(struct fab_context *context)
{
	struct fab_poller *poller = &context->poller;
	uint64_t now_ns = carrier_now_ns(context);
	uint32_t n_polls = poller->n_polls - poller->n_at_tick;

	/* The first tick may come at once. */
	if (now_ns - poller->ticked_ns < TICK_NS / 2)
		return;
	if (is_fast(n_polls, now_ns - poller->ticked_ns)) {
		poller->n_at_tick = poller->n_polls;
		poller->ticked_ns = now_ns;
		return;
	}
	begin_count(poller, now_ns);
	if (poller->has_packets && poller->n_failed < POLLS_SHIFT_MAX)
		poller->n_failed++;
	poller->has_packets = false;
}
