/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a message that a client sends tells of its connection: which call its core has got, and
 * with that where it is in the table of cm/fsm.c. Part of will.h.
 */
#include <errno.h>

#include "cm/action.h"
#include "cm/guard.h"
#include "lib/portd/server/will_view.h"

/* --- REQ ----------------------------------------------------------------- */

/* A repetition may have crossed its answer. Else the client's core begins anew with a connection
 * of which it knows that it is over. */
static bool is_repetition(const struct will *will, const struct cm_req *req)
{
	return will->is.active && will->starting_psn == req->starting_psn &&
	       will->is.local_qpn == req->local_qpn;
}

static int sent_req(const struct view *view)
{
	const struct cm_req *req = &view->msg->req;
	struct will *will = will_of_local(view->wills, req->local_comm_id);
	struct cm_record is = will_begin(view, CM_CALL_REQ);

	if (!req->local_comm_id || (will && will->client != view->client))
		return -EPERM;
	if (will && is_repetition(will, req))
		return 0;
	if (!will)
		will = will_add(view->wills, view->client);
	if (!will)
		return -ENOMEM;
	is.active = true;
	is.local_comm_id = req->local_comm_id;
	is.local_qpn = req->local_qpn;
	will->is_refused = false;
	will->starting_psn = req->starting_psn;
	will_replace(view->wills, will, &is);
	return 0;
}

/* --- SIDR ---------------------------------------------------------------- */

/*
 * Who looks up needs no will: to end it there is nothing to say. The answer names what was asked,
 * which must have been asked of this client. A core that serves the service no more answers without
 * a connection, and will close none.
 */
static int sent_sidr_rep(const struct view *view)
{
	const struct cm_sidr_rep *rep = &view->msg->sidr_rep;
	struct will *will = will_of_peer(view, WILL_BY_REMOTE, &rep->service_id, rep->request_id,
					 ~(WILL_IN(SIDR_REQ_RCVD) | WILL_IN(SIDR_REP_SENT)));

	if (!will || will->is.handle != view->port)
		return -EPERM;
	if (rep->status == CM_SIDR_UNSUPPORTED && !will->is.local_comm_id)
		will_remove(view->wills, will);
	else
		will_step(view->wills, will, CM_CALL_SIDR_REP);
	return 0;
}

/* --- which connection it is about ---------------------------------------- */

static bool is_rej(const struct view *view, enum cm_rej_reason reason)
{
	return view->msg->hdr.attr_id == CM_ATTR_REJ && view->msg->rej.reason == reason;
}

/* To a REP with the queue pair of a living connection; the core goes on waiting for another. */
static bool is_to_stale_rep(const struct view *view)
{
	return is_rej(view, CM_REJ_STALE_CONNECTION) && view->msg->rej.message == CM_ANSWERED_REP;
}

/* A REJ may leave out the peer's comm id, and to a stale REP it names one that the core does not
 * take for its peer's. */
static bool may_name(const struct view *view, const struct will *will)
{
	if (will->is.remote_comm_id == view->remote_comm_id)
		return true;
	if (view->msg->hdr.attr_id != CM_ATTR_REJ)
		return false;
	return view->remote_comm_id == 0 || (will->is.remote_comm_id == 0 && is_to_stale_rep(view));
}

static bool is_answer_to_req(const struct cm_msg *msg)
{
	return msg->hdr.attr_id == CM_ATTR_MRA || msg->hdr.attr_id == CM_ATTR_REP ||
	       msg->hdr.attr_id == CM_ATTR_REJ;
}

/* The REQ was handed out again before the client had rejected it, and for its core it was new. */
static struct will *again(const struct view *view, const struct will *rejected)
{
	struct will *will = will_add(view->wills, view->client);

	if (!will)
		return NULL;
	will->is = rejected->is;
	cm_record_begin(&will->is, CM_RX_REQ);
	return will;
}

/* The first answer to a REQ tells the client's comm id. */
static struct will *name(const struct view *view, struct will *will)
{
	struct cm_record is;

	if (will && will->is_rejected)
		will = again(view, will);
	if (!will)
		return NULL;
	is = will->is;
	is.local_comm_id = view->local_comm_id;
	will_replace(view->wills, will, &is);
	return will;
}

/* A REJ may do without a comm id of the client. */
static struct will *answered_req(const struct view *view)
{
	struct will *will;

	if (!view->remote_comm_id || !is_answer_to_req(view->msg))
		return NULL;
	will = will_unnamed(view->wills, view->client, &view->peer, view->remote_comm_id);
	if (!will && !view->local_comm_id)
		will = will_of_peer(view, WILL_BY_REMOTE, NULL, view->remote_comm_id,
				    ~WILL_IN(REQ_RCVD));
	if (!will || will->is.handle != view->port)
		return NULL;
	return view->local_comm_id ? name(view, will) : will;
}

