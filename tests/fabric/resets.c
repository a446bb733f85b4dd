/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resets WAY COMMAND ADDRESS: uses the device of the address in one way, runs a command that resets
 * the device, waits for RDMA_CM_EVENT_DEVICE_REMOVAL, ends the use, and starts again, five times.
 * Prints the number of descriptors and threads each time.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_RESETS    5
#define PATIENCE_MS 60000
#define PORT	    7471

static struct sockaddr_in own, group;
static struct rdma_event_channel *channel;

static void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(2);
}

static int count_entries(const char *folder)
{
	DIR *dir = opendir(folder);
	int n = -2; /* . and .. */

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void expect_event(enum rdma_cm_event_type type)
{
	struct pollfd readable = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	if (poll(&readable, 1, PATIENCE_MS) != 1) {
		printf("no %s\n", rdma_event_str(type));
		exit(2);
	}
	if (rdma_get_cm_event(channel, &event))
		die("rdma_get_cm_event");
	if (event->event != type) {
		printf("%s, not %s\n", rdma_event_str(event->event), rdma_event_str(type));
		exit(2);
	}
	rdma_ack_cm_event(event);
}

/*
 * The device, or its CM port, may not be back yet, and verbs of the previous one fail with EIO
 * until its removal is known: repeats a call until it succeeds.
 */
#define UNTIL_BACK(call)                                                           \
	for (int tries = PATIENCE_MS / 10; (call) != 0; tries--) {                 \
		if ((errno != ENODEV && errno != ENXIO && errno != EIO) || !tries) \
			die(#call);                                                \
		usleep(10000);                                                     \
	}

static struct rdma_cm_id *new_id(enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	UNTIL_BACK(rdma_create_id(channel, &id, NULL, ps));
	return id;
}

static struct rdma_cm_id *bound_id(enum rdma_port_space ps)
{
	struct rdma_cm_id *id = new_id(ps);

	UNTIL_BACK(rdma_bind_addr(id, (struct sockaddr *)&own));
	return id;
}

/* --- uses of the device ------------------------------------------------------- */

static struct rdma_cm_id *tcp(void)
{
	return bound_id(RDMA_PS_TCP);
}

static struct rdma_cm_id *udp(void)
{
	return bound_id(RDMA_PS_UDP);
}

static struct rdma_cm_id *listener(void)
{
	struct rdma_cm_id *id = tcp();

	UNTIL_BACK(rdma_listen(id, 1));
	return id;
}

/* Another id listens on all devices from the first time on. */
static struct rdma_cm_id *wildcard(void)
{
	static struct rdma_cm_id *everywhere;
	struct sockaddr_in any = { .sin_family = AF_INET };

	if (!everywhere) {
		everywhere = new_id(RDMA_PS_TCP);
		if (rdma_bind_addr(everywhere, (struct sockaddr *)&any) ||
		    rdma_listen(everywhere, 1))
			die("rdma_listen");
	}
	return tcp();
}

static struct rdma_cm_id *queue_pair(void)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct rdma_cm_id *id = tcp();

	if (rdma_create_qp(id, NULL, &attr))
		die("rdma_create_qp");
	return id;
}

static struct rdma_cm_id *member(void)
{
	struct rdma_cm_id *id = udp();

	if (rdma_join_multicast(id, (struct sockaddr *)&group, NULL))
		die("rdma_join_multicast");
	expect_event(RDMA_CM_EVENT_MULTICAST_JOIN);
	return id;
}

static struct rdma_cm_id *loopback(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);

	UNTIL_BACK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&any, PATIENCE_MS));
	expect_event(RDMA_CM_EVENT_ADDR_RESOLVED);
	return id;
}

static const struct way {
	const char *name;
	struct rdma_cm_id *(*begin)(void);
} ways[] = {
	{ "tcp", tcp },
	{ "udp", udp },
	{ "listener", listener },
	{ "wildcard", wildcard },
	{ "queue-pair", queue_pair },
	{ "member", member },
	{ "loopback", loopback },
};

