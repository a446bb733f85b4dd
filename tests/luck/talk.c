/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A conversation in one process: see talk.h.
 */
#include "talk.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESOLVE_MS 2000
#define GROUP	   "239.70.0.9"

struct talk {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct rdma_cm_id *client;
	struct rdma_cm_id *server;
	struct rdma_cm_id *member;
	struct outcome outcome;
	int wait_ms;
};

static bool fail(struct talk *talk, const char *what, int err)
{
	if (!talk->outcome.what)
		talk->outcome = (struct outcome){ .what = what, .err = err };
	return false;
}

#define TRY(talk, call) ((call) ? fail(talk, #call, errno) : true)

static bool wait_for_event(struct talk *talk, enum rdma_cm_event_type type)
{
	struct pollfd wait = { .fd = talk->channel->fd, .events = POLLIN };

	if (poll(&wait, 1, talk->wait_ms) == 1)
		return true;
	fail(talk, rdma_event_str(type), ETIMEDOUT);
	talk->outcome.is_silent = true;
	return false;
}

/* Takes the next event, which must be of this type. TIMEWAIT_EXIT may come at any time. */
static bool expect(struct talk *talk, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type came;
	int status;

	do {
		if (!wait_for_event(talk, type))
			return false;
		if (rdma_get_cm_event(talk->channel, &event))
			return fail(talk, "rdma_get_cm_event", errno);
		came = event->event;
		status = event->status;
		if (came == RDMA_CM_EVENT_CONNECT_REQUEST)
			talk->server = event->id;
		rdma_ack_cm_event(event);
	} while (came == RDMA_CM_EVENT_TIMEWAIT_EXIT);
	if (came == type && status == 0)
		return true;
	return fail(talk, rdma_event_str(came), status);
}

/* Both sides get an event, in any order. */
static bool expect_both(struct talk *talk, enum rdma_cm_event_type type)
{
	return expect(talk, type) && expect(talk, type);
}

static struct ibv_qp_init_attr qp_of(enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){ .cap = { 4, 4, 1, 1, 0 }, .qp_type = type };
}

static bool make_qp(struct talk *talk, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = qp_of(id->ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC);

	return TRY(talk, rdma_create_qp(id, NULL, &attr));
}

static bool begin_connecting(struct talk *talk, enum rdma_port_space ps, struct sockaddr *addr)
{
	return TRY(talk, rdma_create_id(talk->channel, &talk->listener, NULL, ps)) &&
	       TRY(talk, rdma_bind_addr(talk->listener, addr)) &&
	       TRY(talk, rdma_listen(talk->listener, 8)) &&
	       TRY(talk, rdma_create_id(talk->channel, &talk->client, NULL, ps)) &&
	       TRY(talk, rdma_resolve_addr(talk->client, NULL, addr, RESOLVE_MS)) &&
	       expect(talk, RDMA_CM_EVENT_ADDR_RESOLVED) &&
	       TRY(talk, rdma_resolve_route(talk->client, RESOLVE_MS)) &&
	       expect(talk, RDMA_CM_EVENT_ROUTE_RESOLVED) && make_qp(talk, talk->client);
}

static bool connect_both(struct talk *talk)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };

	return TRY(talk, rdma_connect(talk->client, &param)) &&
	       expect(talk, RDMA_CM_EVENT_CONNECT_REQUEST) && make_qp(talk, talk->server) &&
	       TRY(talk, rdma_accept(talk->server, &param)) &&
	       expect_both(talk, RDMA_CM_EVENT_ESTABLISHED);
}

/* A lookup; the server gets no further event. */
static bool look_up(struct talk *talk)
{
	struct rdma_conn_param param = { .qp_num = 0 };

	return TRY(talk, rdma_connect(talk->client, &param)) &&
	       expect(talk, RDMA_CM_EVENT_CONNECT_REQUEST) && make_qp(talk, talk->server) &&
	       TRY(talk, rdma_accept(talk->server, &param)) &&
	       expect(talk, RDMA_CM_EVENT_ESTABLISHED);
}

