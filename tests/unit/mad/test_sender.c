/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mad/sender.c on a device that does not exist: the destination queue pairs of messages, those that
 * must go through umad, and release of all objects. test_inbox.c tests reception.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mad/handles.h"
#include "mad/sender.h"
#include "mad/talk.h"
#include "tests/unit/test.h"
#include "tests/unit/fake_verbs.h"

#define QPN	 0x4711
#define OUR_ID	 0x11
#define PEER_ID	 0x701
#define V4_INDEX 1
#define V6_INDEX 2
#define V1_INDEX 3

#define OWN_V4	 "10.77.0.1"
#define OWN_V6	 "fd00:77::1"
#define PEER_V4	 "10.77.0.2"
#define PEER_V6	 "fd00:77::2"

static struct mad_sender *sender;
static uint8_t mad[MAD_BYTES];

/* Makes this the next message. */
static void send_from(enum cm_attr attr, uint32_t local, uint32_t remote)
{
	struct cm_msg msg;

	cm_msg_init(&msg, attr, 1);
	if (attr == CM_ATTR_REQ) {
		msg.req.local_comm_id = local;
	} else {
		msg.rtu.local_comm_id = local;
		msg.rtu.remote_comm_id = remote;
	}
	cm_msg_encode(&msg, mad);
}

static struct mad_path path_to(const char *address, uint8_t sgid_index)
{
	return (struct mad_path){
		.grh = true, .sgid_index = sgid_index, .hop_limit = 64, .dgid = fake_gid_of(address)
	};
}

/* Makes the peer at an address answer a probe. */
static void reach(const char *address, uint8_t sgid_index)
{
	struct mad_path path = path_to(address, sgid_index);
	uint8_t said[MAD_BYTES], probe[MAD_BYTES], answer[MAD_BYTES];

	memcpy(said, mad, MAD_BYTES);
	send_from(CM_ATTR_REQ, OUR_ID, 0);
	mad_sender_send(sender, &path, mad);
	while (mad_sender_probe(sender, &path, probe))
		if (mad_probe_answer(probe, answer))
			ck_assert(mad_sender_note_arrival(sender, &path.dgid, 1, answer));
	memcpy(mad, said, MAD_BYTES);
	fake.n_sent = 0;
}

static void setup(void)
{
	struct ibv_context *context = fake_roce_begin();

	fake_add_gid(OWN_V4, V4_INDEX, IBV_GID_TYPE_ROCE_V2);
	fake_add_gid(OWN_V6, V6_INDEX, IBV_GID_TYPE_ROCE_V2);
	fake_add_gid("10.77.1.1", V1_INDEX, IBV_GID_TYPE_ROCE_V1);
	ck_assert_int_eq(mad_sender_open(context, 1, &sender), 0);
	send_from(CM_ATTR_REQ, OUR_ID, 0);
	reach(PEER_V4, V4_INDEX);
	reach(PEER_V6, V6_INDEX);
}

static void teardown(void)
{
	mad_sender_close(sender);
	ck_assert_int_eq(fake.n_made, 0);
}

/* Return: the queue pair that a message to an address was sent to; 0: it must go through umad. */
static uint32_t qpn_to(const char *address, uint8_t sgid_index)
{
	struct mad_path path = path_to(address, sgid_index);
	int before = fake.n_sent;
	int err = mad_sender_send(sender, &path, mad);

	if (err == -EAGAIN)
		return 0;
	ck_assert_int_eq(err, 0);
	ck_assert_int_eq(fake.n_sent, before + 1);
	return fake.sent[before].qpn;
}

/* --- sending ------------------------------------------------------------- */

FIXTURE(setup, teardown);

TEST(a_message_to_a_peer_that_was_reached_goes_to_qp1)
{
	ck_assert_uint_eq(qpn_to(PEER_V4, V4_INDEX), 1);
	ck_assert_uint_eq(fake.sent[0].qkey, 0x80010000);
	ck_assert_mem_eq(fake.sent[0].mad, mad, MAD_BYTES);
}

