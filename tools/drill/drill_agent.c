/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program purecm-agent: makes rdma_cm calls and reports events, controlled by a drill through
 * lines of text. It runs with any librdmacm, so that a drill can compare implementations. Started
 * by hand, or by tests/drill/run.py; drill_link.c connects to it.
 *
 * The first line is the secret, which the agent takes from PURECM_SECRET, or makes and prints.
 * A line is a call, such as `accept id=id qpn=7`; the response is `0`, or the name of an errno.
 * Events are lines `event NAME key=value...`. It serves one drill at a time; when the drill
 * disconnects, all ids are destroyed. Queue pair numbers are invented, so that each message is sent
 * by a call of its own and none by a library.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define IDS_MAX	     32
#define NAME_BYTES   16
#define LINE_BYTES   2048
#define DATA_BYTES   256
#define RESOLVE_MS   2000
#define PORT_DEFAULT "7471"
#define SECRET_BYTES 16
#define SECRET_S     5	/* in which the drill has to send it */
#define GONE_S	     90 /* a drill whose host has not answered for so long has ended */

struct agent {
	int control;
	struct rdma_event_channel *channel;
	struct sockaddr_storage drill; /* peer of control: the destination of resolve */
	struct {
		char name[NAME_BYTES];
		struct rdma_cm_id *id;
	} ids[IDS_MAX];
	size_t n_text;
	char text[LINE_BYTES];
};

/* --- words --------------------------------------------------------------- */

/* Return: the value of a key, or @fallback; valid until the next call. */
static const char *arg_of(const char *line, const char *key, const char *fallback)
{
	static char value[2 * DATA_BYTES + 8];
	const size_t n = strlen(key);
	const char *at = line;

	while ((at = strchr(at, ' ')) != NULL) {
		at++;
		if (strncmp(at, key, n) == 0 && at[n] == '=') {
			at += n + 1;
			snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, " "), at);
			return value;
		}
	}
	return fallback;
}

static unsigned long number_of(const char *line, const char *key, unsigned long fallback)
{
	const char *text = arg_of(line, key, NULL);

	return text ? strtoul(text, NULL, 0) : fallback;
}

/* Parses "hex:616263". Return: number of bytes. */
static uint8_t private_data(const char *line, uint8_t data[DATA_BYTES])
{
	const char *text = arg_of(line, "private_data", "hex:") + strlen("hex:");
	uint8_t n = 0;
	unsigned int byte;

	while (n < DATA_BYTES - 1 && sscanf(text + 2 * n, "%2x", &byte) == 1)
		data[n++] = (uint8_t)byte;
	return n;
}

static void send_line(struct agent *agent, const char *text)
{
	char line[LINE_BYTES];
	const int n = snprintf(line, sizeof(line), "%s\n", text);

	/* Shut down, so that a disconnected drill is noticed at the next read. */
	if (send(agent->control, line, (size_t)n, MSG_NOSIGNAL) != n)
		shutdown(agent->control, SHUT_RDWR);
}

/* --- ids ----------------------------------------------------------------- */

static struct rdma_cm_id *find_id(struct agent *agent, const char *name)
{
	size_t i;

	for (i = 0; i < IDS_MAX; i++) {
		if (agent->ids[i].id && strcmp(agent->ids[i].name, name) == 0)
			return agent->ids[i].id;
	}
	return NULL;
}

static const char *name_of(const struct agent *agent, const struct rdma_cm_id *id)
{
	size_t i;

	for (i = 0; i < IDS_MAX; i++) {
		if (agent->ids[i].id == id)
			return agent->ids[i].name;
	}
	return "?";
}

/* A name that were cut might be another id's. */
static int add_id(struct agent *agent, const char *name, struct rdma_cm_id *id)
{
	size_t i, bytes = strlen(name) + 1;

	if (bytes > NAME_BYTES)
		return -1;
	for (i = 0; i < IDS_MAX; i++) {
		if (agent->ids[i].id)
			continue;
		agent->ids[i].id = id;
		memcpy(agent->ids[i].name, name, bytes);
		return 0;
	}
	return -1;
}

