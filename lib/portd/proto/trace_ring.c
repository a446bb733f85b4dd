/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The trace ring. One writes, many read, nobody waits: a reader copies a message and looks
 * afterwards whether the writer had come round to it meanwhile.
 */
#include "lib/portd/proto/trace_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS	   (F_SEAL_SHRINK | F_SEAL_GROW)
#define LINE_BYTES 64

struct trace_memory {
	_Alignas(LINE_BYTES) _Atomic uint64_t begun; /* messages, counting the one being written */
	_Alignas(LINE_BYTES) _Atomic uint64_t written; /* messages, without it */
	_Alignas(LINE_BYTES) struct trace_entry message[TRACE_RING_ENTRIES];
};

/* --- writing ------------------------------------------------------------- */

int trace_ring_init(struct trace_ring *trace)
{
	void *ring;

	trace->ring = NULL;
	trace->fd = memfd_create("purecm trace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (trace->fd < 0 || ftruncate(trace->fd, sizeof(struct trace_memory)))
		return -errno;
	ring = mmap(NULL, sizeof(struct trace_memory), PROT_READ | PROT_WRITE, MAP_SHARED,
		    trace->fd, 0);
	if (ring == MAP_FAILED)
		return -errno;
	trace->ring = ring;
	/* From now on only that mapping writes. A kernel before 5.1 cannot promise it, and has to
	 * trust the tracers, who are root or run this cmportd. */
	if (fcntl(trace->fd, F_ADD_SEALS, SEALS | F_SEAL_FUTURE_WRITE) &&
	    fcntl(trace->fd, F_ADD_SEALS, SEALS))
		return -errno;
	return 0;
}

void trace_ring_fini(struct trace_ring *trace)
{
	if (trace->ring)
		munmap(trace->ring, sizeof(*trace->ring));
	if (trace->fd >= 0)
		close(trace->fd);
	*trace = (struct trace_ring){ .fd = -1 };
}

struct trace_entry *trace_ring_next(struct trace_ring *trace)
{
	struct trace_memory *ring = trace->ring;
	const uint64_t number = atomic_load_explicit(&ring->begun, memory_order_relaxed) + 1;
	struct trace_entry *message = &ring->message[number % TRACE_RING_ENTRIES];

	atomic_store_explicit(&ring->begun, number, memory_order_relaxed);
	/* Before any byte of the message: whoever sees one of those sees this, too. */
	atomic_thread_fence(memory_order_release);
	message->number = number;
	return message;
}

void trace_ring_publish(struct trace_ring *trace)
{
	struct trace_memory *ring = trace->ring;

	atomic_store_explicit(&ring->written,
			      atomic_load_explicit(&ring->begun, memory_order_relaxed),
			      memory_order_release);
}

/* --- reading ------------------------------------------------------------- */

/* All of it at once, so that its pages are there when cmportd writes to them. */
int trace_reader_init(struct trace_reader *reader, int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat stat;
	void *ring;

	*reader = (struct trace_reader){ .ring = NULL };
	/* If the file could be truncated, a reader that has mapped it could get SIGBUS. */
	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &stat) ||
	    stat.st_size != sizeof(struct trace_memory))
		return -EPROTO;
	ring = mmap(NULL, sizeof(struct trace_memory), PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (ring == MAP_FAILED)
		return -errno;
	reader->ring = ring;
	reader->number = trace_reader_written(reader);
	return 0;
}

void trace_reader_fini(struct trace_reader *reader)
{
	if (reader->ring)
		munmap(reader->ring, sizeof(*reader->ring));
	*reader = (struct trace_reader){ .ring = NULL };
}

uint64_t trace_reader_written(const struct trace_reader *reader)
{
	return atomic_load_explicit(&reader->ring->written, memory_order_acquire);
}

static bool is_overwritten(const struct trace_reader *reader, uint64_t number)
{
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&reader->ring->begun, memory_order_relaxed) - number >=
	       TRACE_RING_ENTRIES;
}

bool trace_reader_take(struct trace_reader *reader, struct trace_entry *ret)
{
	uint64_t next;

	while (trace_reader_written(reader) != reader->number) {
		next = reader->number + 1;
		memcpy(ret, &reader->ring->message[next % TRACE_RING_ENTRIES], sizeof(*ret));
		if (!is_overwritten(reader, next)) {
			reader->number = next;
			return true;
		}
		/* Half of the ring is left to the writer, lest the next one is gone as well. */
		next = trace_reader_written(reader) - TRACE_RING_ENTRIES / 2;
		reader->n_missed += next - reader->number;
		reader->number = next;
	}
	return false;
}
