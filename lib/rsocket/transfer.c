/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data of stream sockets: sending copies into the send buffer, or into the work request if there is
 * little of it, and receiving copies out of the receive buffer. What is more than a little is
 * copied without the lock, which is taken to reserve and to account.
 */
#include <errno.h>
#include <string.h>

#include "lib/api.h"
#include "lib/rsocket/iomap.h"
#include "lib/rsocket/memory.h"
#include "lib/rsocket/wait.h"

/* The first message of a call is short, so that it travels while the next is being copied; a
 * message costs as much as copying thousands of bytes. */
#define FIRST_BYTES  8192
#define GROWTH	     4
#define LONGEST	     65536
#define INLINE_BYTES 1024 /* copied on the stack at most */
#define HELD_BYTES   1024 /* copied under the lock at most: taking it again costs as much */

/* --- through an iovec ---------------------------------------------------- */

/* Where a call is in what it was given. */
struct cursor {
	const struct iovec *iov;
	int n;
	size_t at; /* in the first of them */
};

static size_t total(const struct iovec *iov, int n)
{
	size_t bytes = 0;

	for (int i = 0; i < n; i++)
		bytes += iov[i].iov_len;
	return bytes;
}

/* The next piece in one go, of so many bytes at most; moves on. Return: where, *bytes: how many. */
static void *advance(struct cursor *cursor, uint32_t *bytes)
{
	size_t left;
	void *at;

	while (cursor->at == cursor->iov->iov_len) {
		cursor->iov++;
		cursor->n--;
		cursor->at = 0;
	}
	left = cursor->iov->iov_len - cursor->at;
	at = (uint8_t *)cursor->iov->iov_base + cursor->at;
	if (*bytes > left)
		*bytes = (uint32_t)left;
	cursor->at += *bytes;
	return at;
}

static bool is_in_one(const struct cursor *cursor, uint32_t bytes)
{
	return cursor->iov->iov_len - cursor->at >= bytes;
}

static void copy_out(struct cursor *cursor, uint8_t *to, uint32_t bytes)
{
	while (bytes) {
		uint32_t part = bytes;
		const void *from = advance(cursor, &part);

		memcpy(to, from, part);
		to += part;
		bytes -= part;
	}
}

static void copy_in(struct cursor *cursor, const uint8_t *from, uint32_t bytes)
{
	while (bytes) {
		uint32_t part = bytes;
		void *to = advance(cursor, &part);

		memcpy(to, from, part);
		from += part;
		bytes -= part;
	}
}

/* --- sending ------------------------------------------------------------- */

static uint32_t least(size_t a, uint32_t b)
{
	return a < b ? (uint32_t)a : b;
}

/* Of what is sent once the connection is not what it was. */
static int send_error(const struct stream *s)
{
	if (stream_is_opening(s->state))
		return -EAGAIN;
	if (s->state == STREAM_IDLE || s->state == STREAM_BOUND || s->state == STREAM_LISTENING)
		return -ENOTCONN;
	return s->state == STREAM_BROKEN || s->state == STREAM_FAILED ? -s->last_error
								      : -ECONNRESET;
}

static bool may_send_or_never(struct rsock *rs)
{
	struct stream *s = stream_of(rs);

	return !stream_can_write(s->state) || stream_may_send(s);
}

/* The lock is held, and given up to wait. Return: 0 or -errno. */
static int await(struct stream *s, short wanted, bool (*ready)(struct rsock *rs))
{
	int err;

	pthread_mutex_unlock(&s->base.lock);
	err = wait_until_ready(&s->base, wanted, ready, CM_TIME_NEVER);
	pthread_mutex_lock(&s->base.lock);
	return err;
}

int stream_await_room(struct stream *s, int flags)
{
	int err = 0;

	while (!err && !stream_may_send(s)) {
		stream_progress(&s->base);
		if (stream_may_send(s))
			return 0;
		if (!stream_can_write(s->state))
			return send_error(s);
		if (rsock_is_nonblocking(&s->base, flags))
			return -EAGAIN;
		err = await(s, POLLOUT, may_send_or_never);
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
		return send_error(s);
	}
	err = memory_post(s, RS_OP_DATA, ring_bytes, &message, piece, n, is_inline, to);
	if (err) {
		send_window_done(&s->out, 1, ring_bytes);
		stream_happen(s, STREAM_EV_SEND_FAILED, -EIO);
	}
	return err;
}

