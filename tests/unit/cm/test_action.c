/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/action.c: values that a connection stores from messages, for the queue pair and later
 * messages; values of its own messages; and timeouts.
 */
#include <errno.h>
#include <string.h>

#include "tests/unit/cm/inputs.h"
#include "tests/unit/test.h"

static struct rig rig;

static void set_up(void)
{
	rig_init(&rig);
}

static void tear_down(void)
{
	rig_fini(&rig);
}

static uint64_t ms_to_deadline(void)
{
	return (cm_core_deadline(&rig.core).ns - rig.now.ns) / CM_NS_PER_MS;
}

/* --- stored values ------------------------------------------------------- */

FIXTURE(set_up, tear_down);

/* Depths are swapped: requests that the peer initiates are served here. */
TEST(passive_side_stores_values_of_the_req)
{
	struct cm_conn *conn;

	rig_reach(&rig, CM_REQ_RCVD, true);
	conn = rig.conn;
	ck_assert(!conn->active);
	ck_assert_uint_eq(conn->service_id, RIG_SERVICE);
	ck_assert_uint_eq(conn->remote_comm_id, rig.peer_comm_id);
	ck_assert_uint_eq(conn->remote_ca_guid, RIG_PEER_GUID);
	ck_assert_uint_eq(conn->remote_qpn, rig.peer_qpn);
	ck_assert_uint_eq(conn->remote_starting_psn, RIG_PEER_PSN);
	ck_assert_uint_eq(conn->responder_resources, 3);
	ck_assert_uint_eq(conn->initiator_depth, 4);
	ck_assert_uint_eq(conn->retry_count, 7);
	ck_assert_uint_eq(conn->rnr_retry_count, 6);
	ck_assert_uint_eq(conn->local_ack_timeout, 19);
	ck_assert_uint_eq(conn->packet_life_time, 18);
}

TEST(passive_side_stores_values_of_its_rep)
{
	rig_reach(&rig, CM_REP_SENT, true);
	ck_assert_uint_eq(rig.conn->local_qpn, RIG_OUR_QPN);
	ck_assert_uint_eq(rig.conn->starting_psn, RIG_OUR_PSN);
	ck_assert_uint_eq(rig.conn->responder_resources, 6);
	ck_assert_uint_eq(rig.conn->initiator_depth, 5);
	ck_assert_uint_eq(rig.conn->rnr_retry_count, 6);
	ck_assert_uint_eq(rig.conn->remote_starting_psn, RIG_PEER_PSN);
}

TEST(active_side_stores_values_of_its_req)
{
	rig_reach(&rig, CM_REQ_SENT, false);
	ck_assert(rig.conn->active);
	ck_assert_uint_eq(rig.conn->remote_comm_id, 0);
	ck_assert_uint_eq(rig.conn->local_qpn, RIG_OUR_QPN);
	ck_assert_uint_eq(rig.conn->starting_psn, RIG_OUR_PSN);
	ck_assert_uint_eq(rig.conn->responder_resources, 8);
	ck_assert_uint_eq(rig.conn->initiator_depth, 7);
	ck_assert_uint_eq(rig.conn->retry_count, 5);
	ck_assert_uint_eq(rig.conn->rnr_retry_count, 4);
	ck_assert_uint_eq(rig.conn->packet_life_time, 18);
	ck_assert_uint_eq(rig.conn->service_id, RIG_SERVICE);
}

/* Retries are its own, RNR retries the REP's; the peer's ACK delay is included from now on. */
TEST(active_side_stores_values_of_the_rep)
{
	rig_reach(&rig, CM_REP_RCVD, false);
	ck_assert_uint_eq(rig.conn->remote_comm_id, rig.peer_comm_id);
	ck_assert_uint_eq(rig.conn->remote_ca_guid, RIG_PEER_GUID);
	ck_assert_uint_eq(rig.conn->remote_qpn, rig.peer_qpn);
	ck_assert_uint_eq(rig.conn->remote_starting_psn, RIG_PEER_PSN);
	ck_assert_uint_eq(rig.conn->responder_resources, 1);
	ck_assert_uint_eq(rig.conn->initiator_depth, 2);
	ck_assert_uint_eq(rig.conn->retry_count, 5);
	ck_assert_uint_eq(rig.conn->rnr_retry_count, 3);
	ck_assert_uint_eq(rig.conn->local_ack_timeout, 19);
}

