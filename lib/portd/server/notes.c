/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file: two heads, written in turn so that one of them is always whole, and an entry for each
 * process that is or was a client. It is read once, and from then on only written.
 */
#include "lib/portd/server/notes.h"

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

#include "lib/portd/server/log.h"
#include "lib/portd/server/own_file.h"
#include "lib/portd/server/place.h"
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

struct notes {
	int fd;
	bool failed; /* and it was said */
	struct head head;
	unsigned int n_entries; /* that were ever used */
	unsigned int n_awaited;
	uint64_t looked_at_ns;
	struct entry entry[PLACE_CLIENTS_MAX];
	struct pollfd process[PLACE_CLIENTS_MAX]; /* a pidfd of each that is awaited, or -1 */
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

static void write_at(struct notes *notes, const void *bytes, size_t n, off_t at)
{
	ssize_t done = pwrite(notes->fd, bytes, n, at);

	if (done == (ssize_t)n || notes->failed)
		return;
	notes->failed = true;
	portd_log_warn("the state file cannot be written: %s; the next cmportd may give comm ids "
		       "to new clients that are still in use",
		       strerror(done < 0 ? errno : ENOSPC));
}

static void write_head(struct notes *notes)
{
	struct head *head = &notes->head;

	head->sequence++;
	head->check = check_of_head(*head);
	write_at(notes, head, sizeof(*head), (off_t)(head->sequence % N_HEADS) * HEAD_STRIDE);
}

static void write_entry(struct notes *notes, struct entry *entry)
{
	if (!entry->clients && !entry->awaited)
		memset(entry, 0, sizeof(*entry));
	else
		entry->check = check_of_entry(*entry);
	write_at(notes, entry, sizeof(*entry),
		 ENTRIES_AT + (entry - notes->entry) * (off_t)sizeof(*entry));
}

/* --- processes ----------------------------------------------------------- */

static bool watch_process(struct notes *notes, unsigned int i)
{
	const struct entry *entry = &notes->entry[i];

	return process_watch((pid_t)entry->pid, entry->start, &notes->process[i].fd);
}

/* All pidfds are looked at in one call; the kernel may have none. */
static bool is_gone(const struct notes *notes, unsigned int i)
{
	if (notes->process[i].fd >= 0)
		return notes->process[i].revents != 0;
	return process_has_ended((pid_t)notes->entry[i].pid, -1);
}

static void unwatch_process(struct notes *notes, unsigned int i)
{
	if (notes->process[i].fd >= 0)
		close(notes->process[i].fd);
	notes->process[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
}

static void await_no_more(struct notes *notes, unsigned int i, unsigned int count)
{
	struct entry *entry = &notes->entry[i];

	entry->awaited = (uint16_t)(entry->awaited - count);
	notes->n_awaited -= count;
	if (!entry->awaited)
		unwatch_process(notes, i);
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

static void await(struct notes *notes, unsigned int i, bool also_older)
{
	struct entry *entry = &notes->entry[i];
	unsigned int awaited = entry->clients + (also_older ? entry->awaited : 0u);

	if (entry->pid == 0 || entry->check != check_of_entry(*entry) || !awaited ||
	    awaited > UINT16_MAX || (pid_t)entry->pid <= 0 || !watch_process(notes, i)) {
		memset(entry, 0, sizeof(*entry));
		return;
	}
	entry->clients = 0;
	entry->awaited = (uint16_t)awaited;
	entry->check = check_of_entry(*entry);
	notes->n_awaited += awaited;
	notes->n_entries = i + 1;
}

static int begin(struct notes *notes)
{
	struct head old = { .sequence = 0 };
	unsigned int i;

	if (!read_head(notes->fd, &old) &&
	    getrandom(&old.next_block, sizeof(old.next_block), 0) != sizeof(old.next_block))
		return -errno;
	if (pread(notes->fd, notes->entry, sizeof(notes->entry), ENTRIES_AT) < 0 ||
	    ftruncate(notes->fd, ENTRIES_AT + (off_t)sizeof(notes->entry)))
		return -errno;
	/* With its room made now, it is there when it is needed; where that cannot be done, a
	 * write that fails will say so. */
	fallocate(notes->fd, 0, 0, ENTRIES_AT + (off_t)sizeof(notes->entry));
	notes->head = (struct head){ .magic = MAGIC,
				     .sequence = old.sequence,
				     .taken_at_s = now_ns(CLOCK_BOOTTIME) / 1000000000,
				     .pid = (uint32_t)getpid(),
				     .next_block = old.next_block };
	for (i = 0; i < PLACE_CLIENTS_MAX; i++)
		await(notes, i, was_short(&old));
	/* In this order: one who comes after a death in between awaits too many, not too few. */
	write_head(notes);
	write_at(notes, notes->entry, sizeof(notes->entry), ENTRIES_AT);
	return 0;
}

/* --- opening ------------------------------------------------------------- */

static int open_file(struct notes *notes, int folder_fd, const char *path)
{
	int err = own_file_open(folder_fd, path, &notes->fd);

	if (!err && flock(notes->fd, LOCK_EX | LOCK_NB))
		err = errno == EWOULDBLOCK ? -EADDRINUSE : -errno;
	return err;
}

int notes_open(int folder_fd, const char *path, struct notes **ret)
{
	struct notes *notes = calloc(1, sizeof(*notes));
	unsigned int i;
	int err;

	if (!notes)
		return -ENOMEM;
	notes->fd = -1;
	for (i = 0; i < PLACE_CLIENTS_MAX; i++)
		notes->process[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
	err = open_file(notes, folder_fd, path);
	if (!err)
		err = begin(notes);
	if (err) {
		notes_close(notes);
		return err;
	}
	*ret = notes;
	return 0;
}

void notes_close(struct notes *notes)
{
	unsigned int i;

	if (!notes)
		return;
	for (i = 0; i < notes->n_entries; i++)
		unwatch_process(notes, i);
	if (notes->fd >= 0)
		close(notes->fd);
	free(notes);
}

pid_t notes_holder(int folder_fd, const char *path)
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

uint16_t notes_id_block(struct notes *notes)
{
	uint16_t block = notes->head.next_block++;

	write_head(notes);
	return block;
}

static struct entry *find(struct notes *notes, pid_t pid)
{
	unsigned int i;

	for (i = 0; i < notes->n_entries; i++)
		if (notes->entry[i].pid == (uint32_t)pid)
			return &notes->entry[i];
	return NULL;
}

static struct entry *find_free(struct notes *notes)
{
	struct entry *entry = find(notes, 0);

	if (!entry && notes->n_entries < PLACE_CLIENTS_MAX)
		entry = &notes->entry[notes->n_entries++];
	return entry;
}

uint32_t notes_add_client(struct notes *notes, pid_t pid)
{
	uint32_t start;
	struct entry *entry;

	if (pid <= 0)
		return 0;
	start = process_start(pid);
	entry = find(notes, pid);
	if (entry && entry->start != start) {
		await_no_more(notes, (unsigned int)(entry - notes->entry), entry->awaited);
		entry->clients = 0;
		entry->start = start;
	}
	if (!entry) {
		entry = find_free(notes);
		if (!entry)
			return start;
		*entry = (struct entry){ .pid = (uint32_t)pid, .start = start };
	}
	if (entry->clients < UINT16_MAX)
		entry->clients++;
	write_entry(notes, entry);
	return start;
}

void notes_remove_client(struct notes *notes, pid_t pid)
{
	struct entry *entry = pid > 0 ? find(notes, pid) : NULL;

	if (!entry || !entry->clients)
		return;
	entry->clients--;
	write_entry(notes, entry);
}

unsigned int notes_missing(struct notes *notes)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	unsigned int i;

	if (!notes->n_awaited || now - notes->looked_at_ns < LOOK_AGAIN_NS)
		return notes->n_awaited;
	notes->looked_at_ns = now;
	if (poll(notes->process, notes->n_entries, 0) < 0)
		return notes->n_awaited;
	for (i = 0; i < notes->n_entries; i++)
		if (notes->entry[i].awaited && is_gone(notes, i)) {
			await_no_more(notes, i, notes->entry[i].awaited);
			write_entry(notes, &notes->entry[i]);
		}
	return notes->n_awaited;
}

void notes_returned(struct notes *notes, pid_t pid)
{
	struct entry *entry = pid > 0 ? find(notes, pid) : NULL;

	if (!entry || !entry->awaited)
		return;
	await_no_more(notes, (unsigned int)(entry - notes->entry), 1);
	write_entry(notes, entry);
}
