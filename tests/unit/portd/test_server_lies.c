/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that a client may not send, and state of other clients that it may not change: the
 * guarantees of docs/portd-protocol.md, with Bob's client posing as Alice's.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

#define alice (&scene_alice)
#define bob   (&scene_bob)

static struct portd_record mad_of(const struct cm_msg *msg, uint8_t handle)
{
	struct portd_record record = { .type = PORTD_MAD,
				       .mad = { .port = handle, .path = rig_peer(SCENE_PEER) } };

	rig_encode(&record.mad, msg);
	return record;
}

static void must_be_forbidden(uint64_t before)
{
	ck_assert_str_eq(scene_wire(), "");
	ck_assert_uint_eq(rig_count(PORTD_COUNT_FORBIDDEN), before + 1);
}

/* --- sent messages ------------------------------------------------------- */

static const struct {
	const char *what;
	unsigned int at;
	uint8_t value;
} others[] = {
	{ "base version", 0, 2 },
	{ "subnet management", 1, 0x01 },
	{ "subnet management, directed", 1, 0x81 },
	{ "subnet administration", 1, 0x03 },
	{ "performance management", 1, 0x04 },
	{ "class version", 2, 1 },
	{ "method", 3, 0x01 },
	{ "attribute", 17, 0x0f },
};

#define N_OTHERS (sizeof(others) / sizeof(others[0]))

FIXTURE(scene_set_up, scene_tear_down);

TEST_LOOP(message_of_another_class_is_not_sent, 0, N_OTHERS)
{
	struct cm_msg req = scene_req(bob, 1);
	struct portd_record record = mad_of(&req, bob->handle);

	record.mad.mad[others[_i].at] = others[_i].value;
	rig_send_record(bob, &record);
	rig_settle();
	must_be_forbidden(0);
}

static const enum cm_attr senders[] = {
	CM_ATTR_REQ,  CM_ATTR_MRA,  CM_ATTR_REJ, CM_ATTR_REP, CM_ATTR_RTU,
	CM_ATTR_DREQ, CM_ATTR_DREP, CM_ATTR_LAP, CM_ATTR_APR, CM_ATTR_SIDR_REQ,
};

#define N_SENDERS (sizeof(senders) / sizeof(senders[0]))

/* SIDR_REQ has its request id where the others have the local comm id. */
TEST_LOOP(message_with_another_clients_comm_id_is_not_sent, 0, N_SENDERS)
{
	struct cm_msg msg = talk_msg_of(senders[_i], alice->first + 1, 0x701);

	if (senders[_i] == CM_ATTR_REQ)
		msg.req.local_ca_guid = RIG_GUID;
	if (senders[_i] == CM_ATTR_REP)
		msg.rep.local_ca_guid = RIG_GUID;
	scene_connect(alice, 1);
	scene_sends(bob, msg);
	must_be_forbidden(0);
	ck_assert_str_eq(scene_tracked(alice->first + 1), "ESTABLISHED");
}

TEST(message_with_an_unlent_comm_id_is_not_sent)
{
	struct cm_msg msg = scene_req(bob, 1);

	msg.req.local_comm_id = ~alice->first;
	scene_sends(bob, msg);
	must_be_forbidden(0);
}

TEST(req_with_another_ca_guid_is_not_sent)
{
	struct cm_msg req = scene_req(bob, 1);

	req.req.local_ca_guid = RIG_GUID + 1;
	scene_sends(bob, req);
	must_be_forbidden(0);
}

TEST(rep_with_another_ca_guid_is_not_sent)
{
	struct cm_msg rep = scene_rep(bob, 1, 0x701);

	ck_assert_int_eq(rig_listen(bob, SCENE_ADDR), 0);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	rep.rep.local_ca_guid = 0;
	scene_sends(bob, rep);
	must_be_forbidden(0);
}

TEST(message_without_a_connection_is_not_sent)
{
	scene_sends(bob, talk_msg_of(CM_ATTR_DREQ, bob->first + 1, 0x701));
	must_be_forbidden(0);
}

