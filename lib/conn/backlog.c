/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests beyond the backlog: see backlog.h.
 *
 * Requests that waited too long are dropped when the next one is taken, without a timer: while none
 * is taken, there is no room for the peers' retransmissions either.
 */
#include "lib/conn/backlog.h"

#include "base/clock.h"

#define WAITING_MAX 128
#define IDLE_NS	    (100 * CM_NS_PER_MS) /* the program takes no requests */
#define WAIT_NS	    (900 * CM_NS_PER_MS) /* the peer retransmits then */

bool backlog_has_room(const struct id *listener)
{
	return listener->n_waiting < WAITING_MAX;
}

void backlog_add(struct event *event)
{
	struct id *listener = event->owner;

	listener->n_waiting++;
	list_append(&listener->waiting, &event->link);
}

/* False once a REJ or the removal of its device has ended it. */
static bool is_alive(const struct id *child)
{
	return child->conn && child->conn->state == CM_REQ_RCVD;
}

static bool is_in_time(const struct id *listener, const struct id *child, struct cm_time now)
{
	uint64_t born = child->born.ns, taken = listener->taken_at.ns;

	return now.ns - born < WAIT_NS && now.ns - (taken > born ? taken : born) < IDLE_NS;
}

static struct event *take_first_waiting(struct id *listener)
{
	struct event *event = container_of(listener->waiting.next, struct event, link);

	list_remove(&event->link);
	listener->n_waiting--;
	return event;
}

/* Drops it without an answer, so that the peer may retry. */
static void drop_request(struct engine *engine, struct outbox *box, struct event *event,
			 struct list *dropped)
{
	struct id *child = event->subject;

	if (is_alive(child)) {
		engine_step(engine, box, child->conn, CM_CALL_FORGET, NULL);
		child->conn = NULL;
	}
	list_append(dropped, &event->link);
}

struct event *backlog_next(struct engine *engine, struct outbox *box, struct id *listener,
			   struct list *dropped)
{
	struct event *event;
	struct cm_time now;

	if (list_is_empty(&listener->waiting))
		return NULL;
	now = clock_now();
	while (!list_is_empty(&listener->waiting)) {
		event = take_first_waiting(listener);
		if (is_alive(event->subject) && is_in_time(listener, event->subject, now)) {
			listener->taken_at = now;
			return event;
		}
		drop_request(engine, box, event, dropped);
	}
	return NULL;
}

void backlog_drop_all(struct engine *engine, struct outbox *box, struct id *listener,
		      struct list *dropped)
{
	while (!list_is_empty(&listener->waiting))
		drop_request(engine, box, take_first_waiting(listener), dropped);
}

void backlog_free(struct list *dropped)
{
	struct event *event;

	list_for_each_entry_safe (event, dropped, link) {
		event->subject->destroy(event->subject);
		id_event_free(event);
	}
}
