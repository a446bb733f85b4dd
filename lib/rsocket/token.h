/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A token for one thread at a time, to send on a stream socket or to receive, which it keeps while
 * it releases the socket's lock between pieces. Unlike a second mutex, an uncontended token costs
 * nothing.
 */
#ifndef LIB_RSOCKET_TOKEN_H
#define LIB_RSOCKET_TOKEN_H

#include <pthread.h>
#include <stdbool.h>

struct token {
	bool is_taken;
	bool is_asleep; /* its thread waits for the peer */
	unsigned int n_waiting;
	pthread_cond_t given;
};

/** token_init() - initialize a free token, for token_fini() */
static inline void token_init(struct token *token)
{
	*token = (struct token){ .given = PTHREAD_COND_INITIALIZER };
}

static inline void token_fini(struct token *token)
{
	pthread_cond_destroy(&token->given);
}

/** token_wait() - wait for a change of a token; @lock must be held, and is released meanwhile */
static inline void token_wait(struct token *token, pthread_mutex_t *lock)
{
	token->n_waiting++;
	pthread_cond_wait(&token->given, lock);
	token->n_waiting--;
}

/** token_rest() - before its thread waits for the peer, and after; the lock must be held */
static inline void token_rest(struct token *token, bool is_asleep)
{
	token->is_asleep = is_asleep;
	if (is_asleep && token->n_waiting)
		pthread_cond_broadcast(&token->given);
}

/** token_give() - release the token; the lock must be held */
static inline void token_give(struct token *token)
{
	token->is_taken = false;
	if (token->n_waiting)
		pthread_cond_signal(&token->given);
}

#endif
