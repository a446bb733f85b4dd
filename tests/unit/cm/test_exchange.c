/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole exchanges between two hosts, as sequence charts: without faults, then with each message
 * lost, duplicated or late, then with hosts that die, restart or reject late.
 */
#include <errno.h>

#include "tests/unit/cm/pair.h"
#include "tests/unit/test.h"

static struct pair pair;

static void set_up(void)
{
	pair_init(&pair);
}

static void tear_down(void)
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

static void connect_and_run(void)
{
	pair_connect(&pair);
	pair_run(&pair);
}

static void disconnect_and_run(enum pair_side side)
{
	pair_forget_chart(&pair);
	ck_assert_int_eq(pair_call(pair_end(&pair, side, 0), CM_CALL_DREQ), 0);
	pair_run(&pair);
}

static void assert_both_established(void)
{
	ck_assert_log(client_end(), "RESPONSE");
	ck_assert_log(server_end(), "REQUEST, ESTABLISHED");
	ck_assert_str_eq(cm_state_str(client_end()->conn->state), "ESTABLISHED");
	ck_assert_str_eq(cm_state_str(server_end()->conn->state), "ESTABLISHED");
}

static void assert_both_disconnected(void)
{
	ck_assert_log(client_end(), "RESPONSE, DISCONNECTED, TIMEWAIT_EXIT");
	ck_assert_log(server_end(), "REQUEST, ESTABLISHED, DISCONNECTED, TIMEWAIT_EXIT");
}

/* --- without faults ------------------------------------------------------ */

FIXTURE(set_up, tear_down);

TEST(connection_takes_three_messages)
{
	connect_and_run();
	ck_assert_chart(&pair, "REQ> <REP RTU>");
	assert_both_established();
	ck_assert_uint_eq(pair_ms(&pair), 3 * PAIR_LATENCY_MS);
}

TEST(client_disconnects)
{
	connect_and_run();
	disconnect_and_run(PAIR_CLIENT);
	ck_assert_chart(&pair, "DREQ> <DREP");
	assert_both_disconnected();
}

TEST(server_disconnects)
{
	connect_and_run();
	disconnect_and_run(PAIR_SERVER);
	ck_assert_chart(&pair, "<DREQ DREP>");
	assert_both_disconnected();
}

TEST(rejected_request_is_reported_with_its_reason)
{
	pair.host[PAIR_SERVER].manual = true;
	pair_connect(&pair);
	pair_deliver(&pair);
	pair_call(server_end(), CM_CALL_REJ);
	pair_run(&pair);
	ck_assert_chart(&pair, "REQ> <REJ(REQ) 28");
	ck_assert_log(client_end(), "REJECTED");
}

TEST(request_without_a_service_is_rejected_with_reason_8)
{
	cm_core_unserve(&pair.host[PAIR_SERVER].core, &pair.host[PAIR_SERVER].service);
	connect_and_run();
	ck_assert_chart(&pair, "REQ> <REJ(REQ) 8");
	ck_assert_log(client_end(), "REJECTED");
}

TEST(rejected_reply_is_reported)
{
	pair.host[PAIR_CLIENT].manual = true;
	pair_connect(&pair);
	pair_run_until(&pair, PAIR_CLIENT, CM_REP_RCVD);
	pair_call(client_end(), CM_CALL_REJ);
	pair_run(&pair);
	ck_assert_chart(&pair, "REQ> <REP REJ(REP) 28>");
	ck_assert_log(server_end(), "REQUEST, REJECTED");
}

/* --- lost ---------------------------------------------------------------- */

TEST(lost_req_is_sent_again)
{
	pair_fault(&pair, PAIR_CLIENT, CM_ATTR_REQ, 1, PAIR_DROP);
	connect_and_run();
	ck_assert_chart(&pair, "REQ*> REQ> <REP RTU>");
	assert_both_established();
}

/* The server retransmits its REP after its own timeout, not on a duplicate REQ. */
TEST(lost_rep_is_recovered_by_a_second_rep)
{
	pair_fault(&pair, PAIR_SERVER, CM_ATTR_REP, 1, PAIR_DROP);
	connect_and_run();
	ck_assert_chart(&pair, "REQ> <REP* REQ> <REP RTU>");
	assert_both_established();
}

TEST(lost_rtu_is_recovered_by_a_second_rep)
{
	pair_fault(&pair, PAIR_CLIENT, CM_ATTR_RTU, 1, PAIR_DROP);
	connect_and_run();
	ck_assert_chart(&pair, "REQ> <REP RTU*> <REP RTU>");
	assert_both_established();
}

