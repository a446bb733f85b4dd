/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles the answers to a REQ for an active id, in the program's thread: moves its queue pair to
 * RTS and answers the REP, or moves the queue pair to ERR. This would not be safe in another
 * thread.
 */
#ifndef LIB_CONN_RESPONSE_H
#define LIB_CONN_RESPONSE_H

#include "lib/event/channel.h"

/**
 * response_taken() - taken() of CONNECT_RESPONSE, which becomes ESTABLISHED if the library has the
 * queue pair
 */
int response_taken(struct event *event);

/** response_rejected() - taken() of REJECTED */
int response_rejected(struct event *event);

/** response_missing() - taken() of UNREACHABLE: cmportd revalidates the path. */
int response_missing(struct event *event);

#endif
