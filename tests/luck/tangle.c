/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that use the whole API concurrently: synchronous connections to one listener, an id that
 * migrates while its events come in, lookups whose ids are destroyed, groups that two ids join, a
 * queue pair that is destroyed while its connection is answered. For a build with ThreadSanitizer.
 *
 * tangle ADDR ROUNDS
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#define PORT	   7411
#define GROUP	   "239.77.0.7"
#define RESOLVE_MS 5000
#define POLL_MS	   20
#define ALARM_S	   1400
#define CALLERS	   3 /* threads that connect synchronously */

static struct sockaddr_in at, group;
static int n_rounds;
static atomic_int n_bad;

/* A thread that takes and acknowledges the events of a channel. */
struct taker {
	struct rdma_event_channel *channel;
	atomic_bool is_over;
	atomic_int n_taken;
	pthread_t thread;
};

static bool is_fine(int ret, const char *what)
{
	if (!ret)
		return true;
	printf("%s: %s\n", what, strerror(errno));
	atomic_fetch_add(&n_bad, 1);
	return false;
}

#define OK(call) is_fine(call, #call)

static void *take(void *arg)
{
	struct taker *taker = arg;
	struct pollfd wait = { .fd = taker->channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	while (!atomic_load(&taker->is_over)) {
		if (poll(&wait, 1, POLL_MS) <= 0 || rdma_get_cm_event(taker->channel, &event))
			continue;
		rdma_ack_cm_event(event);
		atomic_fetch_add(&taker->n_taken, 1);
	}
	return NULL;
}

static void taker_begin(struct taker *taker)
{
	taker->channel = rdma_create_event_channel();
	if (!taker->channel)
		exit(2);
	/* The channel may no longer be readable: an id migrates. */
	is_fine(fcntl(taker->channel->fd, F_SETFL, O_NONBLOCK), "fcntl");
	pthread_create(&taker->thread, NULL, take, taker);
}

static void taker_end(struct taker *taker)
{
	atomic_store(&taker->is_over, true);
	pthread_join(taker->thread, NULL);
	rdma_destroy_event_channel(taker->channel);
}

/* Return: whether the taker has taken more than @before events. */
static bool wait_taken(struct taker *taker, int before)
{
	int patience;

	for (patience = RESOLVE_MS; patience > 0; patience--) {
		if (atomic_load(&taker->n_taken) > before)
			return true;
		usleep(1000);
	}
	return is_fine(-1, "an event that was to come");
}

static int make_qp(struct rdma_cm_id *id, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = { .cap = { 1, 1, 1, 1, 0 }, .qp_type = type };

	return rdma_create_qp(id, NULL, &init);
}

static void *serve(void *arg)
{
	struct rdma_cm_id *listener = arg, *child;
	int i;

	for (i = 0; i < CALLERS * n_rounds; i++) {
		if (!OK(rdma_get_request(listener, &child)))
			break;
		if (OK(make_qp(child, IBV_QPT_RC)) && OK(rdma_accept(child, NULL)))
			OK(rdma_disconnect(child));
		rdma_destroy_qp(child);
		OK(rdma_destroy_id(child));
	}
	return NULL;
}

static void *call(void *arg)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_cm_id *id;
	int i;

	for (i = 0; i < n_rounds; i++) {
		if (!OK(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP)))
			break;
		if (OK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&at, RESOLVE_MS)) &&
		    OK(rdma_resolve_route(id, RESOLVE_MS)) && OK(make_qp(id, IBV_QPT_RC)) &&
		    OK(rdma_connect(id, &param)))
			OK(rdma_disconnect(id));
		rdma_destroy_qp(id);
		OK(rdma_destroy_id(id));
	}
	return arg;
}

/* Events are taken on both channels while the id migrates and ends. */
static void *migrate(void *arg)
{
	struct taker here = { 0 }, there = { 0 };
	struct rdma_cm_id *id;
	int i;

	taker_begin(&here);
	taker_begin(&there);
	for (i = 0; i < n_rounds; i++) {
		OK(rdma_create_id(here.channel, &id, NULL, RDMA_PS_TCP));
		OK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&at, RESOLVE_MS));
		OK(rdma_migrate_id(id, there.channel));
		OK(rdma_migrate_id(id, here.channel));
		OK(rdma_destroy_id(id));
	}
	taker_end(&here);
	taker_end(&there);
	return arg;
}