TEST(lost_rtu_does_not_matter_after_data)
{
	pair_fault(&pair, PAIR_CLIENT, CM_ATTR_RTU, 1, PAIR_DROP);
	pair_connect(&pair);
	pair_run_until(&pair, PAIR_CLIENT, CM_ESTABLISHED);
	ck_assert_int_eq(pair_call(server_end(), CM_CALL_ESTABLISH), 0);
	pair_run(&pair);
	ck_assert_chart(&pair, "REQ> <REP RTU*>");
	assert_both_established();
}

TEST(rtu_after_data_is_not_reported_again)
{
	pair_connect(&pair);
	pair_run_until(&pair, PAIR_CLIENT, CM_ESTABLISHED);
	ck_assert_int_eq(pair_call(server_end(), CM_CALL_ESTABLISH), 0);
	ck_assert_int_eq(pair_call(server_end(), CM_CALL_ESTABLISH), -EINVAL);
	pair_run(&pair);
	ck_assert_chart(&pair, "REQ> <REP RTU>");
	assert_both_established();
}

TEST(lost_dreq_is_sent_again)
{
	pair_fault(&pair, PAIR_CLIENT, CM_ATTR_DREQ, 1, PAIR_DROP);
	connect_and_run();
	disconnect_and_run(PAIR_CLIENT);
	ck_assert_chart(&pair, "DREQ*> DREQ> <DREP");
	assert_both_disconnected();
}

TEST(lost_drep_is_recovered_by_a_second_dreq)
{
	pair_fault(&pair, PAIR_SERVER, CM_ATTR_DREP, 1, PAIR_DROP);
	connect_and_run();
	disconnect_and_run(PAIR_CLIENT);
	ck_assert_chart(&pair, "DREQ> <DREP* DREQ> <DREP");
	assert_both_disconnected();
}

TEST(lost_drep_is_repeated_after_timewait)
{
	for (unsigned int i = 1; i <= 3; i++)
		pair_fault(&pair, PAIR_SERVER, CM_ATTR_DREP, i, PAIR_DROP);
	connect_and_run();
	disconnect_and_run(PAIR_CLIENT);
	ck_assert_chart(&pair, "DREQ> <DREP* DREQ> <DREP* DREQ> <DREP* DREQ> <DREP");
	ck_assert_log(server_end(), "REQUEST, ESTABLISHED, DISCONNECTED, TIMEWAIT_EXIT");
	ck_assert_log(client_end(), "RESPONSE, DISCONNECTED, TIMEWAIT_EXIT");
}

TEST(lost_rej_of_a_request_lets_the_server_decide_again)
{
	pair.host[PAIR_SERVER].manual = true;
	pair_fault(&pair, PAIR_SERVER, CM_ATTR_REJ, 1, PAIR_DROP);
	pair_connect(&pair);
	pair_run_until(&pair, PAIR_SERVER, CM_REQ_RCVD);
	pair_call(server_end(), CM_CALL_REJ);
	pair_run_until(&pair, PAIR_SERVER, CM_REQ_RCVD);
	pair_call(pair_end(&pair, PAIR_SERVER, 1), CM_CALL_REJ);
	pair_run(&pair);
	ck_assert_chart(&pair, "REQ> <REJ(REQ) 28* REQ> <REJ(REQ) 28");
	ck_assert_log(client_end(), "REJECTED");
}

/* --- duplicates ---------------------------------------------------------- */

static const struct {
	enum pair_side from;
	enum cm_attr attr;
	const char *chart;
} doubles[] = {
	{ PAIR_CLIENT, CM_ATTR_REQ, "REQ+> <REP RTU> DREQ> <DREP" },
	{ PAIR_SERVER, CM_ATTR_REP, "REQ> <REP+ RTU> RTU> DREQ> <DREP" },
	{ PAIR_CLIENT, CM_ATTR_RTU, "REQ> <REP RTU+> DREQ> <DREP" },
	{ PAIR_CLIENT, CM_ATTR_DREQ, "REQ> <REP RTU> DREQ+> <DREP <DREP" },
	{ PAIR_SERVER, CM_ATTR_DREP, "REQ> <REP RTU> DREQ> <DREP+" },
};

TEST_LOOP(duplicate_message_counts_once, 0, sizeof(doubles) / sizeof(doubles[0]))
{
	pair_fault(&pair, doubles[_i].from, doubles[_i].attr, 1, PAIR_DUPLICATE);
	connect_and_run();
	ck_assert_int_eq(pair_call(client_end(), CM_CALL_DREQ), 0);
	pair_run(&pair);
	ck_assert_chart(&pair, doubles[_i].chart);
	assert_both_disconnected();
}

