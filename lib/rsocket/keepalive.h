/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keepalives of stream sockets, SO_KEEPALIVE: the service thread writes nothing to the peer every
 * so often. The peer's program does not notice; a peer that is gone makes the write fail.
 */
#ifndef LIB_RSOCKET_KEEPALIVE_H
#define LIB_RSOCKET_KEEPALIVE_H

#include "lib/rsocket/stream.h"

/** keepalive_init() - none yet. */
void keepalive_init(struct stream *s);

/** keepalive_default_s() - the host's, for TCP. */
int keepalive_default_s(void);

/**
 * keepalive_update() - the options or the state have changed; the service's lock is held
 *
 * Return: 0 or -errno.
 */
int keepalive_update(struct stream *s);

#endif
