/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading sources to their end.
 */
#include "tools/purecm/reading.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mad/talk.h"
#include "tools/purecm/command.h"

#define PROBES_MAX 1024 /* answers of which are awaited */

enum key {
	KEY_PID = 512, /* different from those of the subcommands */
	KEY_RECORDED,
	KEY_KERNEL,
	KEY_PROBES,
};

/* clang-format off */
static const struct argp_option option_table[] = {
	{ NULL, 0, NULL, 0, "What is read; else what passes cmportd on this host, until Ctrl-C:", 5 },
	{ "read", 'r', "FILE", 0,
	  "a capture, pcap or pcapng, also packed by gzip, also without -r; - for standard input",
	  5 },
	{ "interface", 'i', "NAME", 0,
	  "what passes a network interface of this host from now on, until Ctrl-C; any for all", 5 },
	{ "recorded", KEY_RECORDED, NULL, 0,
	  "what has passed cmportd on this host lately, also one that has ended", 5 },
	{ "kernel", KEY_KERNEL, "FILE", OPTION_ARG_OPTIONAL,
	  "what the kernel's connection manager does on this host, until Ctrl-C, as root; or lines "
	  "that were saved from its trace", 5 },
	{ "pid", KEY_PID, "PID", 0, "of what passes cmportd, what this process sends and gets", 5 },
	{ "probes", KEY_PROBES, NULL, 0,
	  "also the requests by which cmportd finds out whether a way works, and their answers", 5 },
	{ 0 },
};
/* clang-format on */

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct reading *reading = state->input;

	switch (key) {
	case 'r':
	case ARGP_KEY_ARG:
		if (reading->file)
			argp_error(state, "one capture at a time; `purecm diff' compares two");
		reading->file = value;
		return 0;
	case 'i':
		reading->interface = value;
		return 0;
	case KEY_PID:
		reading->pid = command_parse_pid(value, state);
		return 0;
	case KEY_RECORDED:
		reading->recorded = true;
		return 0;
	case KEY_KERNEL:
		reading->kernel = true;
		reading->kernel_file = value;
		return 0;
	case KEY_PROBES:
		reading->probes = true;
		return 0;
	case ARGP_KEY_END:
		if (!!reading->file + !!reading->interface + reading->recorded + reading->kernel >
		    1)
			argp_error(state, "-r, -i, --recorded and --kernel exclude each other");
		if (reading->pid && (reading->file || reading->interface || reading->kernel))
			argp_error(state, "--pid is of what passes cmportd: not with -r, -i or "
					  "--kernel");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp reading_argp = {
	.options = option_table,
	.parser = parse_option,
	.args_doc = "[FILE]",
};

static void complain_of_counts(const struct source *source)
{
	const struct source_counts *counts = &source->counts;

	if (counts->cut)
		complain("%s: %llu messages were not captured to their end (with tcpdump, -s 0 "
			 "does)",
			 source->name, (unsigned long long)counts->cut);
	if (!counts->packets)
		complain("%s: nothing was said", source->name);
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
		    memcmp(&probes->probe[i].src, &observation->dst, sizeof(observation->dst)) == 0)
			return true;
	return false;
}

/* A probe, or the answer to one that was seen. */
static bool is_probe(struct probes *probes, const struct observation *observation)
{
	struct cm_msg msg;

	if (!observation_is_cm(observation) || cm_msg_decode(observation->mad, MAD_BYTES, &msg))
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

int reading_run(const struct reading *reading, reading_take *take, void *arg)
{
	struct source *source;
	int err;

	if (reading->interface)
		err = capture_open_live(reading->interface, &source);
	else if (reading->file)
		err = capture_open(reading->file, &source);
	else if (reading->kernel)
		err = kernel_open(reading->kernel_file, &source);
	else if (reading->recorded)
		err = recorded_open(reading->pid, &source);
	else
		err = tracer_open(reading->pid, &source);
	if (err)
		return err;
	err = reading_source(source, reading->probes, take, arg);
	source->close(source);
	return err;
}

const char *reading_name(const struct reading *reading)
{
	if (reading->interface)
		return reading->interface;
	return reading->file ? reading->file : "this host";
}

bool reading_is_once(const struct reading *reading)
{
	if (reading->recorded || reading->kernel_file)
		return false;
	return !reading->file || strcmp(reading->file, "-") == 0;
}

static int take_flow(void *arg, const struct observation *observation)
{
	struct flow_step step;
	struct cm_msg msg;

	if (!observation_is_cm(observation) || cm_msg_decode(observation->mad, MAD_BYTES, &msg))
		return 0;
	return flows_take(arg, observation, &msg, &step);
}

int reading_flows(const struct reading *reading, struct flows **ret)
{
	struct flows *flows = flows_new(FLOWS_MAX, false);
	int err = flows ? reading_run(reading, take_flow, flows) : -ENOMEM;

	if (err && err != SOURCE_CUT)
		flows_free(flows);
	else
		*ret = flows;
	return err;
}
