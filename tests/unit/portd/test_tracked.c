/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tracked connections, one message at a time: what makes, finds, changes and ends them. What a
 * client may not say is in test_tracked_lies.c, whole connections are in test_tracked_walk.c.
 */
#include "tests/unit/cm/run.h"
#include "tests/unit/portd/talk.h"

/* --- a life -------------------------------------------------------------- */

START_TEST(req_makes_a_will)
{
	talk_sent(talk_our_req());
	ck_assert_str_eq(talk_state(), "REQ_SENT");
}
END_TEST

START_TEST(tracked_says_all_that_a_req_tells)
{
	const struct tracked *tracked;

	talk_sent(talk_our_req());
	tracked = tracker_of_local(talk_tracker, LOCAL);
	ck_assert_uint_eq(tracked->client, ME);
	ck_assert_uint_eq(tracked->is.handle, PORT);
	ck_assert_uint_eq(tracked->is.active, 1);
	ck_assert_uint_eq(tracked->is.local_qpn, OUR_QPN);
	ck_assert_uint_eq(tracked->is.tid, 0x7777);
	ck_assert_mem_eq(&tracked->is.path, &talk_to_peer, sizeof(talk_to_peer));
}
END_TEST

START_TEST(tracked_says_all_that_a_rep_tells)
{
	const struct tracked *tracked;

	talk_sent(talk_our_req());
	talk_received(talk_peer_rep());
	tracked = tracker_of_local(talk_tracker, LOCAL);
	ck_assert_uint_eq(tracked->is.remote_comm_id, REMOTE);
	ck_assert_uint_eq(tracked->is.remote_qpn, PEER_QPN);
	ck_assert_uint_eq(tracked->is.remote_ca_guid, PEER_GUID);
}
END_TEST

START_TEST(active_connection_is_established_by_its_rtu)
{
	talk_establish();
	ck_assert_str_eq(talk_state(), "ESTABLISHED");
}
END_TEST

START_TEST(request_has_a_will_before_it_has_a_comm_id)
{
	talk_received(talk_peer_req());
	ck_assert_uint_eq(talk_by_peer()->client, ME);
	ck_assert_uint_eq(talk_by_peer()->is.local_comm_id, 0);
}
END_TEST

START_TEST(request_that_comes_again_makes_no_second_will)
{
	talk_received(talk_peer_req());
	talk_received(talk_peer_req());
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 1);
}
END_TEST

START_TEST(request_without_comm_id_makes_no_will)
{
	struct cm_msg req = talk_peer_req();

	req.req.local_comm_id = 0;
	talk_received(req);
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 0);
}
END_TEST

START_TEST(first_answer_gives_the_will_its_name)
{
	talk_accept();
	ck_assert_str_eq(talk_state(), "REP_SENT");
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 1);
}
END_TEST

START_TEST(passive_connection_is_established_by_the_peers_rtu)
{
	talk_accept();
	talk_received(talk_msg_of(CM_ATTR_RTU, REMOTE, LOCAL));
	ck_assert_str_eq(talk_state(), "ESTABLISHED");
}
END_TEST

START_TEST(request_rejected_without_a_name_is_known_no_more)
{
	talk_received(talk_peer_req());
	talk_sent(talk_rej_of(0, REMOTE, CM_ANSWERED_REQ, CM_REJ_CONSUMER));
	ck_assert_ptr_null(talk_by_peer());
}
END_TEST

/* By the guards, and cm/demux.c has made no connection of it, so none will be closed. */
START_TEST(request_that_the_core_refuses_leaves_no_will)
{
	talk_received(talk_peer_req());
	talk_sent(talk_rej_of(0, REMOTE, CM_ANSWERED_REQ, CM_REJ_STALE_CONNECTION));
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 0);
}
END_TEST

START_TEST(rep_of_a_stale_connection_is_taken_back)
{
	talk_sent(talk_our_req());
	talk_received(talk_peer_rep());
	talk_sent(talk_rej_of(LOCAL, REMOTE, CM_ANSWERED_REP, CM_REJ_STALE_CONNECTION));
	ck_assert_str_eq(talk_state(), "REQ_SENT");
	ck_assert_ptr_null(talk_by_peer());
}
END_TEST

START_TEST(req_that_has_crossed_its_rep_changes_nothing)
{
	talk_sent(talk_our_req());
	talk_received(talk_peer_rep());
	talk_sent(talk_our_req());
	ck_assert_str_eq(talk_state(), "REP_RCVD");
}
END_TEST

START_TEST(another_req_of_a_connection_begins_anew)
{
	struct cm_msg req = talk_our_req();

	talk_establish();
	req.req.starting_psn++;
	talk_sent(req);
	ck_assert_str_eq(talk_state(), "REQ_SENT");
	ck_assert_ptr_null(talk_by_peer());
}
END_TEST

