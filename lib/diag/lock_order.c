/* SPDX-License-Identifier: BSD-2-Clause */
/* The locks that a thread holds: see lock_order.h. */
#include "lib/diag/lock_order.h"

#include <assert.h>

#include "base/command.h"

static __thread unsigned int held __attribute__((tls_model("initial-exec")));

void lock_taken(enum lock_rank rank)
{
	assert(held >> rank == 0);
	held |= 1u << rank;
	if (rank >= LOCK_ENGINE)
		command_forbid();
}

void lock_take(pthread_mutex_t *lock, enum lock_rank rank)
{
	lock_taken(rank);
	pthread_mutex_lock(lock);
}

void lock_give(pthread_mutex_t *lock, enum lock_rank rank)
{
	assert(held >> rank & 1);
	held &= ~(1u << rank);
	if (rank >= LOCK_ENGINE)
		command_permit();
	pthread_mutex_unlock(lock);
}

void lock_after_fork(void)
{
	held = 0;
	command_permit_all();
}
