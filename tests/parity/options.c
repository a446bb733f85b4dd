/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: rdma_set_option. The options allowed in each state are in states.c. */
#include <infiniband/sa.h>

#include "steps.h"

#define ID RDMA_OPTION_ID
#define IB RDMA_OPTION_IB

static void lengths_and_numbers_are_checked(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);
	uint8_t value[8] = { 1 };

	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_TOS, value, 1));
	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_TOS, value, 0));
	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_TOS, value, 4));
	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_REUSEADDR, value, 4));
	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_REUSEADDR, value, 1));
	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_REUSEADDR, value, 8));
	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_AFONLY, value, 4));
	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_AFONLY, value, 1));
	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_ACK_TIMEOUT, value, 1));
	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_ACK_TIMEOUT, value, 4));
	DO(rdma_set_option(id, ID, 4, value, 1));
	DO(rdma_set_option(id, ID, 99, value, 4));
	DO(rdma_set_option(id, 2, 0, value, 1));
	DO(rdma_set_option(id, 99, 99, value, 1));
	DO(rdma_set_option(id, IB, 0, value, 1));
	DO(rdma_set_option(id, IB, 2, value, 1));
	DO(rdma_set_option(id, IB, RDMA_OPTION_IB_PATH, value, 8));
	close_id(id);
}

static void ack_timeout_is_for_reliable_connections(struct scene *s)
{
	struct rdma_cm_id *rc = open_id(s, "rc", RDMA_PS_TCP);
	struct rdma_cm_id *ud = open_id(s, "ud", RDMA_PS_UDP);
	struct rdma_cm_id *ib = open_id(s, "ib", RDMA_PS_IB);
	uint8_t timeout = 255;

	DO(rdma_set_option(rc, ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
	DO(rdma_set_option(ud, ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
	DO(rdma_set_option(ib, ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
	close_id(ib);
	close_id(ud);
	close_id(rc);
}

static void route_with(struct scene *s, int option, uint8_t value)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);

	DO(rdma_set_option(id, ID, option, &value, 1));
	resolve(s, id, s->port);
	show_id(id);
	close_id(id);
}

static void options_shape_the_route(struct scene *s)
{
	route_with(s, RDMA_OPTION_ID_TOS, 0x68);
	route_with(s, RDMA_OPTION_ID_TOS, 0xff);
	route_with(s, RDMA_OPTION_ID_ACK_TIMEOUT, 14);
	route_with(s, RDMA_OPTION_ID_ACK_TIMEOUT, 0);
	route_with(s, RDMA_OPTION_ID_ACK_TIMEOUT, 31);
	route_with(s, RDMA_OPTION_ID_ACK_TIMEOUT, 200);
}

static void late_options_do_not_change_the_route(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);
	uint8_t value = 12;

	resolve(s, id, s->port);
	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_TOS, &value, 1));
	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_ACK_TIMEOUT, &value, 1));
	show_id(id);
	close_id(id);
}

/* A path record for the id's addresses, as from an SA. */
static struct ibv_path_data path_for(const struct rdma_cm_id *id, uint32_t flags)
{
	const struct rdma_ib_addr *ib = &id->route.addr.addr.ibaddr;
	struct ibv_path_data data = { .flags = flags };

	memcpy(data.path.dgid.raw, ib->dgid.raw, 16);
	memcpy(data.path.sgid.raw, ib->sgid.raw, 16);
	data.path.flowlabel_hoplimit = htobe32(64);
	data.path.reversible_numpath = IBV_PATH_RECORD_REVERSIBLE | 1;
	data.path.pkey = ib->pkey;
	data.path.mtu = 2 << 6 | IBV_MTU_1024;
	data.path.rate = 2 << 6 | 3;
	data.path.packetlifetime = 2 << 6 | 16;
	return data;
}

static void set_path(struct scene *s, struct rdma_cm_id *id, struct ibv_path_data *data, size_t n)
{
	size_t size = n * sizeof(*data);

	if (!DO(rdma_set_option(id, IB, RDMA_OPTION_IB_PATH, data, size))) {
		take_event(s);
		show_id(id);
	}
}

