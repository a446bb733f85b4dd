/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as the file that a cmportd has left behind: what is found in it can be ended, told of
 * and forgotten, and new wills are kept beside it.
 *
 * An input is two ports and then wills, with a flag in the first byte; the rest of the file is as
 * it should be.
 */
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cm/fsm.h"
#include "lib/portd/server/will_store.h"
#include "lib/portd/server/will_table.h"

#define HEAD_BYTES  8192
#define OURS_BYTES  56 /* magic, layout, process ids, boot */
#define PORTS_BYTES 144
#define ME	    1
#define ID	    1

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static struct will_store *open_store(int fd)
{
	struct will_store *store = NULL;

	if (will_store_open(dup(fd), &store))
		abort();
	return store;
}

/* What a cmportd would have done has to be done at least. */
static void put(int fd, const void *bytes, size_t n, size_t at)
{
	if (pwrite(fd, bytes, n, (off_t)at) != (ssize_t)n)
		abort();
}

/* Seals are not guessed. */
static void seal_all(int fd, size_t n_wills)
{
	const uint32_t port = UINT32_C(0x706f7274);
	uint32_t seal, i;

	for (i = 0; i < n_wills; i++) {
		seal = WILL_SEAL ^ i;
		put(fd, &seal, sizeof(seal),
		    HEAD_BYTES + i * sizeof(struct will) + offsetof(struct will, seal));
	}
	put(fd, &port, sizeof(port), OURS_BYTES);
}

static int file_of(const uint8_t *data, size_t bytes)
{
	const uint8_t flags = bytes ? *data : 0;
	size_t n_ports = bytes > PORTS_BYTES ? PORTS_BYTES : bytes;
	int fd = memfd_create("wills", MFD_CLOEXEC);

	will_store_close(open_store(fd));
	if (ftruncate(fd, (off_t)(HEAD_BYTES + WILL_CHUNK * sizeof(struct will))))
		abort();
	put(fd, data, n_ports, OURS_BYTES);
	put(fd, data + n_ports, bytes - n_ports, HEAD_BYTES);
	if (flags & 1)
		seal_all(fd, bytes / sizeof(struct will));
	return fd;
}

static void tell(struct wills *wills)
{
	int handle = wills_handle(wills, (const char[PORTD_DEVICE_BYTES]){ "a" }, 1, 0);
	struct cm_record told = { .state = CM_ESTABLISHED,
				  .handle = (uint8_t)handle,
				  .local_comm_id = ID };

	assert(handle >= 0 && handle < WILL_PORTS);
	assert(wills_set(wills, ME, &told) == 0);
}

static void end_all(struct wills *wills)
{
	const struct will *will;
	struct cm_record is;

	while ((will = wills_orphan(wills, NULL))) {
		assert(will->is.state < CM_N_STATES && will->is.handle < WILL_PORTS);
		wills_inherit(wills, will, &is);
		wills_buried(wills, is.local_comm_id);
	}
}

static struct wills *begin(int fd)
{
	struct wills *wills = wills_new(1);

	if (!wills || wills_keep(wills, open_store(fd)))
		abort();
	return wills;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	int fd = file_of(data, bytes);
	struct wills *wills = begin(fd);

	tell(wills);
	end_all(wills);
	assert(wills_count(wills, ME) == 1);
	wills_free(wills);
	wills = begin(fd);
	assert(wills_orphan(wills, NULL)->is.local_comm_id == ID);
	assert(wills_orphan(wills, wills_orphan(wills, NULL)) == NULL);
	wills_free(wills);
	close(fd);
	return 0;
}
