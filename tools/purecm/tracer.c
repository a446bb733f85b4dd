/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages of this host, as sources: those that pass cmportd, and those it has recorded. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/portd/client/portd_client.h"
#include "lib/portd/proto/socket_path.h"
#include "tools/purecm/subcommand.h"
#include "tools/purecm/observation.h"

#define PKEY_DEFAULT 0xffff
#define LOOK_MS	     5	/* polling interval of the ring */
#define LOOKS_IDLE   20 /* polls without messages, before sleeping until cmportd wakes us up */
#define LOOKS_BUSY   50 /* polls during a storm, before messages are taken */
#define BACKLOG_MAX  (TRACE_RING_ENTRIES / 2)
#define NICE	     10

/*
 * Traced programs have priority: messages are taken when there is a pause, or when they are old or
 * many. No wake-up occurs for a message while there are many.
 */
struct tracer {
	struct source source; /* first */
	struct portd_client *client;
	struct trace_reader reader;
	uint32_t pid; /* 0: all */
	bool has_ended;
};

void recorded_observe(const struct trace_entry *seen, struct observation *ret)
{
	struct mad_gid peer = seen->path.grh ? seen->path.dgid
					     : observation_gid_of_lid(seen->path.dlid);

	*ret = (struct observation){
		.time_ns = seen->time_ns,
		.number = seen->number,
		.way = seen->way == PORTD_RECEIVED ? WAY_IN : WAY_OUT,
		.network = seen->path.dlid ? NETWORK_INFINIBAND : NETWORK_ROCE_V2,
		.src = seen->way == PORTD_RECEIVED ? peer : seen->local_gid,
		.dst = seen->way == PORTD_RECEIVED ? seen->local_gid : peer,
		.src_qpn = 1,
		.pkey = PKEY_DEFAULT,
	};
	memcpy(ret->mad, seen->mad, MAD_BYTES);
}

static void ignore_record(const struct portd_record *record, void *arg)
{
	(void)record;
	(void)arg;
}

/* Waits for input on the socket: a wake-up, or the end of cmportd. Return: 0 or -errno. */
static int pause_ms(struct tracer *tracer, int ms)
{
	struct pollfd poll_fd = { .fd = portd_client_fd(tracer->client), .events = POLLIN };
	int err;

	if (poll(&poll_fd, 1, ms) <= 0)
		return 0; /* or a signal: check for the end */
	err = portd_receive(tracer->client, ignore_record, NULL);
	return err == -EAGAIN ? 0 : err;
}

static int sleep_long(struct tracer *tracer)
{
	int err = portd_await_seen(tracer->client, tracer->reader.number);

	return err ? err : pause_ms(tracer, -1);
}

/* Return: 0 when there is something, or at the end; -errno when cmportd has ended. */
static int wait_for_lull(struct tracer *tracer)
{
	uint64_t written, last = tracer->reader.number;
	unsigned int n_idle = 0, n_busy = 0;
	int err = 0;

	while (!command_is_over && !err) {
		written = trace_reader_written(&tracer->reader);
		if (written - tracer->reader.number >= BACKLOG_MAX || n_busy == LOOKS_BUSY)
			break;
		if (written == tracer->reader.number && n_idle++ == LOOKS_IDLE) {
			err = sleep_long(tracer);
			n_idle = 0;
			continue;
		}
		if (written == last && written != tracer->reader.number)
			break;
		n_busy += written != last;
		last = written;
		err = pause_ms(tracer, LOOK_MS);
	}
	return err;
}

/*
 * Messages before the end are delivered too, even if cmportd has ended, so that they can be
 * explained or drawn. Return: 1 if there may be messages, 0 at the end.
 */
static int await_entries(struct tracer *tracer)
{
	int err;

	if (tracer->has_ended)
		return 0;
	fflush(NULL); /* show output before sleeping */
	err = wait_for_lull(tracer);
	tracer->has_ended = command_is_over || err;
	if (trace_reader_update(&tracer->reader))
		complain("the ring cannot be read");
	if (err)
		complain("cmportd has gone; its successor does not know this tracer: start "
			 "anew");
	return 1;
}

/* Return: false if none is ready. */
static bool take_entry(struct tracer *tracer, struct trace_entry *ret)
{
	while (trace_reader_take(&tracer->reader, ret))
		if (!tracer->pid || ret->pid == tracer->pid)
			return true;
	return false;
}

