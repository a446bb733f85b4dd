/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a client may not say, since it is about connections of others, or about none.
 */
#include <errno.h>

#include "tests/unit/cm/run.h"
#include "tests/unit/portd/talk.h"

START_TEST(req_with_the_comm_id_of_another_client_is_refused)
{
	talk_sent(talk_our_req());
	ck_assert_int_eq(talk_sent_by(OTHER, talk_our_req()), -EPERM);
	ck_assert_uint_eq(tracker_of_local(talk_tracker, LOCAL)->client, ME);
}
END_TEST

START_TEST(req_without_comm_id_is_refused)
{
	ck_assert_int_eq(talk_sent_by(ME, talk_msg_of(CM_ATTR_REQ, 0, 0)), -EPERM);
}
END_TEST

static const enum cm_attr about_one[] = {
	CM_ATTR_MRA,  CM_ATTR_REJ,  CM_ATTR_REP, CM_ATTR_RTU,
	CM_ATTR_DREQ, CM_ATTR_DREP, CM_ATTR_LAP, CM_ATTR_APR,
};

#define N_ABOUT_ONE (sizeof(about_one) / sizeof(about_one[0]))

START_TEST(message_about_no_connection_is_refused)
{
	ck_assert_int_eq(talk_sent_by(ME, talk_msg_of(about_one[_i], LOCAL, REMOTE)), -EPERM);
}
END_TEST

START_TEST(message_about_anothers_connection_is_refused)
{
	talk_establish();
	ck_assert_int_eq(talk_sent_by(OTHER, talk_msg_of(about_one[_i], LOCAL, REMOTE)), -EPERM);
	ck_assert_str_eq(talk_state(), "ESTABLISHED");
}
END_TEST

START_TEST(message_about_anothers_request_is_refused)
{
	talk_received(talk_peer_req());
	ck_assert_int_eq(talk_sent_by(OTHER, talk_msg_of(about_one[_i], LOCAL, REMOTE)), -EPERM);
	ck_assert_uint_eq(talk_by_peer()->is.state, CM_REQ_RCVD);
}
END_TEST

START_TEST(message_to_a_stranger_is_refused)
{
	struct cm_msg msg = talk_msg_of(about_one[_i], LOCAL, REMOTE);

	talk_establish();
	ck_assert_int_eq(tracker_sent(talk_tracker, ME, PORT, &talk_to_stranger, &msg), -EPERM);
}
END_TEST

START_TEST(message_through_another_port_is_refused)
{
	struct cm_msg msg = talk_msg_of(about_one[_i], LOCAL, REMOTE);

	talk_establish();
	ck_assert_int_eq(tracker_sent(talk_tracker, ME, PORT + 1, &talk_to_peer, &msg), -EPERM);
}
END_TEST

START_TEST(message_with_another_peers_comm_id_is_refused)
{
	talk_establish();
	ck_assert_int_eq(talk_sent_by(ME, talk_msg_of(about_one[_i], LOCAL, REMOTE + 1)), -EPERM);
}
END_TEST

START_TEST(answer_through_another_port_does_not_name_a_request)
{
	struct cm_msg rep = talk_our_rep();

	talk_received(talk_peer_req());
	ck_assert_int_eq(tracker_sent(talk_tracker, ME, PORT + 1, &talk_to_peer, &rep), -EPERM);
	ck_assert_str_eq(talk_state(), "none");
}
END_TEST

START_TEST(rejecting_anothers_request_without_a_name_is_refused)
{
	talk_received(talk_peer_req());
	ck_assert_int_eq(
		talk_sent_by(OTHER, talk_rej_of(0, REMOTE, CM_ANSWERED_REQ, CM_REJ_CONSUMER)),
		-EPERM);
	ck_assert_ptr_nonnull(talk_by_peer());
}
END_TEST

START_TEST(disconnecting_from_an_unanswered_request_is_refused)
{
	talk_received(talk_peer_req());
	ck_assert_int_eq(talk_sent_by(ME, talk_msg_of(CM_ATTR_DREQ, LOCAL, REMOTE)), -EPERM);
}
END_TEST

START_TEST(confirming_a_rep_that_never_came_is_refused)
{
	talk_sent(talk_our_req());
	ck_assert_int_eq(talk_sent_by(ME, talk_msg_of(CM_ATTR_RTU, LOCAL, REMOTE)), -EPERM);
	ck_assert_str_eq(talk_state(), "REQ_SENT");
}
END_TEST

static void add_lies(TCase *tcase)
{
	tcase_add_test(tcase, req_with_the_comm_id_of_another_client_is_refused);
	tcase_add_test(tcase, req_without_comm_id_is_refused);
	tcase_add_loop_test(tcase, message_about_no_connection_is_refused, 0, N_ABOUT_ONE);
	tcase_add_loop_test(tcase, message_about_anothers_connection_is_refused, 0, N_ABOUT_ONE);
	tcase_add_loop_test(tcase, message_about_anothers_request_is_refused, 0, N_ABOUT_ONE);
	tcase_add_loop_test(tcase, message_to_a_stranger_is_refused, 0, N_ABOUT_ONE);
	tcase_add_loop_test(tcase, message_through_another_port_is_refused, 0, N_ABOUT_ONE);
	tcase_add_loop_test(tcase, message_with_another_peers_comm_id_is_refused, 0, N_ABOUT_ONE);
	tcase_add_test(tcase, answer_through_another_port_does_not_name_a_request);
	tcase_add_test(tcase, rejecting_anothers_request_without_a_name_is_refused);
	tcase_add_test(tcase, disconnecting_from_an_unanswered_request_is_refused);
	tcase_add_test(tcase, confirming_a_rep_that_never_came_is_refused);
}

int main(void)
{
	Suite *suite = suite_create("tracked_lies");
	TCase *tcase = tcase_create("tracked_lies");

	tcase_add_checked_fixture(tcase, talk_set_up, talk_tear_down);
	add_lies(tcase);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
