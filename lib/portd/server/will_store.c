/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file that the wills lie in: see will_store.h.
 */
#include "lib/portd/server/will_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cm/fsm.h"
#include "lib/portd/server/log.h"

#define MAGIC	    UINT32_C(0x70635731) /* with the layout's version in the last byte */
#define PORT_SEAL   UINT32_C(0x706f7274)
#define BOOT_BYTES  40
#define BOOT_ID	    "/proc/sys/kernel/random/boot_id"
#define PID_NS	    "/proc/self/ns/pid"
#define CHUNK_BYTES (WILL_CHUNK * sizeof(struct will))

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
	struct stored_port port[WILL_PORTS];
};

#define HEAD_BYTES 8192
#define MAP_BYTES  (HEAD_BYTES + WILL_CHUNKS_MAX * CHUNK_BYTES)

_Static_assert(sizeof(struct head) <= HEAD_BYTES, "the head has its room");
_Static_assert(HEAD_BYTES % _Alignof(struct will) == 0, "wills are aligned");

struct will_store {
	int fd;
	struct head *head;
	uint32_t n_chunks;
	bool is_full; /* and it was said */
	bool is_same_view;
};

/* --- what it must be ----------------------------------------------------- */

static uint32_t layout(void)
{
	return (uint32_t)(sizeof(struct will) << 24 | offsetof(struct will, is.path) << 16 |
			  offsetof(struct will, seal) << 8 | CM_N_STATES);
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

static int reserve(const struct will_store *store, size_t from, size_t bytes)
{
	return fallocate(store->fd, 0, (off_t)from, (off_t)bytes) ? -errno : 0;
}

/* To nothing first: what is added again is zero. */
static int renew(struct will_store *store)
{
	struct head *head = store->head;
	int err;

	if (ftruncate(store->fd, 0))
		return -errno;
	err = reserve(store, 0, HEAD_BYTES);
	if (err)
		return err;
	store->n_chunks = 0;
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

	for (i = 0; i < WILL_PORTS; i++) {
		head->port[i].device[PORTD_DEVICE_BYTES - 1] = '\0';
		if (head->port[i].seal != PORT_SEAL)
			memset(&head->port[i], 0, sizeof(head->port[i]));
	}
}

/* What is no whole chunk must not come back when the file grows. It may have holes, for which there
 * need not be memory when they are written to. */
static int take_over(struct will_store *store, size_t bytes)
{
	struct head *head = store->head;
	size_t n = bytes > HEAD_BYTES ? (bytes - HEAD_BYTES) / CHUNK_BYTES : 0;

	store->n_chunks = n < WILL_CHUNKS_MAX ? (uint32_t)n : WILL_CHUNKS_MAX;
	look_at_ports(head);
	store->is_same_view = head->pid_ns == read_pid_ns();
	head->pid_ns = read_pid_ns();
	if (ftruncate(store->fd, (off_t)(HEAD_BYTES + store->n_chunks * CHUNK_BYTES)))
		return -errno;
	return reserve(store, 0, HEAD_BYTES + store->n_chunks * CHUNK_BYTES);
}

static int map(struct will_store *store)
{
	struct stat stat;
	void *at;
	int err;

	if (fstat(store->fd, &stat))
		return -errno;
	err = reserve(store, 0, HEAD_BYTES);
	if (err)
		return err;
	at = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, store->fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	store->head = at;
	store->is_same_view = true;
	return is_ours(store->head) ? take_over(store, (size_t)stat.st_size) : renew(store);
}

int will_store_open(int fd, struct will_store **ret)
{
	struct will_store *store = calloc(1, sizeof(*store));
	int err;

	if (!store) {
		close(fd);
		return -ENOMEM;
	}
	store->fd = fd;
	err = map(store);
	if (err) {
		will_store_close(store);
		return err;
	}
	*ret = store;
	return 0;
}

void will_store_close(struct will_store *store)
{
	if (!store)
		return;
	if (store->head)
		munmap(store->head, MAP_BYTES);
	close(store->fd);
	free(store);
}

bool will_store_is_same_view(const struct will_store *store)
{
	return store->is_same_view;
}

/* --- chunks -------------------------------------------------------------- */

uint32_t will_store_chunks(const struct will_store *store)
{
	return store->n_chunks;
}

struct will *will_store_chunk(const struct will_store *store, uint32_t i)
{
	return (struct will *)((char *)store->head + HEAD_BYTES + i * CHUNK_BYTES);
}

static int make_chunk(const struct will_store *store)
{
	if (store->n_chunks == WILL_CHUNKS_MAX)
		return -EFBIG;
	return reserve(store, HEAD_BYTES + store->n_chunks * CHUNK_BYTES, CHUNK_BYTES);
}

struct will *will_store_grow(struct will_store *store)
{
	int err = store->is_full ? -EFBIG : make_chunk(store);

	if (!err)
		return will_store_chunk(store, store->n_chunks++);
	if (!store->is_full)
		portd_log_warn("connections beyond the %u-th are not in the wills file: %s; should "
			       "cmportd be killed together with their program, their peers are "
			       "not told",
			       store->n_chunks * WILL_CHUNK, strerror(-err));
	store->is_full = true;
	return NULL;
}

void will_store_trim(struct will_store *store)
{
	if (ftruncate(store->fd, HEAD_BYTES) == 0)
		store->n_chunks = 0;
}

/* --- ports --------------------------------------------------------------- */

void will_store_name_port(struct will_store *store, uint8_t handle, const char *device,
			  uint8_t port_num)
{
	struct stored_port *port = &store->head->port[handle];

	port->seal = 0;
	atomic_signal_fence(memory_order_seq_cst);
	memcpy(port->device, device, PORTD_DEVICE_BYTES);
	port->port_num = port_num;
	atomic_signal_fence(memory_order_seq_cst);
	port->seal = PORT_SEAL;
}

bool will_store_port(const struct will_store *store, uint8_t handle, const char **ret_device,
		     uint8_t *ret_port_num)
{
	const struct stored_port *port;

	if (handle >= WILL_PORTS)
		return false;
	port = &store->head->port[handle];
	if (port->seal != PORT_SEAL)
		return false;
	*ret_device = port->device;
	*ret_port_num = port->port_num;
	return true;
}
