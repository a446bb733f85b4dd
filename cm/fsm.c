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

/* Numbers, as pointers would be relocated in each process. */
#define ACTIONS(X)                                                            \
	X(ACT_NOTHING, act_nothing)                                           \
	X(ACT_COUNT_DUPLICATE, act_count_duplicate)                           \
	X(ACT_SEND_REQ, act_send_req)                                         \
	X(ACT_SEND_REP, act_send_rep)                                         \
	X(ACT_SEND_RTU, act_send_rtu)                                         \
	X(ACT_SEND_DREQ, act_send_dreq)                                       \
	X(ACT_SEND_DREP, act_send_drep)                                       \
	X(ACT_SEND_MRA_TO_REQ, act_send_mra_to_req)                           \
	X(ACT_SEND_MRA_TO_REP, act_send_mra_to_rep)                           \
	X(ACT_SEND_SIDR_REQ, act_send_sidr_req)                               \
	X(ACT_SEND_SIDR_REP, act_send_sidr_rep)                               \
	X(ACT_REPEAT_SIDR_REP, act_repeat_sidr_rep)                           \
	X(ACT_REFUSE_LOOKUP, act_refuse_lookup)                               \
	X(ACT_REPEAT, act_repeat)                                             \
	X(ACT_EXTEND_DEADLINE, act_extend_deadline)                           \
	X(ACT_REJECT_REQ_UNNAMED, act_reject_req_unnamed)                     \
	X(ACT_REJECT_REQ, act_reject_req)                                     \
	X(ACT_REJECT_REP, act_reject_rep)                                     \
	X(ACT_REJECT_OTHER, act_reject_other)                                 \
	X(ACT_REJECT_TIMEOUT, act_reject_timeout)                             \
	X(ACT_REJECT_STALE_REP, act_reject_stale_rep)                         \
	X(ACT_REPORT_REQUEST, act_report_request)                             \
	X(ACT_REPORT_LOOKUP, act_report_lookup)                               \
	X(ACT_REPORT_ANSWERED, act_report_answered)                           \
	X(ACT_REPORT_RESPONSE, act_report_response)                           \
	X(ACT_REPORT_ESTABLISHED, act_report_established)                     \
	X(ACT_REPORT_REJECTED, act_report_rejected)                           \
	X(ACT_REPORT_STALE, act_report_stale)                                 \
	X(ACT_REPORT_UNREACHABLE, act_report_unreachable)                     \
	X(ACT_REPORT_DISCONNECTED, act_report_disconnected)                   \
	X(ACT_REPORT_DISCONNECT_UNANSWERED, act_report_disconnect_unanswered) \
	X(ACT_REPORT_TIMEWAIT_EXIT, act_report_timewait_exit)

enum act {
	ACT_ILLEGAL,
#define X(name, function) name,
	ACTIONS(X)
#undef X
};

static cm_action *const action[] = {
#define X(name, function) [name] = function,
	ACTIONS(X)
#undef X
};

