/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parity: peers that stop answering. run.py has made neighbour entries for unused addresses;
 * scenarios that lose a peer later change its neighbour entry themselves.
 */
#include "steps.h"

/* Stock gives up a request after 98 s, a reply after 65 s. */
#define GIVE_UP_MS 130000
#define GIVE_UP_S  160

#define GONE_IDS   2

/* Level and option of <purecm/purecm.h>, which stock's headers lack. */
#define PURECM_LEVEL		  0x70636d
#define PURECM_CONNECT_TIMEOUT_MS 1
#define HURRY_MS		  12000

/* Gives up early where the library can; stock cannot, and the error is ignored. */
static void set_short_timeouts(struct rdma_cm_id *id)
{
	uint32_t ms = HURRY_MS;

	rdma_set_option(id, PURECM_LEVEL, PURECM_CONNECT_TIMEOUT_MS, &ms, sizeof(ms));
}

static struct rdma_cm_id *connect_without_network(struct scene *s, const char *label,
						  enum rdma_port_space ps)
{
	struct rdma_cm_id *id = open_id(s, label, ps);

	set_short_timeouts(id);
	DO(rdma_resolve_addr(id, NULL, beside(s, GONE, s->port), RESOLVE_MS));
	take_event(s);
	DO(rdma_resolve_route(id, RESOLVE_MS));
	take_event(s);
	return id;
}

static void connect_to_lost_peer(struct scene *s)
{
	struct rdma_conn_param param = usual_param("anybody?");
	struct rdma_cm_id *ids[GONE_IDS] = {
		connect_without_network(s, "with a queue pair", RDMA_PS_TCP),
		connect_without_network(s, "without a queue pair", RDMA_PS_TCP),
	};
	size_t i;

	make_qp(ids[0]);
	DO(rdma_connect(ids[0], &param));
	param.qp_num = unused_qpn();
	DO(rdma_connect(ids[1], &param));
	take_each(s, ids, GONE_IDS, GIVE_UP_MS);
	show_qp_state(ids[0]);
	for (i = 0; i < GONE_IDS; i++) {
		DO(rdma_connect(ids[i], &param));
		DO(rdma_disconnect(ids[i]));
		close_id(ids[i]);
	}
	show_quiet(s->channel);
}

static void look_up_at_lost_peer(struct scene *s)
{
	struct rdma_conn_param param = { 0 };
	struct rdma_cm_id *id = connect_without_network(s, "lookup", RDMA_PS_UDP);

	make_qp(id);
	DO(rdma_connect(id, &param));
	rdma_ack_cm_event(wait_event_for(s->channel, GIVE_UP_MS));
	DO(rdma_connect(id, &param));
	DO(rdma_disconnect(id));
	close_id(id);
}

static void disconnect_without_network(struct scene *s)
{
	struct rdma_cm_id *id = dial(s);

	meet(s);
	meet(s);
	DO(rdma_disconnect(id));
	rdma_ack_cm_event(wait_event_for(s->channel, GIVE_UP_MS));
	show_qp_state(id);
	close_id(id);
	meet(s);
}

/* This host receives the peer's messages, but the peer receives none. */
static void answer_disconnect_without_network(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = answer(s);

	meet(s);
	lose_peer(s);
	meet(s);
	take_event(s);
	DO(rdma_disconnect(child));
	meet(s);
	find_peer(s);
	close_id(child);
	close_id(listener);
}

static void connect_without_answer(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("anybody?");

	make_qp(id);
	DO(rdma_connect(id, &param));
	rdma_ack_cm_event(wait_event_for(s->channel, GIVE_UP_MS));
	show_qp_state(id);
	close_id(id);
	meet(s);
}

static void accept_without_network(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = wait_request(s);
	struct rdma_conn_param param = usual_param("unheard");

	make_qp(child);
	lose_peer(s);
	DO(rdma_accept(child, &param));
	rdma_ack_cm_event(wait_event_for(s->channel, GIVE_UP_MS));
	show_qp_state(child);
	meet(s);
	find_peer(s);
	close_id(child);
	close_id(listener);
}

const struct scenario gone_scenarios[] = {
	LOCAL_LIMIT("gone-connect", connect_to_lost_peer, SLOW, GIVE_UP_S,
		    "requests that nobody answers"),
	LOCAL_LIMIT("gone-lookup", look_up_at_lost_peer, SLOW, GIVE_UP_S,
		    "a lookup that nobody answers"),
	PAIR_LIMIT("gone-disconnect", disconnect_without_network, answer_disconnect_without_network,
		   LONG | ALONE, GIVE_UP_S, "the end of a connection that nobody confirms"),
	PAIR_LIMIT("gone-accept", connect_without_answer, accept_without_network, LONG | ALONE,
		   GIVE_UP_S, "a reply that does not arrive"),
	LAST_SCENARIO,
};
