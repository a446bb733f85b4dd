/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as the state file of a previous cmportd: connections in it can be ended, reported and
 * dropped, and new ones are added.
 *
 * An input is two ports and then tracked connections, with a flag in the first byte; the rest of
 * the file is valid.
 */
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cm/fsm.h"
#include "lib/portd/server/files/state_file.h"
#include "lib/portd/server/files/tracked_file.h"
#include "lib/portd/server/ledger/tracked_table.h"
#include "lib/portd/server/ledger/tracked_adopt.h"
#include "tests/unit/portd/tracked_put.h"

#define HEAD_BYTES  8192
#define OURS_BYTES  56 /* magic, layout, process ids, boot */
#define PORTS_BYTES 160
#define ME	    1
#define ID	    1

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static struct tracked_store file;

static struct tracked_store *open_store(int fd)
{
	tracked_file_close(&file);
	file = (struct tracked_store){ .fd = -1 };
	if (tracked_file_open(&file, fd, "s.state", false))
		abort();
	return &file;
}

/* Does at least what cmportd does with records. */
static void put(int fd, const void *bytes, size_t n, size_t at)
{
	if (pwrite(fd, bytes, n, STATE_FILE_TRACKED_AT + (off_t)at) != (ssize_t)n)
		abort();
}

/* A valid seal cannot be guessed. */
static void seal_all(int fd, size_t n_tracked)
{
	const uint32_t port = UINT32_C(0x706f7274);
	uint32_t seal, i;

	for (i = 0; i < n_tracked; i++) {
		seal = TRACKED_SEAL ^ i;
		put(fd, &seal, sizeof(seal),
		    HEAD_BYTES + i * sizeof(struct tracked) + offsetof(struct tracked, seal));
	}
	put(fd, &port, sizeof(port), OURS_BYTES);
}

static int file_of(const uint8_t *data, size_t bytes)
{
	const uint8_t flags = bytes ? *data : 0;
	size_t n_ports = bytes > PORTS_BYTES ? PORTS_BYTES : bytes;
	int fd = memfd_create("tracked", MFD_CLOEXEC);

	open_store(fd);
	if (ftruncate(fd, STATE_FILE_TRACKED_AT +
				  (off_t)(HEAD_BYTES + TRACKED_CHUNK * sizeof(struct tracked))))
		abort();
	put(fd, data, n_ports, OURS_BYTES);
	put(fd, data + n_ports, bytes - n_ports, HEAD_BYTES);
	if (flags & 1)
		seal_all(fd, bytes / sizeof(struct tracked));
	return fd;
}

static void report_record(struct tracker *tracker)
{
	int handle = tracker_handle(tracker, &(struct tracked_port){ 1, 1, "a" }, 0);
	struct cm_record told = { .state = CM_ESTABLISHED,
				  .handle = (uint8_t)handle,
				  .local_comm_id = ID };

	assert(handle >= 0 && handle < TRACKED_PORTS);
	assert(tracked_put(tracker, ME, &told) == 0);
}

static void end_all(struct tracker *tracker)
{
	const struct tracked *tracked;
	struct cm_record is;

	while ((tracked = tracker_orphan(tracker, NULL))) {
		assert(tracked->is.state < CM_N_STATES && tracked->is.handle < TRACKED_PORTS);
		tracker_adopt(tracker, tracked, &is);
		tracker_reaped(tracker, is.local_comm_id);
	}
}

static struct tracker *begin(int fd)
{
	struct tracker *tracker = tracker_new(1);

	if (!tracker || tracker_keep(tracker, open_store(fd)) ||
	    tracker_own(tracker, ME, &(struct tracked_owner){ .block = 1 }))
		abort();
	return tracker;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	int fd = file_of(data, bytes);
	struct tracker *tracker = begin(fd);

	report_record(tracker);
	end_all(tracker);
	assert(tracker_count(tracker, ME) == 1);
	tracker_free(tracker);
	tracker = begin(fd);
	assert(tracker_orphan(tracker, NULL)->is.local_comm_id == ID);
	assert(tracker_orphan(tracker, tracker_orphan(tracker, NULL)) == NULL);
	tracker_free(tracker);
	close(fd);
	return 0;
}
