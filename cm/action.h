/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is done on the edges of the state machine. An action fills effects and remembers things in
 * the connection; it never chooses a state, sends, sleeps, allocates or locks. When it runs,
 * the state has changed and its timer was stopped.
 */
#ifndef CM_ACTION_H
#define CM_ACTION_H

#include "cm/fsm.h"

cm_action act_nothing;	       /* legal, and nothing to do */
cm_action act_count_duplicate; /* seen before: count it */

cm_action act_send_req;
cm_action act_send_rep;
cm_action act_send_rtu;
cm_action act_send_dreq;
cm_action act_send_drep;
cm_action act_send_mra_to_req;
cm_action act_send_mra_to_rep;
cm_action act_send_sidr_req;
cm_action act_send_sidr_rep;
cm_action act_repeat_sidr_rep; /* the lookup was repeated: the answer was lost, or crossed it */
cm_action act_refuse_lookup;   /* status 2: nobody is left to answer it */
cm_action act_repeat;	       /* the unanswered message once more */
cm_action act_be_patient;      /* MRA: move the deadline */

/* REJ, by what is rejected and whether the peer knows our comm id: IBTA vol. 1, 12.6.7. */
cm_action act_reject_req_unnamed; /* REQ; the peer never learnt an id of ours */
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
cm_action act_report_stale; /* REJ 10: the peer tries again, with the same REQ */
cm_action act_report_unreachable;
cm_action act_report_disconnected;
cm_action act_report_disconnect_unanswered;
cm_action act_report_timewait_exit;

/** cm_settle() - a state is left: stop its timer, give back its turn to send. */
void cm_settle(struct cm_conn *conn, struct cm_core *core);

/** cm_count() - a message has come to nothing at a port, or was said again there. */
void cm_count(struct cm_core *core, struct cm_port *port, enum cm_counter counter,
	      uint16_t attr_id);

/** cm_rep_qpn() - whose queue pair a REP offers: an XRC target's stands in the EECN. */
uint32_t cm_rep_qpn(const struct cm_rep *rep);

/** cm_index_peer() - by what the connection remembers of the peer, later messages find it. */
void cm_index_peer(struct cm_conn *conn, struct cm_core *core);

/** cm_index_lookup() - the same for a lookup, of which a repeated SIDR_REQ is all that can come. */
void cm_index_lookup(struct cm_conn *conn, struct cm_core *core);

/** cm_unindex_peer() - later messages of the peer are no longer duplicates of this connection. */
void cm_unindex_peer(struct cm_conn *conn, struct cm_core *core);

/**
 * cm_begin_timewait() - arm the timer of TIMEWAIT
 *
 * The peer may use its queue pair again from now on; a REQ of the old connection that was held up
 * on the way is still known for what it is.
 */
void cm_begin_timewait(struct cm_conn *conn, struct cm_turn *turn);

/** cm_admit() - send what waited for its turn, as far as there is room. */
void cm_admit(struct cm_port *port, struct cm_turn *turn);

/** cm_emit() - put a message into the effects. */
void cm_emit(struct cm_turn *turn, struct cm_port *port, const struct mad_path *path,
	     const struct cm_msg *msg);

#endif
