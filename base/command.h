/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands of a device: verbs that query it or make, change or destroy its objects. A driver may
 * have firmware execute them, which takes up to half a millisecond. So none may run while a lock is
 * held for which all threads wait. This is checked if assertions are enabled.
 */
#ifndef BASE_COMMAND_H
#define BASE_COMMAND_H

#include <assert.h>
#include <stdbool.h>

/** command_forbid() - the calling thread has taken such a lock; calls may nest. */
void command_forbid(void);

/** command_permit() - the calling thread has released the lock. */
void command_permit(void);

/** command_permit_all() - in a forked child: this thread holds no lock. */
void command_permit_all(void);

/** command_is_permitted() - return whether the calling thread holds no such lock. */
bool command_is_permitted(void);

/** command_check() - call it before each command. */
static inline void command_check(void)
{
	assert(command_is_permitted());
}

#endif
