/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message that a client sends, which must be about a connection of that client. Internal to the
 * tracker.
 */
#include <errno.h>

#include "cm/action.h"
#include "cm/guard.h"
#include "lib/portd/server/ledger/tracked_table.h"

/* --- lookup --------------------------------------------------------------- */

const struct tracked *tracker_of_sent(struct tracker *tracker, uint16_t client,
				      const struct mad_path *path, const struct cm_msg *msg)
{
	const struct view view = { .tracker = tracker,
				   .client = client,
				   .peer = mad_path_peer(path) };
	const struct tracked *tracked;

	switch (msg->hdr.attr_id) {
	case CM_ATTR_REQ:
		return tracked_of_local(tracker, msg->req.local_comm_id);
	case CM_ATTR_SIDR_REQ:
		return NULL;
	case CM_ATTR_SIDR_REP:
		return tracked_of_peer(&view, msg->sidr_rep.service_id, msg->sidr_rep.request_id,
				       ~(TRACKED_IN(SIDR_REQ_RCVD) | TRACKED_IN(SIDR_REP_SENT)));
	}
	/* All others begin with both comm ids. */
	tracked = tracked_of_local(tracker, msg->rtu.local_comm_id);
	if (tracked || !msg->rtu.remote_comm_id)
		return tracked;
	switch (msg->hdr.attr_id) {
	case CM_ATTR_MRA:
	case CM_ATTR_REP:
	case CM_ATTR_REJ:
		return tracked_answered(tracker, client, &view.peer, msg->rtu.remote_comm_id);
	}
	return NULL;
}

bool tracked_is_again(const struct tracked *tracked, const struct cm_req *req)
{
	return tracked->is.active && tracked->starting_psn == req->starting_psn &&
	       tracked->is.local_qpn == req->local_qpn;
}

/* --- REQ ----------------------------------------------------------------- */

static int sent_req(const struct view *view, struct tracked *tracked)
{
	const struct cm_req *req = &view->msg->req;
	struct cm_record is = tracked_begin(view);

	if (!req->local_comm_id || (tracked && tracked->client != view->client))
		return -EPERM;
	/*
	 * A retransmission may have crossed its response. Any other REQ begins a new connection:
	 * the client's core knows that the old one has ended.
	 */
	if (tracked && tracked_is_again(tracked, req))
		return 0;
	if (!tracked && !view->may_add)
		return -EDQUOT;
	if (!tracked)
		tracked = tracked_add(view->tracker, view->client);
	if (!tracked)
		return -ENOMEM;
	is.active = true;
	is.local_comm_id = req->local_comm_id;
	is.local_qpn = req->local_qpn;
	tracked->is_told = false;
	tracked->starting_psn = req->starting_psn;
	tracked_replace(view->tracker, tracked, &is, 0);
	return 0;
}

/* --- SIDR ---------------------------------------------------------------- */

/*
 * The requester of a lookup needs no tracked connection, because it has nothing to end. A response
 * must name a request that was delivered to this client. A core that no longer has the service
 * responds without a connection, and will not close one.
 */
static int sent_sidr_rep(const struct view *view, struct tracked *tracked)
{
	if (!tracked || tracked->is.handle != view->port)
		return -EPERM;
	if (view->msg->sidr_rep.status == CM_SIDR_UNSUPPORTED && !tracked->is.local_comm_id)
		tracked_remove(view->tracker, tracked);
	else
		tracked_pass(view->tracker, tracked, CM_CALL_SIDR_REP);
	return 0;
}

/* --- connection of a message ---------------------------------------------- */

static bool is_rej(const struct view *view, enum cm_rej_reason reason)
{
	return view->msg->hdr.attr_id == CM_ATTR_REJ && view->msg->rej.reason == reason;
}

/* To a REP with the queue pair of a live connection; the core keeps waiting for another REP. */
static bool is_to_stale_rep(const struct view *view)
{
	return is_rej(view, CM_REJ_STALE_CONNECTION) && view->msg->rej.message == CM_ANSWERED_REP;
}

