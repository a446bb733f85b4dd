/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parity: connections of other types than RC. Only rdma_create_ep() makes ids of these; the ids
 * become asynchronous at once. rxe has UC queue pairs but no XRC, so those are simulated.
 */
#include "steps.h"

/* For a passive side the wildcard address; for an active side the peer's, resolved. */
static struct rdma_cm_id *endpoint(struct scene *s, enum rdma_port_space ps, enum ibv_qp_type type,
				   bool passive)
{
	struct rdma_addrinfo info = {
		.ai_flags = passive ? RAI_PASSIVE : 0,
		.ai_family = s->family,
		.ai_qp_type = type,
		.ai_port_space = ps,
	};
	socklen_t bytes = s->family == AF_INET ? sizeof(struct sockaddr_in)
					       : sizeof(struct sockaddr_in6);
	struct rdma_cm_id *id;

	if (passive) {
		info.ai_src_addr = any(s, s->port);
		info.ai_src_len = bytes;
	} else {
		info.ai_dst_addr = at(&s->peer, s->port);
		info.ai_dst_len = bytes;
	}
	if (rdma_create_ep(&id, &info, NULL, NULL))
		give_up("rdma_create_ep: %s", strerror(errno));
	assign_id_name(id, passive ? "listener" : "client");
	DO(rdma_migrate_id(id, s->channel));
	return id;
}

static struct rdma_cm_id *listening(struct scene *s, enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct rdma_cm_id *id = endpoint(s, ps, type, true);
	uint8_t timeout = 16;

	DO(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
	DO(rdma_listen(id, 0));
	meet(s);
	return id;
}

static struct rdma_cm_id *ready(struct scene *s, enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct rdma_cm_id *id;
	uint8_t timeout = 17;

	meet(s);
	id = endpoint(s, ps, type, false);
	DO(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
	has_flow_of_ports(rdma_get_src_port(id), rdma_get_dst_port(id));
	show_id(id);
	return id;
}

static void show_attributes(struct rdma_cm_id *id, const char *when)
{
	enum ibv_qp_state state;
	struct ibv_qp_attr attr;
	int mask;

	SAY("%s", when);
	for (state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
		memset(&attr, 0, sizeof(attr));
		attr.qp_state = state;
		if (!DO(rdma_init_qp_attr(id, &attr, &mask)))
			show_qp_attr(&attr, mask);
	}
}

/* --- simulated queue pairs ----------------------------------------------- */

static void connect_made_up(struct scene *s, enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct rdma_cm_id *id = ready(s, ps, type);
	struct rdma_conn_param param = usual_param("made up");

	param.qp_num = unused_qpn();
	param.flow_control = 1;
	param.initiator_depth = 2;
	param.retry_count = 5;
	show_attributes(id, "before connect");
	DO(rdma_connect(id, &param));
	take_event(s);
	show_attributes(id, "answered");
	if (!DO(rdma_establish(id)))
		show_attributes(id, "established");
	meet(s);
	DO(rdma_disconnect(id));
	meet(s);
	close_id(id);
}

static void accept_made_up(struct scene *s, enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct rdma_cm_id *listener = listening(s, ps, type), *child;
	struct rdma_conn_param param = usual_param("made up");
	struct rdma_cm_event *event = wait_event(s->channel);

	child = event->id;
	assign_id_name(child, "child");
	has_flow_of_ports(rdma_get_dst_port(child), rdma_get_src_port(child));
	rdma_ack_cm_event(event);
	show_id(child);
	show_attributes(child, "asked");
	param.qp_num = unused_qpn();
	param.flow_control = 1;
	param.responder_resources = 2;
	param.rnr_retry_count = 6;
	DO(rdma_accept(child, &param));
	take_event(s);
	show_attributes(child, "established");
	meet(s);
	take_event(s);
	meet(s);
	close_id(child);
	close_id(listener);
}

static void connect_uc(struct scene *s)
{
	connect_made_up(s, RDMA_PS_IB, IBV_QPT_UC);
}

static void accept_uc(struct scene *s)
{
	accept_made_up(s, RDMA_PS_IB, IBV_QPT_UC);
}

static void connect_xrc(struct scene *s)
{
	connect_made_up(s, RDMA_PS_IB, IBV_QPT_XRC_SEND);
}

static void accept_xrc(struct scene *s)
{
	accept_made_up(s, RDMA_PS_IB, IBV_QPT_XRC_RECV);
}

static void connect_uc_over_tcp(struct scene *s)
{
	connect_made_up(s, RDMA_PS_TCP, IBV_QPT_UC);
}

static void accept_uc_over_tcp(struct scene *s)
{
	accept_made_up(s, RDMA_PS_TCP, IBV_QPT_UC);
}

/* --- others -------------------------------------------------------------- */

static void ask_for_another_type(struct scene *s)
{
	struct rdma_cm_id *id = ready(s, RDMA_PS_IB, IBV_QPT_RC);
	struct rdma_conn_param param = usual_param("other");

	param.qp_num = unused_qpn();
	DO(rdma_connect(id, &param));
	take_event(s);
	meet(s);
	close_id(id);
}

static void listen_for_another_type(struct scene *s)
{
	struct rdma_cm_id *listener = listening(s, RDMA_PS_IB, IBV_QPT_UC);

	meet(s);
	show_quiet(s->channel);
	close_id(listener);
}

static void connect_library_uc(struct scene *s)
{
	struct rdma_cm_id *id = ready(s, RDMA_PS_IB, IBV_QPT_UC);
	struct rdma_conn_param param = usual_param("uc");

	make_qp(id);
	DO(rdma_connect(id, &param));
	take_event(s);
	show_qp_state(id);
	meet(s);
	DO(rdma_disconnect(id));
	take_event(s);
	meet(s);
	close_id(id);
}

static void accept_library_uc(struct scene *s)
{
	struct rdma_cm_id *listener = listening(s, RDMA_PS_IB, IBV_QPT_UC), *child;
	struct rdma_conn_param param = usual_param("uc");

	child = wait_request(s);
	make_qp(child);
	DO(rdma_accept(child, &param));
	show_qp_state(child);
	take_event(s);
	meet(s);
	take_event(s);
	DO(rdma_disconnect(child));
	meet(s);
	close_id(child);
	close_id(listener);
}

const struct scenario type_scenarios[] = {
	PAIR("type-uc", connect_uc, accept_uc, 0, "UC with queue pairs of the caller"),
	PAIR("type-uc-tcp", connect_uc_over_tcp, accept_uc_over_tcp, 0,
	     "UC asked for in a port space that has only RC"),
	PAIR("type-xrc", connect_xrc, accept_xrc, 0, "XRC with queue pairs of the caller"),
	PAIR("type-other", ask_for_another_type, listen_for_another_type, 0,
	     "a request of another type than the listener's"),
	PAIR("type-uc-library", connect_library_uc, accept_library_uc, 0,
	     "UC with queue pairs of the library"),
	LAST_SCENARIO,
};
