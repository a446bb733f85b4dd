/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs objects of a stream socket: queue pair, completion queues, registered memory, and
 * posted work requests. The socket's lock must be held.
 */
#ifndef LIB_RSOCKET_MEMORY_H
#define LIB_RSOCKET_MEMORY_H

#include "lib/rsocket/stream.h"

/**
 * memory_make() - create everything that a connection needs, with receives posted
 *
 * Sizes are clamped to the device's limits. The id must have a device.
 *
 * Return: 0 or -errno; what was created before is released by memory_free().
 */
int memory_make(struct stream *s);

/** memory_free() - release what was created, the queue pair first */
void memory_free(struct stream *s);

/** memory_hello() - our rs_hello, for REQ or REP. */
struct rs_hello memory_hello(const struct stream *s);

/** memory_learn() - take the peer's rs_hello. Return: 0; -ENOTSUP if it is not compatible. */
int memory_learn(struct stream *s, const struct rs_hello *hello);

/** memory_post_recvs() - post @n receives. Return: 0 or -errno. */
int memory_post_recvs(struct stream *s, uint32_t n);

#define RECV_WR_ID UINT64_MAX /* of all receives; sends have other values */

/* Memory to be sent, as in work requests. */
struct piece {
	const void *at;
	uint32_t bytes;
	uint32_t lkey;
};

/* The work requests covered by a send completion. */
struct sent {
	enum rs_op op;
	uint16_t slots;	     /* number of requests; 0: unsignaled, completes only on failure */
	uint32_t ring_bytes; /* bytes of the send buffer released */
};

/** sent_of() - decode a completion's wr_id */
struct sent sent_of(uint64_t wr_id);

/**
 * memory_post() - post an RDMA write, with or without a message
 * @op:        RS_OP_DATA and RS_OP_WRITE may be unsignaled: see window.h
 * @ring_bytes: bytes of the send buffer that it occupies
 * @message:   immediate data, in host order; NULL: none
 * @piece:     one or two pieces to write
 * @n_pieces:  0 to send only the message
 * @is_inline: copy the data before returning, from any memory
 * @to:        the destination; its size is ignored
 *
 * Return: 0 or -errno.
 */
int memory_post(struct stream *s, enum rs_op op, uint32_t ring_bytes, const uint32_t *message,
		const struct piece *piece, int n_pieces, bool is_inline, struct rs_entry to);

/** memory_note_is_inline() - return whether entries of the peer's table can be sent inline */
bool memory_note_is_inline(const struct stream *s);

/**
 * memory_note() - prepare an entry of the peer's table for sending
 * @note:  must stay valid until it is posted
 * @bytes: at most the size of struct rs_iomap_entry
 *
 * If it cannot be sent inline it is copied into registered memory, which is reused after as many
 * notes as the send queue has slots.
 */
struct piece memory_note(struct stream *s, const void *note, uint32_t bytes);

/**
 * memory_arm() - request an event when something is received
 * @for_sent: and when something is sent
 *
 * Return: the descriptor of the event, or -1.
 */
int memory_arm(struct stream *s, bool for_sent);

/** memory_disarm() - read an event. Return: whether there was one. */
bool memory_disarm(struct stream *s);

#endif
