/* SPDX-License-Identifier: BSD-2-Clause */
/* Receivers of an incoming message, and messages without one. */
#include <string.h>
#include <unistd.h>

#include "cm/guard.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

#define alice (&scene_alice)
#define bob   (&scene_bob)

/* --- requests ------------------------------------------------------------ */

FIXTURE(scene_set_up, scene_tear_down);

TEST(a_req_is_for_the_listener_of_its_address)
{
	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	ck_assert_int_eq(rig_listen(bob, SCENE_OTHER_ADDR), 0);
	scene_receive(scene_peer_req(0x701, SCENE_OTHER_ADDR));
	ck_assert_str_eq(scene_delivered(alice), "");
	ck_assert_str_eq(scene_delivered(bob), "REQ");
}

TEST(a_req_for_a_port_without_listener_is_rej_8)
{
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_str_eq(scene_wire(), "REJ(REQ) 8");
}

TEST(a_req_for_a_port_that_is_only_bound_is_rej_8)
{
	struct portd_record record = { .type = PORTD_BIND, .claim = rig_claim(1, SCENE_ADDR) };

	ck_assert_int_eq(rig_ask(alice, &record), 0);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_str_eq(scene_wire(), "REJ(REQ) 8");
}

TEST(a_req_for_no_listeners_address_is_rej_28)
{
	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	scene_receive(scene_peer_req(0x701, SCENE_OTHER_ADDR));
	ck_assert_str_eq(scene_wire(), "REJ(REQ) 28");
	ck_assert_str_eq(scene_delivered(alice), "");
}

TEST(a_req_for_another_service_than_ip_is_rej_8)
{
	struct cm_msg req = scene_peer_req(0x701, SCENE_ADDR);

	ck_assert_int_eq(rig_listen(alice, "0.0.0.0"), 0);
	req.req.service_id |= UINT64_C(1) << 40;
	scene_receive(req);
	ck_assert_str_eq(scene_wire(), "REJ(REQ) 8");
}

/* It listens, but not on this port of the device. */
TEST(a_listener_gets_nothing_from_a_port_that_it_has_not_opened)
{
	struct portd_record open = { .type = PORTD_OPEN_PORT,
				     .open_port = { .port_num = 2, .device = RIG_DEVICE } };
	struct cm_msg req = scene_peer_req(0x701, SCENE_ADDR);
	struct mad_path from = rig_peer(SCENE_PEER);
	uint8_t mad[MAD_BYTES];

	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	ck_assert_int_eq(rig_ask(bob, &open), 0);
	cm_msg_encode(&req, mad);
	rig_arrive_bytes(2, &from, mad);
	rig_settle();
	ck_assert_str_eq(scene_delivered(alice), "");
	ck_assert_str_eq(scene_wire(), "REJ(REQ) 8");
}

TEST(a_duplicate_req_is_for_the_owner_of_the_connection)
{
	struct portd_record release = { .type = PORTD_RELEASE, .claim = rig_claim(1, SCENE_ADDR) };

	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_int_eq(rig_ask(alice, &release), 0);
	ck_assert_int_eq(rig_listen(bob, SCENE_ADDR), 0);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_str_eq(scene_delivered(alice), "REQ, REQ");
	ck_assert_str_eq(scene_delivered(bob), "");
}

TEST(the_same_comm_id_of_another_host_is_another_request)
{
	struct cm_msg req = scene_peer_req(0x701, SCENE_ADDR);
	struct mad_path other = rig_peer(SCENE_PEER + 1);

	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	rig_arrive(&other, &req);
	ck_assert_uint_eq(tracker_count(rig_server()->tracker, 0), 2);
}

/* The peer has restarted, and its queue pair is that of a connection of Alice. */
TEST(a_stale_req_is_for_the_owner_of_the_connection)
{
	struct cm_msg req = scene_peer_req(0x702, SCENE_ADDR);

	scene_connect(alice, 1);
	ck_assert_int_eq(rig_listen(bob, SCENE_ADDR), 0);
	req.req.local_qpn = SCENE_PEER_QPN + 0x701;
	scene_receive(req);
	ck_assert_str_eq(scene_delivered(alice), "REQ");
	ck_assert_str_eq(scene_delivered(bob), "");
}

