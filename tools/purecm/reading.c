/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading sources to their end; options of sources and filters.
 */
#include "tools/purecm/reading.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mad/talk.h"

#define PROBES_MAX 1024 /* answers of which are awaited */
#define PORT_MAX   0xffff

/* --- options -------------------------------------------------------------- */

void reading_take_file(void *input, char *path, struct argp_state *state)
{
	struct reading *reading = input;

	if (reading->file)
		argp_error(state, "one capture at a time; `purecm diff' compares two");
	reading->file = path;
}

static void take_kernel(void *input, char *path, struct argp_state *state)
{
	struct reading *reading = input;

	(void)state;
	reading->kernel = true;
	reading->kernel_file = path;
}

void reading_check(const void *input, struct argp_state *state)
{
	const struct reading *reading = input;

	if (!!reading->file + !!reading->interface + reading->recorded + reading->kernel > 1)
		argp_error(state, "-r, -i, --recorded and --kernel exclude each other");
	if (reading->pid && (reading->file || reading->interface || reading->kernel))
		argp_error(state, "--pid is of what passes cmportd: not with -r, -i or --kernel");
}

static void take_peer(void *input, char *text, struct argp_state *state)
{
	struct filter *filter = &((struct reading *)input)->filter;

	if (observation_parse_gid(text, &filter->peer))
		argp_error(state, "--peer: %s is no IP address, GID or `lid N'", text);
	filter->has_peer = true;
}

static void take_service(void *input, char *text, struct argp_state *state)
{
	struct filter *filter = &((struct reading *)input)->filter;
	char *end;

	errno = 0;
	filter->service = strtoull(text, &end, 0);
	if (errno || *end || end == text || *text == '-')
		argp_error(state, "--service: %s is no port and no service id", text);
	filter->has_service = true;
}

static int add_message(struct filter *filter, const char *name)
{
	uint16_t attr;

	if (strcasecmp(name, "SA") == 0) {
		filter->has_sa = true;
		return 0;
	}
	for (attr = CM_ATTR_REQ; attr <= CM_ATTR_APR; attr++) {
		if (strcasecmp(name, cm_msg_layout(attr)->name) == 0) {
			filter->messages |= 1u << (attr - CM_ATTR_REQ);
			return 0;
		}
	}
	return -EINVAL;
}

static uint32_t failed_outcomes(void)
{
	uint32_t outcomes = 0;
	struct flow flow = { .number = 0 };

	for (flow.outcome = 0; flow.outcome < FLOW_N_OUTCOMES; flow.outcome++) {
		if (flow_has_failed(&flow))
			outcomes |= 1u << flow.outcome;
	}
	return outcomes;
}

static int add_outcome(struct filter *filter, const char *word)
{
	enum flow_outcome outcome;

	if (strcmp(word, "failed") == 0) {
		filter->outcomes |= failed_outcomes();
		return 0;
	}
	for (outcome = 0; outcome < FLOW_N_OUTCOMES; outcome++) {
		if (strcmp(word, flow_outcome_word(outcome)) == 0) {
			filter->outcomes |= 1u << outcome;
			return 0;
		}
	}
	return -EINVAL;
}

static void take_list(struct reading *reading, char *list, struct argp_state *state,
		      int (*add)(struct filter *filter, const char *word), const char *what)
{
	char *word, *rest = NULL;

	for (word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		if (add(&reading->filter, word))
			argp_error(state, "there is no %s %s; --help lists them", what, word);
	}
}

static void take_messages(void *input, char *list, struct argp_state *state)
{
	take_list(input, list, state, add_message, "message");
}

static void take_outcomes(void *input, char *list, struct argp_state *state)
{
	take_list(input, list, state, add_outcome, "outcome");
}

#define FILTERS                                                                                  \
	{ .doc = "What is shown:" },                                                             \
		{ "peer", 'p', "ADDRESS",                                                        \
		  "connections that have this address, or `lid N', at an end",                   \
		  COMMAND_TAKEN_BY(take_peer) },                                                 \
		{ "service", 's', "PORT", "connections to a port, or to a service id (0x...)",   \
		  COMMAND_TAKEN_BY(take_service) },                                              \
		{ "message", 'm', "NAME,...", "REQ, MRA, REJ and so on; SA",                     \
		  COMMAND_TAKEN_BY(take_messages) },                                             \
		{ "outcome", 'o', "WORD,...",                                                    \
		  "connections that end so: failed, closed, established, rejected, unanswered, " \
		  "unconfirmed, gave-up, unclosed, resolved, probed, fragment",                  \
		  COMMAND_TAKEN_BY(take_outcomes) },                                             \
	{                                                                                        \
		"connection", 'n', "N", "the one that is shown as #N",                           \
			COMMAND_NUMBER_AT(reading, filter.connection, 1, UINT32_MAX)             \
	}