START_TEST(dreq_of_the_peer_is_answered_with_its_transaction_id)
{
	struct cm_msg dreq = talk_peer_dreq();

	talk_establish();
	dreq.hdr.tid = 0x8888;
	talk_received(dreq);
	ck_assert_str_eq(talk_state(), "DREQ_RCVD");
	ck_assert_uint_eq(tracker_of_local(talk_tracker, LOCAL)->is.tid, 0x8888);
}
END_TEST

START_TEST(second_dreq_of_the_peer_is_not_answered_for_itself)
{
	struct cm_msg dreq = talk_peer_dreq();

	talk_establish();
	talk_received(dreq);
	dreq.hdr.tid++;
	talk_received(dreq);
	ck_assert_uint_eq(tracker_of_local(talk_tracker, LOCAL)->is.tid, dreq.hdr.tid - 1);
}
END_TEST

START_TEST(dreq_shows_that_a_connection_was_established_by_its_data)
{
	talk_accept();
	talk_sent(talk_msg_of(CM_ATTR_DREQ, LOCAL, REMOTE));
	ck_assert_str_eq(talk_state(), "DREQ_SENT");
}
END_TEST

/* --- what the client's core drops ---------------------------------------- */

START_TEST(message_of_a_stranger_changes_nothing)
{
	talk_establish();
	talk_received_from_stranger(talk_peer_dreq());
	ck_assert_str_eq(talk_state(), "ESTABLISHED");
}
END_TEST

START_TEST(message_with_another_comm_id_of_the_peer_changes_nothing)
{
	talk_accept();
	talk_received(talk_msg_of(CM_ATTR_RTU, REMOTE + 1, LOCAL));
	ck_assert_str_eq(talk_state(), "REP_SENT");
}
END_TEST

START_TEST(dreq_for_another_queue_pair_changes_nothing)
{
	struct cm_msg dreq = talk_peer_dreq();

	talk_establish();
	dreq.dreq.remote_qpn++;
	talk_received(dreq);
	ck_assert_str_eq(talk_state(), "ESTABLISHED");
}
END_TEST

START_TEST(second_rep_changes_nothing)
{
	struct cm_msg rep = talk_peer_rep();

	talk_sent(talk_our_req());
	talk_received(talk_peer_rep());
	rep.rep.local_qpn++;
	rep.rep.local_comm_id++;
	talk_received(rep);
	ck_assert_uint_eq(tracker_of_local(talk_tracker, LOCAL)->is.remote_qpn, PEER_QPN);
}
END_TEST

START_TEST(mra_to_a_lap_changes_nothing)
{
	struct cm_msg mra = talk_msg_of(CM_ATTR_MRA, REMOTE, LOCAL);

	mra.mra.message = CM_ANSWERED_OTHER;
	talk_accept();
	talk_received(mra);
	ck_assert_str_eq(talk_state(), "REP_SENT");
}
END_TEST

static struct cm_msg peers_timeout(uint64_t ca_guid)
{
	struct cm_msg rej = talk_rej_of(REMOTE, 0, CM_ANSWERED_OTHER, CM_REJ_TIMEOUT);

	rej.rej.ari_bytes = 8;
	for (int i = 0; i < 8; i++)
		rej.rej.ari[i] = (uint8_t)(ca_guid >> (56 - 8 * i));
	return rej;
}

START_TEST(peer_that_gives_up_is_known_by_its_guid)
{
	talk_accept();
	talk_received(peers_timeout(PEER_GUID));
	ck_assert_str_eq(talk_state(), "IDLE");
}
END_TEST

START_TEST(peer_that_gives_up_with_another_guid_changes_nothing)
{
	talk_accept();
	talk_received(peers_timeout(PEER_GUID + 1));
	ck_assert_str_eq(talk_state(), "REP_SENT");
}
END_TEST

/* REJ 10: the peer tries again, with the same REQ. */
START_TEST(request_after_a_stale_one_is_a_new_one)
{
	talk_accept();
	talk_received(talk_rej_of(REMOTE, LOCAL, CM_ANSWERED_REP, CM_REJ_STALE_CONNECTION));
	ck_assert_str_eq(talk_state(), "TIMEWAIT");
	talk_received(talk_peer_req());
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 2);
}
END_TEST

START_TEST(other_kinds_of_messages_make_no_will)
{
	talk_sent(talk_msg_of(CM_ATTR_SIDR_REQ, LOCAL, 0));
	talk_received(talk_msg_of(CM_ATTR_SIDR_REP, LOCAL, 0));
	talk_received(talk_msg_of(CM_ATTR_LAP, REMOTE, LOCAL));
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 0);
}
END_TEST

/* --- the end ------------------------------------------------------------- */

