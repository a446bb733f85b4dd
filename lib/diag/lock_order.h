/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order in which the library's locks nest, checked where assertions are: each thread remembers
 * which it holds, as bits, and must hold none that come later. So a thread that takes locks in the
 * wrong order is caught the first time, without a second thread that deadlocks with it. These
 * functions stand in place of pthread_mutex_lock() and pthread_mutex_unlock().
 *
 * The lock of a client of cmportd (lib/portd/client/request.h) comes between host and engine. All
 * other locks (lib/net/, mad/, memory of ids, the log) are taken last, and briefly.
 */
#ifndef LIB_DIAG_LOCK_ORDER_H
#define LIB_DIAG_LOCK_ORDER_H

#include <pthread.h>

/* In the order in which they are taken. */
enum lock_rank {
	LOCK_QP, /* of an id, while its queue pair is used or taken away */
	LOCK_DEVICES,
	LOCK_HOST,
	LOCK_ENGINE,
	LOCK_CHANNELS, /* the set of them */
	LOCK_CHANNEL,
	LOCK_ID,
};

/** lock_take() - lock; the thread must hold neither this one nor any that comes after it. */
void lock_take(pthread_mutex_t *lock, enum lock_rank rank);

/** lock_give() - unlock; in any order. */
void lock_give(pthread_mutex_t *lock, enum lock_rank rank);

/** lock_taken() - the calling thread has locked it in another way. */
void lock_taken(enum lock_rank rank);

/** lock_after_fork() - the child's only thread holds none. */
void lock_after_fork(void);

#endif
