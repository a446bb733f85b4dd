/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The accepting side of the connect benchmark: one thread, one channel. Disconnected ids are kept
 * until there has been no event for a while, so that destroying them does not affect the client's
 * measurements.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/certify/bench.h"

#define IDLE_MS 100

static volatile sig_atomic_t stopped;

/* Time of this side's calls in one burst. */
struct share {
	unsigned connections;
	double create_qp_us, accept_us, disconnect_us, destroy_us;
};

struct server {
	struct rdma_event_channel *channel;
	struct rdma_cm_id **dead;
	size_t dead_count, dead_room;
	struct share share;
	bool fake_qpn;
};

static void on_stop(int number)
{
	(void)number;
	stopped = 1;
}

static void accept_one(struct server *server, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7 };
	double begin = bench_now_us(), created;

	if (server->fake_qpn)
		param.qp_num = bench_fake_qpn();
	else
		bench_create_qp(id);
	created = bench_now_us();
	/* The client reports the connection's outcome. */
	if (rdma_accept(id, &param))
		perror("connect: rdma_accept");
	server->share.connections++;
	server->share.create_qp_us += created - begin;
	server->share.accept_us += bench_now_us() - created;
}

static void destroy_later(struct server *server, struct rdma_cm_id *id)
{
	size_t room = server->dead_room ? 2 * server->dead_room : 64;

	if (server->dead_count == server->dead_room) {
		server->dead = realloc(server->dead, room * sizeof(*server->dead));
		if (!server->dead)
			bench_die("memory for %zu ids", room);
		server->dead_room = room;
	}
	server->dead[server->dead_count++] = id;
}

static void disconnect_one(struct server *server, struct rdma_cm_id *id)
{
	double begin = bench_now_us();

	if (rdma_disconnect(id))
		perror("connect: rdma_disconnect");
	server->share.disconnect_us += bench_now_us() - begin;
	destroy_later(server, id);
}

static void print_share(struct share *share)
{
	const double n = share->connections;

	if (share->connections)
		printf("server %u create_qp %.1f accept %.1f disconnect %.1f destroy %.1f\n",
		       share->connections, share->create_qp_us / n, share->accept_us / n,
		       share->disconnect_us / n, share->destroy_us / n);
	*share = (struct share){ 0 };
}

static void destroy_disconnected(struct server *server)
{
	double begin = bench_now_us();
	size_t i;

	if (!server->dead_count)
		return;
	for (i = 0; i < server->dead_count; i++) {
		if (server->dead[i]->qp)
			rdma_destroy_qp(server->dead[i]);
		if (rdma_destroy_id(server->dead[i]))
			bench_die("rdma_destroy_id");
	}
	server->dead_count = 0;
	server->share.destroy_us += bench_now_us() - begin;
	print_share(&server->share);
}

static void handle_next(struct server *server)
{
	enum rdma_cm_event_type type;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	int status;

	if (rdma_get_cm_event(server->channel, &event)) {
		if (errno == EINTR)
			return;
		bench_die("rdma_get_cm_event");
	}
	type = event->event;
	status = event->status;
	id = event->id;
	rdma_ack_cm_event(event);
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		accept_one(server, id);
	} else if (type == RDMA_CM_EVENT_DISCONNECTED) {
		disconnect_one(server, id);
	} else if (type == RDMA_CM_EVENT_REJECTED || type == RDMA_CM_EVENT_UNREACHABLE) {
		fprintf(stderr, "connect: %s with status %d\n", rdma_event_str(type), status);
		destroy_later(server, id);
	}
}

static struct rdma_cm_id *listen_at(struct server *server, const char *address)
{
	struct sockaddr_storage addr;
	struct rdma_cm_id *id;

	bench_address(address, &addr);
	if (rdma_create_id(server->channel, &id, NULL, RDMA_PS_TCP))
		bench_die("rdma_create_id");
	if (rdma_bind_addr(id, (struct sockaddr *)&addr))
		bench_die("rdma_bind_addr to port " BENCH_PORT);
	if (rdma_listen(id, 0))
		bench_die("rdma_listen");
	printf("ready\n");
	return id;
}

int bench_server(const struct bench_options *options)
{
	struct server server = { .channel = rdma_create_event_channel(),
				 .fake_qpn = options->fake_qpn };
	struct sigaction action = { .sa_handler = on_stop };
	struct rdma_cm_id *listener;
	struct pollfd pfd;

	if (!server.channel)
		bench_die("rdma_create_event_channel");
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	listener = listen_at(&server, options->address);
	pfd = (struct pollfd){ .fd = server.channel->fd, .events = POLLIN };
	while (!stopped) {
		if (poll(&pfd, 1, IDLE_MS) == 1)
			handle_next(&server);
		else
			destroy_disconnected(&server);
	}
	destroy_disconnected(&server);
	free(server.dead);
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(server.channel);
	return 0;
}
