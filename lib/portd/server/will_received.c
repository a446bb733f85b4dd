/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a message does that is handed to a client: the guards are those of cm/demux.c, the rest is
 * the table of cm/fsm.c. Part of will.h.
 */
#include <errno.h>

#include "cm/action.h"
#include "lib/portd/server/will_view.h"

/* --- finding, as cm/demux.c does ----------------------------------------- */

static struct will *find_by_remote(const struct view *view, uint64_t ca_guid, uint32_t comm_id)
{
	return will_of_peer(view, WILL_BY_REMOTE, &ca_guid, comm_id, WILL_IN(IDLE));
}

static struct will *find_by_local(const struct view *view)
{
	struct will *will = will_of_local(view->wills, view->local_comm_id);

	return will && will->client == view->client && will_is_of_peer(view, will) ? will : NULL;
}

static struct will *find_pair(const struct view *view)
{
	struct will *will = find_by_local(view);

	return will && will->is.remote_comm_id == view->remote_comm_id ? will : NULL;
}

static struct will *find_unanswered(const struct view *view)
{
	struct will *will = find_by_local(view);

	return will && will->is.remote_comm_id == 0 ? will : NULL;
}

/* --- one receiver a message ---------------------------------------------- */

static void step(const struct view *view, struct will *will, enum cm_event event)
{
	if (will)
		will_step(view->wills, will, event);
}

/* If the queue pair is one of a living connection, the client's core will refuse the REQ, and end
 * that connection with a DREQ. */
static int received_req(const struct view *view)
{
	const struct cm_req *req = &view->msg->req;
	struct cm_record is = will_begin(view, CM_REQ_RCVD);
	struct will *will;

	/* 0 is no comm id: nothing could be found by it, and no answer would reach the peer. */
	if (!req->local_comm_id || find_by_remote(view, req->local_ca_guid, req->local_comm_id))
		return 0;
	will = will_add(view->wills, view->client);
	if (!will)
		return -ENOMEM;
	is.remote_comm_id = req->local_comm_id;
	is.remote_ca_guid = req->local_ca_guid;
	is.remote_qpn = req->local_qpn;
	will_replace(view->wills, will, &is);
	return 0;
}

static int received_sidr_req(const struct view *view)
{
	const struct cm_sidr_req *req = &view->msg->sidr_req;
	struct cm_record is = { .state = CM_SIDR_REQ_RCVD,
				.handle = view->port,
				.remote_comm_id = req->request_id,
				.remote_ca_guid = req->service_id,
				.tid = view->msg->hdr.tid,
				.path = *view->path };
	struct will *will;

	if (!req->request_id || find_by_remote(view, req->service_id, req->request_id))
		return 0;
	will = will_add(view->wills, view->client);
	if (!will)
		return -ENOMEM;
	will_replace(view->wills, will, &is);
	return 0;
}

static int received_mra(const struct view *view)
{
	if (view->msg->mra.message == CM_ANSWERED_REQ)
		step(view, find_unanswered(view), CM_RX_MRA_REQ);
	else if (view->msg->mra.message == CM_ANSWERED_REP)
		step(view, find_pair(view), CM_RX_MRA_REP);
	return 0;
}

/* If the queue pair is one of a living connection, the client's core will say so with a REJ. */
static void take_rep(const struct view *view, struct will *will)
{
	const struct cm_rep *rep = &view->msg->rep;
	struct cm_record is = will->is;

	is.state = CM_REP_RCVD;
	is.remote_comm_id = rep->local_comm_id;
	is.remote_ca_guid = rep->local_ca_guid;
	is.remote_qpn = cm_rep_qpn(rep);
	is.local_ack_timeout = cm_ack_timeout(rep->target_ack_delay, is.packet_life_time);
	will_replace(view->wills, will, &is);
}

static int received_rep(const struct view *view)
{
	const struct cm_rep *rep = &view->msg->rep;
	struct will *will = find_unanswered(view);

	if (will && will_is_in(will, WILL_IN(REQ_SENT) | WILL_IN(MRA_REQ_RCVD)) &&
	    !find_by_remote(view, rep->local_ca_guid, rep->local_comm_id))
		take_rep(view, will);
	return 0;
}