TEST(a_message_leaves_along_its_path)
{
	struct mad_path path = path_to(PEER_V6, V6_INDEX);
	const struct ibv_ah_attr *ah = &fake.sent[0].ah;

	path.traffic_class = 0xb8;
	path.sl = 5;
	ck_assert_int_eq(mad_sender_send(sender, &path, mad), 0);
	ck_assert_mem_eq(&ah->grh.dgid, &path.dgid, sizeof(path.dgid));
	ck_assert_uint_eq(ah->grh.sgid_index, V6_INDEX);
	ck_assert_uint_eq(ah->grh.traffic_class, 0xb8);
	ck_assert_uint_eq(ah->grh.hop_limit, 64);
	ck_assert_uint_eq(ah->sl, 5);
	ck_assert_uint_eq(ah->port_num, 1);
}

TEST(peer_with_its_own_queue_pair_is_answered_there)
{
	struct mad_gid gid = fake_gid_of(PEER_V4);

	mad_sender_note_qpn(sender, &gid, QPN);
	ck_assert_uint_eq(qpn_to(PEER_V4, V4_INDEX), QPN);
	ck_assert_uint_eq(fake.sent[0].qkey, 0x80010000);
}

TEST(a_kernel_is_answered_at_qp1)
{
	struct mad_gid gid = fake_gid_of(PEER_V4);

	mad_sender_note_qpn(sender, &gid, 1);
	ck_assert_uint_eq(qpn_to(PEER_V4, V4_INDEX), 1);
}

/* What a message begins, the queue pair that it came from, and where the next answer goes. */
static const struct {
	enum cm_attr attr;
	uint32_t source_qpn;
	uint32_t qpn;
} begun[] = {
	{ CM_ATTR_REQ, 1, 1 },
	{ CM_ATTR_REQ, QPN, QPN },
	{ CM_ATTR_REQ, QPN + 1, 1 },
	{ CM_ATTR_REP, 1, QPN },
};

TEST_LOOP(request_from_elsewhere_ends_the_use_of_the_queue_pair, 0,
	  sizeof(begun) / sizeof(begun[0]))
{
	struct mad_gid gid = fake_gid_of(PEER_V4);

	mad_sender_note_qpn(sender, &gid, QPN);
	send_from(begun[_i].attr, PEER_ID, OUR_ID);
	mad_sender_note_arrival(sender, &gid, begun[_i].source_qpn, mad);
	send_from(CM_ATTR_RTU, OUR_ID, PEER_ID);
	ck_assert_uint_eq(qpn_to(PEER_V4, V4_INDEX), begun[_i].qpn);
}

TEST(unanswered_message_is_sent_to_qp1_again)
{
	struct mad_path path = path_to(PEER_V4, V4_INDEX);

	mad_sender_note_qpn(sender, &path.dgid, QPN);
	mad_sender_unanswered(sender, &path);
	ck_assert_uint_eq(qpn_to(PEER_V4, V4_INDEX), 1);
	mad_sender_note_qpn(sender, &path.dgid, QPN);
	ck_assert_uint_eq(qpn_to(PEER_V4, V4_INDEX), 1);
}

TEST(held_messages_go_to_the_queue_pair_known_at_that_time)
{
	struct mad_path path = path_to(PEER_V4, V4_INDEX);

	ck_assert_int_eq(mad_sender_hold(sender, &path, mad), 0);
	mad_sender_note_qpn(sender, &path.dgid, QPN);
	ck_assert_int_eq(mad_sender_hold(sender, &path, mad), 0);
	ck_assert_int_eq(fake.n_sent, 0);
	mad_sender_release(sender);
	ck_assert_int_eq(fake.n_sent, 2);
	ck_assert_uint_eq(fake.sent[0].qpn, 1);
	ck_assert_uint_eq(fake.sent[1].qpn, QPN);
}

TEST(message_without_grh_goes_through_umad)
{
	struct mad_path path = path_to(PEER_V4, V4_INDEX);

	path.grh = false;
	ck_assert_int_eq(mad_sender_send(sender, &path, mad), -EAGAIN);
	ck_assert_int_eq(mad_sender_hold(sender, &path, mad), -EAGAIN);
}

/* A peer could answer to it here, where the two interfaces cannot be distinguished. */
TEST(a_gid_that_two_interfaces_share_goes_through_umad)
{
	struct mad_path path = path_to(PEER_V6, 7);

	fake_add_gid("fe80::1", 7, IBV_GID_TYPE_ROCE_V2);
	fake_add_gid("fe80::1", 8, IBV_GID_TYPE_ROCE_V2);
	ck_assert_uint_eq(qpn_to(PEER_V6, 7), 0);
	ck_assert_uint_eq(qpn_to(PEER_V6, 8), 0);
	ck_assert_int_ne(mad_sender_try(sender, &path, mad), MAD_SENDER_HOLDS);
}