/* clang-format off */
static const struct cm_edge edges[CM_N_STATES][CM_N_EVENTS] = {
	[CM_IDLE] = {
		[CM_CALL_REQ]       = { CM_REQ_SENT,     ACT_SEND_REQ },
		[CM_CALL_SIDR_REQ]  = { CM_SIDR_REQ_SENT, ACT_SEND_SIDR_REQ },
		[CM_CALL_DESTROY]   = { CM_IDLE,         ACT_NOTHING },
		[CM_RX_REQ]         = { CM_REQ_RCVD,     ACT_REPORT_REQUEST },
		[CM_RX_SIDR_REQ]    = { CM_SIDR_REQ_RCVD, ACT_REPORT_LOOKUP },
		[CM_RX_DREQ]        = { CM_IDLE,         ACT_SEND_DREP },
	},
	[CM_REQ_SENT] = {
		[CM_CALL_REJ]       = { CM_IDLE,         ACT_REJECT_OTHER },
		[CM_CALL_DESTROY]   = { CM_IDLE,         ACT_REJECT_TIMEOUT },
		[CM_RX_MRA_REQ]     = { CM_MRA_REQ_RCVD, ACT_EXTEND_DEADLINE },
		[CM_RX_REP]         = { CM_REP_RCVD,     ACT_REPORT_RESPONSE },
		[CM_RX_REP_STALE]   = { CM_REQ_SENT,     ACT_REJECT_STALE_REP },
		[CM_RX_REJ]         = { CM_IDLE,         ACT_REPORT_REJECTED },
		[CM_RX_REJ_STALE]   = { CM_TIMEWAIT,     ACT_REPORT_STALE },
		[CM_T_RESPONSE]     = { CM_REQ_SENT,     ACT_REPEAT },
		[CM_T_SPENT]        = { CM_IDLE,         ACT_REPORT_UNREACHABLE },
	},
	[CM_MRA_REQ_RCVD] = {
		[CM_CALL_REJ]       = { CM_IDLE,         ACT_REJECT_OTHER },
		[CM_CALL_DESTROY]   = { CM_IDLE,         ACT_REJECT_TIMEOUT },
		[CM_RX_MRA_REQ]     = { CM_MRA_REQ_RCVD, ACT_COUNT_DUPLICATE },
		[CM_RX_REP]         = { CM_REP_RCVD,     ACT_REPORT_RESPONSE },
		[CM_RX_REP_STALE]   = { CM_MRA_REQ_RCVD, ACT_REJECT_STALE_REP },
		[CM_RX_REJ]         = { CM_IDLE,         ACT_REPORT_REJECTED },
		[CM_RX_REJ_STALE]   = { CM_TIMEWAIT,     ACT_REPORT_STALE },
		[CM_T_RESPONSE]     = { CM_MRA_REQ_RCVD, ACT_REPEAT },
		[CM_T_SPENT]        = { CM_IDLE,         ACT_REPORT_UNREACHABLE },
	},
	[CM_REP_RCVD] = {
		[CM_CALL_RTU]       = { CM_ESTABLISHED,  ACT_SEND_RTU },
		[CM_CALL_MRA]       = { CM_MRA_REP_SENT, ACT_NOTHING },
		[CM_CALL_REJ]       = { CM_IDLE,         ACT_REJECT_REP },
		[CM_CALL_DESTROY]   = { CM_IDLE,         ACT_REJECT_REP },
		[CM_RX_REP_DUP]     = { CM_REP_RCVD,     ACT_COUNT_DUPLICATE },
		[CM_RX_REJ]         = { CM_TIMEWAIT,     ACT_REPORT_REJECTED },
		[CM_RX_REJ_STALE]   = { CM_TIMEWAIT,     ACT_REPORT_STALE },
	},
	[CM_MRA_REP_SENT] = {
		[CM_CALL_RTU]       = { CM_ESTABLISHED,  ACT_SEND_RTU },
		[CM_CALL_REJ]       = { CM_IDLE,         ACT_REJECT_REP },
		[CM_CALL_DESTROY]   = { CM_IDLE,         ACT_REJECT_REP },
		[CM_RX_REP_DUP]     = { CM_MRA_REP_SENT, ACT_SEND_MRA_TO_REP },
		[CM_RX_REJ]         = { CM_TIMEWAIT,     ACT_REPORT_REJECTED },
		[CM_RX_REJ_STALE]   = { CM_TIMEWAIT,     ACT_REPORT_STALE },
	},
	[CM_REQ_RCVD] = {
		[CM_CALL_REP]       = { CM_REP_SENT,     ACT_SEND_REP },
		[CM_CALL_MRA]       = { CM_MRA_REQ_SENT, ACT_NOTHING },
		[CM_CALL_REJ]       = { CM_IDLE,         ACT_REJECT_REQ_UNNAMED },
		[CM_CALL_FORGET]    = { CM_IDLE,         ACT_NOTHING },
		[CM_CALL_DESTROY]   = { CM_IDLE,         ACT_REJECT_REQ_UNNAMED },
		[CM_RX_REQ_DUP]     = { CM_REQ_RCVD,     ACT_COUNT_DUPLICATE },
		[CM_RX_REJ]         = { CM_IDLE,         ACT_REPORT_REJECTED },
		[CM_RX_REJ_STALE]   = { CM_TIMEWAIT,     ACT_REPORT_STALE },
	},
	[CM_MRA_REQ_SENT] = {
		[CM_CALL_FORGET]    = { CM_IDLE,         ACT_NOTHING },
		[CM_CALL_REP]       = { CM_REP_SENT,     ACT_SEND_REP },
		[CM_CALL_REJ]       = { CM_IDLE,         ACT_REJECT_REQ },
		[CM_CALL_DESTROY]   = { CM_IDLE,         ACT_REJECT_REQ },
		[CM_RX_REQ_DUP]     = { CM_MRA_REQ_SENT, ACT_SEND_MRA_TO_REQ },
		[CM_RX_REJ]         = { CM_IDLE,         ACT_REPORT_REJECTED },
		[CM_RX_REJ_STALE]   = { CM_TIMEWAIT,     ACT_REPORT_STALE },
	},
	[CM_REP_SENT] = {
		[CM_CALL_ESTABLISH] = { CM_ESTABLISHED,  ACT_REPORT_ESTABLISHED },
		[CM_CALL_REJ]       = { CM_TIMEWAIT,     ACT_REJECT_OTHER },
		[CM_CALL_DESTROY]   = { CM_TIMEWAIT,     ACT_REJECT_OTHER },
		[CM_RX_REQ_DUP]     = { CM_REP_SENT,     ACT_COUNT_DUPLICATE },
		[CM_RX_MRA_REP]     = { CM_MRA_REP_RCVD, ACT_EXTEND_DEADLINE },
		[CM_RX_RTU]         = { CM_ESTABLISHED,  ACT_REPORT_ESTABLISHED },
		[CM_RX_REJ]         = { CM_IDLE,         ACT_REPORT_REJECTED },
		[CM_RX_REJ_STALE]   = { CM_TIMEWAIT,     ACT_REPORT_STALE },
		[CM_RX_DREQ]        = { CM_DREQ_RCVD,    ACT_REPORT_DISCONNECTED },
		[CM_T_RESPONSE]     = { CM_REP_SENT,     ACT_REPEAT },
		[CM_T_SPENT]        = { CM_IDLE,         ACT_REPORT_UNREACHABLE },
	},
	[CM_MRA_REP_RCVD] = {
		[CM_CALL_ESTABLISH] = { CM_ESTABLISHED,  ACT_REPORT_ESTABLISHED },
		[CM_CALL_REJ]       = { CM_TIMEWAIT,     ACT_REJECT_OTHER },
		[CM_CALL_DESTROY]   = { CM_TIMEWAIT,     ACT_REJECT_OTHER },
		[CM_RX_REQ_DUP]     = { CM_MRA_REP_RCVD, ACT_COUNT_DUPLICATE },
		[CM_RX_MRA_REP]     = { CM_MRA_REP_RCVD, ACT_COUNT_DUPLICATE },
		[CM_RX_RTU]         = { CM_ESTABLISHED,  ACT_REPORT_ESTABLISHED },
		[CM_RX_REJ]         = { CM_IDLE,         ACT_REPORT_REJECTED },
		[CM_RX_REJ_STALE]   = { CM_TIMEWAIT,     ACT_REPORT_STALE },
		[CM_RX_DREQ]        = { CM_DREQ_RCVD,    ACT_REPORT_DISCONNECTED },
		[CM_T_RESPONSE]     = { CM_MRA_REP_RCVD, ACT_REPEAT },
		[CM_T_SPENT]        = { CM_IDLE,         ACT_REPORT_UNREACHABLE },
	},
	[CM_ESTABLISHED] = {
		[CM_CALL_DREQ]      = { CM_DREQ_SENT,    ACT_SEND_DREQ },
		[CM_CALL_DESTROY]   = { CM_DREQ_SENT,    ACT_SEND_DREQ },
		[CM_RX_REQ_DUP]     = { CM_ESTABLISHED,  ACT_COUNT_DUPLICATE },
		[CM_RX_REP_DUP]     = { CM_ESTABLISHED,  ACT_SEND_RTU },
		[CM_RX_RTU]         = { CM_ESTABLISHED,  ACT_COUNT_DUPLICATE },
		[CM_RX_REJ]         = { CM_TIMEWAIT,     ACT_REPORT_REJECTED },
		[CM_RX_REJ_STALE]   = { CM_TIMEWAIT,     ACT_REPORT_STALE },
		[CM_RX_DREQ]        = { CM_DREQ_RCVD,    ACT_REPORT_DISCONNECTED },
		[CM_PEER_RESTARTED] = { CM_DREQ_SENT,    ACT_SEND_DREQ },
	},
	[CM_DREQ_SENT] = {
		[CM_CALL_DESTROY]   = { CM_DREQ_SENT,    ACT_NOTHING },
		[CM_RX_DREQ]        = { CM_DREQ_RCVD,    ACT_REPORT_DISCONNECTED },
		[CM_RX_DREP]        = { CM_TIMEWAIT,     ACT_REPORT_DISCONNECTED },
		[CM_RX_REJ]         = { CM_TIMEWAIT,     ACT_REPORT_REJECTED },
		[CM_RX_REJ_STALE]   = { CM_TIMEWAIT,     ACT_REPORT_STALE },
		[CM_T_RESPONSE]     = { CM_DREQ_SENT,    ACT_REPEAT },
		[CM_T_SPENT]        = { CM_TIMEWAIT,     ACT_REPORT_DISCONNECT_UNANSWERED },
	},
	[CM_DREQ_RCVD] = {
		[CM_CALL_DREP]      = { CM_TIMEWAIT,     ACT_SEND_DREP },
		[CM_CALL_DESTROY]   = { CM_TIMEWAIT,     ACT_SEND_DREP },
		[CM_RX_DREQ]        = { CM_DREQ_RCVD,    ACT_COUNT_DUPLICATE },
		[CM_RX_DREP]        = { CM_TIMEWAIT,     ACT_NOTHING },
	},
	[CM_TIMEWAIT] = {
		[CM_CALL_DESTROY]   = { CM_TIMEWAIT,     ACT_NOTHING },
		[CM_RX_REQ_DUP]     = { CM_TIMEWAIT,     ACT_COUNT_DUPLICATE },
		[CM_RX_DREQ]        = { CM_TIMEWAIT,     ACT_SEND_DREP },
		[CM_T_TIMEWAIT]     = { CM_IDLE,         ACT_REPORT_TIMEWAIT_EXIT },
	},
	[CM_SIDR_REQ_SENT] = {
		[CM_CALL_DESTROY]   = { CM_IDLE,         ACT_NOTHING },
		[CM_RX_SIDR_REP]    = { CM_IDLE,         ACT_REPORT_ANSWERED },
		[CM_T_RESPONSE]     = { CM_SIDR_REQ_SENT, ACT_REPEAT },
		[CM_T_SPENT]        = { CM_IDLE,         ACT_REPORT_UNREACHABLE },
	},
	[CM_SIDR_REQ_RCVD] = {
		[CM_CALL_SIDR_REP]  = { CM_SIDR_REP_SENT, ACT_SEND_SIDR_REP },
		[CM_CALL_DESTROY]   = { CM_IDLE,         ACT_REFUSE_LOOKUP },
		[CM_RX_SIDR_REQ_DUP] = { CM_SIDR_REQ_RCVD, ACT_COUNT_DUPLICATE },
	},
	[CM_SIDR_REP_SENT] = {
		[CM_CALL_DESTROY]   = { CM_IDLE,         ACT_NOTHING },
		[CM_RX_SIDR_REQ_DUP] = { CM_SIDR_REP_SENT, ACT_REPEAT_SIDR_REP },
	},
};
/* clang-format on */

