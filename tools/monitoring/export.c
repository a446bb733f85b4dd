/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program purecm-export, which is purecm export: serves metrics to Prometheus over HTTP until
 * it is stopped: the figures of `purecm stat` at the time of the request, and metrics of
 * connections since its start, from cmportd's recording, which it follows.
 *
 * libmicrohttpd serves HTTP in this thread; a slow reader delays no other.
 */
#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/portd/client/portd_client.h"
#include "tools/purecm/flow.h"
#include "tools/purecm/observation.h"
#include "tools/purecm/snapshot.h"

#define LISTEN_DEFAULT	"localhost:9749"
#define SOCKETS_MAX	4
#define CONNECTIONS_MAX 512u
#define SILENT_S	5u  /* after which a connection is closed */
#define LOOK_MS		250 /* polling interval of the recording */
#define STAT_WAIT_MS	1000
#define FRESH_NS	UINT64_C(1000000000)   /* how long an answer is given */
#define REQUEST_BYTES	8192		       /* of a connection: its request and our headers */
#define GIVE_UP_NS	UINT64_C(100000000000) /* longer than any peer's CM retransmits a request */
#define REASONS		64		       /* all reasons defined by IBTA are below */
#define N_BUCKETS	(sizeof(bucket_s) / sizeof(bucket_s[0]))
#define BUCKETS_MAX	16
#define N_TIMES		3

/* --- metrics of connections, each counted for this host's end ---------------- */

static const double bucket_s[] = { 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
				   0.25,   0.5,	  1,	  2.5,	 5,    10,    30,   60 };
_Static_assert(N_BUCKETS == BUCKETS_MAX, "each bucket has its count");

/* Time from the first message of one kind to the first of another. */
static const struct time_metric {
	const char *name;
	const char *help;
	enum cm_attr from, to;
} times[N_TIMES] = {
	{ "purecm_answer_seconds", "from a REQ to its REP", CM_ATTR_REQ, CM_ATTR_REP },
	{ "purecm_connect_seconds", "from a REQ to the RTU", CM_ATTR_REQ, CM_ATTR_RTU },
	{ "purecm_disconnect_seconds", "from a DREQ to its DREP", CM_ATTR_DREQ, CM_ATTR_DREP },
};

struct histogram {
	uint64_t count[BUCKETS_MAX + 1]; /* the last: above all bounds */
	double sum_s;
};

struct exchanges {
	struct flows *flows;
	uint32_t n_decided; /* number of flows, from the first, that are completely counted */
	struct histogram time[N_TIMES][FLOW_ENDS];
	uint64_t refused[REASONS + 1][FLOW_ENDS][2]; /* by our end; [1]: by us; last: others */
	uint64_t unanswered[FLOW_ENDS];
};

static const char *const side_names[FLOW_ENDS] = {
	[FLOW_ACTIVE] = "active", [FLOW_PASSIVE] = "passive"
};

static struct exchanges *exchanges_new(void)
{
	struct exchanges *exchanges = calloc(1, sizeof(*exchanges));

	if (!exchanges)
		return NULL;
	exchanges->flows = flows_new(FLOWS_ROLLING, true);
	if (exchanges->flows)
		return exchanges;
	free(exchanges);
	return NULL;
}

/* --- counting ------------------------------------------------------------- */

static void count_time(struct histogram *histogram, uint64_t ns)
{
	const double s = (double)ns / CLOCK_NS_PER_S;
	size_t i;

	for (i = 0; i < N_BUCKETS && s > bucket_s[i]; i++)
		;
	histogram->count[i]++;
	histogram->sum_s += s;
}

static void count_times(struct exchanges *exchanges, const struct flow *flow, enum cm_attr attr,
			enum flow_end side)
{
	const struct flow_seen *from, *to = flow_seen(flow, attr);
	size_t i;

	for (i = 0; i < N_TIMES; i++) {
		from = flow_seen(flow, times[i].from);
		if (times[i].to == attr && from->count && to->first_ns >= from->first_ns)
			count_time(&exchanges->time[i][side], to->first_ns - from->first_ns);
	}
}