TEST(message_to_another_host_than_the_peer_is_not_sent)
{
	struct cm_msg dreq = talk_msg_of(CM_ATTR_DREQ, bob->first + 1, 0x701);
	struct mad_path stranger = rig_peer(SCENE_PEER + 1);

	scene_connect(bob, 1);
	rig_send(bob, &stranger, &dreq);
	must_be_forbidden(0);
}

TEST(a_rej_without_an_id_does_not_end_the_request_of_another)
{
	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	scene_sends(bob, talk_rej_of(0, 0x701, CM_ANSWERED_REQ, CM_REJ_CONSUMER));
	must_be_forbidden(0);
}

TEST(a_rep_does_not_take_the_request_of_another)
{
	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	scene_sends(bob, scene_rep(bob, 1, 0x701));
	must_be_forbidden(0);
	scene_sends(alice, scene_rep(alice, 1, 0x701));
	ck_assert_str_eq(scene_wire(), "REP");
}

TEST(message_from_an_unopened_port_is_not_sent)
{
	struct cm_msg req = scene_req(bob, 1);
	struct portd_record open = { .type = PORTD_OPEN_PORT,
				     .open_port = { .port_num = 2, .device = RIG_DEVICE } };
	struct portd_record record;

	ck_assert_int_eq(rig_ask(alice, &open), 0);
	record = mad_of(&req, alice->reply.handle);
	rig_send_record(bob, &record);
	rig_settle();
	ck_assert_str_eq(scene_wire(), "");
}

static const uint8_t handles[] = { 1, 63, 64, 65, 127, 128, 255 };

TEST_LOOP(message_from_an_unknown_port_is_not_sent, 0, sizeof(handles))
{
	struct cm_msg req = scene_req(bob, 1);
	struct portd_record record = mad_of(&req, handles[_i]);

	rig_send_record(bob, &record);
	rig_settle();
	ck_assert_str_eq(scene_wire(), "");
	ck_assert_str_eq(scene_tracked(bob->first + 1), "none");
}

/* --- connections of others ----------------------------------------------- */

static struct portd_record tracked_of(uint32_t local_comm_id, uint32_t remote_comm_id,
				      enum cm_state state)
{
	struct portd_record record = { .type = PORTD_TRACK,
				       .tracked = { .state = (uint8_t)state,
						    .local_comm_id = local_comm_id,
						    .remote_comm_id = remote_comm_id,
						    .remote_ca_guid = SCENE_PEER_GUID,
						    .remote_qpn = SCENE_PEER_QPN + remote_comm_id,
						    .path = rig_peer(SCENE_PEER) } };

	record.tracked.handle = bob->handle;
	return record;
}

/* Otherwise Bob's disconnect would send any number of DREQs to any host. */
TEST(client_cannot_report_a_connection_that_never_existed)
{
	struct portd_record record = tracked_of(bob->first + 1, 0x701, CM_ESTABLISHED);

	rig_ask(bob, &record);
	ck_assert_str_eq(scene_tracked(bob->first + 1), "none");
	ck_assert(rig_server()->client[1]->user->has_lied);
	rig_leave(bob);
	ck_assert_str_eq(scene_wire(), "");
}

TEST(client_cannot_report_an_unanswered_connection)
{
	struct portd_record record = tracked_of(bob->first + 1, 0x701, CM_ESTABLISHED);

	scene_sends(bob, scene_req(bob, 1));
	rig_ask(bob, &record);
	ck_assert_str_eq(scene_tracked(bob->first + 1), "REQ_SENT");
}

TEST(client_cannot_move_a_connection_to_another_peer)
{
	struct portd_record record = tracked_of(bob->first + 1, 0x701, CM_ESTABLISHED);
	struct mad_gid peer = rig_peer(SCENE_PEER).dgid;

	scene_connect(bob, 1);
	record.tracked.path = rig_peer(SCENE_PEER + 1);
	rig_ask(bob, &record);
	ck_assert_mem_eq(&tracker_of_local(rig_server()->tracker, bob->first + 1)->is.path.dgid,
			 &peer, sizeof(peer));
}

