/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state file: see state_file.h. It is mapped, and written with plain stores, except for the
 * secrets, of which few are used.
 */
#include "lib/portd/server/files/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "lib/portd/proto/proto.h"
#include "lib/portd/server/files/own_file.h"
#include "lib/portd/server/files/process.h"
#include "lib/portd/server/files/tracked_file.h"

#define MAGIC	      (UINT32_C(0x70634d00) | PORTD_VERSION)
#define VERSION_BITS  8
#define SECRETS_AT    73728 /* 65,536 secrets of blocks */
#define FORGOTTEN_S   10    /* clients do not resume later than that */
#define LOOK_AGAIN_NS 5000000

struct entry {
	uint32_t pid;	  /* 0: free entry; written last */
	uint32_t start;	  /* start time, because pids are reused; 0: unknown */
	uint16_t clients; /* of the running cmportd */
	uint16_t pending; /* of previous ones */
};

/* In the file. */
struct state {
	uint32_t magic; /* written last, when the rest is complete */
	uint32_t pid;	/* of the writer */
	uint64_t taken_at_s;
	uint16_t next_block;
	struct entry entry[STATE_FILE_CLIENTS_MAX];
};

struct state_file {
	int fd;
	bool failed;   /* a write failed; logged once */
	bool was_lost; /* there was no valid file */
	bool was_of_another_version;
	struct state *state;
	unsigned int n_entries; /* highest entry ever used, plus one */
	unsigned int n_pending;
	uint64_t looked_at_ns;
	struct pollfd process[STATE_FILE_CLIENTS_MAX]; /* pidfds of pending clients, or -1 */
	struct tracked_store tracked;
};

_Static_assert(sizeof(struct state) <= SECRETS_AT, "the state in the file");
_Static_assert(SECRETS_AT + 65536 * sizeof(uint64_t) == STATE_FILE_TRACKED_AT,
	       "secrets in the file");
_Static_assert(sizeof(struct entry) == 12 && offsetof(struct state, entry) == 20 &&
		       SECRETS_AT == 73728 && STATE_FILE_CLIENTS_MAX == 4096,
	       "a new layout needs a new PORTD_VERSION");

static uint64_t boot_time_s(void)
{
	return clock_ns_of(CLOCK_BOOTTIME) / CLOCK_NS_PER_S;
}

static void warn_of_failure(struct state_file *file, int err)
{
	if (!file->failed)
		log_warn("the state file cannot be written: %s; the next cmportd may give comm ids "
			 "to new clients that are still in use",
			 strerror(-err));
	file->failed = true;
}

/* --- processes ----------------------------------------------------------- */

