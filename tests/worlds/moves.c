/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections whose address is removed while they are made, and another address added, which may
 * take its place in the GID table: moves INTERFACE ADDRESS GOING COMING WHEN. This host connects to
 * itself, from GOING to ADDRESS, or with WHEN "accepting" the other way. Prints the outcome, and
 * whether each queue pair has the address of its id. With "always" both addresses are added and
 * removed while a hundred connections are made. One binary for both libraries.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PORT	       7471
#define PATIENCE_MS    20000
#define WAIT_MS	       10
#define CHURN_MS       300 /* after which no answer will arrive: its address was removed */
#define N_CHURN	       100
#define CHURN_PAUSE_MS 10
#define GIDS_MAX       256

static const char *interface, *own, *going, *coming, *moment;
static struct rdma_event_channel *channel;
static struct rdma_cm_id *client, *server;

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static void pause_ms(int ms)
{
	struct timespec pause = { .tv_nsec = ms * 1000000L };

	nanosleep(&pause, NULL);
}

static bool is_moment(const char *name)
{
	return !strcmp(moment, name);
}

/* --- addresses ----------------------------------------------------------- */

static struct sockaddr_in address(const char *text, uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (inet_pton(AF_INET, text, &addr.sin_addr) != 1)
		exit(2);
	return addr;
}

static int run_ip(const char *verb, const char *text, int bits)
{
	char command[256];

	snprintf(command, sizeof(command), "ip address %s %s/%d dev %s", verb, text, bits,
		 interface);
	return system(command);
}

static bool has_gid(const char *text)
{
	struct ibv_gid_entry entry[GIDS_MAX];
	struct sockaddr_in addr = address(text, 0);
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };
	ssize_t i, n = ibv_query_gid_table(client->verbs, entry, GIDS_MAX, 0);

	memcpy(gid.raw + 12, &addr.sin_addr, 4);
	for (i = 0; i < n; i++)
		if (!memcmp(&entry[i].gid, &gid, sizeof(gid)))
			return true;
	return false;
}

static void change(const char *verb, const char *text)
{
	if (run_ip(verb, text, 24))
		die(text);
	while (has_gid(text) != !strcmp(verb, "add"))
		pause_ms(WAIT_MS);
}

/* Removes one address and adds the other; with "returning" the first one is added again, too. */
static void swap_at(const char *now)
{
	bool returns = is_moment("returning");

	if (is_moment("always"))
		pause_ms(rand() % CHURN_PAUSE_MS);
	if (!is_moment(now) && !(returns && !strcmp(now, "connecting")))
		return;
	change("del", going);
	change("add", coming);
	if (returns)
		change("add", going);
}

/* --- one connection ------------------------------------------------------ */

/* Return: the next event, or NULL after a while without one. */
static struct rdma_cm_event *next_event(void)
{
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	if (poll(&fd, 1, is_moment("always") ? CHURN_MS : PATIENCE_MS) <= 0)
		return NULL;
	return rdma_get_cm_event(channel, &event) ? NULL : event;
}

static bool is_next(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = next_event();
	bool is_it = event && event->event == type;

	if (event)
		rdma_ack_cm_event(event);
	return is_it;
}

static int make_queue_pair(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	return rdma_create_qp(id, NULL, &attr);
}

/* Return: whether the client has a route and a queue pair. */
static bool resolve(const char *source, const char *destination)
{
	struct sockaddr_in from = address(source, 0), to = address(destination, PORT);
	int tries = PATIENCE_MS / WAIT_MS;

	if (rdma_create_id(channel, &client, NULL, RDMA_PS_TCP))
		die("rdma_create_id");
	while (rdma_resolve_addr(client, (struct sockaddr *)&from, (struct sockaddr *)&to,
				 PATIENCE_MS)) {
		if ((errno != ENODEV && errno != EADDRNOTAVAIL) || !tries--)
			return false;
		pause_ms(WAIT_MS); /* a GID is added after its address */
	}
	return is_next(RDMA_CM_EVENT_ADDR_RESOLVED) && !rdma_resolve_route(client, PATIENCE_MS) &&
	       is_next(RDMA_CM_EVENT_ROUTE_RESOLVED) && !make_queue_pair(client);
}

/*
 * Return: -1 without a connection; whether it has another address than the id. A removed one leaves
 * a hole.
 */
