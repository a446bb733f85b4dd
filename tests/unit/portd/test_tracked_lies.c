/* SPDX-License-Identifier: BSD-2-Clause */
/* Records that a client may not send, because they concern connections of others, or none. */
#include <errno.h>

#include "lib/portd/server/ledger/tracked_table.h"
#include "lib/portd/server/ledger/tracked_adopt.h"
#include "tests/unit/portd/talk.h"
#include "tests/unit/test.h"
#include "tests/unit/portd/tracked_put.h"

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

TEST_LOOP(message_without_a_connection_is_refused, 0, N_ABOUT_ONE)
{
	ck_assert_int_eq(talk_sent_by(ME, talk_msg_of(about_one[_i], LOCAL, REMOTE)), -EPERM);
}

TEST_LOOP(message_of_anothers_connection_is_refused, 0, N_ABOUT_ONE)
{
	talk_establish();
	ck_assert_int_eq(talk_sent_by(OTHER, talk_msg_of(about_one[_i], LOCAL, REMOTE)), -EPERM);
	ck_assert_str_eq(talk_state(), "ESTABLISHED");
}

/* Its peer would consider this connection stale because of a second one with the queue pair. */
TEST(queue_pair_in_a_report_is_not_reserved)
{
	struct cm_record told;

	talk_establish();
	told = tracker_of_local(talk_tracker, LOCAL)->is;
	told.local_qpn++;
	ck_assert_int_eq(tracker_set(talk_tracker, ME, &told, false), 0);
	ck_assert_uint_eq(tracker_of_local(talk_tracker, LOCAL)->is.local_qpn, OUR_QPN);
}

/* The accomplice of a client accepts all requests, and a search must end soon. */
struct in_common {
	enum tracked_table table;
	uint32_t id;
	void (*differ)(struct cm_msg *req, struct cm_msg *rep);
};

static void differ_by_the_peers_half(struct cm_msg *req, struct cm_msg *rep)
{
	(void)req;
	rep->rep.local_comm_id++;
	rep->rep.local_qpn++;
}

static void differ_by_comm_ids(struct cm_msg *req, struct cm_msg *rep)
{
	req->req.local_qpn++;
	rep->rep.local_comm_id++;
}

static void differ_by_guid(struct cm_msg *req, struct cm_msg *rep)
{
	req->req.local_qpn++;
	rep->rep.local_ca_guid++;
	rep->rep.local_qpn++;
}

static const struct in_common in_common[] = {
	{ TRACKED_BY_OWN_QPN, OUR_QPN, differ_by_the_peers_half },
	{ TRACKED_BY_QPN, PEER_QPN, differ_by_comm_ids },
	{ TRACKED_BY_REMOTE, REMOTE, differ_by_guid },
};

static void connect_alike(const struct in_common *what, unsigned int n)
{
	struct cm_msg req = talk_our_req(), rep = talk_peer_rep();

	for (; n; n--) {
		talk_sent(req);
		rep.rep.remote_comm_id = req.req.local_comm_id++;
		talk_received(rep);
		what->differ(&req, &rep);
	}
}

static unsigned int count_alike(const struct in_common *what)
{
	const struct cm_key key = { .gid = mad_path_peer(&talk_to_peer), .id = what->id };
	const struct tracked *tracked = NULL;
	unsigned int n = 0;

	while ((tracked = tracked_find(talk_tracker, what->table, tracked, &key)))
		n++;
	return n;
}

TEST_LOOP(few_connections_with_an_equal_key_are_found_by_it, 0, 3)
{
	const unsigned int n = 4 * TRACKED_ALIKE_MAX;
	unsigned int i;

	connect_alike(&in_common[_i], n);
	ck_assert_uint_eq(count_alike(&in_common[_i]), TRACKED_ALIKE_MAX);
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), n);
	for (i = 0; i < n; i++)
		ck_assert_uint_eq(tracker_of_local(talk_tracker, LOCAL + i)->is.state, CM_REP_RCVD);
}

/* Also when the tables have grown, and the first connections have ended. */
TEST_LOOP(connections_with_an_equal_key_end_alike, 0, 3)
{
	const unsigned int n = 1000;
	unsigned int i;

	connect_alike(&in_common[_i], n);
	ck_assert_uint_eq(count_alike(&in_common[_i]), TRACKED_ALIKE_MAX);
	for (i = 0; i < n; i++)
		talk_ended_by(ME, LOCAL + i, 0);
	ck_assert_uint_eq(count_alike(&in_common[_i]), 0);
	ck_assert(tracker_is_empty(talk_tracker));
}

/* Each comm id could be that of the same request, retransmitted. */
TEST(rejected_request_can_become_few_connections)
{
	struct cm_msg rep = talk_our_rep();

	talk_received(talk_peer_req());
	talk_sent(talk_rej_of(0, REMOTE, CM_ANSWERED_REQ, CM_REJ_CONSUMER));
	for (; rep.rep.local_comm_id < LOCAL + 1000; rep.rep.local_comm_id++)
		talk_sent_by(ME, rep);
	ck_assert_uint_le(tracker_count(talk_tracker, ME), TRACKED_ALIKE_MAX);
}

TEST(rejected_request_respects_the_limit_of_connections)
{
	struct cm_msg rep = talk_our_rep();

	talk_received(talk_peer_req());
	talk_sent(talk_rej_of(0, REMOTE, CM_ANSWERED_REQ, CM_REJ_CONSUMER));
	ck_assert_int_eq(tracked_put_sent(talk_tracker, ME, PORT, &talk_to_peer, &rep, false),
			 -EPERM);
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 1);
	talk_sent(rep);
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 2);
}

TEST(request_beyond_the_limit_of_connections_is_refused)
{
	struct cm_msg req = talk_our_req();

	talk_sent(req);
	ck_assert_int_eq(tracked_put_sent(talk_tracker, ME, PORT, &talk_to_peer, &req, false), 0);
	req.req.local_comm_id++;
	ck_assert_int_eq(tracked_put_sent(talk_tracker, ME, PORT, &talk_to_peer, &req, false),
			 -EDQUOT);
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 1);
}

TEST_LOOP(message_of_anothers_request_is_refused, 0, N_ABOUT_ONE)
{
	talk_received(talk_peer_req());
	ck_assert_int_eq(talk_sent_by(OTHER, talk_msg_of(about_one[_i], LOCAL, REMOTE)), -EPERM);
	ck_assert_str_eq(cm_state_str(talk_by_peer()->is.state), "REQ_RCVD");
}

TEST_LOOP(message_to_another_host_is_refused, 0, N_ABOUT_ONE)
{
	struct cm_msg msg = talk_msg_of(about_one[_i], LOCAL, REMOTE);

	talk_establish();
	ck_assert_int_eq(tracked_put_sent(talk_tracker, ME, PORT, &talk_to_stranger, &msg, true),
			 -EPERM);
}

TEST_LOOP(message_through_another_port_is_refused, 0, N_ABOUT_ONE)
{
	struct cm_msg msg = talk_msg_of(about_one[_i], LOCAL, REMOTE);

	talk_establish();
	ck_assert_int_eq(tracked_put_sent(talk_tracker, ME, PORT + 1, &talk_to_peer, &msg, true),
			 -EPERM);
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
	ck_assert_int_eq(tracked_put_sent(talk_tracker, ME, PORT + 1, &talk_to_peer, &rep, true),
			 -EPERM);
	ck_assert_str_eq(talk_state(), "none");
}

TEST(rejecting_anothers_request_without_a_comm_id_is_refused)
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
