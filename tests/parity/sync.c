/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: synchronous ids, whose calls return when their event arrives. */
#include <fcntl.h>
#include <infiniband/sa.h>
#include <pthread.h>
#include <stdatomic.h>

#include "steps.h"

static struct rdma_cm_id *open_synchronous(const char *label, enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(NULL, &id, (void *)(uintptr_t)label, ps))
		give_up("rdma_create_id: %s", strerror(errno));
	assign_id_name(id, label);
	return id;
}

static struct rdma_cm_id *synchronous_listener(struct scene *s, enum rdma_port_space ps)
{
	struct rdma_cm_id *id = open_synchronous("listener", ps);

	DO(rdma_bind_addr(id, any(s, s->port)));
	DO(rdma_listen(id, 0));
	meet(s);
	return id;
}

static struct rdma_cm_id *synchronous_ready(struct scene *s, enum rdma_port_space ps)
{
	struct rdma_cm_id *id = open_synchronous("client", ps);

	meet(s);
	DO(rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS));
	DO(rdma_resolve_route(id, RESOLVE_MS));
	has_flow_of_ports(rdma_get_src_port(id), rdma_get_dst_port(id));
	return id;
}

static void failures_become_errno(struct scene *s)
{
	struct rdma_cm_id *id = open_synchronous("id", RDMA_PS_TCP);

	show_id(id);
	DO(rdma_resolve_addr(id, NULL, beside(s, SILENT, s->port), 300));
	show_event(id->event);
	DO(rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS));
	show_event(id->event);
	DO(rdma_resolve_route(id, RESOLVE_MS));
	show_event(id->event);
	DO(rdma_bind_addr(id, any(s, 0)));
	show_event(id->event);
	DO(rdma_destroy_id(id));
}

static void nonblocking_calls_fail_with_eagain(struct scene *s)
{
	struct rdma_cm_id *id = open_synchronous("id", RDMA_PS_TCP);

	fcntl(id->channel->fd, F_SETFL, fcntl(id->channel->fd, F_GETFL) | O_NONBLOCK);
	DO(rdma_resolve_addr(id, NULL, beside(s, SILENT, s->port), 300));
	SAY("event %s", id->event ? "set" : "NULL");
	SAY("becomes readable %d", is_ready(id->channel, PATIENCE_MS));
	DO(rdma_destroy_id(id));
}

static void connect_in_step(struct scene *s)
{
	struct rdma_cm_id *id = synchronous_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("in step");

	make_qp(id);
	DO(rdma_connect(id, &param));
	show_event(id->event);
	show_qp_state(id);
	meet(s);
	DO(rdma_disconnect(id));
	show_event(id->event);
	meet(s);
	close_id(id);
}

static void accept_in_step(struct scene *s)
{
	struct rdma_cm_id *listener = synchronous_listener(s, RDMA_PS_TCP), *child;
	struct rdma_conn_param param = usual_param("welcome");

	DO(rdma_get_request(listener, &child));
	assign_id_name(child, "child");
	has_flow_of_ports(rdma_get_dst_port(child), rdma_get_src_port(child));
	show_event(child->event);
	show_id(child);
	SAY("own channel %d listener's event %s", child->channel != listener->channel,
	    listener->event ? "set" : "NULL");
	make_qp(child);
	DO(rdma_accept(child, &param));
	show_event(child->event);
	meet(s);
	DO(rdma_disconnect(child));
	show_event(child->event);
	meet(s);
	close_id(child);
	close_id(listener);
}

static void connect_and_be_rejected(struct scene *s)
{
	struct rdma_cm_id *id = synchronous_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("let me in");

	make_qp(id);
	DO(rdma_connect(id, &param));
	show_event(id->event);
	show_qp_state(id);
	DO(rdma_connect(id, &param));
	DO(rdma_resolve_route(id, RESOLVE_MS));
	DO(rdma_bind_addr(id, any(s, 0)));
	show_event(id->event);
	close_id(id);
}

static void connect_without_listener(struct scene *s)
{
	struct rdma_cm_id *id = open_synchronous("client", RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("anybody there?");

	DO(rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS));
	DO(rdma_resolve_route(id, RESOLVE_MS));
	make_qp(id);
	DO(rdma_connect(id, &param));
	show_event(id->event);
	show_qp_state(id);
	close_id(id);
}

