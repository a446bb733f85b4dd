/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The turn to send on a stream socket, or to receive: one call at a time, while it releases the
 * socket's lock between pieces. Unlike a second mutex, an uncontended turn costs nothing.
 */
#ifndef LIB_RSOCKET_TURN_H
#define LIB_RSOCKET_TURN_H

#include <pthread.h>
#include <stdbool.h>

struct turn {
	bool is_taken;
	unsigned int n_waiting;
	pthread_cond_t given;
};

/** turn_init() - initialize an untaken turn, for turn_fini() */
static inline void turn_init(struct turn *turn)
{
	*turn = (struct turn){ .given = PTHREAD_COND_INITIALIZER };
}

static inline void turn_fini(struct turn *turn)
{
	pthread_cond_destroy(&turn->given);
}

/** turn_take() - wait for the turn; @lock must be held, and is released while waiting */
static inline void turn_take(struct turn *turn, pthread_mutex_t *lock)
{
	turn->n_waiting++;
	while (turn->is_taken)
		pthread_cond_wait(&turn->given, lock);
	turn->n_waiting--;
	turn->is_taken = true;
}

/** turn_give() - release the turn; the lock must be held */
static inline void turn_give(struct turn *turn)
{
	turn->is_taken = false;
	if (turn->n_waiting)
		pthread_cond_signal(&turn->given);
}

#endif
