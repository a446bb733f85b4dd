/* SPDX-License-Identifier: BSD-2-Clause */
/* Flow control of a stream socket: see window.h. */
#include "lib/rsocket/window.h"

#include <string.h>

/* --- sending ------------------------------------------------------------- */

void send_window_init(struct send_window *window, uint32_t sq_size, uint32_t ring_bytes)
{
	*window = (struct send_window){ .data_slots = sq_size - CTRL_SLOTS,
					.most_quiet = (sq_size - CTRL_SLOTS) / QUIET_SLOTS,
					.ctrl_slots = CTRL_SLOTS,
					.ring_bytes = ring_bytes,
					.ring_free = ring_bytes };
}

void send_window_open(struct send_window *window, const struct rs_hello *hello)
{
	window->limit = hello->credits;
	window->most = hello->credits;
	window->half[0] = (struct rs_entry){ .addr = hello->half_addr,
					     .key = hello->half_key,
					     .bytes = hello->half_bytes };
}

bool send_window_grant(struct send_window *window, uint16_t limit)
{
	uint16_t before = (uint16_t)(window->limit - window->next);
	uint16_t after = (uint16_t)(limit - window->next);

	if (after > window->most || after < before)
		return false;
	window->limit = limit;
	return true;
}

typedef uint64_t word __attribute__((may_alias));

bool send_window_refill(struct send_window *window, struct rs_entry *table)
{
	for (unsigned int i = 0; i < RS_TABLE_ENTRIES; i++) {
		struct rs_entry entry;
		word words[2];

		/*
		 * The entry may be written during the read. A device writes whole words, in order:
		 * once key and length, which are one word, are present, the address is too.
		 */
		words[1] = __atomic_load_n((const word *)&table[i].key, __ATOMIC_ACQUIRE);
		words[0] = __atomic_load_n((const word *)&table[i].addr, __ATOMIC_RELAXED);
		memcpy(&entry, words, sizeof(entry));
		if (!entry.bytes)
			continue;
		if (window->half[i].bytes)
			return false;
		window->half[i] = entry;
		__atomic_store_n((word *)&table[i].key, 0, __ATOMIC_RELAXED);
	}
	return true;
}

/* --- receiving ----------------------------------------------------------- */

void recv_window_init(struct recv_window *window, uint16_t rq_size, uint32_t ring_bytes)
{
	*window = (struct recv_window){ .ring_bytes = ring_bytes,
					.granted = ring_bytes / 2,
					.owed = ring_bytes / 2,
					.slot = 1,
					.n_slots = RS_TABLE_ENTRIES,
					.half = 1,
					.rq_size = rq_size };
}

bool recv_window_add(struct recv_window *window, uint32_t bytes)
{
	uint16_t n_since = (uint16_t)(window->done - window->done_granted);

	if (!bytes || bytes > window->granted || n_since >= window->rq_size)
		return false;
	window->done++;
	window->granted -= bytes;
	window->unread += bytes;
	return true;
}

void recv_window_read(struct recv_window *window, uint32_t bytes)
{
	window->head = window_wrap(window->head + bytes, window->ring_bytes);
	window->unread -= bytes;
	window->owed += bytes;
}

struct grant recv_window_grant(struct recv_window *window)
{
	uint32_t half_bytes = window->ring_bytes / 2;
	struct grant grant = { .limit = (uint16_t)(window->done + window->rq_size) };

	window->done_granted = window->done;
	if (window->owed < half_bytes)
		return grant;
	grant.has_half = true;
	grant.slot = window->slot;
	grant.half_from = window->half * half_bytes;
	window->slot = (window->slot + 1) % window->n_slots;
	window->half = (window->half + 1) % 2;
	window->owed -= half_bytes;
	window->granted += half_bytes;
	return grant;
}