static void reject_in_step(struct scene *s)
{
	struct rdma_cm_id *listener = synchronous_listener(s, RDMA_PS_TCP), *child;

	DO(rdma_get_request(listener, &child));
	assign_id_name(child, "child");
	DO(rdma_reject(child, "no", 2));
	SAY("event still there %d", child->event != NULL);
	close_id(child);
	close_id(listener);
}

static void reply_is_left_to_the_caller(struct scene *s)
{
	struct rdma_cm_id *id = synchronous_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("by hand");

	param.qp_num = unused_qpn();
	DO(rdma_connect(id, &param));
	show_event(id->event);
	DO(rdma_establish(id));
	meet(s);
	DO(rdma_disconnect(id));
	show_event(id->event);
	meet(s);
	close_id(id);
}

/* --- without waiting ----------------------------------------------------- */

/* With a fast network, or a slow program, the event may arrive before the call checks for it. */
static void take_own_event(struct rdma_cm_id *id, int result)
{
	if (!result)
		show_event(id->event);
	else if (errno != EAGAIN)
		give_up("%s", strerror(errno));
	else
		rdma_ack_cm_event(wait_event(id->channel));
}

static void connect_without_waiting(struct scene *s)
{
	struct rdma_cm_id *id = open_synchronous("client", RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("at leisure");

	meet(s);
	fcntl(id->channel->fd, F_SETFL, fcntl(id->channel->fd, F_GETFL) | O_NONBLOCK);
	take_own_event(id, rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS));
	take_own_event(id, rdma_resolve_route(id, RESOLVE_MS));
	make_qp(id);
	take_own_event(id, rdma_connect(id, &param));
	show_qp_state(id);
	meet(s);
	take_own_event(id, rdma_disconnect(id));
	meet(s);
	close_id(id);
}

/* The first event is already queued when the second call begins: that call takes it. */
static void take_request_with_own_event(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("too early");

	DO(rdma_bind_addr(id, at(&s->self, 0)));
	DO(rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS));
	if (!is_ready(s->channel, PATIENCE_MS))
		give_up("no event");
	DO(rdma_migrate_id(id, NULL));
	DO(rdma_resolve_route(id, RESOLVE_MS));
	show_event(id->event);
	SAY("becomes readable %d", is_ready(id->channel, PATIENCE_MS));
	param.qp_num = unused_qpn();
	DO(rdma_connect(id, &param));
	show_event(id->event);
	DO(rdma_destroy_id(id));
}

static void accept_and_stay(struct scene *s)
{
	struct rdma_cm_id *listener = synchronous_listener(s, RDMA_PS_TCP), *child;
	struct rdma_conn_param param = usual_param("welcome");

	DO(rdma_get_request(listener, &child));
	assign_id_name(child, "child");
	make_qp(child);
	DO(rdma_accept(child, &param));
	meet(s);
	SAY("becomes readable %d", is_ready(child->channel, PATIENCE_MS));
	DO(rdma_disconnect(child)); /* the other side waits for it */
	show_event(child->event);
	meet(s);
	close_id(child);
	close_id(listener);
}

/* --- events of other calls ----------------------------------------------- */

static struct rdma_cm_id *connect_now(struct scene *s)
{
	struct rdma_cm_id *id = synchronous_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("in step");

	make_qp(id);
	DO(rdma_connect(id, &param));
	return id;
}

static void disconnect_twice(struct scene *s)
{
	struct rdma_cm_id *id = connect_now(s);

	meet(s);
	DO(rdma_disconnect(id));
	show_event(id->event);
	meet(s);
	DO(rdma_disconnect(id));
	show_event(id->event);
	close_id(id);
}

static void disconnect_before_the_other(struct scene *s)
{
	struct rdma_cm_id *id = connect_now(s);

	meet(s);
	DO(rdma_disconnect(id));
	meet(s);
	close_id(id);
}

/* The event of an option belongs to no call: the next call takes it. */
static void event_of_a_path_is_the_next_calls(struct scene *s)
{
	struct rdma_cm_id *id = open_synchronous("client", RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("too early");
	struct ibv_path_data data = { .flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
					       IBV_PATH_FLAG_BIDIRECTIONAL };

	DO(rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS));
	memcpy(data.path.dgid.raw, id->route.addr.addr.ibaddr.dgid.raw, 16);
	memcpy(data.path.sgid.raw, id->route.addr.addr.ibaddr.sgid.raw, 16);
	data.path.flowlabel_hoplimit = htobe32(64);
	data.path.pkey = htobe16(0xffff);
	data.path.mtu = 2 << 6 | IBV_MTU_1024;
	DO(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &data, sizeof(data)));
	show_event(id->event);
	SAY("becomes readable %d", is_ready(id->channel, PATIENCE_MS));
	param.qp_num = unused_qpn();
	DO(rdma_connect(id, &param));
	show_event(id->event);
	close_id(id);
}

