/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A REQ or REP with the queue pair of another user's connection: the peer would take that
 * connection for stale, and end it. So it is not sent, and its sender gets a rejection as from the
 * peer.
 */
#include <errno.h>

#include "cm/guard.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

#define MALLORY 61001

#define alice	(&scene_alice) /* root's, as Bob's */
#define bob	(&scene_bob)

static struct rig_client mallory;

static void set_up(void)
{
	scene_set_up();
	rig_client_as_user(MALLORY);
	rig_join(&mallory);
	scene_connect(alice, 1);
	scene_wire();
}

FIXTURE(set_up, scene_tear_down);

TEST(req_with_another_users_queue_pair_is_not_sent)
{
	scene_sends(&mallory, scene_req(&mallory, 1));
	ck_assert_str_eq(scene_wire(), "");
	ck_assert_str_eq(scene_delivered(&mallory), "REJ(REQ) 10");
	ck_assert_str_eq(scene_tracked(alice->first + 1), "ESTABLISHED");
	ck_assert_str_eq(scene_tracked(mallory.first + 1), "none");
	scene_sends(&mallory, scene_req(&mallory, 2));
	ck_assert_str_eq(scene_wire(), "REQ");
}

TEST(rep_with_another_users_queue_pair_is_not_sent)
{
	ck_assert_int_eq(rig_listen(&mallory, SCENE_ADDR), 0);
	scene_receive(scene_peer_req(0x901, SCENE_ADDR));
	scene_delivered(&mallory);
	scene_sends(&mallory, scene_rep(&mallory, 1, 0x901));
	ck_assert_str_eq(scene_wire(), "");
	ck_assert_str_eq(scene_delivered(&mallory), "REJ(REP) 10");
	scene_sends(&mallory, scene_rep(&mallory, 2, 0x901));
	ck_assert_str_eq(scene_wire(), "REP");
}

TEST(req_with_the_queue_pair_of_a_passive_connection_is_not_sent)
{
	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	scene_receive(scene_peer_req(0x901, SCENE_ADDR));
	scene_sends(alice, scene_rep(alice, 2, 0x901));
	scene_sends(&mallory, scene_req(&mallory, 2));
	ck_assert_str_eq(scene_wire(), "REP");
}

/* Queue pairs of different devices, and connections with different hosts, are independent. */
TEST(another_host_may_be_sent_that_queue_pair)
{
	struct mad_path other = rig_peer(SCENE_PEER + 1);
	struct cm_msg req = scene_req(&mallory, 1);

	rig_send(&mallory, &other, &req);
	ck_assert_str_eq(scene_wire(), "REQ");
}

TEST(programs_of_one_user_may_name_each_others_queue_pairs)
{
	scene_sends(bob, scene_req(bob, 1));
	ck_assert_str_eq(scene_wire(), "REQ");
}

/* The kernel may give a released queue pair to any user. */
TEST(the_queue_pair_of_a_connection_that_is_ending_is_free)
{
	scene_sends(alice, talk_msg_of(CM_ATTR_DREQ, alice->first + 1, 0x701));
	scene_wire();
	scene_sends(&mallory, scene_req(&mallory, 1));
	ck_assert_str_eq(scene_wire(), "REQ");
}

TEST(the_queue_pair_of_an_ended_client_is_free)
{
	rig_leave(alice);
	scene_wire();
	scene_sends(&mallory, scene_req(&mallory, 1));
	ck_assert_str_eq(scene_wire(), "REQ");
}

/* Otherwise a user could name future queue pairs of others, and lock them out. */
TEST(a_request_that_is_not_accepted_reserves_no_queue_pair)
{
	scene_sends(&mallory, scene_req(&mallory, 2));
	ck_assert_str_eq(scene_wire(), "REQ");
	scene_sends(alice, scene_req(alice, 2));
	ck_assert_str_eq(scene_wire(), "REQ");
}