static int make_observation(struct source *source, const struct trace_entry *seen,
			    struct observation *ret)
{
	recorded_observe(seen, ret);
	source->counts.packets++;
	source->counts.mads++;
	return 1;
}

static int next_entry(struct source *source, struct observation *ret)
{
	struct tracer *tracer = (struct tracer *)source;
	struct trace_entry seen;
	int got;

	while (!take_entry(tracer, &seen)) {
		got = await_entries(tracer);
		if (got != 1)
			return got;
	}
	return make_observation(source, &seen, ret);
}

static void finish_tracer(struct source *source)
{
	struct tracer *tracer = (struct tracer *)source;

	if (tracer->reader.n_missed)
		complain("%llu messages came faster than they were taken, and are missing",
			 (unsigned long long)tracer->reader.n_missed);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	trace_reader_fini(&tracer->reader);
	portd_client_close(tracer->client);
	free(tracer);
}

static int start_tracing(struct tracer *tracer)
{
	struct portd_why why = { "" };
	struct portd_ids ids;
	int err = portd_client_open(&tracer->client, &ids, &why);

	if (err) {
		complain("%s%s%s", why.text, why.text[0] ? ": " : "", strerror(-err));
		return err;
	}
	err = portd_trace(tracer->client, &tracer->reader);
	if (err == -EPERM)
		complain(
			"cmportd shows messages of others only to root and to the user who runs it");
	else if (err)
		complain("cmportd shows nothing: %s", strerror(-err));
	return err;
}

int tracer_open(uint32_t pid, struct source **ret)
{
	struct tracer *tracer = calloc(1, sizeof(*tracer));
	int err;

	if (!tracer)
		return -ENOMEM;
	tracer->source =
		(struct source){ .name = "this host", .next = next_entry, .close = finish_tracer };
	tracer->pid = pid;
	err = start_tracing(tracer);
	if (err) {
		trace_reader_fini(&tracer->reader);
		portd_client_close(tracer->client);
		free(tracer);
		return err;
	}
	setpriority(PRIO_PROCESS, 0, NICE);
	command_catch_end();
	*ret = &tracer->source;
	return 0;
}

/* --- the recording -------------------------------------------------------- */

struct recorded {
	struct source source; /* first */
	struct trace_reader reader;
	uint32_t pid;	     /* 0: all */
	char path[PATH_MAX]; /* the source's name */
};

static int next_recorded(struct source *source, struct observation *ret)
{
	struct recorded *recorded = (struct recorded *)source;
	struct trace_entry seen;

	while (trace_reader_take(&recorded->reader, &seen)) {
		if (!recorded->pid || seen.pid == recorded->pid)
			return make_observation(source, &seen, ret);
	}
	return 0;
}

static void close_recorded(struct source *source)
{
	struct recorded *recorded = (struct recorded *)source;

	trace_reader_fini(&recorded->reader);
	free(recorded);
}

static const char *why_not(int err)
{
	switch (err) {
	case -ENOENT:
		return "nothing was recorded: no cmportd has run there since this host has booted "
		       "(PURECM_SOCKET names it)";
	case -EACCES:
		return "what was recorded is for root and for the user who runs cmportd";
	case -ENODATA:
		return "nothing is recorded: cmportd runs with --record=0";
	case -EPROTO:
		return "is no recording of this version of cmportd";
	}
	return strerror(-err);
}

int recorded_file(char ret_path[PATH_MAX])
{
	char socket[SOCKET_PATH_BYTES];
	int fd, err = socket_path_find(socket);

	if (err)
		return err;
	snprintf(ret_path, PATH_MAX, "%s" RECORDING_SUFFIX, socket);
	fd = open(ret_path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int read_recorded(struct recorded *recorded)
{
	int fd = recorded_file(recorded->path);

	return fd < 0 ? fd : trace_reader_open(&recorded->reader, fd);
}

int recorded_open(uint32_t pid, struct source **ret)
{
	struct recorded *recorded = calloc(1, sizeof(*recorded));
	int err;

	if (!recorded)
		return -ENOMEM;
	recorded->source = (struct source){ .name = recorded->path,
					    .next = next_recorded,
					    .close = close_recorded };
	recorded->pid = pid;
	err = read_recorded(recorded);
	if (err) {
		complain("%s: %s", *recorded->path ? recorded->path : "PURECM_SOCKET",
			 why_not(err));
		free(recorded);
		return err;
	}
	*ret = &recorded->source;
	return 0;
}
