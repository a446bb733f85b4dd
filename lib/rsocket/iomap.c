/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Buffers that a peer writes into by offset: see iomap.h.
 */
#include "lib/rsocket/iomap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/rsocket/memory.h"

/* One of our buffers. */
struct iomap {
	struct list link; /* in stream.iomaps */
	struct ibv_mr *mr;
	uint64_t offset;
	int slot;	 /* in the peer's table; -1: none, so the peer cannot write */
	bool is_changed; /* the entry must be written */
	bool is_removed; /* kept until its entry is cleared */
};

/* --- our buffers ---------------------------------------------------------- */

static void free_iomap(struct iomap *map)
{
	if (map->mr)
		ibv_dereg_mr(map->mr);
	list_remove(&map->link);
	free(map);
}

/* A slot to be cleared can be reused: *removed is the buffer that held it, or NULL. */
static int find_free_slot(const struct stream *s, struct iomap **removed)
{
	struct iomap *map;

	*removed = NULL;
	for (int slot = 0; slot < (int)s->peer.iomap_size; slot++) {
		struct iomap *holder = NULL;

		list_for_each_entry (map, &s->iomaps, link)
			if (!holder && map->slot == slot)
				holder = map;
		if (!holder)
			return slot;
		if (holder->is_removed)
			*removed = holder;
	}
	return *removed ? (*removed)->slot : -ENOMEM;
}

static int make_iomap(struct stream *s, void *buf, size_t bytes, int prot, struct iomap **ret)
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

off_t iomap_add(struct stream *s, void *buf, size_t bytes, int prot, off_t offset)
{
	struct iomap *map = NULL, *removed = NULL;
	int slot = -1, err = 0;

	/* Negative results are errors. */
	if (prot & ~PROT_WRITE || offset < -1)
		return -EINVAL;
	pthread_mutex_lock(&s->base.lock);
	if (prot & PROT_WRITE) {
		slot = find_free_slot(s, &removed);
		err = slot < 0 ? slot : 0;
	}
	if (!err && !stream_can_send_messages(s->state))
		err = -EINVAL;
	if (!err)
		err = make_iomap(s, buf, bytes, prot, &map);
	if (!err) {
		if (removed)
			free_iomap(removed);
		map->slot = slot;
		map->offset = offset == -1 ? (uintptr_t)buf : (uint64_t)offset;
		map->is_changed = slot >= 0;
		list_append(&s->iomaps, &map->link);
		offset = (off_t)map->offset;
	}
	pthread_mutex_unlock(&s->base.lock);
	return err ? err : offset;
}

int iomap_remove(struct stream *s, const void *buf, size_t bytes)
{
	struct iomap *map = NULL, *each;

	pthread_mutex_lock(&s->base.lock);
	list_for_each_entry (each, &s->iomaps, link) {
		const struct ibv_mr *mr = each->mr;

		if (!map && mr && mr->addr == buf && mr->length == bytes)
			map = each;
	}
	if (map && map->slot < 0) {
		free_iomap(map);
	} else if (map) {
		/* The peer has the entry, or that of an earlier buffer: clear it. */
		ibv_dereg_mr(map->mr);
		map->mr = NULL;
		map->is_changed = true;
		map->is_removed = true;
	}
	pthread_mutex_unlock(&s->base.lock);
	return map ? 0 : -EINVAL;
}

void iomap_free_all(struct stream *s)
{
	while (!list_is_empty(&s->iomaps))
		free_iomap(container_of(s->iomaps.next, struct iomap, link));
}

/* --- the peer's table ---------------------------------------------------- */

static struct iomap *find_changed(struct stream *s)
{
	struct iomap *map;

	list_for_each_entry (map, &s->iomaps, link)
		if (map->is_changed)
			return map;
	return NULL;
}

/* The lock is held, and there is credit for a message. */
static int write_entry(struct stream *s, struct iomap *map)
{
	struct rs_iomap_entry entry = { .offset = map->offset };
	struct rs_entry to = { .key = s->peer.table_key };
	uint32_t message = rs_message(RS_OP_IOMAP, (uint32_t)map->slot);
	struct piece note;

	if (!map->is_removed) {
		entry.target.addr = (uintptr_t)map->mr->addr;
		entry.target.key = map->mr->rkey;
		entry.target.bytes = map->mr->length < UINT32_MAX ? (uint32_t)map->mr->length
								  : UINT32_MAX;
	}
	entry = rs_iomap_entry_for_peer(entry, s->peer.big_endian);
	note = memory_note(s, &entry, sizeof(entry));
	to.addr = s->peer.table_addr + s->peer.table_entries * sizeof(struct rs_entry) +
		  (uint32_t)map->slot * sizeof(entry);
	s->out.next++;
	s->out.data_slots--;
	map->is_changed = false;
	if (map->is_removed)
		free_iomap(map);
	return memory_post(s, RS_OP_IOMAP, 0, &message, &note, 1, memory_note_is_inline(s), to);
}

int iomap_update_peer(struct stream *s, int flags, struct cm_time deadline)
{
	int err = 0;
	struct iomap *map;

	while (!err && find_changed(s)) {
		err = stream_await_room(s, flags, deadline);
		if (err)
			return err;
		map = find_changed(s);
		err = map ? write_entry(s, map) : 0;
		if (err)
			stream_apply(s, STREAM_EV_SEND_FAILED, -EIO);
	}
	return err;
}

/* --- the peer's buffers -------------------------------------------------- */

struct rs_entry iomap_find(const struct stream *s, uint64_t offset)
{
	const struct rs_iomap_entry *entry = (const void *)(s->memory.table + RS_TABLE_ENTRIES);
	const struct rs_iomap_entry *end = entry + s->sizes.iomap_size;

	for (; entry < end; entry++) {
		uint64_t distance = offset - entry->offset;

		if (offset >= entry->offset && distance < entry->target.bytes)
			return (struct rs_entry){ .addr = entry->target.addr + distance,
						  .key = entry->target.key,
						  .bytes = entry->target.bytes -
							   (uint32_t)distance };
	}
	return (struct rs_entry){ 0 };
}
