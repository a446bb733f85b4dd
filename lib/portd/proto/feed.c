/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring of the feed. One writes, many read, nobody waits: a reader copies a message and looks
 * afterwards whether the writer had come round to it meanwhile.
 */
#include "lib/portd/proto/feed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS	   (F_SEAL_SHRINK | F_SEAL_GROW)
#define LINE_BYTES 64

struct feed_ring {
	_Alignas(LINE_BYTES) _Atomic uint64_t begun; /* messages, counting the one being written */
	_Alignas(LINE_BYTES) _Atomic uint64_t written; /* messages, without it */
	_Alignas(LINE_BYTES) struct feed_message message[FEED_MESSAGES];
};

/* --- writing ------------------------------------------------------------- */

int feed_init(struct feed *feed)
{
	void *ring;

	feed->ring = NULL;
	feed->fd = memfd_create("purecm feed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (feed->fd < 0 || ftruncate(feed->fd, sizeof(struct feed_ring)))
		return -errno;
	ring = mmap(NULL, sizeof(struct feed_ring), PROT_READ | PROT_WRITE, MAP_SHARED, feed->fd,
		    0);
	if (ring == MAP_FAILED)
		return -errno;
	feed->ring = ring;
	/* From now on only that mapping writes. A kernel before 5.1 cannot promise it, and has to
	 * trust those who look on, who are root or run this cmportd. */
	if (fcntl(feed->fd, F_ADD_SEALS, SEALS | F_SEAL_FUTURE_WRITE) &&
	    fcntl(feed->fd, F_ADD_SEALS, SEALS))
		return -errno;
	return 0;
}

void feed_fini(struct feed *feed)
{
	if (feed->ring)
		munmap(feed->ring, sizeof(*feed->ring));
	if (feed->fd >= 0)
		close(feed->fd);
	*feed = (struct feed){ .fd = -1 };
}

struct feed_message *feed_next(struct feed *feed)
{
	struct feed_ring *ring = feed->ring;
	const uint64_t number = atomic_load_explicit(&ring->begun, memory_order_relaxed) + 1;
	struct feed_message *message = &ring->message[number % FEED_MESSAGES];

	atomic_store_explicit(&ring->begun, number, memory_order_relaxed);
	/* Before any byte of the message: whoever sees one of those sees this, too. */
	atomic_thread_fence(memory_order_release);
	message->number = number;
	return message;
}

void feed_put(struct feed *feed)
{
	struct feed_ring *ring = feed->ring;

	atomic_store_explicit(&ring->written,
			      atomic_load_explicit(&ring->begun, memory_order_relaxed),
			      memory_order_release);
}

/* --- reading ------------------------------------------------------------- */

/* A file that could be cut short would be the end of who has mapped it. */
static bool is_feed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat stat;

	return seals >= 0 && (seals & SEALS) == SEALS && fstat(fd, &stat) == 0 &&
	       stat.st_size == sizeof(struct feed_ring);
}

/* All of it at once, so that its pages are there when cmportd writes to them. */
int feed_reader_init(struct feed_reader *reader, int fd)
{
	void *ring;

	*reader = (struct feed_reader){ .ring = NULL };
	if (!is_feed(fd))
		return -EPROTO;
	ring = mmap(NULL, sizeof(struct feed_ring), PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (ring == MAP_FAILED)
		return -errno;
	reader->ring = ring;
	reader->number = feed_written(reader);
	return 0;
}

void feed_reader_fini(struct feed_reader *reader)
{
	if (reader->ring)
		munmap(reader->ring, sizeof(*reader->ring));
	*reader = (struct feed_reader){ .ring = NULL };
}

uint64_t feed_written(const struct feed_reader *reader)
{
	return atomic_load_explicit(&reader->ring->written, memory_order_acquire);
}

static bool is_overwritten(const struct feed_reader *reader, uint64_t number)
{
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&reader->ring->begun, memory_order_relaxed) - number >=
	       FEED_MESSAGES;
}

/* Half of the ring is left to the writer, lest the next one is gone as well. */
static void skip(struct feed_reader *reader)
{
	const uint64_t next = feed_written(reader) - FEED_MESSAGES / 2;

	reader->n_missed += next - reader->number;
	reader->number = next;
}

bool feed_take(struct feed_reader *reader, struct feed_message *ret)
{
	uint64_t next;

	while (feed_written(reader) != reader->number) {
		next = reader->number + 1;
		memcpy(ret, &reader->ring->message[next % FEED_MESSAGES], sizeof(*ret));
		if (!is_overwritten(reader, next)) {
			reader->number = next;
			return true;
		}
		skip(reader);
	}
	return false;
}
