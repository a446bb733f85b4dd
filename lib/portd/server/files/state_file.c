/* SPDX-License-Identifier: BSD-2-Clause */
/* The state file: see state_file.h. It is read once, and only written afterwards. */
#include "lib/portd/server/files/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "lib/portd/server/files/own_file.h"
#include "lib/portd/server/files/process.h"
#include "lib/portd/server/files/tracked_file.h"

#define MAGIC	      UINT32_C(0x70634d32) /* the last byte is the version of the layout */
#define VERSION_BITS  8
#define N_HEADS	      2
#define HEAD_STRIDE   512
#define ENTRIES_AT    1024
#define SECRETS_AT    73728 /* 65,536 secrets of blocks */
#define FORGOTTEN_S   10    /* clients do not resume later than that */
#define LOOK_AGAIN_NS 5000000

struct head {
	uint32_t magic;
	uint32_t check;
	uint64_t sequence; /* the head with the higher sequence is valid */
	uint64_t taken_at_s;
	uint32_t pid; /* of the writer */
	uint16_t next_block;
	uint16_t unused;
};

struct entry {
	uint32_t check;
	uint32_t pid;	  /* 0: free entry */
	uint32_t start;	  /* start time, because pids are reused; 0: unknown */
	uint16_t clients; /* of the running cmportd */
	uint16_t pending; /* of previous ones */
};

struct state_file {
	int fd;
	bool failed;   /* a write failed; logged once */
	bool was_lost; /* there was no valid file */
	bool was_of_another_version;
	struct head head;
	unsigned int n_entries; /* highest entry ever used, plus one */
	unsigned int n_pending;
	uint64_t looked_at_ns;
	struct entry entry[STATE_FILE_CLIENTS_MAX];
	struct pollfd process[STATE_FILE_CLIENTS_MAX]; /* pidfds of pending clients, or -1 */
	struct tracked_file tracked;
};

_Static_assert(sizeof(struct head) == 32 && sizeof(struct head) <= HEAD_STRIDE,
	       "heads in the file");
_Static_assert(sizeof(struct entry) == 16 &&
		       ENTRIES_AT + STATE_FILE_CLIENTS_MAX * sizeof(struct entry) <= SECRETS_AT,
	       "entries in the file");
_Static_assert(SECRETS_AT + 65536 * sizeof(uint64_t) == STATE_FILE_TRACKED_AT,
	       "secrets in the file");

static uint32_t check_of_head(struct head head)
{
	head.check = 0;
	return own_file_check(MAGIC, &head, sizeof(head));
}

static uint32_t check_of_entry(struct entry entry)
{
	entry.check = 0;
	return own_file_check(MAGIC, &entry, sizeof(entry));
}

static uint64_t boot_time_s(void)
{
	return clock_ns_of(CLOCK_BOOTTIME) / UINT64_C(1000000000);
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
	if (!entry->clients && !entry->pending)
		memset(entry, 0, sizeof(*entry));
	else
		entry->check = check_of_entry(*entry);
	write_at(file, entry, sizeof(*entry),
		 ENTRIES_AT + (entry - file->entry) * (off_t)sizeof(*entry));
}

/* --- processes ----------------------------------------------------------- */