START_TEST(closed_connection_has_no_will)
{
	talk_establish();
	talk_ended_by(ME, LOCAL, REMOTE);
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 0);
	ck_assert_ptr_null(talk_by_peer());
	ck_assert_ptr_null(talk_by_qpn());
}
END_TEST

START_TEST(dropped_request_is_closed_by_what_the_peer_calls_it)
{
	talk_received(talk_peer_req());
	talk_ended_by(ME, LOCAL, REMOTE);
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 0);
}
END_TEST

/* The application has rejected it, the REJ is lost, the REQ comes again; then the id is closed. */
START_TEST(closing_a_rejected_request_spares_the_same_one_come_again)
{
	talk_received(talk_peer_req());
	talk_sent(talk_rej_of(0, REMOTE, CM_ANSWERED_REQ, CM_REJ_CONSUMER));
	talk_received(talk_peer_req());
	talk_ended_by(ME, LOCAL, REMOTE);
	ck_assert_uint_eq(talk_by_peer()->is.state, CM_REQ_RCVD);
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 1);
}
END_TEST

/* It was handed out twice before the first one was rejected. */
START_TEST(request_that_had_crossed_its_rejection_can_be_accepted)
{
	talk_received(talk_peer_req());
	talk_sent(talk_rej_of(0, REMOTE, CM_ANSWERED_REQ, CM_REJ_CONSUMER));
	talk_sent(talk_our_rep());
	ck_assert_str_eq(talk_state(), "REP_SENT");
}
END_TEST

START_TEST(nobody_closes_anothers_connection)
{
	talk_establish();
	talk_ended_by(OTHER, LOCAL, REMOTE);
	ck_assert_str_eq(talk_state(), "ESTABLISHED");
}
END_TEST

START_TEST(nobody_closes_anothers_request)
{
	talk_received(talk_peer_req());
	talk_ended_by(OTHER, LOCAL + 1, REMOTE);
	ck_assert_ptr_nonnull(talk_by_peer());
}
END_TEST

START_TEST(closing_what_was_never_sent_does_nothing)
{
	talk_establish();
	talk_ended_by(ME, LOCAL + 1, 0);
	ck_assert_str_eq(talk_state(), "ESTABLISHED");
}
END_TEST

/* --- finding ------------------------------------------------------------- */

START_TEST(peer_is_found_without_its_guid)
{
	talk_establish();
	ck_assert_ptr_nonnull(tracker_of_remote(talk_tracker, &talk_to_peer.dgid, 0, REMOTE));
}
END_TEST

START_TEST(peer_is_not_found_by_another_guid)
{
	talk_establish();
	ck_assert_ptr_null(
		tracker_of_remote(talk_tracker, &talk_to_peer.dgid, PEER_GUID + 1, REMOTE));
}
END_TEST

START_TEST(peer_is_not_found_at_another_address)
{
	talk_establish();
	ck_assert_ptr_null(
		tracker_of_remote(talk_tracker, &talk_to_stranger.dgid, PEER_GUID, REMOTE));
}
END_TEST

START_TEST(queue_pair_of_a_living_connection_is_found)
{
	talk_establish();
	ck_assert_ptr_nonnull(talk_by_qpn());
}
END_TEST

START_TEST(queue_pair_is_free_once_we_disconnect)
{
	talk_establish();
	talk_sent(talk_msg_of(CM_ATTR_DREQ, LOCAL, REMOTE));
	ck_assert_ptr_null(talk_by_qpn());
}
END_TEST

START_TEST(peer_in_timewait_is_found_by_its_comm_id_only)
{
	talk_establish();
	talk_received(talk_peer_dreq());
	talk_sent(talk_msg_of(CM_ATTR_DREP, LOCAL, REMOTE));
	ck_assert_ptr_nonnull(talk_by_peer());
	ck_assert_ptr_null(talk_by_qpn());
}
END_TEST

START_TEST(clients_wills_are_taken_one_by_one)
{
	struct cm_record tracked;

	talk_establish();
	ck_assert(tracker_take(talk_tracker, ME, &tracked));
	ck_assert_uint_eq(tracked.local_comm_id, LOCAL);
	ck_assert(!tracker_take(talk_tracker, ME, &tracked));
	ck_assert_str_eq(talk_state(), "none");
}
END_TEST

START_TEST(nobody_takes_anothers_wills)
{
	struct cm_record tracked;

	talk_establish();
	ck_assert(!tracker_take(talk_tracker, OTHER, &tracked));
	ck_assert(!tracker_take(talk_tracker, UINT16_MAX, &tracked));
}
END_TEST

START_TEST(tracker_of_a_removed_port_are_forgotten)
{
	struct cm_msg req = talk_our_req();

	talk_sent(req);
	req.req.local_comm_id++;
	ck_assert_int_eq(tracker_sent(talk_tracker, ME, PORT + 1, &talk_to_peer, &req), 0);
	tracker_port_gone(talk_tracker, PORT);
	ck_assert_str_eq(talk_state(), "none");
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 1);
}
END_TEST

