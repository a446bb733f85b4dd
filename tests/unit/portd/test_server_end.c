/* SPDX-License-Identifier: BSD-2-Clause */
/* A client that dies in the middle of each exchange: the messages to its peer, and the cleanup. */
#include <string.h>
#include <unistd.h>

#include "cm/guard.h"
#include "tests/unit/portd/lives.h"
#include "tests/unit/test.h"
#include "lib/portd/server/server.h"

#define alice	  (&scene_alice)
#define bob	  (&scene_bob)

#define AGES_MS	  (600 * 1000)
#define MOMENT_MS 250
#define WHILE_MS  (60 * 1000)
#define PEER_RATE 20000

FIXTURE(scene_set_up, scene_tear_down);

TEST_LOOP(peer_gets_the_message_that_ends_its_connection, 0, LIFE_N)
{
	life[_i].come_so_far();
	scene_wire();
	rig_leave(bob);
	ck_assert_str_eq(scene_wire(), life[_i].end);
}

TEST_LOOP(state_is_freed_when_the_peer_is_gone_too, 0, LIFE_N)
{
	unsigned int i;

	life[_i].come_so_far();
	rig_leave(bob);
	for (i = 0; i < 20; i++)
		rig_pass(AGES_MS);
	ck_assert_uint_eq(rig_server()->core.n_conns, 0);
	ck_assert_str_eq(scene_tracked(life_id()), "none");
	ck_assert_uint_eq(rig_server()->n_clients, 1);
}

/* Alice is unaffected, whatever happens to Bob. */
TEST_LOOP(connection_of_another_client_continues, 0, LIFE_N)
{
	scene_connect(alice, 9);
	life[_i].come_so_far();
	rig_leave(bob);
	rig_pass(AGES_MS);
	ck_assert_str_eq(scene_tracked(alice->first + 9), "ESTABLISHED");
	ck_assert_str_eq(scene_delivered(alice), "");
}

TEST_LOOP(a_dreq_after_the_end_is_answered_with_drep_at_once, 0, LIFE_N)
{
	life[_i].come_so_far();
	rig_leave(bob);
	scene_wire();
	scene_receive(scene_peer_dreq(LIFE_REMOTE_ID, bob, 1));
	ck_assert_str_eq(scene_wire(), "DREP");
}

TEST(a_dreq_long_after_the_end_is_answered_with_drep_at_once)
{
	life_connect();
	rig_leave(bob);
	rig_pass(AGES_MS);
	rig_pass(AGES_MS);
	scene_wire();
	scene_receive(scene_peer_dreq(LIFE_REMOTE_ID, bob, 1));
	ck_assert_str_eq(scene_wire(), "DREP");
}

TEST(the_dreq_for_a_dead_client_is_repeated_until_it_is_answered)
{
	life_connect();
	rig_leave(bob);
	ck_assert_str_eq(scene_wire(), "REQ, RTU, DREQ");
	rig_pass(1500);
	ck_assert_str_eq(scene_wire(), "DREQ");
	scene_receive(talk_msg_of(CM_ATTR_DREP, LIFE_REMOTE_ID, life_id()));
	rig_pass(AGES_MS);
	ck_assert_str_eq(scene_wire(), "");
	ck_assert_uint_eq(rig_server()->core.n_conns, 0);
}

TEST(all_connections_of_a_dead_client_end)
{
	uint32_t n;

	for (n = 1; n <= 5; n++)
		scene_connect(bob, n);
	rig_leave(bob);
	ck_assert_str_eq(scene_wire(), "DREQ, DREQ, DREQ, DREQ, DREQ");
}

TEST(the_port_of_a_dead_client_is_free_at_once)
{
	ck_assert_int_eq(rig_listen(bob, SCENE_ADDR), 0);
	rig_leave(bob);
	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
}

TEST(the_comm_ids_of_a_dead_client_are_not_lent_again_next)
{
	struct rig_client carol;
	uint32_t first = bob->first;

	rig_leave(bob);
	rig_meet(&carol);
	ck_assert_uint_ne(carol.first, first);
}

/* --- later messages of the peer -------------------------------------------- */

static void ends_in_the_middle(void)
{
	scene_sends(bob, scene_req(bob, 1));
	rig_leave(bob);
	ck_assert_str_eq(scene_wire(), "REQ, REJ(other) 4");
}

/* The REJ was lost; the peer would retransmit its REP for 50 s. */
TEST(a_rep_to_a_dead_client_is_answered_with_rej)
{
	struct rig_sent sent;
	struct cm_msg msg;

	ends_in_the_middle();
	scene_receive(scene_peer_rep(LIFE_REMOTE_ID, life_id()));
	ck_assert(rig_sent(&sent, &msg));
	ck_assert_uint_eq(msg.hdr.attr_id, CM_ATTR_REJ);
	ck_assert_uint_eq(msg.rej.message, CM_ANSWERED_REP);
	ck_assert_uint_eq(msg.rej.reason, CM_REJ_TIMEOUT);
	ck_assert_uint_eq(cm_rej_guid(&msg.rej), RIG_GUID);
	ck_assert_uint_eq(msg.rej.local_comm_id, life_id());
	ck_assert_uint_eq(msg.rej.remote_comm_id, LIFE_REMOTE_ID);
}

TEST(an_mra_to_a_dead_client_is_answered_with_rej)
{
	ends_in_the_middle();
	scene_receive(talk_msg_of(CM_ATTR_MRA, LIFE_REMOTE_ID, life_id()));
	ck_assert_str_eq(scene_wire(), "REJ(other) 4");
}

