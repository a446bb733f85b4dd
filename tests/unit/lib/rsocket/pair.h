/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two stream sockets that are connected, without a connection manager: each can be used through the
 * public calls, by its descriptor.
 */
#ifndef PAIR_H
#define PAIR_H

#include "lib/rsocket/stream.h"

struct pair {
	struct stream *end[2];
	int fd[2];
};

/** pair_make() - with these sizes on both ends; for pair_free(). */
struct pair pair_make(struct stream_sizes sizes);
void pair_free(struct pair *pair);

/** pair_small() - the sizes that most tests take: small, so that they are reached. */
struct stream_sizes pair_small(void);

#endif