/* As add_id(), or destroys the id. */
static int keep_id(struct agent *agent, const char *name, struct rdma_cm_id *id)
{
	int err = add_id(agent, name, id);

	if (err)
		rdma_destroy_id(id);
	return err;
}

/* Named id, id2, id3 ... */
static int add_request(struct agent *agent, struct rdma_cm_id *id)
{
	char name[NAME_BYTES] = "id";
	unsigned int n = 1;

	while (find_id(agent, name))
		snprintf(name, sizeof(name), "id%u", ++n);
	return add_id(agent, name, id);
}

static void forget_id(struct agent *agent, const struct rdma_cm_id *id)
{
	size_t i;

	for (i = 0; i < IDS_MAX; i++) {
		if (agent->ids[i].id == id)
			agent->ids[i].id = NULL;
	}
}

/* --- calls --------------------------------------------------------------- */

static enum rdma_port_space port_space(const char *line)
{
	return strcmp(arg_of(line, "space", "tcp"), "udp") == 0 ? RDMA_PS_UDP : RDMA_PS_TCP;
}

static void set_port(struct sockaddr_storage *addr, uint16_t port)
{
	if (addr->ss_family == AF_INET)
		((struct sockaddr_in *)addr)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)addr)->sin6_port = htons(port);
}

static int call_listen(struct agent *agent, const char *line)
{
	struct sockaddr_storage any = { .ss_family = agent->drill.ss_family };
	struct rdma_cm_id *id;

	if (rdma_create_id(agent->channel, &id, NULL, port_space(line)))
		return -1;
	set_port(&any, (uint16_t)number_of(line, "port", strtoul(PORT_DEFAULT, NULL, 10)));
	if (rdma_bind_addr(id, (struct sockaddr *)&any) || rdma_listen(id, 8)) {
		rdma_destroy_id(id);
		return -1;
	}
	return keep_id(agent, arg_of(line, "id", "listener"), id);
}

/* On a channel of its own, so that no other event interferes. */
static int take_step(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;
	int err;

	if (rdma_get_cm_event(channel, &event))
		return -1;
	err = event->status;
	rdma_ack_cm_event(event);
	if (err)
		errno = err < 0 ? -err : EIO;
	return err ? -1 : 0;
}

static int resolve_to(struct rdma_cm_id *id, struct sockaddr_storage *to)
{
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)to, RESOLVE_MS) ||
	    take_step(id->channel) || rdma_resolve_route(id, RESOLVE_MS))
		return -1;
	return take_step(id->channel);
}

static int call_resolve(struct agent *agent, const char *line)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_storage to = agent->drill;
	struct rdma_cm_id *id = NULL;
	int err = -1;

	if (!channel)
		return -1;
	set_port(&to, (uint16_t)number_of(line, "port", strtoul(PORT_DEFAULT, NULL, 10)));
	if (!rdma_create_id(channel, &id, NULL, port_space(line)) && !resolve_to(id, &to))
		err = rdma_migrate_id(id, agent->channel);
	if (err && id)
		rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	return err ? -1 : keep_id(agent, arg_of(line, "id", "id"), id);
}

static struct rdma_conn_param conn_param(const char *line, uint8_t data[DATA_BYTES])
{
	uint32_t qpn = 2;

	/* A new number each time: stock takes a known one as that of an older connection. */
	if (getrandom(&qpn, sizeof(qpn), 0) != sizeof(qpn))
		qpn = (uint32_t)getpid();
	return (struct rdma_conn_param){
		.private_data = data,
		.private_data_len = private_data(line, data),
		.responder_resources = (uint8_t)number_of(line, "responder_resources", 1),
		.initiator_depth = (uint8_t)number_of(line, "initiator_depth", 1),
		.retry_count = (uint8_t)number_of(line, "retry_count", 7),
		.rnr_retry_count = (uint8_t)number_of(line, "rnr_retry_count", 7),
		.flow_control = (uint8_t)number_of(line, "flow_control", 0),
		.srq = (uint8_t)number_of(line, "srq", 0),
		.qp_num = (uint32_t)number_of(line, "qpn", 2 + (qpn & 0x7fffff)),
	};
}

