/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parity: the transitions of a queue pair that the library makes. ibv_modify_qp() is defined here,
 * in front of libibverbs', to observe them.
 */
#include <dlfcn.h>

#include "steps.h"

static char moves[128];

static const char *const state_names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

__attribute__((visibility("default"))) int ibv_modify_qp(struct ibv_qp *qp,
							 struct ibv_qp_attr *attr, int mask)
{
	int (*real)(struct ibv_qp *, struct ibv_qp_attr *, int);
	size_t n = strlen(moves);

	*(void **)&real = dlsym(RTLD_NEXT, "ibv_modify_qp");
	if (attr->qp_state <= IBV_QPS_ERR)
		snprintf(moves + n, sizeof(moves) - n, " %s", state_names[attr->qp_state]);
	return real(qp, attr, mask);
}

static void show_moves(const char *when)
{
	SAY("%s:%s", when, moves);
	moves[0] = '\0';
}

static void get_and_ack(struct scene *s)
{
	rdma_ack_cm_event(get_event(s->channel, PATIENCE_MS));
}

static void connect_and_count(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("count");

	make_qp(id);
	show_moves("created");
	DO(rdma_connect(id, &param));
	show_moves("asked");
	take_event(s);
	show_moves("connected");
	meet(s);
	DO(rdma_disconnect(id));
	show_moves("disconnected");
	take_event(s);
	meet(s);
	close_id(id);
	show_moves("destroyed");
}

static void accept_and_count(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = wait_request(s);
	struct rdma_conn_param param = usual_param("count");

	make_qp(child);
	show_moves("created");
	DO(rdma_accept(child, &param));
	show_moves("accepted");
	take_event(s);
	meet(s);
	take_event(s);
	show_moves("left");
	DO(rdma_disconnect(child));
	show_moves("disconnected");
	meet(s);
	close_id(child);
	close_id(listener);
}

/* Queued events move nothing: taking them does. */
static void connect_and_wait(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("wait");

	make_qp(id);
	DO(rdma_connect(id, &param));
	moves[0] = '\0';
	SAY("the answer is here: %d", is_ready(s->channel, PATIENCE_MS));
	show_moves("not taken");
	meet(s);
	get_and_ack(s);
	SAY("moved when it was taken: %d", moves[0] != '\0');
	moves[0] = '\0';
	meet(s);
	SAY("the end is here: %d", is_ready(s->channel, PATIENCE_MS));
	get_and_ack(s);
	show_moves("taken");
	DO(rdma_disconnect(id));
	show_moves("disconnected");
	meet(s);
	close_id(id);
}

static void accept_and_end(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = wait_request(s);
	struct rdma_conn_param param = usual_param("wait");

	make_qp(child);
	DO(rdma_accept(child, &param));
	moves[0] = '\0';
	meet(s);
	take_event(s);
	show_moves("established");
	DO(rdma_disconnect(child));
	moves[0] = '\0';
	meet(s);
	take_event(s);
	show_moves("the end is taken");
	meet(s);
	close_id(child);
	close_id(listener);
}

static void ask_and_be_refused(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("count");

	make_qp(id);
	DO(rdma_connect(id, &param));
	moves[0] = '\0';
	take_event(s);
	show_moves("refused");
	meet(s);
	close_id(id);
}

static void refuse(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = wait_request(s);

	make_qp(child);
	moves[0] = '\0';
	DO(rdma_reject(child, NULL, 0));
	show_moves("rejected");
	meet(s);
	close_id(child);
	close_id(listener);
}

/* A datagram queue pair makes all its transitions at once. */
static void make_datagram(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_UDP);

	DO(rdma_bind_addr(id, at(&s->self, 0)));
	make_qp(id);
	show_moves("created");
	close_id(id);
}

const struct scenario move_scenarios[] = {
	PAIR("moves-connection", connect_and_count, accept_and_count, 0,
	     "moves of both queue pairs in the life of a connection"),
	PAIR("moves-waiting", connect_and_wait, accept_and_end, 0,
	     "events that wait have not moved the queue pair, and its end never does"),
	PAIR("moves-refused", ask_and_be_refused, refuse, 0, "moves when a request is refused"),
	LOCAL("moves-datagram", make_datagram, 0, "moves of a datagram queue pair"),
	LAST_SCENARIO,
};
