/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The set-up of stream sockets on the service thread: the active side, and the sockets that a
 * listener creates.
 */
#ifndef LIB_RSOCKET_CONNECTING_H
#define LIB_RSOCKET_CONNECTING_H

#include "lib/rsocket/stream.h"

/** connect_start() - rsock_ops.connect */
int connect_start(struct rsock *rs, const struct sockaddr *addr, socklen_t bytes);

extern const struct stream_opening connect_opening;

/**
 * connect_take_event() - sync_complete() of an id that does not block, for the service thread
 *
 * Ignores that a bond has failed over, which ends no operation.
 */
int connect_take_event(struct rdma_cm_id *id);

/** connect_readable() - handle an event of a socket's id; serviced.readable. */
void connect_readable(struct serviced *serviced);

/** connect_expired() - end the set-up of a socket that hurries; serviced.expired */
void connect_expired(struct serviced *serviced);

/** connect_private_offset() - the offset of rs_hello in a REQ's private data for a family */
size_t connect_private_offset(int domain);

/** listen_start() - rsock_ops.listen; listen_accept() - rsock_ops.accept */
int listen_start(struct rsock *rs, int backlog);
int listen_accept(struct rsock *rs, struct sockaddr *addr, socklen_t *bytes);

/** listen_accept_now() - RSOCK_ACCEPT: listen_accept() without waiting */
int listen_accept_now(struct rsock *rs);

/**
 * listen_end() - close the sockets that were not accepted; the service's lock must be held
 *
 * A socket that rshutdown() has ended refuses what is yet to come.
 */
void listen_end(struct stream *listener);

/** connect_copy_name() - copy an address to a program, truncated to its room as by accept() */
void connect_copy_name(const struct sockaddr *from, struct sockaddr *to, socklen_t *bytes);

#endif
