/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: rdma_create_ep, rdma_get_request and rdma_destroy_ep. */
#include <fcntl.h>
#include <infiniband/sa.h>

#include "steps.h"

static struct rdma_addrinfo info_for(struct sockaddr *addr, int flags)
{
	const socklen_t bytes = addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
							   : sizeof(struct sockaddr_in6);
	struct rdma_addrinfo info = {
		.ai_flags = flags,
		.ai_family = addr->sa_family,
		.ai_qp_type = IBV_QPT_RC,
		.ai_port_space = RDMA_PS_TCP,
	};

	if (flags & RAI_PASSIVE) {
		info.ai_src_addr = addr;
		info.ai_src_len = bytes;
	} else {
		info.ai_dst_addr = addr;
		info.ai_dst_len = bytes;
	}
	return info;
}

/* Another type, to show that it does not matter. */
static struct ibv_qp_init_attr small_qp(void)
{
	return (struct ibv_qp_init_attr){
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};
}

static void show_attr(const struct ibv_qp_init_attr *attr)
{
	SAY("attributes: qp_type %d send_cq %s recv_cq %s srq %s", attr->qp_type,
	    attr->send_cq ? "set" : "NULL", attr->recv_cq ? "set" : "NULL",
	    attr->srq ? "set" : "NULL");
}

static void show_last_event(const struct rdma_cm_id *id)
{
	if (id->event)
		show_event(id->event);
	else
		SAY("%s has no event", id_name(id));
}

/* --- both ends ----------------------------------------------------------- */

/* @attr: may be NULL */
static struct rdma_cm_id *listening_endpoint(struct scene *s, struct ibv_pd *pd,
					     struct ibv_qp_init_attr *attr)
{
	struct rdma_addrinfo info = info_for(any(s, s->port), RAI_PASSIVE);
	struct rdma_cm_id *id;

	if (DO(rdma_create_ep(&id, &info, pd, attr)))
		give_up("no listener");
	assign_id_name(id, "listener");
	show_id(id);
	DO(rdma_listen(id, 0));
	meet(s);
	return id;
}

static struct rdma_cm_id *dialing_endpoint(struct scene *s, struct ibv_pd *pd,
					   struct ibv_qp_init_attr *attr)
{
	struct rdma_addrinfo info = info_for(at(&s->peer, s->port), 0);
	struct rdma_cm_id *id;

	meet(s);
	if (DO(rdma_create_ep(&id, &info, pd, attr)))
		give_up("no client");
	assign_id_name(id, "client");
	has_flow_of_ports(rdma_get_src_port(id), rdma_get_dst_port(id));
	show_id(id);
	show_last_event(id);
	return id;
}

static struct rdma_cm_id *next_request(struct rdma_cm_id *listener)
{
	struct rdma_cm_id *child = NULL;

	if (DO(rdma_get_request(listener, &child)))
		return NULL;
	assign_id_name(child, "child");
	has_flow_of_ports(rdma_get_dst_port(child), rdma_get_src_port(child));
	return child;
}

static void connect_and_end(struct scene *s, struct rdma_cm_id *id)
{
	DO(rdma_connect(id, NULL));
	show_last_event(id);
	show_qp_state(id);
	meet(s);
	DO(rdma_disconnect(id));
	show_last_event(id);
	meet(s);
	rdma_destroy_ep(id);
}

static void accept_and_end(struct scene *s, struct rdma_cm_id *listener, struct rdma_cm_id *child)
{
	DO(rdma_accept(child, NULL));
	show_last_event(child);
	show_qp_state(child);
	meet(s);
	DO(rdma_disconnect(child));
	show_last_event(child);
	meet(s);
	rdma_destroy_ep(child);
	rdma_destroy_ep(listener);
}

static void connect_with_attributes(struct scene *s)
{
	struct ibv_qp_init_attr attr = small_qp();
	struct rdma_cm_id *id = dialing_endpoint(s, NULL, &attr);

	show_attr(&attr);
	connect_and_end(s, id);
}