static bool make_endpoint(struct talk *talk, const struct addrinfo *at, bool passive,
			  struct rdma_cm_id **ret)
{
	struct rdma_addrinfo info = { .ai_flags = passive ? RAI_PASSIVE : 0,
				      .ai_family = at->ai_family,
				      .ai_qp_type = IBV_QPT_RC,
				      .ai_port_space = RDMA_PS_TCP };
	struct ibv_qp_init_attr qp = qp_of(IBV_QPT_RC);

	info.ai_src_addr = passive ? at->ai_addr : NULL;
	info.ai_src_len = passive ? at->ai_addrlen : 0;
	info.ai_dst_addr = passive ? NULL : at->ai_addr;
	info.ai_dst_len = passive ? 0 : at->ai_addrlen;
	return TRY(talk, rdma_create_ep(ret, &info, NULL, passive ? NULL : &qp)) &&
	       TRY(talk, rdma_migrate_id(*ret, talk->channel));
}

/* As endpoints, which are moved to the channel later. */
static bool begin_endpoints(struct talk *talk, const struct addrinfo *at)
{
	return make_endpoint(talk, at, true, &talk->listener) &&
	       TRY(talk, rdma_listen(talk->listener, 8)) &&
	       make_endpoint(talk, at, false, &talk->client);
}

/* The port is at the same offset in both families. */
static struct sockaddr_storage addr_without_port(const struct addrinfo *at)
{
	struct sockaddr_storage addr = { 0 };

	memcpy(&addr, at->ai_addr, at->ai_addrlen);
	((struct sockaddr_in *)&addr)->sin_port = 0;
	return addr;
}

static bool join_group(struct talk *talk, const struct addrinfo *at)
{
	struct sockaddr_in group = { .sin_family = AF_INET, .sin_addr = { inet_addr(GROUP) } };
	struct sockaddr_storage addr = addr_without_port(at);
	struct sockaddr *to = (struct sockaddr *)&group;

	return TRY(talk, rdma_create_id(talk->channel, &talk->member, NULL, RDMA_PS_UDP)) &&
	       TRY(talk, rdma_bind_addr(talk->member, (struct sockaddr *)&addr)) &&
	       TRY(talk, rdma_join_multicast(talk->member, to, NULL)) &&
	       expect(talk, RDMA_CM_EVENT_MULTICAST_JOIN) &&
	       TRY(talk, rdma_leave_multicast(talk->member, to));
}

static bool disconnect_both(struct talk *talk)
{
	return TRY(talk, rdma_disconnect(talk->client)) &&
	       expect(talk, RDMA_CM_EVENT_DISCONNECTED) &&
	       TRY(talk, rdma_disconnect(talk->server)) && expect(talk, RDMA_CM_EVENT_DISCONNECTED);
}

static void destroy_id(struct rdma_cm_id *id)
{
	if (!id)
		return;
	if (id->qp)
		rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

static void destroy_ids(struct talk *talk)
{
	destroy_id(talk->member);
	destroy_id(talk->client);
	destroy_id(talk->server);
	destroy_id(talk->listener);
	talk->member = talk->client = talk->server = talk->listener = NULL;
}

static void converse(struct talk *talk, const struct addrinfo *at)
{
	bool goes_on = begin_connecting(talk, RDMA_PS_TCP, at->ai_addr) && connect_both(talk) &&
		       join_group(talk, at) && disconnect_both(talk);

	destroy_ids(talk);
	goes_on = goes_on && begin_connecting(talk, RDMA_PS_UDP, at->ai_addr) && look_up(talk);
	destroy_ids(talk);
	if (goes_on && begin_endpoints(talk, at) && connect_both(talk))
		disconnect_both(talk);
	destroy_ids(talk);
}

struct outcome talk(const char *addr, const char *port, int wait_ms)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	struct talk talk = { .wait_ms = wait_ms };
	struct addrinfo *at;

	if (getaddrinfo(addr, port, &hints, &at)) {
		fprintf(stderr, "talk: %s is not a numeric address\n", addr);
		exit(2);
	}
	talk.channel = rdma_create_event_channel();
	if (!talk.channel)
		fail(&talk, "rdma_create_event_channel()", errno);
	else
		converse(&talk, at);
	if (talk.channel)
		rdma_destroy_event_channel(talk.channel);
	freeaddrinfo(at);
	return talk.outcome;
}

int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	if (!dir)
		return -1;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 3; /* ".", ".." and the listing's own */
}
