/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data transfer of stream sockets. A send copies into the send buffer, or into the work request if
 * it is short; a receive copies from the receive buffer. Long copies are made without the lock,
 * which is held to reserve and to account.
 */
#include <errno.h>
#include <string.h>

#include "lib/api.h"
#include "lib/rsocket/connecting.h"
#include "lib/rsocket/iomap.h"
#include "lib/rsocket/memory.h"
#include "lib/rsocket/roster.h"
#include "lib/rsocket/wait.h"

/*
 * The first message of a call is short, so that it is in flight while the next is copied. Later
 * ones grow: a message costs as much as copying thousands of bytes.
 */
#define FIRST_BYTES  8192
#define GROWTH	     4
#define LONGEST	     65536
#define INLINE_BYTES 1024 /* maximum copied to the stack */
#define LOCKED_BYTES 1024 /* maximum copied under the lock: taking it again costs as much */

/* --- sending ------------------------------------------------------------- */

static uint32_t min_bytes(size_t a, uint32_t b)
{
	return a < b ? (uint32_t)a : b;
}

/* Return: -errno of a transfer that the state does not allow; @ended if the data has ended. */
static int error_of_state(const struct stream *s, int ended)
{
	if (stream_is_opening(s->state))
		return -EAGAIN;
	if (stream_is_before_connect(s->state))
		return -ENOTCONN;
	return s->state == STREAM_BROKEN || s->state == STREAM_FAILED ? -s->last_error : ended;
}

static bool send_would_not_wait(struct rsock *rs)
{
	struct stream *s = stream_of(rs);

	return !stream_can_write(s->state) || stream_may_send(s);
}

/*
 * A call that must not wait still waits for a thread that copies, or that is about to, but not for
 * one that waits for the peer. The lock is held. Return: 0 or -EAGAIN.
 */
static int take_token(struct stream *s, struct token *token, int flags,
		      bool (*ready)(struct rsock *rs))
{
	while (token->is_taken) {
		if (token->is_asleep && rsock_is_nonblocking(&s->base, flags)) {
			stream_progress(&s->base);
			if (!ready(&s->base))
				return -EAGAIN;
		}
		token_wait(token, &s->base.lock);
	}
	token->is_taken = true;
	return 0;
}

/*
 * The lock and the token must be held, and the lock is released while waiting. Return: 0 or -errno.
 */
static int wait_unlocked(struct stream *s, struct token *token, short wanted,
			 bool (*ready)(struct rsock *rs), struct cm_time deadline)
{
	int err;

	token_rest(token, true);
	pthread_mutex_unlock(&s->base.lock);
	err = wait_restarted(&s->base, wanted, ready, deadline);
	pthread_mutex_lock(&s->base.lock);
	token_rest(token, false);
	return err;
}

int stream_await_room(struct stream *s, int flags, struct cm_time deadline)
{
	int err = 0;

	while (!err && !stream_may_send(s)) {
		stream_progress(&s->base);
		if (stream_may_send(s))
			return 0;
		if (!stream_can_write(s->state))
			return error_of_state(s, -ECONNRESET);
		if (rsock_is_nonblocking(&s->base, flags))
			return -EAGAIN;
		err = wait_unlocked(s, &s->send_token, POLLOUT, send_would_not_wait, deadline);
	}
	return err;
}

static int post_data(struct stream *s, const struct piece *piece, int n, uint32_t bytes,
		     bool is_inline)
{
	uint32_t message = rs_message(RS_OP_DATA, bytes);
	uint32_t ring_bytes = is_inline ? 0 : bytes;
	struct rs_entry to = send_window_take(&s->out, bytes, !is_inline);
	int err;

	if (!stream_can_write(s->state)) {
		send_window_done(&s->out, 1, ring_bytes);
		return error_of_state(s, -ECONNRESET);
	}
	err = memory_post(s, RS_OP_DATA, ring_bytes, &message, piece, n, is_inline, to);
	if (err) {
		send_window_done(&s->out, 1, ring_bytes);
		stream_apply(s, STREAM_EV_SEND_FAILED, -EIO);
	} else if (s->row) {
		s->row->sent += bytes;
		s->row->credits = send_window_credits(&s->out);
	}
	return err;
}

static void unlock_for_copy(struct stream *s, uint32_t bytes)
{
	if (bytes > LOCKED_BYTES)
		pthread_mutex_unlock(&s->base.lock);
}

static void lock_after_copy(struct stream *s, uint32_t bytes)
{
	if (bytes > LOCKED_BYTES)
		pthread_mutex_lock(&s->base.lock);
}

/* riowrite() needs neither credit nor the peer's receive buffer. */
static int post_write(struct stream *s, const struct piece *piece, int n, uint32_t bytes,
		      bool is_inline, struct rs_entry to)
{
	uint32_t ring_bytes = is_inline ? 0 : bytes;
	int err;

	if (!stream_can_write(s->state))
		return error_of_state(s, -ECONNRESET);
	send_window_occupy(&s->out, ring_bytes);
	err = memory_post(s, RS_OP_WRITE, ring_bytes, NULL, piece, n, is_inline, to);
	if (err)
		stream_apply(s, STREAM_EV_SEND_FAILED, -EIO);
	return err;
}

