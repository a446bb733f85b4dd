/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/demux.c: the connection of a message, answers to messages without a connection, and messages
 * that are not for this host. Then the ids and reasons in messages of a connection.
 */
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

static void assert_nothing_but(enum cm_counter counter, enum cm_state state)
{
	ck_assert_str_eq(rig_sent(&rig), "");
	ck_assert_str_eq(rig_reported(&rig), "");
	ck_assert_uint_eq(rig.core.count[counter], 1);
	ck_assert_str_eq(cm_state_str(rig_state(&rig)), cm_state_str(state));
}

/* --- answers without a connection ---------------------------------------- */

FIXTURE(set_up, tear_down);

TEST(req_for_an_unknown_service_is_refused_without_a_connection)
{
	struct cm_msg req = rig_msg(&rig, CM_ATTR_REQ);
	struct cm_msg rej;

	req.req.service_id++;
	rig_deliver(&rig, &req);
	ck_assert_str_eq(rig_sent(&rig), "REJ(REQ) 8");
	rej = rig_sent_msg(&rig, 0);
	ck_assert_uint_eq(rej.rej.local_comm_id, 0);
	ck_assert_uint_eq(rej.rej.remote_comm_id, req.req.local_comm_id);
	ck_assert_uint_eq(rej.hdr.tid, req.hdr.tid);
	ck_assert_uint_eq(rig.core.n_conns, 0);
}

TEST(req_is_refused_after_the_end_of_the_service)
{
	cm_core_unserve(&rig.core, &rig.service);
	rig_input(&rig, "REQ");
	ck_assert_str_eq(rig_sent(&rig), "REJ(REQ) 8");
}

TEST(answer_takes_the_path_back_of_its_request)
{
	rig.path.sgid_index = 7;
	rig.path.pkey_index = 3;
	cm_core_unserve(&rig.core, &rig.service);
	rig_input(&rig, "REQ");
	ck_assert_ptr_eq(rig.out.send[0].port, &rig.port);
	ck_assert_uint_eq(rig.out.send[0].path.sgid_index, 7);
	ck_assert_uint_eq(rig.out.send[0].path.pkey_index, 3);
	ck_assert_mem_eq(&rig.out.send[0].path.dgid, &rig.path.dgid, sizeof(rig.path.dgid));
}

static void assert_drep_for(const struct cm_msg *dreq)
{
	struct cm_msg drep;

	ck_assert_str_eq(rig_sent(&rig), "DREP");
	drep = rig_sent_msg(&rig, 0);
	ck_assert_uint_eq(drep.drep.local_comm_id, dreq->dreq.remote_comm_id);
	ck_assert_uint_eq(drep.drep.remote_comm_id, dreq->dreq.local_comm_id);
	ck_assert_uint_eq(drep.hdr.tid, dreq->hdr.tid);
}

TEST(dreq_without_a_connection_is_confirmed)
{
	struct cm_msg dreq = rig_msg(&rig, CM_ATTR_DREQ);

	dreq.dreq.remote_comm_id = 0x12345678;
	rig_deliver(&rig, &dreq);
	assert_drep_for(&dreq);
	ck_assert_uint_eq(rig.core.count[CM_COUNT_UNKNOWN], 1);
}

TEST(dreq_of_another_connection_of_the_peer_is_confirmed_without_harm)
{
	struct cm_msg dreq;

	rig_reach(&rig, CM_ESTABLISHED, false);
	dreq = rig_msg(&rig, CM_ATTR_DREQ);
	dreq.dreq.local_comm_id++;
	rig_deliver(&rig, &dreq);
	assert_drep_for(&dreq);
	ck_assert_uint_eq(rig.conn->state, CM_ESTABLISHED);
}

TEST(dreq_for_a_destroyed_connection_is_confirmed)
{
	struct cm_msg dreq;

	rig_reach(&rig, CM_TIMEWAIT, false);
	rig_input(&rig, "local destroy");
	dreq = rig_msg(&rig, CM_ATTR_DREQ);
	rig_deliver(&rig, &dreq);
	assert_drep_for(&dreq);
}