static void exchanges_take(struct exchanges *exchanges, const struct observation *observation)
{
	const bool by_us = observation->way == WAY_OUT;
	struct flow_step step;
	struct cm_msg msg;
	enum flow_end side;

	if (!observation_decode(observation, &msg) ||
	    flows_take(exchanges->flows, observation, &msg, &step))
		return;
	if (step.is_copy || step.is_stray || step.nth > 1)
		return;
	side = by_us ? step.from : !step.from;
	count_times(exchanges, step.flow, msg.hdr.attr_id, side);
	if (msg.hdr.attr_id == CM_ATTR_REJ)
		exchanges->refused[msg.rej.reason < REASONS ? msg.rej.reason : REASONS][side]
				  [by_us]++;
}

/* Requests are handled in order: a pending request delays those after it. */
static void exchanges_give_up(struct exchanges *exchanges, uint64_t now_ns)
{
	const struct flow *flow;
	bool waits;

	for (; exchanges->n_decided < flows_count(exchanges->flows); exchanges->n_decided++) {
		flow = flows_get(exchanges->flows, exchanges->n_decided);
		waits = flow && flow->outcome == FLOW_ASKED;
		if (waits && flow->last_ns + GIVE_UP_NS > now_ns)
			return;
		if (waits)
			exchanges->unanswered[flow->last_way[FLOW_ACTIVE] == WAY_OUT
						      ? FLOW_ACTIVE
						      : FLOW_PASSIVE]++;
	}
}

/* --- printing ------------------------------------------------------------- */

static void print_histogram(const struct time_metric *metric, enum flow_end side,
			    const struct histogram *histogram)
{
	uint64_t count = 0;
	size_t i;

	for (i = 0; i <= N_BUCKETS; i++) {
		count += histogram->count[i];
		printf("%s_bucket{side=\"%s\",le=\"", metric->name, side_names[side]);
		if (i < N_BUCKETS)
			printf("%g\"} %" PRIu64 "\n", bucket_s[i], count);
		else
			printf("+Inf\"} %" PRIu64 "\n", count);
	}
	printf("%s_sum{side=\"%s\"} %.9g\n%s_count{side=\"%s\"} %" PRIu64 "\n", metric->name,
	       side_names[side], histogram->sum_s, metric->name, side_names[side], count);
}

/* Zero counts are omitted: there are 64 reasons. */
static void print_refused(const struct exchanges *exchanges, unsigned int reason,
			  enum flow_end side, bool by_us)
{
	const uint64_t count = exchanges->refused[reason][side][by_us];

	if (!count)
		return;
	printf("purecm_refusals_total{side=\"%s\",by=\"%s\",reason=\"%u\",", side_names[side],
	       by_us ? "us" : "peer", reason);
	metric_label("text", reason < REASONS ? cm_rej_reason_str((uint16_t)reason) : "another");
	printf("} %" PRIu64 "\n", count);
}

static void exchanges_print(const struct exchanges *exchanges)
{
	unsigned int reason;
	enum flow_end side;
	size_t i;

	for (i = 0; i < N_TIMES; i++) {
		metric_begin(times[i].name, "histogram", times[i].help);
		for (side = 0; side < FLOW_ENDS; side++)
			print_histogram(&times[i], side, &exchanges->time[i][side]);
	}
	metric_begin("purecm_refusals_total", "counter",
		     "connections that were refused (REJ), by reason and by whom");
	for (reason = 0; reason <= REASONS; reason++) {
		for (side = 0; side < FLOW_ENDS; side++) {
			print_refused(exchanges, reason, side, false);
			print_refused(exchanges, reason, side, true);
		}
	}
	metric_begin("purecm_unanswered_total", "counter",
		     "requests without any answer in 100 s after the last");
	for (side = 0; side < FLOW_ENDS; side++)
		printf("purecm_unanswered_total{side=\"%s\"} %" PRIu64 "\n", side_names[side],
		       exchanges->unanswered[side]);
}

/* --- the exporter ------------------------------------------------------------- */

struct exporter {
	const char *listen;