/* Any host can send a REQ with the queue pair and the CA of another one. */
TEST(a_req_of_another_host_with_that_queue_pair_is_for_the_listener)
{
	struct cm_msg req = scene_peer_req(0x702, SCENE_ADDR);
	struct mad_path other = rig_peer(SCENE_PEER + 1);

	scene_connect(alice, 1);
	ck_assert_int_eq(rig_listen(bob, SCENE_ADDR), 0);
	req.req.local_qpn = SCENE_PEER_QPN + 0x701;
	rig_arrive(&other, &req);
	ck_assert_str_eq(scene_delivered(alice), "");
	ck_assert_str_eq(scene_delivered(bob), "REQ");
}

/* --- private data -------------------------------------------------------- */

static bool is_secret(const struct portd_record *record)
{
	return memmem(record->mad.mad, MAD_BYTES, "secret", 6) != NULL;
}

static struct cm_msg set_secret(enum cm_attr attr)
{
	struct cm_msg msg = attr == CM_ATTR_REQ	  ? scene_peer_req(0x701, SCENE_ADDR)
			    : attr == CM_ATTR_REP ? scene_peer_rep(0x701, alice->first + 1)
						  : talk_msg_of(attr, 0x701, alice->first + 1);
	uint8_t *to = attr == CM_ATTR_REQ    ? msg.req.private_data + 40
		      : attr == CM_ATTR_MRA  ? msg.mra.private_data
		      : attr == CM_ATTR_REJ  ? msg.rej.private_data
		      : attr == CM_ATTR_REP  ? msg.rep.private_data
		      : attr == CM_ATTR_RTU  ? msg.rtu.private_data
		      : attr == CM_ATTR_LAP  ? msg.lap.private_data
		      : attr == CM_ATTR_APR  ? msg.apr.private_data
		      : attr == CM_ATTR_DREQ ? msg.dreq.private_data
					     : msg.drep.private_data;

	memcpy(to, "secret", 6);
	return msg;
}

static const enum cm_attr kinds[] = { CM_ATTR_REQ,  CM_ATTR_MRA, CM_ATTR_REJ,
				      CM_ATTR_REP,  CM_ATTR_RTU, CM_ATTR_DREQ,
				      CM_ATTR_DREP, CM_ATTR_LAP, CM_ATTR_APR };

TEST_LOOP(private_data_goes_to_its_owner_only, 0, sizeof(kinds) / sizeof(kinds[0]))
{
	struct portd_record record;

	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	ck_assert_int_eq(rig_listen(bob, SCENE_OTHER_ADDR), 0);
	scene_receive(set_secret(kinds[_i]));
	ck_assert(rig_next(alice, &record));
	ck_assert(is_secret(&record));
	ck_assert(!rig_next(bob, &record));
}

TEST(a_rej_4_without_our_comm_id_is_for_the_owner_of_the_connection)
{
	struct cm_msg rej = talk_rej_of(0x701, 0, CM_ANSWERED_REQ, CM_REJ_TIMEOUT);

	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	cm_rej_timeout(&rej.rej, SCENE_PEER_GUID);
	scene_receive(rej);
	ck_assert_str_eq(scene_delivered(alice), "REQ, REJ(REQ) 4");
}

TEST(an_unread_duplicate_is_queued_once)
{
	unsigned int i;

	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	for (i = 0; i < 100; i++)
		scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_uint_eq(tracker_count(rig_server()->tracker, 0), 1);
}

/* --- messages without a receiver ----------------------------------------- */

TEST(a_dreq_for_an_unlent_comm_id_is_answered_with_drep)
{
	struct cm_msg dreq = talk_msg_of(CM_ATTR_DREQ, 0x701, ~alice->first);

	scene_receive(dreq);
	ck_assert_str_eq(scene_wire(), "DREP");
}

static const enum cm_attr unanswered[] = { CM_ATTR_MRA, CM_ATTR_REJ,  CM_ATTR_REP, CM_ATTR_RTU,
					   CM_ATTR_LAP, CM_ATTR_DREP, CM_ATTR_APR };

TEST_LOOP(other_messages_without_a_receiver_are_dropped, 0,
	  sizeof(unanswered) / sizeof(unanswered[0]))
{
	scene_receive(talk_msg_of(unanswered[_i], 0x701, ~alice->first));
	ck_assert_str_eq(scene_wire(), "");
}

