/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * purecm ping: checks whether an address has a connection manager and a listener, and how long a
 * response takes.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/purecm/checkup.h"
#include "tools/purecm/command.h"
#include "tools/purecm/json.h"
#include "tools/purecm/probe.h"

#define TARGET_BYTES 256
#define MS_PER_S     1000

struct ping {
	char target[TARGET_BYTES];
	uint16_t port;
	uint32_t count;
	double interval_s;
	double timeout_s;
	bool json;

	unsigned int n_sent;
	unsigned int n_answered;
	struct probe_answer last; /* the latest one that was a response */
	bool is_silent;		  /* the port, not the connection manager */
	double min_ms, max_ms, sum_ms, sum2_ms;
};

static volatile sig_atomic_t is_stopped;

/* --- the command line ---------------------------------------------------- */

/* Takes HOST, HOST:PORT, [IPV6]:PORT; an IPv6 address without brackets has no port. */
static void take_target(void *input, char *text, struct argp_state *state)
{
	const char *colon = strrchr(text, ':'), *end = colon;
	struct ping *ping = input;
	unsigned int port;
	char rest;

	if (ping->target[0])
		argp_error(state, "one address at a time");
	if (strlen(text) >= sizeof(ping->target))
		argp_error(state, "the address is too long");
	if (*text == '[') {
		end = strchr(++text, ']');
		if (!end || (end[1] && end[1] != ':'))
			argp_error(state, "[%s is no address", text);
		colon = end && end[1] ? end + 1 : NULL;
	} else if (!colon || strchr(text, ':') != colon) {
		end = text + strlen(text);
		colon = NULL;
	}
	if (colon) {
		if (sscanf(colon, ":%5u%c", &port, &rest) != 1 || !port || port > UINT16_MAX)
			argp_error(state, "port: %s is no number from 1 to 65535", colon + 1);
		ping->port = (uint16_t)port;
	}
	snprintf(ping->target, sizeof(ping->target), "%.*s", (int)(end - text), text);
}

static void check_target(const void *input, struct argp_state *state)
{
	if (!((const struct ping *)input)->target[0])
		argp_error(state, "which address?");
}

/* clang-format off */
static const struct command_option options[] = {
	{ "count", 'c', "N", "how many requests (4)", COMMAND_NUMBER_AT(ping, count, 1, 60000) },
	{ "interval", 'i', "SECONDS", "from an answer to the next request (1)",
	  COMMAND_SECONDS_AT(ping, interval_s, 0, 3600) },
	{ "timeout", 'W', "SECONDS", "how long to wait for an answer (3)",
	  COMMAND_SECONDS_AT(ping, timeout_s, 0, 3600) },
	{ "json", 'j', NULL, "an object a line", COMMAND_FLAG_AT(ping, json) },
	{ 0 },
};
/* clang-format on */

static const struct command_line usage = {
	.args = "ADDRESS[:PORT]",
	.doc = "Sends connection requests that lead to no connection, and tells how long an answer "
	       "takes: a refusal if nobody listens, an acceptance, which is taken back at once, if "
	       "somebody does, whose program sees a request and a refusal. Without a port it asks "
	       "where nobody listens, and disturbs no program.\v"
	       "The exit status is 0 if there was an answer, and 1 if there was none.",
	.options = options,
	.take_arg = take_target,
	.check = check_target,
};

/* --- output --------------------------------------------------------------- */

static const char *const result_words[] = {
	[PROBE_REP] = "REP",	     [PROBE_REJ] = "REJ",      [PROBE_PATIENT] = "MRA",
	[PROBE_SILENCE] = "silence", [PROBE_STOPPED] = "stop",
};

static void print_title(const struct ping *ping, const struct checkup *checkup)
{
	char src[ADDR_STR_BYTES];

	if (ping->json)
		return;
	addr_str(&checkup->route.src, src);
	*strrchr(src, ':') = '\0';
	printf("ping %s from %s by %s/%u, GID index %u: REQ to ", ping->target, src,
	       ibv_get_device_name(checkup->gid.verbs->device), checkup->gid.port_num,
	       checkup->gid.gid_index);
	if (ping->port)
		printf("TCP port %u\n", ping->port);
	else
		puts("where nobody listens");
}

static void print_answer(const struct ping *ping, const struct probe_answer *answer)
{
	const bool is_answer = answer->result != PROBE_SILENCE;

	if (ping->json) {
		json_begin(NULL, stdout);
		json_uint("seq", ping->n_sent, stdout);
		json_text("answer", result_words[answer->result], stdout);
		if (answer->result == PROBE_REJ)
			json_uint("reason", answer->reason, stdout);
		if (is_answer)
			json_fixed("ms", answer->ms, 3, stdout);
		json_end(stdout);
	} else if (!is_answer) {
		printf("seq=%u no answer within %.1f s\n", ping->n_sent, ping->timeout_s);
	} else {
		printf("seq=%u %s time=%.2f ms", ping->n_sent, result_words[answer->result],
		       answer->ms);
		if (answer->result == PROBE_REJ)
			printf(" reason=%u (%s)", answer->reason,
			       cm_rej_reason_str(answer->reason));
		putchar('\n');
	}
	fflush(stdout);
}

