/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cells of the state machine's table: which are empty, so that a call is EINVAL and a message
 * is counted and dropped. Written from the protocol; what the others do is in test_fsm.c.
 */
#include "cm/fsm.h"
#include "tests/unit/cm/run.h"

#define LEGAL(...)                \
	{                         \
		__VA_ARGS__, NONE \
	}
#define NONE CM_N_EVENTS

/* clang-format off */
static const enum cm_event legal[CM_N_STATES][CM_N_EVENTS + 1] = {
	[CM_IDLE] = LEGAL(
		CM_CALL_REQ, CM_CALL_SIDR_REQ, CM_RX_REQ,
		CM_RX_SIDR_REQ, CM_RX_DREQ),
	[CM_REQ_SENT] = LEGAL(
		CM_CALL_REJ, CM_RX_MRA_REQ, CM_RX_REP,
		CM_RX_REP_STALE, CM_RX_REJ, CM_RX_REJ_STALE, CM_T_RESPONSE, CM_T_SPENT),
	[CM_MRA_REQ_RCVD] = LEGAL(
		CM_CALL_REJ, CM_RX_MRA_REQ, CM_RX_REP,
		CM_RX_REP_STALE, CM_RX_REJ, CM_RX_REJ_STALE, CM_T_RESPONSE, CM_T_SPENT),
	[CM_REP_RCVD] = LEGAL(
		CM_CALL_RTU, CM_CALL_MRA, CM_CALL_REJ, CM_RX_REP_DUP,
		CM_RX_REJ, CM_RX_REJ_STALE),
	[CM_MRA_REP_SENT] = LEGAL(
		CM_CALL_RTU, CM_CALL_REJ, CM_RX_REP_DUP, CM_RX_REJ,
		CM_RX_REJ_STALE),
	[CM_REQ_RCVD] = LEGAL(
		CM_CALL_REP, CM_CALL_MRA, CM_CALL_REJ, CM_CALL_FORGET,
		CM_RX_REQ_DUP, CM_RX_REJ, CM_RX_REJ_STALE),
	[CM_MRA_REQ_SENT] = LEGAL(
		CM_CALL_REP, CM_CALL_REJ, CM_RX_REQ_DUP, CM_RX_REJ,
		CM_RX_REJ_STALE),
	[CM_REP_SENT] = LEGAL(
		CM_CALL_ESTABLISH, CM_CALL_REJ, CM_RX_REQ_DUP,
		CM_RX_MRA_REP, CM_RX_RTU, CM_RX_REJ, CM_RX_REJ_STALE, CM_RX_DREQ,
		CM_T_RESPONSE, CM_T_SPENT),
	[CM_MRA_REP_RCVD] = LEGAL(
		CM_CALL_ESTABLISH, CM_CALL_REJ, CM_RX_REQ_DUP,
		CM_RX_MRA_REP, CM_RX_RTU, CM_RX_REJ, CM_RX_REJ_STALE, CM_RX_DREQ,
		CM_T_RESPONSE, CM_T_SPENT),
	[CM_ESTABLISHED] = LEGAL(
		CM_CALL_DREQ, CM_RX_REQ_DUP, CM_RX_REP_DUP, CM_RX_RTU,
		CM_RX_REJ, CM_RX_REJ_STALE, CM_RX_DREQ, CM_PEER_RESTARTED),
	[CM_DREQ_SENT] = LEGAL(
		CM_RX_DREQ, CM_RX_DREP, CM_RX_REJ, CM_RX_REJ_STALE,
		CM_T_RESPONSE, CM_T_SPENT),
	[CM_DREQ_RCVD] = LEGAL(
		CM_CALL_DREP, CM_RX_DREQ, CM_RX_DREP),
	[CM_TIMEWAIT] = LEGAL(
		CM_RX_REQ_DUP, CM_RX_DREQ, CM_T_TIMEWAIT),
	[CM_SIDR_REQ_SENT] = LEGAL(
		CM_RX_SIDR_REP, CM_T_RESPONSE, CM_T_SPENT),
	[CM_SIDR_REQ_RCVD] = LEGAL(
		CM_CALL_SIDR_REP, CM_RX_SIDR_REQ_DUP),
	[CM_SIDR_REP_SENT] = LEGAL(
		CM_RX_SIDR_REQ_DUP),
};
/* clang-format on */

static bool is_legal(enum cm_state state, enum cm_event event)
{
	const enum cm_event *one = legal[state];

	while (*one != NONE && *one != event)
		one++;
	return *one == event || event == CM_CALL_DESTROY;
}

START_TEST(what_the_protocol_does_not_know_is_an_empty_cell)
{
	for (int event = 0; event < CM_N_EVENTS; event++)
		ck_assert_msg(!cm_edge_of(_i, event)->act == !is_legal(_i, event), "%s in %s",
			      cm_event_str(event), cm_state_str(_i));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cells");
	TCase *tcase = tcase_create("cells");

	tcase_add_loop_test(tcase, what_the_protocol_does_not_know_is_an_empty_cell, 0,
			    CM_N_STATES);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