TEST(a_gid_of_roce_v1_goes_through_umad)
{
	ck_assert_uint_eq(qpn_to(PEER_V4, V1_INDEX), 0);
}

TEST(a_gid_index_that_is_empty_goes_through_umad)
{
	ck_assert_uint_eq(qpn_to(PEER_V4, 9), 0);
}

TEST(second_port_with_the_same_gid_does_not_interfere)
{
	fake_add_gid(OWN_V4, V4_INDEX, IBV_GID_TYPE_ROCE_V2);
	fake.gid[fake.n_gids - 1].port_num = 2;
	ck_assert_uint_eq(qpn_to(PEER_V4, V4_INDEX), 1);
}

TEST(a_handle_is_made_once_for_each_peer)
{
	struct mad_path path = path_to(PEER_V4, V4_INDEX);
	int n_made;

	ck_assert_int_ne(mad_sender_try(sender, &path, mad), MAD_SENDER_HOLDS);
	qpn_to(PEER_V4, V4_INDEX);
	ck_assert_int_eq(mad_sender_try(sender, &path, mad), MAD_SENDER_HOLDS);
	mad_sender_release(sender);
	ck_assert_int_eq(fake.n_sent, 2);
	n_made = fake.n_made;
	qpn_to(PEER_V4, V4_INDEX);
	ck_assert_int_eq(fake.n_made, n_made);
}

TEST(shared_address_is_not_used_after_forgetting)
{
	ck_assert_uint_eq(qpn_to(PEER_V4, V4_INDEX), 1);
	fake_add_gid(OWN_V4, 8, IBV_GID_TYPE_ROCE_V2);
	mad_sender_forget(sender);
	ck_assert_uint_eq(qpn_to(PEER_V4, V4_INDEX), 0);
}

TEST(ten_thousand_peers_have_a_handle_each)
{
	struct mad_path path = path_to(PEER_V6, V6_INDEX);
	int n_made = 0;

	for (unsigned int i = 0; i < 20000; i++) {
		path.dgid.raw[12] = (uint8_t)(i % 10000 >> 8);
		path.dgid.raw[13] = (uint8_t)(i % 10000);
		mad_sender_note_qpn(sender, &path.dgid, QPN);
		fake.n_sent = 0;
		ck_assert_int_eq(mad_sender_send(sender, &path, mad), 0);
		if (i == 9999)
			n_made = fake.n_ahs;
	}
	ck_assert_int_eq(n_made, 10000);
	ck_assert_int_eq(fake.n_ahs, n_made);
}

TEST(number_of_handles_is_limited)
{
	struct mad_path path = path_to(PEER_V6, V6_INDEX);

	for (unsigned int i = 0; i < HANDLES_MAX + 1000; i++) {
		memcpy(&path.dgid.raw[12], &i, sizeof(i));
		mad_sender_note_qpn(sender, &path.dgid, QPN);
		fake.n_sent = 0;
		ck_assert_int_eq(mad_sender_send(sender, &path, mad), 0);
	}
	ck_assert_int_le(fake.n_ahs, HANDLES_MAX + 1);
}

TEST(handles_that_cannot_be_made_for_a_while_are_made_later)
{
	struct mad_path path = path_to(PEER_V6, V6_INDEX);
	unsigned int i;

	for (i = 0; i < RETIRED_MAX + 10; i++) {
		memcpy(&path.dgid.raw[12], &i, sizeof(i));
		mad_sender_note_qpn(sender, &path.dgid, QPN);
		fake.n_sent = 0;
		ck_assert_int_eq(mad_sender_send(sender, &path, mad), 0);
	}
	mad_sender_forget(sender);
	fake.has_no_ah = true;
	for (i = 0; i < RETIRED_MAX + 10; i++) {
		memcpy(&path.dgid.raw[12], &i, sizeof(i));
		ck_assert_int_ne(mad_sender_send(sender, &path, mad), 0);
	}
	fake.has_no_ah = false;
	fake.n_sent = 0;
	ck_assert_uint_eq(qpn_to(PEER_V4, V4_INDEX), 1);
}

TEST(broken_queue_pair_is_replaced_by_umad)
{
	struct mad_path path = path_to(PEER_V4, V4_INDEX);

	fake_flush();
	ck_assert_int_eq(mad_sender_send(sender, &path, mad),
			 0); /* the sender learns from this one */
	ck_assert_uint_eq(qpn_to(PEER_V4, V4_INDEX), 0);
}

