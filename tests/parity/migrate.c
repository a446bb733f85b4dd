/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: moving ids between event channels. */
#include <pthread.h>
#include <stdatomic.h>

#include "steps.h"

static void waiting_events_move_along(struct scene *s)
{
	struct rdma_event_channel *old = s->channel, *new = rdma_create_event_channel();
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);

	if (rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS))
		give_up("rdma_resolve_addr: %s", strerror(errno));
	SAY("old %d new %d", is_ready(old, PATIENCE_MS), is_ready(new, 0));
	DO(rdma_migrate_id(id, new));
	SAY("old %d new %d", is_ready(old, QUIET_MS), is_ready(new, PATIENCE_MS));
	SAY("channel is the new one %d", id->channel == new);
	rdma_ack_cm_event(wait_event(new));
	DO(rdma_resolve_route(id, RESOLVE_MS));
	rdma_ack_cm_event(wait_event(new));
	SAY("old %d new %d", is_ready(old, QUIET_MS), is_ready(new, 0));
	DO(rdma_migrate_id(id, old));
	SAY("channel is the old one %d", id->channel == old);
	close_id(id);
	rdma_destroy_event_channel(new);
}

struct move {
	struct rdma_cm_id *id;
	struct rdma_event_channel *to;
	atomic_bool done;
};

static void *do_move(void *arg)
{
	struct move *move = arg;

	DO(rdma_migrate_id(move->id, move->to));
	atomic_store(&move->done, true);
	return NULL;
}

static void migration_waits_for_acknowledgements(struct scene *s)
{
	struct rdma_event_channel *new = rdma_create_event_channel();
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);
	struct move move = { .id = id, .to = new };
	struct rdma_cm_event *event;
	pthread_t mover;

	if (rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS))
		give_up("rdma_resolve_addr: %s", strerror(errno));
	event = wait_event(s->channel);
	pthread_create(&mover, NULL, do_move, &move);
	pause_ms(QUIET_MS);
	SAY("moved before the acknowledgement %d", atomic_load(&move.done));
	rdma_ack_cm_event(event);
	pthread_join(mover, NULL);
	close_id(id);
	rdma_destroy_event_channel(new);
}

static void ids_become_synchronous_and_back(struct scene *s)
{
	struct rdma_event_channel *old = s->channel;
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);

	DO(rdma_migrate_id(id, NULL));
	SAY("channel is another %d", id->channel && id->channel != old);
	DO(rdma_migrate_id(id, NULL));
	DO(rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS));
	show_id(id);
	show_event(id->event);
	DO(rdma_migrate_id(id, old));
	show_id(id);
	DO(rdma_resolve_route(id, RESOLVE_MS));
	take_event(s);
	close_id(id);
}

static void connect_to_moving_listener(struct scene *s)
{
	struct rdma_cm_id *id;

	meet(s);
	id = dial(s);
	meet(s);
	meet(s);
	DO(rdma_disconnect(id));
	take_event(s);
	close_id(id);
}

/*
 * A listener is moved before a request arrives: stock loses a queued one, though its descriptor
 * becomes readable.
 */
static void requests_and_connections_move(struct scene *s)
{
	struct rdma_event_channel *old = s->channel, *new = rdma_create_event_channel();
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child;

	DO(rdma_migrate_id(listener, new));
	meet(s);
	SAY("request: new %d old %d", is_ready(new, PATIENCE_MS), is_ready(old, QUIET_MS));
	s->channel = new;
	child = answer(s);
	SAY("child is on the new channel %d", child->channel == new);
	meet(s);
	DO(rdma_migrate_id(child, old));
	meet(s);
	rdma_ack_cm_event(wait_event(old));
	SAY("new %d", is_ready(new, QUIET_MS));
	DO(rdma_disconnect(child));
	close_id(child);
	close_id(listener);
	s->channel = old;
	rdma_destroy_event_channel(new);
}

/* --- to and from synchronous ids ----------------------------------------- */

