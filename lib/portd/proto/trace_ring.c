/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The trace ring. There is one writer and any number of readers, and none waits: a reader copies
 * messages, and checks afterwards which of them the writer has overwritten meanwhile.
 */
#include "lib/portd/proto/trace_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_BYTES    64
#define MAGIC	      (UINT32_C(0x70635200) | PORTD_VERSION)
#define CHUNK_ENTRIES 1024 /* of a file; their memory is reserved together */

struct trace_memory {
	uint32_t magic; /* written last, when the ring is complete */
	uint32_t entry_bytes;
	uint32_t n_entries;
	_Alignas(LINE_BYTES) _Atomic uint64_t begun;   /* including the one being written */
	_Alignas(LINE_BYTES) _Atomic uint64_t written; /* complete messages */
	_Alignas(LINE_BYTES) struct trace_entry message[];
};

static size_t memory_bytes(uint32_t n_entries)
{
	return sizeof(struct trace_memory) + n_entries * sizeof(struct trace_entry);
}

/* --- writing ------------------------------------------------------------- */

static int map_for_writing(struct trace_ring *trace)
{
	void *ring = mmap(NULL, memory_bytes(trace->n_entries), PROT_READ | PROT_WRITE, MAP_SHARED,
			  trace->fd, 0);

	if (ring == MAP_FAILED)
		return -errno;
	trace->ring = ring;
	return 0;
}

static void write_head(struct trace_ring *trace)
{
	trace->ring->entry_bytes = sizeof(struct trace_entry);
	trace->ring->n_entries = trace->n_entries;
	atomic_thread_fence(memory_order_release);
	trace->ring->magic = MAGIC;
}

static bool is_ring(const struct trace_memory *head, off_t bytes)
{
	return head->magic == MAGIC && head->entry_bytes == sizeof(struct trace_entry) &&
	       head->n_entries >= 1 && head->n_entries <= RECORDING_ENTRIES_MAX &&
	       bytes == (off_t)memory_bytes(head->n_entries);
}

/*
 * A store to a hole raises SIGBUS when the file system is full. Pages that are mapped here, many at
 * a time, cost less than a page fault each.
 */
static int reserve_entries(struct trace_ring *trace, uint32_t n_entries)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t from = trace->n_reserved ? memory_bytes(trace->n_reserved) & ~(page - 1) : 0, to;

	if (n_entries > trace->n_entries)
		n_entries = trace->n_entries;
	to = memory_bytes(n_entries);
	if (fallocate(trace->fd, 0, (off_t)from, (off_t)(to - from)))
		return -errno;
	madvise((char *)trace->ring + from, to - from, MADV_POPULATE_WRITE);
	trace->n_reserved = n_entries;
	return 0;
}

int trace_ring_open(struct trace_ring *trace, int fd, uint32_t n_entries)
{
	const off_t bytes = (off_t)memory_bytes(n_entries);
	struct trace_memory head = { .magic = 0 };
	struct stat stat;
	int err;

	*trace = (struct trace_ring){ .fd = fd, .n_entries = n_entries };
	if (fstat(fd, &stat) || pread(fd, &head, sizeof(head), 0) < 0)
		return -errno;
	if (!is_ring(&head, stat.st_size) || head.n_entries != n_entries) {
		if (ftruncate(fd, 0) || ftruncate(fd, bytes))
			return -errno;
		head.magic = 0;
	}
	err = map_for_writing(trace);
	if (!err)
		err = reserve_entries(trace, CHUNK_ENTRIES);
	if (err)
		return err;
	if (!head.magic)
		write_head(trace);
	/* Drop the message that the previous cmportd was writing when it was killed. */
	atomic_store(&trace->ring->begun, atomic_load(&trace->ring->written));
	return 0;
}

void trace_ring_fini(struct trace_ring *trace)
{
	if (trace->ring)
		munmap(trace->ring, memory_bytes(trace->n_entries));
	if (trace->fd >= 0)
		close(trace->fd);
	*trace = (struct trace_ring){ .fd = -1 };
}

struct trace_entry *trace_ring_begin(struct trace_ring *trace)
{
	struct trace_memory *ring = trace->ring;
	const uint64_t number = atomic_load_explicit(&ring->begun, memory_order_relaxed) + 1;
	const uint32_t at = (uint32_t)(number % trace->n_entries);

	if (at >= trace->n_reserved && reserve_entries(trace, at + CHUNK_ENTRIES))
		return NULL;
	atomic_store_explicit(&ring->begun, number, memory_order_relaxed);
	/* A reader that sees any byte of the message also sees the new value of begun. */
	atomic_thread_fence(memory_order_release);
	ring->message[at].number = number;
	return &ring->message[at];
}

