/* SPDX-License-Identifier: BSD-2-Clause */
/* The file of a process's grants: see grants.h. */
#include "tools/fabric/wire/grants.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define GRANTS_MAGIC  0x67726e74u
#define STOPPED_AFTER 1 /* second; a write takes microseconds */

/* The kernel releases a robust mutex when its owner dies. */
static void lock_init(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

/* @err: of a function that locks. Return: whether it is locked. */
static bool is_locked(pthread_mutex_t *lock, int err)
{
	if (err == EOWNERDEAD)
		pthread_mutex_consistent(lock);
	return !err || err == EOWNERDEAD;
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
	unsigned int i;
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
	lock_init(&grants->alive);
	for (i = 0; i < FAB_GRANTS; i++)
		lock_init(&grants->grant[i].lock);
	__atomic_store_n(&grants->magic, GRANTS_MAGIC, __ATOMIC_RELEASE);
	*ret = grants;
	return 0;
}

int fab_grants_open(const char *path, struct fab_grants **ret)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct fab_grants *grants = NULL;
	struct stat file;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &file) && file.st_size == sizeof(*grants))
		grants = map_file(fd);
	close(fd);
	if (!grants)
		return -EPROTO;
	if (__atomic_load_n(&grants->magic, __ATOMIC_ACQUIRE) == GRANTS_MAGIC &&
	    grants->pid_namespace && grants->pid_namespace == pid_namespace()) {
		*ret = grants;
		return 0;
	}
	fab_grants_close(grants);
	return -ESRCH;
}

void fab_grants_close(struct fab_grants *grants)
{
	if (grants)
		munmap(grants, sizeof(*grants));
}

void fab_grants_live(struct fab_grants *grants)
{
	if (grants)
		pthread_mutex_lock(&grants->alive);
}

bool fab_grants_is_alive(struct fab_grants *grants)
{
	int err = pthread_mutex_trylock(&grants->alive);

	/* After the death of its owner, this makes it impossible to lock it. */
	if (!err || err == EOWNERDEAD)
		pthread_mutex_unlock(&grants->alive);
	return err == EBUSY;
}

bool fab_grant_lock(struct fab_grant *grant)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += STOPPED_AFTER;
	return is_locked(&grant->lock, pthread_mutex_timedlock(&grant->lock, &until));
}

bool fab_grant_trylock(struct fab_grant *grant)
{
	return is_locked(&grant->lock, pthread_mutex_trylock(&grant->lock));
}

void fab_grant_unlock(struct fab_grant *grant)
{
	pthread_mutex_unlock(&grant->lock);
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
}