TEST(a_mad_that_is_no_cm_message_is_dropped)
{
	struct mad_path from = rig_peer(SCENE_PEER);
	uint8_t mad[MAD_BYTES];

	memset(mad, 0xff, sizeof(mad));
	rig_arrive_bytes(1, &from, mad);
	rig_settle();
	ck_assert_str_eq(scene_delivered(alice), "");
	ck_assert_uint_eq(rig_count(PORTD_COUNT_MALFORMED), 1);
}

/* --- outgoing messages --------------------------------------------------- */

TEST(a_rej_does_not_overtake_the_req_that_it_withdraws)
{
	struct cm_msg req = scene_req(alice, 1);
	struct cm_msg rej = talk_rej_of(alice->first + 1, 0, CM_ANSWERED_REQ, CM_REJ_TIMEOUT);
	struct portd_record record = {
		.type = PORTD_MAD, .mad = { .port = alice->handle, .path = rig_peer(SCENE_PEER) }
	};

	cm_rej_timeout(&rej.rej, RIG_GUID);
	rig_encode(&record.mad, &req);
	rig_send_record(alice, &record);
	rig_encode(&record.mad, &rej);
	rig_send_record(alice, &record);
	rig_settle();
	ck_assert_str_eq(scene_wire(), "REQ, REJ(REQ) 4");
}

TEST(a_message_is_sent_when_its_hop_is_resolved)
{
	rig_set_hops_ready(false);
	scene_sends(alice, scene_req(alice, 1));
	ck_assert_str_eq(scene_wire(), "");
	rig_set_hops_ready(true);
	rig_pass(100);
	ck_assert_str_eq(scene_wire(), "REQ");
}

TEST(a_message_waits_for_its_hop_for_a_second_at_most)
{
	rig_set_hops_ready(false);
	scene_sends(alice, scene_req(alice, 1));
	rig_pass(1001);
	rig_set_hops_ready(true);
	rig_pass(1000);
	ck_assert_str_eq(scene_wire(), "");
	ck_assert_uint_eq(rig_count(PORTD_COUNT_UNSENT), 1);
}

TEST(an_unconnected_answer_waits_while_the_kernel_resolves_its_hop)
{
	rig_set_hops_ready(false);
	scene_receive(talk_msg_of(CM_ATTR_DREQ, 0x701, ~alice->first));
	rig_pass(3300);
	rig_set_hops_ready(true);
	rig_pass(100);
	ck_assert_str_eq(scene_wire(), "DREP");
}

static void send_req(uint8_t again)
{
	struct cm_msg req = scene_req(alice, 1);
	struct portd_record record = {
		.type = PORTD_MAD,
		.mad = { .port = alice->handle, .path = rig_peer(SCENE_PEER), .again = again }
	};

	rig_encode(&record.mad, &req);
	rig_send_record(alice, &record);
	rig_settle();
}

TEST(a_retransmission_goes_through_umad)
{
	struct rig_sent sent;
	struct cm_msg msg;

	send_req(1);
	ck_assert(rig_sent(&sent, &msg));
	ck_assert(sent.slowly);
}

TEST(only_a_retransmission_revalidates_the_next_hop)
{
	unsigned int before = rig_n_revalidations();

	send_req(0);
	ck_assert_uint_eq(rig_n_revalidations(), before);
	send_req(1);
	ck_assert_uint_eq(rig_n_revalidations(), before + 1);
}

static void arrive_beside(unsigned int n, bool makes_sense)
{
	struct mad_path peer = rig_peer(SCENE_PEER);
	struct cm_msg req;

	for (unsigned int i = 0; i < n; i++) {
		req = scene_peer_req(0x701 + i, SCENE_ADDR);
		rig_arrive_beside(&peer, makes_sense ? &req : NULL);
	}
}

TEST(a_message_beside_qp1_is_handled)
{
	arrive_beside(1, true);
	rig_settle();
	ck_assert_str_eq(scene_wire(), "REJ(REQ) 8");
}

/* Return: the assumed queue pair of the peer, after this message arrived beside QP1. */
static uint32_t accepted_after(const struct cm_msg *msg, uint8_t host)
{
	struct mad_path from = rig_peer(host);
	struct mad_gid gid;

	rig_arrive_beside(&from, msg);
	rig_settle();
	return rig_last_noted_qpn(&gid);
}