static int call_connect(struct rdma_cm_id *id, const char *line)
{
	uint8_t data[DATA_BYTES];
	struct rdma_conn_param param = conn_param(line, data);

	return rdma_connect(id, &param);
}

static int call_accept(struct rdma_cm_id *id, const char *line)
{
	uint8_t data[DATA_BYTES];
	struct rdma_conn_param param = conn_param(line, data);

	return rdma_accept(id, &param);
}

static int call_reject(struct rdma_cm_id *id, const char *line)
{
	uint8_t data[DATA_BYTES];
	uint8_t n = private_data(line, data);

	return rdma_reject(id, data, n);
}

static int call_establish(struct rdma_cm_id *id, const char *line)
{
	(void)line;
	return rdma_establish(id);
}

static int call_notify(struct rdma_cm_id *id, const char *line)
{
	(void)line;
	return rdma_notify(id, IBV_EVENT_COMM_EST);
}

static int call_disconnect(struct rdma_cm_id *id, const char *line)
{
	(void)line;
	return rdma_disconnect(id);
}

static int call_destroy(struct agent *agent, const char *line)
{
	struct rdma_cm_id *id = find_id(agent, arg_of(line, "id", "id"));

	forget_id(agent, id);
	return rdma_destroy_id(id);
}

/* clang-format off */
static const struct {
	const char *name;
	int (*call)(struct rdma_cm_id *id, const char *line);
	int (*make)(struct agent *agent, const char *line); /* for calls without id */
} calls[] = {
	{ "listen", NULL, call_listen },
	{ "resolve", NULL, call_resolve },
	{ "connect", call_connect, NULL },
	{ "accept", call_accept, NULL },
	{ "reject", call_reject, NULL },
	{ "establish", call_establish, NULL },
	{ "notify", call_notify, NULL },
	{ "disconnect", call_disconnect, NULL },
	{ "destroy", NULL, call_destroy },
};
/* clang-format on */

static void run_call(struct agent *agent, const char *line)
{
	struct rdma_cm_id *id = find_id(agent, arg_of(line, "id", "id"));
	const size_t n = strcspn(line, " ");
	size_t i;
	int err;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (strlen(calls[i].name) != n || strncmp(line, calls[i].name, n) != 0)
			continue;
		if (!id && (calls[i].call || calls[i].make == call_destroy)) {
			send_line(agent, "no-such-id");
			return;
		}
		errno = 0;
		err = calls[i].make ? calls[i].make(agent, line) : calls[i].call(id, line);
		send_line(agent, err ? strerrorname_np(errno) : "0");
		return;
	}
	send_line(agent, "no-such-call");
}

/* --- events -------------------------------------------------------------- */

static void put_data(FILE *out, const void *data, size_t bytes)
{
	size_t i;

	if (!data || !bytes)
		return;
	fputs(" private_data=hex:", out);
	for (i = 0; i < bytes; i++)
		fprintf(out, "%02x", ((const uint8_t *)data)[i]);
}

static void put_conn(FILE *out, const struct rdma_conn_param *conn)
{
	fprintf(out,
		" responder_resources=%u initiator_depth=%u flow_control=%u retry_count=%u "
		"rnr_retry_count=%u srq=%u qpn=%u",
		conn->responder_resources, conn->initiator_depth, conn->flow_control,
		conn->retry_count, conn->rnr_retry_count, conn->srq, conn->qp_num);
	put_data(out, conn->private_data, conn->private_data_len);
}

