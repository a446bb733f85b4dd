/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file: two heads, written in turn so that one of them is always whole, and an entry for each
 * process that is or was a client. It is read once, and from then on only written.
 */
#include "lib/portd/server/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "lib/portd/server/own_file.h"
#include "lib/portd/server/socket_dir.h"
#include "lib/portd/server/process.h"

#define MAGIC	      UINT32_C(0x70634d31) /* with the layout's version in the last byte */
#define N_HEADS	      2
#define HEAD_STRIDE   512
#define ENTRIES_AT    1024
#define FORGOTTEN_S   10 /* who has not come back by then will not */
#define LOOK_AGAIN_NS 5000000

struct head {
	uint32_t magic;
	uint32_t check;
	uint64_t sequence; /* the higher one counts */
	uint64_t taken_at_s;
	uint32_t pid; /* who wrote it */
	uint16_t next_block;
	uint16_t unused;
};

struct entry {
	uint32_t check;
	uint32_t pid;	  /* 0: nobody */
	uint32_t start;	  /* tells it from a later process of the same number; 0: unknown */
	uint16_t clients; /* of the cmportd that runs */
	uint16_t awaited; /* of those before it */
};

struct state_file {
	int fd;
	bool failed; /* and it was said */
	struct head head;
	unsigned int n_entries; /* that were ever used */
	unsigned int n_awaited;
	uint64_t looked_at_ns;
	struct entry entry[STATE_FILE_CLIENTS_MAX];
	struct pollfd process[STATE_FILE_CLIENTS_MAX]; /* a pidfd of each that is awaited, or -1 */
};

_Static_assert(sizeof(struct head) == 32 && sizeof(struct head) <= HEAD_STRIDE,
	       "heads in the file");
_Static_assert(sizeof(struct entry) == 16, "entries in the file");

/* FNV-1a: not for security, the file is our own, but for what was half written. */
static uint32_t check_of(const void *bytes, size_t n)
{
	const uint8_t *byte = bytes;
	uint32_t sum = UINT32_C(2166136261) ^ MAGIC;
	size_t i;

	for (i = 0; i < n; i++)
		sum = (sum ^ byte[i]) * UINT32_C(16777619);
	return sum;
}

static uint32_t check_of_head(struct head head)
{
	head.check = 0;
	return check_of(&head, sizeof(head));
}

