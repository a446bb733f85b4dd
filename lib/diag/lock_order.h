/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock order of the library, checked if assertions are enabled: each thread keeps a bit mask of
 * the locks that it holds, and must hold none that comes later in the order. So a violation is
 * detected the first time, without an actual deadlock. Use these functions instead of
 * pthread_mutex_lock() and pthread_mutex_unlock(). With the engine's lock or a later one, no
 * command of a device may run (base/command.h).
 *
 * The lock of a client of cmportd (lib/portd/client/portd_requests.h) comes between devices and
 * host. All other locks (lib/net/, mad/, memory of ids, the log) are innermost, and held briefly.
 */
#ifndef LIB_DIAG_LOCK_ORDER_H
#define LIB_DIAG_LOCK_ORDER_H

#include <pthread.h>

/* In locking order. */
enum lock_rank {
	LOCK_QP, /* of an id, while its queue pair is used or removed */
	LOCK_DEVICES,
	LOCK_HOST,
	LOCK_ENGINE,
	LOCK_CHANNELS, /* of the set of channels */
	LOCK_CHANNEL,
	LOCK_ID,
};

#ifdef NDEBUG
/* Without assertions nothing is recorded: a connection takes some fifty locks. */
static inline void lock_taken(enum lock_rank rank)
{
	(void)rank;
}

static inline void lock_given(enum lock_rank rank)
{
	(void)rank;
}

static inline void lock_after_fork(void)
{
}
#else
/** lock_taken() - record a lock that the thread takes, or has taken by other means. */
void lock_taken(enum lock_rank rank);

/** lock_given() - record a lock that the thread gives. */
void lock_given(enum lock_rank rank);

/** lock_after_fork() - in a forked child: record that no lock is held. */
void lock_after_fork(void);
#endif

/** lock_take() - lock; the thread must not hold this lock or a later one. */
static inline void lock_take(pthread_mutex_t *lock, enum lock_rank rank)
{
	lock_taken(rank);
	pthread_mutex_lock(lock);
}

/** lock_give() - unlock, in any order. */
static inline void lock_give(pthread_mutex_t *lock, enum lock_rank rank)
{
	lock_given(rank);
	pthread_mutex_unlock(lock);
}

#endif
