/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happens to a stream socket: completions become events of its state table, and what the
 * table says is done here. The set-up is in connect.c and listen.c, data in transfer.c.
 */
#include "lib/rsocket/stream.h"

#include <endian.h>
#include <errno.h>

#include "base/log.h"
#include "lib/diag/warning.h"
#include "lib/rsocket/memory.h"
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

static int act(struct stream *s, enum stream_action action, int err)
{
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
		stream_begin(s);
		return 0;
	case STREAM_SAY_SHUT:
		s->owes |= OWES_SHUTDOWN;
		stream_pay(s);
		return 0;
	case STREAM_SAY_LEAVE:
		s->owes |= OWES_DISCONNECT;
		stream_pay(s);
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

int stream_happen(struct stream *s, enum stream_event event, int err)
{
	enum stream_state before = s->state;
	enum stream_action action = stream_step(&s->state, event);

	if (s->state != before) {
		if (log_is_debug())
			log_debug("socket %d: %s: %s -> %s", s->base.fd, stream_event_str(event),
				  stream_state_str(before), stream_state_str(s->state));
		watch_notify(&s->base);
	}
	return act(s, action, err);
}

static void cut_off(struct stream *s, enum socket_lie lie, uint32_t message)
{
	if (stream_can_talk(s->state))
		warning_of_peer(s->base.fd, lie, message);
	stream_happen(s, STREAM_EV_PEER_LIED, -ECONNRESET);
}

/* --- messages that have come --------------------------------------------- */

static void received_data(struct stream *s, uint32_t bytes)
{
	if (!recv_window_add(&s->in, bytes))
		cut_off(s, SOCKET_LIE_DATA, bytes);
}

static void received_sgl(struct stream *s, uint32_t limit)
{
	if (!send_window_grant(&s->out, (uint16_t)limit))
		cut_off(s, SOCKET_LIE_CREDIT, limit);
	else if (!send_window_refill(&s->out, s->memory.table))
		cut_off(s, SOCKET_LIE_HALF, limit);
}

static void received_iomap(struct stream *s, uint32_t index)
{
	if (index >= s->sizes.iomap_size)
		cut_off(s, SOCKET_LIE_INDEX, index);
	else
		recv_window_skip(&s->in);
}

static void received_ctrl(struct stream *s, uint32_t value)
{
	if (value == RS_CTRL_SHUTDOWN)
		stream_happen(s, STREAM_EV_PEER_SHUT, 0);
	else if (value == RS_CTRL_DISCONNECT)
		stream_happen(s, STREAM_EV_PEER_LEFT, 0);
	else if (value != RS_CTRL_KEEPALIVE)
		cut_off(s, SOCKET_LIE_CONTROL, value);
}

/* What each operation does; one that is not here is none. */
static void (*const received_row[1 << 3])(struct stream *s, uint32_t value) = {
	[RS_OP_DATA] = received_data,
	[RS_OP_SGL] = received_sgl,
	[RS_OP_IOMAP] = received_iomap,
	[RS_OP_CTRL] = received_ctrl,
};

static void received(struct stream *s, uint32_t message)
{
	void (*row)(struct stream * s, uint32_t value) = received_row[rs_message_op(message)];

	if (row)
		row(s, rs_message_value(message));
	else
		cut_off(s, SOCKET_LIE_OPERATION, message);
}

/* --- completions --------------------------------------------------------- */

/* Slots for control messages are not those for data. */
static void is_sent(struct stream *s, struct sent sent)
{
	if (!sent.slots)
		return;
	s->n_sent--;
	if (sent.op == RS_OP_CTRL || sent.op == RS_OP_SGL)
		s->out.ctrl_slots++;
	else
		send_window_done(&s->out, sent.slots, sent.ring_bytes);
}

static bool has_failed(const struct stream *s, const struct ibv_wc *wc, const char *what)
{
	if (wc->status == IBV_WC_SUCCESS)
		return false;
	if (wc->status != IBV_WC_WR_FLUSH_ERR)
		log_debug("socket %d: %s: %s", s->base.fd, what, ibv_wc_status_str(wc->status));
	return true;
}

static void send_ended(struct stream *s, const struct ibv_wc *wc)
{
	is_sent(s, sent_of(wc->wr_id));
	if (has_failed(s, wc, "send"))
		stream_happen(s, STREAM_EV_SEND_FAILED, -EIO);
}

/* Return: whether the receive is to be posted again. */
static bool recv_ended(struct stream *s, const struct ibv_wc *wc)
{
	if (!has_failed(s, wc, "receive")) {
		received(s, be32toh(wc->imm_data));
		return true;
	}
	s->memory.is_flushing = true;
	if (wc->status != IBV_WC_WR_FLUSH_ERR)
		stream_happen(s, STREAM_EV_SEND_FAILED, -EIO);
	return false;
}

static void take_received(struct stream *s)
{
	struct ibv_wc wc[COMPLETIONS_AT_ONCE];
	int n;

	do {
		uint32_t n_again = 0;

		n = ibv_poll_cq(s->memory.recv.cq, COMPLETIONS_AT_ONCE, wc);
		for (int i = 0; i < n; i++)
			n_again += recv_ended(s, &wc[i]);
		if (n_again && stream_can_talk(s->state) && memory_post_recvs(s, n_again))
			stream_happen(s, STREAM_EV_SEND_FAILED, -EIO);
	} while (n == COMPLETIONS_AT_ONCE);
}

/* What came before a send failed, such as a farewell, is in the other queue by the time that the
 * failure is in this one, and comes first. */
void stream_progress(struct rsock *rs)
{
	struct stream *s = stream_of(rs);
	struct ibv_wc wc[COMPLETIONS_AT_ONCE];
	int n;

	/* Before that, completions are for when it is established. */
	if (!s->memory.has_qp || stream_is_opening(s->state))
		return;
	do {
		n = ibv_poll_cq(s->memory.send.cq, COMPLETIONS_AT_ONCE, wc);
		take_received(s);
		for (int i = 0; i < n; i++)
			send_ended(s, &wc[i]);
	} while (n == COMPLETIONS_AT_ONCE);
	stream_pay(s);
}

/* --- what we owe the peer ------------------------------------------------ */

static void post_ctrl(struct stream *s, enum rs_op op, uint32_t value, const struct piece *note,
		      struct rs_entry to)
{
	uint32_t message = rs_message(op, value);

	s->out.ctrl_slots--;
	if (memory_post(s, op, 0, &message, note, note ? 1 : 0, note && memory_note_is_inline(s),
			to)) {
		s->out.ctrl_slots++;
		stream_happen(s, STREAM_EV_SEND_FAILED, -EIO);
	}
}

static void say_ctrl(struct stream *s, enum rs_ctrl what)
{
	post_ctrl(s, RS_OP_CTRL, what, NULL, (struct rs_entry){ 0 });
}

static void say_grant(struct stream *s)
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

void stream_pay(struct stream *s)
{
	if (s->owes & OWES_SHUTDOWN && s->out.ctrl_slots) {
		s->owes &= ~(unsigned int)OWES_SHUTDOWN;
		say_ctrl(s, RS_CTRL_SHUTDOWN);
	}
	if (s->owes & OWES_DISCONNECT && s->out.ctrl_slots) {
		s->owes &= ~(unsigned int)OWES_DISCONNECT;
		say_ctrl(s, RS_CTRL_DISCONNECT);
	}
	while (s->out.ctrl_slots && stream_can_read(s->state) && recv_window_is_due(&s->in))
		say_grant(s);
}

void stream_begin(struct stream *s)
{
	stream_pay(s);
}

/* --- readiness ----------------------------------------------------------- */

bool stream_may_recv(const struct stream *s)
{
	return s->in.unread || !stream_can_read(s->state);
}