static int send_inline(struct stream *s, struct cursor *from, uint32_t bytes)
{
	uint8_t copy[INLINE_BYTES];
	struct piece piece = { .at = copy, .bytes = bytes };

	if (is_in_one(from, bytes))
		piece.at = advance(from, &bytes);
	else
		copy_out(from, copy, bytes);
	return post_data(s, &piece, 1, bytes, true);
}

static void begin_copy(struct stream *s, uint32_t bytes)
{
	if (bytes > HELD_BYTES)
		pthread_mutex_unlock(&s->base.lock);
}

static void end_copy(struct stream *s, uint32_t bytes)
{
	if (bytes > HELD_BYTES)
		pthread_mutex_lock(&s->base.lock);
}

/* Only who has the turn moves the head of the ring. */
static int send_from_ring(struct stream *s, struct cursor *from, uint32_t bytes)
{
	uint8_t *ring = s->memory.send_ring;
	uint32_t head = s->out.ring_head;
	uint32_t first = least(s->out.ring_bytes - head, bytes);
	uint32_t lkey = s->memory.send_mr->lkey;
	struct piece piece[2] = {
		{ring + head, first,	      lkey},
		      { ring,	      bytes - first, lkey}
	};

	begin_copy(s, bytes);
	copy_out(from, ring + head, first);
	copy_out(from, ring, bytes - first);
	end_copy(s, bytes);
	return post_data(s, piece, first < bytes ? 2 : 1, bytes, false);
}

/* One message. Return: its bytes, or -errno. */
static ssize_t send_one(struct stream *s, struct cursor *from, size_t left, uint32_t most,
			int flags)
{
	uint32_t bytes;
	int err = stream_may_send(s) ? 0 : stream_await_room(s, flags);

	if (err)
		return err;
	bytes = least(left, least(most, send_window_room(&s->out)));
	if (bytes <= s->sizes.inline_size && bytes <= INLINE_BYTES)
		err = send_inline(s, from, bytes);
	else
		err = send_from_ring(s, from, bytes);
	return err ? err : (ssize_t)bytes;
}

static ssize_t send_all(struct stream *s, struct cursor *from, size_t bytes, int flags)
{
	size_t left = bytes;
	uint32_t most = FIRST_BYTES;
	ssize_t sent = iomap_tell_peer(s, flags);

	if (sent < 0)
		return sent;
	while (left) {
		sent = send_one(s, from, left, most, flags);
		if (sent < 0)
			break;
		left -= (size_t)sent;
		most = least(LONGEST, most * GROWTH);
	}
	return left == bytes && sent < 0 ? sent : (ssize_t)(bytes - left);
}

/* Not inlined: what it needs is not to be paid by a send that needs none of it. */
__attribute__((noinline)) static ssize_t send_in_turn(struct stream *s,
						      const struct rs_transfer *out)
{
	struct cursor from = { out->iov, out->n_iov, 0 };
	ssize_t sent;

	turn_take(&s->send_turn, &s->base.lock);
	sent = send_all(s, &from, total(out->iov, out->n_iov), out->flags);
	turn_give(&s->send_turn);
	return sent;
}

/* What most calls are about, a little in one piece that can be sent at once. Return: its bytes, or
 * -errno; 0: it is not that simple. */