TEST(dreq_with_another_queue_pair_is_ignored)
{
	struct cm_msg dreq;

	rig_reach(&rig, CM_ESTABLISHED, false);
	dreq = rig_msg(&rig, CM_ATTR_DREQ);
	dreq.dreq.remote_qpn++;
	rig_deliver(&rig, &dreq);
	assert_nothing_but(CM_COUNT_UNKNOWN, CM_ESTABLISHED);
}

TEST(sidr_req_for_an_unknown_service_is_refused)
{
	struct cm_msg msg = rig_msg(&rig, CM_ATTR_SIDR_REQ);

	msg.sidr_req.request_id = 0x33;
	msg.sidr_req.service_id = RIG_SERVICE + 1;
	rig_deliver(&rig, &msg);
	ck_assert_str_eq(rig_sent(&rig), "SIDR_REP 1");
	ck_assert_uint_eq(rig_sent_msg(&rig, 0).sidr_rep.request_id, 0x33);
	ck_assert_uint_eq(rig_sent_msg(&rig, 0).sidr_rep.service_id, RIG_SERVICE + 1);
	ck_assert_uint_eq(rig.core.n_conns, 0);
}

/* --- messages without a connection --------------------------------------- */

static const enum cm_attr dropped[] = { CM_ATTR_REP, CM_ATTR_RTU, CM_ATTR_DREP, CM_ATTR_REJ,
					CM_ATTR_MRA };

TEST_LOOP(message_without_a_connection_is_dropped, 0, 5)
{
	struct cm_msg msg;

	rig_reach(&rig, CM_ESTABLISHED, false);
	rig.comm_id ^= 0x80;
	msg = rig_msg(&rig, dropped[_i]);
	rig.comm_id ^= 0x80;
	rig_deliver(&rig, &msg);
	assert_nothing_but(CM_COUNT_UNKNOWN, CM_ESTABLISHED);
}

/* RTU, DREP, REJ and MRA need a pair of ids. */
TEST_LOOP(message_with_another_comm_id_of_the_peer_is_dropped, 0, 5)
{
	struct cm_msg msg;

	rig_reach(&rig, CM_REP_SENT, true);
	rig.peer_comm_id++;
	msg = rig_msg(&rig, dropped[_i]);
	if (dropped[_i] == CM_ATTR_MRA)
		msg.mra.message = CM_ANSWERED_REP;
	rig_deliver(&rig, &msg);
	assert_nothing_but(CM_COUNT_UNKNOWN, CM_REP_SENT);
}

static const enum cm_attr unsupported[] = { CM_ATTR_LAP, CM_ATTR_APR };

TEST_LOOP(unsupported_message_is_counted, 0, 2)
{
	struct cm_msg msg;

	rig_reach(&rig, CM_ESTABLISHED, false);
	msg = rig_msg(&rig, unsupported[_i]);
	rig_deliver(&rig, &msg);
	assert_nothing_but(CM_COUNT_UNSUPPORTED, CM_ESTABLISHED);
}

/* Comm ids can be guessed; an address on a connected path cannot be forged that easily. */
static const enum cm_attr all[] = { CM_ATTR_REP, CM_ATTR_RTU, CM_ATTR_DREP,
				    CM_ATTR_REJ, CM_ATTR_MRA, CM_ATTR_DREQ };

TEST_LOOP(message_from_another_address_has_no_effect, 0, 30)
{
	static const enum cm_state states[] = { CM_REQ_SENT, CM_REP_SENT, CM_ESTABLISHED,
						CM_DREQ_SENT, CM_TIMEWAIT };
	enum cm_state state = states[_i / 6];
	struct cm_msg msg;

	rig_reach(&rig, state, !rig_can_reach(state, false));
	msg = rig_msg(&rig, all[_i % 6]);
	rig.path.dgid.raw[15]++;
	rig_deliver(&rig, &msg);
	assert_nothing_but(CM_COUNT_ALIEN, state);
}

/* Within an InfiniBand subnet there is no GRH, and no GID to compare. */
TEST(peer_without_a_gid_is_known_by_its_lid)
{
	rig.path.grh = false;
	rig.path.dlid = 5;
	rig_reach(&rig, CM_REQ_SENT, false);
	memset(&rig.path.dgid, 0, sizeof(rig.path.dgid));
	rig_input(&rig, "REP");
	ck_assert_str_eq(rig_reported(&rig), "RESPONSE");
}

