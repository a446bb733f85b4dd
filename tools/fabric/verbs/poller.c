/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that poll: see poller.h.
 */
#include "tools/fabric/verbs/poller.h"

#include <sys/eventfd.h>

#include "base/time.h"
#include "tools/fabric/verbs/grant.h"
#include "tools/fabric/verbs/tick.h"

#define POLLS_BEFORE	64u
#define POLLS_AGAIN	2u
#define POLLS_PER_MS	4
#define POLLS_PER_TICK	8 /* however long that was: others may have had the processor */
#define IDLE_TICKS	2 /* in a row: before one, the program may not have had the processor */
#define POLLS_SHIFT_MAX 12
#define COMPLETIONS	64
#define LESS_AFTER	16 /* completions */

static void begin_count(struct fab_poller *poller, uint64_t now_ns)
{
	poller->n_polls = 0;
	poller->since_ns = now_ns;
	poller->n_at_tick = 0;
	poller->ticked_ns = now_ns;
}

static bool is_fast(uint32_t n_polls, uint64_t ns)
{
	return n_polls >= ns / CM_NS_PER_MS * POLLS_PER_MS;
}

static uint32_t polls_before(const struct fab_poller *poller)
{
	return poller->n_failed ? POLLS_AGAIN << poller->n_failed : POLLS_BEFORE;
}

static void change_handler(struct fab_context *context, bool has_packets)
{
	context->poller.has_packets = has_packets;
	context->poller.n_looks = 0;
	grants_set_polled(context, has_packets);
}

/* The thread would notice, but only when a packet has woken it. */
static void leave_packets(struct fab_context *context, bool has_packets)
{
	change_handler(context, has_packets);
	loop_change(&context->loop, &context->packets, has_packets ? 0 : EPOLLIN);
}

void poller_polled(struct fab_context *context)
{
	struct fab_poller *poller = &context->poller;
	uint64_t now_ns;

	if (++poller->n_polls < polls_before(poller) || poller->has_packets)
		return;
	now_ns = carrier_now_ns(context);
	if (is_fast(poller->n_polls, now_ns - poller->since_ns)) {
		leave_packets(context, true);
		tick_start(context);
	}
	begin_count(poller, now_ns);
}

/* Otherwise a program with shorter waits would never get the packets back. */
static void require_less(struct fab_poller *poller)
{
	if (++poller->n_by_thread < LESS_AFTER)
		return;
	poller->n_by_thread = 0;
	if (poller->n_failed > 1)
		poller->n_failed--;
}

void poller_note_completion(struct fab_context *context)
{
	struct fab_poller *poller = &context->poller;
	bool is_polling = poller->has_packets || poller->n_polls;

	if (!poller->n_failed)
		return;
	begin_count(poller, carrier_now_ns(context));
	if (is_polling && ++poller->n_found == COMPLETIONS) {
		poller->n_failed = poller->n_found = 0;
		return;
	}
	if (!poller->has_packets) {
		require_less(poller);
		return;
	}
	leave_packets(context, false);
	if (poller->n_failed > 1)
		poller->n_failed--;
}

void poller_thread_took(struct fab_context *context)
{
	if (!context->poller.n_polls)
		context->poller.n_found = 0;
}

void poller_arms(struct fab_context *context)
{
	if (context->poller.has_packets)
		eventfd_write(context->wake_fd, 1);
	change_handler(context, false);
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
	poller->n_idle_ticks = n_polls >= POLLS_PER_TICK ? 0 : poller->n_idle_ticks + 1;
	if (poller->n_idle_ticks < IDLE_TICKS) {
		poller->n_at_tick = poller->n_polls;
		poller->ticked_ns = now_ns;
		return;
	}
	poller->n_idle_ticks = 0;
	begin_count(poller, now_ns);
	if (poller->has_packets && poller->n_failed < POLLS_SHIFT_MAX)
		poller->n_failed++;
	change_handler(context, false);
}