static struct will *about(const struct view *view)
{
	struct will *will = will_of_local(view->wills, view->local_comm_id);

	if (!will)
		return answered_req(view);
	if (will->client != view->client || will->is.handle != view->port ||
	    !will_is_of_peer(view, will) || !may_name(view, will))
		return NULL;
	return will;
}

/* --- what it does -------------------------------------------------------- */

/*
 * Messages cross. The client's core was further when it sent this one: a CALL_ESTABLISH says
 * nothing to the peer, and a DREQ may have come in that this will has not taken. Or it was not yet
 * where the will is, and has dropped since what led there: its REJ ends the connection, as the
 * peer's would.
 */
/* clang-format off */
static const struct missed {
	enum cm_event call;
	unsigned int in;
	enum cm_event first; /* then the call, if it is legal there */
} missed[] = {
	{ CM_CALL_REJ,  WILL_IN(ESTABLISHED), CM_RX_REJ },
	{ CM_CALL_REJ,  WILL_IN(DREQ_RCVD), CM_CALL_DREP },
	{ CM_CALL_DREQ, WILL_IN(REP_SENT) | WILL_IN(MRA_REP_RCVD), CM_CALL_ESTABLISH },
	{ CM_CALL_DREP, WILL_IN(REP_SENT) | WILL_IN(MRA_REP_RCVD) | WILL_IN(ESTABLISHED) |
			WILL_IN(DREQ_SENT), CM_RX_DREQ },
};
/* clang-format on */

static void catch_up(const struct view *view, struct will *will, enum cm_event call)
{
	unsigned int i;

	for (i = 0; i < sizeof(missed) / sizeof(missed[0]); i++) {
		if (missed[i].call == call && will_is_in(will, missed[i].in)) {
			will_step(view->wills, will, missed[i].first);
			will_step(view->wills, will, call);
			return;
		}
	}
}

/* The will has believed the REP, and maybe a REJ of the same peer. The core has not. */
static void take_back_rep(const struct view *view, struct will *will)
{
	struct cm_record is = will->is;

	cm_record_begin(&is, CM_CALL_REQ);
	is.remote_comm_id = 0;
	will_replace(view->wills, will, &is);
}

/* Of a REQ that the core refuses by itself it makes no connection, so it will not close one. */
static bool is_core_refusal(const struct view *view, const struct will *will)
{
	return !will->is.local_comm_id &&
	       (is_rej(view, CM_REJ_STALE_CONNECTION) || is_rej(view, CM_REJ_INVALID_SERVICE_ID));
}

static void sent(const struct view *view, struct will *will, enum cm_event call)
{
	if (is_to_stale_rep(view)) {
		if (will_is_in(will, WILL_IN(REP_RCVD) | WILL_IN(TIMEWAIT)))
			take_back_rep(view, will);
		return;
	}
	if (is_core_refusal(view, will)) {
		will_remove(view->wills, will);
		return;
	}
	if (call == CM_CALL_REP && will_is_in(will, WILL_IN(REQ_RCVD) | WILL_IN(MRA_REQ_SENT)))
		will->is.local_qpn = cm_rep_qpn(&view->msg->rep);
	if (!will_step(view->wills, will, call))
		catch_up(view, will, call);
	will->is_rejected = call == CM_CALL_REJ && will_is_in(will, WILL_IN(IDLE));
}

int wills_sent(struct wills *wills, uint16_t client, uint8_t port, const struct mad_path *path,
	       const struct cm_msg *msg)
{
	struct view view = { .wills = wills,
			     .client = client,
			     .port = port,
			     .path = path,
			     .peer = cm_peer_gid(path),
			     .msg = msg };
	struct will *will;

	if (msg->hdr.attr_id == CM_ATTR_REQ)
		return sent_req(&view);
	if (msg->hdr.attr_id == CM_ATTR_SIDR_REQ)
		return 0;
	if (msg->hdr.attr_id == CM_ATTR_SIDR_REP)
		return sent_sidr_rep(&view);
	/* All others begin with the two ids. */
	view.local_comm_id = msg->rtu.local_comm_id;
	view.remote_comm_id = msg->rtu.remote_comm_id;
	will = about(&view);
	if (!will)
		return -EPERM;
	if (cm_call_of(msg) != CM_NO_EVENT)
		sent(&view, will, cm_call_of(msg));
	return 0;
}
