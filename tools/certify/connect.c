/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connect benchmark: measures each step of many connections. Compiled once and run with either
 * library by connect.py.
 *
 *   connect server [-f] [ADDRESS]
 *   connect client [-f] [-n COUNT,...] ADDRESS
 *
 * -f: fake queue pair numbers instead of queue pairs.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define PORT "7471"

/* Options from the command line. */
struct options {
	const char *address; /* client: the server's; server: its own, or NULL for any */
	const char *counts;  /* client: connections at a time, such as "1,100,1000" */
	bool fake_qpn;	     /* no queue pairs: measures the connection manager alone */
};

static void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

static void die(const char *format, ...)
{
	int cause = errno;
	va_list args;

	fprintf(stderr, "connect: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, cause ? ": %s\n" : "\n", strerror(cause));
	exit(1);
}

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void parse_address(const char *text, struct sockaddr_storage *address)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;

	errno = 0;
	if (getaddrinfo(text ? text : "::", PORT, &hints, &found))
		die("%s is not a numeric address", text);
	memset(address, 0, sizeof(*address));
	memcpy(address, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
}

/* No data is sent, so one completion queue suffices for any number of queue pairs. */
static void make_qp(struct rdma_cm_id *id)
{
	static struct ibv_cq *cq;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	if (!cq)
		cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	if (!cq)
		die("ibv_create_cq");
	attr.send_cq = attr.recv_cq = cq;
	if (rdma_create_qp(id, NULL, &attr))
		die("rdma_create_qp");
}

/*
 * The process id distinguishes the numbers from those of a previous run that are still in TIMEWAIT.
 */
static uint32_t next_fake_qpn(void)
{
	static uint32_t count;

	return (0x800000 | (uint32_t)getpid() << 14 | count++ % 16384) & 0xffffff;
}

/* --- client: each step is started for all ids, then all their events are awaited --- */

#define RESOLVE_MS  5000
#define PATIENCE_MS 120000
#define COUNT_MAX   100000

/* Between counts the server destroys its ids. */
#define REST_US 500000

/* Small counts are repeated until this number of connections is reached. */
#define AT_LEAST 30

struct batch {
	struct rdma_event_channel *channel;
	struct rdma_cm_id **ids;
	size_t count;
	struct sockaddr_storage peer;
	bool fake_qpn;
};

/* A step: started for one id, and ended by its event, if any. */
struct step {
	const char *name;
	void (*begin)(struct batch *batch, size_t i);
	int event; /* -1: none */
};

static void create_nth_id(struct batch *batch, size_t i)
{
	if (rdma_create_id(batch->channel, &batch->ids[i], NULL, RDMA_PS_TCP))
		die("rdma_create_id number %zu", i);
}

static void resolve_addr(struct batch *batch, size_t i)
{
	if (rdma_resolve_addr(batch->ids[i], NULL, (struct sockaddr *)&batch->peer, RESOLVE_MS))
		die("rdma_resolve_addr number %zu", i);
}

static void resolve_route(struct batch *batch, size_t i)
{
	if (rdma_resolve_route(batch->ids[i], RESOLVE_MS))
		die("rdma_resolve_route number %zu", i);
}

static void create_qp(struct batch *batch, size_t i)
{
	if (!batch->fake_qpn)
		make_qp(batch->ids[i]);
}

static void begin_connect(struct batch *batch, size_t i)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };

	if (batch->fake_qpn)
		param.qp_num = next_fake_qpn();
	if (rdma_connect(batch->ids[i], &param))
		die("rdma_connect number %zu", i);
}

static void begin_disconnect(struct batch *batch, size_t i)
{
	if (rdma_disconnect(batch->ids[i]))
		die("rdma_disconnect number %zu", i);
}

static void destroy_qp(struct batch *batch, size_t i)
{
	if (batch->ids[i]->qp)
		rdma_destroy_qp(batch->ids[i]);
}

static void destroy_id(struct batch *batch, size_t i)
{
	if (rdma_destroy_id(batch->ids[i]))
		die("rdma_destroy_id number %zu", i);
}

static const struct step steps[] = {
	{ "create_id", create_nth_id, -1 },
	{ "resolve_addr", resolve_addr, RDMA_CM_EVENT_ADDR_RESOLVED },
	{ "resolve_route", resolve_route, RDMA_CM_EVENT_ROUTE_RESOLVED },
	{ "create_qp", create_qp, -1 },
	{ "connect", begin_connect, RDMA_CM_EVENT_ESTABLISHED },
	{ "disconnect", begin_disconnect, RDMA_CM_EVENT_DISCONNECTED },
	{ "destroy_qp", destroy_qp, -1 },
	{ "destroy_id", destroy_id, -1 },
};

#define STEPS (sizeof(steps) / sizeof(steps[0]))

/* Return: whether the event ends the step; an event that indicates a failure ends the process. */
static bool ends_step(const struct rdma_cm_event *event, const struct step *step)
{
	errno = 0;
	if ((int)event->event == step->event)
		return true;
	if (event->event == RDMA_CM_EVENT_CONNECT_RESPONSE) {
		if (rdma_establish(event->id))
			die("rdma_establish");
		return true;
	}
	/* Timewait of an earlier id may end while later ones disconnect. */
	if (event->event == RDMA_CM_EVENT_TIMEWAIT_EXIT)
		return false;
	die("%s with status %d during %s", rdma_event_str(event->event), event->status, step->name);
}

