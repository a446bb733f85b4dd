/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state machine of a connection, IBTA vol. 1, 12.9.7 and 12.9.8, as the Linux kernel's
 * connection manager implements it. In an empty cell the event is illegal: a call fails with
 * EINVAL, a message is counted and dropped.
 */
#include "cm/fsm.h"

#include <assert.h>
#include <errno.h>

#include "cm/action.h"
#include "cm/peer.h"

/* clang-format off */
static const struct cm_edge edges[CM_N_STATES][CM_N_EVENTS] = {
	[CM_IDLE] = {
		[CM_CALL_REQ]       = { CM_REQ_SENT,     act_send_req },
		[CM_CALL_SIDR_REQ]  = { CM_SIDR_REQ_SENT, act_send_sidr_req },
		[CM_CALL_DESTROY]   = { CM_IDLE,         act_nothing },
		[CM_RX_REQ]         = { CM_REQ_RCVD,     act_report_request },
		[CM_RX_SIDR_REQ]    = { CM_SIDR_REQ_RCVD, act_report_lookup },
		[CM_RX_DREQ]        = { CM_IDLE,         act_send_drep },
	},
	[CM_REQ_SENT] = {
		[CM_CALL_REJ]       = { CM_IDLE,         act_reject_other },
		[CM_CALL_DESTROY]   = { CM_IDLE,         act_reject_timeout },
		[CM_RX_MRA_REQ]     = { CM_MRA_REQ_RCVD, act_extend_deadline },
		[CM_RX_REP]         = { CM_REP_RCVD,     act_report_response },
		[CM_RX_REP_STALE]   = { CM_REQ_SENT,     act_reject_stale_rep },
		[CM_RX_REJ]         = { CM_IDLE,         act_report_rejected },
		[CM_RX_REJ_STALE]   = { CM_TIMEWAIT,     act_report_stale },
		[CM_T_RESPONSE]     = { CM_REQ_SENT,     act_repeat },
		[CM_T_SPENT]        = { CM_IDLE,         act_report_unreachable },
	},
	[CM_MRA_REQ_RCVD] = {
		[CM_CALL_REJ]       = { CM_IDLE,         act_reject_other },
		[CM_CALL_DESTROY]   = { CM_IDLE,         act_reject_timeout },
		[CM_RX_MRA_REQ]     = { CM_MRA_REQ_RCVD, act_count_duplicate },
		[CM_RX_REP]         = { CM_REP_RCVD,     act_report_response },
		[CM_RX_REP_STALE]   = { CM_MRA_REQ_RCVD, act_reject_stale_rep },
		[CM_RX_REJ]         = { CM_IDLE,         act_report_rejected },
		[CM_RX_REJ_STALE]   = { CM_TIMEWAIT,     act_report_stale },
		[CM_T_RESPONSE]     = { CM_MRA_REQ_RCVD, act_repeat },
		[CM_T_SPENT]        = { CM_IDLE,         act_report_unreachable },
	},
	[CM_REP_RCVD] = {
		[CM_CALL_RTU]       = { CM_ESTABLISHED,  act_send_rtu },
		[CM_CALL_MRA]       = { CM_MRA_REP_SENT, act_nothing },
		[CM_CALL_REJ]       = { CM_IDLE,         act_reject_rep },
		[CM_CALL_DESTROY]   = { CM_IDLE,         act_reject_rep },
		[CM_RX_REP_DUP]     = { CM_REP_RCVD,     act_count_duplicate },
		[CM_RX_REJ]         = { CM_TIMEWAIT,     act_report_rejected },
		[CM_RX_REJ_STALE]   = { CM_TIMEWAIT,     act_report_stale },
	},
	[CM_MRA_REP_SENT] = {
		[CM_CALL_RTU]       = { CM_ESTABLISHED,  act_send_rtu },
		[CM_CALL_REJ]       = { CM_IDLE,         act_reject_rep },
		[CM_CALL_DESTROY]   = { CM_IDLE,         act_reject_rep },
		[CM_RX_REP_DUP]     = { CM_MRA_REP_SENT, act_send_mra_to_rep },
		[CM_RX_REJ]         = { CM_TIMEWAIT,     act_report_rejected },
		[CM_RX_REJ_STALE]   = { CM_TIMEWAIT,     act_report_stale },
	},
	[CM_REQ_RCVD] = {
		[CM_CALL_REP]       = { CM_REP_SENT,     act_send_rep },
		[CM_CALL_MRA]       = { CM_MRA_REQ_SENT, act_nothing },
		[CM_CALL_REJ]       = { CM_IDLE,         act_reject_req_unnamed },
		[CM_CALL_FORGET]    = { CM_IDLE,         act_nothing },
		[CM_CALL_DESTROY]   = { CM_IDLE,         act_reject_req_unnamed },
		[CM_RX_REQ_DUP]     = { CM_REQ_RCVD,     act_count_duplicate },
		[CM_RX_REJ]         = { CM_IDLE,         act_report_rejected },
		[CM_RX_REJ_STALE]   = { CM_TIMEWAIT,     act_report_stale },
	},
	[CM_MRA_REQ_SENT] = {
		[CM_CALL_REP]       = { CM_REP_SENT,     act_send_rep },
		[CM_CALL_REJ]       = { CM_IDLE,         act_reject_req },
		[CM_CALL_DESTROY]   = { CM_IDLE,         act_reject_req },
		[CM_RX_REQ_DUP]     = { CM_MRA_REQ_SENT, act_send_mra_to_req },
		[CM_RX_REJ]         = { CM_IDLE,         act_report_rejected },
		[CM_RX_REJ_STALE]   = { CM_TIMEWAIT,     act_report_stale },
	},
	[CM_REP_SENT] = {
		[CM_CALL_ESTABLISH] = { CM_ESTABLISHED,  act_report_established },
		[CM_CALL_REJ]       = { CM_TIMEWAIT,     act_reject_other },
		[CM_CALL_DESTROY]   = { CM_TIMEWAIT,     act_reject_other },
		[CM_RX_REQ_DUP]     = { CM_REP_SENT,     act_count_duplicate },
		[CM_RX_MRA_REP]     = { CM_MRA_REP_RCVD, act_extend_deadline },
		[CM_RX_RTU]         = { CM_ESTABLISHED,  act_report_established },
		[CM_RX_REJ]         = { CM_IDLE,         act_report_rejected },
		[CM_RX_REJ_STALE]   = { CM_TIMEWAIT,     act_report_stale },
		[CM_RX_DREQ]        = { CM_DREQ_RCVD,    act_report_disconnected },
		[CM_T_RESPONSE]     = { CM_REP_SENT,     act_repeat },
		[CM_T_SPENT]        = { CM_IDLE,         act_report_unreachable },
	},
	[CM_MRA_REP_RCVD] = {
		[CM_CALL_ESTABLISH] = { CM_ESTABLISHED,  act_report_established },
		[CM_CALL_REJ]       = { CM_TIMEWAIT,     act_reject_other },
		[CM_CALL_DESTROY]   = { CM_TIMEWAIT,     act_reject_other },
		[CM_RX_REQ_DUP]     = { CM_MRA_REP_RCVD, act_count_duplicate },
		[CM_RX_MRA_REP]     = { CM_MRA_REP_RCVD, act_count_duplicate },
		[CM_RX_RTU]         = { CM_ESTABLISHED,  act_report_established },
		[CM_RX_REJ]         = { CM_IDLE,         act_report_rejected },
		[CM_RX_REJ_STALE]   = { CM_TIMEWAIT,     act_report_stale },
		[CM_RX_DREQ]        = { CM_DREQ_RCVD,    act_report_disconnected },
		[CM_T_RESPONSE]     = { CM_MRA_REP_RCVD, act_repeat },
		[CM_T_SPENT]        = { CM_IDLE,         act_report_unreachable },
	},
	[CM_ESTABLISHED] = {
		[CM_CALL_DREQ]      = { CM_DREQ_SENT,    act_send_dreq },
		[CM_CALL_DESTROY]   = { CM_DREQ_SENT,    act_send_dreq },
		[CM_RX_REQ_DUP]     = { CM_ESTABLISHED,  act_count_duplicate },
		[CM_RX_REP_DUP]     = { CM_ESTABLISHED,  act_send_rtu },
		[CM_RX_RTU]         = { CM_ESTABLISHED,  act_count_duplicate },
		[CM_RX_REJ]         = { CM_TIMEWAIT,     act_report_rejected },
		[CM_RX_REJ_STALE]   = { CM_TIMEWAIT,     act_report_stale },
		[CM_RX_DREQ]        = { CM_DREQ_RCVD,    act_report_disconnected },
		[CM_PEER_RESTARTED] = { CM_DREQ_SENT,    act_send_dreq },
	},
	[CM_DREQ_SENT] = {
		[CM_CALL_DESTROY]   = { CM_DREQ_SENT,    act_nothing },
		[CM_RX_DREQ]        = { CM_DREQ_RCVD,    act_report_disconnected },
		[CM_RX_DREP]        = { CM_TIMEWAIT,     act_report_disconnected },
		[CM_RX_REJ]         = { CM_TIMEWAIT,     act_report_rejected },
		[CM_RX_REJ_STALE]   = { CM_TIMEWAIT,     act_report_stale },
		[CM_T_RESPONSE]     = { CM_DREQ_SENT,    act_repeat },
		[CM_T_SPENT]        = { CM_TIMEWAIT,     act_report_disconnect_unanswered },
	},
	[CM_DREQ_RCVD] = {
		[CM_CALL_DREP]      = { CM_TIMEWAIT,     act_send_drep },
		[CM_CALL_DESTROY]   = { CM_TIMEWAIT,     act_send_drep },
		[CM_RX_DREQ]        = { CM_DREQ_RCVD,    act_count_duplicate },
		[CM_RX_DREP]        = { CM_TIMEWAIT,     act_nothing },
	},
	[CM_TIMEWAIT] = {
		[CM_CALL_DESTROY]   = { CM_TIMEWAIT,     act_nothing },
		[CM_RX_REQ_DUP]     = { CM_TIMEWAIT,     act_count_duplicate },
		[CM_RX_DREQ]        = { CM_TIMEWAIT,     act_send_drep },
		[CM_T_TIMEWAIT]     = { CM_IDLE,         act_report_timewait_exit },
	},
	[CM_SIDR_REQ_SENT] = {
		[CM_CALL_DESTROY]   = { CM_IDLE,         act_nothing },
		[CM_RX_SIDR_REP]    = { CM_IDLE,         act_report_answered },
		[CM_T_RESPONSE]     = { CM_SIDR_REQ_SENT, act_repeat },
		[CM_T_SPENT]        = { CM_IDLE,         act_report_unreachable },
	},
	[CM_SIDR_REQ_RCVD] = {
		[CM_CALL_SIDR_REP]  = { CM_SIDR_REP_SENT, act_send_sidr_rep },
		[CM_CALL_DESTROY]   = { CM_IDLE,         act_refuse_lookup },
		[CM_RX_SIDR_REQ_DUP] = { CM_SIDR_REQ_RCVD, act_count_duplicate },
	},
	[CM_SIDR_REP_SENT] = {
		[CM_CALL_DESTROY]   = { CM_IDLE,         act_nothing },
		[CM_RX_SIDR_REQ_DUP] = { CM_SIDR_REP_SENT, act_repeat_sidr_rep },
	},
};
/* clang-format on */