/* @where: destination of riowrite(); NULL for stream data. */
static int send_inline(struct stream *s, struct rs_cursor *from, uint32_t bytes,
		       const struct rs_entry *where)
{
	uint8_t copy[INLINE_BYTES];
	struct piece piece = { .at = copy, .bytes = bytes };

	if (from->iov->iov_len - from->at >= bytes)
		piece.at = rs_advance(from, &bytes);
	else
		rs_gather(from, copy, bytes);
	return where ? post_write(s, &piece, 1, bytes, true, *where)
		     : post_data(s, &piece, 1, bytes, true);
}

/* Only the thread that has the token advances the head of the ring. */
static int send_from_ring(struct stream *s, struct rs_cursor *from, uint32_t bytes,
			  const struct rs_entry *where)
{
	uint8_t *ring = s->memory.send_ring;
	uint32_t head = s->out.ring_head;
	uint32_t first = min_bytes(s->out.ring_bytes - head, bytes);
	uint32_t lkey = s->memory.send_mr->lkey;
	struct piece piece[2] = { { ring + head, first, lkey }, { ring, bytes - first, lkey } };
	int n;

	unlock_for_copy(s, bytes);
	rs_gather(from, ring + head, first);
	rs_gather(from, ring, bytes - first);
	lock_after_copy(s, bytes);
	n = first < bytes ? 2 : 1;
	return where ? post_write(s, piece, n, bytes, false, *where)
		     : post_data(s, piece, n, bytes, false);
}

/*
 * @offset: of riowrite(), in the peer's buffers; NULL for stream data
 *
 * Not inlined: sends that do not use it should not pay for its stack and registers.
 */
__attribute__((noinline)) static ssize_t send_with_token(struct stream *s,
							 const struct rs_transfer *out,
							 const off_t *offset)
{
	const struct cm_time deadline = wait_deadline_of(&s->options.send_timeout);
	struct rs_cursor from = { out->iov, 0 };
	size_t total = rs_transfer_bytes(out), sent = 0;
	uint32_t most = FIRST_BYTES;
	struct rs_entry where;
	int err = take_token(s, &s->send_token, out->flags, send_would_not_wait);

	if (err)
		return err;
	err = iomap_update_peer(s, out->flags, deadline);
	while (!err && sent < total) {
		uint32_t bytes, room;

		if (!stream_may_send(s))
			err = stream_await_room(s, out->flags, deadline);
		if (err)
			break;
		room = send_window_room(&s->out);
		if (offset) {
			where = iomap_find(s, (uint64_t)*offset + sent);
			room = min_bytes(where.bytes, s->out.ring_free);
		}
		bytes = min_bytes(total - sent, min_bytes(most, room));
		if (!bytes)
			break;
		if (bytes <= s->sizes.inline_size && bytes <= INLINE_BYTES)
			err = send_inline(s, &from, bytes, offset ? &where : NULL);
		else
			err = send_from_ring(s, &from, bytes, offset ? &where : NULL);
		if (!err)
			sent += bytes;
		most = min_bytes(LONGEST, most * GROWTH);
	}
	token_give(&s->send_token);
	return err && !sent ? err : (ssize_t)sent;
}

/*
 * The common case: one short buffer that can be sent at once. Return: bytes sent, or -errno; 0 if
 * it does not apply.
 */
static ssize_t send_at_once(struct stream *s, const struct rs_transfer *out)
{
	size_t bytes = out->n_iov == 1 ? out->iov->iov_len : 0;
	struct piece piece;
	int err;

	if (!bytes || bytes > s->sizes.inline_size || s->send_token.is_taken ||
	    !list_is_empty(&s->iomaps) || !stream_can_write(s->state) ||
	    bytes > send_window_room(&s->out))
		return 0;
	piece = (struct piece){ .at = out->iov->iov_base, .bytes = (uint32_t)bytes };
	err = post_data(s, &piece, 1, (uint32_t)bytes, true);
	return err ? err : (ssize_t)bytes;
}

ssize_t stream_send(struct rsock *rs, const struct rs_transfer *out)
{
	struct stream *s = stream_of(rs);
	ssize_t sent;

	pthread_mutex_lock(&rs->lock);
	sent = send_at_once(s, out);
	if (!sent)
		sent = send_with_token(s, out, NULL);
	pthread_mutex_unlock(&rs->lock);
	return sent;
}

ssize_t stream_write(struct stream *s, const struct rs_transfer *out, off_t offset)
{
	ssize_t sent;

	pthread_mutex_lock(&s->base.lock);
	sent = send_with_token(s, out, &offset);
	pthread_mutex_unlock(&s->base.lock);
	return sent;
}