static int received_rtu(const struct view *view)
{
	step(view, find_pair(view), CM_RX_RTU);
	return 0;
}

static uint64_t guid_of(const struct cm_rej *rej)
{
	uint64_t guid = 0;
	unsigned int i;

	for (i = 0; i < sizeof(guid); i++)
		guid = guid << 8 | rej->ari[i];
	return guid;
}

static struct will *find_rejected(const struct view *view)
{
	const struct cm_rej *rej = &view->msg->rej;

	if (rej->reason == CM_REJ_TIMEOUT)
		return find_by_remote(view, guid_of(rej), rej->local_comm_id);
	return rej->message == CM_ANSWERED_REQ ? find_unanswered(view) : find_pair(view);
}

static int received_rej(const struct view *view)
{
	bool is_stale = view->msg->rej.reason == CM_REJ_STALE_CONNECTION;
	struct will *will = find_rejected(view);

	if (!will)
		return 0;
	if (!is_stale) {
		will_step(view->wills, will, CM_RX_REJ);
	} else if (cm_edge_of((enum cm_state)will->is.state, CM_RX_REJ_STALE)->act) {
		will->is_refused = true;
		will_step(view->wills, will, CM_RX_REJ_STALE);
	}
	return 0;
}

static int received_dreq(const struct view *view)
{
	struct will *will = find_pair(view);
	bool was_told;

	if (!will || will->is.local_qpn != view->msg->dreq.remote_qpn)
		return 0;
	was_told = will_is_in(will, WILL_IN(DREQ_RCVD));
	will_step(view->wills, will, CM_RX_DREQ);
	if (!was_told && will_is_in(will, WILL_IN(DREQ_RCVD)))
		will->is.tid = view->msg->hdr.tid; /* its answer bears it */
	return 0;
}

static int received_drep(const struct view *view)
{
	step(view, find_pair(view), CM_RX_DREP);
	return 0;
}

static int (*const receivers[CM_ATTR_APR + 1])(const struct view *) = {
	[CM_ATTR_REQ] = received_req,	[CM_ATTR_MRA] = received_mra,
	[CM_ATTR_REJ] = received_rej,	[CM_ATTR_REP] = received_rep,
	[CM_ATTR_RTU] = received_rtu,	[CM_ATTR_DREQ] = received_dreq,
	[CM_ATTR_DREP] = received_drep, [CM_ATTR_SIDR_REQ] = received_sidr_req,
};

/* All but REQ and SIDR begin with the two ids, the sender's first. */
static struct view look(struct wills *wills, uint16_t client, const struct mad_path *path,
			const struct cm_msg *msg)
{
	return (struct view){ .wills = wills,
			      .client = client,
			      .path = path,
			      .peer = cm_peer_gid(path),
			      .msg = msg,
			      .local_comm_id = msg->rtu.remote_comm_id,
			      .remote_comm_id = msg->rtu.local_comm_id };
}

static bool may_answer_req(const struct cm_msg *msg)
{
	return msg->hdr.attr_id == CM_ATTR_REP || msg->hdr.attr_id == CM_ATTR_MRA ||
	       msg->hdr.attr_id == CM_ATTR_REJ;
}

bool wills_know(struct wills *wills, uint16_t client, const struct mad_path *path,
		const struct cm_msg *msg)
{
	struct view view = look(wills, client, path, msg);

	if (msg->hdr.attr_id == CM_ATTR_REQ || msg->hdr.attr_id == CM_ATTR_SIDR_REQ ||
	    msg->hdr.attr_id == CM_ATTR_SIDR_REP)
		return false;
	return find_pair(&view) || (may_answer_req(msg) && find_unanswered(&view));
}

int wills_received(struct wills *wills, uint16_t client, uint8_t port, const struct mad_path *path,
		   const struct cm_msg *msg)
{
	struct view view = look(wills, client, path, msg);

	view.port = port;
	return receivers[msg->hdr.attr_id] ? receivers[msg->hdr.attr_id](&view) : 0;
}
