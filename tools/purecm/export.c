/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program purecm-export, which is purecm export: serves metrics to Prometheus over HTTP until
 * it is stopped: the figures of `purecm stat` at the time of the request, and metrics of
 * connections since its start, from cmportd's recording, which it follows.
 *
 * libmicrohttpd speaks HTTP, in this thread: a slow reader holds up nobody.
 */
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/portd/client/portd_client.h"
#include "tools/purecm/command.h"
#include "tools/purecm/exchanges.h"
#include "tools/purecm/metric.h"
#include "tools/purecm/recorded.h"
#include "tools/purecm/snapshot.h"

#define LISTEN_DEFAULT	"localhost:9749"
#define SOCKETS_MAX	4
#define CONNECTIONS_MAX 512u
#define SILENT_S	5u  /* after which a connection is closed */
#define LOOK_MS		250 /* polling interval of the recording */
#define STAT_WAIT_MS	1000
#define FRESH_NS	UINT64_C(1000000000) /* how long an answer is given */
#define REQUEST_BYTES	8192		     /* of a connection: its request and our headers */

struct answer {
	struct MHD_Response *response;
	uint64_t at_ns;
};

struct exporter {
	const char *listen;

	struct pollfd socket[SOCKETS_MAX]; /* epoll descriptors of the daemons */
	struct MHD_Daemon *daemon[SOCKETS_MAX];
	nfds_t n_sockets;
	struct answer answer[2]; /* [1]: as OpenMetrics */
	int fd;			 /* of the recording; -1: none */
	bool has_begun;
	struct trace_reader reader;
	uint64_t n_recorded;
	uint64_t n_missed; /* by previous readers */
	struct exchanges *exchanges;
};

/* clang-format off */
static const struct command_option options[] = {
	{ "listen", 'l', "[ADDRESS:]PORT",
	  "where to serve /metrics (" LISTEN_DEFAULT "); a port alone: on all addresses",
	  COMMAND_TEXT_AT(exporter, listen) },
	{ 0 },
};
/* clang-format on */

/* Read by argp in the C library, so it must not be hidden. */
__attribute__((visibility("default"))) const char *argp_program_version = "purecm " PURECM_VERSION;

static const struct command_line usage = {
	.doc = "Serves the figures of `purecm stat`, and what becomes of connections from now on, "
	       "to Prometheus: how long connecting takes, and refusals by reason.",
	.options = options,
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

/* --- a response ----------------------------------------------------------- */

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

/* All functions print on standard output. Return: the text, to be freed; NULL on ENOMEM. */
static char *metrics_text(const struct exporter *exporter, bool is_openmetrics, size_t *ret_bytes)
{
	FILE *const terminal = stdout;
	char *text = NULL;
	FILE *memory = open_memstream(&text, ret_bytes);

	if (!memory)
		return NULL;
	stdout = memory;
	print_metrics(exporter, is_openmetrics);
	stdout = terminal;
	fclose(memory);
	return text;
}

static struct MHD_Response *make_response(char *text, size_t bytes, const char *type,
					  enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(bytes, text, mode);

	if (response)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	return response;
}

/* Gathering may take STAT_WAIT_MS, so many requests get one answer. */
static struct MHD_Response *metrics_response(struct exporter *exporter, bool is_openmetrics)
{
	struct answer *answer = &exporter->answer[is_openmetrics];
	const uint64_t now_ns = clock_ns();
	size_t bytes;
	char *text;

	if (answer->response && now_ns - answer->at_ns < FRESH_NS)
		return answer->response;
	text = metrics_text(exporter, is_openmetrics, &bytes);
	if (!text)
		return NULL;
	if (answer->response)
		MHD_destroy_response(answer->response);
	answer->response = make_response(
		text, bytes,
		is_openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
			       : "text/plain; version=0.0.4; charset=utf-8",
		MHD_RESPMEM_MUST_FREE);
	answer->at_ns = clock_ns();
	return answer->response;
}

static enum MHD_Result refuse(struct MHD_Connection *connection)
{
	static char text[] = "GET /metrics is all that is served.\n";
	struct MHD_Response *response =
		make_response(text, strlen(text), "text/plain", MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result = MHD_NO;

	if (response)
		result = MHD_queue_response(connection, MHD_HTTP_NOT_FOUND, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result answer_request(void *arg, struct MHD_Connection *connection, const char *url,
				      const char *method, const char *version, const char *data,
				      size_t *bytes, void **state)
{
	const char *accept =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	struct MHD_Response *response;

	(void)version;
	(void)data;
	(void)bytes;
	(void)state;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 || strcmp(url, "/metrics") != 0)
		return refuse(connection);
	response = metrics_response(arg, accept && strstr(accept, "application/openmetrics-text"));
	return response ? MHD_queue_response(connection, MHD_HTTP_OK, response) : MHD_NO;
}

/* --- serving -------------------------------------------------------------- */

static int serve(struct exporter *exporter, int fd)
{
	const union MHD_DaemonInfo *info;
	struct MHD_Daemon *daemon = MHD_start_daemon(
		MHD_USE_EPOLL, 0, NULL, NULL, answer_request, exporter, MHD_OPTION_LISTEN_SOCKET,
		fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
		SILENT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES,
		MHD_OPTION_END);

	if (!daemon)
		return -EIO;
	info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info) {
		MHD_stop_daemon(daemon);
		return -EIO;
	}
	exporter->daemon[exporter->n_sockets] = daemon;
	exporter->socket[exporter->n_sockets++] =
		(struct pollfd){ .fd = info->epoll_fd, .events = POLLIN };
	return 0;
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
	if (bind(fd, addr->ai_addr, addr->ai_addrlen) || listen(fd, SOMAXCONN))
		err = -errno;
	else
		err = serve(exporter, fd);
	if (err)
		close(fd);
	return err;
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
		follow_recording(exporter);
		for (i = 0; i < exporter->n_sockets; i++)
			MHD_run(exporter->daemon[i]); /* also when time limits end */
	}
}

int main(int argc, char **argv)
{
	struct exporter exporter = { .listen = LISTEN_DEFAULT, .fd = -1 };

	argv[0] = (char[]){ "export" };
	command_parse(&usage, argc, argv, &exporter);
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