void trace_ring_end(struct trace_ring *trace)
{
	struct trace_memory *ring = trace->ring;
	const uint64_t number = atomic_load_explicit(&ring->begun, memory_order_relaxed);

	atomic_store_explicit(&ring->written, number, memory_order_release);
}

/* --- reading ------------------------------------------------------------- */

static int read_all(int fd, void *ret, size_t bytes, off_t at)
{
	ssize_t n;

	for (; bytes; bytes -= (size_t)n, at += n, ret = (char *)ret + n) {
		n = pread(fd, ret, bytes, at);
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EPROTO; /* truncated meanwhile */
	}
	return 0;
}

/* Copies the messages after @first up to @last, which fit into the ring. */
static int copy_entries(const struct trace_reader *reader, uint64_t first, uint64_t last)
{
	struct trace_entry *entries = reader->ring->message;
	uint32_t at, n;
	int err = 0;

	for (; !err && first < last; first += n) {
		at = (uint32_t)((first + 1) % reader->n_entries);
		n = reader->n_entries - at;
		if (last - first < n)
			n = (uint32_t)(last - first);
		err = read_all(reader->fd, &entries[at], n * sizeof(*entries),
			       (off_t)memory_bytes(at));
	}
	return err;
}

static uint64_t oldest_kept(const struct trace_reader *reader, uint64_t begun)
{
	return begun > reader->n_entries ? begun - reader->n_entries : 0;
}

/* Return: 0; -ENODATA if the file is empty; -EPROTO; -errno. */
static int read_head(int fd, struct trace_memory *ret)
{
	struct stat stat;
	int err;

	if (fstat(fd, &stat))
		return -errno;
	if (stat.st_size == 0)
		return -ENODATA;
	err = read_all(fd, ret, sizeof(*ret), 0);
	return err || is_ring(ret, stat.st_size) ? err : -EPROTO;
}

/*
 * The head is read before and after the messages are copied. The first read yields the latest
 * complete message; the second shows which of the oldest were overwritten meanwhile.
 */
int trace_reader_update(struct trace_reader *reader)
{
	struct trace_memory head, *copy = reader->ring;
	uint64_t first, overwritten;
	int err = read_head(reader->fd, &head);

	if (err || head.n_entries != reader->n_entries)
		return err ? err : -EPROTO;
	if (head.written < reader->number)
		reader->number = 0;
	first = oldest_kept(reader, head.written);
	if (first < reader->number)
		first = reader->number;
	err = copy_entries(reader, first, head.written);
	if (!err)
		err = read_all(reader->fd, copy, sizeof(*copy), 0);
	if (err)
		return err;
	overwritten = oldest_kept(reader, copy->begun);
	copy->written = head.written;
	if (first < overwritten)
		first = overwritten < head.written ? overwritten : head.written;
	reader->n_missed += first - reader->number;
	reader->number = first;
	return 0;
}

int trace_reader_open(struct trace_reader *reader, int fd)
{
	struct trace_memory head;
	void *copy = MAP_FAILED;
	int err = read_head(fd, &head);

	*reader = (struct trace_reader){ .ring = NULL };
	if (!err)
		copy = mmap(NULL, memory_bytes(head.n_entries), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!err && copy == MAP_FAILED)
		err = -errno;
	if (err) {
		close(fd);
		return err;
	}
	*reader = (struct trace_reader){ .ring = copy, .fd = fd, .n_entries = head.n_entries };
	err = trace_reader_update(reader);
	reader->n_missed = 0;
	if (err)
		trace_reader_fini(reader);
	return err;
}

void trace_reader_fini(struct trace_reader *reader)
{
	if (reader->ring) {
		munmap(reader->ring, memory_bytes(reader->n_entries));
		close(reader->fd);
	}
	*reader = (struct trace_reader){ .ring = NULL };
}

void trace_reader_skip(struct trace_reader *reader)
{
	reader->number = trace_reader_written(reader);
	reader->ring->written = reader->number;
}

uint64_t trace_reader_written(const struct trace_reader *reader)
{
	struct trace_memory head;

	return read_head(reader->fd, &head) ? reader->number : head.written;
}

bool trace_reader_take(struct trace_reader *reader, struct trace_entry *ret)
{
	if (!reader->ring || reader->number == reader->ring->written)
		return false;
	*ret = reader->ring->message[++reader->number % reader->n_entries];
	return true;
}
