/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file that the tracked connections lie in: see tracked_store.h.
 */
#include "lib/portd/server/tracked_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "cm/fsm.h"

#define MAGIC	    UINT32_C(0x70635731) /* with the layout's version in the last byte */
#define PORT_SEAL   UINT32_C(0x706f7274)
#define BOOT_BYTES  40
#define BOOT_ID	    "/proc/sys/kernel/random/boot_id"
#define PID_NS	    "/proc/self/ns/pid"
#define CHUNK_BYTES (TRACKED_CHUNK * sizeof(struct tracked))

struct stored_port {
	uint32_t seal;
	uint8_t port_num;
	char device[PORTD_DEVICE_BYTES];
};

struct head {
	uint32_t magic;	 /* written last, when the rest is there */
	uint32_t layout; /* what a version may forget to say */
	uint64_t pid_ns;
	char boot[BOOT_BYTES]; /* of the kernel that the connections were of */
	struct stored_port port[TRACKED_PORTS];
};

#define HEAD_BYTES 8192
#define MAP_BYTES  (HEAD_BYTES + TRACKED_CHUNKS_MAX * CHUNK_BYTES)

_Static_assert(sizeof(struct head) <= HEAD_BYTES, "the head has its room");
_Static_assert(HEAD_BYTES % _Alignof(struct tracked) == 0, "records are aligned");

struct tracked_file {
	struct tracked_store store; /* first */
	int fd;
	struct head *head;
	bool is_full; /* and it was said */
};

static const struct tracked_file *file_of(const struct tracked_store *store)
{
	return (const struct tracked_file *)store;
}

/* --- what it must be ----------------------------------------------------- */

static uint32_t layout(void)
{
	return (uint32_t)(sizeof(struct tracked) << 24 | offsetof(struct tracked, is.path) << 16 |
			  offsetof(struct tracked, seal) << 8 | CM_N_STATES);
}

static void read_boot(char ret[BOOT_BYTES])
{
	int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, ret, BOOT_BYTES - 1);

	memset(ret + (n < 0 ? 0 : n), 0, BOOT_BYTES - (n < 0 ? 0 : (size_t)n));
	if (fd >= 0)
		close(fd);
}

static uint64_t read_pid_ns(void)
{
	struct stat stat_of;

	return stat(PID_NS, &stat_of) ? 0 : (uint64_t)stat_of.st_ino;
}

static bool is_ours(const struct head *head)
{
	char boot[BOOT_BYTES];

	read_boot(boot);
	return head->magic == MAGIC && head->layout == layout() &&
	       memcmp(head->boot, boot, BOOT_BYTES) == 0;
}

/* --- making it that ------------------------------------------------------ */

static int reserve(const struct tracked_file *file, size_t from, size_t bytes)
{
	return fallocate(file->fd, 0, (off_t)from, (off_t)bytes) ? -errno : 0;
}

/* To nothing first: what is added again is zero. */
static int renew(struct tracked_file *file)
{
	struct head *head = file->head;
	int err;

	if (ftruncate(file->fd, 0))
		return -errno;
	err = reserve(file, 0, HEAD_BYTES);
	if (err)
		return err;
	file->store.n_chunks = 0;
	head->layout = layout();
	head->pid_ns = read_pid_ns();
	read_boot(head->boot);
	atomic_signal_fence(memory_order_seq_cst);
	head->magic = MAGIC;
	return 0;
}

/* A device's name is compared as a string. */
static void look_at_ports(struct head *head)
{
	unsigned int i;

	for (i = 0; i < TRACKED_PORTS; i++) {
		head->port[i].device[PORTD_DEVICE_BYTES - 1] = '\0';
		if (head->port[i].seal != PORT_SEAL)
			memset(&head->port[i], 0, sizeof(head->port[i]));
	}
}

/* What is no whole chunk must not come back when the file grows. It may have holes, for which there
 * need not be memory when they are written to. */
