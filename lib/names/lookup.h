/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Name lookups of ids: rdma_resolve_addrinfo() and rdma_query_addrinfo(). One at a time per id,
 * until its result is fetched. A thread per lookup queries name servers, so that the program never
 * waits for them; the engine queries subnet administrators.
 */
#ifndef LIB_NAMES_LOOKUP_H
#define LIB_NAMES_LOOKUP_H

#include "lib/id/id.h"
#include "lib/portd/proto/proto.h"

/**
 * lookup_abandon() - cancel the lookup of an id; the engine's lock is held
 * @ret_drop: to be sent with subnet_send()
 *
 * Return: whether there is something to send.
 */
bool lookup_abandon(struct id *id, struct portd_record *ret_drop);

#endif
