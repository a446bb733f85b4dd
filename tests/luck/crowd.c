/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many threads share one event channel: each takes events of any id and handles them, ids are
 * destroyed by a thread of their own while others still acknowledge, and threads are cancelled
 * while they wait. For a build with ThreadSanitizer.
 *
 * crowd ADDR CONNECTIONS THREADS [calm]: calm cancels nobody, as ThreadSanitizer loses track of a
 * thread that is cancelled inside one of its interceptors
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#define PORT	    "7401"
#define RESOLVE_MS  2000
#define ALARM_S	    1400
#define THREADS_MAX 16
#define CANCELLED   50

static struct rdma_event_channel *channel;
static struct addrinfo *at;
static int to_destroy[2]; /* a pipe of ids */
static atomic_int n_done, n_bad;
static atomic_bool is_over;
static bool is_calm;

static void check(int ret, const char *what)
{
	if (!ret)
		return;
	printf("%s: %s\n", what, strerror(errno));
	atomic_fetch_add(&n_bad, 1);
}

static void queue_for_destruction(struct rdma_cm_id *id)
{
	check(write(to_destroy[1], &id, sizeof(id)) != sizeof(id), "write");
}

/* Both ends are in this process. Without a queue pair the client answers the reply itself. */
static void act_on(struct rdma_cm_event *event)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	static atomic_int next_qpn = 0x100;

	param.qp_num = (uint32_t)atomic_fetch_add(&next_qpn, 1);
	switch ((int)event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		check(rdma_resolve_route(event->id, RESOLVE_MS), "rdma_resolve_route");
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		check(rdma_connect(event->id, &param), "rdma_connect");
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		check(rdma_accept(event->id, &param), "rdma_accept");
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		check(rdma_establish(event->id), "rdma_establish");
		check(rdma_disconnect(event->id), "rdma_disconnect");
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_disconnect(event->id);
		queue_for_destruction(event->id);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		printf("%s, status %d\n", rdma_event_str(event->event), event->status);
		atomic_fetch_add(&n_bad, 1);
		queue_for_destruction(event->id);
	}
}

static void *take_events(void *arg)
{
	struct rdma_cm_event *event;

	while (rdma_get_cm_event(channel, &event) == 0) {
		act_on(event);
		rdma_ack_cm_event(event);
	}
	return arg;
}

/* Contains no cancellation point. */
static void *pass_events_over(void *arg)
{
	struct rdma_cm_event *event;

	while (rdma_get_cm_event(channel, &event) == 0)
		rdma_ack_cm_event(event);
	return arg;
}

/* Polls a non-blocking channel repeatedly until stopped. */
static void *take_events_calmly(void *arg)
{
	struct pollfd wait = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	while (!atomic_load(&is_over)) {
		poll(&wait, 1, 20);
		if (rdma_get_cm_event(channel, &event))
			continue;
		act_on(event);
		rdma_ack_cm_event(event);
	}
	return arg;
}

static void *destroy_ids(void *arg)
{
	struct rdma_cm_id *id;

	while (read(to_destroy[0], &id, sizeof(id)) == sizeof(id)) {
		check(rdma_destroy_id(id), "rdma_destroy_id");
		atomic_fetch_add(&n_done, 1);
	}
	return arg;
}

static struct rdma_cm_id *open_listener(void)
{
	struct rdma_cm_id *id;

	check(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	check(rdma_bind_addr(id, at->ai_addr), "rdma_bind_addr");
	check(rdma_listen(id, 0), "rdma_listen");
	return id;
}

/* As mckey ends: threads are cancelled where they wait, then joined. */
static void cancel(pthread_t thread[], int n)
{
	int i;

	atomic_store(&is_over, true);
	for (i = 0; i < n && !is_calm; i++)
		pthread_cancel(thread[i]);
	for (i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
}

static void connect_all(int n_connections, int n_threads)
{
	struct rdma_cm_id *listener = open_listener(), *id;
	pthread_t thread[THREADS_MAX], destroyer;
	int i;

	for (i = 0; i < n_threads; i++)
		pthread_create(&thread[i], NULL, is_calm ? take_events_calmly : take_events, NULL);
	pthread_create(&destroyer, NULL, destroy_ids, NULL);
	for (i = 0; i < n_connections; i++) {
		check(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
		check(rdma_resolve_addr(id, NULL, at->ai_addr, RESOLVE_MS), "rdma_resolve_addr");
	}
	while (atomic_load(&n_done) < 2 * n_connections)
		usleep(10000);
	cancel(thread, n_threads);
	close(to_destroy[1]);
	pthread_join(destroyer, NULL);
	check(rdma_destroy_id(listener), "rdma_destroy_id");
}

/* Threads are cancelled while events arrive: others continue to use the channel. */
static void cancel_while_busy(void)
{
	struct rdma_cm_id *id;
	pthread_t thread;
	int i;

	for (i = 0; i < CANCELLED; i++) {
		check(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
		pthread_create(&thread, NULL, pass_events_over, NULL);
		check(rdma_resolve_addr(id, NULL, at->ai_addr, RESOLVE_MS), "rdma_resolve_addr");
		if (i % 2)
			usleep((useconds_t)i * 40);
		cancel(&thread, 1);
		check(rdma_destroy_id(id), "rdma_destroy_id");
	}
}

/* Stock leaves the waiting thread in place; so does this library, and it can still be cancelled. */
static void destroy_channel_under_a_waiting_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, take_events, NULL);
	usleep(100000);
	rdma_destroy_event_channel(channel);
	cancel(&thread, 1);
}

int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };

	if (argc < 4 || atoi(argv[3]) > THREADS_MAX || getaddrinfo(argv[1], PORT, &hints, &at) ||
	    pipe(to_destroy)) {
		fputs("usage: crowd ADDR CONNECTIONS THREADS [calm]\n", stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(ALARM_S);
	channel = rdma_create_event_channel();
	if (!channel) {
		perror("rdma_create_event_channel");
		return 1;
	}
	is_calm = argc > 4;
	if (is_calm)
		fcntl(channel->fd, F_SETFL, O_NONBLOCK);
	connect_all(atoi(argv[2]), atoi(argv[3]));
	if (!is_calm) {
		destroy_channel_under_a_waiting_thread();
		channel = rdma_create_event_channel();
		cancel_while_busy();
	}
	rdma_destroy_event_channel(channel);
	freeaddrinfo(at);
	printf("%d ids destroyed, %d complaints\n", atomic_load(&n_done), atomic_load(&n_bad));
	return atomic_load(&n_bad) ? 1 : 0;
}