static int take_over(struct tracked_file *file, size_t bytes)
{
	struct head *head = file->head;
	size_t n = bytes > HEAD_BYTES ? (bytes - HEAD_BYTES) / CHUNK_BYTES : 0;

	file->store.n_chunks = n < TRACKED_CHUNKS_MAX ? (uint32_t)n : TRACKED_CHUNKS_MAX;
	look_at_ports(head);
	file->store.is_same_view = head->pid_ns == read_pid_ns();
	head->pid_ns = read_pid_ns();
	if (ftruncate(file->fd, (off_t)(HEAD_BYTES + file->store.n_chunks * CHUNK_BYTES)))
		return -errno;
	return reserve(file, 0, HEAD_BYTES + file->store.n_chunks * CHUNK_BYTES);
}

static int map(struct tracked_file *file)
{
	struct stat stat;
	void *at;
	int err;

	if (fstat(file->fd, &stat))
		return -errno;
	err = reserve(file, 0, HEAD_BYTES);
	if (err)
		return err;
	at = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	file->head = at;
	file->store.is_same_view = true;
	return is_ours(file->head) ? take_over(file, (size_t)stat.st_size) : renew(file);
}

static void close_file(struct tracked_store *store)
{
	struct tracked_file *file = (struct tracked_file *)store;

	if (file->head)
		munmap(file->head, MAP_BYTES);
	close(file->fd);
	free(file);
}

/* --- chunks -------------------------------------------------------------- */

static struct tracked *chunk_at(const struct tracked_store *store, uint32_t i)
{
	return (struct tracked *)((char *)file_of(store)->head + HEAD_BYTES + i * CHUNK_BYTES);
}

static int make_chunk(const struct tracked_file *file)
{
	if (file->store.n_chunks == TRACKED_CHUNKS_MAX)
		return -EFBIG;
	return reserve(file, HEAD_BYTES + file->store.n_chunks * CHUNK_BYTES, CHUNK_BYTES);
}

static struct tracked *add_chunk(struct tracked_store *store)
{
	struct tracked_file *file = (struct tracked_file *)store;
	int err = file->is_full ? -EFBIG : make_chunk(file);

	if (!err)
		return chunk_at(store, store->n_chunks++);
	if (!file->is_full)
		log_warn(
			"connections beyond the %u-th are not in the file of tracked connections: %s; should "
			"cmportd be killed together with their program, their peers are "
			"not told",
			store->n_chunks * TRACKED_CHUNK, strerror(-err));
	file->is_full = true;
	return NULL;
}

static void drop_chunks(struct tracked_store *store)
{
	if (ftruncate(file_of(store)->fd, HEAD_BYTES) == 0)
		store->n_chunks = 0;
}

/* --- ports --------------------------------------------------------------- */

static void name_port(struct tracked_store *store, uint8_t handle, const char *device,
		      uint8_t port_num)
{
	struct stored_port *port = &file_of(store)->head->port[handle];

	port->seal = 0;
	atomic_signal_fence(memory_order_seq_cst);
	memcpy(port->device, device, PORTD_DEVICE_BYTES);
	port->port_num = port_num;
	atomic_signal_fence(memory_order_seq_cst);
	port->seal = PORT_SEAL;
}

static bool port_named(const struct tracked_store *store, uint8_t handle, const char **ret_device,
		       uint8_t *ret_port_num)
{
	const struct stored_port *port;

	if (handle >= TRACKED_PORTS)
		return false;
	port = &file_of(store)->head->port[handle];
	if (port->seal != PORT_SEAL)
		return false;
	*ret_device = port->device;
	*ret_port_num = port->port_num;
	return true;
}

/* --- opening ------------------------------------------------------------- */

static const struct tracked_store_ops ops = {
	.close = close_file,
	.chunk = chunk_at,
	.grow = add_chunk,
	.trim = drop_chunks,
	.name_port = name_port,
	.port = port_named,
};

int tracked_store_open(int fd, struct tracked_store **ret)
{
	struct tracked_file *file = calloc(1, sizeof(*file));
	int err;

	if (!file) {
		close(fd);
		return -ENOMEM;
	}
	file->store.ops = &ops;
	file->fd = fd;
	err = map(file);
	if (err) {
		close_file(&file->store);
		return err;
	}
	*ret = &file->store;
	return 0;
}
