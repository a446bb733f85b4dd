/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: queue pairs that the caller manages: rdma_init_qp_attr and rdma_establish. */
#include "steps.h"

static void show_attributes(struct rdma_cm_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr;
	int mask = -1;

	memset(&attr, 0xee, sizeof(attr));
	attr.qp_state = state;
	if (!DO(rdma_init_qp_attr(id, &attr, &mask)))
		show_qp_attr(&attr, mask);
}

static void show_all_attributes(struct rdma_cm_id *id, const char *when)
{
	SAY("%s", when);
	show_attributes(id, IBV_QPS_INIT);
	show_attributes(id, IBV_QPS_RTR);
	show_attributes(id, IBV_QPS_RTS);
}

struct own_qp {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static struct own_qp create_own(struct rdma_cm_id *id)
{
	struct own_qp own = { .cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0) };
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = own.cq,
		.recv_cq = own.cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	own.qp = ibv_create_qp(id->pd, &init);
	if (!own.qp)
		give_up("ibv_create_qp: %s", strerror(errno));
	return own;
}

static void destroy_own(struct own_qp *own)
{
	ibv_destroy_qp(own->qp);
	ibv_destroy_cq(own->cq);
}

static void move_own_qp(struct rdma_cm_id *id, struct own_qp *own, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	DO(rdma_init_qp_attr(id, &attr, &mask));
	DO(ibv_modify_qp(own->qp, &attr, mask));
}

static void move_own_qp_to_rts(struct rdma_cm_id *id, struct own_qp *own)
{
	move_own_qp(id, own, IBV_QPS_INIT);
	move_own_qp(id, own, IBV_QPS_RTR);
	move_own_qp(id, own, IBV_QPS_RTS);
}

static void connect_by_hand(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("by hand");
	struct own_qp own = create_own(id);

	param.qp_num = own.qp->qp_num;
	param.initiator_depth = 2;
	show_all_attributes(id, "before connect");
	DO(rdma_connect(id, &param));
	show_all_attributes(id, "request sent");
	meet(s);
	take_event(s);
	show_all_attributes(id, "reply received");
	move_own_qp_to_rts(id, &own);
	DO(rdma_establish(id));
	show_quiet(s->channel);
	show_all_attributes(id, "established");
	DO(rdma_establish(id));
	meet(s);
	DO(rdma_disconnect(id));
	take_event(s);
	show_all_attributes(id, "disconnected");
	destroy_own(&own);
	close_id(id);
}

static void accept_by_hand(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = wait_request(s);
	struct rdma_conn_param param = usual_param("by hand");
	struct own_qp own = create_own(child);

	param.qp_num = own.qp->qp_num;
	param.responder_resources = 2;
	show_all_attributes(child, "request received");
	move_own_qp_to_rts(child, &own);
	meet(s);
	DO(rdma_accept(child, &param));
	take_event(s);
	show_all_attributes(child, "established");
	meet(s);
	take_event(s);
	DO(rdma_disconnect(child));
	show_all_attributes(child, "disconnected");
	destroy_own(&own);
	close_id(child);
	close_id(listener);
}

static void delay_the_reply(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("slow");

	param.qp_num = unused_qpn();
	DO(rdma_connect(id, &param));
	take_event(s);
	meet(s);
	meet(s);
	DO(rdma_establish(id));
	meet(s);
	close_id(id);
}

static void accept_and_notify(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = wait_request(s);
	struct rdma_conn_param param = usual_param("notify");

	make_qp(child);
	DO(rdma_notify(child, IBV_EVENT_COMM_EST));
	DO(rdma_accept(child, &param));
	meet(s);
	show_quiet(s->channel);
	show_attributes(child, IBV_QPS_RTS);
	DO(rdma_notify(child, IBV_EVENT_QP_FATAL));
	DO(rdma_notify(child, IBV_EVENT_COMM_EST));
	take_event(s);
	DO(rdma_notify(child, IBV_EVENT_COMM_EST));
	meet(s);
	show_quiet(s->channel);
	meet(s);
	close_id(child);
	close_id(listener);
}

/* Nothing to establish yet: the attempt ends the connection on both sides. */
static void establish_too_soon(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("soon");

	param.qp_num = unused_qpn();
	DO(rdma_establish(id));
	DO(rdma_connect(id, &param));
	meet(s);
	DO(rdma_establish(id));
	show_quiet(s->channel);
	meet(s);
	close_id(id);
}

static void accept_after_too_soon(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = wait_request(s);
	struct rdma_conn_param param = usual_param("late");

	make_qp(child);
	meet(s);
	meet(s);
	DO(rdma_accept(child, &param));
	show_quiet(s->channel);
	close_id(child);
	close_id(listener);
}

static void wait_for_refusal(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("by hand");

	param.qp_num = unused_qpn();
	DO(rdma_connect(id, &param));
	take_event(s);
	meet(s);
	close_id(id);
}

static void establish_a_request(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = wait_request(s);
	struct rdma_conn_param param = usual_param("late");

	DO(rdma_establish(child));
	meet(s);
	param.qp_num = unused_qpn();
	DO(rdma_accept(child, &param));
	close_id(child);
	close_id(listener);
}

static void establish_with_a_library_qp(struct scene *s)
{
	struct rdma_cm_id *id = dial(s);

	DO(rdma_establish(id));
	show_all_attributes(id, "established");
	meet(s);
	close_id(id);
}

static void accept_and_wait(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = answer(s);

	DO(rdma_establish(child));
	show_all_attributes(child, "established");
	meet(s);
	take_event(s);
	close_id(child);
	close_id(listener);
}

const struct scenario external_scenarios[] = {
	PAIR("external-connect", connect_by_hand, accept_by_hand, 0,
	     "both sides manage their queue pairs; attributes at every step"),
	PAIR("external-notify", delay_the_reply, accept_and_notify, 0,
	     "COMM_EST establishes a connection whose RTU is late"),
	PAIR_LIMIT("external-too-soon", establish_too_soon, accept_after_too_soon, LONG, 160,
		   "rdma_establish before there is a reply"),
	PAIR("external-request", wait_for_refusal, establish_a_request, 0,
	     "rdma_establish on the id of a request"),
	PAIR("external-not", establish_with_a_library_qp, accept_and_wait, 0,
	     "rdma_establish on ids with a queue pair"),
	LAST_SCENARIO,
};
