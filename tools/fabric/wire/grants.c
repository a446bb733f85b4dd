/* SPDX-License-Identifier: BSD-2-Clause */
/* The file of a process's grants: see grants.h. */
#include "tools/fabric/wire/grants.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define GRANTS_MAGIC	 0x67726e74u
#define STOPPED_AFTER_NS 1000000000 /* a write takes microseconds */

/* The kernel marks a robust mutex when its owner dies. */
static void init_robust(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

/* Return: 0 if it is unknown. */
static uint64_t pid_namespace(void)
{
	struct stat file;

	return stat("/proc/self/ns/pid", &file) ? 0 : file.st_ino;
}

/* Return: NULL, with errno. */
static struct fab_grants *map_file(int fd)
{
	struct fab_grants *grants =
		mmap(NULL, sizeof(*grants), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return grants == MAP_FAILED ? NULL : grants;
}

int fab_grants_create(const char *path, struct fab_grants **ret)
{
	struct fab_grants *grants = NULL;
	int fd;

	/* Peers of an ended process may still have its file mapped. */
	unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (!ftruncate(fd, sizeof(*grants)))
		grants = map_file(fd);
	close(fd);
	if (!grants)
		return -errno;
	grants->pid = getpid();
	grants->pid_namespace = pid_namespace();
	init_robust(&grants->alive);
	__atomic_store_n(&grants->magic, GRANTS_MAGIC, __ATOMIC_RELEASE);
	*ret = grants;
	return 0;
}

/* A file of root's process is not open to others, but root may open the file of any user. */
static bool is_own_file(int fd)
{
	struct stat file;

	return !fstat(fd, &file) && S_ISREG(file.st_mode) && file.st_uid == geteuid() &&
	       file.st_size == sizeof(struct fab_grants);
}

static bool is_own_process(int32_t pid)
{
	struct stat process;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%" PRId32, pid);
	return pid > 0 && !stat(path, &process) && process.st_uid == geteuid();
}

int fab_grants_open(const char *path, struct fab_grants **ret, int32_t *ret_pid)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct fab_grants *grants = NULL;

	if (fd < 0)
		return -errno;
	if (is_own_file(fd))
		grants = map_file(fd);
	close(fd);
	if (!grants)
		return -EPROTO;
	if (__atomic_load_n(&grants->magic, __ATOMIC_ACQUIRE) == GRANTS_MAGIC &&
	    grants->pid_namespace && grants->pid_namespace == pid_namespace()) {
		*ret_pid = __atomic_load_n(&grants->pid, __ATOMIC_RELAXED);
		if (is_own_process(*ret_pid)) {
			*ret = grants;
			return 0;
		}
	}
	fab_grants_close(grants);
	return -ESRCH;
}

/* Or else a full file system ends the process at its first store. */
static bool allocate_ring(const char *path, size_t index)
{
	off_t at =
		(off_t)(offsetof(struct fab_grants, rings.ring) + index * sizeof(struct fab_ring));
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool done;

	if (fd < 0)
		return false;
	done = !fallocate(fd, FALLOC_FL_KEEP_SIZE, at, sizeof(struct fab_ring)) ||
	       errno == EOPNOTSUPP;
	close(fd);
	return done;
}

uint8_t fab_grants_claim_ring(const char *path, struct fab_grants **ret)
{
	struct fab_grants *grants;
	uint8_t claimed;
	int32_t pid;

	if (fab_grants_open(path, &grants, &pid))
		return 0;
	claimed = fab_rings_claim(&grants->rings);
	if (claimed && !allocate_ring(path, claimed - 1u)) {
		fab_ring_release(&grants->rings.ring[claimed - 1]);
		claimed = 0;
	}
	if (claimed)
		*ret = grants;
	else
		fab_grants_close(grants);
	return claimed;
}

void fab_grants_close(struct fab_grants *grants)
{
	if (grants)
		munmap(grants, sizeof(*grants));
}

void fab_grants_declare_alive(struct fab_grants *grants)
{
	if (grants)
		pthread_mutex_lock(&grants->alive);
}

/*
 * Not pthread_mutex_trylock(): that follows pointers in the mutex, which a peer can change. The
 * kernel sets FUTEX_OWNER_DIED in the mutex's futex when the thread has ended, by exec() too.
 */
bool fab_grants_is_alive(const struct fab_grants *grants)
{
	int word = __atomic_load_n(&grants->alive.__data.__lock, __ATOMIC_ACQUIRE);

	return word & FUTEX_TID_MASK && !(word & FUTEX_OWNER_DIED);
}

/* --- locks ---------------------------------------------------------------- */

static bool change_holder(struct fab_grant *grant, uint32_t from)
{
	return __atomic_compare_exchange_n(&grant->holder, &from, (uint32_t)gettid(), false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

bool fab_grant_trylock(struct fab_grant *grant)
{
	return change_holder(grant, 0);
}

void fab_grant_unlock(struct fab_grant *grant)
{
	__atomic_store_n(&grant->holder, 0, __ATOMIC_RELEASE);
}

/* Takes the lock from a thread that has ended, too. */
static bool take_lock(struct fab_grant *grant)
{
	uint32_t holder = __atomic_load_n(&grant->holder, __ATOMIC_RELAXED);
	bool has_ended = holder &&
			 (holder > INT32_MAX || (kill((pid_t)holder, 0) && errno == ESRCH));

	return (!holder || has_ended) && change_holder(grant, holder);
}

bool fab_grant_lock(struct fab_grant *grant)
{
	const struct timespec pause = { .tv_nsec = 20000 };
	uint64_t until_ns;

	if (take_lock(grant))
		return true;
	until_ns = clock_ns() + STOPPED_AFTER_NS;
	do {
		nanosleep(&pause, NULL);
		if (take_lock(grant))
			return true;
	} while (clock_ns() < until_ns);
	return false;
}

void fab_grant_free_lock(struct fab_grant *grant)
{
	if (__atomic_load_n(&grant->holder, __ATOMIC_RELAXED) && take_lock(grant))
		fab_grant_unlock(grant);
}

void fab_grant_header(const struct fab_packet *packet, struct fab_packet *ret)
{
	memcpy(ret, packet, sizeof(*ret)); /* with its padding, for memcmp() */
	ret->op = 0;
	ret->flags &= FAB_GRH;
	ret->psn = 0;
	ret->rkey = 0;
	ret->dma_bytes = 0;
	ret->bytes = 0;
	ret->remote_addr = 0;
	ret->ring = 0;
}
