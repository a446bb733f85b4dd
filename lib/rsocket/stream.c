/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of a stream socket: completions become events of its state table, whose actions are
 * carried out here. Set-up is in connecting.c and stream_listen.c, data transfer in transfer.c.
 */
#include "lib/rsocket/stream.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "lib/diag/warning.h"
#include "lib/net/addr.h"
#include "lib/rsocket/memory.h"
#include "lib/rsocket/roster.h"
#include "lib/rsocket/wait.h"

#define COMPLETIONS_AT_ONCE 32

/* --- events -------------------------------------------------------------- */

void stream_flush(struct stream *s)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	s->owes = 0;
	if (s->memory.has_qp)
		ibv_modify_qp(s->id->qp, &attr, IBV_QP_STATE);
}

static union roster_name name_of(const struct sockaddr *addr)
{
	union roster_name name = { .any.sa_family = AF_UNSPEC };
	socklen_t bytes = addr_bytes(addr);

	if (bytes <= sizeof(name))
		memcpy(&name, addr, bytes);
	return name;
}

static void enter_in_roster(struct stream *s)
{
	const struct roster_row row = { .local = name_of(rdma_get_local_addr(s->id)),
					.peer = name_of(rdma_get_peer_addr(s->id)),
					.credits = send_window_credits(&s->out) };

	s->row = roster_add(ROSTER_RDMA, &row);
}

int stream_apply(struct stream *s, enum stream_event event, int err)
{
	enum stream_state before = s->state;
	enum stream_action action = stream_step(&s->state, event);

	if (s->state != before) {
		if (log_is_debug())
			log_debug("socket %d: %s: %s -> %s", s->base.fd, stream_event_str(event),
				  stream_state_str(before), stream_state_str(s->state));
		watch_notify(&s->base);
	}
	switch (action) {
	case STREAM_REFUSE:
		return -EINVAL;
	case STREAM_NOTHING:
		return 0;
	case STREAM_FIND_ROUTE:
		return s->opening->find_route(s);
	case STREAM_SEND_REQ:
		return s->opening->send_req(s);
	case STREAM_BEGIN:
		enter_in_roster(s);
		stream_send_owed(s);
		return 0;
	case STREAM_SAY_SHUT:
		s->owes |= OWES_SHUTDOWN;
		stream_send_owed(s);
		return 0;
	case STREAM_SAY_LEAVE:
		s->owes |= OWES_DISCONNECT;
		stream_send_owed(s);
		return 0;
	case STREAM_GIVE_ERROR:
		s->error = -err;
		s->last_error = -err;
		stream_flush(s);
		return 0;
	case STREAM_FLUSH:
		stream_flush(s);
		return 0;
	}
	return -EINVAL;
}

/* Ends the connection after a protocol violation of the peer. */
static void end_for_violation(struct stream *s, enum socket_lie lie, uint32_t message)
{
	if (stream_can_send_messages(s->state))
		warning_of_peer(s->base.fd, lie, message);
	stream_apply(s, STREAM_EV_PEER_LIED, -ECONNRESET);
}

/* --- received messages --------------------------------------------------- */

static void handle_data(struct stream *s, uint32_t bytes)
{
	if (!recv_window_add(&s->in, bytes))
		end_for_violation(s, SOCKET_LIE_DATA, bytes);
}

static void handle_sgl(struct stream *s, uint32_t limit)
{
	if (!send_window_grant(&s->out, (uint16_t)limit))
		end_for_violation(s, SOCKET_LIE_CREDIT, limit);
	else if (!send_window_refill(&s->out, s->memory.table))
		end_for_violation(s, SOCKET_LIE_HALF, limit);
	if (s->row)
		s->row->credits = send_window_credits(&s->out);
}

static void handle_iomap(struct stream *s, uint32_t index)
{
	if (index >= s->sizes.iomap_size)
		end_for_violation(s, SOCKET_LIE_INDEX, index);
	else
		recv_window_skip(&s->in);
}

static void handle_ctrl(struct stream *s, uint32_t value)
{
	if (value == RS_CTRL_SHUTDOWN)
		stream_apply(s, STREAM_EV_PEER_SHUT, 0);
	else if (value == RS_CTRL_DISCONNECT)
		stream_apply(s, STREAM_EV_PEER_LEFT, 0);
	else if (value != RS_CTRL_KEEPALIVE)
		end_for_violation(s, SOCKET_LIE_CONTROL, value);
}

/* The handlers by operation; other operations are invalid. */
static void (*const handle_message[1 << 3])(struct stream *s, uint32_t value) = {
	[RS_OP_DATA] = handle_data,
	[RS_OP_SGL] = handle_sgl,
	[RS_OP_IOMAP] = handle_iomap,
	[RS_OP_CTRL] = handle_ctrl,
};

/* --- completions --------------------------------------------------------- */

static bool has_failed(const struct stream *s, const struct ibv_wc *wc, const char *what)
{
	if (wc->status == IBV_WC_SUCCESS)
		return false;
	if (wc->status != IBV_WC_WR_FLUSH_ERR)
		log_debug("socket %d: %s: %s", s->base.fd, what, ibv_wc_status_str(wc->status));
	return true;
}