/* A host that is connected to itself: two clients, and each is the other's peer. */
START_TEST(two_clients_of_a_host_can_be_each_others_peer)
{
	struct cm_msg req = talk_our_req();

	talk_sent(req);
	ck_assert_int_eq(
		tracker_received(talk_tracker, OTHER, PORT, &talk_to_peer, &req, &(bool){ false }),
		0);
	ck_assert_uint_eq(tracker_of_local(talk_tracker, LOCAL)->client, ME);
	ck_assert_uint_eq(tracker_of_remote(talk_tracker, &talk_to_peer.dgid, 0, LOCAL)->client,
			  OTHER);
}
END_TEST

static void add_lives(TCase *tcase)
{
	tcase_add_test(tcase, req_makes_a_will);
	tcase_add_test(tcase, tracked_says_all_that_a_req_tells);
	tcase_add_test(tcase, tracked_says_all_that_a_rep_tells);
	tcase_add_test(tcase, active_connection_is_established_by_its_rtu);
	tcase_add_test(tcase, request_has_a_will_before_it_has_a_comm_id);
	tcase_add_test(tcase, request_that_comes_again_makes_no_second_will);
	tcase_add_test(tcase, request_without_comm_id_makes_no_will);
	tcase_add_test(tcase, first_answer_gives_the_will_its_name);
	tcase_add_test(tcase, passive_connection_is_established_by_the_peers_rtu);
	tcase_add_test(tcase, request_rejected_without_a_name_is_known_no_more);
	tcase_add_test(tcase, request_that_the_core_refuses_leaves_no_will);
	tcase_add_test(tcase, rep_of_a_stale_connection_is_taken_back);
	tcase_add_test(tcase, req_that_has_crossed_its_rep_changes_nothing);
	tcase_add_test(tcase, another_req_of_a_connection_begins_anew);
	tcase_add_test(tcase, dreq_of_the_peer_is_answered_with_its_transaction_id);
	tcase_add_test(tcase, second_dreq_of_the_peer_is_not_answered_for_itself);
	tcase_add_test(tcase, dreq_shows_that_a_connection_was_established_by_its_data);
}

static void add_guards(TCase *tcase)
{
	tcase_add_test(tcase, message_of_a_stranger_changes_nothing);
	tcase_add_test(tcase, message_with_another_comm_id_of_the_peer_changes_nothing);
	tcase_add_test(tcase, dreq_for_another_queue_pair_changes_nothing);
	tcase_add_test(tcase, second_rep_changes_nothing);
	tcase_add_test(tcase, mra_to_a_lap_changes_nothing);
	tcase_add_test(tcase, peer_that_gives_up_is_known_by_its_guid);
	tcase_add_test(tcase, peer_that_gives_up_with_another_guid_changes_nothing);
	tcase_add_test(tcase, request_after_a_stale_one_is_a_new_one);
	tcase_add_test(tcase, other_kinds_of_messages_make_no_will);
}

static void add_ends(TCase *tcase)
{
	tcase_add_test(tcase, closed_connection_has_no_will);
	tcase_add_test(tcase, dropped_request_is_closed_by_what_the_peer_calls_it);
	tcase_add_test(tcase, closing_a_rejected_request_spares_the_same_one_come_again);
	tcase_add_test(tcase, request_that_had_crossed_its_rejection_can_be_accepted);
	tcase_add_test(tcase, nobody_closes_anothers_connection);
	tcase_add_test(tcase, nobody_closes_anothers_request);
	tcase_add_test(tcase, closing_what_was_never_sent_does_nothing);
	tcase_add_test(tcase, peer_is_found_without_its_guid);
	tcase_add_test(tcase, peer_is_not_found_by_another_guid);
	tcase_add_test(tcase, peer_is_not_found_at_another_address);
	tcase_add_test(tcase, queue_pair_of_a_living_connection_is_found);
	tcase_add_test(tcase, queue_pair_is_free_once_we_disconnect);
	tcase_add_test(tcase, peer_in_timewait_is_found_by_its_comm_id_only);
	tcase_add_test(tcase, clients_wills_are_taken_one_by_one);
	tcase_add_test(tcase, nobody_takes_anothers_wills);
	tcase_add_test(tcase, tracker_of_a_removed_port_are_forgotten);
	tcase_add_test(tcase, two_clients_of_a_host_can_be_each_others_peer);
}

int main(void)
{
	Suite *suite = suite_create("tracked");
	TCase *tcase = tcase_create("tracked");

	tcase_add_checked_fixture(tcase, talk_set_up, talk_tear_down);
	add_lives(tcase);
	add_guards(tcase);
	add_ends(tcase);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
