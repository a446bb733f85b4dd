/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lookups of datagram services: fields of the request and the response. test_fsm.c and
 * test_exchange.c test their order.
 */
#include "tests/unit/cm/inputs.h"
#include "tests/unit/test.h"

#define TID UINT64_C(0x7766554433221100)

static struct rig rig;

static void set_up(void)
{
	rig_init(&rig);
}

static void tear_down(void)
{
	rig_fini(&rig);
}

static void receive_lookup(void)
{
	struct cm_msg req = rig_msg(&rig, CM_ATTR_SIDR_REQ);

	req.hdr.tid = TID;
	rig_deliver(&rig, &req);
	rig.conn = rig.out.report[0].conn;
	rig.comm_id = rig.conn->local_comm_id;
}

static void assert_answers(const struct cm_msg *rep, uint8_t status)
{
	ck_assert_uint_eq(rep->hdr.attr_id, CM_ATTR_SIDR_REP);
	ck_assert_uint_eq(rep->hdr.tid, TID);
	ck_assert_uint_eq(rep->sidr_rep.request_id, rig.peer_comm_id);
	ck_assert_uint_eq(rep->sidr_rep.service_id, RIG_SERVICE);
	ck_assert_uint_eq(rep->sidr_rep.status, status);
}

FIXTURE(set_up, tear_down);

TEST(sidr_req_has_our_comm_id_as_request_id)
{
	struct cm_msg req;

	rig_reach(&rig, CM_SIDR_REQ_SENT, false);
	req = rig_sent_msg(&rig, 0);
	ck_assert_uint_eq(req.sidr_req.request_id, rig.comm_id);
	ck_assert_uint_eq(req.hdr.tid, rig.comm_id);
	ck_assert_uint_eq(req.sidr_req.service_id, RIG_SERVICE);
}

TEST(requester_stores_the_service_id)
{
	rig_reach(&rig, CM_SIDR_REQ_SENT, false);
	ck_assert(rig.conn->active);
	ck_assert_uint_eq(rig.conn->service_id, RIG_SERVICE);
}

TEST(responder_stores_the_peer_and_the_service_id)
{
	receive_lookup();
	ck_assert(!rig.conn->active);
	ck_assert_uint_eq(rig.conn->remote_comm_id, rig.peer_comm_id);
	ck_assert_uint_eq(rig.conn->service_id, RIG_SERVICE);
}

TEST(sidr_rep_has_the_request_id)
{
	struct cm_msg rep;

	receive_lookup();
	rig_input(&rig, "local SIDR_REP");
	rep = rig_sent_msg(&rig, 0);
	assert_answers(&rep, CM_SIDR_OK);
	ck_assert_uint_eq(rep.sidr_rep.qpn, rig.our_qpn);
	ck_assert_uint_eq(rep.sidr_rep.qkey, RIG_QKEY);
}

TEST(sidr_rep_without_a_message_is_a_refusal)
{
	struct cm_msg rep;

	receive_lookup();
	ck_assert_int_eq(
		cm_core_call(&rig.core, rig.conn, CM_CALL_SIDR_REP, NULL, rig.now, &rig.out), 0);
	rep = rig_sent_msg(&rig, 0);
	assert_answers(&rep, CM_SIDR_REJECT);
	ck_assert_uint_eq(rep.sidr_rep.qpn, 0);
}

TEST(destroyed_lookup_is_refused)
{
	struct cm_msg rep;

	receive_lookup();
	rig_input(&rig, "local destroy");
	rep = rig_sent_msg(&rig, 0);
	assert_answers(&rep, CM_SIDR_REJECT);
}

TEST(duplicate_sidr_req_gets_an_identical_answer)
{
	struct cm_send first;

	receive_lookup();
	rig_input(&rig, "local SIDR_REP");
	first = rig.out.send[0];
	rig_input(&rig, "SIDR_REQ");
	ck_assert_uint_eq(rig.out.n_sends, 1);
	ck_assert_mem_eq(rig.out.send[0].mad, first.mad, MAD_BYTES);
	ck_assert_uint_eq(rig.core.count[CM_COUNT_DUPLICATE], 1);
}

TEST(caller_sets_the_intervals_of_a_lookup)
{
	struct cm_msg req = rig_msg(&rig, CM_ATTR_SIDR_REQ);
	struct cm_args args = {
		.port = &rig.port, .path = &rig.path, .waits = { 50, 100, 0 }, .msg = &req
	};

	rig_reach(&rig, CM_IDLE, false);
	cm_core_call(&rig.core, rig.conn, CM_CALL_SIDR_REQ, &args, rig.now, &rig.out);
	ck_assert_uint_eq(cm_core_deadline(&rig.core).ns - rig.now.ns, 50 * CM_NS_PER_MS);
}