/* clang-format off */
const struct command_option reading_options[] = {
	{ .doc = "What is read; else what passes cmportd on this host, until Ctrl-C:" },
	{ "read", 'r', "FILE",
	  "a capture, pcap or pcapng, also packed by gzip, also without -r; - for standard input",
	  COMMAND_TAKEN_BY(reading_take_file) },
	{ "interface", 'i', "NAME",
	  "what passes a network interface of this host from now on, until Ctrl-C; any for all",
	  COMMAND_TEXT_AT(reading, interface) },
	{ "recorded", 0, NULL,
	  "what has passed cmportd on this host lately, also one that has ended",
	  COMMAND_FLAG_AT(reading, recorded) },
	{ "kernel", 0, "FILE",
	  "what the kernel's connection manager does on this host, until Ctrl-C, as root; or lines "
	  "that were saved from its trace", COMMAND_TAKEN_BY(take_kernel), .is_optional = true },
	{ "pid", 0, "PID", "of what passes cmportd, what this process sends and gets",
	  COMMAND_NUMBER_AT(reading, pid, 1, INT32_MAX) },
	{ "probes", 0, NULL,
	  "also the requests by which cmportd finds out whether a way works, and their answers",
	  COMMAND_FLAG_AT(reading, probes) },
	FILTERS,
	{ 0 },
};

const struct command_option filter_options[] = { FILTERS, { 0 } };
/* clang-format on */

static void complain_of_counts(const struct source *source)
{
	const struct source_counts *counts = &source->counts;

	if (counts->cut)
		complain("%s: %llu messages were not captured to their end (with tcpdump, -s 0 "
			 "does)",
			 source->name, (unsigned long long)counts->cut);
	if (!counts->packets)
		complain("%s: there are no messages", source->name);
	else if (!counts->mads)
		complain("%s: none of its %llu packets bears a message of a connection manager",
			 source->name, (unsigned long long)counts->packets);
}

/* --- probes --------------------------------------------------------------- */

struct probes {
	struct {
		struct mad_gid src;
		uint32_t request_id;
	} probe[PROBES_MAX];
	uint64_t n;
};

static bool is_answer_to_probe(const struct probes *probes, const struct observation *observation,
			       uint32_t request_id)
{
	uint64_t i, n = probes->n < PROBES_MAX ? probes->n : PROBES_MAX;

	for (i = 0; i < n; i++)
		if (probes->probe[i].request_id == request_id &&
		    gid_is_same(&probes->probe[i].src, &observation->dst))
			return true;
	return false;
}

/* A probe, or the answer to one that was seen. */
static bool is_probe(struct probes *probes, const struct observation *observation)
{
	struct cm_msg msg;

	if (!observation_decode(observation, &msg))
		return false;
	if (msg.hdr.attr_id == CM_ATTR_SIDR_REP)
		return is_answer_to_probe(probes, observation, msg.sidr_rep.request_id);
	if (msg.hdr.attr_id != CM_ATTR_SIDR_REQ || msg.sidr_req.service_id != MAD_PROBE_SERVICE_ID)
		return false;
	probes->probe[probes->n % PROBES_MAX].src = observation->src;
	probes->probe[probes->n++ % PROBES_MAX].request_id = msg.sidr_req.request_id;
	return true;
}

/* --- reading -------------------------------------------------------------- */

int reading_source(struct source *source, bool with_probes, reading_take *take, void *arg)
{
	struct probes *probes = with_probes ? NULL : calloc(1, sizeof(*probes));
	struct observation observation;
	uint64_t n_left_out = 0;
	int got, err = 0;

	while (!err && (got = source->next(source, &observation)) == 1) {
		if (probes && is_probe(probes, &observation))
			continue;
		err = take(arg, &observation);
		if (err == -ENOBUFS) {
			n_left_out++;
			err = 0;
		}
	}
	free(probes);
	if (err == READING_ENOUGH)
		return 0;
	if (err) {
		complain("%s: at packet %llu: %s", source->name,
			 (unsigned long long)source->counts.packets, strerror(-err));
		return err;
	}
	complain_of_counts(source);
	if (n_left_out)
		complain("%s: only the first %u connections are kept: %llu messages of later ones "
			 "are left out; cut the capture into parts (editcap -i SECONDS)",
			 source->name, FLOWS_MAX, (unsigned long long)n_left_out);
	return n_left_out && !got ? SOURCE_CUT : got;
}