TEST_LOOP(message_from_another_lid_has_no_effect, 0, 16)
{
	rig.path.grh = false;
	rig.path.dlid = 5;
	rig_reach(&rig, CM_REQ_SENT, false);
	rig.path.dlid ^= 1 << _i;
	rig_input(&rig, "REP");
	assert_nothing_but(CM_COUNT_ALIEN, CM_REQ_SENT);
}

TEST(two_peers_without_a_gid_may_use_the_same_ids)
{
	rig.path.grh = false;
	rig.path.dlid = 5;
	memset(&rig.path.dgid, 0, sizeof(rig.path.dgid));
	rig_reach(&rig, CM_REP_SENT, true);
	rig.path.dlid = 6;
	rig_input(&rig, "REQ");
	ck_assert_str_eq(rig_reported(&rig), "REQUEST");
}

static const struct {
	size_t bytes;
	unsigned int at;
	uint8_t value;
} garbage[] = {
	{ 0, 0, 1 },
	{ 24, 0, 1 },
	{ 255, 0, 1 },
	{ 257, 0, 1 },
	{ MAD_BYTES, 0, 2 },
	{ MAD_BYTES, 1, 3 },
	{ MAD_BYTES, 2, 1 },
	{ MAD_BYTES, 3, 0x81 },
	{ MAD_BYTES, 17, 0x0f },
	{ MAD_BYTES, 17, 0x1b },
	{ MAD_BYTES, 16, 1 },
};

TEST_LOOP(garbage_is_counted_and_dropped, 0, sizeof(garbage) / sizeof(garbage[0]))
{
	uint8_t mad[MAD_BYTES + 1] = { 0 };
	struct cm_msg msg;

	rig_reach(&rig, CM_REQ_SENT, false);
	msg = rig_msg(&rig, CM_ATTR_REP);
	cm_msg_encode(&msg, mad);
	mad[garbage[_i].at] = garbage[_i].value;
	cm_core_input(&rig.core, &rig.port, &rig.path, mad, garbage[_i].bytes, rig.now, &rig.out);
	assert_nothing_but(CM_COUNT_MALFORMED, CM_REQ_SENT);
}

/* --- Within an InfiniBand subnet there is no GRH, so no GID to compare. --- */

TEST(same_ids_from_another_host_are_another_connection)
{
	rig_reach(&rig, CM_REP_SENT, true);
	rig.path.dgid.raw[15]++;
	rig_input(&rig, "REQ");
	ck_assert_str_eq(rig_reported(&rig), "REQUEST");
	ck_assert_ptr_ne(rig.out.report[0].conn, rig.conn);
}

TEST(same_ids_from_another_ca_are_another_connection)
{
	struct cm_msg msg = rig_msg(&rig, CM_ATTR_REQ);

	rig_reach(&rig, CM_REP_SENT, true);
	msg.req.local_ca_guid++;
	rig_deliver(&rig, &msg);
	ck_assert_str_eq(rig_reported(&rig), "REQUEST");
}

TEST(stale_req_is_refused_and_the_old_connection_disconnected)
{
	struct cm_msg rej, dreq;

	rig_reach(&rig, CM_ESTABLISHED, true);
	rig_input(&rig, "REQ stale");
	ck_assert_str_eq(rig_sent(&rig), "REJ(REQ) 10, DREQ");
	rej = rig_sent_msg(&rig, 0);
	ck_assert_uint_eq(rej.rej.local_comm_id, 0);
	ck_assert_uint_eq(rej.rej.remote_comm_id, rig.peer_comm_id + 1);
	dreq = rig_sent_msg(&rig, 1);
	ck_assert_uint_eq(dreq.dreq.local_comm_id, rig.comm_id);
	ck_assert_uint_eq(dreq.dreq.remote_comm_id, rig.peer_comm_id);
	ck_assert_uint_eq(dreq.dreq.remote_qpn, rig.peer_qpn);
}

TEST(queue_pair_of_a_peer_in_a_req_from_another_host_is_not_stale)
{
	rig_reach(&rig, CM_ESTABLISHED, true);
	rig.path.dgid.raw[15]++;
	rig_input(&rig, "REQ stale");
	ck_assert_str_eq(rig_reported(&rig), "REQUEST");
	ck_assert_str_eq(rig_sent(&rig), "");
	ck_assert_int_eq(rig.conn->state, CM_ESTABLISHED);
}

