/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of a process's connections: see roster.h. */
#include "lib/rsocket/roster.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

/* Protected by the lock. */
static struct roster *roster; /* NULL: none yet */
static int roster_fd;	      /* stays open, for others to find it */
static unsigned int next;     /* index to look at first */
static bool is_tried;	      /* also if the kernel has refused it */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The parent's list is not written to: its rows become memory of the child's. */
static void leave_parents(void)
{
	pthread_mutex_init(&lock, NULL);
	if (roster)
		mmap(roster, sizeof(*roster), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (roster)
		close(roster_fd);
	roster = NULL;
	is_tried = false;
}

static struct roster *make_roster(void)
{
	int fd = memfd_create(ROSTER_NAME, MFD_CLOEXEC);
	struct roster *made = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, sizeof(*made)) == 0)
		made = mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (made == MAP_FAILED) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	roster_fd = fd;
	made->version = ROSTER_VERSION;
	made->n_rows = ROSTER_ROWS;
	return made;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, leave_parents);
}

/* A row of RDMA is never taken: its connection writes to it until it is removed. */
static struct roster_row *find_free(enum roster_kind kind)
{
	unsigned int first = next++;
	struct roster_row *tcp = NULL;

	for (unsigned int i = 0; i < ROSTER_ROWS; i++) {
		struct roster_row *row = &roster->rows[(first + i) % ROSTER_ROWS];
		uint32_t has = __atomic_load_n(&row->kind, __ATOMIC_ACQUIRE);

		if (has == ROSTER_FREE)
			return row;
		if (has == ROSTER_TCP && !tcp)
			tcp = row;
	}
	return kind == ROSTER_TCP ? tcp : NULL;
}

struct roster_row *roster_add(enum roster_kind kind, const struct roster_row *row)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct roster_row *found = NULL;

	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&lock);
	if (!is_tried)
		roster = make_roster();
	is_tried = true;
	if (roster) {
		roster->n_made[kind]++;
		found = find_free(kind);
	}
	if (found) {
		*found = *row;
		__atomic_store_n(&found->kind, kind, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return found;
}

void roster_remove(struct roster_row *row)
{
	if (row)
		__atomic_store_n(&row->kind, ROSTER_FREE, __ATOMIC_RELEASE);
}
