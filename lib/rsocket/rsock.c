/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The common part of all handles: see rsock.h.
 */
#include "lib/rsocket/rsock.h"

#include <stdlib.h>

#include "lib/api.h"

void rsock_init(struct rsock *rs, const struct rsock_ops *ops)
{
	rs->ops = ops;
	rs->fd = -1;
	rs->refs = 1;
	rs->holds = 1;
	rs->nonblocking = 0;
	rs->closed = false;
	rs->n_long = 0;
	rs->has_event = false;
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

size_t rs_transfer_bytes(const struct rs_transfer *transfer)
{
	size_t bytes = 0;

	for (int i = 0; i < transfer->n_iov; i++)
		bytes += transfer->iov[i].iov_len;
	return bytes;
}
