/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of the state file that stores tracked connections: see tracked_file.h. */
#include "lib/portd/server/files/tracked_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "lib/portd/server/files/state_file.h"

#define MAGIC	     (UINT32_C(0x70635700) | PORTD_VERSION)
#define VERSION_BITS 8
#define PORT_SEAL    UINT32_C(0x706f7274)
#define BOOT_BYTES   40
#define BOOT_ID	     "/proc/sys/kernel/random/boot_id"
#define PID_NS	     "/proc/self/ns/pid"
#define CHUNK_BYTES  (TRACKED_CHUNK * sizeof(struct tracked))

#define LAYOUT                                                                    \
	(sizeof(struct tracked) << 24 | offsetof(struct tracked, is.path) << 16 | \
	 offsetof(struct tracked, seal) << 8 | CM_N_STATES)

struct stored_port {
	uint32_t seal;
	uint8_t port_num;
	char device[PORTD_DEVICE_BYTES];
	uint64_t guid;
};

struct tracked_head {
	uint32_t magic;	 /* written last, when the header is complete */
	uint32_t layout; /* LAYOUT; it differs between 32 and 64 bits */
	uint64_t pid_ns;
	char boot[BOOT_BYTES]; /* boot id of the kernel at the time */
	struct stored_port port[TRACKED_PORTS];
};

#define HEAD_BYTES 8192
#define MAP_BYTES  (STATE_FILE_TRACKED_AT + HEAD_BYTES + TRACKED_CHUNKS_MAX * CHUNK_BYTES)

_Static_assert(sizeof(struct tracked_head) <= HEAD_BYTES, "the head has its room");
_Static_assert(HEAD_BYTES % _Alignof(struct tracked) == 0, "records are aligned");
_Static_assert((sizeof(void *) == 4 || LAYOUT == UINT32_C(0x80347c10)) &&
		       sizeof(struct stored_port) == 80 &&
		       offsetof(struct tracked_head, port) == 56,
	       "a new layout needs a new PORTD_VERSION");

/* Return: the offset in the file of a byte of the part. */
static off_t offset_of(size_t byte)
{
	return STATE_FILE_TRACKED_AT + (off_t)byte;
}

/* --- validation ----------------------------------------------------------- */

static void read_boot(char ret[BOOT_BYTES])
{
	memset(ret, 0, BOOT_BYTES);
	fd_read_file(BOOT_ID, ret, BOOT_BYTES);
}

static uint64_t read_pid_ns(void)
{
	struct stat stat_of;

	return stat(PID_NS, &stat_of) ? 0 : (uint64_t)stat_of.st_ino;
}

static bool is_of_this_boot(const struct tracked_head *head)
{
	char boot[BOOT_BYTES];

	read_boot(boot);
	return memcmp(head->boot, boot, BOOT_BYTES) == 0;
}

static bool is_ours(const struct tracked_head *head)
{
	return head->magic == MAGIC && head->layout == LAYOUT && is_of_this_boot(head);
}

/* Another version stores what this one cannot read; after a boot there is nothing to be read. */
static bool is_of_another_version(const struct tracked_head *head)
{
	return head->magic >> VERSION_BITS == MAGIC >> VERSION_BITS && is_of_this_boot(head);
}

static void warn_of_another_version(const char *path)
{
	log_warn("the connections in %s were stored by another version of cmportd, which this one "
		 "cannot read: the peers of programs that have ended since are not told; they "
		 "notice at their next message",
		 path);
}

/* --- initialization ------------------------------------------------------ */

static int reserve_bytes(const struct tracked_store *store, size_t from, size_t bytes)
{
	return fallocate(store->fd, 0, offset_of(from), (off_t)bytes) ? -errno : 0;
}

/* Truncated first, so that added bytes are zero. */
static int renew_file(struct tracked_store *store)
{
	struct tracked_head *head = store->head;
	int err;

	if (ftruncate(store->fd, offset_of(0)))
		return -errno;
	err = reserve_bytes(store, 0, HEAD_BYTES);
	if (err)
		return err;
	head->layout = LAYOUT;
	head->pid_ns = read_pid_ns();
	read_boot(head->boot);
	atomic_signal_fence(memory_order_seq_cst);
	head->magic = MAGIC;
	return 0;
}

/*
 * An incomplete chunk must not reappear when the file grows. Holes are filled, because a store to
 * one could fail for lack of memory. Device names are terminated, because they are compared as
 * strings.
 */