static void unwatch_process(struct state_file *file, unsigned int i)
{
	fd_close(&file->process[i].fd);
	file->process[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
}

static void end_pending(struct state_file *file, unsigned int i, unsigned int count)
{
	struct entry *entry = &file->entry[i];

	entry->pending = (uint16_t)(entry->pending - count);
	file->n_pending -= count;
	if (!entry->pending)
		unwatch_process(file, i);
}

/* --- reading -------------------------------------------------------------- */

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

/* Return: whether a file without a valid head was written by another version. */
static bool is_of_another_version(int fd)
{
	uint32_t magic;
	bool is = false;
	int i;

	for (i = 0; i < N_HEADS; i++)
		is |= pread(fd, &magic, sizeof(magic), i * HEAD_STRIDE) == sizeof(magic) &&
		      magic != MAGIC && magic >> VERSION_BITS == MAGIC >> VERSION_BITS;
	return is;
}

static void read_entry(struct state_file *file, unsigned int i, bool also_older)
{
	struct entry *entry = &file->entry[i];
	unsigned int pending = entry->clients + (also_older ? entry->pending : 0u);

	if (entry->pid == 0 || entry->check != check_of_entry(*entry) || !pending ||
	    pending > UINT16_MAX || (pid_t)entry->pid <= 0 ||
	    !process_watch((pid_t)entry->pid, entry->start, &file->process[i].fd)) {
		memset(entry, 0, sizeof(*entry));
		return;
	}
	entry->clients = 0;
	entry->pending = (uint16_t)pending;
	entry->check = check_of_entry(*entry);
	file->n_pending += pending;
	file->n_entries = i + 1;
}

static int read_file(struct state_file *file)
{
	uint64_t now_s = boot_time_s();
	struct head old = { .sequence = 0 };
	bool was_short;
	unsigned int i;

	file->was_lost = !read_head(file->fd, &old);
	file->was_of_another_version = file->was_lost && is_of_another_version(file->fd);
	if (file->was_lost &&
	    getrandom(&old.next_block, sizeof(old.next_block), 0) != sizeof(old.next_block))
		return -errno;
	if (pread(file->fd, file->entry, sizeof(file->entry), ENTRIES_AT) < 0)
		return -errno;
	/* A client that was pending with a cmportd that ran for longer will not resume. */
	was_short = now_s >= old.taken_at_s && now_s - old.taken_at_s <= FORGOTTEN_S;
	for (i = 0; i < STATE_FILE_CLIENTS_MAX; i++)
		read_entry(file, i, was_short);
	file->head = (struct head){ .magic = MAGIC,
				    .sequence = old.sequence,
				    .taken_at_s = now_s,
				    .pid = (uint32_t)getpid(),
				    .next_block = old.next_block };
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
		err = read_file(file);
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
	/*
	 * In this order: after a crash in between, the next cmportd waits for too many clients, not
	 * too few.
	 */
	write_head(file);
	write_at(file, file->entry, sizeof(file->entry), ENTRIES_AT);
	*ret = file;
	return 0;
}

struct tracked_store *state_file_tracked(struct state_file *file)
{
	return file->tracked.head ? &file->tracked.store : NULL;
}

void state_file_close(struct state_file *file)
{
	unsigned int i;

	if (!file)
		return;
	for (i = 0; i < file->n_entries; i++)
		unwatch_process(file, i);
	tracked_file_close(&file->tracked);
	fd_close(&file->fd);
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

/* --- updates -------------------------------------------------------------- */

uint16_t state_file_next_block(const struct state_file *file)
{
	return file->head.next_block;
}

uint16_t state_file_id_block(struct state_file *file, unsigned int skip)
{
	uint16_t block = (uint16_t)(file->head.next_block + skip);

	file->head.next_block = (uint16_t)(block + 1);
	write_head(file);
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
	write_at(file, &secret, sizeof(secret), secret_at(block));
	return secret;
}

bool state_file_was_lent(const struct state_file *file, uint16_t block, uint64_t secret)
{
	uint64_t its = 0;

	if (pread(file->fd, &its, sizeof(its), secret_at(block)) < 0)
		return false;
	if (its)
		return its == secret;
	return file->was_lost && boot_time_s() - file->head.taken_at_s <= FORGOTTEN_S;
}

/* Return: the entry of a process, a free entry if @pid is 0, or NULL. */
static struct entry *find_entry(struct state_file *file, pid_t pid)
{
	unsigned int i;

	for (i = 0; i < file->n_entries; i++)
		if (file->entry[i].pid == (uint32_t)pid)
			return &file->entry[i];
	return pid || i == STATE_FILE_CLIENTS_MAX ? NULL : &file->entry[file->n_entries++];
}

uint32_t state_file_add_client(struct state_file *file, pid_t pid)
{
	uint32_t start;
	struct entry *entry;

	if (pid <= 0)
		return 0;
	start = process_start(pid);
	entry = find_entry(file, pid);
	if (entry && entry->start != start) {
		end_pending(file, (unsigned int)(entry - file->entry), entry->pending);
		entry->clients = 0;
		entry->start = start;
	}
	if (!entry) {
		entry = find_entry(file, 0);
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
	struct entry *entry = pid > 0 ? find_entry(file, pid) : NULL;

	if (!entry || !entry->clients)
		return;
	entry->clients--;
	write_entry(file, entry);
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
		entry = &file->entry[i];
		if (!entry->pending)
			continue;
		/* The kernel may not support pidfds. */
		if (file->process[i].fd < 0 ? process_has_ended((pid_t)entry->pid, -1)
					    : file->process[i].revents != 0) {
			end_pending(file, i, entry->pending);
			write_entry(file, entry);
		}
	}
	return file->n_pending;
}

void state_file_resumed(struct state_file *file, pid_t pid)
{
	struct entry *entry = pid > 0 ? find_entry(file, pid) : NULL;

	if (!entry || !entry->pending)
		return;
	end_pending(file, (unsigned int)(entry - file->entry), 1);
	write_entry(file, entry);
}
