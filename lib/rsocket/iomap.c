/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that a peer writes into by name: see iomap.h.
 */
#include "lib/rsocket/iomap.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/rsocket/memory.h"

#define FIRST_BYTES  2048
#define LONGEST	     65536
#define INLINE_BYTES 1024

/* One of our buffers. */
struct iomap {
	struct list link; /* in stream.iomaps */
	struct ibv_mr *mr;
	uint64_t offset;
	int slot;     /* of the peer's table; -1: the peer does not know of it */
	bool is_news; /* the peer is to be told, of it or of its end */
	bool is_over; /* only here to tell the peer so */
};

/* --- ours ---------------------------------------------------------------- */

static struct iomap *find_slot(const struct stream *s, int slot)
{
	struct list *node;

	list_for_each (node, &s->iomaps) {
		struct iomap *map = container_of(node, struct iomap, link);

		if (map->slot == slot)
			return map;
	}
	return NULL;
}

static void drop(struct iomap *map)
{
	if (map->mr)
		ibv_dereg_mr(map->mr);
	list_remove(&map->link);
	free(map);
}

/* A slot that is to be emptied can as well be filled: *over is what held it, or NULL. */
static int free_slot(const struct stream *s, struct iomap **over)
{
	struct iomap *emptied = NULL;

	*over = NULL;
	for (int slot = 0; slot < (int)s->peer.iomap_size; slot++) {
		struct iomap *map = find_slot(s, slot);

		if (!map)
			return slot;
		if (map->is_over)
			emptied = map;
	}
	*over = emptied;
	return emptied ? emptied->slot : -ENOMEM;
}

static int make(struct stream *s, void *buf, size_t bytes, int prot, struct iomap **ret)
{
	int access = IBV_ACCESS_LOCAL_WRITE | (prot & PROT_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0);
	struct iomap *map = calloc(1, sizeof(*map));
	int before = errno;

	if (!map)
		return -ENOMEM;
	errno = ENOMEM;
	map->mr = ibv_reg_mr(s->id->pd, buf, bytes, access);
	if (!map->mr) {
		free(map);
		return -errno;
	}
	errno = before;
	*ret = map;
	return 0;
}

/* The lock is held. */
static off_t add(struct stream *s, void *buf, size_t bytes, int prot, off_t offset)
{
	struct iomap *map = NULL, *over = NULL;
	int slot = prot & PROT_WRITE ? free_slot(s, &over) : -1;
	int err = slot == -ENOMEM ? slot : make(s, buf, bytes, prot, &map);

	if (err)
		return err;
	if (over)
		drop(over);
	map->slot = slot;
	map->offset = offset == -1 ? (uintptr_t)buf : (uint64_t)offset;
	map->is_news = slot >= 0;
	list_append(&s->iomaps, &map->link);
	return (off_t)map->offset;
}

off_t iomap_add(struct stream *s, void *buf, size_t bytes, int prot, off_t offset)
{
	off_t result;

	/* A negative result would be an error. */
	if (prot & ~PROT_WRITE || offset < -1)
		return -EINVAL;
	pthread_mutex_lock(&s->base.lock);
	result = stream_can_talk(s->state) ? add(s, buf, bytes, prot, offset) : -EINVAL;
	pthread_mutex_unlock(&s->base.lock);
	return result;
}

/* Taken back: the entry of the peer's table is emptied, unless it never was filled. */
static void take_back(struct iomap *map)
{
	if (map->slot < 0 || map->is_news) {
		drop(map);
		return;
	}
	ibv_dereg_mr(map->mr);
	map->mr = NULL;
	map->is_news = true;
	map->is_over = true;
}

int iomap_remove(struct stream *s, const void *buf, size_t bytes)
{
	struct list *node, *after;
	int err = -EINVAL;

	pthread_mutex_lock(&s->base.lock);
	list_for_each_safe (node, after, &s->iomaps) {
		struct iomap *map = container_of(node, struct iomap, link);

		if (map->mr && map->mr->addr == buf && map->mr->length == bytes && err) {
			take_back(map);
			err = 0;
		}
	}
	pthread_mutex_unlock(&s->base.lock);
	return err;
}

void iomap_free_all(struct stream *s)
{
	while (!list_is_empty(&s->iomaps))
		drop(container_of(s->iomaps.next, struct iomap, link));
}

/* --- telling the peer ---------------------------------------------------- */

static struct iomap *find_news(struct stream *s)
{
	struct list *node;

	list_for_each (node, &s->iomaps) {
		struct iomap *map = container_of(node, struct iomap, link);

		if (map->is_news)
			return map;
	}
	return NULL;
}