/* --- receiving ----------------------------------------------------------- */

static bool recv_would_not_wait(struct rsock *rs)
{
	return rs->moved || stream_may_recv(stream_of(rs));
}

/* Return: 1 if there is data; 0 at the end of the data; -errno. */
static int await_data(struct stream *s, int flags, struct cm_time deadline)
{
	int err = 0;

	while (!err && !s->in.unread) {
		stream_progress(&s->base);
		if (s->in.unread)
			return 1;
		if (!stream_can_read(s->state))
			return error_of_state(s, 0);
		if (rsock_is_nonblocking(&s->base, flags))
			return -EAGAIN;
		if (s->base.moved)
			return -EBADF;
		err = wait_unlocked(s, &s->recv_token, POLLIN, recv_would_not_wait, deadline);
	}
	return err ? err : 1;
}

__attribute__((noinline)) static void send_owed(struct stream *s)
{
	int cancel_state = api_enter();

	stream_send_owed(s);
	api_leave(cancel_state);
}

static void count_read(struct stream *s, uint32_t bytes)
{
	recv_window_read(&s->in, bytes);
	if (s->row)
		s->row->received += bytes;
	if (stream_owes(s))
		send_owed(s);
}

/*
 * Only the thread that has the token advances the head of the ring. With MSG_TRUNC the data is
 * dropped, as by TCP: programs that drain a connection pass no buffer.
 */
static uint32_t read_from_ring(struct stream *s, struct rs_cursor *to, size_t left, int flags)
{
	const uint8_t *ring = s->memory.recv_ring;
	uint32_t head = s->in.head;
	uint32_t bytes = min_bytes(left, s->in.unread);
	uint32_t first = min_bytes(s->in.ring_bytes - head, bytes);

	if (!(flags & MSG_TRUNC)) {
		unlock_for_copy(s, bytes);
		rs_scatter(to, ring + head, first);
		rs_scatter(to, ring, bytes - first);
		lock_after_copy(s, bytes);
	}
	if (!(flags & MSG_PEEK))
		count_read(s, bytes);
	return bytes;
}

/* Not inlined: receives that do not use it should not pay for its stack and registers. */
__attribute__((noinline)) static ssize_t recv_with_token(struct stream *s, struct rs_transfer *in)
{
	const struct cm_time deadline = wait_deadline_of(&s->options.recv_timeout);
	struct rs_cursor to = { in->iov, 0 };
	size_t left = rs_transfer_bytes(in);
	int cancel_state = api_enter();
	ssize_t received = 0;
	int err = take_token(s, &s->recv_token, in->flags, recv_would_not_wait);

	if (err) {
		api_leave(cancel_state);
		return err;
	}
	/* What came before is with the relay now. */
	if (s->base.moved && !(in->flags & RSOCK_TAKE))
		err = -EBADF;
	while (left && !err) {
		uint32_t bytes;

		err = s->in.unread ? 1 : await_data(s, in->flags, deadline);
		if (err <= 0)
			break;
		bytes = read_from_ring(s, &to, left, in->flags);
		received += bytes;
		left -= bytes;
		if (in->flags & MSG_PEEK || !(in->flags & MSG_WAITALL))
			break;
		err = 0;
	}
	token_give(&s->recv_token);
	api_leave(cancel_state);
	return !received && err < 0 ? err : received;
}

/*
 * The common case: a few bytes that have arrived, in one piece. Nothing here releases the lock, and
 * only send_owed() has a cancellation point. Return: bytes received; 0 if it does not apply.
 */
static ssize_t recv_at_once(struct stream *s, const struct rs_transfer *in)
{
	size_t wanted = in->n_iov == 1 ? in->iov->iov_len : 0;
	uint32_t bytes = min_bytes(wanted, s->in.unread);

	if (s->recv_token.is_taken || in->flags & (MSG_PEEK | MSG_TRUNC) || bytes > LOCKED_BYTES ||
	    bytes > s->in.ring_bytes - s->in.head || (bytes < wanted && in->flags & MSG_WAITALL))
		return 0;
	if (bytes) {
		/* A short memcpy() is compiled to a string instruction, which is slower. */
		memmove(in->iov->iov_base, s->memory.recv_ring + s->in.head, bytes);
		count_read(s, bytes);
	}
	return bytes;
}

ssize_t stream_recv(struct rsock *rs, struct rs_transfer *in)
{
	struct stream *s = stream_of(rs);
	ssize_t received;

	pthread_mutex_lock(&rs->lock);
	if (rs->moved && !(in->flags & RSOCK_TAKE))
		received = -EBADF;
	else
		received = recv_at_once(s, in);
	if (!received)
		received = recv_with_token(s, in);
	if (received > 0 && in->addr)
		connect_copy_name(rdma_get_peer_addr(s->id), in->addr, &in->addr_bytes);
	pthread_mutex_unlock(&rs->lock);
	return received;
}