static void put_ud(FILE *out, const struct rdma_ud_param *ud)
{
	fprintf(out, " qpn=%u qkey=%u", ud->qp_num, ud->qkey);
	put_data(out, ud->private_data, ud->private_data_len);
}

static void report_event(struct agent *agent, const struct rdma_cm_event *event)
{
	const char *name = rdma_event_str(event->event) + strlen("RDMA_CM_EVENT_");
	char line[LINE_BYTES] = "";
	FILE *out = fmemopen(line, sizeof(line) - 1, "w");

	if (!out)
		return;
	fprintf(out, "event %s id=%s status=%d", name, name_of(agent, event->id), event->status);
	if (event->id->ps == RDMA_PS_UDP)
		put_ud(out, &event->param.ud);
	else
		put_conn(out, &event->param.conn);
	fclose(out);
	send_line(agent, line);
}

static void take_event(struct agent *agent)
{
	struct rdma_cm_id *surplus = NULL;
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(agent->channel, &event))
		return;
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST && add_request(agent, event->id))
		surplus = event->id;
	report_event(agent, event);
	rdma_ack_cm_event(event);
	if (surplus) /* after the acknowledgement, for which rdma_destroy_id() waits */
		rdma_destroy_id(surplus);
}

/* --- a drill ------------------------------------------------------------- */

/* Return: false when the drill has disconnected. */
static bool take_lines(struct agent *agent)
{
	ssize_t n = recv(agent->control, agent->text + agent->n_text,
			 sizeof(agent->text) - 1 - agent->n_text, 0);
	char *end;

	if (n <= 0)
		return false;
	agent->n_text += (size_t)n;
	agent->text[agent->n_text] = '\0';
	while ((end = strchr(agent->text, '\n')) != NULL) {
		*end++ = '\0';
		run_call(agent, agent->text);
		agent->n_text -= (size_t)(end - agent->text);
		memmove(agent->text, end, agent->n_text + 1);
	}
	return true;
}

/* Return: whether the first line is the secret. */
static bool knows_secret(int control, const char *secret)
{
	const struct timeval limit = { .tv_sec = SECRET_S }, none = { 0 };
	char said[LINE_BYTES];
	const size_t n = strlen(secret);
	unsigned char differs = 0;
	size_t i;

	setsockopt(control, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (n >= sizeof(said) || recv(control, said, n + 1, MSG_WAITALL) != (ssize_t)n + 1)
		return false;
	for (i = 0; i < n; i++)
		differs |= (unsigned char)(said[i] ^ secret[i]);
	setsockopt(control, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none));
	return !differs && said[n] == '\n';
}

