/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device's side of a stream socket: queue pair, completion queue, registered memory, and the
 * work requests that are posted to them. Called under the socket's lock.
 */
#ifndef LIB_RSOCKET_MEMORY_H
#define LIB_RSOCKET_MEMORY_H

#include "lib/rsocket/stream.h"

/**
 * memory_make() - all that a connection needs, with receives posted
 *
 * The sizes are cut to what the device can do. The id has been shown its device.
 *
 * Return: 0 or -errno; what was made until then is for memory_free().
 */
int memory_make(struct stream *s);

/** memory_free() - all that is there; the queue pair first. */
void memory_free(struct stream *s);

/** memory_hello() - what to say of ourselves in REQ or REP. */
struct rs_hello memory_hello(const struct stream *s);

/** memory_learn() - what the peer said of itself. Return: 0; -ENOTSUP if we cannot talk to it. */
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

/* What a completion says of its work request. */
struct sent {
	enum rs_op op;
	uint16_t slots;	     /* of how many requests it tells; 0: it was to come only if it fails */
	uint32_t ring_bytes; /* of the send buffer, free again */
};

/** sent_of() - from the completion's wr_id. */
struct sent sent_of(uint64_t wr_id);

/**
 * memory_post() - an RDMA write, with a message or without
 * @op:        RS_OP_DATA and RS_OP_WRITE complete together with later ones: see window.h
 * @ring_bytes: of the send buffer, that it occupies
 * @message:   immediate data, in host order; NULL: the peer is not told
 * @piece:     what to write, one or two
 * @n_pieces:  0 for nothing but the message
 * @is_inline: the data is taken before this returns, from any memory
 * @to:        where to; bytes are not looked at
 *
 * Return: 0 or -errno.
 */
int memory_post(struct stream *s, enum rs_op op, uint32_t ring_bytes, const uint32_t *message,
		const struct piece *piece, int n_pieces, bool is_inline, struct rs_entry to);

/** memory_note_is_inline() - is what goes into the peer's table small enough to be sent inline? */
bool memory_note_is_inline(const struct stream *s);

/**
 * memory_note() - what goes into the peer's table, from where it can be sent
 * @note:  stays where it is until it is posted
 * @bytes: at most those of struct rs_iomap_entry
 *
 * If it is not to be sent inline, it is copied into registered memory, which is used again when as
 * many as there are slots for messages have been noted since.
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
