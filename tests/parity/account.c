/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: acknowledgements that a destroy call waits for. */
#include <pthread.h>
#include <stdatomic.h>

#include "steps.h"

/* A call that may block, in a thread of its own. */
struct blocked {
	pthread_t thread;
	struct rdma_cm_id *id;
	atomic_bool done;
	int result;
};

/* QUIET_MS for a destroy that must wait, PATIENCE_MS for one that must return. */
static void *destroy(void *arg)
{
	struct blocked *blocked = arg;

	blocked->result = rdma_destroy_id(blocked->id);
	atomic_store(&blocked->done, true);
	return NULL;
}

static void start_destroy(struct blocked *blocked, struct rdma_cm_id *id, int patience_ms)
{
	blocked->id = id;
	atomic_store(&blocked->done, false);
	pthread_create(&blocked->thread, NULL, destroy, blocked);
	for (; patience_ms && !atomic_load(&blocked->done); patience_ms--)
		pause_ms(1);
	SAY("destroy of %s has returned: %d", id_name(id), atomic_load(&blocked->done));
}

static void end_destroy(struct blocked *blocked)
{
	pthread_join(blocked->thread, NULL);
	SAY("destroy returned %d", blocked->result);
}

static void destroy_waits_for_its_events(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);
	struct rdma_cm_event *first, *second;
	struct blocked blocked;

	if (rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS))
		give_up("rdma_resolve_addr: %s", strerror(errno));
	first = wait_event(s->channel);
	DO(rdma_resolve_route(id, RESOLVE_MS));
	second = wait_event(s->channel);
	start_destroy(&blocked, id, QUIET_MS);
	DO(rdma_ack_cm_event(second));
	pause_ms(QUIET_MS);
	SAY("one of two acknowledged: %d", atomic_load(&blocked.done));
	SAY("event still readable: %s", rdma_event_str(first->event));
	DO(rdma_ack_cm_event(first));
	end_destroy(&blocked);
}

static void destroy_does_not_wait_for_others(struct scene *s)
{
	struct rdma_cm_id *one = open_id(s, "one", RDMA_PS_TCP);
	struct rdma_cm_id *two = open_id(s, "two", RDMA_PS_TCP);
	struct rdma_cm_event *event;
	struct blocked blocked;

	if (rdma_resolve_addr(one, NULL, at(&s->peer, s->port), RESOLVE_MS))
		give_up("rdma_resolve_addr: %s", strerror(errno));
	event = wait_event(s->channel);
	start_destroy(&blocked, two, PATIENCE_MS);
	end_destroy(&blocked);
	rdma_ack_cm_event(event);
	close_id(one);
}

static void send_request(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("account");

	make_qp(id);
	DO(rdma_connect(id, &param));
	take_event(s);
	show_quiet(s->channel);
	meet(s);
	close_id(id);
}

static void requests_are_charged_to_the_listener(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0);
	struct rdma_cm_event *event = wait_event(s->channel);
	struct blocked child, parent;

	assign_id_name(event->id, "child");
	start_destroy(&child, event->id, PATIENCE_MS);
	end_destroy(&child);
	start_destroy(&parent, listener, QUIET_MS);
	DO(rdma_ack_cm_event(event));
	end_destroy(&parent);
	meet(s);
}

static void child_outlives_its_listener(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child;
	struct rdma_conn_param param = usual_param("late");

	child = wait_request(s);
	DO(rdma_destroy_id(listener));
	make_qp(child);
	DO(rdma_accept(child, &param));
	take_event(s);
	meet(s);
	meet(s);
	close_id(child);
}

static void unfetched_children_go_with_the_listener(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0);

	SAY("request waits %d", is_ready(s->channel, PATIENCE_MS));
	DO(rdma_destroy_id(listener));
	show_quiet(s->channel);
	meet(s);
}

/* The client waits for ESTABLISHED, and gives the server time before it disconnects. */
static void send_request_and_leave(struct scene *s)
{
	struct rdma_cm_id *id = dial(s);

	meet(s);
	close_id(id);
}

const struct scenario account_scenarios[] = {
	LOCAL("account-own", destroy_waits_for_its_events, 0,
	      "destroy waits until every delivered event of the id is acknowledged"),
	LOCAL("account-others", destroy_does_not_wait_for_others, 0,
	      "destroy does not wait for events of other ids"),
	PAIR("account-request", send_request, requests_are_charged_to_the_listener, 0,
	     "a request's event holds the listener, not the new id"),
	PAIR("account-orphan", send_request_and_leave, child_outlives_its_listener, 0,
	     "accepting after the listener was destroyed"),
	PAIR("account-unfetched", send_request, unfetched_children_go_with_the_listener, 0,
	     "a listener destroyed with a request that nobody fetched"),
	LAST_SCENARIO,
};
