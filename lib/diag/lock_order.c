/* SPDX-License-Identifier: BSD-2-Clause */
/* The locks that a thread holds: see lock_order.h. */
#include "lib/diag/lock_order.h"

#include <assert.h>

#include "base/command.h"

#ifndef NDEBUG
static __thread unsigned int held __attribute__((tls_model("initial-exec")));

void lock_taken(enum lock_rank rank)
{
	assert(held >> rank == 0);
	held |= 1u << rank;
	if (rank >= LOCK_ENGINE)
		command_forbid();
}

void lock_given(enum lock_rank rank)
{
	assert(held >> rank & 1);
	held &= ~(1u << rank);
	if (rank >= LOCK_ENGINE)
		command_permit();
}

void lock_after_fork(void)
{
	held = 0;
	command_permit_all();
}
#endif