/* --- messages through umad ----------------------------------------------- */

static void receive_from(enum cm_attr attr, uint32_t local, uint32_t remote)
{
	uint8_t said[MAD_BYTES];
	struct mad_gid gid = fake_gid_of(PEER_V4);

	memcpy(said, mad, MAD_BYTES);
	send_from(attr, local, remote);
	mad_sender_note_arrival(sender, &gid, 1, mad);
	memcpy(mad, said, MAD_BYTES);
}

/* Return: as qpn_to(), for a message to the one peer. */
static uint32_t qpn_of(enum cm_attr attr)
{
	send_from(attr, OUR_ID, PEER_ID);
	return qpn_to(PEER_V4, V4_INDEX);
}

static void be_answered(void)
{
	ck_assert_uint_eq(qpn_of(CM_ATTR_REQ), 1);
	receive_from(CM_ATTR_REP, PEER_ID, OUR_ID);
}

#define STRANGER "10.77.0.9"

static const enum cm_attr answers[] = { CM_ATTR_RTU, CM_ATTR_DREP, CM_ATTR_REJ, CM_ATTR_MRA };

static const enum cm_attr any_attr[] = { CM_ATTR_REQ,  CM_ATTR_REP, CM_ATTR_RTU, CM_ATTR_DREQ,
					 CM_ATTR_DREP, CM_ATTR_REJ, CM_ATTR_MRA };

TEST_LOOP(message_to_an_unproven_peer_goes_through_umad, 0, sizeof(any_attr) / sizeof(any_attr[0]))
{
	struct mad_path path = path_to(STRANGER, V4_INDEX);

	send_from(any_attr[_i], OUR_ID, PEER_ID);
	ck_assert_uint_eq(qpn_to(STRANGER, V4_INDEX), 0);
	ck_assert_int_ne(mad_sender_try(sender, &path, mad), MAD_SENDER_HOLDS);
}

TEST(request_to_an_unproven_peer_sends_a_probe)
{
	uint8_t probe[MAD_BYTES], answer[MAD_BYTES];
	struct mad_path path;

	ck_assert_uint_eq(qpn_to(STRANGER, V4_INDEX), 0);
	ck_assert(mad_sender_probe(sender, &path, probe));
	mad_sender_send_probe(sender, &path, probe);
	mad_sender_release(sender);
	ck_assert_int_eq(fake.n_sent, 1);
	ck_assert_uint_eq(fake.sent[0].qpn, 1);
	ck_assert_mem_eq(fake.sent[0].mad, probe, MAD_BYTES);
	ck_assert(!mad_sender_probe(sender, &path, probe));
	ck_assert(mad_probe_answer(fake.sent[0].mad, answer));
	ck_assert(mad_sender_note_arrival(sender, &path.dgid, 1, answer));
	ck_assert_uint_eq(qpn_to(STRANGER, V4_INDEX), 1);
}

/* A forger of addresses may get these: no more than one packet for each forged message. */
TEST_LOOP(answer_to_an_unproven_peer_sends_no_probe, 0, sizeof(answers) / sizeof(answers[0]))
{
	uint8_t probe[MAD_BYTES];
	struct mad_path path;

	send_from(answers[_i], OUR_ID, PEER_ID);
	ck_assert_uint_eq(qpn_to(STRANGER, V4_INDEX), 0);
	ck_assert(!mad_sender_probe(sender, &path, probe));
}

TEST(answer_to_a_programs_lookup_answers_no_probe)
{
	struct mad_gid gid = fake_gid_of(PEER_V4);
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_SIDR_REP, 1);
	msg.sidr_rep.request_id = OUR_ID;
	cm_msg_encode(&msg, mad);
	ck_assert(!mad_sender_note_arrival(sender, &gid, 1, mad));
}

TEST(the_score_counts_peers)
{
	struct mad_sender_score score;

	mad_sender_score(sender, &score);
	ck_assert_uint_eq(score.n_reached, 2);
	ck_assert_uint_eq(score.n_probed, 0);
	qpn_to(STRANGER, V4_INDEX);
	mad_sender_score(sender, &score);
	ck_assert_uint_eq(score.n_reached, 2);
	ck_assert_uint_eq(score.n_probed, 1);
	ck_assert_uint_eq(score.n_lost, 0);
}

