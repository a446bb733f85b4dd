/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many messages to try to read from a descriptor per turn of the loop. Detecting an empty queue
 * costs a system call, so as many messages are tried as came lately; after a single message, no
 * second one is tried for READS_PAUSE turns.
 */
#ifndef BASE_READS_H
#define BASE_READS_H

#include <stdbool.h>

#define READS_PAUSE 8 /* turns */

struct reads {
	unsigned int most; /* to try per turn; initially 1 */
	unsigned int pause;
};

/**
 * reads_done() - choose how many messages to try in the next turn
 * @n:       messages read in this turn
 * @emptied: the last try found the queue empty
 * @limit:   maximum of @reads->most
 */
static inline void reads_done(struct reads *reads, unsigned int n, bool emptied, unsigned int limit)
{
	bool grows = !emptied && !reads->pause;
	unsigned int most = grows ? 2 * n : n;

	if (emptied)
		reads->pause = n <= 1 ? READS_PAUSE : 0;
	else if (reads->pause)
		reads->pause--;
	reads->most = most == 0 ? 1 : most < limit ? most : limit;
}

#endif
