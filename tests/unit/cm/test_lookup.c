/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lookups of datagram services (SIDR): first as charts between two hosts, then the keys of a
 * lookup, the contents of its messages, and its end.
 */
#include <string.h>

#include "tests/unit/cm/inputs.h"
#include "tests/unit/cm/pair.h"
#include "tests/unit/test.h"

/* --- between two hosts --------------------------------------------------- */

static struct pair pair;

static void set_up_pair(void)
{
	pair_init(&pair);
}

static void tear_down_pair(void)
{
	pair_fini(&pair);
}

static struct pair_end *client_end(void)
{
	return pair_end(&pair, PAIR_CLIENT, 0);
}

static struct pair_end *server_end(void)
{
	return pair_end(&pair, PAIR_SERVER, 0);
}

static void look_up_and_run(void)
{
	pair_look_up(&pair);
	pair_run(&pair);
}

FIXTURE(set_up_pair, tear_down_pair);

TEST(lookup_is_one_request_and_one_answer)
{
	look_up_and_run();
	ck_assert_chart(&pair, "SIDR_REQ> <SIDR_REP 0");
	ck_assert_log(client_end(), "ANSWERED");
	ck_assert_log(server_end(), "REQUEST");
}

TEST(lost_lookup_is_retransmitted_after_two_seconds)
{
	pair_fault(&pair, PAIR_CLIENT, CM_ATTR_SIDR_REQ, 1, PAIR_DROP);
	look_up_and_run();
	ck_assert_chart(&pair, "SIDR_REQ*> SIDR_REQ> <SIDR_REP 0");
	ck_assert_uint_eq(pair_ms(&pair), 2000 + 2 * PAIR_LATENCY_MS);
}

TEST(lost_answer_is_repeated_and_the_program_gets_one_lookup)
{
	pair_fault(&pair, PAIR_SERVER, CM_ATTR_SIDR_REP, 1, PAIR_DROP);
	look_up_and_run();
	ck_assert_chart(&pair, "SIDR_REQ> <SIDR_REP 0* SIDR_REQ> <SIDR_REP 0");
	ck_assert_log(client_end(), "ANSWERED");
	ck_assert_log(server_end(), "REQUEST");
	ck_assert_uint_eq(pair.host[PAIR_SERVER].n_ends, 1);
}

TEST(second_answer_has_no_effect)
{
	pair_fault(&pair, PAIR_CLIENT, CM_ATTR_SIDR_REQ, 1, PAIR_DUPLICATE);
	look_up_and_run();
	ck_assert_chart(&pair, "SIDR_REQ+> <SIDR_REP 0 <SIDR_REP 0");
	ck_assert_log(client_end(), "ANSWERED");
	ck_assert_uint_eq(pair.host[PAIR_CLIENT].core.count[CM_COUNT_UNEXPECTED], 1);
}

TEST(retransmitted_lookup_is_the_same_one_while_unanswered)
{
	pair.host[PAIR_SERVER].manual = true;
	pair_look_up(&pair);
	pair_run_until(&pair, PAIR_SERVER, CM_SIDR_REQ_RCVD);
	pair_run_until_sent(&pair, 4);
	ck_assert_int_eq(pair_call(server_end(), CM_CALL_SIDR_REP), 0);
	pair_run(&pair);
	ck_assert_log(server_end(), "REQUEST");
	ck_assert_log(client_end(), "ANSWERED");
}

/* The kernel waits for 65.5 s, and a slow peer cannot extend that. */
TEST(unanswered_lookup_is_given_up_after_67_seconds)
{
	pair.host[PAIR_SERVER].dead = true;
	look_up_and_run();
	ck_assert_log(client_end(), "UNREACHABLE -110");
	ck_assert_uint_eq(pair_ms(&pair), 67000);
	ck_assert_uint_eq(pair.n_transmissions, 16);
}

TEST(destroyed_lookup_is_refused)
{
	pair.host[PAIR_SERVER].manual = true;
	pair_look_up(&pair);
	pair_run_until(&pair, PAIR_SERVER, CM_SIDR_REQ_RCVD);
	ck_assert_int_eq(pair_call(server_end(), CM_CALL_DESTROY), 0);
	pair_run(&pair);
	ck_assert_chart(&pair, "SIDR_REQ> <SIDR_REP 2");
	ck_assert_log(client_end(), "ANSWERED");
}

