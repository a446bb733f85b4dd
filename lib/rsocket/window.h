/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow control of a stream socket in both directions: what we may send to the peer, and what the
 * peer may send. Pure arithmetic, which validates the peer's values, without memory accesses or
 * messages.
 *
 * A receive buffer has two halves. The peer fills one, then the other, and is granted a half again
 * when it was read completely; it cannot write anywhere else. A message only needs a receive that
 * is posted, so its credit comes back before it is read. Message numbers have 16 bits and wrap.
 */
#ifndef LIB_RSOCKET_WINDOW_H
#define LIB_RSOCKET_WINDOW_H

#include "lib/rsocket/stream_wire.h"

#define RING_FREE_MIN 2048 /* with fewer free bytes of the send buffer, nothing is sent */
#define CTRL_SLOTS    4	   /* send slots reserved for messages that need no credit */

/*
 * At least one completion is signaled for each such fraction of the slots and of the send buffer.
 * With a larger fraction of the buffer, long messages would wait for room.
 */
#define QUIET_SLOTS 8
#define QUIET_BYTES 32

/** window_wrap() - wrap an index into a ring, at most once, without division */
static inline uint32_t window_wrap(uint32_t at, uint32_t size)
{
	return at < size ? at : at - size;
}

/* Data to the peer. */
struct send_window {
	uint16_t next;				/* number of the next message */
	uint16_t limit;				/* the first number that may not be sent */
	uint16_t most;				/* maximum of limit - next */
	struct rs_entry half[RS_TABLE_ENTRIES]; /* remainder of each half of the peer's buffer */
	unsigned int turn;			/* index of the half being filled */
	uint32_t data_slots;			/* free send slots for data */
	uint32_t ctrl_slots;
	uint32_t ring_bytes; /* our send buffer */
	uint32_t ring_head;  /* offset of the next byte */
	uint32_t ring_free;
	uint32_t most_quiet;  /* maximum of consecutive unsignaled messages */
	uint32_t quiet_slots; /* messages since the last signaled one */
	uint32_t quiet_bytes; /* bytes of the send buffer, likewise */
};

/** send_window_init() - initialize before the peer's hello */
void send_window_init(struct send_window *window, uint32_t sq_size, uint32_t ring_bytes);

/** send_window_open() - take the credit of the peer's hello */
void send_window_open(struct send_window *window, const struct rs_hello *hello);

/**
 * send_window_grant() - set the credit to messages before @limit
 *
 * Return: false if that reduces it, or exceeds the peer's receive queue.
 */
bool send_window_grant(struct send_window *window, uint16_t limit);

/**
 * send_window_refill() - take halves that the peer has granted in our table
 * @table: RS_TABLE_ENTRIES entries in registered memory; taken entries are cleared
 *
 * Return: false if the peer overwrote a half that was not used up.
 */
bool send_window_refill(struct send_window *window, struct rs_entry *table);

/** send_window_credits() - the number of messages that may be sent */
static inline uint16_t send_window_credits(const struct send_window *window)
{
	return (uint16_t)(window->limit - window->next);
}

/** send_window_has_credit() - return whether a message that needs credit may be sent */
static inline bool send_window_has_credit(const struct send_window *window)
{
	return window->data_slots && window->next != window->limit;
}

/** send_window_room() - the maximum size of the next message; 0 if none can be sent */
static inline uint32_t send_window_room(const struct send_window *window)
{
	uint32_t left = window->half[window->turn].bytes;

	if (!send_window_has_credit(window) || window->ring_free < RING_FREE_MIN)
		return 0;
	return left < window->ring_free ? left : window->ring_free;
}

/** send_window_occupy() - use a slot and bytes of the send buffer until send_window_done() */
static inline void send_window_occupy(struct send_window *window, uint32_t ring_bytes)
{
	window->data_slots--;
	if (ring_bytes) {
		window->ring_free -= ring_bytes;
		window->ring_head = window_wrap(window->ring_head + ring_bytes, window->ring_bytes);
	}
}

/**
 * send_window_take() - account for a message before it is sent
 * @bytes:   at most send_window_room()
 * @in_ring: it occupies the send buffer until send_window_done()
 *
 * Return: its destination.
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
 * send_window_keep_quiet() - decide whether a message may be posted unsignaled
 * @ring_bytes: bytes of the send buffer that it occupies
 *
 * A completion costs as much as a small message, and covers all messages before it. When nothing
 * more can be sent, at least one signaled message is outstanding.
 *
 * Return: false if it must be signaled: its completion covers quiet_slots messages and quiet_bytes,
 * including itself; then call send_window_signal().
 */
static inline bool send_window_keep_quiet(struct send_window *window, uint32_t ring_bytes)
{
	window->quiet_slots++;
	window->quiet_bytes += ring_bytes;
	return window->ring_free >= RING_FREE_MIN && window->quiet_slots < window->most_quiet &&
	       window->quiet_bytes < window->ring_bytes / QUIET_BYTES;
}

/** send_window_signal() - note a signaled message: restart counting */
static inline void send_window_signal(struct send_window *window)
{
	window->quiet_slots = 0;
	window->quiet_bytes = 0;
}

/** send_window_done() - release the slots and bytes of completed messages */
static inline void send_window_done(struct send_window *window, uint32_t slots, uint32_t ring_bytes)
{
	window->data_slots += slots;
	window->ring_free += ring_bytes;
}

/* Data from the peer. */
struct recv_window {
	uint32_t ring_bytes; /* our receive buffer: two halves */
	uint32_t head;	     /* offset of the next byte to read */
	uint32_t unread;
	uint32_t granted;  /* to the peer, not yet filled */
	uint32_t owed;	   /* read, not yet granted again */
	unsigned int slot; /* next entry of the peer's table to write */
	unsigned int n_slots;
	unsigned int half; /* next half of our buffer to grant */

	uint16_t done;	       /* messages received */
	uint16_t done_granted; /* done at the latest grant */
	uint16_t rq_size;      /* maximum of messages under way */
};

/** recv_window_init() - initialize; @ring_bytes is even */
void recv_window_init(struct recv_window *window, uint16_t rq_size, uint32_t ring_bytes);

/** recv_window_add() - account for a received message. Return: false if it was not allowed. */
bool recv_window_add(struct recv_window *window, uint32_t bytes);

/** recv_window_read() - account for bytes that were read */
void recv_window_read(struct recv_window *window, uint32_t bytes);

/** recv_window_skip() - account for a message without data that needs credit */
static inline void recv_window_skip(struct recv_window *window)
{
	window->done++;
}

/* A grant of credit, and of a half. */
struct grant {
	uint16_t limit;
	bool has_half;
	unsigned int slot;  /* in the peer's table */
	uint32_t half_from; /* offset in our buffer */
};

/** recv_window_is_due() - return whether there is enough to grant */
static inline bool recv_window_is_due(const struct recv_window *window)
{
	return window->owed >= window->ring_bytes / 2 ||
	       (uint16_t)(window->done - window->done_granted) >= window->rq_size / 2;
}

/** recv_window_grant() - the next grant, which is accounted as granted */
struct grant recv_window_grant(struct recv_window *window);

#endif
