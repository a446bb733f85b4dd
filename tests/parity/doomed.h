/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parity: how far a program comes before it ends without cleaning up. Played by exit.c, where it
 * ends alone, and by killed.c, where what serves it is killed together with it.
 */
#ifndef PARITY_DOOMED_H
#define PARITY_DOOMED_H

#include "parity.h"

/** connect_only() - as a client: a connection, and the other side is met */
void connect_only(struct scene *s);

/** accept_only() - as a server: likewise */
void accept_only(struct scene *s);

/** send_request_only() - a request on its way, without waiting for the reply */
void send_request_only(struct scene *s);

/** take_request_only() - as a server: a request in its hands, unanswered */
void take_request_only(struct scene *s);

/** ask_to_disconnect_only() - as a client: right after rdma_disconnect() */
void ask_to_disconnect_only(struct scene *s);

/** watch_request() - the other side of send_request_only(): the request outlives its sender */
void watch_request(struct scene *s);

#endif