	struct pollfd socket[SOCKETS_MAX]; /* epoll descriptors of the daemons */
	struct MHD_Daemon *daemon[SOCKETS_MAX];
	nfds_t n_sockets;
	struct MHD_Response *response; /* the latest, and its time */
	uint64_t response_ns;
	struct recording recording;
	uint64_t n_recorded;
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

static void count_recorded(struct exporter *exporter)
{
	struct observation observation;
	struct trace_entry seen;

	while (trace_reader_take(&exporter->recording.reader, &seen)) {
		recorded_observe(&seen, &observation);
		exchanges_take(exporter->exchanges, &observation);
		exporter->n_recorded++;
	}
}

/* Messages recorded before our start are not counted: our predecessor has counted them. */
static void begin_recording(struct exporter *exporter)
{
	if (!recording_open(&exporter->recording))
		trace_reader_skip(&exporter->recording.reader);
}

static void follow_recording(struct exporter *exporter)
{
	recording_follow(&exporter->recording);
	count_recorded(exporter);
	exchanges_give_up(exporter->exchanges, clock_ns_of(CLOCK_REALTIME));
}

/* --- a response ----------------------------------------------------------- */

static void print_stat(void)
{
	static struct snapshot snapshot;
	struct portd_client *client = NULL;
	struct portd_why why;
	bool is_known = !portd_client_visit(&client, &why) &&
			!snapshot_gather(client, 0, STAT_WAIT_MS, &snapshot);

	stat_print_prometheus(is_known ? &snapshot : NULL);
	if (client)
		snapshot_fini(&snapshot);
	portd_client_close(client);
}

static void print_counter(const char *name, const char *help, uint64_t value)
{
	metric_begin(name, "counter", help);
	printf("%s %llu\n", name, (unsigned long long)value);
}

static void print_metrics(const struct exporter *exporter)
{
	print_stat();
	exchanges_print(exporter->exchanges);
	metric_begin("purecm_recording", "gauge", "1 while there is a recording of cmportd");
	printf("purecm_recording %d\n", exporter->recording.reader.ring != NULL);
	print_counter("purecm_recorded_messages_total",
		      "messages that were counted for the metrics of connections",
		      exporter->n_recorded);
	print_counter("purecm_missed_messages_total",
		      "messages that were recorded faster than they were counted",
		      exporter->recording.n_missed + exporter->recording.reader.n_missed);
}

/* All functions print on standard output. Return: the text, to be freed; NULL on ENOMEM. */
static char *metrics_text(const struct exporter *exporter, size_t *ret_bytes)
{
	FILE *const terminal = stdout;
	char *text = NULL;
	FILE *memory = open_memstream(&text, ret_bytes);

	if (!memory)
		return NULL;
	stdout = memory;
	print_metrics(exporter);
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
static struct MHD_Response *metrics_response(struct exporter *exporter)
{
	size_t bytes;
	char *text;

	if (exporter->response && clock_ns() - exporter->response_ns < FRESH_NS)
		return exporter->response;
	text = metrics_text(exporter, &bytes);
	if (!text)
		return NULL;
	if (exporter->response)
		MHD_destroy_response(exporter->response);
	exporter->response = make_response(text, bytes, "text/plain; version=0.0.4; charset=utf-8",
					   MHD_RESPMEM_MUST_FREE);
	exporter->response_ns = clock_ns();
	return exporter->response;
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
	struct MHD_Response *response;

	(void)version;
	(void)data;
	(void)bytes;
	(void)state;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 || strcmp(url, "/metrics") != 0)
		return refuse(connection);
	response = metrics_response(arg);
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
	struct exporter exporter = { .listen = LISTEN_DEFAULT };

	argv[0] = (char[]){ "export" };
	command_parse(&usage, argc, argv, &exporter);
	exporter.exchanges = exchanges_new();
	if (!exporter.exchanges || listen_on(&exporter))
		return STATUS_FAILED;
	begin_recording(&exporter);
	printf("http://%s/metrics\n", exporter.listen);
	fflush(stdout);
	run_exporter(&exporter);
	complain("no more requests can be waited for: %s", strerror(errno));
	return STATUS_FAILED;
}