static void await_events(struct batch *batch, const struct step *step)
{
	struct pollfd pfd = { .fd = batch->channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	size_t ended = 0;

	while (ended < batch->count) {
		errno = 0;
		if (poll(&pfd, 1, PATIENCE_MS) != 1)
			die("%s: %zu of %zu after %d s", step->name, ended, batch->count,
			    PATIENCE_MS / 1000);
		if (rdma_get_cm_event(batch->channel, &event))
			die("rdma_get_cm_event during %s", step->name);
		ended += ends_step(event, step);
		rdma_ack_cm_event(event);
	}
}

/* Adds each step's time in us to total[]. */
static void run_steps(struct batch *batch, double *total)
{
	double begin;
	size_t k, i;

	for (k = 0; k < STEPS; k++) {
		begin = now_us();
		for (i = 0; i < batch->count; i++)
			steps[k].begin(batch, i);
		if (steps[k].event >= 0)
			await_events(batch, &steps[k]);
		total[k] += now_us() - begin;
	}
}

static void measure_steps(struct batch *batch, size_t count)
{
	size_t rounds = count < AT_LEAST ? AT_LEAST / count : 1, i, k;
	double total[STEPS] = { 0 }, sum = 0;

	batch->count = count;
	batch->ids = calloc(count, sizeof(struct rdma_cm_id *));
	if (!batch->ids)
		die("memory for %zu ids", count);
	for (i = 0; i < rounds; i++)
		run_steps(batch, total);
	for (k = 0; k < STEPS; k++) {
		printf("%zu %s %.1f\n", count, steps[k].name, total[k] / (double)(rounds * count));
		sum += total[k];
	}
	printf("%zu all %.1f\n", count, sum / (double)(rounds * count));
	free(batch->ids);
}

/* The first connection opens the device and fills caches, so it is not measured. */
static void warm_up(struct batch *batch)
{
	double unused[STEPS] = { 0 };
	struct rdma_cm_id *id;

	batch->count = 1;
	batch->ids = &id;
	run_steps(batch, unused);
}

static int run_client(const struct options *options)
{
	struct batch batch = { .channel = rdma_create_event_channel(),
			       .fake_qpn = options->fake_qpn };
	const char *next = options->counts;
	unsigned long count;
	char *end;

	if (!batch.channel)
		die("rdma_create_event_channel");
	parse_address(options->address, &batch.peer);
	warm_up(&batch);
	for (; *next; next = *end ? end + 1 : end) {
		count = strtoul(next, &end, 10);
		errno = 0;
		if (end == next || !count || count > COUNT_MAX)
			die("-n takes numbers from 1 to %d, with commas", COUNT_MAX);
		measure_steps(&batch, count);
		if (*end)
			usleep(REST_US);
	}
	rdma_destroy_event_channel(batch.channel);
	return 0;
}

/* --- server: disconnected ids are kept until the client pauses --- */

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
	double begin = now_us(), created;

	if (server->fake_qpn)
		param.qp_num = next_fake_qpn();
	else
		make_qp(id);
	created = now_us();
	/* The client reports the connection's outcome. */
	if (rdma_accept(id, &param))
		perror("connect: rdma_accept");
	server->share.connections++;
	server->share.create_qp_us += created - begin;
	server->share.accept_us += now_us() - created;
}

static void destroy_later(struct server *server, struct rdma_cm_id *id)
{
	size_t room = server->dead_room ? 2 * server->dead_room : 64;

	if (server->dead_count == server->dead_room) {
		server->dead = realloc(server->dead, room * sizeof(*server->dead));
		if (!server->dead)
			die("memory for %zu ids", room);
		server->dead_room = room;
	}
	server->dead[server->dead_count++] = id;
}

static void disconnect_one(struct server *server, struct rdma_cm_id *id)
{
	double begin = now_us();

	if (rdma_disconnect(id))
		perror("connect: rdma_disconnect");
	server->share.disconnect_us += now_us() - begin;
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
	double begin = now_us();
	size_t i;

	if (!server->dead_count)
		return;
	for (i = 0; i < server->dead_count; i++) {
		if (server->dead[i]->qp)
			rdma_destroy_qp(server->dead[i]);
		if (rdma_destroy_id(server->dead[i]))
			die("rdma_destroy_id");
	}
	server->dead_count = 0;
	server->share.destroy_us += now_us() - begin;
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
		die("rdma_get_cm_event");
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

	parse_address(address, &addr);
	if (rdma_create_id(server->channel, &id, NULL, RDMA_PS_TCP))
		die("rdma_create_id");
	if (rdma_bind_addr(id, (struct sockaddr *)&addr))
		die("rdma_bind_addr to port " PORT);
	if (rdma_listen(id, 0))
		die("rdma_listen");
	printf("ready\n");
	return id;
}

static int run_server(const struct options *options)
{
	struct server server = { .channel = rdma_create_event_channel(),
				 .fake_qpn = options->fake_qpn };
	struct sigaction action = { .sa_handler = on_stop };
	struct rdma_cm_id *listener;
	struct pollfd pfd;

	if (!server.channel)
		die("rdma_create_event_channel");
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

/* --- the program --- */

/* Every connection may take one or two descriptors. */
static void allow_many_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int usage(void)
{
	fprintf(stderr, "usage: connect server [-f] [ADDRESS]\n"
			"       connect client [-f] [-n COUNT,...] ADDRESS\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct options options = { .counts = "1,100,1000" };
	const char *role = argc > 1 ? argv[1] : "";
	int option;

	optind = 2;
	while ((option = getopt(argc, argv, "fn:")) != -1) {
		if (option == 'f')
			options.fake_qpn = true;
		else if (option == 'n')
			options.counts = optarg;
		else
			return usage();
	}
	options.address = optind < argc ? argv[optind] : NULL;
	setvbuf(stdout, NULL, _IOLBF, 0);
	allow_many_files();
	if (!strcmp(role, "server"))
		return run_server(&options);
	if (!strcmp(role, "client") && options.address)
		return run_client(&options);
	return usage();
}