TEST_LOOP(answer_to_a_proven_peer_sends_no_probe, 0, sizeof(answers) / sizeof(answers[0]))
{
	struct mad_path path = path_to(PEER_V4, V4_INDEX);

	be_answered();
	ck_assert_uint_eq(qpn_of(answers[_i]), 1);
	ck_assert_int_eq(mad_sender_try(sender, &path, mad), MAD_SENDER_HOLDS);
}

static const struct asked_and_answered {
	enum cm_attr question, answer;
} asked_and_answered[] = {
	{ CM_ATTR_REP, CM_ATTR_RTU }, { CM_ATTR_REP, CM_ATTR_MRA }, { CM_ATTR_REP, CM_ATTR_REJ },
	{ CM_ATTR_REQ, CM_ATTR_REJ }, { CM_ATTR_REQ, CM_ATTR_MRA }, { CM_ATTR_DREQ, CM_ATTR_DREP },
};

TEST_LOOP(duplicate_request_is_answered_through_umad, 0,
	  sizeof(asked_and_answered) / sizeof(asked_and_answered[0]))
{
	const struct asked_and_answered *row = &asked_and_answered[_i];

	be_answered();
	receive_from(CM_ATTR_MRA, PEER_ID, OUR_ID);
	receive_from(row->question, PEER_ID, OUR_ID);
	if (row->question != CM_ATTR_REP) /* which be_answered() has counted */
		ck_assert_uint_eq(qpn_of(row->answer), 1);
	receive_from(row->question, PEER_ID, OUR_ID);
	ck_assert_uint_eq(qpn_of(row->answer), 0);
	receive_from(row->question, PEER_ID, OUR_ID);
	ck_assert_uint_eq(qpn_of(row->answer), 0);
}

TEST(duplicate_request_of_others_changes_nothing)
{
	struct mad_gid other = fake_gid_of("10.77.0.3");

	be_answered();
	receive_from(CM_ATTR_DREQ, PEER_ID + 1, OUR_ID + 1);
	receive_from(CM_ATTR_DREQ, PEER_ID + 1, OUR_ID + 1);
	send_from(CM_ATTR_DREQ, PEER_ID, OUR_ID);
	mad_sender_note_arrival(sender, &other, 1, mad);
	mad_sender_note_arrival(sender, &other, 1, mad);
	ck_assert_uint_eq(qpn_of(CM_ATTR_DREP), 1);
}

TEST(another_request_of_the_same_connection_is_a_new_one)
{
	be_answered();
	receive_from(CM_ATTR_REP, PEER_ID, OUR_ID);
	receive_from(CM_ATTR_REP, PEER_ID, OUR_ID);
	receive_from(CM_ATTR_DREQ, PEER_ID, OUR_ID);
	ck_assert_uint_eq(qpn_of(CM_ATTR_DREP), 1);
}

TEST(duplicate_lookup_is_answered_through_umad)
{
	struct mad_gid gid = fake_gid_of(PEER_V4);
	struct cm_msg msg;

	be_answered();
	cm_msg_init(&msg, CM_ATTR_SIDR_REQ, 1);
	msg.sidr_req.request_id = PEER_ID;
	cm_msg_encode(&msg, mad);
	mad_sender_note_arrival(sender, &gid, 1, mad);
	mad_sender_note_arrival(sender, &gid, 1, mad);
	cm_msg_init(&msg, CM_ATTR_SIDR_REP, 1);
	msg.sidr_rep.request_id = PEER_ID;
	cm_msg_encode(&msg, mad);
	ck_assert_uint_eq(qpn_to(PEER_V4, V4_INDEX), 0);
}

TEST(a_drill_insists_and_probes_nobody)
{
	uint8_t probe[MAD_BYTES];
	struct mad_path path;

	mad_sender_insist(sender);
	ck_assert_uint_eq(qpn_to(STRANGER, V4_INDEX), 1);
	ck_assert(!mad_sender_probe(sender, &path, probe));
	ck_assert_uint_eq(qpn_of(CM_ATTR_RTU), 1);
	receive_from(CM_ATTR_DREQ, PEER_ID, OUR_ID);
	receive_from(CM_ATTR_DREQ, PEER_ID, OUR_ID);
	ck_assert_uint_eq(qpn_of(CM_ATTR_DREP), 1);
}