static void connection_becomes_synchronous(struct scene *s)
{
	struct rdma_cm_id *id;

	meet(s);
	id = dial(s);
	DO(rdma_migrate_id(id, NULL));
	SAY("own channel %d event %s", id->channel != s->channel, id->event ? "set" : "NULL");
	meet(s);
	DO(rdma_disconnect(id));
	show_event(id->event);
	meet(s);
	close_id(id);
}

/* The listener becomes synchronous, the connection of its request asynchronous. */
static void listener_becomes_synchronous(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child;
	struct rdma_conn_param param = usual_param("welcome");

	DO(rdma_migrate_id(listener, NULL));
	SAY("own channel %d", listener->channel != s->channel);
	meet(s);
	DO(rdma_get_request(listener, &child));
	assign_id_name(child, "child");
	make_qp(child);
	DO(rdma_accept(child, &param));
	show_event(child->event);
	meet(s);
	DO(rdma_migrate_id(child, s->channel));
	SAY("scene's channel %d event %s", child->channel == s->channel,
	    child->event ? "set" : "NULL");
	meet(s);
	take_event(s);
	DO(rdma_disconnect(child));
	meet(s);
	DO(rdma_migrate_id(listener, s->channel));
	DO(rdma_get_request(listener, &child));
	close_id(child);
	close_id(listener);
}

/* A new id releases its request's event when it migrates, so the listener can be destroyed. */
static void request_stops_being_synchronous(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child;
	struct rdma_conn_param param = usual_param("welcome");

	DO(rdma_migrate_id(listener, NULL));
	meet(s);
	DO(rdma_get_request(listener, &child));
	assign_id_name(child, "child");
	show_event(child->event);
	DO(rdma_migrate_id(child, s->channel));
	SAY("event %s", child->event ? "set" : "NULL");
	close_id(listener);
	make_qp(child);
	DO(rdma_accept(child, &param));
	take_event(s);
	meet(s);
	meet(s);
	meet(s);
	take_event(s);
	DO(rdma_disconnect(child));
	close_id(child);
}

/* Moves the id before the answer arrives. */
static void move_connecting_id(struct scene *s)
{
	struct rdma_event_channel *new = rdma_create_event_channel();
	struct rdma_conn_param param = usual_param("on the move");
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);

	make_qp(id);
	DO(rdma_connect(id, &param));
	DO(rdma_migrate_id(id, NULL));
	DO(rdma_migrate_id(id, new));
	DO(rdma_migrate_id(id, NULL));
	meet(s);
	SAY("becomes readable %d", is_ready(id->channel, PATIENCE_MS));
	DO(rdma_migrate_id(id, new));
	rdma_ack_cm_event(wait_event(new));
	show_qp_state(id);
	meet(s);
	close_id(id);
	rdma_destroy_event_channel(new);
}

static void answer_late(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = wait_request(s);
	struct rdma_conn_param param = usual_param("welcome");

	make_qp(child);
	meet(s);
	DO(rdma_accept(child, &param));
	take_event(s);
	meet(s);
	close_id(child);
	close_id(listener);
}

const struct scenario migrate_scenarios[] = {
	LOCAL("migrate-events", waiting_events_move_along, 0,
	      "undelivered events move with their id"),
	LOCAL("migrate-waits", migration_waits_for_acknowledgements, 0,
	      "migration waits for delivered events to be acknowledged"),
	LOCAL("migrate-synchronous", ids_become_synchronous_and_back, 0, "to no channel, and back"),
	PAIR("migrate-connection", connect_to_moving_listener, requests_and_connections_move, 0,
	     "a listener before its request, and a live connection"),
	PAIR("migrate-to-synchronous", connection_becomes_synchronous, listener_becomes_synchronous,
	     0, "a connection, a listener, and back"),
	PAIR("migrate-request", connect_to_moving_listener, request_stops_being_synchronous, 0,
	     "a request of a synchronous listener moves before it is accepted"),
	PAIR("migrate-connecting", move_connecting_id, answer_late, 0,
	     "there and back while the peer has not answered, with its answer waiting"),
	LAST_SCENARIO,
};
