/* SPDX-License-Identifier: BSD-2-Clause */
/* Stages of a connection at which its client dies: see lives.h. */
#include "tests/unit/portd/lives.h"

#define bob (&scene_bob)

/* --- stages -------------------------------------------------------------- */

uint32_t life_id(void)
{
	return bob->first + 1;
}

static void send_request(void)
{
	scene_sends(bob, scene_req(bob, 1));
}

static void request_and_receive_mra(void)
{
	struct cm_msg mra = talk_msg_of(CM_ATTR_MRA, LIFE_REMOTE_ID, life_id());

	send_request();
	scene_receive(mra);
}

static void receive_reply(void)
{
	send_request();
	scene_receive(scene_peer_rep(LIFE_REMOTE_ID, life_id()));
}

static void send_mra_to_reply(void)
{
	struct cm_msg mra = talk_msg_of(CM_ATTR_MRA, life_id(), LIFE_REMOTE_ID);

	receive_reply();
	mra.mra.message = CM_ANSWERED_REP;
	scene_sends(bob, mra);
}

void life_connect(void)
{
	receive_reply();
	scene_sends(bob, talk_msg_of(CM_ATTR_RTU, life_id(), LIFE_REMOTE_ID));
}

static void receive_rejection(void)
{
	send_request();
	scene_receive(talk_rej_of(0, life_id(), CM_ANSWERED_REQ, CM_REJ_CONSUMER));
}

static void receive_request(void)
{
	ck_assert_int_eq(rig_listen(bob, SCENE_ADDR), 0);
	scene_receive(scene_peer_req(LIFE_REMOTE_ID, SCENE_ADDR));
}

static void send_mra(void)
{
	receive_request();
	scene_sends(bob, talk_msg_of(CM_ATTR_MRA, life_id(), LIFE_REMOTE_ID));
}

static void send_rejection(void)
{
	receive_request();
	scene_sends(bob, talk_rej_of(life_id(), LIFE_REMOTE_ID, CM_ANSWERED_REQ, CM_REJ_CONSUMER));
}

static void send_reply(void)
{
	receive_request();
	scene_sends(bob, scene_rep(bob, 1, LIFE_REMOTE_ID));
}

static void accept_and_receive_mra(void)
{
	struct cm_msg mra = talk_msg_of(CM_ATTR_MRA, LIFE_REMOTE_ID, life_id());

	send_reply();
	mra.mra.message = CM_ANSWERED_REP;
	scene_receive(mra);
}

static void reply_and_receive_rtu(void)
{
	send_reply();
	scene_receive(talk_msg_of(CM_ATTR_RTU, LIFE_REMOTE_ID, life_id()));
}

static void send_dreq(void)
{
	struct cm_msg dreq = talk_msg_of(CM_ATTR_DREQ, life_id(), LIFE_REMOTE_ID);

	life_connect();
	dreq.dreq.remote_qpn = SCENE_PEER_QPN + LIFE_REMOTE_ID;
	scene_sends(bob, dreq);
}

static void send_dreq_and_receive_drep(void)
{
	send_dreq();
	scene_receive(talk_msg_of(CM_ATTR_DREP, LIFE_REMOTE_ID, life_id()));
}

static void receive_dreq(void)
{
	life_connect();
	scene_receive(scene_peer_dreq(LIFE_REMOTE_ID, bob, 1));
}

static void receive_dreq_and_send_drep(void)
{
	receive_dreq();
	scene_sends(bob, talk_msg_of(CM_ATTR_DREP, life_id(), LIFE_REMOTE_ID));
}

/* The messages that the peer gets at once; it never answers. */
const struct life life[] = {
	{ send_request, "REJ(other) 4" },
	{ request_and_receive_mra, "REJ(other) 4" },
	{ receive_reply, "REJ(REP) 28" },
	{ send_mra_to_reply, "REJ(REP) 28" },
	{ life_connect, "DREQ" },
	{ receive_rejection, "" },
	{ receive_request, "REJ(REQ) 28" },
	{ send_mra, "REJ(REQ) 28" },
	{ send_rejection, "" },
	{ send_reply, "REJ(other) 28" },
	{ accept_and_receive_mra, "REJ(other) 28" },
	{ reply_and_receive_rtu, "DREQ" },
	{ send_dreq, "DREQ" },
	{ send_dreq_and_receive_drep, "" },
	{ receive_dreq, "DREP" },
	{ receive_dreq_and_send_drep, "" },
};

_Static_assert(sizeof(life) / sizeof(life[0]) == LIFE_N, "all of them are tried");