static void accept_with_attributes(struct scene *s)
{
	struct ibv_qp_init_attr attr = small_qp();
	struct rdma_cm_id *listener = listening_endpoint(s, NULL, &attr), *child;

	show_attr(&attr);
	memset(&attr, 0xee, sizeof(attr)); /* they are copied */
	child = next_request(listener);
	if (!child)
		give_up("no request");
	show_id(child);
	show_last_event(child);
	show_last_event(listener);
	SAY("the child's own completion queue %d", child->send_cq->cq_context == child);
	accept_and_end(s, listener, child);
}

static void connect_without_attributes(struct scene *s)
{
	struct rdma_cm_id *id = dialing_endpoint(s, NULL, NULL);

	make_qp(id);
	connect_and_end(s, id);
}

static void accept_without_attributes(struct scene *s)
{
	struct rdma_cm_id *listener = listening_endpoint(s, NULL, NULL), *child;

	child = next_request(listener);
	if (!child)
		give_up("no request");
	show_id(child);
	make_qp(child);
	accept_and_end(s, listener, child);
}

/* --- protection domains -------------------------------------------------- */

static struct ibv_pd *own_pd(void)
{
	struct ibv_context **list = rdma_get_devices(NULL);
	struct ibv_pd *pd = list ? ibv_alloc_pd(list[0]) : NULL;

	if (!pd)
		give_up("no protection domain: %s", strerror(errno));
	rdma_free_devices(list);
	return pd;
}

static void connect_in_own_domain(struct scene *s)
{
	struct ibv_qp_init_attr attr = small_qp();
	struct ibv_pd *pd = own_pd();
	struct rdma_cm_id *id = dialing_endpoint(s, pd, &attr);

	SAY("own domain: id %d queue pair %d", id->pd == pd, id->qp->pd == pd);
	connect_and_end(s, id);
	SAY("domain is free %d", ibv_dealloc_pd(pd) == 0);
}

static void accept_in_own_domain(struct scene *s)
{
	struct ibv_qp_init_attr attr = small_qp();
	struct ibv_pd *pd = own_pd();
	struct rdma_cm_id *listener = listening_endpoint(s, pd, &attr), *child;

	child = next_request(listener);
	if (!child)
		give_up("no request");
	SAY("own domain: listener %d id %d queue pair %d", listener->pd == pd, child->pd == pd,
	    child->qp->pd == pd);
	accept_and_end(s, listener, child);
	SAY("domain is free %d", ibv_dealloc_pd(pd) == 0);
}

/* --- failures ------------------------------------------------------------ */

static struct rdma_cm_id untouched;

static void try_endpoint(struct rdma_addrinfo *info, struct ibv_qp_init_attr *attr)
{
	struct rdma_cm_id *id = &untouched;

	DO(rdma_create_ep(&id, info, NULL, attr));
	SAY("id untouched %d", id == &untouched);
	if (id != &untouched)
		rdma_destroy_ep(id);
}

static void failures_leave_no_objects(struct scene *s)
{
	struct rdma_addrinfo active = info_for(at(&s->peer, s->port), 0), wrong = active;
	struct ibv_qp_init_attr attr = small_qp();

	wrong.ai_port_space = 0x42;
	try_endpoint(&wrong, NULL);
	wrong = active;
	wrong.ai_dst_len++;
	try_endpoint(&wrong, NULL);
	wrong = info_for(at(&s->self, 0), RAI_PASSIVE);
	wrong.ai_src_len = sizeof(struct sockaddr_storage);
	try_endpoint(&wrong, NULL);
	wrong = info_for(loopback(s, s->port), 0);
	try_endpoint(&wrong, NULL);
	wrong = info_for(beside(s, SILENT, s->port), 0);
	try_endpoint(&wrong, NULL);
	wrong = info_for(beside(s, SILENT, 0), RAI_PASSIVE);
	try_endpoint(&wrong, NULL);
	attr.cap.max_send_wr = 1 << 30;
	try_endpoint(&active, &attr);
	show_attr(&attr);
	attr = small_qp();
	active.ai_qp_type = 77;
	try_endpoint(&active, &attr);
	try_endpoint(&active, NULL);
}