static void enter_state(struct cm_conn *conn, struct cm_context *ctx)
{
	cm_settle(conn, ctx->core);
	if (ctx->msg)
		cm_peer_answered(conn, ctx->core, ctx->msg->hdr.attr_id == CM_ATTR_MRA, ctx->now);
	cm_peer_forget(conn, ctx->core);
	if (conn->state == CM_IDLE)
		cm_unindex_peer(conn, ctx->core);
	if (conn->state == CM_TIMEWAIT)
		cm_begin_timewait(conn, ctx);
}

const struct cm_edge *cm_edge_of(enum cm_state state, enum cm_event event)
{
	assert(state < CM_N_STATES && event < CM_N_EVENTS);

	return &edges[state][event];
}

int cm_step(struct cm_conn *conn, enum cm_event event, struct cm_context *ctx)
{
	const struct cm_edge *edge = cm_edge_of((enum cm_state)conn->state, event);
	enum cm_state from = (enum cm_state)conn->state;

	if (!edge->act)
		return -EINVAL;
	conn->state = edge->to; /* the only transition of a connection's state */
	if (ctx->core->trace)
		ctx->core->trace(conn, from, event);
	if (from != edge->to)
		enter_state(conn, ctx);
	action[edge->act](conn, ctx);
	return 0;
}

bool cm_record_step(struct cm_record *record, enum cm_event event)
{
	const struct cm_edge *edge = cm_edge_of((enum cm_state)record->state, event);

	if (edge->act)
		record->state = edge->to;
	return edge->act != ACT_ILLEGAL;
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
