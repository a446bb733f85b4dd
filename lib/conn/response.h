/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the answers to a REQ mean for an active id, in the program's thread: its queue pair moves to
 * RTS and the REP is answered, or the queue pair moves to ERR. Nothing of that would be safe in
 * another thread.
 */
#ifndef LIB_CONN_RESPONSE_H
#define LIB_CONN_RESPONSE_H

#include "lib/event/channel.h"

/** response_taken() - CONNECT_RESPONSE: see struct event. With a queue pair of ours, ESTABLISHED.
 */
int response_taken(struct event *event);

/** response_rejected() - REJECTED */
int response_rejected(struct event *event);

/** response_missing() - UNREACHABLE: what cmportd remembers of the path may be out of date. */
int response_missing(struct event *event);

#endif
