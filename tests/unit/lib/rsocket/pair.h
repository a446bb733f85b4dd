/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two connected stream sockets without a connection manager: each can be used through the public
 * calls, by its descriptor.
 */
#ifndef PAIR_H
#define PAIR_H

#include "lib/rsocket/stream.h"

struct pair {
	struct stream *end[2];
	int fd[2];
};

/** pair_make() - make a pair with these sizes on both ends, for pair_free(). */
struct pair pair_make(struct stream_sizes sizes);
void pair_free(struct pair *pair);

/** pair_small() - the sizes of most tests: small, so that limits are reached. */
struct stream_sizes pair_small(void);

#endif
