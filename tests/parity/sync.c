/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: synchronous ids, whose calls return when their event has come. */
#include <fcntl.h>

#include "steps.h"

static struct rdma_cm_id *open_synchronous(const char *label)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(NULL, &id, (void *)(uintptr_t)label, RDMA_PS_TCP))
		give_up("rdma_create_id: %s", strerror(errno));
	name_id(id, label);
	return id;
}

static struct rdma_cm_id *synchronous_listener(struct scene *s)
{
	struct rdma_cm_id *id = open_synchronous("listener");

	DO(rdma_bind_addr(id, any(s, s->port)));
	DO(rdma_listen(id, 0));
	meet(s);
	return id;
}

static struct rdma_cm_id *synchronous_ready(struct scene *s)
{
	struct rdma_cm_id *id = open_synchronous("client");

	meet(s);
	DO(rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS));
	DO(rdma_resolve_route(id, RESOLVE_MS));
	flow_is_from_ports(rdma_get_src_port(id), rdma_get_dst_port(id));
	return id;
}

static void failures_become_errno(struct scene *s)
{
	struct rdma_cm_id *id = open_synchronous("id");

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

static void nonblocking_is_eagain(struct scene *s)
{
	struct rdma_cm_id *id = open_synchronous("id");

	fcntl(id->channel->fd, F_SETFL, fcntl(id->channel->fd, F_GETFL) | O_NONBLOCK);
	DO(rdma_resolve_addr(id, NULL, beside(s, SILENT, s->port), 300));
	SAY("event %s", id->event ? "set" : "NULL");
	SAY("becomes readable %d", is_ready(id->channel, PATIENCE_MS));
	DO(rdma_destroy_id(id));
}

static void connect_in_step(struct scene *s)
{
	struct rdma_cm_id *id = synchronous_ready(s);
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
	struct rdma_cm_id *listener = synchronous_listener(s), *child;
	struct rdma_conn_param param = usual_param("welcome");

	DO(rdma_get_request(listener, &child));
	name_id(child, "child");
	flow_is_from_ports(rdma_get_dst_port(child), rdma_get_src_port(child));
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

static void connect_and_be_refused(struct scene *s)
{
	struct rdma_cm_id *id = synchronous_ready(s);
	struct rdma_conn_param param = usual_param("let me in");

	make_qp(id);
	DO(rdma_connect(id, &param));
	show_event(id->event);
	show_qp_state(id);
	close_id(id);
}

static void refuse_in_step(struct scene *s)
{
	struct rdma_cm_id *listener = synchronous_listener(s), *child;

	DO(rdma_get_request(listener, &child));
	name_id(child, "child");
	DO(rdma_reject(child, "no", 2));
	SAY("event still there %d", child->event != NULL);
	close_id(child);
	close_id(listener);
}

static void reply_is_left_to_the_caller(struct scene *s)
{
	struct rdma_cm_id *id = synchronous_ready(s);
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

const struct scenario sync_scenarios[] = {
	LOCAL("sync-errors", failures_become_errno, 0, "events' statuses as errno"),
	LOCAL("sync-nonblocking", nonblocking_is_eagain, 0,
	      "a non-blocking channel: the call starts, and says EAGAIN"),
	PAIR("sync-connect", connect_in_step, accept_in_step, 0, "both sides synchronous"),
	PAIR("sync-refused", connect_and_be_refused, refuse_in_step, 0, "a refusal"),
	PAIR("sync-external", reply_is_left_to_the_caller, accept_in_step, 0,
	     "a synchronous id without a queue pair"),
	LAST_SCENARIO,
};
