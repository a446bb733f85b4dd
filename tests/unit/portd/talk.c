/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of a client and its peer: see talk.h. */
#include "tests/unit/portd/talk.h"
#include "tests/unit/portd/tracked_put.h"

struct tracker *talk_tracker;
uint32_t talk_n_heard;
const struct mad_path talk_to_peer = { .grh = true, .dgid = { .raw = { [15] = 2 } } };
const struct mad_path talk_to_stranger = { .grh = true, .dgid = { .raw = { [15] = 3 } } };

void talk_set_up(void)
{
	talk_tracker = tracker_new(0x5eed);
	talk_n_heard = INT32_MAX;
	ck_assert_ptr_nonnull(talk_tracker);
}

void talk_tear_down(void)
{
	tracker_free(talk_tracker);
}

/* --- messages ------------------------------------------------------------ */

struct cm_msg talk_msg_of(enum cm_attr attr, uint32_t local, uint32_t remote)
{
	struct cm_msg msg;

	cm_msg_init(&msg, attr, 0x7777);
	msg.rtu.local_comm_id = local;
	if (attr != CM_ATTR_REQ)
		msg.rtu.remote_comm_id = remote;
	return msg;
}

struct cm_msg talk_our_req(void)
{
	struct cm_msg msg = talk_msg_of(CM_ATTR_REQ, LOCAL, 0);

	msg.req.local_qpn = OUR_QPN;
	msg.req.starting_psn = 0x999;
	return msg;
}

struct cm_msg talk_peer_req(void)
{
	struct cm_msg msg = talk_msg_of(CM_ATTR_REQ, REMOTE, 0);

	msg.req.local_qpn = PEER_QPN;
	msg.req.local_ca_guid = PEER_GUID;
	return msg;
}

struct cm_msg talk_our_rep(void)
{
	struct cm_msg msg = talk_msg_of(CM_ATTR_REP, LOCAL, REMOTE);

	msg.rep.local_qpn = OUR_QPN;
	return msg;
}

struct cm_msg talk_peer_rep(void)
{
	struct cm_msg msg = talk_msg_of(CM_ATTR_REP, REMOTE, LOCAL);

	msg.rep.local_qpn = PEER_QPN;
	msg.rep.local_ca_guid = PEER_GUID;
	return msg;
}

struct cm_msg talk_peer_dreq(void)
{
	struct cm_msg msg = talk_msg_of(CM_ATTR_DREQ, REMOTE, LOCAL);

	msg.dreq.remote_qpn = OUR_QPN;
	return msg;
}

struct cm_msg talk_rej_of(uint32_t local, uint32_t remote, enum cm_msg_answered what,
			  uint16_t reason)
{
	struct cm_msg msg = talk_msg_of(CM_ATTR_REJ, local, remote);

	msg.rej.message = what;
	msg.rej.reason = reason;
	return msg;
}

int talk_sent_by(uint16_t client, struct cm_msg msg)
{
	return tracked_put_sent(talk_tracker, client, PORT, &talk_to_peer, &msg, true);
}

void talk_sent(struct cm_msg msg)
{
	ck_assert_int_eq(talk_sent_by(ME, msg), 0);
}

void talk_received(struct cm_msg msg)
{
	ck_assert_int_eq(
		tracker_received(talk_tracker, ME, PORT, &talk_to_peer, &msg, &(bool){ false }), 0);
	tracker_handed(talk_tracker, ME);
}

void talk_received_from_stranger(struct cm_msg msg)
{
	ck_assert_int_eq(
		tracker_received(talk_tracker, ME, PORT, &talk_to_stranger, &msg, &(bool){ false }),
		0);
}

/* An active connection: REQ sent, REP received, RTU sent. */
void talk_establish(void)
{
	talk_sent(talk_our_req());
	talk_received(talk_peer_rep());
	talk_sent(talk_msg_of(CM_ATTR_RTU, LOCAL, REMOTE));
}

/* A passive connection, up to the REP. */
void talk_accept(void)
{
	talk_received(talk_peer_req());
	talk_sent(talk_our_rep());
}

const struct tracked *talk_by_peer(void)
{
	return tracker_of_remote(talk_tracker, &talk_to_peer.dgid, PEER_GUID, REMOTE);
}

const struct tracked *talk_by_qpn(void)
{
	return tracker_of_qpn(talk_tracker, &talk_to_peer.dgid, PEER_GUID, PEER_QPN);
}

const char *talk_state(void)
{
	const struct tracked *tracked = tracker_of_local(talk_tracker, LOCAL);

	return tracked ? cm_state_str((enum cm_state)tracked->is.state) : "none";
}

void talk_ended_by(uint16_t client, uint32_t local, uint32_t remote)
{
	struct portd_close close = { local, remote, talk_to_peer.dgid, 0, talk_n_heard };

	tracker_close(talk_tracker, client, &close);
}
