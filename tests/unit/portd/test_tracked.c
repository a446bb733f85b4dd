/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tracked connections, one message at a time: messages that create, find, change and end them.
 * test_tracked_lies.c has forbidden records, test_tracked_walk.c whole connections.
 */
#include "tests/unit/portd/talk.h"
#include "tests/unit/test.h"
#include "tests/unit/portd/tracked_put.h"

/* --- a connection from start to end -------------------------------------- */

FIXTURE(talk_set_up, talk_tear_down);

TEST(req_is_tracked)
{
	talk_sent(talk_our_req());
	ck_assert_str_eq(talk_state(), "REQ_SENT");
}

TEST(tracked_connection_has_the_values_of_a_req)
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

TEST(tracked_connection_has_the_values_of_a_rep)
{
	const struct tracked *tracked;

	talk_sent(talk_our_req());
	talk_received(talk_peer_rep());
	tracked = tracker_of_local(talk_tracker, LOCAL);
	ck_assert_uint_eq(tracked->is.remote_comm_id, REMOTE);
	ck_assert_uint_eq(tracked->is.remote_qpn, PEER_QPN);
	ck_assert_uint_eq(tracked->is.remote_ca_guid, PEER_GUID);
}

TEST(active_connection_is_established_by_its_rtu)
{
	talk_establish();
	ck_assert_str_eq(talk_state(), "ESTABLISHED");
}

TEST(request_is_tracked_before_it_has_a_comm_id)
{
	talk_received(talk_peer_req());
	ck_assert_uint_eq(talk_by_peer()->client, ME);
	ck_assert_uint_eq(talk_by_peer()->is.local_comm_id, 0);
}

TEST(duplicate_request_is_tracked_once)
{
	talk_received(talk_peer_req());
	talk_received(talk_peer_req());
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 1);
}

TEST(request_delivered_again_outlives_the_end_of_the_first)
{
	talk_received(talk_peer_req());
	talk_received(talk_peer_req());
	talk_n_heard = 1;
	talk_ended_by(ME, LOCAL + 1, REMOTE);
	talk_sent(talk_our_rep());
	ck_assert_str_eq(talk_state(), "REP_SENT");
}

TEST(closed_request_ends_when_its_client_has_read_all_copies)
{
	talk_received(talk_peer_req());
	talk_received(talk_peer_req());
	talk_n_heard = 2;
	talk_ended_by(ME, LOCAL + 1, REMOTE);
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 0);
}

TEST(request_without_comm_id_is_not_tracked)
{
	struct cm_msg req = talk_peer_req();

	req.req.local_comm_id = 0;
	talk_received(req);
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 0);
}

TEST(first_answer_has_the_comm_id)
{
	talk_accept();
	ck_assert_str_eq(talk_state(), "REP_SENT");
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 1);
}

TEST(passive_connection_is_established_by_the_peers_rtu)
{
	talk_accept();
	talk_received(talk_msg_of(CM_ATTR_RTU, REMOTE, LOCAL));
	ck_assert_str_eq(talk_state(), "ESTABLISHED");
}

TEST(request_rejected_without_a_comm_id_is_dropped)
{
	talk_received(talk_peer_req());
	talk_sent(talk_rej_of(0, REMOTE, CM_ANSWERED_REQ, CM_REJ_CONSUMER));
	ck_assert_ptr_null(talk_by_peer());
}

/* The guards drop it, and cm/demux.c has made no connection of it, so no CLOSE follows. */
TEST(request_that_the_core_refuses_is_not_tracked)
{
	talk_received(talk_peer_req());
	talk_sent(talk_rej_of(0, REMOTE, CM_ANSWERED_REQ, CM_REJ_STALE_CONNECTION));
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 0);
}

TEST(rep_of_a_stale_connection_is_withdrawn)
{
	talk_sent(talk_our_req());
	talk_received(talk_peer_rep());
	talk_sent(talk_rej_of(LOCAL, REMOTE, CM_ANSWERED_REP, CM_REJ_STALE_CONNECTION));
	ck_assert_str_eq(talk_state(), "REQ_SENT");
	ck_assert_ptr_null(talk_by_peer());
}

TEST(req_that_has_crossed_its_rep_changes_nothing)
{
	talk_sent(talk_our_req());
	talk_received(talk_peer_rep());
	talk_sent(talk_our_req());
	ck_assert_str_eq(talk_state(), "REP_RCVD");
}

TEST(another_req_of_a_connection_restarts_it)
{
	struct cm_msg req = talk_our_req();

	talk_establish();
	req.req.starting_psn++;
	talk_sent(req);
	ck_assert_str_eq(talk_state(), "REQ_SENT");
	ck_assert_ptr_null(talk_by_peer());
}