/* --- slow hosts ---------------------------------------------------------- */

TEST(slow_server_sends_mra_for_a_duplicate_req)
{
	pair.host[PAIR_SERVER].manual = true;
	pair_connect(&pair);
	pair_run_until(&pair, PAIR_SERVER, CM_REQ_RCVD);
	pair_call(server_end(), CM_CALL_MRA);
	pair_run_until(&pair, PAIR_CLIENT, CM_MRA_REQ_RCVD);
	ck_assert_chart(&pair, "REQ> REQ> <MRA(REQ)");
	pair_call(server_end(), CM_CALL_REP);
	pair_run(&pair);
	ck_assert_chart(&pair, "REQ> REQ> <MRA(REQ) <REP RTU>");
	assert_both_established();
}

TEST(client_retransmits_every_67_seconds_after_mra)
{
	uint64_t before_ms;

	pair.host[PAIR_SERVER].manual = true;
	pair_connect(&pair);
	pair_run_until(&pair, PAIR_SERVER, CM_REQ_RCVD);
	pair_call(server_end(), CM_CALL_MRA);
	pair_run_until(&pair, PAIR_CLIENT, CM_MRA_REQ_RCVD);
	before_ms = pair_ms(&pair);
	pair_run_until(&pair, PAIR_CLIENT, CM_IDLE);
	ck_assert_log(client_end(), "UNREACHABLE -110");
	ck_assert_uint_eq(pair_ms(&pair) - before_ms, (16 - 1) * (65536 + 2048));
}

TEST(lost_rep_after_mra_is_retransmitted_by_the_server)
{
	pair.host[PAIR_SERVER].manual = true;
	pair_fault(&pair, PAIR_SERVER, CM_ATTR_REP, 1, PAIR_DROP);
	pair_connect(&pair);
	pair_run_until(&pair, PAIR_SERVER, CM_REQ_RCVD);
	pair_call(server_end(), CM_CALL_MRA);
	pair_run_until(&pair, PAIR_CLIENT, CM_MRA_REQ_RCVD);
	pair_call(server_end(), CM_CALL_REP);
	pair_run(&pair);
	ck_assert_chart(&pair, "REQ> REQ> <MRA(REQ) <REP* <REP RTU>");
	assert_both_established();
}

TEST(slow_client_sends_mra_for_a_duplicate_rep)
{
	pair.host[PAIR_CLIENT].manual = true;
	pair_connect(&pair);
	pair_run_until(&pair, PAIR_CLIENT, CM_REP_RCVD);
	pair_call(client_end(), CM_CALL_MRA);
	pair_run_until(&pair, PAIR_SERVER, CM_MRA_REP_RCVD);
	pair_call(client_end(), CM_CALL_RTU);
	pair_run(&pair);
	ck_assert_chart(&pair, "REQ> <REP <REP MRA(REP)> RTU>");
	assert_both_established();
}

/* --- crossing messages --------------------------------------------------- */

TEST(crossing_dreqs_disconnect_both_once)
{
	connect_and_run();
	pair_forget_chart(&pair);
	pair_call(client_end(), CM_CALL_DREQ);
	pair_call(server_end(), CM_CALL_DREQ);
	pair_run(&pair);
	ck_assert_chart(&pair, "DREQ> <DREQ <DREP DREP>");
	assert_both_disconnected();
}

TEST(crossing_connections_of_two_hosts_do_not_disturb_each_other)
{
	struct pair_host *server = &pair.host[PAIR_SERVER];
	struct pair_host *client = &pair.host[PAIR_CLIENT];
	struct pair_end *back = &server->end[server->n_ends++];

	back->host = server;
	back->conn = cm_core_conn_new(&server->core, back);
	pair_connect(&pair);
	ck_assert_int_eq(pair_call(back, CM_CALL_REQ), 0);
	pair_run(&pair);
	ck_assert_chart(&pair, "REQ> <REQ <REP REP> RTU> <RTU");
	ck_assert_log(back, "RESPONSE");
	ck_assert_log(&client->end[1], "REQUEST, ESTABLISHED");
	ck_assert_log(&server->end[1], "REQUEST, ESTABLISHED");
}

TEST(dreq_overtakes_the_rtu)
{
	pair_fault(&pair, PAIR_CLIENT, CM_ATTR_RTU, 1, PAIR_DELAY);
	pair.host[PAIR_CLIENT].haste = PAIR_DISCONNECTS;
	connect_and_run();
	ck_assert_chart(&pair, "REQ> <REP RTU~> DREQ> <DREP");
	ck_assert_log(server_end(), "REQUEST, DISCONNECTED, TIMEWAIT_EXIT");
}