/* It would count as established forever. */
TEST(an_rtu_to_a_dead_client_is_answered_with_rej)
{
	ck_assert_int_eq(rig_listen(bob, SCENE_ADDR), 0);
	scene_receive(scene_peer_req(LIFE_REMOTE_ID, SCENE_ADDR));
	scene_sends(bob, scene_rep(bob, 1, LIFE_REMOTE_ID));
	rig_leave(bob);
	scene_wire();
	scene_receive(talk_msg_of(CM_ATTR_RTU, LIFE_REMOTE_ID, life_id()));
	ck_assert_str_eq(scene_wire(), "REJ(other) 4");
}

TEST(connection_ending_with_dreq_is_not_rejected)
{
	life_connect();
	rig_leave(bob);
	scene_wire();
	scene_receive(scene_peer_rep(LIFE_REMOTE_ID, life_id()));
	ck_assert_str_eq(scene_wire(), "");
}

TEST(the_ids_of_a_dead_client_are_rejected_for_a_while)
{
	ends_in_the_middle();
	rig_pass(WHILE_MS - 1);
	scene_receive(scene_peer_rep(LIFE_REMOTE_ID, life_id()));
	ck_assert_str_eq(scene_wire(), "REJ(REP) 4");
	rig_pass(1);
	scene_receive(scene_peer_rep(LIFE_REMOTE_ID, life_id()));
	ck_assert_str_eq(scene_wire(), "");
}

TEST(unused_ids_are_not_rejected)
{
	ends_in_the_middle();
	scene_receive(
		scene_peer_rep(LIFE_REMOTE_ID, life_id() + (UINT32_C(100) << ID_BLOCK_SHIFT)));
	ck_assert_str_eq(scene_wire(), "");
}

/* Limited like other messages without a receiver. */
TEST(rejections_to_an_unknown_host_are_limited)
{
	const struct cm_msg rep = scene_peer_rep(LIFE_REMOTE_ID, life_id());
	const struct mad_path stranger = rig_peer(SCENE_PEER + 1);
	unsigned int i;

	ends_in_the_middle();
	for (i = 0; i < PEER_RATE; i++)
		rig_arrive(&stranger, &rep);
	ck_assert_uint_eq(rig_n_sent(), PEER_RATE / 4);
}

/* --- last records -------------------------------------------------------- */

static void reject_with_data(uint32_t n)
{
	struct cm_msg rej =
		talk_rej_of(bob->first + n, 0x700 + n, CM_ANSWERED_REQ, CM_REJ_CONSUMER);
	struct portd_record record = {
		.type = PORTD_MAD, .mad = { .port = bob->handle, .path = rig_peer(SCENE_PEER) }
	};

	memcpy(rej.rej.private_data, "words", 5);
	rig_encode(&record.mad, &rej);
	ck_assert(rig_send_record(bob, &record));
}

TEST(messages_of_an_ended_client_are_still_sent)
{
	struct rig_sent sent;
	struct cm_msg msg;
	uint32_t n;

	ck_assert_int_eq(rig_listen(bob, SCENE_ADDR), 0);
	for (n = 1; n <= 20; n++)
		scene_receive(scene_peer_req(0x700 + n, SCENE_ADDR));
	for (n = 1; n <= 20; n++)
		reject_with_data(n);
	rig_leave(bob);
	for (n = 1; n <= 20; n++) {
		ck_assert(rig_sent(&sent, &msg));
		ck_assert_mem_eq(msg.rej.private_data, "words", 5);
	}
	ck_assert(!rig_sent(&sent, &msg));
}

/* Both ends of its sockets are closed; later records have no effect. */
TEST(last_datagram_without_records_is_harmless)
{
	const uint8_t bytes[] = { 0xff, 1, 2, 3 };
	unsigned int i;

	life_connect();
	for (i = 0; i < 10; i++)
		rig_put(bob->data, bytes, sizeof(bytes), NULL, 0);
	rig_leave(bob);
	ck_assert_str_eq(scene_wire(), "REQ, RTU, DREQ");
	ck_assert_uint_eq(rig_server()->n_clients, 1);
}

/* --- the end of cmportd --------------------------------------------------- */

/*
 * At a shutdown, or when the service that started cmportd stops: its clients get the signal, too.
 */
TEST(server_without_clients_ends_at_once)
{
	rig_leave(alice);
	rig_leave(bob);
	rig_stop();
	ck_assert(server_is_over(rig_server()));
}

TEST(client_that_dies_with_the_server_is_ended_first)
{
	life_connect();
	rig_leave(alice);
	rig_stop();
	ck_assert(!server_is_over(rig_server()));
	rig_leave(bob);
	ck_assert_str_eq(scene_wire(), "REQ, RTU, DREQ");
	ck_assert(!server_is_over(rig_server()));
	scene_receive(talk_msg_of(CM_ATTR_DREP, LIFE_REMOTE_ID, life_id()));
	ck_assert(server_is_over(rig_server()));
}

TEST(live_clients_delay_the_end_for_a_moment_only)
{
	rig_stop();
	rig_pass(MOMENT_MS - 1);
	ck_assert(!server_is_over(rig_server()));
	rig_pass(1);
	ck_assert(server_is_over(rig_server()));
}

TEST(server_serves_until_it_ends)
{
	rig_stop();
	life_connect();
	ck_assert_str_eq(scene_wire(), "REQ, RTU");
}
