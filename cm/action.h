/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The actions on the edges of the state machine. An action fills in effects and updates the
 * connection; it never chooses a state, sends, sleeps, allocates or locks. When it runs, the state
 * has already changed and its timer is stopped.
 */
#ifndef CM_ACTION_H
#define CM_ACTION_H

#include "cm/fsm.h"

cm_action act_nothing;	       /* legal, no effect */
cm_action act_count_duplicate; /* count a duplicate */

cm_action act_send_req;
cm_action act_send_rep;
cm_action act_send_rtu;
cm_action act_send_dreq;
cm_action act_send_drep;
cm_action act_send_mra_to_req;
cm_action act_send_mra_to_rep;
cm_action act_send_sidr_req;
cm_action act_send_sidr_rep;
cm_action act_repeat_sidr_rep; /* answer to a duplicate SIDR_REQ */
cm_action act_refuse_lookup;   /* status 2: the owner is gone */
cm_action act_repeat;	       /* retransmit the unanswered message */
cm_action act_extend_deadline; /* MRA: extend the deadline */

/* REJ, by the rejected message and whether the peer knows our comm id: IBTA vol. 1, 12.6.7. */
cm_action act_reject_req_unnamed; /* REQ; the peer knows no comm id of ours */
cm_action act_reject_req;
cm_action act_reject_rep;
cm_action act_reject_other;
cm_action act_reject_timeout;	/* reason 4: we no longer wait for the REP */
cm_action act_reject_stale_rep; /* reason 10 */

cm_action act_report_request;
cm_action act_report_lookup;   /* SIDR_REQ */
cm_action act_report_answered; /* SIDR_REP */
cm_action act_report_response;
cm_action act_report_established;
cm_action act_report_rejected;
cm_action act_report_stale; /* REJ 10: the peer retries with the same REQ */
cm_action act_report_unreachable;
cm_action act_report_disconnected;
cm_action act_report_disconnect_unanswered;
cm_action act_report_timewait_exit;

/** cm_settle() - on leaving a state, stop its timer and free its send slot. */
void cm_settle(struct cm_conn *conn, struct cm_core *core);

/** cm_count() - count a message that was dropped, or retransmitted, at a port. */
void cm_count(struct cm_core *core, struct cm_port *port, enum cm_counter counter,
	      uint16_t attr_id);

/** cm_rep_qpn() - QPN that a REP offers; an XRC target's is in the EECN field. */
uint32_t cm_rep_qpn(const struct cm_rep *rep);

/** cm_index_peer() - index a connection by the peer's comm id and queue pair. */
void cm_index_peer(struct cm_conn *conn, struct cm_core *core);

/** cm_index_lookup() - index a SIDR lookup, to recognise duplicates of the SIDR_REQ. */
void cm_index_lookup(struct cm_conn *conn, struct cm_core *core);

/** cm_unindex_peer() - stop matching later messages of the peer to this connection. */
void cm_unindex_peer(struct cm_conn *conn, struct cm_core *core);

/**
 * cm_begin_timewait() - arm the timer of TIMEWAIT
 *
 * The peer may reuse its queue pair from now on; a delayed REQ of the old connection is still
 * recognised as a duplicate.
 */
void cm_begin_timewait(struct cm_conn *conn, struct cm_context *ctx);

/** cm_admit() - send waiting messages while there are free send slots. */
void cm_admit(struct cm_port *port, struct cm_context *ctx);

/** cm_emit() - add a message to the effects. */
void cm_emit(struct cm_context *ctx, struct cm_port *port, const struct mad_path *path,
	     const struct cm_msg *msg);

#endif
