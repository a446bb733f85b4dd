/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All messages of this host as they pass its cmportd: a source for whoever may look on. Called by
 * reading.c.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "portd/client.h"
#include "tools/purecm/command.h"
#include "tools/purecm/sighting.h"

#define PKEY_DEFAULT 0xffff
#define QUEUE_MAX    (PORTD_DATAGRAM_BYTES / MAD_BYTES) /* more than a datagram holds */

struct onlooker {
	struct source source; /* first */
	struct portd_client *client;
	uint32_t pid; /* 0: all */
	uint64_t last_number;
	uint64_t n_missed;
	struct portd_seen queue[QUEUE_MAX];
	unsigned int n_queued;
	unsigned int n_taken;
};

static volatile sig_atomic_t is_over;

static void end(int signal_number)
{
	(void)signal_number;
	is_over = 1;
}

static void take(const struct portd_record *record, void *arg)
{
	struct onlooker *onlooker = arg;
	const struct portd_seen *seen = &record->seen;

	if (record->type != PORTD_SEEN || onlooker->n_queued == QUEUE_MAX)
		return;
	if (onlooker->last_number)
		onlooker->n_missed += seen->number - onlooker->last_number - 1;
	onlooker->last_number = seen->number;
	if (!onlooker->pid || seen->pid == onlooker->pid)
		onlooker->queue[onlooker->n_queued++] = *seen;
}

static void fill(const struct portd_seen *seen, struct sighting *ret)
{
	struct mad_gid peer = seen->path.grh ? seen->path.dgid
					     : sighting_gid_of_lid(seen->path.dlid);

	*ret = (struct sighting){
		.time_ns = seen->time_ns,
		.number = seen->number,
		.way = seen->way == PORTD_RECEIVED ? WAY_IN : WAY_OUT,
		.src = seen->way == PORTD_RECEIVED ? peer : seen->local_gid,
		.dst = seen->way == PORTD_RECEIVED ? seen->local_gid : peer,
		.src_qpn = 1,
		.pkey = PKEY_DEFAULT,
	};
	memcpy(ret->mad, seen->mad, MAD_BYTES);
}

/* Return: 1 when there is something, 0 when it is over, -errno after a complaint. */
static int await(struct onlooker *onlooker)
{
	struct pollfd poll_fd = { .fd = portd_client_fd(onlooker->client), .events = POLLIN };
	int err = 0;

	onlooker->n_queued = onlooker->n_taken = 0;
	fflush(NULL); /* what was there is to be seen before we sleep */
	while (!is_over && !onlooker->n_queued) {
		if (poll(&poll_fd, 1, -1) < 0)
			continue; /* a signal: is it over? */
		err = portd_receive(onlooker->client, take, onlooker);
		if (err && err != -EAGAIN) {
			complain("cmportd has gone; its successor does not know that we look on: "
				 "start anew");
			return err;
		}
	}
	/* What came before the end is shown, too. */
	if (is_over && !onlooker->n_queued)
		portd_receive(onlooker->client, take, onlooker);
	return onlooker->n_queued > 0;
}

static int next(struct source *source, struct sighting *ret)
{
	struct onlooker *onlooker = (struct onlooker *)source;
	int got = 1;

	if (onlooker->n_taken == onlooker->n_queued)
		got = await(onlooker);
	if (got != 1)
		return got;
	fill(&onlooker->queue[onlooker->n_taken++], ret);
	source->counts.packets++;
	source->counts.mads++;
	return 1;
}

static void finish(struct source *source)
{
	struct onlooker *onlooker = (struct onlooker *)source;

	if (onlooker->n_missed)
		complain("%llu messages came faster than they were taken, and are missing",
			 (unsigned long long)onlooker->n_missed);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	portd_client_close(onlooker->client);
	free(onlooker);
}

static int look_on(struct onlooker *onlooker)
{
	struct portd_why why = { "" };
	struct portd_ids ids;
	int err = portd_client_open(&onlooker->client, &ids, &why);

	if (err) {
		complain("%s%s%s", why.text, why.text[0] ? ": " : "", strerror(-err));
		return err;
	}
	err = portd_look_on(onlooker->client);
	if (err)
		complain("cmportd shows what others say to root and to the user who runs it only: "
			 "%s",
			 strerror(-err));
	return err;
}

int onlooker_open(uint32_t pid, struct source **ret)
{
	const struct sigaction action = { .sa_handler = end };
	struct onlooker *onlooker = calloc(1, sizeof(*onlooker));
	int err;

	if (!onlooker)
		return -ENOMEM;
	onlooker->source = (struct source){ .name = "this host", .next = next, .close = finish };
	onlooker->pid = pid;
	err = look_on(onlooker);
	if (err) {
		portd_client_close(onlooker->client);
		free(onlooker);
		return err;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	*ret = &onlooker->source;
	return 0;
}