TEST(slow_device_of_the_peer_makes_the_timeout_longer)
{
	struct cm_msg rep;

	rig_reach(&rig, CM_REQ_SENT, false);
	rep = rig_msg(&rig, CM_ATTR_REP);
	rep.rep.target_ack_delay = 20;
	rig_deliver(&rig, &rep);
	ck_assert_uint_eq(rig.conn->local_ack_timeout, 21);
}

/* A local ACK timeout of 0 and of 1 both mean a life time of 0, and so a timeout of 1. */
TEST_LOOP(queue_pair_timeout_of_the_passive_side_is_the_one_of_the_req, 0, 7)
{
	static const uint8_t timeout[] = { 1, 1, 2, 3, 18, 19, 31 };
	static const uint8_t said[] = { 0, 1, 2, 3, 18, 19, 31 };
	struct cm_msg req = rig_msg(&rig, CM_ATTR_REQ);

	req.req.primary.local_ack_timeout = said[_i];
	rig_deliver(&rig, &req);
	ck_assert_uint_eq(rig.out.report[0].conn->local_ack_timeout, timeout[_i]);
}

TEST_LOOP(queue_pair_timeout_of_the_active_side_is_one_more_than_the_life_time, 0, 5)
{
	static const uint8_t timeout[] = { 1, 2, 19, 31, 31 };
	static const uint8_t life_time[] = { 0, 1, 18, 30, 31 };
	struct cm_msg req = rig_msg(&rig, CM_ATTR_REQ);
	struct cm_args args = {
		.port = &rig.port, .path = &rig.path, .packet_life_time = life_time[_i], .msg = &req
	};

	rig_reach(&rig, CM_IDLE, false);
	cm_core_call(&rig.core, rig.conn, CM_CALL_REQ, &args, rig.now, &rig.out);
	ck_assert_uint_eq(rig.conn->local_ack_timeout, timeout[_i]);
}

/* --- sent values --------------------------------------------------------- */

TEST(req_has_our_comm_id_and_guid)
{
	struct cm_msg req;

	rig_reach(&rig, CM_REQ_SENT, false);
	req = rig_sent_msg(&rig, 0);
	ck_assert_uint_eq(req.req.local_comm_id, rig.comm_id);
	ck_assert_uint_eq(req.req.local_ca_guid, RIG_OUR_GUID);
	ck_assert_uint_eq(req.req.starting_psn, RIG_OUR_PSN);
	ck_assert_uint_eq(req.req.service_id, RIG_SERVICE);
	ck_assert_uint_eq(req.hdr.tid, rig.comm_id);
}

TEST_LOOP(message_takes_the_path_of_its_connection, 0, 4)
{
	static const enum cm_state states[] = { CM_REQ_SENT, CM_REP_SENT, CM_ESTABLISHED,
						CM_DREQ_SENT };

	rig_reach(&rig, states[_i], !rig_can_reach(states[_i], false));
	ck_assert_uint_eq(rig.out.n_sends, 1);
	ck_assert_ptr_eq(rig.out.send[0].port, &rig.port);
	ck_assert_mem_eq(&rig.out.send[0].path, &rig.path, sizeof(rig.path));
}

TEST(rep_has_both_comm_ids_and_our_guid)
{
	struct cm_msg rep;

	rig_reach(&rig, CM_REP_SENT, true);
	rep = rig_sent_msg(&rig, 0);
	ck_assert_uint_eq(rep.rep.local_comm_id, rig.comm_id);
	ck_assert_uint_eq(rep.rep.remote_comm_id, rig.peer_comm_id);
	ck_assert_uint_eq(rep.rep.local_ca_guid, RIG_OUR_GUID);
	ck_assert_uint_eq(rep.rep.local_qpn, RIG_OUR_QPN);
	ck_assert_uint_eq(rep.hdr.tid, 0x7777);
}