static void unwatch_process(struct state_file *file, unsigned int i)
{
	fd_close(&file->process[i].fd);
	file->process[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
}

static void end_pending(struct state_file *file, unsigned int i, unsigned int count)
{
	struct entry *entry = &file->state->entry[i];

	entry->pending = (uint16_t)(entry->pending - count);
	file->n_pending -= count;
	if (!entry->pending)
		unwatch_process(file, i);
	if (!entry->pending && !entry->clients)
		entry->pid = 0;
}

/* --- reading -------------------------------------------------------------- */

/* In an order in which a death in between leaves too many pending clients, not too few. */
static void read_entry(struct state_file *file, unsigned int i, bool also_older)
{
	struct entry *entry = &file->state->entry[i];
	unsigned int pending = entry->clients + (also_older ? entry->pending : 0u);

	if (entry->pid == 0 || !pending || pending > UINT16_MAX || (pid_t)entry->pid <= 0 ||
	    !process_watch((pid_t)entry->pid, entry->start, &file->process[i].fd)) {
		entry->pid = 0;
		return;
	}
	entry->pending = (uint16_t)pending;
	atomic_signal_fence(memory_order_seq_cst);
	entry->clients = 0;
	file->n_pending += pending;
	file->n_entries = i + 1;
}

/* Another version, of two heads, began with a magic number, too. */
static int renew_state(struct state_file *file)
{
	struct state *state = file->state;

	file->was_lost = true;
	file->was_of_another_version = state->magic >> VERSION_BITS == MAGIC >> VERSION_BITS;
	memset(state, 0, sizeof(*state));
	if (getrandom(&state->next_block, sizeof(state->next_block), 0) !=
	    sizeof(state->next_block))
		return -errno;
	return 0;
}

static int read_state(struct state_file *file)
{
	struct state *state = file->state;
	int err = state->magic == MAGIC ? 0 : renew_state(file);
	uint64_t now_s = boot_time_s(), before_s = state->taken_at_s;
	/* A client that was pending with a cmportd that ran for longer will not resume. */
	bool was_short = now_s >= before_s && now_s - before_s <= FORGOTTEN_S;
	unsigned int i;

	if (err)
		return err;
	state->pid = (uint32_t)getpid();
	state->taken_at_s = now_s;
	atomic_signal_fence(memory_order_seq_cst);
	state->magic = MAGIC;
	for (i = 0; i < STATE_FILE_CLIENTS_MAX; i++)
		read_entry(file, i, was_short);
	return 0;
}

/* --- opening ------------------------------------------------------------- */

static int open_locked(struct state_file *file, int folder_fd, const char *path)
{
	int err = own_file_open(folder_fd, path, &file->fd);

	if (!err && flock(file->fd, LOCK_EX | LOCK_NB))
		err = errno == EWOULDBLOCK ? -EADDRINUSE : -errno;
	return err;
}

/* A store to a hole could fail: without room, nothing is passed to the next cmportd. */
static int map_state(struct state_file *file)
{
	int err = fallocate(file->fd, 0, 0, sizeof(struct state)) ? -errno : 0;
	void *mapped = mmap(NULL, sizeof(struct state), PROT_READ | PROT_WRITE,
			    err ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, err ? -1 : file->fd, 0);

	if (mapped == MAP_FAILED)
		return -errno;
	file->state = mapped;
	if (err)
		warn_of_failure(file, err);
	return read_state(file);
}

int state_file_open(int folder_fd, const char *path, struct state_file **ret)
{
	struct state_file *file = calloc(1, sizeof(*file));
	unsigned int i;
	int err;

	if (!file)
		return -ENOMEM;
	file->fd = -1;
	for (i = 0; i < STATE_FILE_CLIENTS_MAX; i++)
		file->process[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
	err = open_locked(file, folder_fd, path);
	if (!err)
		err = map_state(file);
	if (err) {
		state_file_close(file);
		return err;
	}
	err = tracked_file_open(&file->tracked, file->fd, path, file->was_of_another_version);
	if (err) {
		tracked_file_close(&file->tracked);
		log_warn("%s has no room for connections: %s; should cmportd be killed, the "
			 "peers of programs are not told when they end",
			 path, strerror(-err));
	}
	*ret = file;
	return 0;
}

struct tracked_store *state_file_tracked(struct state_file *file)
{
	return file->tracked.head ? &file->tracked : NULL;
}

void state_file_close(struct state_file *file)
{
	unsigned int i;

	if (!file)
		return;
	for (i = 0; i < file->n_entries; i++)
		unwatch_process(file, i);
	tracked_file_close(&file->tracked);
	if (file->state)
		munmap(file->state, sizeof(*file->state));
	fd_close(&file->fd);
	free(file);
}

pid_t state_file_holder(int folder_fd, const char *path)
{
	uint32_t head[2] = { 0, 0 }; /* magic and pid */
	int fd = own_file_look(folder_fd, path);

	if (fd < 0)
		return 0;
	if (pread(fd, head, sizeof(head), 0) != sizeof(head) || head[0] != MAGIC)
		head[1] = 0;
	close(fd);
	return (pid_t)head[1];
}

/* --- updates -------------------------------------------------------------- */

uint16_t state_file_next_block(const struct state_file *file)
{
	return file->state->next_block;
}

uint16_t state_file_id_block(struct state_file *file, unsigned int skip)
{
	uint16_t block = (uint16_t)(file->state->next_block + skip);

	file->state->next_block = (uint16_t)(block + 1);
	return block;
}

static off_t secret_at(uint16_t block)
{
	return SECRETS_AT + block * (off_t)sizeof(uint64_t);
}

uint64_t state_file_lend(struct state_file *file, uint16_t block)
{
	uint64_t secret = 0;

	if (getrandom(&secret, sizeof(secret), 0) != sizeof(secret))
		secret = 0; /* the secret becomes invalid */
	if (pwrite(file->fd, &secret, sizeof(secret), secret_at(block)) != sizeof(secret))
		warn_of_failure(file, -errno);
	return secret;
}

bool state_file_was_lent(const struct state_file *file, uint16_t block, uint64_t secret)
{
	uint64_t its = 0;

	if (pread(file->fd, &its, sizeof(its), secret_at(block)) < 0)
		return false;
	if (its)
		return its == secret;
	return file->was_lost && boot_time_s() - file->state->taken_at_s <= FORGOTTEN_S;
}

/* Return: the entry of a process, a free entry if @pid is 0, or NULL. */
static struct entry *find_entry(struct state_file *file, pid_t pid)
{
	struct entry *entry = file->state->entry;
	unsigned int i;

	for (i = 0; i < file->n_entries; i++)
		if (entry[i].pid == (uint32_t)pid)
			return &entry[i];
	return pid || i == STATE_FILE_CLIENTS_MAX ? NULL : &entry[file->n_entries++];
}

static unsigned int place_of(const struct state_file *file, const struct entry *entry)
{
	return (unsigned int)(entry - file->state->entry);
}

/* The pid names another process by now, or there is none yet. */
static void begin_entry(struct state_file *file, struct entry *entry, pid_t pid, uint32_t start)
{
	entry->clients = 0;
	end_pending(file, place_of(file, entry), entry->pid ? entry->pending : 0);
	entry->pid = 0;
	atomic_signal_fence(memory_order_seq_cst);
	entry->start = start;
	entry->pending = 0;
	atomic_signal_fence(memory_order_seq_cst);
	entry->pid = (uint32_t)pid;
}

uint32_t state_file_add_client(struct state_file *file, pid_t pid)
{
	uint32_t start;
	struct entry *entry;

	if (pid <= 0)
		return 0;
	start = process_start(pid);
	entry = find_entry(file, pid);
	if (!entry)
		entry = find_entry(file, 0);
	if (!entry)
		return start;
	if (entry->pid != (uint32_t)pid || entry->start != start)
		begin_entry(file, entry, pid, start);
	if (entry->clients < UINT16_MAX)
		entry->clients++;
	return start;
}

void state_file_remove_client(struct state_file *file, pid_t pid)
{
	struct entry *entry = pid > 0 ? find_entry(file, pid) : NULL;

	if (!entry || !entry->clients)
		return;
	entry->clients--;
	end_pending(file, place_of(file, entry), 0);
}

unsigned int state_file_pending(struct state_file *file)
{
	uint64_t now_ns = clock_ns();
	struct entry *entry;
	unsigned int i;

	if (!file->n_pending || now_ns - file->looked_at_ns < LOOK_AGAIN_NS)
		return file->n_pending;
	file->looked_at_ns = now_ns;
	if (poll(file->process, file->n_entries, 0) < 0)
		return file->n_pending;
	for (i = 0; i < file->n_entries; i++) {
		entry = &file->state->entry[i];
		if (!entry->pid || !entry->pending)
			continue;
		/* The kernel may not support pidfds. */
		if (file->process[i].fd < 0 ? process_has_ended((pid_t)entry->pid, -1)
					    : file->process[i].revents != 0)
			end_pending(file, i, entry->pending);
	}
	return file->n_pending;
}

bool state_file_resumed(struct state_file *file, pid_t pid)
{
	struct entry *entry = pid > 0 ? find_entry(file, pid) : NULL;

	if (!entry || !entry->pending)
		return false;
	end_pending(file, place_of(file, entry), 1);
	return true;
}