/* A client without a queue pair names 0. */
TEST(connections_without_a_queue_pair_are_independent)
{
	struct cm_msg req = scene_req(alice, 2);

	req.req.local_qpn = 0;
	scene_sends(alice, req);
	scene_receive(scene_peer_rep(0x902, alice->first + 2));
	ck_assert_str_eq(scene_tracked(alice->first + 2), "REP_RCVD");
	req = scene_req(&mallory, 2);
	req.req.local_qpn = 0;
	scene_sends(&mallory, req);
	ck_assert_str_eq(scene_wire(), "REQ, REQ");
}

/* Mallory's accomplice on the peer names queue pairs that others there will get. */
TEST(request_of_a_queue_pair_that_others_named_before_is_stale)
{
	struct cm_msg req = scene_peer_req(0x901, SCENE_OTHER_ADDR), shown;
	unsigned int i;

	req.req.local_qpn = 0x5555;
	ck_assert_int_eq(rig_listen(&mallory, SCENE_OTHER_ADDR), 0);
	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	scene_receive(req);
	ck_assert_str_eq(scene_delivered(&mallory), "REQ");
	req = scene_peer_req(0x902, SCENE_ADDR);
	req.req.local_qpn = 0x5555;
	req.req.private_data[91] = 7;
	scene_receive(req);
	ck_assert(rig_next_msg(&mallory, &shown));
	ck_assert_uint_eq(shown.req.local_comm_id, 0x902);
	for (i = 0; i < sizeof(shown.req.private_data); i++)
		ck_assert_uint_eq(shown.req.private_data[i], 0);
	ck_assert_str_eq(scene_wire(), "REJ(REQ) 10");
	scene_sends(&mallory, scene_rep(&mallory, 3, 0x902));
	ck_assert_str_eq(scene_wire(), "");
	ck_assert_str_eq(scene_tracked(mallory.first + 3), "none");
}

/*
 * Mallory's connection has ended, but she has not sent CLOSE. The peer's host has leased the comm
 * id to another program.
 */
TEST(request_with_the_comm_id_of_a_connection_that_is_over_is_for_the_listener)
{
	struct cm_msg req = scene_peer_req(0x901, SCENE_OTHER_ADDR);

	ck_assert_int_eq(rig_listen(&mallory, SCENE_OTHER_ADDR), 0);
	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	scene_receive(req);
	scene_sends(&mallory, scene_rep(&mallory, 2, 0x901));
	scene_receive(talk_msg_of(CM_ATTR_RTU, 0x901, mallory.first + 2));
	scene_receive(scene_peer_dreq(0x901, &mallory, 2));
	scene_sends(&mallory, talk_msg_of(CM_ATTR_DREP, mallory.first + 2, 0x901));
	ck_assert_str_eq(scene_delivered(&mallory), "REQ, RTU, DREQ");
	ck_assert_str_eq(scene_wire(), "REP, DREP");
	req = scene_peer_req(0x901, SCENE_ADDR);
	req.req.local_qpn = 0x7777;
	scene_receive(req);
	ck_assert_str_eq(scene_delivered(&mallory), "");
	ck_assert_str_eq(scene_delivered(alice), "REQ");
	scene_sends(&mallory, scene_rep(&mallory, 3, 0x901));
	ck_assert_str_eq(scene_wire(), "");
}

/* The peer's host may lease the comm id to another program later. */
TEST(request_that_the_peer_has_withdrawn_is_not_answered)
{
	struct cm_msg rej = talk_rej_of(0x901, 0, CM_ANSWERED_REQ, CM_REJ_TIMEOUT);

	cm_rej_timeout(&rej.rej, SCENE_PEER_GUID);
	ck_assert_int_eq(rig_listen(&mallory, SCENE_OTHER_ADDR), 0);
	scene_receive(scene_peer_req(0x901, SCENE_OTHER_ADDR));
	scene_receive(rej);
	ck_assert_str_eq(scene_delivered(&mallory), "REQ, REJ(REQ) 4");
	rig_pass(600000);
	scene_sends(&mallory, scene_rep(&mallory, 2, 0x901));
	ck_assert_str_eq(scene_wire(), "");
}