TEST(stale_rep_is_refused_and_the_old_connection_disconnected)
{
	struct cm_msg rej;

	rig_reach(&rig, CM_REQ_SENT, false);
	rig_input(&rig, "REP stale");
	ck_assert_str_eq(rig_sent(&rig), "REJ(REP) 10, DREQ");
	rej = rig_sent_msg(&rig, 0);
	ck_assert_uint_eq(rej.rej.local_comm_id, rig.comm_id);
	ck_assert_uint_eq(rej.rej.remote_comm_id, rig.peer_comm_id + 1);
	ck_assert_uint_eq(rig_sent_msg(&rig, 1).dreq.remote_comm_id, 0x70009999);
}

/* A REP without effect must not end another connection. */
TEST(stale_rep_for_a_rejected_request_does_no_harm)
{
	rig_reach(&rig, CM_REQ_SENT, false);
	rig_input(&rig, "REJ");
	rig_input(&rig, "REP stale");
	assert_nothing_but(CM_COUNT_UNEXPECTED, CM_IDLE);
}

TEST(rep_that_names_another_connection_is_dropped)
{
	rig_reach(&rig, CM_REQ_SENT, false);
	rig_input(&rig, "REP known");
	assert_nothing_but(CM_COUNT_UNKNOWN, CM_REQ_SENT);
}

TEST(second_rep_with_another_comm_id_is_dropped)
{
	rig_reach(&rig, CM_ESTABLISHED, false);
	rig.peer_comm_id++;
	rig_input(&rig, "REP");
	assert_nothing_but(CM_COUNT_UNKNOWN, CM_ESTABLISHED);
}

TEST(ended_peer_may_reuse_its_queue_pair)
{
	rig_reach(&rig, CM_TIMEWAIT, true);
	rig_input(&rig, "REQ stale");
	ck_assert_str_eq(rig_reported(&rig), "REQUEST");
}

/* --- REJ received -------------------------------------------------------- */

struct rej_case {
	enum cm_state state;
	bool passive;
	uint8_t message;
	uint16_t reason;
	bool has_remote_id; /* of this side */
	bool has_local_id;  /* of the peer */
	bool has_guid;
	bool heard;
};

static const struct rej_case rejs[] = {
	/* Rejects a REQ: the peer needs no id, and we do not know it. */
	{ CM_REQ_SENT, false, 0, 8, true, false, false, true },
	{ CM_REQ_SENT, false, 0, 28, true, true, false, true },
	{ CM_MRA_REQ_RCVD, false, 0, 28, true, true, false, true },
	{ CM_REQ_SENT, false, 0, 28, false, true, false, false },
	{ CM_REQ_SENT, false, 2, 28, true, true, false, false },
	{ CM_REQ_SENT, false, 2, 28, true, false, false, true },
	{ CM_REP_RCVD, false, 0, 28, true, true, false, false },
	/* Rejects any other message: both ids count. */
	{ CM_REP_SENT, true, 1, 28, true, true, false, true },
	{ CM_REP_SENT, true, 2, 28, true, true, false, true },
	{ CM_REP_SENT, true, 1, 28, true, false, false, false },
	{ CM_REP_SENT, true, 1, 28, false, true, false, false },
	{ CM_REP_SENT, true, 0, 28, true, true, false, false },
	{ CM_ESTABLISHED, false, 2, 28, true, true, false, true },
	/* Reason 4: only the peer's id and its GUID count. */
	{ CM_REQ_RCVD, true, 2, 4, false, true, true, true },
	{ CM_REP_SENT, true, 2, 4, false, true, true, true },
	{ CM_REP_SENT, true, 0, 4, false, true, true, true },
	{ CM_REP_SENT, true, 2, 4, false, true, false, false },
	{ CM_REP_SENT, true, 2, 4, true, true, false, false },
	{ CM_REP_SENT, true, 2, 4, true, false, true, false },
	{ CM_REQ_SENT, false, 0, 4, true, true, true, false },
};

