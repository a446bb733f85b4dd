/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An address is removed and added again, or another takes its index in the GID table: messages of a
 * connection are sent from its original GID, or not at all.
 */
#include "lib/portd/server/asks/asks.h"
#include "tests/unit/portd/lives.h"
#include "tests/unit/test.h"

#define alice	  (&scene_alice)
#define bob	  (&scene_bob)

#define NEW_INDEX 3

/* Return: the GID index of the one sent message; -1 if none was sent. */
static int index_of_sent(enum cm_attr attr)
{
	struct rig_sent sent;
	struct cm_msg msg;

	if (!rig_sent(&sent, &msg))
		return -1;
	ck_assert_uint_eq(msg.hdr.attr_id, attr);
	ck_assert_uint_eq(rig_n_sent(), 0);
	return sent.path.sgid_index;
}

/* A message of a client, and, after its address has moved, its retransmission or the next one. */
static void send_req(void)
{
	scene_sends(alice, scene_req(alice, 1));
}

static void receive_request(void)
{
	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
}

static void send_rep(void)
{
	scene_sends(alice, scene_rep(alice, 1, 0x701));
}

static void connect_first(void)
{
	scene_connect(alice, 1);
}

static void send_dreq(void)
{
	scene_sends(alice, talk_msg_of(CM_ATTR_DREQ, alice->first + 1, 0x701));
}

static const struct {
	void (*begin)(void);
	void (*say)(void);
	enum cm_attr attr;
} said[] = {
	{ send_req, send_req, CM_ATTR_REQ },
	{ receive_request, send_rep, CM_ATTR_REP },
	{ connect_first, send_dreq, CM_ATTR_DREQ },
};

#define N_SAID ((int)(sizeof(said) / sizeof(said[0])))

FIXTURE(scene_set_up, scene_tear_down);

TEST_LOOP(a_message_is_sent_with_the_current_index_of_its_address, 0, N_SAID)
{
	said[_i].begin();
	scene_wire();
	rig_move_gid(NEW_INDEX);
	said[_i].say();
	ck_assert_int_eq(index_of_sent(said[_i].attr), NEW_INDEX);
}

TEST_LOOP(a_message_of_a_removed_address_is_not_sent, 0, N_SAID)
{
	said[_i].begin();
	scene_wire();
	rig_move_gid(RIG_NO_GID);
	said[_i].say();
	ck_assert_int_eq(index_of_sent(said[_i].attr), -1);
}

TEST(a_last_message_is_sent_with_the_current_index_of_its_address)
{
	life_connect();
	scene_wire();
	rig_move_gid(NEW_INDEX);
	rig_leave(bob);
	ck_assert_int_eq(index_of_sent(CM_ATTR_DREQ), NEW_INDEX);
}

TEST(a_last_message_of_a_removed_address_is_not_sent)
{
	life_connect();
	scene_wire();
	rig_move_gid(RIG_NO_GID);
	rig_leave(bob);
	ck_assert_int_eq(index_of_sent(CM_ATTR_DREQ), -1);
}

TEST(a_new_connection_with_an_old_number_has_an_address_of_its_own)
{
	struct cm_msg req = scene_req(alice, 1);

	scene_connect(alice, 1);
	scene_wire();
	rig_move_gid(NEW_INDEX);
	req.req.starting_psn++;
	scene_sends(alice, req);
	ck_assert_int_eq(index_of_sent(CM_ATTR_REQ), -1); /* it names what another address has */
}