TEST(client_cannot_change_the_connection_of_another)
{
	struct portd_record record = tracked_of(alice->first + 1, 0x701, CM_IDLE);

	scene_connect(alice, 1);
	rig_ask(bob, &record);
	ck_assert_str_eq(scene_tracked(alice->first + 1), "ESTABLISHED");
	ck_assert_uint_eq(tracker_count(rig_server()->tracker, 0), 1);
}

/* Otherwise the end of Bob's client would send a DREQ to Alice's peer. */
TEST(client_cannot_pose_as_the_peer_of_anothers_connection)
{
	struct portd_record record = tracked_of(bob->first + 1, 0x701, CM_ESTABLISHED);

	scene_connect(alice, 1);
	rig_ask(bob, &record);
	ck_assert_str_eq(scene_tracked(bob->first + 1), "none");
	rig_leave(bob);
	ck_assert_str_eq(scene_wire(), "");
}

TEST(client_cannot_close_the_comm_id_of_another)
{
	struct portd_record record = { .type = PORTD_CLOSE,
				       .close = { .remote_comm_id = 0x701,
						  .peer_gid = rig_peer(SCENE_PEER).dgid } };

	scene_connect(alice, 1);
	record.close.local_comm_id = alice->first + 1;
	rig_send_record(bob, &record);
	record.close.local_comm_id = 0;
	rig_send_record(bob, &record);
	rig_settle();
	ck_assert_str_eq(scene_tracked(alice->first + 1), "ESTABLISHED");
}

TEST(client_cannot_listen_where_another_does)
{
	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	ck_assert_int_eq(rig_listen(bob, SCENE_ADDR), EADDRINUSE);
}

static const enum portd_type claim_records[] = { PORTD_RELEASE, PORTD_UPDATE, PORTD_LISTEN };

TEST_LOOP(claim_id_of_another_client_is_unknown, 0, 3)
{
	struct portd_record record = { .type = claim_records[_i],
				       .claim = rig_claim(1, SCENE_OTHER_ADDR) };

	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	rig_ask(bob, &record);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_str_eq(scene_delivered(alice), "REQ");
}

TEST(client_cannot_hold_comm_ids_of_another)
{
	struct portd_record record = { .type = PORTD_HOLD_IDS };

	record.ids.first = alice->first;
	ck_assert_int_eq(rig_ask(bob, &record), EPERM);
}

TEST(resuming_client_cannot_get_comm_ids_of_a_live_one)
{
	struct rig_client carol = { .control = rig_dial(), .data = -1, .first = alice->first };

	ck_assert_int_eq(rig_resume(&carol, bob->page_fd), 0);
	ck_assert_int_eq(rig_hold(&carol), EEXIST);
}

/* Messages of their peers about the end are not for other clients. */
TEST(resuming_client_cannot_get_comm_ids_of_another_dead_one)
{
	struct rig_client carol = { .control = rig_dial(), .data = -1, .first = alice->first };

	scene_connect(alice, 1);
	rig_leave(alice);
	ck_assert_int_eq(rig_resume(&carol, bob->page_fd), 0);
	ck_assert_int_eq(rig_hold(&carol), EPERM);
}

TEST(disconnected_client_gets_its_own_comm_ids_again)
{
	struct rig_client again = { .data = -1, .first = alice->first, .secret = alice->secret };

	rig_leave(alice);
	again.control = rig_dial();
	ck_assert_int_eq(rig_resume(&again, bob->page_fd), 0);
	ck_assert_int_eq(rig_hold(&again), 0);
}