static const struct {
	enum cm_state state;
	bool passive;
	const char *input;
} paired[] = {
	{ CM_REP_RCVD, false, "local RTU" },	 { CM_MRA_REP_SENT, false, "REP" },
	{ CM_MRA_REQ_SENT, true, "REQ" },	 { CM_ESTABLISHED, false, "REP" },
	{ CM_ESTABLISHED, false, "local DREQ" }, { CM_ESTABLISHED, true, "local DREQ" },
	{ CM_DREQ_RCVD, false, "local DREP" },	 { CM_TIMEWAIT, true, "DREQ" },
};

TEST_LOOP(message_has_both_comm_ids, 0, sizeof(paired) / sizeof(paired[0]))
{
	struct cm_msg msg;

	rig_reach(&rig, paired[_i].state, paired[_i].passive);
	rig_input(&rig, paired[_i].input);
	ck_assert_uint_eq(rig.out.n_sends, 1);
	msg = rig_sent_msg(&rig, 0); /* RTU, MRA, DREQ and DREP all begin with the two ids */
	ck_assert_uint_eq(msg.rtu.local_comm_id, rig.comm_id);
	ck_assert_uint_eq(msg.rtu.remote_comm_id, rig.peer_comm_id);
}

TEST(dreq_has_the_queue_pair_of_its_receiver)
{
	rig_reach(&rig, CM_DREQ_SENT, true);
	ck_assert_uint_eq(rig_sent_msg(&rig, 0).dreq.remote_qpn, rig.peer_qpn);
	ck_assert_uint_eq(rig_sent_msg(&rig, 0).hdr.tid, rig.comm_id);
}

/* The number of an XRC target stands where the end-to-end context of a REP does, the other is 0. */
TEST(xrc_target_is_known_by_its_own_queue_pair)
{
	struct cm_msg rep;

	for (int i = 0; i < 2; i++) {
		rig_reach(&rig, CM_REQ_SENT, false);
		rep = rig_msg(&rig, CM_ATTR_REP);
		rep.rep.local_comm_id += (uint32_t)i;
		rep.rep.local_qpn = 0;
		rep.rep.local_eecn = 0x300 + (uint32_t)i;
		rig_deliver(&rig, &rep);
		ck_assert_str_eq(rig_reported(&rig), "RESPONSE");
		ck_assert_uint_eq(rig.conn->remote_qpn, 0x300 + i);
	}
}

TEST(xrc_target_accepts_the_dreq_for_its_own_queue_pair)
{
	struct cm_msg msg;
	struct cm_args args = { .msg = &msg };

	cm_msg_init(&msg, CM_ATTR_REP, 0);
	msg.rep.local_eecn = RIG_OUR_QPN;
	rig_reach(&rig, CM_REQ_RCVD, true);
	cm_core_call(&rig.core, rig.conn, CM_CALL_REP, &args, rig.now, &rig.out);
	rig_input(&rig, "RTU");
	rig_input(&rig, "DREQ");
	ck_assert_str_eq(rig_reported(&rig), "DISCONNECTED");
}

TEST(drep_has_the_transaction_id_of_the_dreq)
{
	struct cm_msg dreq;

	rig_reach(&rig, CM_ESTABLISHED, false);
	dreq = rig_msg(&rig, CM_ATTR_DREQ);
	dreq.hdr.tid = 0x1122334455667788;
	rig_deliver(&rig, &dreq);
	rig_input(&rig, "local DREP");
	ck_assert_uint_eq(rig_sent_msg(&rig, 0).hdr.tid, 0x1122334455667788);
}