static ssize_t send_at_hand(struct stream *s, const struct rs_transfer *out)
{
	size_t bytes = out->n_iov == 1 ? out->iov->iov_len : 0;
	struct piece piece;
	int err;

	if (!bytes || bytes > s->sizes.inline_size || s->send_turn.is_taken ||
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

	if (out->addr)
		return -EISCONN;
	pthread_mutex_lock(&rs->lock);
	sent = send_at_hand(s, out);
	if (!sent)
		sent = send_in_turn(s, out);
	pthread_mutex_unlock(&rs->lock);
	return sent;
}

/* --- receiving ----------------------------------------------------------- */

/* Nothing more will come. Return: 0 at the end of the data, or -errno. */
static int recv_error(const struct stream *s)
{
	if (s->state == STREAM_IDLE || s->state == STREAM_BOUND || s->state == STREAM_LISTENING)
		return -ENOTCONN;
	if (stream_is_opening(s->state))
		return -EAGAIN;
	return s->state == STREAM_BROKEN || s->state == STREAM_FAILED ? -s->last_error : 0;
}

static bool may_recv(struct rsock *rs)
{
	return stream_may_recv(stream_of(rs));
}

/* Return: 1 if there is something to read; 0 at the end, or -errno. */
static int await_data(struct stream *s, int flags)
{
	int err = 0;

	while (!err && !s->in.unread) {
		stream_progress(&s->base);
		if (s->in.unread)
			break;
		if (!stream_can_read(s->state))
			return recv_error(s);
		if (rsock_is_nonblocking(&s->base, flags))
			return -EAGAIN;
		err = await(s, POLLIN, may_recv);
	}
	return err ? err : 1;
}

__attribute__((noinline)) static void pay(struct stream *s)
{
	int cancel_state = api_enter();

	stream_pay(s);
	api_leave(cancel_state);
}

static void account(struct stream *s, uint32_t bytes)
{
	recv_window_read(&s->in, bytes);
	if (stream_is_in_debt(s))
		pay(s);
}

/* Only who has the turn moves the head of the ring. */
static uint32_t read_some(struct stream *s, struct cursor *to, size_t left, bool peek)
{
	const uint8_t *ring = s->memory.recv_ring;
	uint32_t head = s->in.head;
	uint32_t bytes = least(left, s->in.unread);
	uint32_t first = least(s->in.ring_bytes - head, bytes);

	begin_copy(s, bytes);
	copy_in(to, ring + head, first);
	copy_in(to, ring, bytes - first);
	end_copy(s, bytes);
	if (!peek)
		account(s, bytes);
	return bytes;
}

static ssize_t recv_all(struct stream *s, struct cursor *to, size_t bytes, int flags)
{
	bool peek = flags & MSG_PEEK;
	size_t left = bytes;
	int err = 0;

	while (left) {
		err = s->in.unread ? 1 : await_data(s, flags);
		if (err <= 0)
			break;
		left -= read_some(s, to, left, peek);
		if (peek || !(flags & MSG_WAITALL))
			break;
	}
	return left == bytes && err < 0 ? err : (ssize_t)(bytes - left);
}

/* Not inlined: what it needs is not to be paid by a receive that needs none of it. */
__attribute__((noinline)) static ssize_t recv_in_turn(struct stream *s, struct rs_transfer *in)
{
	struct cursor to = { in->iov, in->n_iov, 0 };
	int cancel_state = api_enter();
	ssize_t received;

	turn_take(&s->recv_turn, &s->base.lock);
	received = recv_all(s, &to, total(in->iov, in->n_iov), in->flags);
	turn_give(&s->recv_turn);
	api_leave(cancel_state);
	return received;
}

/*
 * What most calls are about, a little that is there already and in one piece: nothing in here
 * gives up the lock or could be cancelled, but for what is owed, now and then. Return: its bytes;
 * 0: it is not that simple.
 */
static ssize_t recv_at_hand(struct stream *s, const struct rs_transfer *in)
{
	size_t wanted = in->n_iov == 1 ? in->iov->iov_len : 0;
	uint32_t bytes = least(wanted, s->in.unread);

	if (s->recv_turn.is_taken || in->flags & MSG_PEEK || bytes > HELD_BYTES ||
	    bytes > s->in.ring_bytes - s->in.head || (bytes < wanted && in->flags & MSG_WAITALL))
		return 0;
	if (bytes) {
		/* A memcpy() of a little becomes a string instruction, which is slower. */
		memmove(in->iov->iov_base, s->memory.recv_ring + s->in.head, bytes);
		account(s, bytes);
	}
	return bytes;
}

ssize_t stream_recv(struct rsock *rs, struct rs_transfer *in)
{
	struct stream *s = stream_of(rs);
	ssize_t received;

	in->addr_bytes = 0;
	pthread_mutex_lock(&rs->lock);
	received = recv_at_hand(s, in);
	if (!received)
		received = recv_in_turn(s, in);
	pthread_mutex_unlock(&rs->lock);
	return received;
}