static const char *conclusion_of(const struct ping *ping, const struct checkup *checkup)
{
	if (ping->is_silent)
		return "There is a connection manager. Whoever listens on that port has not "
		       "answered: its program is slow to accept, or its backlog is full.";
	if (!ping->n_answered && checkup->route.gateway)
		return "No answer: the host is down or out of reach behind the gateway, has no "
		       "connection manager, or UDP port 4791 is filtered on the way.";
	if (!ping->n_answered)
		return "The host is there, and no connection manager answers: there is none, or UDP "
		       "port 4791 is filtered.";
	if (ping->last.result == PROBE_REP)
		return "Somebody listens there, and accepts.";
	if (ping->last.result == PROBE_PATIENT)
		return "Somebody listens there, and takes its time.";
	if (ping->last.reason == 8 && ping->port)
		return "There is a connection manager; nobody listens on that port.";
	if (ping->last.reason == 28 && ping->port)
		return "There is a connection manager; whoever has that port refuses, or is not "
		       "there for this address.";
	return "There is a connection manager.";
}

static void print_summary(const struct ping *ping, const struct checkup *checkup)
{
	const double n = ping->n_answered, mean = n > 0 ? ping->sum_ms / n : 0;

	if (ping->json) {
		json_begin(NULL, stdout);
		json_uint("sent", ping->n_sent, stdout);
		json_uint("answered", ping->n_answered, stdout);
		if (ping->n_answered) {
			json_fixed("min_ms", ping->min_ms, 3, stdout);
			json_fixed("avg_ms", mean, 3, stdout);
			json_fixed("max_ms", ping->max_ms, 3, stdout);
		}
		json_text("conclusion", conclusion_of(ping, checkup), stdout);
		json_end(stdout);
		return;
	}
	printf("\n%u sent, %u answered, %.0f%% lost\n", ping->n_sent, ping->n_answered,
	       ping->n_sent ? 100.0 * (ping->n_sent - ping->n_answered) / ping->n_sent : 0.0);
	if (ping->n_answered)
		printf("min/avg/max/mdev = %.2f/%.2f/%.2f/%.2f ms\n", ping->min_ms, mean,
		       ping->max_ms, sqrt(fmax(0, ping->sum2_ms / n - mean * mean)));
	puts(conclusion_of(ping, checkup));
}

/* --- sending -------------------------------------------------------------- */

static void stop_pinging(int signal_number)
{
	(void)signal_number;
	is_stopped = 1;
}

static void count_answer(struct ping *ping, const struct probe_answer *answer)
{
	if (answer->result == PROBE_SILENCE)
		return;
	if (!ping->n_answered || answer->ms < ping->min_ms)
		ping->min_ms = answer->ms;
	if (answer->ms > ping->max_ms)
		ping->max_ms = answer->ms;
	ping->n_answered++;
	ping->last = *answer;
	ping->sum_ms += answer->ms;
	ping->sum2_ms += answer->ms * answer->ms;
}

static void pause_for(double s)
{
	const struct timespec wait = { .tv_sec = (time_t)s, .tv_nsec = (long)(fmod(s, 1) * 1e9) };

	if (!is_stopped)
		nanosleep(&wait, NULL);
}

static int shoot_all(struct ping *ping, struct probe *probe)
{
	struct probe_answer answer;
	int err;

	while (!is_stopped && ping->n_sent < ping->count) {
		if (ping->n_sent)
			pause_for(ping->interval_s);
		if (is_stopped)
			break;
		ping->n_sent++;
		err = probe_shoot(probe, (unsigned int)(ping->timeout_s * MS_PER_S), &answer);
		if (err)
			return err;
		if (answer.result == PROBE_STOPPED) {
			ping->n_sent--;
			break;
		}
		count_answer(ping, &answer);
		print_answer(ping, &answer);
	}
	return 0;
}

/* A listener that does not accept is as silent as a host without connection manager. */
static int ask_manager(struct ping *ping, struct checkup *checkup)
{
	struct probe_answer answer = { .result = PROBE_SILENCE };
	struct probe *probe;
	int err = probe_open(checkup, 0, &probe);

	if (err)
		return err;
	err = probe_shoot(probe, (unsigned int)(ping->timeout_s * MS_PER_S), &answer);
	probe_close(probe);
	ping->is_silent = answer.result == PROBE_REJ;
	return err;
}

static int run_ping(struct ping *ping, struct checkup *checkup)
{
	struct probe *probe;
	int err = checkup_find_way(checkup);

	if (!err)
		err = probe_open(checkup, ping->port, &probe);
	if (err)
		return err;
	print_title(ping, checkup);
	err = shoot_all(ping, probe);
	probe_close(probe);
	if (!err && ping->port && ping->n_sent && !ping->n_answered && !is_stopped)
		err = ask_manager(ping, checkup);
	print_summary(ping, checkup);
	return err;
}

int ping_main(int argc, char **argv)
{
	const struct sigaction action = { .sa_handler = stop_pinging };
	struct ping ping = { .count = 4, .interval_s = 1, .timeout_s = 3 };
	struct checkup *checkup = calloc(1, sizeof(*checkup));
	int err;

	if (!checkup)
		return STATUS_FAILED;
	command_parse(&usage, argc, argv, &ping);
	sigaction(SIGINT, &action, NULL);
	checkup->target = ping.target;
	err = run_ping(&ping, checkup);
	checkup_fini(checkup);
	free(checkup);
	return err || !ping.n_answered ? STATUS_FAILED : STATUS_OK;
}