struct ending {
	struct rdma_cm_id *id;
	atomic_bool done;
};

static void *end_id(void *arg)
{
	struct ending *ending = arg;

	close_id(ending->id);
	atomic_store(&ending->done, true);
	return NULL;
}

/* The event of a request belongs to the listener, though the new id has a pointer to it. */
static void listener_waits_for_its_requests(struct scene *s)
{
	struct ending ending = { .id = synchronous_listener(s, RDMA_PS_TCP) };
	struct rdma_cm_id *child;
	pthread_t thread;

	DO(rdma_get_request(ending.id, &child));
	assign_id_name(child, "child");
	pthread_create(&thread, NULL, end_id, &ending);
	pause_ms(QUIET_MS);
	SAY("listener is gone %d", atomic_load(&ending.done));
	DO(rdma_reject(child, "no", 2));
	pause_ms(QUIET_MS);
	SAY("listener is gone %d", atomic_load(&ending.done));
	close_id(child);
	pthread_join(thread, NULL);
	SAY("listener is gone %d", atomic_load(&ending.done));
	meet(s);
}

static void connect_and_be_rejected_late(struct scene *s)
{
	struct rdma_cm_id *id = connect_now(s);

	show_event(id->event);
	meet(s);
	close_id(id);
}

/* --- lookups --------------------------------------------------------------- */

static void look_up_in_step(struct scene *s)
{
	struct rdma_cm_id *id = synchronous_ready(s, RDMA_PS_UDP);
	struct rdma_conn_param param = { .private_data = "who?", .private_data_len = 4 };

	make_qp(id);
	DO(rdma_connect(id, &param));
	show_event(id->event);
	close_id(id);
}

/* The accept has no event of its own. */
static void answer_in_step(struct scene *s)
{
	struct rdma_cm_id *listener = synchronous_listener(s, RDMA_PS_UDP), *child;
	struct rdma_conn_param param = { .private_data = "me", .private_data_len = 2 };

	DO(rdma_get_request(listener, &child));
	assign_id_name(child, "child");
	make_qp(child);
	DO(rdma_accept(child, &param));
	SAY("event %s", child->event ? "set" : "NULL");
	close_id(child);
	close_id(listener);
}

const struct scenario sync_scenarios[] = {
	LOCAL("sync-errors", failures_become_errno, 0, "events' statuses as errno"),
	LOCAL("sync-nonblocking", nonblocking_calls_fail_with_eagain, 0,
	      "a non-blocking channel: the call starts, and says EAGAIN"),
	PAIR("sync-connect", connect_in_step, accept_in_step, 0, "both sides synchronous"),
	PAIR("sync-refused", connect_and_be_rejected, reject_in_step, 0,
	     "a refusal, and its event until the id is destroyed"),
	LOCAL("sync-nobody", connect_without_listener, 0, "nobody listens"),
	PAIR("sync-nonblocking-life", connect_without_waiting, accept_and_stay, 0,
	     "a connection on a non-blocking channel, begun by calls and completed by events"),
	LOCAL("sync-one-behind", take_request_with_own_event, 0,
	      "a call that begins when the event of the one before is waiting"),
	PAIR("sync-disconnect-twice", disconnect_twice, accept_and_stay, SLOW,
	     "the second disconnect waits for the end of timewait"),
	PAIR("sync-disconnect-late", disconnect_before_the_other, accept_and_stay, 0,
	     "the other side's disconnect is the own one's event"),
	LOCAL("sync-path", event_of_a_path_is_the_next_calls, 0,
	      "a path from the caller, whose event is not waited for"),
	PAIR("sync-listener-waits", connect_and_be_rejected_late, listener_waits_for_its_requests,
	     0, "the end of a listener while a request's event is held by its id"),
	PAIR("sync-external", reply_is_left_to_the_caller, accept_in_step, 0,
	     "a synchronous id without a queue pair"),
	PAIR("sync-datagram", look_up_in_step, answer_in_step, 0,
	     "a lookup, both sides synchronous"),
	LAST_SCENARIO,
};