/* A REJ may lack the peer's comm id; a REJ of a stale REP has one that the core does not store. */
static bool may_name(const struct view *view, const struct tracked *tracked)
{
	if (tracked->is.remote_comm_id == view->remote_comm_id)
		return true;
	if (view->msg->hdr.attr_id != CM_ATTR_REJ)
		return false;
	return view->remote_comm_id == 0 ||
	       (tracked->is.remote_comm_id == 0 && is_to_stale_rep(view));
}

/*
 * The first response to a REQ has the client's comm id. If the request has one already, or was
 * rejected without, its core has taken the same REQ for a new one. A client may answer a request as
 * often as it likes, so connections that are alike are limited.
 */
static struct tracked *set_comm_id(const struct view *view, struct tracked *tracked)
{
	const bool is_another = tracked->is.local_comm_id || tracked->passed & PASSED_OUR_REJ;
	struct cm_record is = tracked->is;

	if (is_another)
		tracked = view->may_add ? tracked_add(view->tracker, view->client) : NULL;
	if (!tracked)
		return NULL;
	is.local_comm_id = view->local_comm_id;
	tracked_replace(view->tracker, tracked, &is, tracked->passed);
	if (!is_another || tracked->in & 1u << TRACKED_BY_REMOTE)
		return tracked;
	tracked_remove(view->tracker, tracked);
	return NULL;
}

/* A REJ may lack the client's comm id. */
static struct tracked *answered_req(const struct view *view, struct tracked *tracked)
{
	/* The peer's host may have leased the comm id to another program since. */
	if (tracked->is.active || tracked->passed & PASSED_ITS_REJ || tracked_has_ended(tracked))
		return NULL;
	if (view->local_comm_id)
		return set_comm_id(view, tracked);
	return tracked_is_in(tracked, TRACKED_IN(REQ_RCVD) | TRACKED_IN(IDLE)) ? tracked : NULL;
}

static struct tracked *check_connection(const struct view *view, struct tracked *tracked)
{
	if (!tracked || tracked->client != view->client || tracked->is.handle != view->port)
		return NULL;
	if (!view->local_comm_id || tracked->is.local_comm_id != view->local_comm_id)
		return answered_req(view, tracked);
	return tracked_is_of_peer(view, tracked) && may_name(view, tracked) ? tracked : NULL;
}

/* --- effects -------------------------------------------------------------- */

static void note_call(const struct view *view, struct tracked *tracked, enum cm_event call)
{
	if (is_to_stale_rep(view)) {
		if (tracked->is.active && !(tracked->passed & PASSED_RTU))
			tracked_take_back_rep(view->tracker, tracked);
		return;
	}
	/*
	 * The core makes no connection of a REQ that it rejects by itself, so it will not close
	 * one.
	 */
	if (!tracked->is.local_comm_id &&
	    (is_rej(view, CM_REJ_STALE_CONNECTION) || is_rej(view, CM_REJ_INVALID_SERVICE_ID))) {
		tracked_remove(view->tracker, tracked);
		return;
	}
	if (call == CM_CALL_REP && !tracked->passed) /* not in the table of that queue pair yet */
		tracked->is.local_qpn = cm_rep_qpn(&view->msg->rep);
	tracked_pass(view->tracker, tracked, call);
}

int tracker_sent(struct tracker *tracker, const struct tracked *of, uint16_t client, uint8_t port,
		 const struct mad_path *path, const struct cm_msg *msg, bool may_add)
{
	struct view view = { .tracker = tracker,
			     .client = client,
			     .port = port,
			     .path = path,
			     .peer = mad_path_peer(path),
			     .msg = msg,
			     .may_add = may_add };
	struct tracked *tracked = of ? tracked_at(tracker, of->index) : NULL;

	if (msg->hdr.attr_id == CM_ATTR_REQ)
		return sent_req(&view, tracked);
	if (msg->hdr.attr_id == CM_ATTR_SIDR_REQ)
		return 0;
	if (msg->hdr.attr_id == CM_ATTR_SIDR_REP)
		return sent_sidr_rep(&view, tracked);
	view.local_comm_id = msg->rtu.local_comm_id;
	view.remote_comm_id = msg->rtu.remote_comm_id;
	tracked = check_connection(&view, tracked);
	if (!tracked)
		return -EPERM;
	if (cm_call_of(msg) != CM_NO_EVENT)
		note_call(&view, tracked, cm_call_of(msg));
	return 0;
}