static void handle_send_completion(struct stream *s, const struct ibv_wc *wc)
{
	struct sent sent = sent_of(wc->wr_id);

	if (sent.slots) {
		s->n_sent--;
		/* Control messages have slots of their own. */
		if (sent.op == RS_OP_CTRL || sent.op == RS_OP_SGL)
			s->out.ctrl_slots++;
		else
			send_window_done(&s->out, sent.slots, sent.ring_bytes);
	}
	if (has_failed(s, wc, "send"))
		stream_apply(s, STREAM_EV_SEND_FAILED, -EIO);
}

/* Return: whether the receive must be posted again. */
static bool handle_recv_completion(struct stream *s, const struct ibv_wc *wc)
{
	uint32_t message;

	if (has_failed(s, wc, "receive")) {
		s->memory.is_flushing = true;
		if (wc->status != IBV_WC_WR_FLUSH_ERR)
			stream_apply(s, STREAM_EV_SEND_FAILED, -EIO);
		return false;
	}
	message = be32toh(wc->imm_data);
	if (handle_message[rs_message_op(message)])
		handle_message[rs_message_op(message)](s, rs_message_value(message));
	else
		end_for_violation(s, SOCKET_LIE_OPERATION, message);
	return true;
}

/*
 * A peer that follows the protocol has no more messages under way than its credits and a few of
 * control. A peer that sends without end is limited per call, so that other threads get the lock;
 * the watches are notified, so that no thread sleeps.
 */
static void poll_recv_cq(struct stream *s)
{
	struct ibv_wc wc[COMPLETIONS_AT_ONCE];
	uint32_t left = s->sizes.rq_size + COMPLETIONS_AT_ONCE;
	int n = COMPLETIONS_AT_ONCE;

	while (n == COMPLETIONS_AT_ONCE && left >= COMPLETIONS_AT_ONCE) {
		uint32_t n_again = 0;

		left -= COMPLETIONS_AT_ONCE;
		n = ibv_poll_cq(s->memory.recv.cq, COMPLETIONS_AT_ONCE, wc);
		for (int i = 0; i < n; i++)
			n_again += handle_recv_completion(s, &wc[i]);
		if (n_again && stream_can_send_messages(s->state) && memory_post_recvs(s, n_again))
			stream_apply(s, STREAM_EV_SEND_FAILED, -EIO);
	}
	if (n == COMPLETIONS_AT_ONCE)
		watch_notify(&s->base);
}

/*
 * A failed send in its queue implies that everything received before it is in the other queue, such
 * as the peer's disconnect, and is handled first.
 */
void stream_progress(struct rsock *rs)
{
	struct stream *s = stream_of(rs);
	struct ibv_wc wc[COMPLETIONS_AT_ONCE];
	int n;

	/* Completions are not handled before the connection is established. */
	if (!s->memory.has_qp || stream_is_opening(s->state))
		return;
	do {
		n = ibv_poll_cq(s->memory.send.cq, COMPLETIONS_AT_ONCE, wc);
		poll_recv_cq(s);
		for (int i = 0; i < n; i++)
			handle_send_completion(s, &wc[i]);
	} while (n == COMPLETIONS_AT_ONCE);
	stream_send_owed(s);
}

/* --- owed messages -------------------------------------------------------- */

static void post_ctrl(struct stream *s, enum rs_op op, uint32_t value, const struct piece *note,
		      struct rs_entry to)
{
	uint32_t message = rs_message(op, value);

	s->out.ctrl_slots--;
	if (memory_post(s, op, 0, &message, note, note ? 1 : 0, note && memory_note_is_inline(s),
			to)) {
		s->out.ctrl_slots++;
		stream_apply(s, STREAM_EV_SEND_FAILED, -EIO);
	}
}

static void send_ctrl(struct stream *s, enum rs_ctrl what)
{
	post_ctrl(s, RS_OP_CTRL, what, NULL, (struct rs_entry){ 0 });
}

static void send_grant(struct stream *s)
{
	struct grant grant = recv_window_grant(&s->in);
	struct rs_entry to = { .addr = s->peer.table_addr + grant.slot * sizeof(struct rs_entry),
			       .key = s->peer.table_key };
	struct rs_entry half = { .addr = (uintptr_t)s->memory.recv_ring + grant.half_from,
				 .key = s->memory.recv_mr->rkey,
				 .bytes = s->sizes.recv_bytes / 2 };
	struct piece note;

	if (!grant.has_half) {
		post_ctrl(s, RS_OP_SGL, grant.limit, NULL, (struct rs_entry){ 0 });
		return;
	}
	half = rs_entry_for_peer(half, s->peer.big_endian);
	note = memory_note(s, &half, sizeof(half));
	post_ctrl(s, RS_OP_SGL, grant.limit, &note, to);
}

void stream_send_owed(struct stream *s)
{
	if (s->owes & OWES_SHUTDOWN && s->out.ctrl_slots) {
		s->owes &= ~(unsigned int)OWES_SHUTDOWN;
		send_ctrl(s, RS_CTRL_SHUTDOWN);
	}
	if (s->owes & OWES_DISCONNECT && s->out.ctrl_slots) {
		s->owes &= ~(unsigned int)OWES_DISCONNECT;
		send_ctrl(s, RS_CTRL_DISCONNECT);
	}
	while (s->out.ctrl_slots && stream_can_read(s->state) && recv_window_is_due(&s->in))
		send_grant(s);
}

/* --- readiness ----------------------------------------------------------- */

bool stream_may_recv(const struct stream *s)
{
	return s->in.unread || !stream_can_read(s->state);
}
