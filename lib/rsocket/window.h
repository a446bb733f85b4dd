/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two accounts of a stream socket: what the peer lets us send, and what we let the peer send.
 * Pure arithmetic, checked against a peer that lies; memory and messages are elsewhere.
 *
 * A receive buffer has two halves. The peer fills one, then the other, and is told of a half again
 * when all of it was read; it cannot write anywhere else. Message numbers are 16 bits wide and
 * wrap.
 */
#ifndef LIB_RSOCKET_WINDOW_H
#define LIB_RSOCKET_WINDOW_H

#include "lib/rsocket/wire.h"

#define RING_FREE_MIN 2048 /* bytes of the send buffer: less is not worth a message */
#define CTRL_SLOTS    4	   /* of the send queue, kept for messages that need no credit */

/* What one completion tells of: such parts of the slots and of the send buffer. More of the buffer,
 * and what is long waits for room. */
#define QUIET_SLOTS 8
#define QUIET_BYTES 32

/** window_wrap() - a place in a ring that was moved on by no more than the ring: no division */
static inline uint32_t window_wrap(uint32_t at, uint32_t size)
{
	return at < size ? at : at - size;
}

/* What we may send. */
struct send_window {
	uint16_t next;				/* number of the next message */
	uint16_t limit;				/* the first number that we may not send */
	uint16_t most;				/* how far limit can be ahead of next */
	struct rs_entry half[RS_TABLE_ENTRIES]; /* what is left of each half of the peer's buffer */
	unsigned int turn;			/* which of them is being filled */
	uint32_t data_slots;			/* of the send queue, that are free */
	uint32_t ctrl_slots;
	uint32_t ring_bytes; /* our send buffer */
	uint32_t ring_head;  /* where the next byte goes */
	uint32_t ring_free;
	uint32_t most_quiet;  /* messages that one completion tells of */
	uint32_t quiet_slots; /* of messages since the last whose completion will tell */
	uint32_t quiet_bytes; /* of the send buffer, likewise */
};

/** send_window_init() - before the peer has said anything. */
void send_window_init(struct send_window *window, uint32_t sq_size, uint32_t ring_bytes);

/** send_window_open() - what the peer said of itself at the beginning. */
void send_window_open(struct send_window *window, const struct rs_hello *hello);

/**
 * send_window_grant() - the peer says up to which message there is credit
 *
 * Return: false if that goes backwards, or beyond what the peer can take.
 */
bool send_window_grant(struct send_window *window, uint16_t limit);

/**
 * send_window_refill() - look for halves that the peer has written into our table
 * @table: RS_TABLE_ENTRIES entries in registered memory; what is taken is cleared there
 *
 * Return: false if the peer wrote over one that was not used up.
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

/**
 * send_window_take() - a message is about to be sent
 * @bytes:   at most send_window_room()
 * @in_ring: it occupies the send buffer, until send_window_done()
 *
 * Return: where it goes.
 */
static inline struct rs_entry send_window_take(struct send_window *window, uint32_t bytes,
					       bool in_ring)
{
	struct rs_entry *half = &window->half[window->turn];
	struct rs_entry target = *half;

	window->next++;
	window->data_slots--;
	half->addr += bytes;
	half->bytes -= bytes;
	if (bytes && !half->bytes)
		window->turn = (window->turn + 1) % RS_TABLE_ENTRIES;
	if (in_ring) {
		window->ring_free -= bytes;
		window->ring_head = window_wrap(window->ring_head + bytes, window->ring_bytes);
	}
	return target;
}

/**
 * send_window_keep_quiet() - a message that was taken is about to be posted
 * @ring_bytes: of the send buffer, that it occupies
 *
 * A completion costs a device and us about as much as a small message, and one tells of all that
 * went before it. There is always one under way when nothing more can be sent.
 *
 * Return: true if its completion is not needed. Otherwise it tells of quiet_slots messages and
 * quiet_bytes, this one among them, and send_window_told() is to follow.
 */
static inline bool send_window_keep_quiet(struct send_window *window, uint32_t ring_bytes)
{
	window->quiet_slots++;
	window->quiet_bytes += ring_bytes;
	return window->ring_free >= RING_FREE_MIN && window->quiet_slots < window->most_quiet &&
	       window->quiet_bytes < window->ring_bytes / QUIET_BYTES;
}

/** send_window_told() - the message that was not kept quiet is posted. */
static inline void send_window_told(struct send_window *window)
{
	window->quiet_slots = 0;
	window->quiet_bytes = 0;
}

/** send_window_done() - so many messages that needed credit are sent; ring_bytes: they occupied. */
void send_window_done(struct send_window *window, uint32_t slots, uint32_t ring_bytes);

/* What the peer may send. */
struct recv_window {
	uint32_t ring_bytes; /* our receive buffer: two halves */
	uint32_t head;	     /* where the next byte is read */
	uint32_t unread;
	uint32_t promised; /* told of to the peer, and not yet filled */
	uint32_t owed;	   /* read, and not yet told of again */
	unsigned int slot; /* of the peer's table: the next to write */
	unsigned int n_slots;
	unsigned int half; /* of our buffer: the next to tell of */

	uint16_t done;	  /* messages that were read */
	uint16_t told;	  /* of them, when the peer was told last */
	uint16_t rq_size; /* how many may be under way */
	uint32_t *bytes;  /* a ring of rq_size: what is unread of each message */
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
void recv_window_skip(struct recv_window *window);

/* What to tell the peer. */
struct grant {
	uint16_t limit;
	bool has_half;
	unsigned int slot;  /* of its table */
	uint32_t half_from; /* offset in our buffer */
};

/** recv_window_is_due() - is there enough to tell? */
static inline bool recv_window_is_due(const struct recv_window *window)
{
	return window->owed >= window->ring_bytes / 2 ||
	       (uint16_t)(window->done - window->told) >= window->rq_size / 2;
}

/** recv_window_grant() - what to tell now; it counts as told. */
struct grant recv_window_grant(struct recv_window *window);

#endif