/* Types and port spaces need not match: the requested type is used. */
static void types_are_those_asked_for(struct scene *s)
{
	static const int types[] = { 0, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_RECV };
	struct rdma_addrinfo info = info_for(at(&s->self, 0), RAI_PASSIVE);
	struct rdma_cm_id *id;
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		info.ai_qp_type = types[i];
		if (DO(rdma_create_ep(&id, &info, NULL, NULL)))
			continue;
		assign_id_name(id, "id");
		show_id(id);
		rdma_destroy_ep(id);
	}
}

/* --- the route of the address -------------------------------------------- */

static struct ibv_path_data path_of(const struct rdma_cm_id *id, uint32_t flags)
{
	struct ibv_path_data data = { .flags = flags };

	memcpy(data.path.dgid.raw, id->route.addr.addr.ibaddr.dgid.raw, 16);
	memcpy(data.path.sgid.raw, id->route.addr.addr.ibaddr.sgid.raw, 16);
	data.path.flowlabel_hoplimit = htobe32(0x777u << 8 | 64);
	data.path.reversible_numpath = IBV_PATH_RECORD_REVERSIBLE | 1;
	data.path.pkey = htobe16(0xffff);
	data.path.mtu = 2 << 6 | IBV_MTU_512;
	data.path.rate = 2 << 6 | 3;
	data.path.packetlifetime = 2 << 6 | 16;
	return data;
}

static struct ibv_path_data path_to_peer(struct scene *s, uint32_t flags)
{
	struct rdma_addrinfo info = info_for(at(&s->peer, s->port), 0);
	struct ibv_path_data data;
	struct rdma_cm_id *id;

	if (rdma_create_ep(&id, &info, NULL, NULL))
		give_up("rdma_create_ep: %s", strerror(errno));
	data = path_of(id, flags);
	rdma_destroy_ep(id);
	return data;
}

static void connect_over_route_of_address(struct scene *s)
{
	const uint32_t good = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
			      IBV_PATH_FLAG_BIDIRECTIONAL;
	struct rdma_addrinfo info = info_for(at(&s->peer, s->port), 0);
	struct ibv_qp_init_attr attr = small_qp();
	struct ibv_path_data data;
	struct rdma_cm_id *id;

	meet(s);
	data = path_to_peer(s, IBV_PATH_FLAG_PRIMARY);
	info.ai_route = &data;
	info.ai_route_len = sizeof(data);
	try_endpoint(&info, &attr);
	data.flags = good;
	attr = small_qp();
	if (DO(rdma_create_ep(&id, &info, NULL, &attr)))
		give_up("no client");
	assign_id_name(id, "client");
	show_id(id);
	show_last_event(id);
	connect_and_end(s, id);
}

/* --- private data of the address ----------------------------------------- */

static struct rdma_cm_id *endpoint_with_prefix(struct scene *s, const char *prefix)
{
	struct rdma_addrinfo info = info_for(at(&s->peer, s->port), 0);
	char copy[64] = { 0 };
	struct rdma_cm_id *id;

	strncpy(copy, prefix, sizeof(copy) - 1);
	info.ai_connect = copy;
	info.ai_connect_len = strlen(prefix);
	if (rdma_create_ep(&id, &info, NULL, NULL))
		give_up("rdma_create_ep: %s", strerror(errno));
	memset(copy, 'x', sizeof(copy)); /* it is copied */
	assign_id_name(id, "client");
	return id;
}

/* @param: may be NULL; the server refuses */
static void connect_with_prefix(struct scene *s, const char *prefix, struct rdma_conn_param *param)
{
	struct rdma_cm_id *id = endpoint_with_prefix(s, prefix);

	make_qp(id);
	DO(rdma_connect(id, param));
	meet(s);
	rdma_destroy_ep(id);
}

