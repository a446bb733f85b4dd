/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles and their table: see rsock.h.
 */
#include "lib/rsocket/rsock.h"

#include <stdlib.h>
#include <string.h>

#include "base/large.h"

void rsock_init(struct rsock *rs, const struct rsock_ops *ops)
{
	rs->ops = ops;
	rs->fd = -1;
	rs->refs = 1;
	rs->holds = 1;
	pthread_mutex_init(&rs->lock, NULL);
	list_init(&rs->watches);
}

void rsock_end(struct rsock *rs)
{
	int cancel_state = api_enter();

	rs->ops->end(rs);
	rsock_unhold(rs);
	api_leave(cancel_state);
}

void rsock_hold(struct rsock *rs)
{
	__atomic_add_fetch(&rs->holds, 1, __ATOMIC_RELAXED);
}

void rsock_unhold(struct rsock *rs)
{
	if (__atomic_sub_fetch(&rs->holds, 1, __ATOMIC_ACQ_REL))
		return;
	pthread_mutex_destroy(&rs->lock);
	free(rs);
}

bool rsock_is_nonblocking(const struct rsock *rs, int flags)
{
	return flags & MSG_DONTWAIT || __atomic_load_n(&rs->nonblocking, __ATOMIC_RELAXED);
}

/* --- the program's buffers ----------------------------------------------- */

size_t rs_transfer_bytes(const struct rs_transfer *transfer)
{
	size_t bytes = 0;

	for (int i = 0; i < transfer->n_iov; i++)
		bytes += transfer->iov[i].iov_len;
	return bytes;
}

void *rs_advance(struct rs_cursor *cursor, uint32_t *bytes)
{
	size_t left;
	void *at;

	while (cursor->at == cursor->iov->iov_len) {
		cursor->iov++;
		cursor->at = 0;
	}
	left = cursor->iov->iov_len - cursor->at;
	at = (uint8_t *)cursor->iov->iov_base + cursor->at;
	if (*bytes > left)
		*bytes = (uint32_t)left;
	cursor->at += *bytes;
	return at;
}

void rs_gather(struct rs_cursor *from, uint8_t *to, uint32_t bytes)
{
	while (bytes) {
		uint32_t part = bytes;
		const void *at = rs_advance(from, &part);

		memcpy(to, at, part);
		to += part;
		bytes -= part;
	}
}

void rs_scatter(struct rs_cursor *to, const uint8_t *from, uint32_t bytes)
{
	while (bytes) {
		uint32_t part = bytes;
		void *at = rs_advance(to, &part);

		memcpy(at, from, part);
		from += part;
		bytes -= part;
	}
}

/* --- the table ----------------------------------------------------------- */

/* Each call on the socket holds the lock for a few instructions. */
struct entry {
	struct rsock *rs;
	bool is_locked; /* atomic */
};

static struct entry entries[TABLE_FD_MAX + 1] LARGE_STATIC;
static int n_entries; /* highest entry ever used, plus one; atomic */

/* Return: the entry of a descriptor, or NULL if it is too large. */
static struct entry *entry_of(int fd)
{
	return fd >= 0 && fd <= TABLE_FD_MAX ? &entries[fd] : NULL;
}

/* This is pthread_spin_lock(), but inline. */
static void lock_entry(struct entry *entry)
{
	while (__atomic_test_and_set(&entry->is_locked, __ATOMIC_ACQUIRE))
		while (__atomic_load_n(&entry->is_locked, __ATOMIC_RELAXED))
			;
}

static void unlock_entry(struct entry *entry)
{
	__atomic_clear(&entry->is_locked, __ATOMIC_RELEASE);
}

/* Return: the previous handle. */
static struct rsock *replace_handle(struct entry *entry, struct rsock *rs)
{
	struct rsock *before;

	lock_entry(entry);
	before = entry->rs;
	entry->rs = rs;
	unlock_entry(entry);
	return before;
}

int table_add(struct rsock *rs)
{
	struct entry *entry = entry_of(rs->fd);
	int n = __atomic_load_n(&n_entries, __ATOMIC_RELAXED);

	if (!entry)
		return -ENOMEM;
	while (n <= rs->fd && !__atomic_compare_exchange_n(&n_entries, &n, rs->fd + 1, true,
							   __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	replace_handle(entry, rs);
	return 0;
}

struct rsock *table_get(int fd)
{
	struct entry *entry = entry_of(fd);
	struct rsock *rs;

	if (!entry)
		return NULL;
	lock_entry(entry);
	rs = entry->rs;
	if (rs)
		rsock_get(rs);
	unlock_entry(entry);
	return rs;
}

int table_end(void)
{
	return __atomic_load_n(&n_entries, __ATOMIC_RELAXED);
}

struct rsock *table_take(int fd)
{
	struct entry *entry = entry_of(fd);

	return entry ? replace_handle(entry, NULL) : NULL;
}

void table_after_fork(void)
{
	memset(entries, 0, (size_t)n_entries * sizeof(*entries));
}