TEST(dreq_of_the_peer_is_answered_with_its_transaction_id)
{
	struct cm_msg dreq = talk_peer_dreq();

	talk_establish();
	dreq.hdr.tid = 0x8888;
	talk_received(dreq);
	ck_assert_str_eq(talk_state(), "DREQ_RCVD");
	ck_assert_uint_eq(tracker_of_local(talk_tracker, LOCAL)->is.tid, 0x8888);
}

TEST(second_dreq_of_the_peer_is_not_answered_for_itself)
{
	struct cm_msg dreq = talk_peer_dreq();

	talk_establish();
	talk_received(dreq);
	dreq.hdr.tid++;
	talk_received(dreq);
	ck_assert_uint_eq(tracker_of_local(talk_tracker, LOCAL)->is.tid, dreq.hdr.tid - 1);
}

TEST(dreq_shows_that_a_connection_was_established_by_its_data)
{
	talk_accept();
	talk_sent(talk_msg_of(CM_ATTR_DREQ, LOCAL, REMOTE));
	ck_assert_str_eq(talk_state(), "DREQ_SENT");
}

/* --- messages that the client's core drops ------------------------------- */

TEST(message_from_another_address_changes_nothing)
{
	talk_establish();
	talk_received_from_stranger(talk_peer_dreq());
	ck_assert_str_eq(talk_state(), "ESTABLISHED");
}

TEST(message_with_another_comm_id_of_the_peer_changes_nothing)
{
	talk_accept();
	talk_received(talk_msg_of(CM_ATTR_RTU, REMOTE + 1, LOCAL));
	ck_assert_str_eq(talk_state(), "REP_SENT");
}

TEST(dreq_for_another_queue_pair_changes_nothing)
{
	struct cm_msg dreq = talk_peer_dreq();

	talk_establish();
	dreq.dreq.remote_qpn++;
	talk_received(dreq);
	ck_assert_str_eq(talk_state(), "ESTABLISHED");
}

TEST(second_rep_changes_nothing)
{
	struct cm_msg rep = talk_peer_rep();

	talk_sent(talk_our_req());
	talk_received(talk_peer_rep());
	rep.rep.local_qpn++;
	rep.rep.local_comm_id++;
	talk_received(rep);
	ck_assert_uint_eq(tracker_of_local(talk_tracker, LOCAL)->is.remote_qpn, PEER_QPN);
}

TEST(mra_to_a_lap_changes_nothing)
{
	struct cm_msg mra = talk_msg_of(CM_ATTR_MRA, REMOTE, LOCAL);

	mra.mra.message = CM_ANSWERED_OTHER;
	talk_accept();
	talk_received(mra);
	ck_assert_str_eq(talk_state(), "REP_SENT");
}

static struct cm_msg peers_timeout(uint64_t ca_guid)
{
	struct cm_msg rej = talk_rej_of(REMOTE, 0, CM_ANSWERED_OTHER, CM_REJ_TIMEOUT);

	rej.rej.ari_bytes = 8;
	for (int i = 0; i < 8; i++)
		rej.rej.ari[i] = (uint8_t)(ca_guid >> (56 - 8 * i));
	return rej;
}

TEST(peer_that_gives_up_is_found_by_its_guid)
{
	talk_accept();
	talk_received(peers_timeout(PEER_GUID));
	ck_assert_str_eq(talk_state(), "IDLE");
}

TEST(peer_that_gives_up_with_another_guid_changes_nothing)
{
	talk_accept();
	talk_received(peers_timeout(PEER_GUID + 1));
	ck_assert_str_eq(talk_state(), "REP_SENT");
}

/* REJ 10: the peer retries with the same REQ. */
TEST(request_after_a_stale_one_is_a_new_one)
{
	talk_accept();
	talk_received(talk_rej_of(REMOTE, LOCAL, CM_ANSWERED_REP, CM_REJ_STALE_CONNECTION));
	ck_assert_str_eq(talk_state(), "IDLE");
	talk_received(talk_peer_req());
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 2);
}

TEST(other_kinds_of_messages_are_not_tracked)
{
	talk_sent(talk_msg_of(CM_ATTR_SIDR_REQ, LOCAL, 0));
	talk_received(talk_msg_of(CM_ATTR_SIDR_REP, LOCAL, 0));
	talk_received(talk_msg_of(CM_ATTR_LAP, REMOTE, LOCAL));
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 0);
}

/* --- the end ------------------------------------------------------------- */

TEST(closed_connection_is_not_tracked)
{
	talk_establish();
	talk_ended_by(ME, LOCAL, REMOTE);
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 0);
	ck_assert_ptr_null(talk_by_peer());
	ck_assert_ptr_null(talk_by_qpn());
}

TEST(dropped_request_is_closed_by_the_peers_comm_id)
{
	talk_received(talk_peer_req());
	talk_ended_by(ME, LOCAL, REMOTE);
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 0);
}

