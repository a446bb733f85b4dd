/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Effects of a message that a client sends: it shows which call the client's core has got, and thus
 * the transition in the table of cm/fsm.c. Internal to the tracker.
 */
#include <errno.h>

#include "cm/action.h"
#include "cm/guard.h"
#include "lib/portd/server/ledger/tracked_view.h"

/* --- REQ ----------------------------------------------------------------- */

static int sent_req(const struct view *view)
{
	const struct cm_req *req = &view->msg->req;
	struct tracked *tracked = tracked_of_local(view->tracker, req->local_comm_id);
	struct cm_record is = tracked_begin(view, CM_CALL_REQ);

	if (!req->local_comm_id || (tracked && tracked->client != view->client))
		return -EPERM;
	/*
	 * A retransmission may have crossed its response. Any other REQ begins a new connection:
	 * the client's core knows that the old one has ended.
	 */
	if (tracked && tracked->is.active && tracked->starting_psn == req->starting_psn &&
	    tracked->is.local_qpn == req->local_qpn)
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
	tracked->is_refused = tracked->is_told = false;
	tracked->starting_psn = req->starting_psn;
	tracked_replace(view->tracker, tracked, &is);
	return 0;
}

/* --- SIDR ---------------------------------------------------------------- */

/*
 * The requester of a lookup needs no tracked connection, because it has nothing to end. A response
 * must name a request that was delivered to this client. A core that no longer has the service
 * responds without a connection, and will not close one.
 */