/* Nothing is stored of a destroyed id: the lookup is a new one, as for the kernel. */
TEST(answer_is_stored_as_long_as_its_id)
{
	pair_fault(&pair, PAIR_SERVER, CM_ATTR_SIDR_REP, 1, PAIR_DROP);
	pair_look_up(&pair);
	pair_run_until(&pair, PAIR_SERVER, CM_SIDR_REP_SENT);
	ck_assert_int_eq(pair_call(server_end(), CM_CALL_DESTROY), 0);
	pair_run(&pair);
	ck_assert_chart(&pair, "SIDR_REQ> <SIDR_REP 0* SIDR_REQ> <SIDR_REP 0");
	ck_assert_uint_eq(pair.host[PAIR_SERVER].n_ends, 2);
}

TEST(destroyed_requester_of_a_lookup_sends_nothing)
{
	pair.host[PAIR_SERVER].manual = true;
	pair_look_up(&pair);
	pair_run_until(&pair, PAIR_SERVER, CM_SIDR_REQ_RCVD);
	ck_assert_int_eq(pair_call(client_end(), CM_CALL_DESTROY), 0);
	ck_assert_int_eq(pair_call(server_end(), CM_CALL_SIDR_REP), 0);
	pair_run(&pair);
	ck_assert_chart(&pair, "SIDR_REQ> <SIDR_REP 0");
	ck_assert_uint_eq(pair.host[PAIR_CLIENT].core.count[CM_COUNT_UNKNOWN], 1);
}

/* --- single steps -------------------------------------------------------- */

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
	struct cm_msg msg = rig_msg(&rig, CM_ATTR_SIDR_REQ);

	rig_deliver(&rig, &msg);
}

FIXTURE(set_up, tear_down);

TEST(answer_has_the_request_id_of_the_lookup)
{
	struct cm_msg rep;

	rig_reach(&rig, CM_SIDR_REP_SENT, true);
	rep = rig_sent_msg(&rig, 0);
	ck_assert_uint_eq(rep.hdr.tid, 0x7777);
	ck_assert_uint_eq(rep.sidr_rep.request_id, rig.peer_comm_id);
	ck_assert_uint_eq(rep.sidr_rep.service_id, RIG_SERVICE);
	ck_assert_uint_eq(rep.sidr_rep.qpn, rig.our_qpn);
	ck_assert_uint_eq(rep.sidr_rep.qkey, RIG_QKEY);
	ck_assert_str_eq((char *)rep.sidr_rep.private_data, "here");
}

TEST(repeated_answer_is_identical)
{
	uint8_t first[MAD_BYTES];

	rig_reach(&rig, CM_SIDR_REP_SENT, true);
	memcpy(first, rig.out.send[0].mad, MAD_BYTES);
	receive_lookup();
	ck_assert_uint_eq(rig.out.n_sends, 1);
	ck_assert_mem_eq(rig.out.send[0].mad, first, MAD_BYTES);
}

TEST(lookup_names_itself_by_its_comm_id)
{
	struct cm_msg req;

	rig_reach(&rig, CM_SIDR_REQ_SENT, false);
	req = rig_sent_msg(&rig, 0);
	ck_assert_uint_eq(req.sidr_req.request_id, rig.comm_id);
	ck_assert_uint_eq((uint32_t)req.hdr.tid, rig.comm_id);
	ck_assert_str_eq((char *)req.sidr_req.private_data, "where?");
}

TEST(answer_from_another_address_is_ignored)
{
	struct cm_msg rep;

	rig_reach(&rig, CM_SIDR_REQ_SENT, false);
	rep = rig_msg(&rig, CM_ATTR_SIDR_REP);
	rig.path.dgid.raw[15]++;
	rig_deliver(&rig, &rep);
	ck_assert_uint_eq(rig.core.count[CM_COUNT_ALIEN], 1);
	ck_assert_str_eq(cm_state_str(rig_state(&rig)), "SIDR_REQ_SENT");
}

/* The kernel, which compares LIDs, drops the second one: on RoCE all LIDs are 0. */
TEST(same_request_id_of_two_hosts_makes_two_lookups)
{
	rig_reach(&rig, CM_SIDR_REQ_RCVD, true);
	rig.path.dgid.raw[15]++;
	receive_lookup();
	ck_assert_str_eq(rig_reported(&rig), "REQUEST");
	ck_assert_uint_eq(rig.core.n_conns, 2);
}