static void path_can_be_given(struct scene *s)
{
	const uint32_t good = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
			      IBV_PATH_FLAG_BIDIRECTIONAL;
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);
	struct ibv_path_data data[2];

	DO(rdma_set_option(id, IB, RDMA_OPTION_IB_PATH, data, sizeof(data[0])));
	if (rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS))
		give_up("rdma_resolve_addr: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_ADDR_RESOLVED);
	has_flow_of_ports(rdma_get_src_port(id), rdma_get_dst_port(id));
	data[0] = path_for(id, IBV_PATH_FLAG_PRIMARY);
	set_path(s, id, data, 1);
	set_path(s, id, data, 0);
	data[1] = path_for(id, good);
	set_path(s, id, data, 2);
	set_path(s, id, data + 1, 1);
	close_id(id);
}

/* Values that no SA of this network would return: which of them are used? */
static struct ibv_path_data make_odd_path(const struct rdma_cm_id *id)
{
	struct ibv_path_data data = path_for(id, IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
							 IBV_PATH_FLAG_BIDIRECTIONAL);

	data.path.service_id = htobe64(0x1234);
	data.path.dgid.raw[15] ^= 0x40;
	data.path.sgid.raw[15] ^= 0x20;
	data.path.dlid = htobe16(0x11);
	data.path.slid = htobe16(0x22);
	data.path.flowlabel_hoplimit = htobe32(0x12345u << 8 | 9);
	data.path.tclass = 0x51;
	data.path.reversible_numpath = 3;
	data.path.pkey = htobe16(0x8001);
	data.path.qosclass_sl = htobe16(0x0123);
	data.path.mtu = 1 << 6 | IBV_MTU_512;
	data.path.rate = 0 << 6 | 7;
	data.path.packetlifetime = 3 << 6 | 14;
	data.path.preference = 5;
	return data;
}

static void odd_paths_are_taken_in_part(struct scene *s)
{
	struct rdma_conn_param param = { .qp_num = unused_qpn() };
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);
	struct ibv_path_data data;
	uint8_t value = 0x68;

	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_TOS, &value, 1));
	value = 21;
	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_ACK_TIMEOUT, &value, 1));
	if (rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS))
		give_up("rdma_resolve_addr: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_ADDR_RESOLVED);
	has_flow_of_ports(rdma_get_src_port(id), rdma_get_dst_port(id));
	data = make_odd_path(id);
	set_path(s, id, &data, 1);
	/* The port is not in the path's partition; which of the errors is reported? */
	param.private_data = s;
	param.private_data_len = 255;
	DO(rdma_connect(id, &param));
	close_id(id);
}

static void show_qp_path(const struct rdma_cm_id *id)
{
	const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(id->qp, &attr, mask, &init))
		give_up("ibv_query_qp: %s", strerror(errno));
	show_qp_attr(&attr, mask);
}

/* @fill: makes the path record of an id whose address is resolved */
static void connect_over_given_path(struct scene *s,
				    struct ibv_path_data (*fill)(const struct rdma_cm_id *id))
{
	struct rdma_conn_param param = usual_param("a path of my own");
	struct rdma_cm_id *id = open_id(s, "client", RDMA_PS_TCP);
	struct ibv_path_data data;

	meet(s);
	if (rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS))
		give_up("rdma_resolve_addr: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_ADDR_RESOLVED);
	has_flow_of_ports(rdma_get_src_port(id), rdma_get_dst_port(id));
	data = fill(id);
	set_path(s, id, &data, 1);
	make_qp(id);
	if (!DO(rdma_connect(id, &param)))
		take_event(s);
	show_qp_path(id);
	meet(s);
	close_id(id);
}

static struct ibv_path_data make_plain_path(const struct rdma_cm_id *id)
{
	return path_for(id,
			IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL);
}

/* The P_Key is RoCE's, and the depths are allowed in a path. */
static struct ibv_path_data make_full_path(const struct rdma_cm_id *id)
{
	struct ibv_path_data data = make_plain_path(id);

	data.path.pkey = htobe16(0xffff);
	data.path.flowlabel_hoplimit = htobe32(0x12345u << 8 | 9);
	data.path.tclass = 0x51;
	data.path.qosclass_sl = htobe16(0x0003);
	data.path.mtu = 2 << 6 | IBV_MTU_512;
	data.path.packetlifetime = 2 << 6 | 14;
	return data;
}

