/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes MADs to umad: see umad_writer.h. */
#include "mad/umad_writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/umad.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "base/thread.h"
#include "mad/umad_node.h"

#define CLOSE_MS	  1000
#define TRUSTED_SETS_LOG2 12
#define TRUSTED_IN_SET	  4 /* 16,384 peers; messages to an evicted one are queued again */

struct letter {
	struct list link;
	struct mad_path path;
	uint8_t mad[MAD_BYTES];
};

/* A thread and its descriptor. */
struct lane {
	struct umad_writer *writer;
	int fd;
	uint32_t agent;
	bool has_thread;
	struct list letters; /* the first is being written */
	unsigned int n_letters;
	pthread_cond_t wake;
};

/* A peer to which the last write returned at once. */
struct trusted {
	struct mad_gid gid;
	uint64_t until_ns;
};

struct umad_writer {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	int fd; /* for writes in the caller's thread */
	uint32_t agent;
	pid_t pid; /* process that owns the threads */
	bool is_ending;
	unsigned int n_threads;
	unsigned int n_letters;
	struct lane lane[UMAD_LANES];
	struct trusted trusted[1 << TRUSTED_SETS_LOG2][TRUSTED_IN_SET];
};

/* --- trusted peers --------------------------------------------------------- */

static struct trusted *set_of(struct umad_writer *writer, const struct mad_gid *gid)
{
	return writer->trusted[mad_gid_hash(gid, 0, TRUSTED_SETS_LOG2)];
}

static struct trusted *find_trusted(struct umad_writer *writer, const struct mad_gid *gid)
{
	struct trusted *set = set_of(writer, gid);
	int i;

	for (i = 0; i < TRUSTED_IN_SET; i++)
		if (!memcmp(&set[i].gid, gid, sizeof(*gid)))
			return &set[i];
	return NULL;
}

/* Replaces the entry that expires first. */
static struct trusted *add_trusted(struct umad_writer *writer, const struct mad_gid *gid)
{
	struct trusted *set = set_of(writer, gid), *oldest = set;
	int i;

	for (i = 1; i < TRUSTED_IN_SET; i++)
		if (set[i].until_ns < oldest->until_ns)
			oldest = &set[i];
	oldest->gid = *gid;
	return oldest;
}

/* A slow write means that the kernel may have resolved the address: trust ends. */
static void note_write(struct umad_writer *writer, const struct mad_gid *gid, uint64_t begin_ns)
{
	uint64_t now_ns = clock_coarse_ns();
	struct trusted *trusted = find_trusted(writer, gid);
	bool was_slow = now_ns - begin_ns > UMAD_SLOW_NS;

	if (!trusted && !was_slow)
		trusted = add_trusted(writer, gid);
	if (trusted)
		trusted->until_ns = was_slow ? 0 : now_ns + UMAD_TRUST_NS;
}

/* --- lanes ---------------------------------------------------------------- */

static bool has_letter_to(const struct lane *lane, const struct mad_gid *gid)
{
	const struct letter *letter;

	list_for_each_entry (letter, &lane->letters, link)
		if (!memcmp(&letter->path.dgid, gid, sizeof(*gid)))
			return true;
	return false;
}

/* Releases the lock while it writes. */
static void write_letter(struct lane *lane, struct letter *letter)
{
	struct umad_writer *writer = lane->writer;
	uint64_t begin_ns = clock_coarse_ns();
	int err;

	pthread_mutex_unlock(&writer->lock);
	err = umad_write(lane->fd, lane->agent, &letter->path, UMAD_QP1, letter->mad, 0);
	if (err)
		log_debug("a message was not sent: %s", strerror(-err));
	pthread_mutex_lock(&writer->lock);
	list_remove(&letter->link);
	lane->n_letters--;
	writer->n_letters--;
	/* Queued messages to the peer must not be overtaken by the caller's. */
	if (!has_letter_to(lane, &letter->path.dgid))
		note_write(writer, &letter->path.dgid, begin_ns);
	free(letter);
}

static void free_writer(struct umad_writer *writer)
{
	struct letter *letter;
	int i;

	for (i = 0; i < UMAD_LANES; i++) {
		list_for_each_entry_safe (letter, &writer->lane[i].letters, link)
			free(letter);
		fd_close(&writer->lane[i].fd);
		pthread_cond_destroy(&writer->lane[i].wake);
	}
	fd_close(&writer->fd);
	pthread_cond_destroy(&writer->ended);
	pthread_mutex_destroy(&writer->lock);
	free(writer);
}

static void *run_lane(void *arg)
{
	struct lane *lane = arg;
	struct umad_writer *writer = lane->writer;
	bool is_forsaken;

	pthread_mutex_lock(&writer->lock);
	while (!writer->is_ending || (!list_is_empty(&lane->letters) && writer->pid)) {
		if (list_is_empty(&lane->letters))
			pthread_cond_wait(&lane->wake, &writer->lock);
		else
			write_letter(lane, container_of(lane->letters.next, struct letter, link));
	}
	is_forsaken = --writer->n_threads == 0 && writer->pid == 0;
	pthread_cond_signal(&writer->ended);
	pthread_mutex_unlock(&writer->lock);
	if (is_forsaken)
		free_writer(writer);
	return NULL;
}