/*
 * The application has rejected it, the REJ is lost, the REQ is retransmitted; then the id is
 * closed.
 */
TEST(closing_a_rejected_request_keeps_its_retransmission)
{
	talk_received(talk_peer_req());
	talk_sent(talk_rej_of(0, REMOTE, CM_ANSWERED_REQ, CM_REJ_CONSUMER));
	talk_received(talk_peer_req());
	talk_ended_by(ME, LOCAL, REMOTE);
	ck_assert_str_eq(cm_state_str(talk_by_peer()->is.state), "REQ_RCVD");
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 1);
}

/* It was delivered twice before the first one was rejected. */
TEST(request_that_had_crossed_its_rejection_can_be_accepted)
{
	talk_received(talk_peer_req());
	talk_sent(talk_rej_of(0, REMOTE, CM_ANSWERED_REQ, CM_REJ_CONSUMER));
	talk_sent(talk_our_rep());
	ck_assert_str_eq(talk_state(), "REP_SENT");
}

/* The core has given up waiting for an RTU, and takes the REQ for a new one. */
TEST(duplicate_request_after_its_answer_can_be_answered_again)
{
	struct cm_msg rep = talk_our_rep();

	talk_accept();
	talk_received(talk_peer_req());
	rep.rep.local_comm_id++;
	talk_sent(rep);
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 2);
}

TEST(client_cannot_close_anothers_connection)
{
	talk_establish();
	talk_ended_by(OTHER, LOCAL, REMOTE);
	ck_assert_str_eq(talk_state(), "ESTABLISHED");
}

TEST(client_cannot_close_anothers_request)
{
	talk_received(talk_peer_req());
	talk_ended_by(OTHER, LOCAL + 1, REMOTE);
	ck_assert_ptr_nonnull(talk_by_peer());
}

TEST(closing_an_unsent_connection_does_nothing)
{
	talk_establish();
	talk_ended_by(ME, LOCAL + 1, 0);
	ck_assert_str_eq(talk_state(), "ESTABLISHED");
}

/* --- lookups ------------------------------------------------------------- */

TEST(peer_is_found_without_its_guid)
{
	talk_establish();
	ck_assert_ptr_nonnull(tracker_of_remote(talk_tracker, &talk_to_peer.dgid, 0, REMOTE));
}

TEST(peer_is_not_found_by_another_guid)
{
	talk_establish();
	ck_assert_ptr_null(
		tracker_of_remote(talk_tracker, &talk_to_peer.dgid, PEER_GUID + 1, REMOTE));
}

TEST(peer_is_not_found_at_another_address)
{
	talk_establish();
	ck_assert_ptr_null(
		tracker_of_remote(talk_tracker, &talk_to_stranger.dgid, PEER_GUID, REMOTE));
}

TEST(queue_pair_of_a_living_connection_is_found)
{
	talk_establish();
	ck_assert_ptr_nonnull(talk_by_qpn());
}

TEST(queue_pair_is_free_once_we_disconnect)
{
	talk_establish();
	talk_sent(talk_msg_of(CM_ATTR_DREQ, LOCAL, REMOTE));
	ck_assert_ptr_null(talk_by_qpn());
}

TEST(peer_in_timewait_is_found_by_its_comm_id_only)
{
	talk_establish();
	talk_received(talk_peer_dreq());
	talk_sent(talk_msg_of(CM_ATTR_DREP, LOCAL, REMOTE));
	ck_assert_ptr_nonnull(talk_by_peer());
	ck_assert_ptr_null(talk_by_qpn());
}

TEST(connections_of_a_client_are_taken_one_by_one)
{
	struct cm_record tracked;

	talk_establish();
	ck_assert(tracker_take(talk_tracker, ME, &tracked));
	ck_assert_uint_eq(tracked.local_comm_id, LOCAL);
	ck_assert(!tracker_take(talk_tracker, ME, &tracked));
	ck_assert_str_eq(talk_state(), "none");
}

TEST(connections_of_another_client_are_not_taken)
{
	struct cm_record tracked;

	talk_establish();
	ck_assert(!tracker_take(talk_tracker, OTHER, &tracked));
	ck_assert(!tracker_take(talk_tracker, UINT16_MAX, &tracked));
}

TEST(connections_of_a_removed_port_are_dropped)
{
	struct cm_msg req = talk_our_req();

	talk_sent(req);
	req.req.local_comm_id++;
	ck_assert_int_eq(tracked_put_sent(talk_tracker, ME, PORT + 1, &talk_to_peer, &req, true),
			 0);
	tracker_port_gone(talk_tracker, PORT);
	ck_assert_str_eq(talk_state(), "none");
	ck_assert_uint_eq(tracker_count(talk_tracker, ME), 1);
}

/* A host that is connected to itself: two clients, and each is the other's peer. */
TEST(two_clients_of_a_host_can_be_each_others_peer)
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
