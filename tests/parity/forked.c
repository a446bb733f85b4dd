/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: a forked child calls every function with objects that existed before the fork. */
#include <sys/wait.h>
#include <unistd.h>

#include "steps.h"

static bool is_child;

__attribute__((visibility("default"))) int __lsan_is_turned_off(void);

/* LeakSanitizer does not find what the threads held that a child does not have. */
int __lsan_is_turned_off(void)
{
	return is_child;
}

/* Runs a part in a forked child. */
static void in_child(void (*part)(struct scene *s, struct rdma_cm_id *id), struct scene *s,
		     struct rdma_cm_id *id)
{
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	is_child = !child;
	if (is_child) {
		part(s, id);
		exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		give_up("child: %s", strerror(errno));
	if (WIFSIGNALED(status))
		SAY("child ended by signal %d", WTERMSIG(status));
	else
		SAY("child exit status %d", WEXITSTATUS(status));
}

static void call_with_addresses(struct scene *s, struct rdma_cm_id *id)
{
	struct sockaddr *peer = at(&s->peer, s->port);

	DO(rdma_bind_addr(id, any(s, 0)));
	DO(rdma_resolve_addr(id, NULL, peer, RESOLVE_MS));
	DO(rdma_resolve_route(id, RESOLVE_MS));
	DO(rdma_listen(id, 0));
	DO(rdma_join_multicast(id, numeric("239.77.0.1", 0), NULL));
	SAY("port %d", rdma_get_src_port(id) != 0);
}

static void call_for_connections(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = usual_param("forked");
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	DO(rdma_connect(id, &param));
	DO(rdma_accept(id, &param));
	DO(rdma_reject(id, NULL, 0));
	DO(rdma_notify(id, IBV_EVENT_COMM_EST));
	DO(rdma_disconnect(id));
	DO(rdma_init_qp_attr(id, &attr, &mask));
}

static void call_with_channel(struct scene *s, struct rdma_cm_id *id)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *another;
	uint8_t tos = 8;

	DO(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)));
	DO(rdma_get_cm_event(s->channel, &event));
	DO(rdma_create_id(s->channel, &another, NULL, RDMA_PS_TCP));
}

static void call_all(struct scene *s, struct rdma_cm_id *id)
{
	call_with_addresses(s, id);
	call_for_connections(id);
	call_with_channel(s, id);
	DO(rdma_destroy_id(id));
	rdma_destroy_event_channel(s->channel);
}

static void call_with_listener(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);

	DO(rdma_bind_addr(id, at(&s->self, s->port)));
	DO(rdma_listen(id, 1));
	in_child(call_all, s, id);
	close_id(id);
}

static void call_with_resolved_id(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_UDP);

	resolve(s, id, s->port);
	in_child(call_all, s, id);
	DO(rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS));
	close_id(id);
}

static void call_with_connected_client(struct scene *s)
{
	struct rdma_cm_id *id = dial(s);

	in_child(call_all, s, id);
	meet(s);
	DO(rdma_disconnect(id));
	take_event(s);
	close_id(id);
}

static void call_with_connected_server(struct scene *s)
{
	struct rdma_cm_id *call_with_listener = listen_here(s, RDMA_PS_TCP, 0);
	struct rdma_cm_id *id = answer(s);

	in_child(call_all, s, id);
	meet(s);
	take_event(s);
	close_id(id);
	close_id(call_with_listener);
}

const struct scenario forked_scenarios[] = {
	LOCAL("forked-call_with_listener", call_with_listener, 0,
	      "every call in a forked child, with a call_with_listener"),
	LOCAL("forked-resolved", call_with_resolved_id, 0,
	      "every call in a forked child, with a route"),
	PAIR("forked-connected", call_with_connected_client, call_with_connected_server, 0,
	     "every call in a forked child, with a connection"),
	LAST_SCENARIO,
};