static void enter_state(struct cm_conn *conn, struct cm_turn *turn)
{
	cm_settle(conn, turn->core);
	if (turn->msg)
		cm_peer_answered(conn, turn->core, turn->msg->hdr.attr_id == CM_ATTR_MRA,
				 turn->now);
	cm_peer_forget(conn, turn->core);
	if (conn->state == CM_IDLE)
		cm_unindex_peer(conn, turn->core);
	if (conn->state == CM_TIMEWAIT)
		cm_begin_timewait(conn, turn);
}

const struct cm_edge *cm_edge_of(enum cm_state state, enum cm_event event)
{
	assert(state < CM_N_STATES && event < CM_N_EVENTS);

	return &edges[state][event];
}

int cm_step(struct cm_conn *conn, enum cm_event event, struct cm_turn *turn)
{
	const struct cm_edge *edge = cm_edge_of((enum cm_state)conn->state, event);
	enum cm_state from = (enum cm_state)conn->state;

	if (!edge->act)
		return -EINVAL;
	conn->state = (uint8_t)edge->to; /* the only transition of a connection's state */
	if (turn->core->trace)
		turn->core->trace(conn, from, event);
	if (from != edge->to)
		enter_state(conn, turn);
	edge->act(conn, turn);
	return 0;
}

bool cm_record_step(struct cm_record *record, enum cm_event event)
{
	const struct cm_edge *edge = cm_edge_of((enum cm_state)record->state, event);

	if (edge->act)
		record->state = (uint8_t)edge->to;
	return edge->act;
}

void cm_record_begin(struct cm_record *record, enum cm_event event)
{
	record->state = CM_IDLE;
	cm_record_step(record, event);
}

void cm_begin_in(struct cm_record *record, enum cm_state state)
{
	record->state = (uint8_t)state;
}

static const char *const state_names[] = {
#define X(name) #name,
	CM_STATES(X)
#undef X
};

static const char *const event_names[] = {
#define X(name) #name,
	CM_EVENTS(X)
#undef X
};

const char *cm_state_str(enum cm_state state)
{
	return state < CM_N_STATES ? state_names[state] : "?";
}

const char *cm_event_str(enum cm_event event)
{
	return event < CM_N_EVENTS ? event_names[event] : "?";
}