TEST_LOOP(retransmission_is_identical, 0, 3)
{
	static const enum cm_state states[] = { CM_REQ_SENT, CM_REP_SENT, CM_DREQ_SENT };
	uint8_t mad[MAD_BYTES];

	rig_reach(&rig, states[_i], !rig_can_reach(states[_i], false));
	memcpy(mad, rig.out.send[0].mad, sizeof(mad));
	rig_input(&rig, "timer");
	ck_assert_uint_eq(rig.out.n_sends, 1);
	ck_assert_mem_eq(rig.out.send[0].mad, mad, sizeof(mad));
}

TEST(received_message_is_in_the_effects)
{
	struct cm_msg rep;

	rig_reach(&rig, CM_REQ_SENT, false);
	rep = rig_msg(&rig, CM_ATTR_REP);
	rep.rep.private_data[195] = 0x5a;
	rig_deliver(&rig, &rep);
	ck_assert_uint_eq(rig.out.msg.rep.private_data[195], 0x5a);
	ck_assert_ptr_eq(rig.out.report[0].conn, rig.conn);
}

/*
 * Seed 1456 of the simulator: REJ was lost, the second REQ had the comm id of the first, and the
 * peer answered it as the first. Both were ESTABLISHED with queue pairs of different connections,
 * and no DREQ matched.
 */
TEST(ended_connection_cannot_connect_again)
{
	rig_reach(&rig, CM_REQ_SENT, false);
	rig_input(&rig, "REJ");
	ck_assert_int_eq(rig_input(&rig, "local REQ"), -EINVAL);
	ck_assert_int_eq(rig_input(&rig, "local SIDR_REQ"), -EINVAL);
	ck_assert_str_eq(rig_sent(&rig), "");
}

/* --- timeouts ------------------------------------------------------------ */

/* The time of a peer that waits 2^t, n + 1 times, for our REP. */
static const struct {
	uint8_t response_timeout, retries;
	uint64_t give_up_ms;
} waits[] = {
	{ 20, 15, 50000 }, { 31, 15, 50000 }, { 20, 1, 8192 }, { 20, 0, 4096 },
	{ 18, 3, 4096 },   { 10, 0, 4000 },   { 0, 0, 4000 },
};

TEST_LOOP(rep_is_given_up_when_the_peer_no_longer_waits, 0, sizeof(waits) / sizeof(waits[0]))
{
	struct cm_msg req = rig_msg(&rig, CM_ATTR_REQ);
	struct cm_time start = rig.now;

	req.req.local_cm_response_timeout = waits[_i].response_timeout;
	req.req.max_cm_retries = waits[_i].retries;
	rig_deliver(&rig, &req);
	rig.conn = rig.out.report[0].conn;
	rig.comm_id = rig.conn->local_comm_id;
	rig_input(&rig, "local REP");
	rig_input(&rig, "spent");
	ck_assert_str_eq(rig_reported(&rig), "UNREACHABLE -110");
	ck_assert_uint_eq((rig.now.ns - start.ns) / CM_NS_PER_MS, waits[_i].give_up_ms);
}

TEST(caller_sets_the_timeout_of_its_rep)
{
	struct cm_msg rep;
	struct cm_args args = { .give_up_ns = 2500 * CM_NS_PER_MS, .msg = &rep };
	struct cm_time start = rig.now;

	cm_msg_init(&rep, CM_ATTR_REP, 0);
	rig_reach(&rig, CM_REQ_RCVD, true);
	cm_core_call(&rig.core, rig.conn, CM_CALL_REP, &args, rig.now, &rig.out);
	rig_input(&rig, "spent");
	ck_assert_uint_eq(rig.now.ns - start.ns, args.give_up_ns);
}