/* What an entry can say. */
static uint32_t entry_bytes(size_t bytes)
{
	return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

/* The lock is held, and there is credit for a message. */
static int tell(struct stream *s, struct iomap *map)
{
	struct rs_iomap_entry entry = { .offset = map->offset };
	struct rs_entry to = { .key = s->peer.table_key };
	uint32_t message = rs_message(RS_OP_IOMAP, (uint32_t)map->slot);
	struct piece note;

	if (!map->is_over)
		entry.target = (struct rs_entry){ .addr = (uintptr_t)map->mr->addr,
						  .key = map->mr->rkey,
						  .bytes = entry_bytes(map->mr->length) };
	entry = rs_iomap_entry_for_peer(entry, s->peer.big_endian);
	note = memory_note(s, &entry, sizeof(entry));
	to.addr = s->peer.table_addr + s->peer.table_entries * sizeof(struct rs_entry) +
		  (uint32_t)map->slot * sizeof(entry);
	s->out.next++;
	s->out.data_slots--;
	map->is_news = false;
	if (map->is_over)
		drop(map);
	return memory_post(s, RS_OP_IOMAP, 0, &message, &note, 1, memory_note_is_inline(s), to);
}

int iomap_tell_peer(struct stream *s, int flags)
{
	struct iomap *map;
	int err = 0;

	while (!err && find_news(s)) {
		err = stream_await_room(s, flags);
		if (err)
			return err;
		map = find_news(s);
		err = map ? tell(s, map) : 0;
		if (err)
			stream_happen(s, STREAM_EV_SEND_FAILED, -EIO);
	}
	return err;
}

/* --- the peer's ---------------------------------------------------------- */

/* Return: where in the peer's memory the offset is, bytes: how far that goes; 0: nowhere. */
static struct rs_entry find_target(const struct stream *s, uint64_t offset)
{
	const struct rs_iomap_entry *entries = (const void *)(s->memory.table + RS_TABLE_ENTRIES);

	for (uint32_t i = 0; i < s->sizes.iomap_size; i++) {
		uint64_t distance = offset - entries[i].offset;

		if (offset >= entries[i].offset && distance < entries[i].target.bytes)
			return (struct rs_entry){
				.addr = entries[i].target.addr + distance,
				.key = entries[i].target.key,
				.bytes = entries[i].target.bytes - (uint32_t)distance,
			};
	}
	return (struct rs_entry){ 0 };
}

/* The lock is held. It is copied even from memory that is registered: nobody is told when it was
 * sent, and riostream writes into the buffer that it has just sent from. */
static int post_write(struct stream *s, const uint8_t *at, uint32_t bytes, struct rs_entry to)
{
	uint32_t head = s->out.ring_head;
	uint32_t first = s->out.ring_bytes - head < bytes ? s->out.ring_bytes - head : bytes;
	uint8_t *ring = s->memory.send_ring;
	uint32_t lkey = s->memory.send_mr->lkey;
	struct piece piece[2] = {
		{ring + head, first,	      lkey},
		      { ring,	      bytes - first, lkey}
	};
	bool is_inline = bytes <= s->sizes.inline_size && bytes <= INLINE_BYTES;
	uint32_t ring_bytes = 0;
	int n = first < bytes ? 2 : 1;

	s->out.data_slots--;
	if (is_inline) {
		piece[0] = (struct piece){ at, bytes, 0 };
		n = 1;
	} else {
		memcpy(ring + head, at, first);
		memcpy(ring, at + first, bytes - first);
		s->out.ring_head = (head + bytes) % s->out.ring_bytes;
		s->out.ring_free -= bytes;
		ring_bytes = bytes;
	}
	return memory_post(s, RS_OP_WRITE, ring_bytes, NULL, piece, n, is_inline, to);
}

/* One request. Return: its bytes, 0 if the peer has no such offset, or -errno. */
static ssize_t write_one(struct stream *s, const uint8_t *at, size_t left, uint64_t offset,
			 uint32_t most, int flags)
{
	struct rs_entry to;
	uint32_t bytes = left < most ? (uint32_t)left : most;
	int err = stream_await_room(s, flags);

	if (err)
		return err;
	to = find_target(s, offset);
	if (bytes > to.bytes)
		bytes = to.bytes;
	if (bytes > s->out.ring_free)
		bytes = s->out.ring_free;
	if (bytes)
		err = post_write(s, at, bytes, to);
	if (err)
		stream_happen(s, STREAM_EV_SEND_FAILED, -EIO);
	return err ? err : (ssize_t)bytes;
}

ssize_t iomap_write(struct stream *s, const void *buf, size_t bytes, off_t offset, int flags)
{
	uint32_t most = FIRST_BYTES;
	size_t done = 0;
	ssize_t n;

	pthread_mutex_lock(&s->base.lock);
	turn_take(&s->send_turn, &s->base.lock);
	n = iomap_tell_peer(s, flags);
	while (n >= 0 && done < bytes) {
		n = write_one(s, (const uint8_t *)buf + done, bytes - done, (uint64_t)offset + done,
			      most, flags);
		if (n <= 0)
			break;
		done += (size_t)n;
		most = most < LONGEST ? most * 2 : LONGEST;
	}
	turn_give(&s->send_turn);
	pthread_mutex_unlock(&s->base.lock);
	return !done && n < 0 ? n : (ssize_t)done;
}