/* Return: number of failed messages that equal the given one. */
static int count_failed(void)
{
	struct mad_path path, to = path_to(PEER_V4, V4_INDEX);
	uint8_t failed[MAD_BYTES];
	int n = 0;

	for (; mad_sender_failed(sender, &path, failed); n++) {
		ck_assert_mem_eq(&path.dgid, &to.dgid, sizeof(to.dgid));
		ck_assert_uint_eq(path.sgid_index, to.sgid_index);
		ck_assert_mem_eq(failed, mad, MAD_BYTES);
	}
	return n;
}

TEST(message_without_an_address_handle_goes_through_umad)
{
	struct mad_path path = path_to(PEER_V4, V4_INDEX);

	fake.has_no_ah = true;
	ck_assert_int_lt(mad_sender_send(sender, &path, mad), 0);
	ck_assert_int_lt(mad_sender_hold(sender, &path, mad), 0);
	ck_assert_int_eq(count_failed(), 0);
}

TEST(message_that_the_device_refuses_has_failed)
{
	struct mad_path path = path_to(PEER_V4, V4_INDEX);

	fake.n_sends_left = 2;
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(mad_sender_hold(sender, &path, mad), 0);
	mad_sender_release(sender);
	ck_assert_int_eq(fake.n_sent, 2);
	ck_assert_int_eq(count_failed(), 3);
}

TEST(message_that_completes_with_an_error_has_failed)
{
	struct mad_path path = path_to(PEER_V4, V4_INDEX);

	fake_flush();
	ck_assert_int_eq(mad_sender_send(sender, &path, mad), 0);
	ck_assert_int_eq(count_failed(), 1);
	ck_assert_int_eq(mad_sender_send(sender, &path, mad), -EAGAIN);
}

TEST(messages_without_completions_have_failed)
{
	struct mad_path path = path_to(PEER_V4, V4_INDEX);

	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(mad_sender_hold(sender, &path, mad), 0);
	mad_sender_release(sender);
	fake.poll_error = -1;
	ck_assert_int_eq(count_failed(), 5);
	ck_assert_int_eq(count_failed(), 0);
}

/* --- beginning and end --------------------------------------------------- */

TEST(posted_messages_leave_before_the_queue_pair_is_destroyed)
{
	qpn_to(PEER_V4, V4_INDEX);
	fake.slow_polls = 3;
	mad_sender_close(sender);
	sender = NULL;
	ck_assert_uint_eq(fake.n_cut_off, 0);
}

TEST(close_does_not_wait_long_for_completions)
{
	qpn_to(PEER_V4, V4_INDEX);
	fake.slow_polls = INT_MAX;
	mad_sender_close(sender);
	sender = NULL;
	ck_assert_uint_eq(fake.n_cut_off, 1);
}

FIXTURE(NULL, NULL);

TEST(failed_opening_frees_everything)
{
	struct ibv_context *context = fake_roce_begin();
	int err;

	do {
		fake.n_calls = 0;
		/* Any of the slots will do, as all are alike. */
		fake.fail_at += fake.fail_at > 20 && fake.fail_at < INBOX_SLOTS ? 97 : 1;
		err = mad_sender_open(context, 1, &sender);
		ck_assert_int_le(err, 0);
		if (err)
			ck_assert_int_eq(fake.n_made, 0);
	} while (err);
	ck_assert_int_gt(fake.fail_at, INBOX_SLOTS);
	mad_sender_close(sender);
	ck_assert_int_eq(fake.n_made, 0);
}

TEST(device_with_small_queues_is_supported)
{
	struct ibv_context *context = fake_roce_begin();

	fake.max_qp_wr = 64;
	ck_assert_int_eq(mad_sender_open(context, 1, &sender), 0);
	ck_assert_uint_eq(fake.qp_asked.cap.max_send_wr, 64);
	ck_assert_uint_eq(fake.qp_asked.cap.max_recv_wr, 64);
	ck_assert_uint_eq(fake.qp_asked.cap.max_inline_data, 0);
	ck_assert_int_eq(fake.n_slots, 64);
	mad_sender_close(sender);
	ck_assert_int_eq(fake.n_made, 0);
}

TEST(infiniband_is_not_supported)
{
	struct ibv_context *context = fake_roce_begin();

	fake.port[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
	ck_assert_int_eq(mad_sender_open(context, 1, &sender), -EOPNOTSUPP);
	ck_assert_int_eq(fake.n_made, 0);
}