/* Only the P_Key is checked before the peer gets the values. */
static void try_path(struct scene *s, const char *what, const struct ibv_path_data *data)
{
	struct rdma_conn_param param = usual_param("a path of my own");
	struct rdma_cm_id *id = open_id(s, what, RDMA_PS_TCP);

	if (rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS))
		give_up("rdma_resolve_addr: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_set_option(id, IB, RDMA_OPTION_IB_PATH, (void *)(uintptr_t)data, sizeof(*data)))
		give_up("rdma_set_option: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_ROUTE_RESOLVED);
	param.qp_num = unused_qpn();
	SAY("%s:", what);
	if (!DO(rdma_connect(id, &param)))
		take_event(s);
	close_id(id);
}

static void false_paths_are_checked(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);
	struct ibv_path_data good, data;

	if (rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS))
		give_up("rdma_resolve_addr: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_ADDR_RESOLVED);
	good = make_full_path(id);
	close_id(id);
	meet(s);
	data = good;
	data.path.pkey = htobe16(0x7fff);
	try_path(s, "limited member", &data);
	data = good;
	data.path.flowlabel_hoplimit = htobe32(1);
	try_path(s, "one hop", &data);
	data = good;
	data.path.mtu = 0;
	try_path(s, "no MTU", &data);
	meet(s);
}

static void reject_requests(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child;
	int i;

	for (i = 0; i < 3; i++) {
		child = wait_request(s);
		show_id(child);
		DO(rdma_reject(child, "no", 2));
		close_id(child);
	}
	meet(s);
	close_id(listener);
}

static void connect_over_plain_path(struct scene *s)
{
	connect_over_given_path(s, make_plain_path);
}

static void connect_over_full_path(struct scene *s)
{
	connect_over_given_path(s, make_full_path);
}

static void show_requests(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = NULL;
	struct rdma_conn_param param = usual_param("welcome");

	if (is_ready(s->channel, 3000)) {
		child = wait_request(s);
		show_id(child);
		make_qp(child);
		DO(rdma_accept(child, &param));
		take_event(s);
		show_qp_path(child);
	} else {
		SAY("no request");
	}
	meet(s);
	if (child)
		close_id(child);
	close_id(listener);
}

static void ask_and_leave(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("plain");

	meet(s);
	param.qp_num = unused_qpn();
	DO(rdma_connect(id, &param));
	meet(s);
	close_id(id);
}

/* An id of a request has a path of its own. */
static void listener_with_options(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	uint8_t timeout = 16, tos = 0x68;
	int mask;

	DO(rdma_set_option(listener, ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
	DO(rdma_set_option(listener, ID, RDMA_OPTION_ID_TOS, &tos, 1));
	meet(s);
	child = wait_request(s);
	show_id(child);
	if (!DO(rdma_init_qp_attr(child, &attr, &mask)))
		show_qp_attr(&attr, mask);
	meet(s);
	close_id(child);
	close_id(listener);
}

const struct scenario option_scenarios[] = {
	LOCAL("options-checked", lengths_and_numbers_are_checked, 0,
	      "wrong lengths, wrong levels and unknown options"),
	LOCAL("options-ack-timeout", ack_timeout_is_for_reliable_connections, 0,
	      "which ids take an ACK timeout"),
	LOCAL("options-route", options_shape_the_route, 0,
	      "type of service and ACK timeout in the path record"),
	LOCAL("options-late", late_options_do_not_change_the_route, 0,
	      "options set after the route was resolved"),
	PAIR("options-listener", ask_and_leave, listener_with_options, 0,
	     "which of a listener's options its children have"),
	LOCAL("options-path", path_can_be_given, 0,
	      "a path record from the caller: flags, several records, wrong state"),
	LOCAL("options-path-odd", odd_paths_are_taken_in_part, 0,
	      "a path record from the caller with values that are not the route's"),
	PAIR("options-path-connect", connect_over_plain_path, show_requests, 0,
	     "a connection over a path record from the caller"),
	PAIR("options-path-untrue", false_paths_are_checked, reject_requests, 0,
	     "connections over path records that say what is not so"),
	PAIR("options-path-full", connect_over_full_path, show_requests, 0,
	     "the same, with a traffic class, a service level, a flow label and an MTU of its own"),
	LAST_SCENARIO,
};
