/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * purecm export: serves metrics to Prometheus over HTTP until it is stopped: the figures of `purecm
 * stat` at the time of the request, and metrics of connections since its start, from cmportd's
 * recording, which it follows.
 *
 * A child process responds to each request, so that a slow reader holds up only that child, for a
 * few seconds.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/portd/client/client.h"
#include "tools/purecm/command.h"
#include "tools/purecm/exchanges.h"
#include "tools/purecm/metric.h"
#include "tools/purecm/recorded.h"
#include "tools/purecm/snapshot.h"

#define LISTEN_DEFAULT "localhost:9749"
#define SOCKETS_MAX    4
#define CHILDREN_MAX   8
#define LOOK_MS	       250 /* polling interval of the recording */
#define ANSWER_S       10
#define STAT_WAIT_MS   1000
#define REQUEST_BYTES  4096

struct exporter {
	const char *listen;

	struct pollfd socket[SOCKETS_MAX];
	nfds_t n_sockets;
	unsigned int n_children;
	int fd; /* of the recording; -1: none */
	bool has_begun;
	struct trace_reader reader;
	uint64_t n_recorded;
	uint64_t n_missed; /* by previous readers */
	struct exchanges *exchanges;
};

/* clang-format off */
static const struct argp_option option_table[] = {
	{ "listen", 'l', "[ADDRESS:]PORT", 0,
	  "where to serve /metrics (" LISTEN_DEFAULT "); a port alone: on all addresses", 0 },
	{ 0 },
};
/* clang-format on */

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct exporter *exporter = state->input;

	if (key != 'l')
		return ARGP_ERR_UNKNOWN;
	exporter->listen = value;
	return 0;
}

static const struct argp argp = {
	.options = option_table,
	.parser = parse_option,
	.doc = "Serves the figures of `purecm stat`, and what becomes of connections from now on, "
	       "to Prometheus: how long connecting takes, and refusals by reason.",
};

/* --- the recording -------------------------------------------------------- */

static void forget_recording(struct exporter *exporter)
{
	exporter->n_missed += exporter->reader.n_missed;
	trace_reader_fini(&exporter->reader);
	if (exporter->fd >= 0)
		close(exporter->fd);
	exporter->fd = -1;
}

/* Return: whether the file was removed or replaced. */
static bool is_replaced(const struct exporter *exporter, const char *path)
{
	struct stat known, there;

	return stat(path, &there) || fstat(exporter->fd, &known) || known.st_ino != there.st_ino ||
	       known.st_dev != there.st_dev;
}

static void count_recorded(struct exporter *exporter)
{
	struct observation observation;
	struct trace_entry seen;

	while (trace_reader_take(&exporter->reader, &seen)) {
		recorded_observe(&seen, &observation);
		exchanges_take(exporter->exchanges, &observation);
		exporter->n_recorded++;
	}
}

/* Messages recorded before our start are not counted: our predecessor has counted them. */
static void open_recording(struct exporter *exporter, char path[PATH_MAX])
{
	exporter->fd = recorded_file(path);
	if (exporter->fd < 0)
		return;
	if (trace_reader_copy(&exporter->reader, exporter->fd))
		forget_recording(exporter);
	else if (!exporter->has_begun)
		exporter->reader.number = trace_reader_written(&exporter->reader);
}

static void follow_recording(struct exporter *exporter)
{
	static char path[PATH_MAX];

	if (exporter->fd >= 0 &&
	    (is_replaced(exporter, path) || trace_reader_update(&exporter->reader, exporter->fd)))
		forget_recording(exporter);
	if (exporter->fd < 0)
		open_recording(exporter, path);
	exporter->has_begun = true;
	if (exporter->fd >= 0)
		count_recorded(exporter);
	exchanges_give_up(exporter->exchanges, clock_ns_of(CLOCK_REALTIME));
}

/* --- a response, in a child process --------------------------------------- */

static void print_stat(void)
{
	static struct snapshot snapshot;
	struct portd_client *client;
	struct portd_why why;

	if (portd_client_visit(&client, &why) ||
	    snapshot_gather(client, 0, STAT_WAIT_MS, &snapshot))
		stat_print_prometheus(NULL);
	else
		stat_print_prometheus(&snapshot);
}

static void print_counter(const char *name, const char *help, uint64_t value)
{
	metric_begin(name, "counter", help);
	printf("%s %llu\n", name, (unsigned long long)value);
}

static void print_metrics(const struct exporter *exporter, bool is_openmetrics)
{
	metric_use_openmetrics(is_openmetrics);
	print_stat();
	exchanges_print(exporter->exchanges);
	metric_begin("purecm_recording", "gauge", "1 while there is a recording of cmportd");
	printf("purecm_recording %d\n", exporter->fd >= 0);
	print_counter("purecm_recorded_messages_total",
		      "messages that were counted for the metrics of connections",
		      exporter->n_recorded);
	print_counter("purecm_missed_messages_total",
		      "messages that were recorded faster than they were counted",
		      exporter->n_missed + exporter->reader.n_missed);
	metric_end();
}

