/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parity: states of a program that ends without cleanup. Used by exit.c, where it ends alone, and
 * by killed.c, where its cmportd is killed too.
 */
#ifndef PARITY_DOOMED_H
#define PARITY_DOOMED_H

#include "parity.h"

/** connect_only() - as a client: connect, then meet the other side */
void connect_only(struct scene *s);

/** accept_only() - as a server: accept, then meet the other side */
void accept_only(struct scene *s);

/** send_request_only() - send a request, without waiting for the reply */
void send_request_only(struct scene *s);

/** take_request_only() - as a server: take a request without answering it */
void take_request_only(struct scene *s);

/** ask_to_disconnect_only() - as a client: return right after rdma_disconnect() */
void ask_to_disconnect_only(struct scene *s);

/** watch_request() - the other side of send_request_only(): the request outlives its sender */
void watch_request(struct scene *s);

#endif
