/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The scripted peer. For each script a process listens, dials and answers by its player's
 * commands, and reports its events with the answer to the next command.
 */
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>

#include "player.h"

#define IDS_MAX 64

static struct rdma_event_channel *channel;
static struct rdma_cm_id *ids[IDS_MAX]; /* r0, r1 and so on, in the order in which they came */
static size_t n_ids;

/* What a listener does with requests is its context. */
static char modes[][8] = { "accept", "reject", "hold", "close" };

static void keep(struct rdma_cm_id *id)
{
	static char labels[IDS_MAX][8];

	if (n_ids == IDS_MAX)
		return;
	snprintf(labels[n_ids], sizeof(labels[n_ids]), "r%zu", n_ids);
	assign_id_name(id, labels[n_ids]);
	ids[n_ids++] = id;
}

static void print_result(const char *what, int result)
{
	show_call(what, result);
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct ibv_qp_init_attr attr;
	int i;

	queue_pair_of(id->ps == RDMA_PS_UDP ? "ud" : "rc", &attr);
	if (!id->qp && rdma_create_qp(id, NULL, &attr))
		print_result("rdma_create_qp", -1);
	for (i = 0; id->qp && i < 3; i++)
		ibv_post_recv(id->qp, &wr, &bad);
}

static void accept_id(struct rdma_cm_id *id)
{
	make_qp(id);
	print_result("accept", rdma_accept(id, param_of("d")));
}

static void answer(struct rdma_cm_id *id)
{
	const char *mode = id->context;

	if (mode == modes[0] || mode == modes[3])
		accept_id(id);
	else if (mode == modes[1])
		rdma_reject(id, "refused", 7);
}

static void handle(struct rdma_cm_event *event)
{
	struct rdma_cm_id *id = event->id;
	enum rdma_cm_event_type type = event->event;

	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		keep(id);
	if (type != RDMA_CM_EVENT_ADDR_RESOLVED && type != RDMA_CM_EVENT_ROUTE_RESOLVED &&
	    type != RDMA_CM_EVENT_TIMEWAIT_EXIT)
		show_event(event);
	rdma_ack_cm_event(event);
	if (type == RDMA_CM_EVENT_ADDR_RESOLVED && rdma_resolve_route(id, 2000))
		print_result("route", -1);
	if (type == RDMA_CM_EVENT_ROUTE_RESOLVED) {
		make_qp(id);
		print_result("connect", rdma_connect(id, param_of("d")));
	}
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		answer(id);
	if ((type == RDMA_CM_EVENT_ESTABLISHED && id->context == modes[3]) ||
	    type == RDMA_CM_EVENT_DISCONNECTED)
		rdma_disconnect(id);
}

static void handle_all(void)
{
	struct pollfd ready = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	while (poll(&ready, 1, 0) > 0 && !rdma_get_cm_event(channel, &event))
		handle(event);
}

static void start_listening(const char *port, const char *space, const char *mode)
{
	enum rdma_port_space ps = space_of(space);
	struct rdma_cm_id *id;
	size_t i;

	for (i = 0; i + 1 < sizeof(modes) / sizeof(modes[0]) && strcmp(mode, modes[i]); i++)
		;
	if (rdma_create_id(channel, &id, modes[i], ps) ||
	    rdma_bind_addr(id, address_of("any6", port, ps)) || rdma_listen(id, 0))
		print_result("listen", -1);
}

static void dial(const char *host, const char *port, const char *space)
{
	enum rdma_port_space ps = space_of(space);
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, NULL, ps))
		return;
	keep(id);
	if (rdma_resolve_addr(id, NULL, address_of(host, port, ps), 2000))
		print_result("addr", -1);
}

static void act(const char *what, struct rdma_cm_id *id)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;

	if (!strcmp(what, "accept"))
		accept_id(id);
	else if (!strcmp(what, "reject"))
		print_result(what, rdma_reject(id, "later", 5));
	else if (!strcmp(what, "send") && id->qp && id->qp->qp_type == IBV_QPT_RC)
		print_result(what, ibv_post_send(id->qp, &wr, &bad));
	else if (!strcmp(what, "disconnect"))
		print_result(what, rdma_disconnect(id));
}

static void destroy(struct rdma_cm_id **id)
{
	if ((*id)->qp)
		rdma_destroy_qp(*id);
	print_result("destroy", rdma_destroy_id(*id));
	*id = NULL;
}

static void run_command(char *line)
{
	char what[16] = "", a[16] = "", b[16] = "", c[16] = "";
	unsigned n;

	if (sscanf(line, "%15s %15s %15s %15s", what, a, b, c) < 1 || !strcmp(what, "ping"))
		return;
	n = atoi(a + (*a == 'r'));
	if (!strcmp(what, "listen"))
		start_listening(a, b, c);
	else if (!strcmp(what, "dial"))
		dial(a, b, c);
	else if (n >= n_ids || !ids[n])
		printf(" no id\n");
	else if (!strcmp(what, "destroy"))
		destroy(&ids[n]);
	else
		act(what, ids[n]);
}

/* The first line of a player: its base port, and both hosts' addresses. */
static bool read_hosts(FILE *from)
{
	char line[512], *texts[4], *at;
	int i;

	if (!fgets(line, sizeof(line), from))
		return false;
	base_port = atoi(strtok_r(line, " \n", &at));
	for (i = 0; i < 4; i++)
		if (!(texts[i] = strtok_r(NULL, " \n", &at)))
			return false;
	parse_hosts(texts);
	return true;
}

static void play_peer(int control)
{
	struct pollfd ready[2] = { { .fd = control, .events = POLLIN } };
	FILE *from = fdopen(control, "r");
	char line[512];

	setvbuf(from, NULL, _IONBF, 0); /* poll() knows only what is not read */
	dup2(control, STDOUT_FILENO);
	if (!read_hosts(from))
		return;
	channel = rdma_create_event_channel();
	if (!channel)
		return;
	ready[1] = (struct pollfd){ .fd = channel->fd, .events = POLLIN };
	for (;;) {
		poll(ready, 2, -1);
		handle_all();
		if (!ready[0].revents)
			continue;
		if (!fgets(line, sizeof(line), from))
			return;
		run_command(line);
		handle_all();
		printf(".\n");
		fflush(stdout);
	}
}

int serve(const char *port)
{
	struct addrinfo hints = { .ai_family = AF_INET6, .ai_flags = AI_PASSIVE | AI_NUMERICHOST };
	struct addrinfo *found;
	int listener, control, on = 1;

	if (getaddrinfo("::", port, &hints, &found))
		return 2;
	listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, found->ai_addr, found->ai_addrlen) || listen(listener, 64)) {
		perror("player: the peer's port");
		return 2;
	}
	freeaddrinfo(found);
	signal(SIGCHLD, SIG_IGN);
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		control = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (control < 0)
			continue;
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			play_peer(control);
			_exit(0);
		}
		close(control);
	}
}
