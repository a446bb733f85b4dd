/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Look-ups of names for an id: rdma_resolve_addrinfo() and rdma_query_addrinfo(). One at a time an
 * id, until its result is fetched. What only a name server knows is asked for in a thread of its
 * own, so that the program never waits for one.
 */
#ifndef LIB_NAMES_LOOKUP_H
#define LIB_NAMES_LOOKUP_H

#include "lib/id/id.h"

/** lookup_abandon() - an id wants no answer any more; the engine's lock is held. */
void lookup_abandon(struct id *id);

#endif