static uint32_t check_of_entry(struct entry entry)
{
	entry.check = 0;
	return check_of(&entry, sizeof(entry));
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* --- writing ------------------------------------------------------------- */

static void write_at(struct state_file *file, const void *bytes, size_t n, off_t at)
{
	ssize_t done = pwrite(file->fd, bytes, n, at);

	if (done == (ssize_t)n || file->failed)
		return;
	file->failed = true;
	log_warn("the state file cannot be written: %s; the next cmportd may give comm ids "
		 "to new clients that are still in use",
		 strerror(done < 0 ? errno : ENOSPC));
}

static void write_head(struct state_file *file)
{
	struct head *head = &file->head;

	head->sequence++;
	head->check = check_of_head(*head);
	write_at(file, head, sizeof(*head), (off_t)(head->sequence % N_HEADS) * HEAD_STRIDE);
}

static void write_entry(struct state_file *file, struct entry *entry)
{
	if (!entry->clients && !entry->awaited)
		memset(entry, 0, sizeof(*entry));
	else
		entry->check = check_of_entry(*entry);
	write_at(file, entry, sizeof(*entry),
		 ENTRIES_AT + (entry - file->entry) * (off_t)sizeof(*entry));
}

/* --- processes ----------------------------------------------------------- */

static bool watch_process(struct state_file *file, unsigned int i)
{
	const struct entry *entry = &file->entry[i];

	return process_watch((pid_t)entry->pid, entry->start, &file->process[i].fd);
}

/* All pidfds are looked at in one call; the kernel may have none. */
static bool is_gone(const struct state_file *file, unsigned int i)
{
	if (file->process[i].fd >= 0)
		return file->process[i].revents != 0;
	return process_has_ended((pid_t)file->entry[i].pid, -1);
}

static void unwatch_process(struct state_file *file, unsigned int i)
{
	if (file->process[i].fd >= 0)
		close(file->process[i].fd);
	file->process[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
}

static void await_no_more(struct state_file *file, unsigned int i, unsigned int count)
{
	struct entry *entry = &file->entry[i];

	entry->awaited = (uint16_t)(entry->awaited - count);
	file->n_awaited -= count;
	if (!entry->awaited)
		unwatch_process(file, i);
}

/* --- reading what is there ----------------------------------------------- */

static bool read_head(int fd, struct head *ret)
{
	struct head head;
	bool found = false;
	int i;

	for (i = 0; i < N_HEADS; i++)
		if (pread(fd, &head, sizeof(head), i * HEAD_STRIDE) == sizeof(head) &&
		    head.magic == MAGIC && head.check == check_of_head(head) &&
		    (!found || head.sequence > ret->sequence)) {
			*ret = head;
			found = true;
		}
	return found;
}

/* Whoever was awaited by one that then ran for long has found another way. */
static bool was_short(const struct head *old)
{
	uint64_t now_s = now_ns(CLOCK_BOOTTIME) / 1000000000;

	return now_s >= old->taken_at_s && now_s - old->taken_at_s <= FORGOTTEN_S;
}

static void await(struct state_file *file, unsigned int i, bool also_older)
{
	struct entry *entry = &file->entry[i];
	unsigned int awaited = entry->clients + (also_older ? entry->awaited : 0u);

	if (entry->pid == 0 || entry->check != check_of_entry(*entry) || !awaited ||
	    awaited > UINT16_MAX || (pid_t)entry->pid <= 0 || !watch_process(file, i)) {
		memset(entry, 0, sizeof(*entry));
		return;
	}
	entry->clients = 0;
	entry->awaited = (uint16_t)awaited;
	entry->check = check_of_entry(*entry);
	file->n_awaited += awaited;
	file->n_entries = i + 1;
}

static int begin(struct state_file *file)
{
	struct head old = { .sequence = 0 };
	unsigned int i;

	if (!read_head(file->fd, &old) &&
	    getrandom(&old.next_block, sizeof(old.next_block), 0) != sizeof(old.next_block))
		return -errno;
	if (pread(file->fd, file->entry, sizeof(file->entry), ENTRIES_AT) < 0 ||
	    ftruncate(file->fd, ENTRIES_AT + (off_t)sizeof(file->entry)))
		return -errno;
	/* With its room made now, it is there when it is needed; where that cannot be done, a
	 * write that fails will say so. */
	fallocate(file->fd, 0, 0, ENTRIES_AT + (off_t)sizeof(file->entry));
	file->head = (struct head){ .magic = MAGIC,
				    .sequence = old.sequence,
				    .taken_at_s = now_ns(CLOCK_BOOTTIME) / 1000000000,
				    .pid = (uint32_t)getpid(),
				    .next_block = old.next_block };
	for (i = 0; i < STATE_FILE_CLIENTS_MAX; i++)
		await(file, i, was_short(&old));
	/* In this order: one who comes after a death in between awaits too many, not too few. */
	write_head(file);
	write_at(file, file->entry, sizeof(file->entry), ENTRIES_AT);
	return 0;
}

/* --- opening ------------------------------------------------------------- */

static int open_file(struct state_file *file, int folder_fd, const char *path)
{
	int err = own_file_open(folder_fd, path, &file->fd);

	if (!err && flock(file->fd, LOCK_EX | LOCK_NB))
		err = errno == EWOULDBLOCK ? -EADDRINUSE : -errno;
	return err;
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
	err = open_file(file, folder_fd, path);
	if (!err)
		err = begin(file);
	if (err) {
		state_file_close(file);
		return err;
	}
	*ret = file;
	return 0;
}

void state_file_close(struct state_file *file)
{
	unsigned int i;

	if (!file)
		return;
	for (i = 0; i < file->n_entries; i++)
		unwatch_process(file, i);
	if (file->fd >= 0)
		close(file->fd);
	free(file);
}

pid_t state_file_holder(int folder_fd, const char *path)
{
	struct head head = { .pid = 0 };
	int fd = own_file_look(folder_fd, path);

	if (fd < 0)
		return 0;
	read_head(fd, &head);
	close(fd);
	return (pid_t)head.pid;
}

/* --- while it runs ------------------------------------------------------- */

uint16_t state_file_id_block(struct state_file *file)
{
	uint16_t block = file->head.next_block++;

	write_head(file);
	return block;
}

static struct entry *find(struct state_file *file, pid_t pid)
{
	unsigned int i;

	for (i = 0; i < file->n_entries; i++)
		if (file->entry[i].pid == (uint32_t)pid)
			return &file->entry[i];
	return NULL;
}

static struct entry *find_free(struct state_file *file)
{
	struct entry *entry = find(file, 0);

	if (!entry && file->n_entries < STATE_FILE_CLIENTS_MAX)
		entry = &file->entry[file->n_entries++];
	return entry;
}

uint32_t state_file_add_client(struct state_file *file, pid_t pid)
{
	uint32_t start;
	struct entry *entry;

	if (pid <= 0)
		return 0;
	start = process_start(pid);
	entry = find(file, pid);
	if (entry && entry->start != start) {
		await_no_more(file, (unsigned int)(entry - file->entry), entry->awaited);
		entry->clients = 0;
		entry->start = start;
	}
	if (!entry) {
		entry = find_free(file);
		if (!entry)
			return start;
		*entry = (struct entry){ .pid = (uint32_t)pid, .start = start };
	}
	if (entry->clients < UINT16_MAX)
		entry->clients++;
	write_entry(file, entry);
	return start;
}

void state_file_remove_client(struct state_file *file, pid_t pid)
{
	struct entry *entry = pid > 0 ? find(file, pid) : NULL;

	if (!entry || !entry->clients)
		return;
	entry->clients--;
	write_entry(file, entry);
}

unsigned int state_file_pending(struct state_file *file)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	unsigned int i;

	if (!file->n_awaited || now - file->looked_at_ns < LOOK_AGAIN_NS)
		return file->n_awaited;
	file->looked_at_ns = now;
	if (poll(file->process, file->n_entries, 0) < 0)
		return file->n_awaited;
	for (i = 0; i < file->n_entries; i++)
		if (file->entry[i].awaited && is_gone(file, i)) {
			await_no_more(file, i, file->entry[i].awaited);
			write_entry(file, &file->entry[i]);
		}
	return file->n_awaited;
}

void state_file_resumed(struct state_file *file, pid_t pid)
{
	struct entry *entry = pid > 0 ? find(file, pid) : NULL;

	if (!entry || !entry->awaited)
		return;
	await_no_more(file, (unsigned int)(entry - file->entry), 1);
	write_entry(file, entry);
}
