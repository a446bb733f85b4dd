/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a client may not say, since it is about connections of others, or about none.
 */
#include <errno.h>

#include "lib/portd/server/tracked_table.h"
#include "tests/unit/portd/talk.h"
#include "tests/unit/test.h"

FIXTURE(talk_set_up, talk_tear_down);

TEST(req_with_the_comm_id_of_another_client_is_refused)
{
	talk_sent(talk_our_req());
	ck_assert_int_eq(talk_sent_by(OTHER, talk_our_req()), -EPERM);
	ck_assert_uint_eq(tracker_of_local(talk_tracker, LOCAL)->client, ME);
}

TEST(req_without_comm_id_is_refused)
{
	ck_assert_int_eq(talk_sent_by(ME, talk_msg_of(CM_ATTR_REQ, 0, 0)), -EPERM);
}

static const enum cm_attr about_one[] = {
	CM_ATTR_MRA,  CM_ATTR_REJ,  CM_ATTR_REP, CM_ATTR_RTU,
	CM_ATTR_DREQ, CM_ATTR_DREP, CM_ATTR_LAP, CM_ATTR_APR,
};

#define N_ABOUT_ONE (sizeof(about_one) / sizeof(about_one[0]))

TEST_LOOP(message_about_no_connection_is_refused, 0, N_ABOUT_ONE)
{
	ck_assert_int_eq(talk_sent_by(ME, talk_msg_of(about_one[_i], LOCAL, REMOTE)), -EPERM);
}

TEST_LOOP(message_about_anothers_connection_is_refused, 0, N_ABOUT_ONE)
{
	talk_establish();
	ck_assert_int_eq(talk_sent_by(OTHER, talk_msg_of(about_one[_i], LOCAL, REMOTE)), -EPERM);
	ck_assert_str_eq(talk_state(), "ESTABLISHED");
}

/* The peer takes a second connection with that queue pair for a sign that this one is stale. */
TEST(report_with_the_queue_pair_of_another_user_is_refused)
{
	struct cm_msg req = talk_our_req();
	struct cm_record told;

	ck_assert_int_eq(tracker_own(talk_tracker, OTHER, &(struct tracked_owner){ .user = 2 }), 0);
	talk_establish();
	req.req.local_comm_id++;
	req.req.local_qpn++;
	ck_assert_int_eq(talk_sent_by(OTHER, req), 0);
	told = tracker_of_local(talk_tracker, LOCAL + 1)->is;
	ck_assert_int_eq(tracker_set(talk_tracker, OTHER, &told, false), 0);
	told.local_qpn = OUR_QPN;
	ck_assert_int_eq(tracker_set(talk_tracker, OTHER, &told, false), -EPERM);
}

/* The accomplice of a client accepts all requests, and a search must end soon. */
TEST(few_connections_with_one_peer_and_queue_pair_are_found_by_it)
{
	const struct cm_key key = { .gid = mad_path_peer(&talk_to_peer), .id = OUR_QPN };
	const struct tracked *tracked = NULL;
	struct cm_msg req = talk_our_req(), rep = talk_peer_rep();
	unsigned int n;

	for (n = 0; n < 4 * TRACKED_ALIKE_MAX; n++) {
		talk_sent(req);
		rep.rep.remote_comm_id = req.req.local_comm_id++;
		rep.rep.local_comm_id++;
		rep.rep.local_qpn++;
		talk_received(rep);
	}
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 4 * TRACKED_ALIKE_MAX);
	for (n = 0; (tracked = tracked_find(talk_tracker, TRACKED_BY_OWN_QPN, tracked, &key)); n++)
		continue;
	ck_assert_uint_eq(n, TRACKED_ALIKE_MAX);
}

TEST_LOOP(message_about_anothers_request_is_refused, 0, N_ABOUT_ONE)
{
	talk_received(talk_peer_req());
	ck_assert_int_eq(talk_sent_by(OTHER, talk_msg_of(about_one[_i], LOCAL, REMOTE)), -EPERM);
	ck_assert_str_eq(cm_state_str(talk_by_peer()->is.state), "REQ_RCVD");
}

TEST_LOOP(message_to_a_stranger_is_refused, 0, N_ABOUT_ONE)
{
	struct cm_msg msg = talk_msg_of(about_one[_i], LOCAL, REMOTE);

	talk_establish();
	ck_assert_int_eq(tracker_sent(talk_tracker, ME, PORT, &talk_to_stranger, &msg), -EPERM);
}

TEST_LOOP(message_through_another_port_is_refused, 0, N_ABOUT_ONE)
{
	struct cm_msg msg = talk_msg_of(about_one[_i], LOCAL, REMOTE);

	talk_establish();
	ck_assert_int_eq(tracker_sent(talk_tracker, ME, PORT + 1, &talk_to_peer, &msg), -EPERM);
}

TEST_LOOP(message_with_another_peers_comm_id_is_refused, 0, N_ABOUT_ONE)
{
	talk_establish();
	ck_assert_int_eq(talk_sent_by(ME, talk_msg_of(about_one[_i], LOCAL, REMOTE + 1)), -EPERM);
}

TEST(answer_through_another_port_does_not_name_a_request)
{
	struct cm_msg rep = talk_our_rep();

	talk_received(talk_peer_req());
	ck_assert_int_eq(tracker_sent(talk_tracker, ME, PORT + 1, &talk_to_peer, &rep), -EPERM);
	ck_assert_str_eq(talk_state(), "none");
}

TEST(rejecting_anothers_request_without_a_name_is_refused)
{
	talk_received(talk_peer_req());
	ck_assert_int_eq(
		talk_sent_by(OTHER, talk_rej_of(0, REMOTE, CM_ANSWERED_REQ, CM_REJ_CONSUMER)),
		-EPERM);
	ck_assert_ptr_nonnull(talk_by_peer());
}

TEST(disconnecting_from_an_unanswered_request_is_refused)
{
	talk_received(talk_peer_req());
	ck_assert_int_eq(talk_sent_by(ME, talk_msg_of(CM_ATTR_DREQ, LOCAL, REMOTE)), -EPERM);
}

TEST(confirming_a_rep_that_never_came_is_refused)
{
	talk_sent(talk_our_req());
	ck_assert_int_eq(talk_sent_by(ME, talk_msg_of(CM_ATTR_RTU, LOCAL, REMOTE)), -EPERM);
	ck_assert_str_eq(talk_state(), "REQ_SENT");
}