/* Chooses the lane of the peer's queued messages, else the one with the fewest. */
static struct lane *choose_lane(struct umad_writer *writer, const struct mad_gid *gid)
{
	struct lane *best = &writer->lane[0];
	int i;

	for (i = 0; i < UMAD_LANES; i++) {
		if (has_letter_to(&writer->lane[i], gid))
			return &writer->lane[i];
		if (writer->lane[i].n_letters < best->n_letters)
			best = &writer->lane[i];
	}
	return best;
}

static int start_lane(struct lane *lane)
{
	int err = lane->has_thread ? 0 : thread_start(run_lane, lane);

	if (err)
		return err;
	lane->writer->n_threads += !lane->has_thread;
	lane->has_thread = true;
	return 0;
}

static int put_letter(struct umad_writer *writer, const struct mad_path *path,
		      const uint8_t mad[MAD_BYTES])
{
	struct lane *lane = choose_lane(writer, &path->dgid);
	struct letter *letter;
	int err;

	if (writer->n_letters == UMAD_LETTERS)
		return -EAGAIN;
	letter = malloc(sizeof(*letter));
	if (!letter)
		return -ENOMEM;
	err = start_lane(lane);
	if (err) {
		free(letter);
		return err;
	}
	letter->path = *path;
	memcpy(letter->mad, mad, MAD_BYTES);
	list_append(&lane->letters, &letter->link);
	lane->n_letters++;
	writer->n_letters++;
	pthread_cond_signal(&lane->wake);
	return 0;
}

/* --- the API --------------------------------------------------------------- */

int umad_writer_send(struct umad_writer *writer, const struct mad_path *path,
		     const uint8_t mad[MAD_BYTES])
{
	const struct trusted *trusted;
	uint64_t begin_ns;
	int err;

	if (!path->grh)
		return umad_write(writer->fd, writer->agent, path, UMAD_QP1, mad, 0);
	pthread_mutex_lock(&writer->lock);
	begin_ns = clock_coarse_ns();
	trusted = find_trusted(writer, &path->dgid);
	if (!trusted || begin_ns > trusted->until_ns) {
		err = put_letter(writer, path, mad);
		pthread_mutex_unlock(&writer->lock);
		return err;
	}
	pthread_mutex_unlock(&writer->lock);
	err = umad_write(writer->fd, writer->agent, path, UMAD_QP1, mad, 0);
	pthread_mutex_lock(&writer->lock);
	note_write(writer, &path->dgid, begin_ns);
	pthread_mutex_unlock(&writer->lock);
	return err;
}

int umad_writer_new(int (*open)(void *arg, uint32_t *ret_agent), void *arg,
		    struct umad_writer **ret)
{
	struct umad_writer *writer = calloc(1, sizeof(*writer));
	struct lane *lane;
	int i, fd;

	if (!writer)
		return -ENOMEM;
	pthread_mutex_init(&writer->lock, NULL);
	pthread_cond_init(&writer->ended, NULL);
	writer->pid = getpid();
	for (i = 0; i < UMAD_LANES; i++) {
		lane = &writer->lane[i];
		lane->writer = writer;
		lane->fd = -1;
		list_init(&lane->letters);
		pthread_cond_init(&lane->wake, NULL);
	}
	fd = writer->fd = open(arg, &writer->agent);
	for (i = 0; i < UMAD_LANES && fd >= 0; i++)
		fd = writer->lane[i].fd = open(arg, &writer->lane[i].agent);
	if (fd >= 0)
		*ret = writer;
	else
		free_writer(writer);
	return fd < 0 ? fd : 0;
}

/* A child inherits the descriptors, but not the threads. */
static void close_in_child(struct umad_writer *writer)
{
	int i;

	for (i = 0; i < UMAD_LANES; i++)
		fd_close(&writer->lane[i].fd);
	fd_close(&writer->fd);
}

void umad_writer_close(struct umad_writer *writer)
{
	struct timespec limit = clock_after_ms(CLOSE_MS);
	bool is_last;
	int i, err = 0;

	if (!writer || writer->pid != getpid()) {
		if (writer)
			close_in_child(writer);
		return;
	}
	pthread_mutex_lock(&writer->lock);
	writer->is_ending = true;
	for (i = 0; i < UMAD_LANES; i++)
		pthread_cond_signal(&writer->lane[i].wake);
	while (writer->n_threads && !err)
		err = pthread_cond_clockwait(&writer->ended, &writer->lock, CLOCK_MONOTONIC,
					     &limit);
	is_last = writer->n_threads == 0;
	writer->pid = 0; /* the last thread to end frees it */
	pthread_mutex_unlock(&writer->lock);
	if (is_last)
		free_writer(writer);
}