static int sent_sidr_rep(const struct view *view)
{
	const struct cm_sidr_rep *rep = &view->msg->sidr_rep;
	struct tracked *tracked =
		tracked_of_peer(view, TRACKED_BY_REMOTE, &rep->service_id, rep->request_id,
				~(TRACKED_IN(SIDR_REQ_RCVD) | TRACKED_IN(SIDR_REP_SENT)));

	if (!tracked || tracked->is.handle != view->port)
		return -EPERM;
	if (rep->status == CM_SIDR_UNSUPPORTED && !tracked->is.local_comm_id)
		tracked_remove(view->tracker, tracked);
	else
		tracked_step(view->tracker, tracked, CM_CALL_SIDR_REP);
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
 * The REQ was delivered again before the client had rejected it, and was new for its core. Not more
 * often than other connections that are alike: the client may say so as often as it likes.
 */
static struct tracked *track_again(const struct view *view, const struct tracked *rejected)
{
	const struct cm_key key = { .gid = view->peer, .id = view->remote_comm_id };
	struct tracked *tracked;

	if (!view->may_add || tracked_has_enough(view->tracker, TRACKED_BY_REMOTE, &key))
		return NULL;
	tracked = tracked_add(view->tracker, view->client);
	if (!tracked)
		return NULL;
	tracked->is = rejected->is;
	cm_record_begin(&tracked->is, CM_RX_REQ);
	return tracked;
}

/* The first response to a REQ has the client's comm id. */
static struct tracked *set_comm_id(const struct view *view, struct tracked *tracked)
{
	struct cm_record is;

	if (tracked && tracked->is_rejected)
		tracked = track_again(view, tracked);
	if (!tracked)
		return NULL;
	is = tracked->is;
	is.local_comm_id = view->local_comm_id;
	tracked_replace(view->tracker, tracked, &is);
	return tracked;
}

/* A REJ may lack the client's comm id. */
static struct tracked *answered_req(const struct view *view)
{
	uint16_t attr = view->msg->hdr.attr_id;
	struct tracked *tracked;

	if (!view->remote_comm_id ||
	    (attr != CM_ATTR_MRA && attr != CM_ATTR_REP && attr != CM_ATTR_REJ))
		return NULL;
	tracked = tracked_unnamed(view->tracker, view->client, &view->peer, view->remote_comm_id);
	if (!tracked && !view->local_comm_id)
		tracked = tracked_of_peer(view, TRACKED_BY_REMOTE, NULL, view->remote_comm_id,
					  ~TRACKED_IN(REQ_RCVD));
	if (!tracked || tracked->is.handle != view->port)
		return NULL;
	return view->local_comm_id ? set_comm_id(view, tracked) : tracked;
}

static struct tracked *tracked_of_message(const struct view *view)
{
	struct tracked *tracked = tracked_of_local(view->tracker, view->local_comm_id);

	if (!tracked)
		return answered_req(view);
	if (tracked->client != view->client || tracked->is.handle != view->port ||
	    !tracked_is_of_peer(view, tracked) || !may_name(view, tracked))
		return NULL;
	return tracked;
}

/* --- effects -------------------------------------------------------------- */

/*
 * Messages cross. The client's core may have been ahead when it sent this one: CALL_ESTABLISH sends
 * no message, and it may have read a DREQ that was not applied here. Or the core was behind, and
 * has dropped the messages that were applied here: its REJ ends the connection, as the peer's
 * would.
 */
/* clang-format off */
static const struct missed {
	enum cm_event call;
	unsigned int in;
	enum cm_event first; /* followed by the call, if it is valid there */
} missed[] = {
	{ CM_CALL_REJ,  TRACKED_IN(ESTABLISHED), CM_RX_REJ },
	{ CM_CALL_REJ,  TRACKED_IN(DREQ_RCVD), CM_CALL_DREP },
	{ CM_CALL_DREQ, TRACKED_IN(REP_SENT) | TRACKED_IN(MRA_REP_RCVD), CM_CALL_ESTABLISH },
	{ CM_CALL_DREP, TRACKED_IN(REP_SENT) | TRACKED_IN(MRA_REP_RCVD) | TRACKED_IN(ESTABLISHED) |
			TRACKED_IN(DREQ_SENT), CM_RX_DREQ },
};
/* clang-format on */

static void catch_up(const struct view *view, struct tracked *tracked, enum cm_event call)
{
	unsigned int i;

	for (i = 0; i < sizeof(missed) / sizeof(missed[0]); i++) {
		if (missed[i].call == call && tracked_is_in(tracked, missed[i].in)) {
			tracked_step(view->tracker, tracked, missed[i].first);
			tracked_step(view->tracker, tracked, call);
			return;
		}
	}
}

/*
 * The tracked connection has accepted the REP, and maybe a REJ from the same peer; the core has
 * not.
 */
static void take_back_rep(const struct view *view, struct tracked *tracked)
{
	struct cm_record is = tracked->is;

	cm_record_begin(&is, CM_CALL_REQ);
	is.remote_comm_id = 0;
	tracked_replace(view->tracker, tracked, &is);
}

static void step_by_call(const struct view *view, struct tracked *tracked, enum cm_event call)
{
	if (is_to_stale_rep(view)) {
		if (tracked_is_in(tracked, TRACKED_IN(REP_RCVD) | TRACKED_IN(TIMEWAIT)))
			take_back_rep(view, tracked);
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
	if (call == CM_CALL_REP && /* in states that are not in the table by that queue pair */
	    tracked_is_in(tracked, TRACKED_IN(REQ_RCVD) | TRACKED_IN(MRA_REQ_SENT)))
		tracked->is.local_qpn = cm_rep_qpn(&view->msg->rep);
	if (!tracked_step(view->tracker, tracked, call))
		catch_up(view, tracked, call);
	tracked->is_rejected = call == CM_CALL_REJ && tracked_is_in(tracked, TRACKED_IN(IDLE));
}

int tracker_sent(struct tracker *tracker, uint16_t client, uint8_t port,
		 const struct mad_path *path, const struct cm_msg *msg, bool may_add)
{
	struct view view = { .tracker = tracker,
			     .client = client,
			     .port = port,
			     .path = path,
			     .peer = mad_path_peer(path),
			     .msg = msg,
			     .may_add = may_add };
	struct tracked *tracked;

	if (msg->hdr.attr_id == CM_ATTR_REQ)
		return sent_req(&view);
	if (msg->hdr.attr_id == CM_ATTR_SIDR_REQ)
		return 0;
	if (msg->hdr.attr_id == CM_ATTR_SIDR_REP)
		return sent_sidr_rep(&view);
	/* All others begin with both comm ids. */
	view.local_comm_id = msg->rtu.local_comm_id;
	view.remote_comm_id = msg->rtu.remote_comm_id;
	tracked = tracked_of_message(&view);
	if (!tracked)
		return -EPERM;
	if (cm_call_of(msg) != CM_NO_EVENT)
		step_by_call(&view, tracked, cm_call_of(msg));
	return 0;
}
