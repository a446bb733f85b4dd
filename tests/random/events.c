/* SPDX-License-Identifier: BSD-2-Clause */
/* The player's slots, its events, and how it waits for the peer. */
#include <poll.h>
#include <sched.h>

#include "player.h"

#define EVENTS_MAX 32

struct slot *slot_of(struct play *p, const struct rdma_cm_id *id)
{
	int i;

	for (i = 0; id && i < N_SLOTS; i++)
		if (p->slots[i].id == id)
			return &p->slots[i];
	return NULL;
}

struct slot *put_in_slot(struct play *p, size_t number, struct rdma_cm_id *id)
{
	struct slot *slot = &p->slots[number];

	*slot = (struct slot){ .id = id };
	snprintf(slot->label, sizeof(slot->label), "i%zu", number);
	assign_id_name(id, slot->label);
	return slot;
}

struct slot *take_slot(struct play *p, struct rdma_cm_id *id)
{
	size_t i;

	for (i = FIRST_CHILD; i < N_SLOTS && p->slots[i].id; i++)
		;
	if (i == N_SLOTS)
		return NULL;
	put_in_slot(p, i, id)->is_request = true;
	return &p->slots[i];
}

bool send_line_to_peer(struct play *p, const char *command)
{
	static FILE *from;
	char line[LINE_BYTES];

	if (!from)
		from = fdopen(dup(p->control), "r");
	if (dprintf(p->control, "%s\n", command) < 0)
		return false;
	while (fgets(line, sizeof(line), from)) {
		if (!strcmp(line, ".\n"))
			return true;
		printf("  peer:%s", line + (*line == ' '));
	}
	return false;
}

void take_pause(const struct play *p)
{
	usleep(p->pause_us);
}

/* A player that has the policy "idle" has another one during calls: the threads that a library
 * begins inherit it, so what they do has come to its end when the player continues. */
void set_idle(const struct play *p, bool is_on)
{
	const struct sched_param param = { 0 };

	if (p->is_idle)
		sched_setscheduler(0, is_on ? SCHED_IDLE : SCHED_OTHER, &param);
}

/* What this process did reaches the peer's before a command does, and its answer returns likewise:
 * twice, because an answer may have consequences of its own. */
void settle(struct play *p)
{
	if (p->control < 0) {
		take_pause(p);
	} else if (!p->is_settled) {
		take_pause(p);
		if (!send_line_to_peer(p, "ping")) {
			printf("the peer is gone\n");
			exit(3);
		}
		take_pause(p);
	}
	p->is_settled = true;
}

/* A number by which events of several ids are sorted: their order on a channel is not defined. */
static ptrdiff_t rank(struct play *p, const struct rdma_cm_event *event)
{
	const struct slot *slot = slot_of(p, event->id);
	const struct slot *listener = slot_of(p, event->listen_id);

	if (slot)
		return slot - p->slots;
	return listener ? N_SLOTS + (listener - p->slots) : 2 * N_SLOTS;
}

static void sort(struct play *p, struct rdma_cm_event **events, size_t n)
{
	struct rdma_cm_event *event;
	size_t i, j;

	for (i = 1; i < n; i++) {
		event = events[i];
		for (j = i; j && rank(p, events[j - 1]) > rank(p, event); j--)
			events[j] = events[j - 1];
		events[j] = event;
	}
}

/* Return: a request's id that finds no slot, to be destroyed after the event; or NULL. */
static struct rdma_cm_id *note_event(struct play *p, const struct rdma_cm_event *event)
{
	struct rdma_cm_id *refused = NULL;
	struct slot *slot = slot_of(p, event->id);

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST && !slot && !take_slot(p, event->id))
		refused = event->id;
	/* TIMEWAIT_EXIT comes seconds later. */
	if (event->event != RDMA_CM_EVENT_TIMEWAIT_EXIT)
		show_event(event);
	if (slot && event->event >= RDMA_CM_EVENT_UNREACHABLE)
		slot->connecting = false;
	if (slot && event->event == RDMA_CM_EVENT_CONNECT_RESPONSE)
		slot->has_response = true;
	return refused;
}

static void release_event(struct play *p, struct rdma_cm_event *event)
{
	struct rdma_cm_id *refused = note_event(p, event);

	p->is_settled = false;
	rdma_ack_cm_event(event);
	if (refused)
		rdma_destroy_id(refused);
}

/* Take an event, and acknowledge the one that was taken before in this way. */
void hold_event(struct play *p, struct rdma_event_channel *channel)
{
	struct rdma_cm_event *before = p->held;

	settle(p);
	if (rdma_get_cm_event(channel, &p->held))
		p->held = NULL;
	p->is_settled = !p->held;
	show_call("", p->held ? 0 : -1);
	if (p->held)
		note_event(p, p->held);
	if (before)
		rdma_ack_cm_event(before);
}

void take_events(struct play *p, struct rdma_event_channel *channel, bool wait)
{
	struct pollfd ready = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *events[EVENTS_MAX];
	size_t n = 0, before, i;

	putchar('\n');
	if (wait)
		poll(&ready, 1, p->limit_ms);
	do {
		before = n;
		settle(p);
		while (n < EVENTS_MAX && !rdma_get_cm_event(channel, &events[n]))
			n++;
		p->is_settled = n == before;
	} while (n != before);
	if (errno != EAGAIN)
		printf("  rdma_get_cm_event: %s\n", strerrorname_np(errno));
	sort(p, events, n);
	for (i = 0; i < n; i++)
		release_event(p, events[i]);
}
