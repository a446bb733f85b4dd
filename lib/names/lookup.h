/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Name lookups of ids: rdma_resolve_addrinfo() and rdma_query_addrinfo(). One at a time per id,
 * until its result is fetched. A thread per lookup queries name servers, so that the program never
 * waits for them.
 */
#ifndef LIB_NAMES_LOOKUP_H
#define LIB_NAMES_LOOKUP_H

#include "lib/id/id.h"

/** lookup_abandon() - cancel the lookup of an id; the engine's lock is held. */
void lookup_abandon(struct id *id);

#endif