/* Return: whether a complete request head was received. */
static bool read_request(char request[REQUEST_BYTES])
{
	size_t n = 0;
	ssize_t got;

	request[0] = '\0';
	while (!strstr(request, "\r\n\r\n") && n < REQUEST_BYTES - 1) {
		got = read(STDIN_FILENO, request + n, REQUEST_BYTES - 1 - n);
		if (got <= 0)
			return false;
		n += (size_t)got;
		request[n] = '\0';
	}
	return strstr(request, "\r\n\r\n");
}

static void print_head(const char *status, const char *type)
{
	printf("HTTP/1.1 %s\r\nContent-Type: %s\r\nConnection: close\r\n\r\n", status, type);
}

static bool asks_for(const char *request, const char *method, const char *path)
{
	const size_t n = strlen(method), m = strlen(path);

	return strncmp(request, method, n) == 0 && strncmp(request + n, path, m) == 0 &&
	       (request[n + m] == ' ' || request[n + m] == '?');
}

static void answer_scrape(const struct exporter *exporter)
{
	char request[REQUEST_BYTES];
	bool is_openmetrics;

	if (!read_request(request)) {
		print_head("400 Bad Request", "text/plain");
		return;
	}
	is_openmetrics = strstr(request, "application/openmetrics-text");
	if (!asks_for(request, "GET ", "/metrics")) {
		print_head("404 Not Found", "text/plain");
		puts("GET /metrics is all that is served.");
		return;
	}
	print_head("200 OK", is_openmetrics
				     ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
				     : "text/plain; version=0.0.4; charset=utf-8");
	print_metrics(exporter, is_openmetrics);
}

static void answer_in_child(const struct exporter *exporter, int fd)
{
	alarm(ANSWER_S);
	dup2(fd, STDIN_FILENO);
	dup2(fd, STDOUT_FILENO);
	answer_scrape(exporter);
	fflush(stdout);
	_exit(0);
}

/* --- serving -------------------------------------------------------------- */

static void serve_child(struct exporter *exporter, int listener)
{
	int fd = accept(listener, NULL, NULL);
	pid_t pid;

	if (fd < 0)
		return;
	fflush(NULL);
	pid = exporter->n_children < CHILDREN_MAX ? fork() : -1;
	if (pid == 0)
		answer_in_child(exporter, fd);
	if (pid > 0)
		exporter->n_children++;
	close(fd);
}

static int listen_at(struct exporter *exporter, const struct addrinfo *addr)
{
	int fd = socket(addr->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int yes = 1;
	int err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (addr->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
	if (bind(fd, addr->ai_addr, addr->ai_addrlen) || listen(fd, SOMAXCONN)) {
		err = -errno;
		close(fd);
		return err;
	}
	exporter->socket[exporter->n_sockets++] = (struct pollfd){ .fd = fd, .events = POLLIN };
	return 0;
}

/* "9749", "localhost:9749", "[::1]:9749". A missing address family is not an error. */
static int listen_on(struct exporter *exporter)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	const char *colon = strrchr(exporter->listen, ':');
	const char *port = colon ? colon + 1 : exporter->listen;
	const char *host = exporter->listen;
	struct addrinfo *list, *each;
	int n = colon ? (int)(colon - host) : 0, err;
	char name[NI_MAXHOST];

	if (n > 1 && host[0] == '[' && host[n - 1] == ']') {
		host++;
		n -= 2;
	}
	snprintf(name, sizeof(name), "%.*s", n, host);
	err = getaddrinfo(*name ? name : NULL, port, &hints, &list);
	if (err) {
		complain("--listen %s: %s", exporter->listen, gai_strerror(err));
		return -EINVAL;
	}
	for (each = list; each && exporter->n_sockets < SOCKETS_MAX; each = each->ai_next)
		err = listen_at(exporter, each);
	freeaddrinfo(list);
	if (exporter->n_sockets)
		return 0;
	complain("--listen %s: %s", exporter->listen, strerror(-err));
	return err;
}

static void run_exporter(struct exporter *exporter)
{
	nfds_t i;

	while (poll(exporter->socket, exporter->n_sockets, LOOK_MS) >= 0 || errno == EINTR) {
		while (exporter->n_children && waitpid(-1, NULL, WNOHANG) > 0)
			exporter->n_children--;
		follow_recording(exporter);
		for (i = 0; i < exporter->n_sockets; i++) {
			if (exporter->socket[i].revents)
				serve_child(exporter, exporter->socket[i].fd);
			exporter->socket[i].revents = 0;
		}
	}
}

int export_main(int argc, char **argv)
{
	struct exporter exporter = { .listen = LISTEN_DEFAULT, .fd = -1 };

	command_parse(&argp, argc, argv, 0, &exporter);
	exporter.exchanges = exchanges_new();
	if (!exporter.exchanges || listen_on(&exporter))
		return STATUS_FAILED;
	follow_recording(&exporter);
	printf("http://%s/metrics\n", exporter.listen);
	fflush(stdout);
	run_exporter(&exporter);
	complain("no more requests can be waited for: %s", strerror(errno));
	return STATUS_FAILED;
}
