/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tracked connections of lookups (SIDR): only the passive side has one, which shows that the
 * lookup must be refused until it is answered.
 */
#include <errno.h>

#include "tests/unit/portd/talk.h"
#include "tests/unit/portd/tracked_put.h"
#include "tests/unit/test.h"

#define SERVICE UINT64_C(0x01111c06)

static struct cm_msg lookup(void)
{
	struct cm_msg msg = talk_msg_of(CM_ATTR_SIDR_REQ, REMOTE, 0);

	msg.sidr_req.service_id = SERVICE;
	return msg;
}

static struct cm_msg answer(uint8_t status)
{
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_SIDR_REP, 0x7777);
	msg.sidr_rep.request_id = REMOTE;
	msg.sidr_rep.service_id = SERVICE;
	msg.sidr_rep.status = status;
	return msg;
}

static const struct tracked *tracked_of_lookup(void)
{
	return tracker_of_remote(talk_tracker, &talk_to_peer.dgid, SERVICE, REMOTE);
}

static const char *state(void)
{
	const struct tracked *tracked = tracked_of_lookup();

	return tracked ? cm_state_str((enum cm_state)tracked->is.state) : "none";
}

FIXTURE(talk_set_up, talk_tear_down);

TEST(lookup_is_tracked_with_the_values_of_its_refusal)
{
	struct cm_record tracked;

	talk_received(lookup());
	ck_assert_str_eq(state(), "SIDR_REQ_RCVD");
	ck_assert(tracker_take(talk_tracker, ME, &tracked));
	ck_assert_uint_eq(tracked.remote_comm_id, REMOTE);
	ck_assert_uint_eq(tracked.remote_ca_guid, SERVICE);
	ck_assert_uint_eq(tracked.tid, 0x7777);
	ck_assert_uint_eq(tracked.handle, PORT);
}

TEST(repeated_lookup_is_tracked_once)
{
	talk_received(lookup());
	talk_received(lookup());
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 1);
}

TEST(answer_completes_the_lookup_and_may_be_repeated)
{
	talk_received(lookup());
	talk_sent(answer(CM_SIDR_OK));
	ck_assert_str_eq(state(), "SIDR_REP_SENT");
	talk_received(lookup());
	talk_sent(answer(CM_SIDR_OK));
	ck_assert_str_eq(state(), "SIDR_REP_SENT");
}

TEST(answer_without_a_lookup_is_refused)
{
	ck_assert_int_eq(talk_sent_by(ME, answer(CM_SIDR_OK)), -EPERM);
	talk_received(lookup());
	ck_assert_int_eq(talk_sent_by(OTHER, answer(CM_SIDR_OK)), -EPERM);
	ck_assert_str_eq(state(), "SIDR_REQ_RCVD");
}

TEST(answer_for_another_service_is_refused)
{
	struct cm_msg msg = answer(CM_SIDR_OK);

	talk_received(lookup());
	msg.sidr_rep.service_id++;
	ck_assert_int_eq(talk_sent_by(ME, msg), -EPERM);
}

TEST(answer_to_another_host_is_refused)
{
	struct cm_msg msg = answer(CM_SIDR_OK);

	talk_received(lookup());
	ck_assert_int_eq(tracked_put_sent(talk_tracker, ME, PORT, &talk_to_stranger, &msg, true),
			 -EPERM);
	ck_assert_int_eq(tracked_put_sent(talk_tracker, ME, PORT + 1, &talk_to_peer, &msg, true),
			 -EPERM);
}

/* It no longer listened when the lookup arrived. */
TEST(unknown_service_closes_nothing)
{
	talk_received(lookup());
	talk_sent(answer(CM_SIDR_UNSUPPORTED));
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 0);
}

TEST(closed_lookup_is_not_tracked)
{
	talk_received(lookup());
	talk_sent(answer(CM_SIDR_REJECT));
	talk_ended_by(ME, LOCAL, REMOTE);
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 0);
}

TEST(closing_a_lookup_leaves_the_connection_with_its_id)
{
	struct portd_close close = { LOCAL, REMOTE, talk_to_peer.dgid, SERVICE, INT32_MAX };

	talk_received(talk_peer_req());
	talk_received(lookup());
	tracker_close(talk_tracker, ME, &close);
	ck_assert_str_eq(state(), "none");
	ck_assert_ptr_nonnull(talk_by_peer());
}

/* After a restart of cmportd the client reports it, with the comm id that no message contains. */
TEST(lookup_reported_by_the_client_is_answered)
{
	struct cm_record told = { .state = CM_SIDR_REQ_RCVD,
				  .handle = PORT,
				  .local_comm_id = LOCAL,
				  .remote_comm_id = REMOTE,
				  .remote_ca_guid = SERVICE,
				  .path = talk_to_peer };

	ck_assert_int_eq(tracked_put(talk_tracker, ME, &told), 0);
	talk_received(lookup());
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 1);
	talk_sent(answer(CM_SIDR_OK));
	ck_assert_str_eq(talk_state(), "SIDR_REP_SENT");
	talk_ended_by(ME, LOCAL, REMOTE);
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 0);
}