/* It has broken off a cmportd that lives, and comes back before its connections have ended. */
TEST_LOOP(comm_ids_of_a_client_that_is_being_ended_are_waited_for, 0, 2)
{
	struct rig_client again = {
		.control = rig_dial(), .data = -1, .first = alice->first, .secret = alice->secret
	};
	struct portd_record hold = { .type = PORTD_HOLD_IDS,
				     .ids = { .first = alice->first, .secret = alice->secret } };
	struct portd_datagram out = { .bytes = 0 };

	for (uint32_t n = 1; n <= 3 * USER_TURN; n++)
		scene_connect(alice, n);
	ck_assert_int_eq(rig_resume(&again, bob->page_fd), 0);
	portd_put(&out, &hold);
	if (_i) /* it may be read first */
		rig_put(again.control, out.data, out.bytes, NULL, 0);
	close(alice->data);
	close(alice->control);
	if (!_i)
		rig_put(again.control, out.data, out.bytes, NULL, 0);
	rig_settle();
	ck_assert_int_eq(rig_answer(&again), 0);
}

/* --- resuming clients ---------------------------------------------------- */

/* Bob disconnects and resumes, without any restart of cmportd. */
static void resume_client(struct rig_client *again)
{
	struct portd_record open = { .type = PORTD_OPEN_PORT,
				     .open_port = { .port_num = 1, .device = RIG_DEVICE } };

	*again = (struct rig_client){ .data = -1, .first = bob->first, .secret = bob->secret };
	rig_leave(bob);
	again->control = rig_dial();
	ck_assert_int_eq(rig_resume(again, alice->page_fd), 0);
	ck_assert_int_eq(rig_hold(again), 0);
	ck_assert_int_eq(rig_ask(again, &open), 0);
	again->handle = again->reply.handle;
}

/* Otherwise only Bob would get requests from that host. */
TEST(resuming_client_cannot_get_a_request_to_another)
{
	struct portd_record record = tracked_of(bob->first + 1, 0x701, CM_ESTABLISHED);
	struct rig_client again;

	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	resume_client(&again);
	ck_assert_int_eq(rig_ask(&again, &record), 0);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_str_eq(scene_delivered(alice), "REQ");
	ck_assert_str_eq(scene_delivered(&again), "");
}

/* Otherwise it would be any number of DREQs to any host. */
TEST(resuming_client_cannot_disconnect_an_unrelated_peer)
{
	struct portd_record record = tracked_of(bob->first + 1, 0x701, CM_ESTABLISHED);
	struct rig_client again;

	resume_client(&again);
	ck_assert_int_eq(rig_ask(&again, &record), 0);
	ck_assert_str_eq(scene_tracked(bob->first + 1), "ESTABLISHED");
	rig_leave(&again);
	ck_assert_str_eq(scene_wire(), "");
	ck_assert_str_eq(scene_tracked(bob->first + 1), "none");
}

/* Otherwise memory would be limited by the number of comm ids only. */
TEST(resuming_client_has_the_usual_limit_of_connections)
{
	struct rig_client again;
	unsigned int i, n = 0;

	rig_server()->options.quotas.is[QUOTA_USER_CONNS] = 3;
	rig_client_as_user(61001);
	resume_client(&again);
	for (i = 1; i <= 5; i++) {
		struct portd_record record = tracked_of(bob->first + i, 0x700 + i, CM_ESTABLISHED);

		rig_ask(&again, &record);
		n += strcmp(scene_tracked(bob->first + i), "none") != 0;
	}
	ck_assert_uint_eq(n, 3);
}

TEST(resuming_client_cannot_report_comm_ids_of_others)
{
	struct portd_record record = { 0 };
	struct rig_client again;

	resume_client(&again);
	rig_join(alice);
	record = tracked_of(alice->first + 1, 0x701, CM_ESTABLISHED);
	rig_ask(&again, &record);
	ck_assert_str_eq(scene_tracked(alice->first + 1), "none");
}

TEST(resuming_client_can_disconnect_its_connections)
{
	struct portd_record record = tracked_of(bob->first + 1, 0x701, CM_ESTABLISHED);
	struct rig_client again;

	resume_client(&again);
	ck_assert_int_eq(rig_ask(&again, &record), 0);
	scene_sends(&again, talk_msg_of(CM_ATTR_DREQ, bob->first + 1, 0x701));
	ck_assert_str_eq(scene_wire(), "DREQ");
}