static void private_data_has_a_prefix(struct scene *s)
{
	struct rdma_conn_param param = usual_param("after it");

	meet(s);
	connect_with_prefix(s, "before ", &param);
	connect_with_prefix(s, "alone", NULL);
	param.private_data = NULL;
	param.private_data_len = 0;
	connect_with_prefix(s, "alone again", &param);
}

/* Data that is too long is not sent: is the prefix kept for the next attempt? */
static void prefix_counts_for_the_length(struct scene *s)
{
	struct rdma_conn_param param = usual_param("0123456789012345678901234567890123456789");
	struct rdma_cm_id *id;

	meet(s);
	id = endpoint_with_prefix(s, "0123456789012345678901234567890123456789");
	make_qp(id);
	DO(rdma_connect(id, &param));
	DO(rdma_connect(id, &param));
	param.private_data_len = 10;
	DO(rdma_connect(id, &param));
	show_last_event(id);
	meet(s);
	rdma_destroy_ep(id);
}

static void refuse_requests(struct scene *s, int n)
{
	struct rdma_cm_id *listener = listening_endpoint(s, NULL, NULL), *child;

	while (n--) {
		child = next_request(listener);
		if (!child)
			give_up("no request");
		show_last_event(child);
		DO(rdma_reject(child, "no", 2));
		meet(s);
		rdma_destroy_ep(child);
	}
	rdma_destroy_ep(listener);
}

static void refuse_one(struct scene *s)
{
	refuse_requests(s, 1);
}

static void refuse_three(struct scene *s)
{
	refuse_requests(s, 3);
}

/* --- rdma_get_request() -------------------------------------------------- */

/* Makes the id synchronous while the requested event is queued, and then asynchronous again. */
static void request_after(struct scene *s, struct rdma_cm_id *id)
{
	struct rdma_cm_id *child = &untouched;

	if (!is_ready(s->channel, PATIENCE_MS))
		give_up("no event");
	if (rdma_migrate_id(id, NULL))
		give_up("rdma_migrate_id: %s", strerror(errno));
	DO(rdma_get_request(id, &child));
	SAY("child untouched %d", child == &untouched);
	show_last_event(id);
	if (rdma_migrate_id(id, s->channel))
		give_up("rdma_migrate_id: %s", strerror(errno));
}

static void other_events_are_no_requests(struct scene *s)
{
	struct rdma_conn_param param = usual_param("anybody there?");
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP), *child;

	DO(rdma_get_request(id, &child));
	DO(rdma_resolve_addr(id, NULL, beside(s, SILENT, s->port), 300));
	request_after(s, id);
	DO(rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS));
	request_after(s, id);
	DO(rdma_resolve_route(id, RESOLVE_MS));
	request_after(s, id);
	param.qp_num = unused_qpn();
	DO(rdma_connect(id, &param));
	request_after(s, id);
	if (rdma_migrate_id(id, NULL))
		give_up("rdma_migrate_id: %s", strerror(errno));
	fcntl(id->channel->fd, F_SETFL, fcntl(id->channel->fd, F_GETFL) | O_NONBLOCK);
	DO(rdma_get_request(id, &child));
	show_last_event(id);
	DO(rdma_destroy_id(id));
}

static void connect_to_clumsy_listener(struct scene *s)
{
	struct rdma_cm_id *id = dialing_endpoint(s, NULL, NULL);
	struct rdma_conn_param param = usual_param("let me in");

	make_qp(id);
	DO(rdma_connect(id, &param));
	show_last_event(id);
	rdma_destroy_ep(id);
}

/* The event is charged to the listener; only it has a pointer to the new id. */
static void requests_queue_pair_is_impossible(struct scene *s)
{
	struct ibv_qp_init_attr attr = small_qp();
	struct rdma_cm_id *listener, *child = &untouched;

	attr.cap.max_send_wr = 1 << 30;
	listener = listening_endpoint(s, NULL, &attr);
	DO(rdma_get_request(listener, &child));
	SAY("child untouched %d", child == &untouched);
	if (!listener->event)
		give_up("the listener has no event");
	child = listener->event->id;
	assign_id_name(child, "child");
	show_last_event(listener);
	SAY("child's event %s", child->event ? "set" : "NULL");
	rdma_destroy_ep(child);
	rdma_destroy_ep(listener);
}