static void *look_up(void *arg)
{
	struct taker taker = { 0 };
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *info;
	struct rdma_cm_id *id;
	int i, before;

	taker_begin(&taker);
	for (i = 0; i < n_rounds; i++) {
		OK(rdma_create_id(taker.channel, &id, NULL, RDMA_PS_TCP));
		before = atomic_load(&taker.n_taken);
		OK(rdma_resolve_addrinfo(id, "localhost", NULL, &hints));
		if (i % 2 && wait_taken(&taker, before) && OK(rdma_query_addrinfo(id, &info)))
			rdma_freeaddrinfo(info);
		OK(rdma_destroy_id(id));
	}
	taker_end(&taker);
	return arg;
}

/* With queue pairs they join a group each, because rxe may forget which are attached to one. */
static void *join(void *arg)
{
	static atomic_uint n_joiners;
	struct sockaddr_in own = at, groups[2] = { group, group };
	struct taker taker = { 0 };
	struct sockaddr *addr;
	struct rdma_cm_id *id;
	int i, before;
	bool leaves;

	own.sin_port = 0;
	groups[1].sin_addr.s_addr =
		htonl(ntohl(group.sin_addr.s_addr) + 1 + atomic_fetch_add(&n_joiners, 1));
	taker_begin(&taker);
	for (i = 0; i < n_rounds; i++) {
		leaves = i % 3; /* an attached queue pair cannot be destroyed */
		addr = (struct sockaddr *)&groups[leaves];
		OK(rdma_create_id(taker.channel, &id, NULL, RDMA_PS_UDP));
		OK(rdma_bind_addr(id, (struct sockaddr *)&own));
		if (leaves)
			OK(make_qp(id, IBV_QPT_UD));
		before = atomic_load(&taker.n_taken);
		OK(rdma_join_multicast(id, addr, NULL));
		if (i % 2)
			wait_taken(&taker, before);
		if (leaves) {
			OK(rdma_leave_multicast(id, addr));
			rdma_destroy_qp(id);
		}
		OK(rdma_destroy_id(id));
	}
	taker_end(&taker);
	return arg;
}

/* A port without a listener: the rejection moves the queue pair, if it still exists. */
static void *destroy_queue_pairs(void *arg)
{
	struct rdma_conn_param param = { .retry_count = 7 };
	struct sockaddr_in nobody = at;
	struct taker taker = { 0 };
	struct rdma_cm_id *id;
	int i;

	nobody.sin_port = htons(PORT + 1);
	taker_begin(&taker);
	for (i = 0; i < n_rounds; i++) {
		OK(rdma_create_id(taker.channel, &id, NULL, RDMA_PS_TCP));
		OK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&nobody, RESOLVE_MS));
		wait_taken(&taker, 3 * i);
		OK(rdma_resolve_route(id, RESOLVE_MS));
		wait_taken(&taker, 3 * i + 1);
		OK(make_qp(id, IBV_QPT_RC));
		OK(rdma_connect(id, &param));
		usleep((useconds_t)(i % 8) * 500);
		rdma_destroy_qp(id);
		wait_taken(&taker, 3 * i + 2);
		OK(rdma_destroy_id(id));
	}
	taker_end(&taker);
	return arg;
}

static struct rdma_cm_id *listen_synchronously(void)
{
	struct rdma_cm_id *id;

	if (!OK(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP)) ||
	    !OK(rdma_bind_addr(id, (struct sockaddr *)&at)) || !OK(rdma_listen(id, 0)))
		exit(2);
	return id;
}

int main(int argc, char **argv)
{
	void *(*const uses[])(void *) = { call,	   call,    call,
					  migrate, migrate, look_up,
					  join,	   join,    destroy_queue_pairs };
	pthread_t thread[sizeof(uses) / sizeof(uses[0])], server;
	struct rdma_cm_id *listener;
	size_t i;

	at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(PORT) };
	group.sin_family = AF_INET;
	if (argc != 3 || inet_pton(AF_INET, argv[1], &at.sin_addr) != 1 ||
	    inet_pton(AF_INET, GROUP, &group.sin_addr) != 1) {
		fputs("usage: tangle ADDR ROUNDS\n", stderr);
		return 2;
	}
	n_rounds = atoi(argv[2]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(ALARM_S);
	listener = listen_synchronously();
	pthread_create(&server, NULL, serve, listener);
	for (i = 0; i < sizeof(uses) / sizeof(uses[0]); i++)
		pthread_create(&thread[i], NULL, uses[i], NULL);
	for (i = 0; i < sizeof(uses) / sizeof(uses[0]); i++)
		pthread_join(thread[i], NULL);
	pthread_join(server, NULL);
	OK(rdma_destroy_id(listener));
	printf("%d rounds, %d complaints\n", n_rounds, atomic_load(&n_bad));
	return atomic_load(&n_bad) ? 1 : 0;
}
