/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file: two heads, written in turn so that one of them is always whole, and an entry for each
 * process that is or was a client. It is read once, and from then on only written.
 */
#include "portd/notes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "portd/log.h"
#include "portd/place.h"

#define MAGIC	      UINT32_C(0x70634d31) /* with the layout's version in the last byte */
#define N_HEADS	      2
#define HEAD_STRIDE   512
#define ENTRIES_AT    1024
#define FORGOTTEN_S   10 /* who has not come back by then will not */
#define LOOK_AGAIN_NS 5000000
#define STAT_START    22 /* field of /proc/PID/stat: clock ticks from boot to the start */
#define STAT_BYTES    1024

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

/* The name, field 2, may hold anything, but nothing after it holds a parenthesis. */
static uint32_t start_of(pid_t pid)
{
	char path[32], stat[STAT_BYTES];
	unsigned int field;
	char *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, stat, sizeof(stat) - 1);
	close(fd);
	stat[n < 0 ? 0 : n] = '\0';
	at = strrchr(stat, ')');
	for (field = 2; at && field < STAT_START; field++)
		at = strchr(at + 1, ' ');
	return at ? (uint32_t)strtoull(at, NULL, 10) : 0;
}

/* A pidfd tells of the process that it was opened for, whoever gets its number; looked at after
 * it was opened, the start says whether it is the right one. */
static bool watch_process(struct notes *notes, unsigned int i)
{
	const struct entry *entry = &notes->entry[i];
	int fd = (int)syscall(SYS_pidfd_open, (pid_t)entry->pid, 0);
	uint32_t start;

	if (fd < 0 && errno == ESRCH)
		return false;
	start = start_of((pid_t)entry->pid);
	if (start && entry->start && start != entry->start) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	notes->process[i].fd = fd;
	return true;
}

static bool is_gone(const struct notes *notes, unsigned int i)
{
	if (notes->process[i].fd >= 0)
		return notes->process[i].revents != 0;
	return kill((pid_t)notes->entry[i].pid, 0) && errno == ESRCH;
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

static int refuse(const char *path, const char *what)
{
	portd_log_warn("%s %s; remove it, or choose another socket with --socket or PURECM_SOCKET",
		       path, what);
	return -EPERM;
}

/* In a folder like /tmp anybody could have put something there. */
static int look_at_file(struct notes *notes, const char *path)
{
	struct stat stat;

	if (fstat(notes->fd, &stat))
		return -errno;
	if (!S_ISREG(stat.st_mode))
		return refuse(path, "is no file");
	if (stat.st_uid != geteuid() || stat.st_nlink != 1)
		return refuse(path, "is somebody else's");
	return fchmod(notes->fd, 0600) ? -errno : 0;
}

static int open_at(int folder_fd, const char *path, int flags)
{
	const char *slash = strrchr(path, '/');

	return openat(folder_fd, slash ? slash + 1 : path,
		      flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
}

static int open_file(struct notes *notes, int folder_fd, const char *path)
{
	int err;

	notes->fd = open_at(folder_fd, path, O_RDWR | O_CREAT);
	if (notes->fd < 0 && errno == ELOOP)
		return refuse(path, "is a link");
	if (notes->fd < 0) {
		err = -errno;
		portd_log_warn("%s cannot be opened: %s", path, strerror(-err));
		return err;
	}
	err = look_at_file(notes, path);
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
	int fd = open_at(folder_fd, path, O_RDONLY);

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

void notes_add_client(struct notes *notes, pid_t pid)
{
	uint32_t start;
	struct entry *entry;

	if (pid <= 0)
		return;
	start = start_of(pid);
	entry = find(notes, pid);
	if (entry && entry->start != start) {
		await_no_more(notes, (unsigned int)(entry - notes->entry), entry->awaited);
		entry->clients = 0;
		entry->start = start;
	}
	if (!entry) {
		entry = find_free(notes);
		if (!entry)
			return;
		*entry = (struct entry){ .pid = (uint32_t)pid, .start = start };
	}
	if (entry->clients < UINT16_MAX)
		entry->clients++;
	write_entry(notes, entry);
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
