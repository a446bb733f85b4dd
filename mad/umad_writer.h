/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who writes to umad. A write of a message with a GRH holds its writer while the kernel resolves
 * the peer's link address, up to a second when the peer is dead. So messages to a peer are written
 * by a thread of ours until a write to it has come back at once; from then on by the caller, who
 * pays nothing for that. Messages to one peer leave in their order.
 */
#ifndef MAD_UMAD_WRITER_H
#define MAD_UMAD_WRITER_H

#include <stdint.h>

#include "mad/port.h"

#define UMAD_LANES   4			/* so many dead peers hold up nobody else */
#define UMAD_LETTERS 1024		/* that wait for threads: more are refused */
#define UMAD_SLOW_NS UINT64_C(20000000) /* a write that takes longer had to wait */
#define UMAD_TRUST_NS                                                              \
	UINT64_C(5000000000) /* a kernel suspects a neighbour for longer than that \
			      */

struct umad_writer;

/**
 * umad_writer_new() - have descriptors to write to
 * @open: opens one with an agent that only sends. Return: it, or -errno.
 *
 * Return: 0, with *ret to be given back with umad_writer_close(); -ENOMEM; as @open.
 */
int umad_writer_new(int (*open)(void *arg, uint32_t *ret_agent), void *arg,
		    struct umad_writer **ret);

/**
 * umad_writer_send() - send a MAD; any thread may call it, and none is held up
 *
 * Return: 0, also if it is written later, and what is wrong then is only logged; -EAGAIN if too
 * many wait; as umad_write().
 */
int umad_writer_send(struct umad_writer *writer, const struct mad_path *path,
		     const uint8_t mad[MAD_BYTES]);

/** umad_writer_close() - what waits is written if that takes no second; close all. NULL is allowed.
 */
void umad_writer_close(struct umad_writer *writer);

#endif
