/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two accounts of a stream socket: what we may send to the peer, and what the peer may send to
 * us. Pure arithmetic, which validates what the peer claims. It touches no memory and no messages.
 *
 * A receive buffer has two halves. The peer fills one, then the other, and is granted a half again
 * when all of it was read; it cannot write anywhere else. Message numbers have 16 bits and wrap.
 */
#ifndef LIB_RSOCKET_WINDOW_H
#define LIB_RSOCKET_WINDOW_H

#include "lib/rsocket/wire.h"

#define RING_FREE_MIN 2048 /* bytes of the send buffer: with fewer free, none is sent */
#define CTRL_SLOTS    4	   /* of the send queue, kept for messages that need no credit */

/* A completion is signaled at least for each such part of the slots and of the send buffer. With a
 * larger part of the buffer, long messages would wait for room. */
#define QUIET_SLOTS 8
#define QUIET_BYTES 32

/** window_wrap() - an index into a ring, after at most one wrap: no division */
static inline uint32_t window_wrap(uint32_t at, uint32_t size)
{
	return at < size ? at : at - size;
}

/* What we may send. */
struct send_window {
	uint16_t next;				/* number of the next message */
	uint16_t limit;				/* the first number that we may not send */
	uint16_t most;				/* how far limit may be ahead of next */
	struct rs_entry half[RS_TABLE_ENTRIES]; /* what is left of each half of the peer's buffer */
	unsigned int turn;			/* which of them is being filled */
	uint32_t data_slots;			/* of the send queue, that are free */
	uint32_t ctrl_slots;
	uint32_t ring_bytes; /* our send buffer */
	uint32_t ring_head;  /* where the next byte goes */
	uint32_t ring_free;
	uint32_t most_quiet;  /* messages without a signaled one */
	uint32_t quiet_slots; /* messages since the last signaled one */
	uint32_t quiet_bytes; /* of the send buffer, likewise */
};

/** send_window_init() - before the peer has said anything. */
void send_window_init(struct send_window *window, uint32_t sq_size, uint32_t ring_bytes);

/** send_window_open() - the peer's hello has come. */
void send_window_open(struct send_window *window, const struct rs_hello *hello);

/**
 * send_window_grant() - the peer grants credit up to a message
 *
 * Return: false if that goes backwards, or beyond the peer's receive queue.
 */
bool send_window_grant(struct send_window *window, uint16_t limit);

/**
 * send_window_refill() - look for halves that the peer has written into our table
 * @table: RS_TABLE_ENTRIES entries in registered memory; those taken are cleared
 *
 * Return: false if the peer overwrote one that was not used up.
 */
bool send_window_refill(struct send_window *window, struct rs_entry *table);

/** send_window_has_credit() - may a message be sent that needs credit? */
static inline bool send_window_has_credit(const struct send_window *window)
{
	return window->data_slots && window->next != window->limit;
}

/** send_window_room() - how many bytes the next message may have; 0: none can be sent now. */
static inline uint32_t send_window_room(const struct send_window *window)
{
	uint32_t left = window->half[window->turn].bytes;

	if (!send_window_has_credit(window) || window->ring_free < RING_FREE_MIN)
		return 0;
	return left < window->ring_free ? left : window->ring_free;
}

/** send_window_occupy() - a slot and so many bytes of the send buffer, until send_window_done() */
static inline void send_window_occupy(struct send_window *window, uint32_t ring_bytes)
{
	window->data_slots--;
	if (ring_bytes) {
		window->ring_free -= ring_bytes;
		window->ring_head = window_wrap(window->ring_head + ring_bytes, window->ring_bytes);
	}
}

/**
 * send_window_take() - a message is about to be sent
 * @bytes:   at most send_window_room()
 * @in_ring: it occupies the send buffer until send_window_done()
 *
 * Return: where it goes.
 */
static inline struct rs_entry send_window_take(struct send_window *window, uint32_t bytes,
					       bool in_ring)
{
	struct rs_entry *half = &window->half[window->turn];
	struct rs_entry target = *half;

	window->next++;
	send_window_occupy(window, in_ring ? bytes : 0);
	half->addr += bytes;
	half->bytes -= bytes;
	if (bytes && !half->bytes)
		window->turn = (window->turn + 1) % RS_TABLE_ENTRIES;
	return target;
}

/**
 * send_window_keep_quiet() - may a message that is about to be posted be unsignaled?
 * @ring_bytes: of the send buffer that it occupies
 *
 * A completion costs as much as a small message, and one covers all messages before it. When
 * nothing more can be sent, a signaled message is always under way.
 *
 * Return: false if it must be signaled: its completion covers quiet_slots messages and quiet_bytes,
 * itself included; call send_window_signal() then.
 */
static inline bool send_window_keep_quiet(struct send_window *window, uint32_t ring_bytes)
{
	window->quiet_slots++;
	window->quiet_bytes += ring_bytes;
	return window->ring_free >= RING_FREE_MIN && window->quiet_slots < window->most_quiet &&
	       window->quiet_bytes < window->ring_bytes / QUIET_BYTES;
}

/** send_window_signal() - a signaled message is posted: count anew. */
static inline void send_window_signal(struct send_window *window)
{
	window->quiet_slots = 0;
	window->quiet_bytes = 0;
}

/** send_window_done() - messages are sent, which occupied so many slots and bytes. */
static inline void send_window_done(struct send_window *window, uint32_t slots, uint32_t ring_bytes)
{
	window->data_slots += slots;
	window->ring_free += ring_bytes;
}

/* What the peer may send. */
struct recv_window {
	uint32_t ring_bytes; /* our receive buffer: two halves */
	uint32_t head;	     /* where the next byte is read */
	uint32_t unread;
	uint32_t granted;  /* to the peer, and not yet filled */
	uint32_t owed;	   /* read, and not yet granted again */
	unsigned int slot; /* of the peer's table: the next to write */
	unsigned int n_slots;
	unsigned int half; /* of our buffer: the next to grant */

	uint16_t done;	       /* messages that were read */
	uint16_t done_granted; /* of them, at the last grant */
	uint16_t rq_size;      /* how many may be under way */
	uint32_t *bytes;       /* a ring of rq_size: what is unread of each message */
	uint32_t first;
	uint32_t count;
};

/** recv_window_init() - an even ring_bytes. Return: 0 or -ENOMEM; for recv_window_fini(). */
int recv_window_init(struct recv_window *window, uint16_t rq_size, uint32_t ring_bytes);
void recv_window_fini(struct recv_window *window);

/** recv_window_add() - Return: false if a message of so many bytes was not allowed. */
bool recv_window_add(struct recv_window *window, uint32_t bytes);

/** recv_window_read() - so many bytes of the unread were read. */
void recv_window_read(struct recv_window *window, uint32_t bytes);

/** recv_window_skip() - a message that needs credit and has no bytes. */
static inline void recv_window_skip(struct recv_window *window)
{
	window->done++;
}

/* A message of credit, and of a half. */
struct grant {
	uint16_t limit;
	bool has_half;
	unsigned int slot;  /* of its table */
	uint32_t half_from; /* offset in our buffer */
};

/** recv_window_is_due() - is there enough to grant? */
static inline bool recv_window_is_due(const struct recv_window *window)
{
	return window->owed >= window->ring_bytes / 2 ||
	       (uint16_t)(window->done - window->done_granted) >= window->rq_size / 2;
}

/** recv_window_grant() - what to grant now; it counts as granted. */
struct grant recv_window_grant(struct recv_window *window);

#endif