TEST(a_connections_message_teaches_the_peers_queue_pair)
{
	struct mad_path peer = rig_peer(SCENE_PEER);
	struct cm_msg dreq = scene_peer_dreq(0x701, alice, 1);
	struct mad_gid gid;

	scene_connect(alice, 1);
	ck_assert_uint_eq(accepted_after(&dreq, SCENE_PEER), RIG_PEER_QPN);
	rig_last_noted_qpn(&gid);
	ck_assert_mem_eq(&gid, &peer.dgid, sizeof(gid));
}

/* A REP contains one id of ours, and the peer's is not known yet. */
TEST(the_first_answer_teaches_the_peers_queue_pair)
{
	struct cm_msg rep = scene_peer_rep(0x701, alice->first + 1);

	scene_sends(alice, scene_req(alice, 1));
	ck_assert_uint_eq(accepted_after(&rep, SCENE_PEER), RIG_PEER_QPN);
}

TEST(a_message_for_an_orphan_teaches_the_peers_queue_pair)
{
	struct cm_msg drep = talk_msg_of(CM_ATTR_DREP, 0x701, alice->first + 1);

	scene_connect(alice, 1);
	rig_leave(alice);
	rig_settle();
	ck_assert_uint_eq(accepted_after(&drep, SCENE_PEER), RIG_PEER_QPN);
}

/* Messages of a host that forges the peer's address, and knows only one id of a connection. */
static struct cm_msg forged(int kind)
{
	struct cm_msg dreq = scene_peer_dreq(0x701, alice, 1);

	switch (kind) {
	case 0:
		return scene_peer_req(0x999, SCENE_ADDR);
	case 1:
		dreq.dreq.local_comm_id++;
		return dreq;
	case 2:
		dreq.dreq.remote_comm_id++;
		return dreq;
	case 3:
		return talk_rej_of(0x701, 0, CM_ANSWERED_REP, CM_REJ_CONSUMER);
	default:
		return scene_peer_rep(0x999, alice->first + 1);
	}
}

#define N_FORGED 5

TEST_LOOP(an_unconnected_message_teaches_no_queue_pair, 0, N_FORGED)
{
	struct cm_msg msg = forged(_i);

	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	scene_connect(alice, 1);
	ck_assert_uint_ne(accepted_after(&msg, SCENE_PEER), RIG_PEER_QPN);
}

TEST(a_mad_that_is_no_cm_message_teaches_no_queue_pair)
{
	struct cm_msg dreq = scene_peer_dreq(0x701, alice, 1);

	scene_connect(alice, 1);
	dreq.hdr.class_version = 1;
	ck_assert_uint_ne(accepted_after(&dreq, SCENE_PEER), RIG_PEER_QPN);
}

TEST(a_message_from_another_host_teaches_no_queue_pair)
{
	struct cm_msg dreq = scene_peer_dreq(0x701, alice, 1);

	scene_connect(alice, 1);
	ck_assert_uint_ne(accepted_after(&dreq, SCENE_PEER + 1), RIG_PEER_QPN);
}

TEST(only_a_retransmission_counts_against_the_peers_queue_pair)
{
	struct mad_path peer = rig_peer(SCENE_PEER);
	struct mad_gid gid, nobody = { 0 };

	send_req(0);
	gid = rig_unanswered();
	ck_assert_mem_eq(&gid, &nobody, sizeof(gid));
	send_req(1);
	gid = rig_unanswered();
	ck_assert_mem_eq(&gid, &peer.dgid, sizeof(gid));
}

/* Both of its descriptors are readable in one turn. */
TEST(a_removed_device_drops_messages_beside_qp1)
{
	arrive_beside(3 * RECEIVE_BATCH, true);
	rig_remove_device();
	rig_settle();
	ck_assert_ptr_null(rig_server()->host_port[alice->handle]);
	ck_assert_uint_lt(rig_n_sent(), 3 * RECEIVE_BATCH);
}

/* The descriptor reports the first one only. */
TEST(many_messages_beside_qp1_keep_the_server_awake)
{
	unsigned int n = 3 * RECEIVE_BATCH + 1;

	arrive_beside(n, true);
	rig_settle();
	ck_assert_uint_eq(rig_n_sent(), n);
}

TEST(invalid_messages_beside_qp1_are_skipped_in_turns)
{
	arrive_beside(3 * RECEIVE_BATCH, false);
	arrive_beside(1, true);
	rig_turn();
	ck_assert_uint_eq(rig_n_sent(), 0);
	rig_settle();
	ck_assert_uint_eq(rig_n_sent(), 1);
}
