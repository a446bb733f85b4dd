/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target of invalid messages: pairs of connected ids in one process that exchange messages
 * while more connections are made and ended. Linked with the library's internals, whose counters it
 * prints at the end.
 *
 * victim ADDR PAIRS SECONDS: prints "ready" with a comm id that an attacker could have guessed
 */
#include <errno.h>
#include <malloc.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/engine/engine.h"

#define PORT	   "7501"
#define RESOLVE_MS 2000
#define EVENT_MS   60000
#define PAIRS_MAX  200
#define BYTES	   64

struct end {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char buffer[2 * BYTES]; /* sent data, then received data */
};

struct pair {
	struct end client, server;
	unsigned long n_exchanged;
};

static struct rdma_event_channel *channel;
static struct rdma_cm_id *listener;
static struct addrinfo *at;
static struct pair pairs[PAIRS_MAX];
static unsigned long n_aliens; /* requests that are not from this program */

static void need(bool is_good, const char *what)
{
	if (is_good)
		return;
	printf("hurt: %s: %s\n", what, strerror(errno));
	exit(1);
}

#define NEED(call) need(!(call), #call)

/* Requests of the attacker that reach the program are rejected. */
static struct rdma_cm_id *next_event(enum rdma_cm_event_type type)
{
	struct pollfd wait = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	enum rdma_cm_event_type came;
	bool is_alien;

	for (;;) {
		errno = ETIMEDOUT;
		need(poll(&wait, 1, EVENT_MS) == 1, rdma_event_str(type));
		NEED(rdma_get_cm_event(channel, &event));
		id = event->id;
		came = event->event;
		is_alien = came == RDMA_CM_EVENT_CONNECT_REQUEST &&
			   event->param.conn.retry_count != 5;
		rdma_ack_cm_event(event);
		if (came == RDMA_CM_EVENT_TIMEWAIT_EXIT)
			continue;
		if (!is_alien)
			break;
		n_aliens++;
		rdma_reject(id, NULL, 0);
		rdma_destroy_id(id);
	}
	if (came != type) {
		printf("hurt: %s instead of %s\n", rdma_event_str(came), rdma_event_str(type));
		exit(1);
	}
	return id;
}

/* --- a pair -------------------------------------------------------------- */

static void prepare_id(struct end *end, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };

	end->id = id;
	NEED(rdma_create_qp(id, NULL, &attr));
	end->mr = ibv_reg_mr(id->pd, end->buffer, sizeof(end->buffer), IBV_ACCESS_LOCAL_WRITE);
	need(end->mr, "ibv_reg_mr");
}

static void connect_pair(struct pair *pair)
{
	struct rdma_conn_param param = { .retry_count = 5, .rnr_retry_count = 7 };
	struct rdma_cm_id *id;

	NEED(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	NEED(rdma_resolve_addr(id, NULL, at->ai_addr, RESOLVE_MS));
	next_event(RDMA_CM_EVENT_ADDR_RESOLVED);
	NEED(rdma_resolve_route(id, RESOLVE_MS));
	next_event(RDMA_CM_EVENT_ROUTE_RESOLVED);
	prepare_id(&pair->client, id);
	NEED(rdma_connect(id, &param));
	prepare_id(&pair->server, next_event(RDMA_CM_EVENT_CONNECT_REQUEST));
	NEED(rdma_accept(pair->server.id, &param));
	next_event(RDMA_CM_EVENT_ESTABLISHED);
	next_event(RDMA_CM_EVENT_ESTABLISHED);
}

static void destroy_id(struct end *end)
{
	ibv_dereg_mr(end->mr);
	rdma_destroy_qp(end->id);
	NEED(rdma_destroy_id(end->id));
}

static void end_pair(struct pair *pair)
{
	NEED(rdma_disconnect(pair->client.id));
	next_event(RDMA_CM_EVENT_DISCONNECTED);
	NEED(rdma_disconnect(pair->server.id));
	next_event(RDMA_CM_EVENT_DISCONNECTED);
	destroy_id(&pair->client);
	destroy_id(&pair->server);
}

/* --- data ---------------------------------------------------------------- */

static void complete(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(cq, 1, &wc);
	while (n == 0);
	errno = EIO;
	need(n == 1 && wc.status == IBV_WC_SUCCESS, "completion");
}

static void exchange(struct pair *pair)
{
	struct end *from = pair->n_exchanged % 2 ? &pair->server : &pair->client;
	struct end *to = pair->n_exchanged % 2 ? &pair->client : &pair->server;
	struct ibv_sge out = { (uintptr_t)from->buffer, BYTES, from->mr->lkey };
	struct ibv_sge in = { (uintptr_t)to->buffer + BYTES, BYTES, to->mr->lkey };
	struct ibv_send_wr send = { .sg_list = &out,
				    .num_sge = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED };
	struct ibv_recv_wr recv = { .sg_list = &in, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr *bad_send;

	snprintf(from->buffer, BYTES, "message %lu", pair->n_exchanged++);
	NEED(ibv_post_recv(to->id->qp, &recv, &bad_recv));
	NEED(ibv_post_send(from->id->qp, &send, &bad_send));
	complete(from->id->send_cq);
	complete(to->id->recv_cq);
	errno = EBADMSG;
	need(strcmp(from->buffer, to->buffer + BYTES) == 0, "message");
}

/* --- the run ------------------------------------------------------------- */

static void report(unsigned long n_exchanged, unsigned long n_more, size_t bytes_before)
{
	static const char *const names[] = {
#define X(name) #name,
		CM_COUNTERS(X)
#undef X
	};
	struct engine *engine = engine_lock();
	int i;

	for (i = 0; i < CM_N_COUNTERS; i++)
		printf("%s %llu\n", names[i], (unsigned long long)engine->core.count[i]);
	printf("CONNS %zu\n", engine->core.n_conns);
	engine_unlock();
	printf("ALIENS %lu\nEXCHANGED %lu\nMORE %lu\nGROWTH %zd\n", n_aliens, n_exchanged, n_more,
	       (ssize_t)(mallinfo2().uordblks - bytes_before));
}

static void announce(void)
{
	struct engine *engine = engine_lock();
	struct id *id = (struct id *)pairs[0].client.id;

	printf("ready %08x %08x\n", id->conn->local_comm_id, id->conn->remote_comm_id);
	(void)engine;
	engine_unlock();
}

int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	unsigned long n_exchanged = 0, n_more = 0;
	struct pair more = { 0 };
	size_t bytes_before;
	int i, n_pairs;
	time_t end;

	if (argc < 4 || getaddrinfo(argv[1], PORT, &hints, &at) || atoi(argv[2]) > PAIRS_MAX) {
		fputs("usage: victim ADDR PAIRS SECONDS\n", stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	n_pairs = atoi(argv[2]);
	channel = rdma_create_event_channel();
	need(channel, "rdma_create_event_channel");
	NEED(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP));
	NEED(rdma_bind_addr(listener, at->ai_addr));
	NEED(rdma_listen(listener, 0));
	for (i = 0; i < n_pairs; i++)
		connect_pair(&pairs[i]);
	announce();
	bytes_before = mallinfo2().uordblks;
	for (end = time(NULL) + atoi(argv[3]); time(NULL) < end; n_more++) {
		for (i = 0; i < n_pairs; i++, n_exchanged++)
			exchange(&pairs[i]);
		connect_pair(&more);
		end_pair(&more);
	}
	report(n_exchanged, n_more, bytes_before);
	for (i = 0; i < n_pairs; i++)
		end_pair(&pairs[i]);
	return 0;
}
