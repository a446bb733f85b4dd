/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cells of the state machine's table, written independently: the next state of each, and the
 * empty ones, where a call fails with EINVAL and a message is counted and dropped. test_fsm.c tests
 * messages and reports.
 */
#include "cm/fsm.h"
#include "tests/unit/test.h"

#define TO(state) (1 + CM_##state) /* 0: an empty cell */

/* clang-format off */
static const int leads_to[CM_N_STATES][CM_N_EVENTS] = {
	[CM_IDLE] = {
		[CM_CALL_REQ] = TO(REQ_SENT),
		[CM_CALL_SIDR_REQ] = TO(SIDR_REQ_SENT),
		[CM_CALL_DESTROY] = TO(IDLE),
		[CM_RX_REQ] = TO(REQ_RCVD),
		[CM_RX_SIDR_REQ] = TO(SIDR_REQ_RCVD),
		[CM_RX_DREQ] = TO(IDLE),
	},
	[CM_REQ_SENT] = {
		[CM_CALL_REJ] = TO(IDLE),
		[CM_CALL_DESTROY] = TO(IDLE),
		[CM_RX_MRA_REQ] = TO(MRA_REQ_RCVD),
		[CM_RX_REP] = TO(REP_RCVD),
		[CM_RX_REP_STALE] = TO(REQ_SENT),
		[CM_RX_REJ] = TO(IDLE),
		[CM_RX_REJ_STALE] = TO(TIMEWAIT),
		[CM_T_RESPONSE] = TO(REQ_SENT),
		[CM_T_SPENT] = TO(IDLE),
	},
	[CM_MRA_REQ_RCVD] = {
		[CM_CALL_REJ] = TO(IDLE),
		[CM_CALL_DESTROY] = TO(IDLE),
		[CM_RX_MRA_REQ] = TO(MRA_REQ_RCVD),
		[CM_RX_REP] = TO(REP_RCVD),
		[CM_RX_REP_STALE] = TO(MRA_REQ_RCVD),
		[CM_RX_REJ] = TO(IDLE),
		[CM_RX_REJ_STALE] = TO(TIMEWAIT),
		[CM_T_RESPONSE] = TO(MRA_REQ_RCVD),
		[CM_T_SPENT] = TO(IDLE),
	},
	[CM_REP_RCVD] = {
		[CM_CALL_RTU] = TO(ESTABLISHED),
		[CM_CALL_MRA] = TO(MRA_REP_SENT),
		[CM_CALL_REJ] = TO(IDLE),
		[CM_CALL_DESTROY] = TO(IDLE),
		[CM_RX_REP_DUP] = TO(REP_RCVD),
		[CM_RX_REJ] = TO(TIMEWAIT),
		[CM_RX_REJ_STALE] = TO(TIMEWAIT),
	},
	[CM_MRA_REP_SENT] = {
		[CM_CALL_RTU] = TO(ESTABLISHED),
		[CM_CALL_REJ] = TO(IDLE),
		[CM_CALL_DESTROY] = TO(IDLE),
		[CM_RX_REP_DUP] = TO(MRA_REP_SENT),
		[CM_RX_REJ] = TO(TIMEWAIT),
		[CM_RX_REJ_STALE] = TO(TIMEWAIT),
	},
	[CM_REQ_RCVD] = {
		[CM_CALL_REP] = TO(REP_SENT),
		[CM_CALL_MRA] = TO(MRA_REQ_SENT),
		[CM_CALL_REJ] = TO(IDLE),
		[CM_CALL_FORGET] = TO(IDLE),
		[CM_CALL_DESTROY] = TO(IDLE),
		[CM_RX_REQ_DUP] = TO(REQ_RCVD),
		[CM_RX_REJ] = TO(IDLE),
		[CM_RX_REJ_STALE] = TO(TIMEWAIT),
	},
	[CM_MRA_REQ_SENT] = {
		[CM_CALL_FORGET] = TO(IDLE),
		[CM_CALL_REP] = TO(REP_SENT),
		[CM_CALL_REJ] = TO(IDLE),
		[CM_CALL_DESTROY] = TO(IDLE),
		[CM_RX_REQ_DUP] = TO(MRA_REQ_SENT),
		[CM_RX_REJ] = TO(IDLE),
		[CM_RX_REJ_STALE] = TO(TIMEWAIT),
	},
	[CM_REP_SENT] = {
		[CM_CALL_ESTABLISH] = TO(ESTABLISHED),
		[CM_CALL_REJ] = TO(TIMEWAIT),
		[CM_CALL_DESTROY] = TO(TIMEWAIT),
		[CM_RX_REQ_DUP] = TO(REP_SENT),
		[CM_RX_MRA_REP] = TO(MRA_REP_RCVD),
		[CM_RX_RTU] = TO(ESTABLISHED),
		[CM_RX_REJ] = TO(IDLE),
		[CM_RX_REJ_STALE] = TO(TIMEWAIT),
		[CM_RX_DREQ] = TO(DREQ_RCVD),
		[CM_T_RESPONSE] = TO(REP_SENT),
		[CM_T_SPENT] = TO(IDLE),
	},
	[CM_MRA_REP_RCVD] = {
		[CM_CALL_ESTABLISH] = TO(ESTABLISHED),
		[CM_CALL_REJ] = TO(TIMEWAIT),
		[CM_CALL_DESTROY] = TO(TIMEWAIT),
		[CM_RX_REQ_DUP] = TO(MRA_REP_RCVD),
		[CM_RX_MRA_REP] = TO(MRA_REP_RCVD),
		[CM_RX_RTU] = TO(ESTABLISHED),
		[CM_RX_REJ] = TO(IDLE),
		[CM_RX_REJ_STALE] = TO(TIMEWAIT),
		[CM_RX_DREQ] = TO(DREQ_RCVD),
		[CM_T_RESPONSE] = TO(MRA_REP_RCVD),
		[CM_T_SPENT] = TO(IDLE),
	},
	[CM_ESTABLISHED] = {
		[CM_CALL_DREQ] = TO(DREQ_SENT),
		[CM_CALL_DESTROY] = TO(DREQ_SENT),
		[CM_RX_REQ_DUP] = TO(ESTABLISHED),
		[CM_RX_REP_DUP] = TO(ESTABLISHED),
		[CM_RX_RTU] = TO(ESTABLISHED),
		[CM_RX_REJ] = TO(TIMEWAIT),
		[CM_RX_REJ_STALE] = TO(TIMEWAIT),
		[CM_RX_DREQ] = TO(DREQ_RCVD),
		[CM_PEER_RESTARTED] = TO(DREQ_SENT),
	},
	[CM_DREQ_SENT] = {
		[CM_CALL_DESTROY] = TO(DREQ_SENT),
		[CM_RX_DREQ] = TO(DREQ_RCVD),
		[CM_RX_DREP] = TO(TIMEWAIT),
		[CM_RX_REJ] = TO(TIMEWAIT),
		[CM_RX_REJ_STALE] = TO(TIMEWAIT),
		[CM_T_RESPONSE] = TO(DREQ_SENT),
		[CM_T_SPENT] = TO(TIMEWAIT),
	},
	[CM_DREQ_RCVD] = {
		[CM_CALL_DREP] = TO(TIMEWAIT),
		[CM_CALL_DESTROY] = TO(TIMEWAIT),
		[CM_RX_DREQ] = TO(DREQ_RCVD),
		[CM_RX_DREP] = TO(TIMEWAIT),
	},
	[CM_TIMEWAIT] = {
		[CM_CALL_DESTROY] = TO(TIMEWAIT),
		[CM_RX_REQ_DUP] = TO(TIMEWAIT),
		[CM_RX_DREQ] = TO(TIMEWAIT),
		[CM_T_TIMEWAIT] = TO(IDLE),
	},
	[CM_SIDR_REQ_SENT] = {
		[CM_CALL_DESTROY] = TO(IDLE),
		[CM_RX_SIDR_REP] = TO(IDLE),
		[CM_T_RESPONSE] = TO(SIDR_REQ_SENT),
		[CM_T_SPENT] = TO(IDLE),
	},
	[CM_SIDR_REQ_RCVD] = {
		[CM_CALL_SIDR_REP] = TO(SIDR_REP_SENT),
		[CM_CALL_DESTROY] = TO(IDLE),
		[CM_RX_SIDR_REQ_DUP] = TO(SIDR_REQ_RCVD),
	},
	[CM_SIDR_REP_SENT] = {
		[CM_CALL_DESTROY] = TO(IDLE),
		[CM_RX_SIDR_REQ_DUP] = TO(SIDR_REP_SENT),
	},
};
/* clang-format on */

static void check_cell(enum cm_state state, enum cm_event event)
{
	const struct cm_edge *edge = cm_edge_of(state, event);

	ck_assert_msg((edge->act ? 1 + (int)edge->to : 0) == leads_to[state][event],
		      "%s in %s leads to %s", cm_event_str(event), cm_state_str(state),
		      edge->act ? cm_state_str(edge->to) : "nothing");
}

TEST_LOOP(each_event_leads_to_the_state_of_the_protocol, 0, CM_N_STATES)
{
	for (int event = 0; event < CM_N_EVENTS; event++)
		check_cell((enum cm_state)_i, (enum cm_event)event);
}