static int take_over(struct tracked_store *store, size_t bytes)
{
	struct tracked_head *head = store->head;
	size_t n = (bytes - HEAD_BYTES) / CHUNK_BYTES;
	unsigned int i;

	store->n_chunks = n < TRACKED_CHUNKS_MAX ? (uint32_t)n : TRACKED_CHUNKS_MAX;
	for (i = 0; i < TRACKED_PORTS; i++) {
		head->port[i].device[PORTD_DEVICE_BYTES - 1] = '\0';
		if (head->port[i].seal != PORT_SEAL)
			memset(&head->port[i], 0, sizeof(head->port[i]));
	}
	store->is_same_view = head->pid_ns == read_pid_ns();
	head->pid_ns = read_pid_ns();
	if (ftruncate(store->fd, offset_of(HEAD_BYTES + store->n_chunks * CHUNK_BYTES)))
		return -errno;
	return reserve_bytes(store, 0, HEAD_BYTES + store->n_chunks * CHUNK_BYTES);
}

/* --- chunks -------------------------------------------------------------- */

struct tracked *tracked_store_chunk(const struct tracked_store *store, uint32_t i)
{
	return (struct tracked *)((char *)store->head + HEAD_BYTES + i * CHUNK_BYTES);
}

struct tracked *tracked_store_grow(struct tracked_store *store)
{
	int err = -EFBIG;

	if (!store->is_full && store->n_chunks < TRACKED_CHUNKS_MAX)
		err = reserve_bytes(store, HEAD_BYTES + store->n_chunks * CHUNK_BYTES, CHUNK_BYTES);
	if (!err)
		return tracked_store_chunk(store, store->n_chunks++);
	if (!store->is_full)
		log_warn("connections beyond the %u-th are not in the state file: %s; should "
			 "cmportd be killed, their peers are not told when they end",
			 store->n_chunks * TRACKED_CHUNK, strerror(-err));
	store->is_full = true;
	return NULL;
}

void tracked_store_trim(struct tracked_store *store)
{
	if (ftruncate(store->fd, offset_of(HEAD_BYTES)) == 0)
		store->n_chunks = 0;
}

/* --- ports --------------------------------------------------------------- */

void tracked_store_name_port(struct tracked_store *store, uint8_t handle,
			     const struct tracked_port *named)
{
	struct stored_port *port = &store->head->port[handle];

	port->seal = 0;
	atomic_signal_fence(memory_order_seq_cst);
	memcpy(port->device, named->device, PORTD_DEVICE_BYTES);
	port->port_num = named->port_num;
	port->guid = named->guid;
	atomic_signal_fence(memory_order_seq_cst);
	port->seal = PORT_SEAL;
}

bool tracked_store_port(const struct tracked_store *store, uint8_t handle, struct tracked_port *ret)
{
	const struct stored_port *port;

	if (handle >= TRACKED_PORTS)
		return false;
	port = &store->head->port[handle];
	if (port->seal != PORT_SEAL)
		return false;
	ret->guid = port->guid;
	ret->port_num = port->port_num;
	memcpy(ret->device, port->device, PORTD_DEVICE_BYTES);
	return true;
}

/* --- opening ------------------------------------------------------------- */

int tracked_file_open(struct tracked_store *store, int fd, const char *path, bool is_moved)
{
	struct stat stat;
	size_t bytes;
	char *mapped;

	store->fd = fd;
	store->is_same_view = true;
	if (fstat(fd, &stat))
		return -errno;
	if (fallocate(fd, 0, offset_of(0), HEAD_BYTES))
		return -errno;
	/* All of the file, because no page of more than 8 KiB begins at offset_of(0). */
	mapped = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED)
		return -errno;
	store->head = (void *)(mapped + STATE_FILE_TRACKED_AT);
	bytes = stat.st_size > offset_of(0) ? (size_t)(stat.st_size - offset_of(0)) : 0;
	if (bytes >= HEAD_BYTES && is_ours(store->head))
		return take_over(store, bytes);
	if (is_moved || is_of_another_version(store->head))
		warn_of_another_version(path);
	return renew_file(store);
}

void tracked_file_close(struct tracked_store *store)
{
	if (store->head)
		munmap((char *)store->head - STATE_FILE_TRACKED_AT, MAP_BYTES);
	store->head = NULL;
}