int reading_open(const struct reading *reading, struct source **ret)
{
	if (reading->interface)
		return capture_open_live(reading->interface, ret);
	if (reading->file)
		return capture_open(reading->file, ret);
	if (reading->kernel)
		return kernel_open(reading->kernel_file, ret);
	if (reading->recorded)
		return recorded_open(reading->pid, ret);
	return tracer_open(reading->pid, ret);
}

int reading_run(const struct reading *reading, reading_take *take, void *arg)
{
	struct source *source;
	int err = reading_open(reading, &source);

	if (err)
		return err;
	err = reading_source(source, reading->probes, take, arg);
	source->close(source);
	return err;
}

static const char *file_of(const struct reading *reading)
{
	return reading->file ? reading->file : reading->kernel_file;
}

const char *reading_name(const struct reading *reading)
{
	const char *file = file_of(reading);

	if (reading->interface)
		return reading->interface;
	if (!file)
		return "this host";
	return strcmp(file, "-") ? file : "standard input";
}

int reading_check_output(const struct reading *reading, const char *path)
{
	const char *input = file_of(reading);
	const bool is_stdin = input && strcmp(input, "-") == 0;
	struct stat in, out;

	if (!input || !path || strcmp(path, "-") == 0 || stat(path, &out) ||
	    (is_stdin ? fstat(STDIN_FILENO, &in) : stat(input, &in)) || !S_ISREG(in.st_mode) ||
	    in.st_dev != out.st_dev || in.st_ino != out.st_ino)
		return 0;
	complain("%s is read; write to another file", path);
	return -EINVAL;
}

bool reading_is_once(const struct reading *reading)
{
	const char *path = file_of(reading);
	struct stat file;

	if (path && strcmp(path, "-"))
		return !stat(path, &file) && !S_ISREG(file.st_mode);
	return !reading->recorded;
}

static int take_flow(void *arg, const struct observation *observation)
{
	struct flow_step step;
	struct cm_msg msg;

	if (!observation_decode(observation, &msg))
		return 0;
	return flows_take(arg, observation, &msg, &step);
}

int reading_source_flows(struct source *source, bool with_probes, struct flows **ret)
{
	struct flows *flows = flows_new(FLOWS_MAX, false);
	int err = flows ? reading_source(source, with_probes, take_flow, flows) : -ENOMEM;

	if (err && err != SOURCE_CUT)
		flows_free(flows);
	else
		*ret = flows;
	return err;
}

int reading_flows(const struct reading *reading, struct flows **ret)
{
	struct source *source;
	int err = reading_open(reading, &source);

	if (err)
		return err;
	err = reading_source_flows(source, reading->probes, ret);
	source->close(source);
	return err;
}

/* --- filters -------------------------------------------------------------- */

static bool is_at_an_end(const struct flow *flow, const struct mad_gid *gid)
{
	return gid_is_same(flow_gid(flow, FLOW_ACTIVE), gid) ||
	       gid_is_same(flow_gid(flow, FLOW_PASSIVE), gid);
}

static bool is_service(const struct flow *flow, uint64_t service)
{
	if (service > PORT_MAX)
		return flow->service_id == service;
	return cma_service_is_ip(flow->service_id) && (flow->service_id & PORT_MAX) == service;
}

bool filter_takes_flow(const struct filter *filter, const struct flow *flow)
{
	if (filter->connection && flow->number != filter->connection)
		return false;
	if (filter->has_peer && !is_at_an_end(flow, &filter->peer))
		return false;
	return !filter->has_service || is_service(flow, filter->service);
}

bool filter_takes_outcome(const struct filter *filter, enum flow_outcome outcome)
{
	return !filter->outcomes || filter->outcomes >> outcome & 1;
}

bool filter_takes_message(const struct filter *filter, const struct cm_msg *msg)
{
	if (!filter->messages)
		return !filter->has_sa;
	return filter->messages >> (msg->hdr.attr_id - CM_ATTR_REQ) & 1;
}

bool filter_takes_other(const struct filter *filter, const struct observation *observation)
{
	if (filter->connection || filter->has_service || filter->outcomes)
		return false;
	if ((filter->messages || filter->has_sa) &&
	    !(filter->has_sa && !observation_is_cm(observation)))
		return false;
	return !filter->has_peer || gid_is_same(&observation->src, &filter->peer) ||
	       gid_is_same(&observation->dst, &filter->peer);
}