TEST_LOOP(rej_ends_the_connection_that_it_names, 0, sizeof(rejs) / sizeof(rejs[0]))
{
	const struct rej_case *c = &rejs[_i];
	struct cm_msg msg;

	rig_reach(&rig, c->state, c->passive);
	msg = rig_msg(&rig, CM_ATTR_REJ);
	msg.rej.message = c->message;
	msg.rej.reason = c->reason;
	if (!c->has_remote_id)
		msg.rej.remote_comm_id = 0;
	if (!c->has_local_id)
		msg.rej.local_comm_id = 0;
	if (c->has_guid)
		memset(msg.rej.ari, RIG_PEER_GUID & 0xff, 8);
	rig_deliver(&rig, &msg);
	ck_assert_str_eq(rig_reported(&rig), c->heard ? "REJECTED" : "");
	if (!c->heard)
		assert_nothing_but(CM_COUNT_UNKNOWN, c->state);
}

/* --- REJ sent ------------------------------------------------------------ */

static const struct {
	enum cm_state state;
	bool passive;
	const char *input;
	uint8_t message;
	uint16_t reason;
	bool names_us, names_peer;
	uint8_t ari_bytes;
} rejected[] = {
	{ CM_REQ_SENT, false, "local REJ", 2, 28, true, false, 0 },
	{ CM_REQ_SENT, false, "local destroy", 2, 4, true, false, 8 },
	{ CM_MRA_REQ_RCVD, false, "local destroy", 2, 4, true, false, 8 },
	{ CM_REP_RCVD, false, "local REJ", 1, 28, true, true, 0 },
	{ CM_REP_RCVD, false, "local destroy", 1, 28, true, true, 0 },
	{ CM_MRA_REP_SENT, false, "local destroy", 1, 28, true, true, 0 },
	{ CM_REQ_RCVD, true, "local REJ", 0, 28, false, true, 0 },
	{ CM_REQ_RCVD, true, "local destroy", 0, 28, false, true, 0 },
	{ CM_MRA_REQ_SENT, true, "local REJ", 0, 28, true, true, 0 },
	{ CM_MRA_REQ_SENT, true, "local destroy", 0, 28, true, true, 0 },
	{ CM_REP_SENT, true, "local REJ", 2, 28, true, true, 0 },
	{ CM_REP_SENT, true, "local destroy", 2, 28, true, true, 0 },
	{ CM_MRA_REP_RCVD, true, "local destroy", 2, 28, true, true, 0 },
};

TEST_LOOP(rej_has_the_ids_that_the_peer_knows, 0, sizeof(rejected) / sizeof(rejected[0]))
{
	uint8_t guid[CM_REJ_ARI_BYTES] = { 0 };
	struct cm_rej rej;

	rig_reach(&rig, rejected[_i].state, rejected[_i].passive);
	rig_input(&rig, rejected[_i].input);
	ck_assert_uint_eq(rig.out.n_sends, 1);
	rej = rig_sent_msg(&rig, 0).rej;
	ck_assert_uint_eq(rej.message, rejected[_i].message);
	ck_assert_uint_eq(rej.reason, rejected[_i].reason);
	ck_assert_uint_eq(rej.local_comm_id, rejected[_i].names_us ? rig.comm_id : 0);
	ck_assert_uint_eq(rej.remote_comm_id, rejected[_i].names_peer ? rig.peer_comm_id : 0);
	ck_assert_uint_eq(rej.ari_bytes, rejected[_i].ari_bytes);
	memset(guid, RIG_OUR_GUID & 0xff, rej.ari_bytes);
	ck_assert_mem_eq(rej.ari, guid, sizeof(guid));
}

TEST(caller_sets_reason_and_private_data_of_its_rej)
{
	struct cm_msg msg;
	struct cm_args args = { .msg = &msg };

	cm_msg_init(&msg, CM_ATTR_REJ, 0);
	msg.rej.reason = CM_REJ_VENDOR_OPTION;
	msg.rej.private_data[147] = 0x77;
	rig_reach(&rig, CM_REQ_RCVD, true);
	cm_core_call(&rig.core, rig.conn, CM_CALL_REJ, &args, rig.now, &rig.out);
	ck_assert_str_eq(rig_sent(&rig), "REJ(REQ) 35");
	ck_assert_uint_eq(rig_sent_msg(&rig, 0).rej.private_data[147], 0x77);
}