/* --- the end of an endpoint ---------------------------------------------- */

static void destroy_endpoint_early(struct scene *s)
{
	struct ibv_qp_init_attr attr = small_qp();
	struct rdma_cm_id *id;

	rdma_destroy_ep(dialing_endpoint(s, NULL, &attr));
	attr = small_qp();
	id = dialing_endpoint(s, NULL, &attr);
	DO(rdma_connect(id, NULL)); /* the request is not taken when the listener is destroyed */
	show_last_event(id);
	rdma_destroy_ep(id);
	attr = small_qp();
	id = dialing_endpoint(s, NULL, &attr);
	DO(rdma_connect(id, NULL)); /* the request is taken, and its id destroyed */
	show_last_event(id);
	rdma_destroy_ep(id);
	attr = small_qp();
	id = dialing_endpoint(s, NULL, &attr);
	DO(rdma_connect(id, NULL));
	meet(s);
	rdma_destroy_ep(id); /* the peer sees a disconnect */
	meet(s);
}

static void await_request(const struct rdma_cm_id *listener)
{
	if (!is_ready(listener->channel, PATIENCE_MS))
		give_up("no request");
}

static void listeners_end_early(struct scene *s)
{
	struct rdma_addrinfo info = info_for(any(s, s->port), RAI_PASSIVE);
	struct ibv_qp_init_attr attr = small_qp();
	struct rdma_cm_id *listener, *child;

	if (DO(rdma_create_ep(&listener, &info, NULL, &attr)))
		give_up("no listener");
	rdma_destroy_ep(listener); /* bound */
	rdma_destroy_ep(listening_endpoint(s, NULL, &attr));
	listener = listening_endpoint(s, NULL, &attr);
	await_request(listener);
	rdma_destroy_ep(listener);
	listener = listening_endpoint(s, NULL, &attr);
	rdma_destroy_ep(next_request(listener));
	rdma_destroy_ep(listener);
	listener = listening_endpoint(s, NULL, &attr);
	child = next_request(listener);
	DO(rdma_accept(child, NULL));
	meet(s);
	meet(s);
	DO(rdma_disconnect(child));
	show_last_event(child);
	rdma_destroy_ep(child);
	rdma_destroy_ep(listener);
}

const struct scenario endpoint_scenarios[] = {
	PAIR("ep-attributes", connect_with_attributes, accept_with_attributes, 0,
	     "endpoints with queue pairs"),
	PAIR("ep-plain", connect_without_attributes, accept_without_attributes, 0,
	     "endpoints without queue pairs"),
	PAIR("ep-domain", connect_in_own_domain, accept_in_own_domain, 0,
	     "endpoints in a protection domain of the caller's"),
	LOCAL("ep-errors", failures_leave_no_objects, 0, "endpoints that cannot be made"),
	LOCAL("ep-types", types_are_those_asked_for, 0, "queue pair types of passive endpoints"),
	PAIR("ep-route", connect_over_route_of_address, accept_with_attributes, 0,
	     "a path record that comes with the address"),
	PAIR("ep-prefix", private_data_has_a_prefix, refuse_three, 0,
	     "private data that comes with the address"),
	PAIR("ep-prefix-length", prefix_counts_for_the_length, refuse_one, 0,
	     "private data that is too long with what comes with the address"),
	LOCAL("ep-no-request", other_events_are_no_requests, 0,
	      "rdma_get_request where other events come"),
	PAIR("ep-no-queue-pair", connect_to_clumsy_listener, requests_queue_pair_is_impossible, 0,
	     "requests whose queue pair cannot be made"),
	PAIR("ep-ends", destroy_endpoint_early, listeners_end_early, 0,
	     "the end of an endpoint in each state"),
	LAST_SCENARIO,
};
