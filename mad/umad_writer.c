/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes MADs to umad: see umad_writer.h. */
#include "mad/umad_writer.h"

#include <errno.h>
#include <pthread.h>
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

struct queued {
	struct list link;
	struct mad_path path;
	uint8_t mad[MAD_BYTES];
};

/* A thread and its descriptor. */
struct worker {
	struct umad_writer *writer;
	int fd;
	uint32_t agent;
	bool has_thread;
	struct list queue; /* the first is being written */
	unsigned int n_queued;
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
	unsigned int n_queued; /* read without the lock, too */
	struct worker worker[UMAD_THREADS];
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

/* --- workers ---------------------------------------------------------------- */

static bool has_queued_to(const struct worker *worker, const struct mad_gid *gid)
{
	const struct queued *queued;

	list_for_each_entry (queued, &worker->queue, link)
		if (!memcmp(&queued->path.dgid, gid, sizeof(*gid)))
			return true;
	return false;
}

/* Releases the lock while it writes. */
static void write_queued(struct worker *worker, struct queued *queued)
{
	struct umad_writer *writer = worker->writer;
	uint64_t begin_ns = clock_coarse_ns();
	int err;

	pthread_mutex_unlock(&writer->lock);
	err = umad_write(worker->fd, worker->agent, &queued->path, UMAD_QP1, queued->mad, 0);
	if (err)
		log_debug("a message was not sent: %s", strerror(-err));
	pthread_mutex_lock(&writer->lock);
	list_remove(&queued->link);
	worker->n_queued--;
	__atomic_sub_fetch(&writer->n_queued, 1, __ATOMIC_RELEASE);
	/* Queued messages to the peer must not be overtaken by the caller's. */
	if (!has_queued_to(worker, &queued->path.dgid))
		note_write(writer, &queued->path.dgid, begin_ns);
	free(queued);
}

static void free_writer(struct umad_writer *writer)
{
	struct queued *queued;
	int i;

	for (i = 0; i < UMAD_THREADS; i++) {
		list_for_each_entry_safe (queued, &writer->worker[i].queue, link)
			free(queued);
		fd_close(&writer->worker[i].fd);
		pthread_cond_destroy(&writer->worker[i].wake);
	}
	fd_close(&writer->fd);
	pthread_cond_destroy(&writer->ended);
	pthread_mutex_destroy(&writer->lock);
	free(writer);
}

static void *run_worker(void *arg)
{
	struct worker *worker = arg;
	struct umad_writer *writer = worker->writer;
	bool is_abandoned;

	pthread_mutex_lock(&writer->lock);
	while (!writer->is_ending || (!list_is_empty(&worker->queue) && writer->pid)) {
		if (list_is_empty(&worker->queue))
			pthread_cond_wait(&worker->wake, &writer->lock);
		else
			write_queued(worker, container_of(worker->queue.next, struct queued, link));
	}
	is_abandoned = --writer->n_threads == 0 && writer->pid == 0;
	pthread_cond_signal(&writer->ended);
	pthread_mutex_unlock(&writer->lock);
	if (is_abandoned)
		free_writer(writer);
	return NULL;
}

static bool start_worker(struct worker *worker)
{
	if (!worker->has_thread && thread_start(run_worker, worker) == 0) {
		worker->writer->n_threads++;
		worker->has_thread = true;
	}
	return worker->has_thread;
}

/* Return: a worker that has a thread, or NULL. */
static struct worker *one_with_a_thread(struct umad_writer *writer)
{
	int i;

	for (i = 0; i < UMAD_THREADS; i++)
		if (writer->worker[i].has_thread)
			return &writer->worker[i];
	return NULL;
}

/*
 * Return: the worker of the peer's queued messages, else the one with the fewest; if that one has
 * no thread and none can be started, another one; NULL if none has a thread.
 */
static struct worker *choose_worker(struct umad_writer *writer, const struct mad_gid *gid)
{
	struct worker *best = &writer->worker[0];
	int i;

	for (i = 0; i < UMAD_THREADS; i++) {
		if (has_queued_to(&writer->worker[i], gid))
			return &writer->worker[i];
		if (writer->worker[i].n_queued < best->n_queued)
			best = &writer->worker[i];
	}
	return start_worker(best) ? best : one_with_a_thread(writer);
}

static int queue_mad(struct umad_writer *writer, const struct mad_path *path,
		     const uint8_t mad[MAD_BYTES])
{
	struct worker *worker = choose_worker(writer, &path->dgid);
	struct queued *queued;

	if (!worker || writer->n_queued == UMAD_QUEUED_MAX)
		return -EAGAIN;
	queued = malloc(sizeof(*queued));
	if (!queued)
		return -ENOMEM;
	queued->path = *path;
	memcpy(queued->mad, mad, MAD_BYTES);
	list_append(&worker->queue, &queued->link);
	worker->n_queued++;
	__atomic_add_fetch(&writer->n_queued, 1, __ATOMIC_RELEASE);
	pthread_cond_signal(&worker->wake);
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
		err = queue_mad(writer, path, mad);
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

bool umad_writer_has_queued(struct umad_writer *writer, const struct mad_gid *gid)
{
	bool has = false;
	int i;

	if (!__atomic_load_n(&writer->n_queued, __ATOMIC_ACQUIRE))
		return false;
	pthread_mutex_lock(&writer->lock);
	for (i = 0; i < UMAD_THREADS && !has; i++)
		has = has_queued_to(&writer->worker[i], gid);
	pthread_mutex_unlock(&writer->lock);
	return has;
}

int umad_writer_new(int (*open)(void *arg, uint32_t *ret_agent), void *arg,
		    struct umad_writer **ret)
{
	struct umad_writer *writer = calloc(1, sizeof(*writer));
	struct worker *worker;
	int i, fd;

	if (!writer)
		return -ENOMEM;
	pthread_mutex_init(&writer->lock, NULL);
	pthread_cond_init(&writer->ended, NULL);
	writer->pid = getpid();
	for (i = 0; i < UMAD_THREADS; i++) {
		worker = &writer->worker[i];
		worker->writer = writer;
		worker->fd = -1;
		list_init(&worker->queue);
		pthread_cond_init(&worker->wake, NULL);
	}
	fd = writer->fd = open(arg, &writer->agent);
	for (i = 0; i < UMAD_THREADS && fd >= 0; i++)
		fd = writer->worker[i].fd = open(arg, &writer->worker[i].agent);
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

	for (i = 0; i < UMAD_THREADS; i++)
		fd_close(&writer->worker[i].fd);
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
	for (i = 0; i < UMAD_THREADS; i++)
		pthread_cond_signal(&writer->worker[i].wake);
	while (writer->n_threads && !err)
		err = pthread_cond_clockwait(&writer->ended, &writer->lock, CLOCK_MONOTONIC,
					     &limit);
	is_last = writer->n_threads == 0;
	writer->pid = 0; /* the last thread to end frees it */
	pthread_mutex_unlock(&writer->lock);
	if (is_last)
		free_writer(writer);
}
