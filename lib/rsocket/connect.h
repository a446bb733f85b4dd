/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How stream sockets get connected, step by step on the service thread: the active side, and the
 * sockets that a listener makes.
 */
#ifndef LIB_RSOCKET_CONNECT_H
#define LIB_RSOCKET_CONNECT_H

#include "lib/rsocket/stream.h"

/** connect_start() - rsock_ops.connect */
int connect_start(struct rsock *rs, const struct sockaddr *addr, socklen_t bytes);

extern const struct stream_opening connect_opening;

/** connect_readable() - an event of a socket's id has come; serviced.readable. */
void connect_readable(struct serviced *serviced);

/** connect_private_bytes() - how far in the private data of a REQ we begin, for this family. */
size_t connect_private_offset(int domain);

/** connect_param() - the parameters of REQ or REP that both sides share, without private data. */
struct rdma_conn_param connect_param(void);

/** listen_start() - rsock_ops.listen; listen_accept() - rsock_ops.accept */
int listen_start(struct rsock *rs, int backlog);
int listen_accept(struct rsock *rs, struct sockaddr *addr, socklen_t *bytes);

/** listen_end() - drop all that was not accepted; the service's lock is held. */
void listen_end(struct stream *listener);

/** connect_copy_name() - an address for a program, cut to its room as by accept(). */
void connect_copy_name(const struct sockaddr *from, struct sockaddr *to, socklen_t *bytes);

#endif
