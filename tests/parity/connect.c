/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: successful connections: fields, queue pairs, traffic. */
#include "steps.h"

/* Attributes that must agree between the two sides' queue pairs. */
struct numbers {
	uint32_t qpn, dest_qpn, rq_psn, sq_psn;
};

static const int all_attributes = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
				  IBV_QP_PORT | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT |
				  IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_RQ_PSN |
				  IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN |
				  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_DEST_QPN;

static void show_queue_pair(struct scene *s, const struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init;
	struct numbers mine, theirs;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(id->qp, &attr, all_attributes, &init))
		give_up("ibv_query_qp: %s", strerror(errno));
	show_qp_attr(&attr, all_attributes);
	mine = (struct numbers){ id->qp->qp_num, attr.dest_qp_num, attr.rq_psn, attr.sq_psn };
	swap(s, &mine, &theirs, sizeof(mine));
	SAY("  dest_qpn is the peer's %d", mine.dest_qpn == theirs.qpn);
	SAY("  sends from the psn the peer expects %d", mine.sq_psn == theirs.rq_psn);
	SAY("  expects the psn the peer sends from %d", mine.rq_psn == theirs.sq_psn);
}

static void connect_and_show(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("hello");

	make_qp(id);
	show_qp_state(id);
	DO(rdma_connect(id, &param));
	show_qp_state(id);
	take_event(s);
	show_id(id);
	show_queue_pair(s, id);
	DO(rdma_connect(id, &param));
	DO(rdma_accept(id, &param));
	meet(s);
	DO(rdma_disconnect(id));
	show_qp_state(id);
	take_event(s);
	close_id(id);
}

static void accept_and_show(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child;
	struct rdma_conn_param param = usual_param("welcome");
	struct rdma_cm_event *event = wait_event(s->channel);

	child = event->id;
	assign_id_name(child, "child");
	has_flow_of_ports(rdma_get_dst_port(child), rdma_get_src_port(child));
	show_id(child);
	rdma_ack_cm_event(event);
	make_qp(child);
	show_qp_state(child);
	DO(rdma_accept(child, &param));
	show_qp_state(child);
	take_event(s);
	show_id(child);
	show_queue_pair(s, child);
	meet(s);
	take_event(s);
	show_qp_state(child);
	DO(rdma_disconnect(child));
	show_qp_state(child);
	close_id(child);
	show_id(listener);
	close_id(listener);
}

static void accept_on_own_address(struct scene *s)
{
	struct rdma_cm_id *listener = open_id(s, "listener", RDMA_PS_TCP), *child;

	DO(rdma_bind_addr(listener, at(&s->self, s->port)));
	DO(rdma_listen(listener, 0));
	show_id(listener);
	meet(s);
	child = answer(s);
	show_id(child);
	expect_event(s, RDMA_CM_EVENT_DISCONNECTED);
	close_id(child);
	close_id(listener);
}

/* One listener for each family on the port; each must get only its own requests. */
static void accept_beside_the_other_family(struct scene *s)
{
	struct rdma_cm_id *six = open_id(s, "six", RDMA_PS_TCP);
	struct rdma_cm_id *four = open_id(s, "four", RDMA_PS_TCP), *child;
	struct rdma_cm_event *event;
	int on = 1;

	DO(rdma_set_option(six, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)));
	DO(rdma_bind_addr(six, numeric("::", s->port)));
	DO(rdma_bind_addr(four, numeric("0.0.0.0", s->port)));
	DO(rdma_listen(six, 0));
	DO(rdma_listen(four, 0));
	meet(s);
	event = wait_event(s->channel);
	child = event->id;
	rdma_ack_cm_event(event);
	DO(rdma_reject(child, "seen", 4));
	close_id(child);
	close_id(four);
	close_id(six);
}

static void connect_for_rejection(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("which one?");

	make_qp(id);
	DO(rdma_connect(id, &param));
	take_event(s);
	close_id(id);
}

/* A wildcard IPv6 listener accepts IPv4 requests too, unless AFONLY is set. */
static void accept_on_six_only(struct scene *s)
{
	struct rdma_cm_id *listener = open_id(s, "listener", RDMA_PS_TCP), *child;

	DO(rdma_bind_addr(listener, numeric("::", s->port)));
	DO(rdma_listen(listener, 0));
	meet(s);
	child = answer(s);
	show_id(child);
	expect_event(s, RDMA_CM_EVENT_DISCONNECTED);
	close_id(child);
	close_id(listener);
}

static void connect_and_close(struct scene *s)
{
	struct rdma_cm_id *id = dial(s);

	show_id(id);
	DO(rdma_disconnect(id));
	take_event(s);
	close_id(id);
}

static struct ibv_mr *message_memory(struct rdma_cm_id *id, char *buffer, size_t size)
{
	struct ibv_mr *mr = ibv_reg_mr(id->pd, buffer, size, IBV_ACCESS_LOCAL_WRITE);

	if (!mr)
		give_up("ibv_reg_mr: %s", strerror(errno));
	return mr;
}

static void post_receive(struct rdma_cm_id *id, const struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, (uint32_t)mr->length, mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	DO(ibv_post_recv(id->qp, &wr, &bad));
}

static void post_send(struct rdma_cm_id *id, const struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, (uint32_t)mr->length, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	DO(ibv_post_send(id->qp, &wr, &bad));
}

static void wait_completion(struct ibv_cq *cq, const char *what)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < PATIENCE_MS; i++, pause_ms(1)) {
		if (ibv_poll_cq(cq, 1, &wc) == 1) {
			SAY("%s: %s", what, ibv_wc_status_str(wc.status));
			return;
		}
	}
	give_up("no completion for %s", what);
}

static void exchange_messages(struct scene *s, struct rdma_cm_id *id, const char *text)
{
	static char in[64], out[64];
	struct ibv_mr *in_mr = message_memory(id, in, sizeof(in));
	struct ibv_mr *out_mr = message_memory(id, out, sizeof(out));

	strncpy(out, text, sizeof(out) - 1);
	post_receive(id, in_mr);
	meet(s);
	post_send(id, out_mr);
	wait_completion(id->send_cq, "send");
	wait_completion(id->recv_cq, "receive");
	SAY("got: %s", in);
	meet(s);
	ibv_dereg_mr(in_mr);
	ibv_dereg_mr(out_mr);
}

static void talk_as_client(struct scene *s)
{
	struct rdma_cm_id *id = dial(s);

	exchange_messages(s, id, "from the client");
	DO(rdma_disconnect(id));
	take_event(s);
	close_id(id);
}

static void talk_as_server(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = answer(s);

	exchange_messages(s, child, "from the server");
	take_event(s);
	DO(rdma_disconnect(child));
	close_id(child);
	close_id(listener);
}

const struct scenario connect_scenarios[] = {
	PAIR("connect-basic", connect_and_show, accept_and_show, 0,
	     "every field of both ids and both queue pairs through a connection's life"),
	PAIR("connect-own-address", connect_and_close, accept_on_own_address, 0,
	     "the listener is bound to one address"),
	PAIR("connect-traffic", talk_as_client, talk_as_server, 0,
	     "a message each way over the new connection"),
	PAIR("connect-two-families", connect_for_rejection, accept_beside_the_other_family, 0,
	     "a listener for each address family on one port"),
	PAIR("connect-dual-stack", connect_and_close, accept_on_six_only, 0,
	     "an IPv6 wildcard listener for both address families"),
	LAST_SCENARIO,
};
