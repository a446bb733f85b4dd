/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages that cmportd records, as sources: those until now, and those from now on. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/portd/proto/socket_path.h"
#include "tools/purecm/subcommand.h"
#include "tools/purecm/observation.h"

#define PKEY_DEFAULT 0xffff
#define IDLE_MS	     50 /* polling interval of the recording */
#define LOOK_MS	     5	/* likewise, while messages come */
#define LOOKS_BUSY   50 /* during a storm, before messages are taken */
#define OPENINGS_MAX 20 /* IDLE_MS apart: cmportd may be about to write the head of the file */
#define NICE	     10

struct recorded {
	struct source source; /* first */
	struct recording recording;
	uint32_t pid;	/* 0: all */
	uint64_t first; /* number of the message before the first */
	bool is_live;	/* waits for more */
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

/* --- the file -------------------------------------------------------------- */

static int open_file(char ret_path[PATH_MAX])
{
	char socket[SOCKET_PATH_BYTES];
	int fd, err = socket_path_find(socket);

	if (err)
		return err;
	snprintf(ret_path, PATH_MAX, "%s" RECORDING_SUFFIX, socket);
	fd = open(ret_path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

int recording_open(struct recording *recording)
{
	int fd = open_file(recording->path);

	return fd < 0 ? fd : trace_reader_open(&recording->reader, fd);
}

static bool is_replaced(const struct recording *recording)
{
	struct stat known, there;

	return stat(recording->path, &there) || fstat(recording->reader.fd, &known) ||
	       known.st_ino != there.st_ino || known.st_dev != there.st_dev;
}

void recording_follow(struct recording *recording)
{
	struct trace_reader *reader = &recording->reader;

	if (reader->ring && (is_replaced(recording) || trace_reader_update(reader)))
		recording_close(recording);
	if (!reader->ring)
		recording_open(recording);
}

void recording_close(struct recording *recording)
{
	recording->n_missed += recording->reader.n_missed;
	trace_reader_fini(&recording->reader);
}

/* --- the sources ----------------------------------------------------------- */

/*
 * Waits while messages come, unless there are many or they get old: the traced programs have
 * priority.
 */
static void wait_for_lull(const struct trace_reader *reader)
{
	uint64_t last, written = trace_reader_written(reader);
	unsigned int n = 0;

	if (written == reader->number)
		poll(NULL, 0, IDLE_MS);
	do {
		poll(NULL, 0, LOOK_MS);
		last = written;
		written = trace_reader_written(reader);
	} while (written != last && written - reader->number < reader->n_entries / 2 &&
		 n++ < LOOKS_BUSY && !command_is_over);
}

/* Return: false at the end. What precedes it is delivered. */
static bool await_entries(struct recorded *recorded)
{
	if (!recorded->is_live || recorded->has_ended)
		return false;
	fflush(NULL); /* show output before sleeping */
	if (recorded->recording.reader.ring)
		wait_for_lull(&recorded->recording.reader);
	else
		poll(NULL, 0, IDLE_MS);
	recorded->has_ended = command_is_over;
	recording_follow(&recorded->recording);
	return true;
}

/* Return: false if no copied message of the process is left. */
static bool take_entry(struct recorded *recorded, struct trace_entry *ret)
{
	while (trace_reader_take(&recorded->recording.reader, ret))
		if (!recorded->pid || ret->pid == recorded->pid)
			return true;
	return false;
}

static int next_recorded(struct source *source, struct observation *ret)
{
	struct recorded *recorded = (struct recorded *)source;
	struct trace_entry seen;

	while (!take_entry(recorded, &seen))
		if (!await_entries(recorded))
			return 0;
	recorded_observe(&seen, ret);
	source->counts.packets++;
	source->counts.mads++;
	return 1;
}

static void close_recorded(struct source *source)
{
	struct recorded *recorded = (struct recorded *)source;

	recording_close(&recorded->recording);
	if (recorded->recording.n_missed)
		complain("%llu messages came faster than they were taken, and are missing",
			 (unsigned long long)recorded->recording.n_missed);
	if (recorded->is_live) {
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
	}
	free(recorded);
}

static const char *why_not(int err)
{
	switch (err) {
	case -ENOENT:
		return "nothing was recorded: no cmportd has run there since this host has booted "
		       "(PURECM_SOCKET names it)";
	case -EACCES:
		return "what is recorded is for root and for the user who runs cmportd";
	case -ENODATA:
		return "nothing is recorded: cmportd runs with --record=0";
	case -EPROTO:
		return "is no recording of this version of cmportd";
	}
	return strerror(-err);
}

/* All messages of a cmportd that will be started are from now on. */
static int open_live(struct recording *recording)
{
	int err = recording_open(recording);
	unsigned int n;

	for (n = 1; (err == -ENODATA || err == -EPROTO) && n < OPENINGS_MAX; n++) {
		poll(NULL, 0, IDLE_MS);
		err = recording_open(recording);
	}
	if (err == -ENOENT)
		complain("%s: no cmportd has run there yet; waiting for it", recording->path);
	else if (!err)
		trace_reader_skip(&recording->reader);
	return err == -ENOENT ? 0 : err;
}

static int open_source(uint32_t pid, bool is_live, struct source **ret)
{
	struct recorded *recorded = calloc(1, sizeof(*recorded));
	int err;

	if (!recorded)
		return -ENOMEM;
	recorded->source = (struct source){ .name = recorded->recording.path,
					    .next = next_recorded,
					    .close = close_recorded };
	recorded->pid = pid;
	recorded->is_live = is_live;
	err = is_live ? open_live(&recorded->recording) : recording_open(&recorded->recording);
	if (err) {
		complain("%s: %s",
			 *recorded->recording.path ? recorded->recording.path : "PURECM_SOCKET",
			 why_not(err));
		free(recorded);
		return err;
	}
	recorded->first = recorded->recording.reader.number;
	*ret = &recorded->source;
	return 0;
}

int recorded_open(uint32_t pid, struct source **ret)
{
	return open_source(pid, false, ret);
}

void recorded_rewind(struct source *source)
{
	struct recorded *recorded = (struct recorded *)source;

	recorded->recording.reader.number = recorded->first;
}

int tracer_open(uint32_t pid, struct source **ret)
{
	int err = open_source(pid, true, ret);

	if (err)
		return err;
	(*ret)->name = "this host";
	setpriority(PRIO_PROCESS, 0, NICE);
	command_catch_end();
	return 0;
}