TEST(caller_sets_the_timeout_of_a_request)
{
	struct cm_msg req = rig_msg(&rig, CM_ATTR_REQ);
	struct cm_args args = {
		.port = &rig.port, .path = &rig.path, .give_up_ns = 2500 * CM_NS_PER_MS, .msg = &req
	};
	struct cm_time start = rig.now;

	rig_reach(&rig, CM_IDLE, false);
	cm_core_call(&rig.core, rig.conn, CM_CALL_REQ, &args, rig.now, &rig.out);
	rig_input(&rig, "spent");
	ck_assert_str_eq(rig_reported(&rig), "UNREACHABLE -110");
	ck_assert_uint_eq(rig.now.ns - start.ns, args.give_up_ns);
}

TEST(caller_sets_the_intervals_of_a_request)
{
	struct cm_msg req = rig_msg(&rig, CM_ATTR_REQ);
	struct cm_args args = {
		.port = &rig.port, .path = &rig.path, .waits = { 50, 100, 0 }, .msg = &req
	};

	rig_reach(&rig, CM_IDLE, false);
	cm_core_call(&rig.core, rig.conn, CM_CALL_REQ, &args, rig.now, &rig.out);
	ck_assert_uint_eq(ms_to_deadline(), 50);
	rig_timer(&rig);
	ck_assert_str_eq(rig_sent(&rig), "REQ");
	ck_assert_uint_eq(ms_to_deadline(), 100);
}

TEST(caller_sets_the_intervals_of_a_disconnect_request)
{
	struct cm_args args = { .waits = { 50, 100, 0 } };

	rig_reach(&rig, CM_ESTABLISHED, false);
	cm_core_call(&rig.core, rig.conn, CM_CALL_DREQ, &args, rig.now, &rig.out);
	ck_assert_uint_eq(ms_to_deadline(), 50);
}

TEST(caller_sets_the_intervals_of_a_reply)
{
	struct cm_msg rep;
	struct cm_args args = { .waits = { 50, 100, 0 }, .msg = &rep };

	cm_msg_init(&rep, CM_ATTR_REP, 0);
	rig_reach(&rig, CM_REQ_RCVD, true);
	cm_core_call(&rig.core, rig.conn, CM_CALL_REP, &args, rig.now, &rig.out);
	ck_assert_uint_eq(ms_to_deadline(), 50);
}

TEST(mra_moves_the_deadline)
{
	rig_reach(&rig, CM_REQ_SENT, false);
	ck_assert_uint_eq(ms_to_deadline(), 1000);
	rig_input(&rig, "MRA(REQ)"); /* service timeout 20, life time 18 */
	ck_assert_uint_eq(ms_to_deadline(), 4096 + 2048);
}

TEST(second_mra_does_not_move_the_deadline)
{
	rig_reach(&rig, CM_MRA_REQ_RCVD, false);
	rig.now = cm_time_after(rig.now, 1000 * CM_NS_PER_MS);
	rig_input(&rig, "MRA(REQ)");
	ck_assert_uint_eq(ms_to_deadline(), 4096 + 2048 - 1000);
}

TEST(our_mra_has_the_service_timeout_of_the_kernel)
{
	rig_reach(&rig, CM_MRA_REQ_SENT, true);
	rig_input(&rig, "REQ");
	ck_assert_uint_eq(rig_sent_msg(&rig, 0).mra.service_timeout, 24);
}

TEST_LOOP(timewait_lasts_as_long_as_the_queue_pair_timeout, 0, 2)
{
	rig_reach(&rig, CM_TIMEWAIT, _i);
	ck_assert_uint_eq(ms_to_deadline(), 2048);
}

/* The maximum of a REQ, 2^31, is 2.4 hours. */
TEST(peer_cannot_make_timewait_longer_than_69_seconds)
{
	struct cm_msg req = rig_msg(&rig, CM_ATTR_REQ);

	req.req.primary.local_ack_timeout = 31;
	rig_deliver(&rig, &req);
	rig.conn = rig.out.report[0].conn;
	rig.comm_id = rig.conn->local_comm_id;
	rig_input(&rig, "local REP");
	rig_input(&rig, "local REJ");
	ck_assert_uint_eq(ms_to_deadline(), 65536);
}