/* --- without ids ----------------------------------------------------------------- */

static void list_devices(void)
{
	struct ibv_context **list;
	struct ibv_port_attr attr;
	int i, n, err = 0;

	UNTIL_BACK(!(list = rdma_get_devices(&n)));
	for (i = 0; i < n; i++)
		err = err ? err : ibv_query_port(list[i], 1, &attr);
	printf("%d devices%s, ", n, err ? " that do not answer" : "");
	rdma_free_devices(list);
}

/* A socket of the type, bound to the device's address. */
static int bound_socket(int type)
{
	int s;

	UNTIL_BACK((s = rsocket(AF_INET, type, 0)) < 0);
	UNTIL_BACK(rbind(s, (struct sockaddr *)&own, sizeof(own)));
	return s;
}

static int listening_socket(void)
{
	int s = bound_socket(SOCK_STREAM);

	UNTIL_BACK(rlisten(s, 1));
	return s;
}

static int datagram_socket(void)
{
	int s = bound_socket(SOCK_DGRAM);

	UNTIL_BACK(rsendto(s, "x", 1, 0, (struct sockaddr *)&own, sizeof(own)) < 0);
	return s;
}

/* --- resets ------------------------------------------------------------------------ */

/* Threads of the library end by themselves: waits until there are no more than the first time. */
static void print_counts(void)
{
	static int most_fds = INT_MAX, most_tasks = INT_MAX;
	int fds, tasks, tries = PATIENCE_MS / 10;

	do {
		fds = count_entries("/proc/self/fd");
		tasks = count_entries("/proc/self/task");
	} while ((fds > most_fds || tasks > most_tasks) && tries-- && !usleep(10000));
	if (most_fds == INT_MAX) {
		most_fds = fds;
		most_tasks = tasks;
	}
	printf("%d descriptors, %d threads\n", fds, tasks);
}

/* The command is executed some time after it was given. */
static void reset(const char *command)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *verbs = list && *list ? ibv_open_device(*list) : NULL;
	int tries = PATIENCE_MS / 10;
	struct ibv_port_attr attr;

	if (!verbs)
		die("ibv_open_device");
	if (system(command))
		die(command);
	while (!ibv_query_port(verbs, 1, &attr) && tries--)
		usleep(10000);
	if (tries < 0)
		die("no reset");
	ibv_close_device(verbs);
	ibv_free_device_list(list);
}

static void play_ids(const struct way *way, const char *command)
{
	struct rdma_cm_id *id = way->begin();

	print_counts();
	reset(command);
	expect_event(RDMA_CM_EVENT_DEVICE_REMOVAL);
	if (id->qp)
		rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

static void play_socket(int s, const char *command)
{
	print_counts();
	reset(command);
	rclose(s);
}

static void play(const char *name, const char *command)
{
	size_t i;

	if (!strcmp(name, "list")) {
		list_devices();
		print_counts();
		reset(command);
	} else if (!strcmp(name, "stream")) {
		play_socket(listening_socket(), command);
	} else if (!strcmp(name, "datagrams")) {
		play_socket(datagram_socket(), command);
	}
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(ways[i].name, name))
			play_ids(&ways[i], command);
}

int main(int argc, char **argv)
{
	int i;

	if (argc != 4)
		return 64;
	setvbuf(stdout, NULL, _IOLBF, 0);
	own.sin_family = AF_INET;
	own.sin_port = htons(PORT);
	inet_pton(AF_INET, argv[3], &own.sin_addr);
	group = own;
	inet_pton(AF_INET, "239.1.2.3", &group.sin_addr);
	if (strcmp(argv[1], "list") != 0) /* with a channel, the library has a thread */
		channel = rdma_create_event_channel();
	for (i = 0; i < N_RESETS; i++)
		play(argv[1], argv[2]);
	return 0;
}
