/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that makes calls on command: one command per line on standard input, one call of
 * librdmacm each, one response per line. Runs with either library, controlled by lucklib.py.
 *
 * An id is called by a name that the commands choose. Answers begin with "=" and their number.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#define NAMES_MAX  64
#define NAME_BYTES 32
#define WORDS_MAX  12

struct named {
	char name[NAME_BYTES];
	struct rdma_cm_id *id;
};

static struct named named[NAMES_MAX];
static struct rdma_event_channel *channel;
static char *word[WORDS_MAX]; /* of the command; missing ones are "" */

static struct named *slot_of(const char *name)
{
	int i;

	for (i = 0; i < NAMES_MAX; i++)
		if (strcmp(named[i].name, name) == 0)
			return &named[i];
	fprintf(stderr, "agent: no id is called '%s'\n", name);
	exit(2);
}

static struct rdma_cm_id *find_id(void)
{
	return slot_of(word[1])->id;
}

static void set_name(const char *name, struct rdma_cm_id *id)
{
	struct named *slot = slot_of("");

	snprintf(slot->name, sizeof(slot->name), "%s", name);
	slot->id = id;
	id->context = slot;
}

static const char *name_of(const struct rdma_cm_id *id)
{
	return id ? ((const struct named *)id->context)->name : "-";
}

static void set_addr(const char *host, const char *port, struct sockaddr_storage *ret)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	struct addrinfo *found;
	int err = getaddrinfo(host, port, &hints, &found);

	if (err) {
		fprintf(stderr, "agent: %s: %s\n", host, gai_strerror(err));
		exit(2);
	}
	memcpy(ret, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
}

__attribute__((format(printf, 1, 2))) static void print_line(const char *format, ...)
{
	static int n_answers;
	va_list args;

	printf("=%d ", ++n_answers);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

static void answer(int ret)
{
	print_line("%s", ret ? strerrorname_np(errno) : "ok");
}

/* --- the commands -------------------------------------------------------- */

static void do_channel(void)
{
	channel = rdma_create_event_channel();
	answer(channel ? 0 : -1);
}

static void make_id(enum rdma_port_space ps)
{
	struct rdma_cm_id *id;
	int ret = rdma_create_id(channel, &id, NULL, ps);

	if (!ret)
		set_name(word[1], id);
	answer(ret);
}

static void do_id(void)
{
	make_id(RDMA_PS_TCP);
}

static void do_datagram(void)
{
	make_id(RDMA_PS_UDP);
}

static void do_bind(void)
{
	struct sockaddr_storage addr;

	set_addr(word[2], word[3], &addr);
	answer(rdma_bind_addr(find_id(), (struct sockaddr *)&addr));
}

static void do_listen(void)
{
	answer(rdma_listen(find_id(), 0));
}

static void do_resolve(void)
{
	struct sockaddr_storage addr;

	set_addr(word[2], word[3], &addr);
	answer(rdma_resolve_addr(find_id(), NULL, (struct sockaddr *)&addr, atoi(word[4])));
}

static void do_route(void)
{
	answer(rdma_resolve_route(find_id(), 2000));
}

static void do_qp(void)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = find_id()->qp_type };

	answer(rdma_create_qp(find_id(), NULL, &attr));
}

static void do_connect(void)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7, .qp_num = 0x77 };

	answer(rdma_connect(find_id(), &param));
}

static void do_accept(void)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7, .qp_num = 0x78 };

	answer(rdma_accept(find_id(), &param));
}

static void do_reject(void)
{
	answer(rdma_reject(find_id(), NULL, 0));
}

static void do_disconnect(void)
{
	answer(rdma_disconnect(find_id()));
}

static void do_join(void)
{
	struct sockaddr_storage addr;

	set_addr(word[2], NULL, &addr);
	answer(rdma_join_multicast(find_id(), (struct sockaddr *)&addr, NULL));
}

static void do_leave(void)
{
	struct sockaddr_storage addr;

	set_addr(word[2], NULL, &addr);
	answer(rdma_leave_multicast(find_id(), (struct sockaddr *)&addr));
}

static void do_destroy(void)
{
	struct named *slot = slot_of(word[1]);
	struct rdma_cm_id *id = slot->id;
	int ret;

	if (id->qp)
		rdma_destroy_qp(id);
	ret = rdma_destroy_id(id);
	*slot = (struct named){ .name = "" };
	answer(ret);
}

/* A request's new id gets the name in the command. */
static void show_event(struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		set_name(word[2], event->id);
	print_line("%s %s %d", rdma_event_str(event->event) + strlen("RDMA_CM_EVENT_"),
		   name_of(event->id), event->status);
	rdma_ack_cm_event(event);
}

static void do_event(void)
{
	struct pollfd wait = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	if (poll(&wait, 1, atoi(word[1])) != 1)
		print_line("none");
	else if (rdma_get_cm_event(channel, &event))
		answer(-1);
	else
		show_event(event);
}

/* Reports whether there is an event, without taking it. */
static void do_pending(void)
{
	struct pollfd wait = { .fd = channel->fd, .events = POLLIN };

	print_line("%s", poll(&wait, 1, atoi(word[1])) == 1 ? "ok" : "none");
}

static void do_devices(void)
{
	int n = -1;
	struct ibv_context **list = rdma_get_devices(&n);

	if (!list) {
		answer(-1);
		return;
	}
	rdma_free_devices(list);
	print_line("%d", n);
}

static void do_exit(void)
{
	print_line("ok");
	exit(0);
}

static void do_kill(void)
{
	print_line("ok");
	fflush(stdout);
	kill(getpid(), SIGKILL);
}

static void do_shell(void)
{
	char command[256] = "";
	int i, n = 0;

	for (i = 1; i < WORDS_MAX && *word[i]; i++)
		n += snprintf(command + n, sizeof(command) - (size_t)n, "%s ", word[i]);
	print_line("%d", system(command));
}

static const struct {
	const char *name;
	void (*act)(void);
} commands[] = {
	{ "channel", do_channel }, { "id", do_id },	      { "datagram", do_datagram },
	{ "bind", do_bind },	   { "listen", do_listen },   { "resolve", do_resolve },
	{ "route", do_route },	   { "qp", do_qp },	      { "connect", do_connect },
	{ "accept", do_accept },   { "reject", do_reject },   { "disconnect", do_disconnect },
	{ "join", do_join },	   { "leave", do_leave },     { "destroy", do_destroy },
	{ "event", do_event },	   { "pending", do_pending }, { "devices", do_devices },
	{ "exit", do_exit },	   { "die", do_kill },	      { "shell", do_shell },
};

static void split(char *line)
{
	static char nothing[] = "";
	char *rest = line;
	int i;

	for (i = 0; i < WORDS_MAX; i++) {
		word[i] = rest ? strsep(&rest, " \n") : nothing;
	}
}

static void run_command(void)
{
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(word[0], commands[i].name) == 0) {
			commands[i].act();
			return;
		}
	}
	fprintf(stderr, "agent: unknown command '%s'\n", word[0]);
	exit(2);
}

int main(void)
{
	char line[256];

	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof(line), stdin)) {
		split(line);
		run_command();
	}
	return 0;
}
