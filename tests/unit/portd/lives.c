/* SPDX-License-Identifier: BSD-2-Clause */
/* Stages of a connection at which its client dies: see lives.h. */
#include "tests/unit/portd/lives.h"

#define bob (&scene_bob)

/* --- stages -------------------------------------------------------------- */

uint32_t life_id(void)
{
	return bob->first + 1;
}

static void asks(void)
{
	scene_sends(bob, scene_req(bob, 1));
}

static void request_and_receive_mra(void)
{
	struct cm_msg mra = talk_msg_of(CM_ATTR_MRA, LIFE_REMOTE_ID, life_id());

	asks();
	scene_receive(mra);
}

static void is_answered(void)
{
	asks();
	scene_receive(scene_peer_rep(LIFE_REMOTE_ID, life_id()));
}

static void puts_off_the_answer(void)
{
	struct cm_msg mra = talk_msg_of(CM_ATTR_MRA, life_id(), LIFE_REMOTE_ID);

	is_answered();
	mra.mra.message = CM_ANSWERED_REP;
	scene_sends(bob, mra);
}

void life_is_connected(void)
{
	is_answered();
	scene_sends(bob, talk_msg_of(CM_ATTR_RTU, life_id(), LIFE_REMOTE_ID));
}

static void is_refused(void)
{
	asks();
	scene_receive(talk_rej_of(0, life_id(), CM_ANSWERED_REQ, CM_REJ_CONSUMER));
}

static void is_asked(void)
{
	ck_assert_int_eq(rig_listen(bob, SCENE_ADDR), 0);
	scene_receive(scene_peer_req(LIFE_REMOTE_ID, SCENE_ADDR));
}

static void puts_off_the_peer(void)
{
	is_asked();
	scene_sends(bob, talk_msg_of(CM_ATTR_MRA, life_id(), LIFE_REMOTE_ID));
}

static void refuses(void)
{
	is_asked();
	scene_sends(bob, talk_rej_of(life_id(), LIFE_REMOTE_ID, CM_ANSWERED_REQ, CM_REJ_CONSUMER));
}

static void accepts(void)
{
	is_asked();
	scene_sends(bob, scene_rep(bob, 1, LIFE_REMOTE_ID));
}

static void accept_and_receive_mra(void)
{
	struct cm_msg mra = talk_msg_of(CM_ATTR_MRA, LIFE_REMOTE_ID, life_id());

	accepts();
	mra.mra.message = CM_ANSWERED_REP;
	scene_receive(mra);
}

static void accepts_and_is_ready(void)
{
	accepts();
	scene_receive(talk_msg_of(CM_ATTR_RTU, LIFE_REMOTE_ID, life_id()));
}

static void disconnects(void)
{
	struct cm_msg dreq = talk_msg_of(CM_ATTR_DREQ, life_id(), LIFE_REMOTE_ID);

	life_is_connected();
	dreq.dreq.remote_qpn = SCENE_PEER_QPN + LIFE_REMOTE_ID;
	scene_sends(bob, dreq);
}

static void has_disconnected(void)
{
	disconnects();
	scene_receive(talk_msg_of(CM_ATTR_DREP, LIFE_REMOTE_ID, life_id()));
}

static void is_disconnected(void)
{
	life_is_connected();
	scene_receive(scene_peer_dreq(LIFE_REMOTE_ID, bob, 1));
}

static void has_been_disconnected(void)
{
	is_disconnected();
	scene_sends(bob, talk_msg_of(CM_ATTR_DREP, life_id(), LIFE_REMOTE_ID));
}

/* The messages that the peer gets at once; it never answers. */
const struct life life[] = {
	{ asks, "REJ(other) 4" },
	{ request_and_receive_mra, "REJ(other) 4" },
	{ is_answered, "REJ(REP) 28" },
	{ puts_off_the_answer, "REJ(REP) 28" },
	{ life_is_connected, "DREQ" },
	{ is_refused, "" },
	{ is_asked, "REJ(REQ) 28" },
	{ puts_off_the_peer, "REJ(REQ) 28" },
	{ refuses, "" },
	{ accepts, "REJ(other) 28" },
	{ accept_and_receive_mra, "REJ(other) 28" },
	{ accepts_and_is_ready, "DREQ" },
	{ disconnects, "DREQ" },
	{ has_disconnected, "" },
	{ is_disconnected, "DREP" },
	{ has_been_disconnected, "" },
};

_Static_assert(sizeof(life) / sizeof(life[0]) == LIFE_N, "all of them are tried");