/* --- dead hosts ---------------------------------------------------------- */

TEST(server_without_answers_is_unreachable_after_50_seconds)
{
	pair.host[PAIR_SERVER].dead = true;
	connect_and_run();
	ck_assert_log(client_end(), "UNREACHABLE -110");
	ck_assert_uint_eq(pair_ms(&pair), 50000);
	ck_assert_uint_eq(pair.n_transmissions, 16);
}

TEST(client_without_answers_is_unreachable_after_50_seconds)
{
	pair_connect(&pair);
	pair_run_until(&pair, PAIR_SERVER, CM_REP_SENT);
	pair.host[PAIR_CLIENT].dead = true;
	pair_run_until(&pair, PAIR_SERVER, CM_IDLE);
	ck_assert_log(server_end(), "REQUEST, UNREACHABLE -110");
	ck_assert_uint_eq(pair_ms(&pair), 50000 + PAIR_LATENCY_MS);
}

TEST(disconnect_without_an_answer_ends_after_50_seconds)
{
	connect_and_run();
	pair.host[PAIR_SERVER].dead = true;
	disconnect_and_run(PAIR_CLIENT);
	ck_assert_log(client_end(), "RESPONSE, DISCONNECTED -110, TIMEWAIT_EXIT");
	ck_assert_uint_eq(pair_ms(&pair), 3 * PAIR_LATENCY_MS + 50000 + 2048);
}

TEST(late_rep_to_a_client_that_gave_up_is_dropped)
{
	pair.host[PAIR_SERVER].manual = true;
	pair_connect(&pair);
	pair_run_until(&pair, PAIR_SERVER, CM_REQ_RCVD);
	pair_run_until(&pair, PAIR_CLIENT, CM_IDLE);
	pair_forget_chart(&pair);
	pair_call(server_end(), CM_CALL_REP);
	pair_run(&pair);
	ck_assert_log(client_end(), "UNREACHABLE -110");
	ck_assert_log(server_end(), "REQUEST, UNREACHABLE -110");
}

/* --- restarted hosts ----------------------------------------------------- */

/* The client restarts with the same queue pair number, as a new process does. */
static void restart_client_and_connect(void)
{
	connect_and_run();
	pair_restart(&pair.host[PAIR_CLIENT]);
	pair_forget_chart(&pair);
	connect_and_run();
}

TEST(restarted_client_gets_a_stale_rejection)
{
	restart_client_and_connect();
	ck_assert_chart(&pair, "REQ> <REJ(REQ) 10 <DREQ DREP>");
	ck_assert_log(client_end(), "REJECTED, TIMEWAIT_EXIT");
	ck_assert_log(server_end(), "REQUEST, ESTABLISHED, DISCONNECTED, TIMEWAIT_EXIT");
}

TEST(restarted_client_connects_at_the_second_try)
{
	restart_client_and_connect();
	pair_forget_chart(&pair);
	pair_connect(&pair);
	pair_run(&pair);
	ck_assert_chart(&pair, "REQ> <REP RTU>");
	ck_assert_log(pair_end(&pair, PAIR_CLIENT, 1), "RESPONSE");
	ck_assert_log(pair_end(&pair, PAIR_SERVER, 1), "REQUEST, ESTABLISHED");
}

TEST(restarted_server_with_an_old_queue_pair_gets_a_stale_rejection)
{
	connect_and_run();
	pair_restart(&pair.host[PAIR_SERVER]);
	pair_forget_chart(&pair);
	pair_connect(&pair);
	pair_run(&pair);
	ck_assert_chart(&pair, "REQ> <REP REJ(REP) 10> DREQ> <DREP REQ> <REP RTU>");
	ck_assert_log(client_end(), "RESPONSE, DISCONNECTED, TIMEWAIT_EXIT");
	ck_assert_log(pair_end(&pair, PAIR_CLIENT, 1), "RESPONSE");
	ck_assert_log(pair_end(&pair, PAIR_SERVER, 0), "REQUEST, REJECTED, TIMEWAIT_EXIT");
	ck_assert_log(pair_end(&pair, PAIR_SERVER, 1), "REQUEST, ESTABLISHED");
}

TEST(restarted_server_lets_the_client_disconnect)
{
	connect_and_run();
	pair_restart(&pair.host[PAIR_SERVER]);
	disconnect_and_run(PAIR_CLIENT);
	ck_assert_chart(&pair, "DREQ> <DREP");
	ck_assert_log(client_end(), "RESPONSE, DISCONNECTED, TIMEWAIT_EXIT");
}
