/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device's side of a stream socket: queue pair, completion queues, registered memory, and the
 * work requests that are posted. Called under the socket's lock.
 */
#ifndef LIB_RSOCKET_MEMORY_H
#define LIB_RSOCKET_MEMORY_H

#include "lib/rsocket/stream.h"

/**
 * memory_make() - all that a connection needs, with receives posted
 *
 * The sizes are clamped to the device's limits. The id has a device.
 *
 * Return: 0 or -errno; what was made until then is for memory_free().
 */
int memory_make(struct stream *s);

/** memory_free() - whatever was made; the queue pair first. */
void memory_free(struct stream *s);

/** memory_hello() - our rs_hello, for REQ or REP. */
struct rs_hello memory_hello(const struct stream *s);

/** memory_learn() - the peer's rs_hello. Return: 0; -ENOTSUP if we cannot talk to it. */
int memory_learn(struct stream *s, const struct rs_hello *hello);

/** memory_post_recvs() - so many receives. Return: 0 or -errno. */
int memory_post_recvs(struct stream *s, uint32_t n);

#define RECV_WR_ID UINT64_MAX /* of all receives; no send has it */

/* A piece of memory to be sent, as work requests name it. */
struct piece {
	const void *at;
	uint32_t bytes;
	uint32_t lkey;
};

/* What a send completion covers. */
struct sent {
	enum rs_op op;
	uint16_t slots;	     /* requests; 0: it is not signaled and comes only if it fails */
	uint32_t ring_bytes; /* of the send buffer, free again */
};

/** sent_of() - from the completion's wr_id. */
struct sent sent_of(uint64_t wr_id);

/**
 * memory_post() - an RDMA write, with a message or without
 * @op:        RS_OP_DATA and RS_OP_WRITE may be unsignaled: see window.h
 * @ring_bytes: of the send buffer that it occupies
 * @message:   immediate data, in host order; NULL: none
 * @piece:     what to write, one or two
 * @n_pieces:  0 for nothing but the message
 * @is_inline: the data is copied before this returns, from any memory
 * @to:        where to; its bytes are ignored
 *
 * Return: 0 or -errno.
 */
int memory_post(struct stream *s, enum rs_op op, uint32_t ring_bytes, const uint32_t *message,
		const struct piece *piece, int n_pieces, bool is_inline, struct rs_entry to);

/** memory_note_is_inline() - can entries of the peer's table be sent inline? */
bool memory_note_is_inline(const struct stream *s);

/**
 * memory_note() - an entry for the peer's table, where it can be sent from
 * @note:  must stay valid until it is posted
 * @bytes: at most those of struct rs_iomap_entry
 *
 * If it cannot be sent inline it is copied into registered memory, which is reused after as many
 * notes as the send queue has slots.
 */
struct piece memory_note(struct stream *s, const void *note, uint32_t bytes);

/**
 * memory_arm() - ask for an event when something is received
 * @for_sent: and when something is sent
 *
 * Return: the descriptor it comes on, or -1.
 */
int memory_arm(struct stream *s, bool for_sent);

/** memory_disarm() - take an event. Return: whether there was one. */
bool memory_disarm(struct stream *s);

#endif
