/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes MADs to umad. The kernel blocks a write of a message with a GRH while it resolves the
 * peer's link address, up to a second if the peer is dead. So a thread writes the messages to a
 * peer until a write to it returns at once; from then on the caller writes them itself. Messages to
 * one peer are sent in order.
 */
#ifndef MAD_UMAD_WRITER_H
#define MAD_UMAD_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "mad/port.h"

#define UMAD_THREADS	4		     /* dead peers that delay no other peer */
#define UMAD_QUEUED_MAX 1024		     /* queued messages; more are refused */
#define UMAD_SLOW_NS	UINT64_C(20000000)   /* a slower write has waited for resolution */
#define UMAD_TRUST_NS	UINT64_C(5000000000) /* a kernel suspects a neighbour for longer */

struct umad_writer;

/**
 * umad_writer_new() - create a writer and open its descriptors
 * @open: opens a descriptor with a send-only agent. Return: the descriptor, or -errno.
 *
 * Return: 0, with *ret to be released with umad_writer_close(); -ENOMEM; -errno of @open.
 */
int umad_writer_new(int (*open)(void *arg, uint32_t *ret_agent), void *arg,
		    struct umad_writer **ret);

/**
 * umad_writer_send() - send a MAD; thread-safe, does not block
 *
 * Return: 0, also if the message was queued, in which case errors are only logged; -EAGAIN if the
 * queue is full; -errno as umad_write().
 */
int umad_writer_send(struct umad_writer *writer, const struct mad_path *path,
		     const uint8_t mad[MAD_BYTES]);

/** umad_writer_has_queued() - return whether a message to a peer is queued; thread-safe */
bool umad_writer_has_queued(struct umad_writer *writer, const struct mad_gid *gid);

/**
 * umad_writer_close() - send the queued messages, waiting at most a second, and free all. NULL is
 * allowed.
 */
void umad_writer_close(struct umad_writer *writer);

#endif