TEST(lookup_and_connection_with_the_same_id_are_two)
{
	rig_reach(&rig, CM_SIDR_REQ_RCVD, true);
	rig_input(&rig, "REQ");
	ck_assert_str_eq(rig_reported(&rig), "REQUEST");
	receive_lookup();
	ck_assert_str_eq(rig_reported(&rig), "");
	ck_assert_uint_eq(rig.core.n_conns, 2);
}

TEST(lookup_needs_a_slot_like_other_requests)
{
	struct cm_conn *first;

	rig.core.out_max = 1;
	rig_reach(&rig, CM_REQ_SENT, false);
	first = rig.conn;
	rig_reach(&rig, CM_SIDR_REQ_SENT, false);
	ck_assert_str_eq(rig_sent(&rig), "");
	cm_core_call(&rig.core, first, CM_CALL_DESTROY, NULL, rig.now, &rig.out);
	ck_assert_str_eq(rig_sent(&rig), "REJ(other) 4, SIDR_REQ");
	ck_assert_uint_eq(rig.core.sent[CM_ATTR_SIDR_REQ], 1);
}

TEST(lookup_without_memory_is_dropped_and_may_be_retransmitted)
{
	struct cm_msg msg = rig_msg(&rig, CM_ATTR_SIDR_REQ);
	uint8_t mad[MAD_BYTES];

	cm_msg_encode(&msg, mad);
	cm_core_input(&rig.core, &rig.port, &rig.path, mad, MAD_BYTES, rig.now, &rig.out);
	ck_assert_uint_eq(rig.core.count[CM_COUNT_NO_MEMORY], 1);
	ck_assert_uint_eq(rig.out.n_sends, 0);
	receive_lookup();
	ck_assert_str_eq(rig_reported(&rig), "REQUEST");
}

TEST(caller_sets_the_timeout_of_a_lookup)
{
	struct cm_msg msg;
	struct cm_args args = {
		.port = &rig.port, .path = &rig.path, .msg = &msg, .give_up_ns = 3000 * CM_NS_PER_MS
	};

	cm_msg_init(&msg, CM_ATTR_SIDR_REQ, 0);
	rig_reach(&rig, CM_IDLE, false);
	ck_assert_int_eq(
		cm_core_call(&rig.core, rig.conn, CM_CALL_SIDR_REQ, &args, rig.now, &rig.out), 0);
	rig_timer(&rig);
	ck_assert_str_eq(rig_sent(&rig), "SIDR_REQ");
	rig_timer(&rig);
	ck_assert_str_eq(rig_reported(&rig), "UNREACHABLE -110");
}

/* --- adopted by another core --------------------------------------------- */

static void adopt_and_destroy(struct cm_core *heir)
{
	struct cm_record record = cm_conn_record(rig.conn);
	struct cm_conn *conn = cm_core_adopt(heir, &record, &rig.port, NULL);

	rig.out.n_sends = 0;
	if (conn)
		cm_core_call(heir, conn, CM_CALL_DESTROY, NULL, rig.now, &rig.out);
}

static const struct {
	enum cm_state state;
	bool passive;
	const char *sent;
} ends[] = {
	{ CM_SIDR_REQ_SENT, false, "" },
	{ CM_SIDR_REQ_RCVD, true, "SIDR_REP 2" },
	{ CM_SIDR_REP_SENT, true, "" },
};

TEST_LOOP(adopted_lookup_ends_as_if_destroyed, 0, sizeof(ends) / sizeof(ends[0]))
{
	struct cm_core heir;

	ck_assert_int_eq(cm_core_init(&heir, 1), 0);
	rig_reach(&rig, ends[_i].state, ends[_i].passive);
	adopt_and_destroy(&heir);
	ck_assert_str_eq(rig_sent(&rig), ends[_i].sent);
	if (ends[_i].sent[0]) {
		ck_assert_uint_eq(rig_sent_msg(&rig, 0).sidr_rep.service_id, RIG_SERVICE);
		ck_assert_uint_eq(rig_sent_msg(&rig, 0).sidr_rep.request_id, rig.peer_comm_id);
	}
	ck_assert_uint_eq(heir.n_conns, 0);
	cm_core_fini(&heir);
}