/* A message without a comm id has 0. */
TEST(connection_with_comm_id_0_is_refused)
{
	struct rig_client carol = { .control = rig_dial(), .data = -1 };
	struct portd_record record = { .type = PORTD_HOLD_IDS };

	ck_assert_int_eq(rig_resume(&carol, bob->page_fd), 0);
	ck_assert_int_eq(rig_ask(&carol, &record), EPERM);
}

/* A client has few blocks, so it takes thousands of them. */
TEST(comm_id_0_is_not_lent)
{
	struct portd_record record = { .type = PORTD_LEASE_IDS };
	struct rig_client carol;
	unsigned int n, i;

	for (n = 0; n < ID_BLOCKS; n += ID_BLOCKS_MAX) {
		rig_meet(&carol);
		for (i = 1; i < ID_BLOCKS_MAX; i++) {
			ck_assert_int_eq(rig_ask(&carol, &record), 0);
			ck_assert_uint_ne(carol.reply.first, 0);
		}
		rig_leave(&carol);
	}
}

static uint16_t leased_port(const struct rig_client *client)
{
	uint16_t ps, port;
	uint32_t word;
	off_t at;

	for (at = 0; at < LEASE_PAGE_BYTES; at += (off_t)sizeof(word)) {
		ck_assert_int_eq(pread(client->page_fd, &word, sizeof(word), at), sizeof(word));
		if (lease_read(word, &ps, &port) != LEASE_EMPTY)
			return port;
	}
	ck_abort_msg("no port is leased");
}

/* Bob's own page, with a port of Alice's. */
TEST(resumed_page_leases_no_port_of_others)
{
	struct portd_record lease = { .type = PORTD_LEASE_PORTS,
				      .lease_ports = { .ps = RDMA_PS_TCP, .count = 1 } };
	const struct portd_record resumed = { .type = PORTD_RESUMED };
	struct rig_client carol = { .control = rig_dial(), .data = -1 };
	uint32_t word;

	ck_assert_int_eq(rig_ask(alice, &lease), 0);
	word = lease_word(RDMA_PS_TCP, leased_port(alice), LEASE_USED);
	ck_assert_int_eq(pwrite(bob->page_fd, &word, sizeof(word), 0), sizeof(word));
	ck_assert_int_eq(rig_resume(&carol, bob->page_fd), 0);
	ck_assert_int_eq(rig_ask(&carol, &resumed), 0);
	ck_assert_int_eq(pread(bob->page_fd, &word, sizeof(word), 0), sizeof(word));
	ck_assert_uint_eq(word, LEASE_EMPTY);
}

/* Alice disconnects from cmportd and resumes; then the peer answers cmportd's DREQ. */
TEST(answer_to_a_dreq_of_ours_ends_it_though_its_owner_is_here_again)
{
	struct rig_client again = {
		.control = rig_dial(), .data = -1, .first = alice->first, .secret = alice->secret
	};
	struct portd_record open = { .type = PORTD_OPEN_PORT,
				     .open_port = { .port_num = 1, .device = RIG_DEVICE } };
	struct portd_record resumed = { .type = PORTD_RESUMED };

	scene_connect(alice, 1);
	close(alice->data);
	close(alice->control);
	rig_settle();
	ck_assert_str_eq(scene_wire(), "DREQ");
	ck_assert_int_eq(rig_resume(&again, bob->page_fd), 0);
	ck_assert_int_eq(rig_hold(&again), 0);
	ck_assert_int_eq(rig_ask(&again, &open), 0);
	ck_assert_int_eq(rig_ask(&again, &resumed), 0);
	scene_receive(talk_msg_of(CM_ATTR_DREP, 0x701, alice->first + 1));
	rig_pass(60000);
	ck_assert_str_eq(scene_wire(), "");
}

/* A driver may return EAGAIN, for instance when it cannot start a thread. */
TEST(port_that_cannot_be_opened_now_is_an_answer)
{
	struct portd_record open = { .type = PORTD_OPEN_PORT,
				     .open_port = { .port_num = 2, .device = RIG_DEVICE } };

	rig_pass(60000);
	rig_set_port_refusal(-EAGAIN);
	ck_assert_int_eq(rig_ask(alice, &open), EBUSY);
}