/* A host without power does not close its connections, and the agent serves one drill at a time. */
static void end_with_its_host(int control)
{
	const int yes = 1, idle_s = GONE_S / 3, between_s = GONE_S / 9, gone_ms = GONE_S * 1000;

	setsockopt(control, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
	setsockopt(control, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(control, IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof(between_s));
	setsockopt(control, IPPROTO_TCP, TCP_USER_TIMEOUT, &gone_ms, sizeof(gone_ms));
}

static void serve_drill(struct agent *agent)
{
	struct pollfd look[2] = { { .fd = agent->control, .events = POLLIN },
				  { .fd = agent->channel->fd, .events = POLLIN } };
	bool is_there = true;
	size_t i;

	send_line(agent,
		  dlsym(RTLD_DEFAULT, "purecm_get_counters") ? "hello purecm" : "hello stock");
	while (is_there && poll(look, 2, -1) >= 0) {
		if (look[1].revents)
			take_event(agent);
		if (look[0].revents)
			is_there = take_lines(agent);
	}
	for (i = 0; i < IDS_MAX; i++) {
		if (agent->ids[i].id)
			rdma_destroy_id(agent->ids[i].id);
	}
}

/* Converts an IPv4-mapped address, received through ::. */
static void unmap_ip4(struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 from = *(const struct sockaddr_in6 *)addr;
	struct sockaddr_in *to = (struct sockaddr_in *)addr;

	if (addr->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&from.sin6_addr))
		return;
	memset(addr, 0, sizeof(*addr));
	to->sin_family = AF_INET;
	memcpy(&to->sin_addr, &from.sin6_addr.s6_addr[12], sizeof(to->sin_addr));
}

static int accept_drill(int listener, const char *secret)
{
	struct agent agent = { .control = -1 };
	socklen_t bytes = sizeof(agent.drill);
	const int yes = 1;

	agent.control = accept(listener, (struct sockaddr *)&agent.drill, &bytes);
	if (agent.control < 0)
		return -1;
	end_with_its_host(agent.control);
	if (!knows_secret(agent.control, secret)) {
		close(agent.control);
		return 0;
	}
	unmap_ip4(&agent.drill);
	/* Events follow responses closely; neither should wait for the other's acknowledgement. */
	setsockopt(agent.control, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	agent.channel = rdma_create_event_channel();
	if (!agent.channel) {
		fprintf(stderr, "purecm-agent: no event channel: %s\n", strerror(errno));
		close(agent.control);
		return -1;
	}
	serve_drill(&agent);
	close(agent.control);
	rdma_destroy_event_channel(agent.channel);
	return 0;
}

static int listen_on(const struct addrinfo *addr)
{
	const int yes = 1, no = 0;
	int fd = socket(addr->ai_family, addr->ai_socktype | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (addr->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if (!bind(fd, addr->ai_addr, addr->ai_addrlen) && !listen(fd, 1))
		return fd;
	close(fd);
	return -1;
}

/* NULL: all addresses. :: also receives IPv4, so it is tried first. */
static int listen_at(const char *host, const char *port)
{
	static const int families[] = { AF_INET6, AF_INET };
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	struct addrinfo *list, *each;
	int fd = -1, err = getaddrinfo(host, port, &hints, &list);
	size_t i;

	if (err) {
		fprintf(stderr, "purecm-agent: %s\n", gai_strerror(err));
		return -1;
	}
	for (i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		for (each = list; each && fd < 0; each = each->ai_next) {
			if (each->ai_family == families[i])
				fd = listen_on(each);
		}
	}
	if (fd < 0)
		fprintf(stderr, "purecm-agent: port %s: %s\n", port, strerror(errno));
	freeaddrinfo(list);
	return fd;
}

/* From the environment, or made and printed. Return: NULL without random numbers. */
static const char *find_secret(void)
{
	static char made[2 * SECRET_BYTES + 1];
	const char *given = getenv("PURECM_SECRET");
	uint8_t random[SECRET_BYTES];
	size_t i;

	if (given && *given)
		return given;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return NULL;
	for (i = 0; i < SECRET_BYTES; i++)
		snprintf(made + 2 * i, 3, "%02x", random[i]);
	printf("PURECM_SECRET=%s\n", made);
	return made;
}

int main(int argc, char **argv)
{
	const char *secret, *host = argc == 3 ? argv[2] : "127.0.0.1";
	int listener;

	if (argc < 2 || argc > 3 || argv[1][0] == '-') {
		fputs("usage: purecm-agent PORT [ADDRESS]\n\nMakes the calls that `purecm drill' "
		      "on another host asks for, if it knows the secret:\nPURECM_SECRET of the "
		      "environment, or one that is made and printed. The secret\nis not encrypted: "
		      "give the ADDRESS of a network that you trust, or ::.\nWithout, only this host "
		      "reaches it.\n",
		      argc == 2 && strcmp(argv[1], "--help") == 0 ? stdout : stderr);
		return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
	}
	signal(SIGPIPE, SIG_IGN);
	listener = listen_at(strcmp(host, "::") ? host : NULL, argv[1]); /* IPv6 may be off */
	secret = listener < 0 ? NULL : find_secret();
	if (!secret)
		return 1;
	puts("ready");
	fflush(stdout);
	while (!accept_drill(listener, secret))
		;
	return 1;
}
