/* SPDX-License-Identifier: BSD-2-Clause */
/* See transcript.h. */
#include "tests/roce/transcript.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/test.h"

static char said[8192];
unsigned int transcript_lost;

void transcript_add(const char *format, ...)
{
	size_t at = strlen(said);
	va_list list;

	va_start(list, format);
	vsnprintf(said + at, sizeof(said) - at, format, list);
	va_end(list);
}

static void add_flags(const struct fab_packet *packet)
{
	static const struct {
		uint8_t flag;
		const char *letter;
	} letters[] = {
		{ FAB_FIRST, "f" },	{ FAB_LAST, "l" }, { FAB_ASK_ACK, "a" },
		{ FAB_SOLICITED, "s" }, { FAB_IMM, "i" },  { FAB_INVALIDATE, "v" },
	};
	unsigned int i;

	for (i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
		if (packet->flags & letters[i].flag)
			transcript_add("%s", letters[i].letter);
}

/* The header fields of a packet of this kind. */
static void add_fields(const struct fab_packet *packet)
{
	uint8_t op = packet->op;
	bool is_first_write = op == FAB_OP_WRITE && packet->flags & FAB_FIRST;

	if (op == FAB_OP_READ || is_first_write)
		transcript_add(" at %" PRIu64 "+%u", packet->remote_addr, packet->dma_bytes);
	if (op == FAB_OP_FETCH_ADD || op == FAB_OP_COMPARE_SWAP)
		transcript_add(" at %" PRIu64 " %" PRIu64 " %" PRIu64, packet->remote_addr,
			       packet->compare_add, packet->swap);
	if (op == FAB_OP_ATOMIC_RESPONSE)
		transcript_add(" was %" PRIu64, packet->compare_add);
	if (op == FAB_OP_NAK)
		transcript_add(" why %u", packet->syndrome);
	if (packet->bytes)
		transcript_add(" %u bytes", packet->bytes);
	if (packet->flags & FAB_IMM)
		transcript_add(" imm %x", packet->imm);
	if (op == FAB_OP_ATOMIC_RESPONSE || op == FAB_OP_NAK || op == FAB_OP_ACK ||
	    op == FAB_OP_READ_RESPONSE)
		transcript_add(" msn %u", packet->msn);
}

static void add_packet(unsigned int from, const struct fab_packet *packet)
{
	static const char *const names[] = {
		[FAB_OP_SEND] = "SEND",
		[FAB_OP_WRITE] = "WRITE",
		[FAB_OP_READ] = "READ",
		[FAB_OP_READ_RESPONSE] = "RESPONSE",
		[FAB_OP_COMPARE_SWAP] = "COMPARE_SWAP",
		[FAB_OP_FETCH_ADD] = "FETCH_ADD",
		[FAB_OP_ATOMIC_WRITE] = "ATOMIC_WRITE",
		[FAB_OP_FLUSH] = "FLUSH",
		[FAB_OP_ATOMIC_RESPONSE] = "ATOMIC_RESPONSE",
		[FAB_OP_ACK] = "ACK",
		[FAB_OP_NAK] = "NAK",
		[FAB_OP_DATAGRAM] = "DATAGRAM",
	};

	if (packet->op == FAB_OP_READ_RESPONSE && !(packet->flags & (FAB_FIRST | FAB_LAST)))
		return;
	transcript_add("%s %s ", from ? "<" : ">", names[packet->op]);
	add_flags(packet);
	transcript_add(" %u", packet->psn);
	add_fields(packet);
	transcript_add("\n");
}

static void add_completion(unsigned int end, const struct ibv_wc *wc)
{
	bool is_good = wc->status == IBV_WC_SUCCESS;

	transcript_add("done %u", end);
	if (!is_good)
		transcript_add(" status %d", wc->status);
	else if (wc->opcode & IBV_WC_RECV)
		transcript_add(" received %u", wc->byte_len);
	if (is_good && wc->wc_flags & IBV_WC_WITH_IMM)
		transcript_add(" imm %x", wc->imm_data);
	if (is_good && wc->wc_flags & IBV_WC_WITH_INV)
		transcript_add(" invalidated %x", wc->invalidated_rkey);
	transcript_add("\n");
}

static void add_completions(struct world *world)
{
	struct ibv_async_event event;
	struct ibv_wc wc;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct event_queue *events = &world->end[i].context.async;

		while (ibv_poll_cq(world->end[i].cq, 1, &wc) == 1)
			add_completion(i, &wc);
		while (!list_is_empty(&events->events) &&
		       !ibv_get_async_event(&world->end[i].context.verbs.context, &event)) {
			transcript_add("event %u: %s\n", i, ibv_event_type_str(event.event_type));
			ibv_ack_async_event(&event);
		}
	}
}

void transcript_forget(void)
{
	said[0] = 0;
}

void transcript_compare(const char *wanted)
{
	ck_assert_str_eq(said, wanted);
	transcript_forget();
}

void transcript_check(struct world *world, const char *wanted)
{
	world_run(world);
	add_completions(world);
	transcript_compare(wanted);
}

static enum fate lose_one(unsigned int number, void *arg)
{
	(void)arg;
	return number == transcript_lost ? FATE_LOST : FATE_ARRIVES;
}

struct world *transcript_open(const struct world_config *config)
{
	struct world *world = world_open(config);

	transcript_forget();
	transcript_lost = UINT32_MAX;
	world->saw = add_packet;
	world->fate_of = lose_one;
	return world;
}