static int has_another_address(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	static const union ibv_gid none;
	union ibv_gid gid;

	if (!id || !id->qp || ibv_query_qp(id->qp, &attr, IBV_QP_STATE | IBV_QP_AV, &init) ||
	    (attr.qp_state != IBV_QPS_RTR && attr.qp_state != IBV_QPS_RTS))
		return -1;
	if (ibv_query_gid(id->verbs, id->port_num, attr.ah_attr.grh.sgid_index, &gid) ||
	    !memcmp(&gid, &none, sizeof(gid)))
		return 0;
	return memcmp(&gid, &id->route.addr.addr.ibaddr.sgid, sizeof(gid)) != 0;
}

/* Return: whether that succeeded. */
static bool accept_request(void)
{
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
	int err;

	if (make_queue_pair(server))
		die("rdma_create_qp");
	swap_at("accepting");
	err = rdma_accept(server, NULL);
	if (err && !is_moment("always"))
		printf("rdma_accept: %s\n", strerror(errno));
	/* The client's reply has arrived, but is not taken. */
	if (!err && poll(&fd, 1, is_moment("always") ? CHURN_MS : PATIENCE_MS) > 0)
		swap_at("answered");
	return !err;
}

/* Runs until both ends are established, or one of them has failed. */
static void make_connection(void)
{
	struct rdma_cm_event *event;
	int n_established = 0;
	bool goes_on = true;

	swap_at("connecting");
	if (rdma_connect(client, NULL)) {
		if (!is_moment("always"))
			printf("rdma_connect: %s\n", strerror(errno));
		return;
	}
	while (goes_on && n_established < 2) {
		event = next_event();
		if (!event)
			return;
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			server = event->id;
			rdma_ack_cm_event(event);
			goes_on = accept_request();
			continue;
		}
		if (!is_moment("always"))
			printf("%s hears %s\n", event->id == client ? "client" : "server",
			       rdma_event_str(event->event));
		goes_on = event->event == RDMA_CM_EVENT_ESTABLISHED;
		n_established += goes_on;
		rdma_ack_cm_event(event);
	}
}

static void play_once(void)
{
	static const char *const outcomes[] = { "its address", "another address" };
	bool accepts = is_moment("accepting");
	int ends[2], i;

	run_ip("add", going, 24);
	if (!resolve(accepts ? own : going, accepts ? going : own))
		die("resolving");
	make_connection();
	ends[0] = has_another_address(client);
	ends[1] = has_another_address(server);
	for (i = 0; i < 2; i++)
		printf("%s: %s\n", i ? "server" : "client",
		       ends[i] < 0 ? "not connected" : outcomes[ends[i]]);
}

/* --- a hundred connections ----------------------------------------------- */

static pid_t begin_churn(void)
{
	pid_t pid = fork();
	FILE *ip;

	if (pid)
		return pid;
	ip = popen("ip -force -batch - >/dev/null 2>&1", "w");
	while (ip && !ferror(ip)) {
		fprintf(ip, "address %s %s/24 dev %s\n", rand() % 2 ? "replace" : "del",
			rand() % 2 ? going : coming, interface);
		fflush(ip);
		pause_ms(rand() % CHURN_PAUSE_MS);
	}
	_exit(1);
}

static void destroy(struct rdma_cm_id **id)
{
	if (*id && (*id)->qp)
		rdma_destroy_qp(*id);
	if (*id)
		rdma_destroy_id(*id);
	*id = NULL;
}

static void play_hundred(void)
{
	pid_t churn = begin_churn();
	int i, n_connected = 0, n_wrong = 0, n_tries;

	for (n_tries = 0; n_connected < N_CHURN && n_tries < 20 * N_CHURN; n_tries++) {
		if (resolve(n_tries % 2 ? going : coming, own)) {
			struct rdma_cm_id *const ends[] = { client, NULL };

			make_connection();
			for (i = 0; i < 2; i++) {
				int another = has_another_address(i ? server : ends[0]);

				n_wrong += another > 0;
				n_connected += !i && another == 0;
			}
		}
		destroy(&client);
		destroy(&server);
	}
	kill(churn, SIGKILL);
	waitpid(churn, NULL, 0);
	printf("%d connected, %d with another address\n", n_connected, n_wrong);
}

int main(int argc, char **argv)
{
	struct sockaddr_in any = address("0.0.0.0", PORT);
	struct rdma_cm_id *listener;

	if (argc != 6)
		return 2;
	interface = argv[1], own = argv[2], going = argv[3], coming = argv[4], moment = argv[5];
	setvbuf(stdout, NULL, _IONBF, 0);
	channel = rdma_create_event_channel();
	if (!channel || rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)&any) || rdma_listen(listener, 4))
		die("listening");
	if (is_moment("always"))
		play_hundred();
	else
		play_once();
	run_ip("flush to", going, 32);
	run_ip("flush to", coming, 32);
	return 0;
}
