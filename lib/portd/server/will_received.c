/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a message does that is handed to a client: what the guards of cm/guard.c and the table of
 * cm/fsm.c say. Part of will.h.
 */
#include <errno.h>

#include "cm/action.h"
#include "cm/guard.h"
#include "lib/portd/server/will_view.h"

/* --- how the guards find the client's connections ------------------------- */

static struct cm_record *find_by_local(const struct cm_arrival *in, uint32_t local_comm_id)
{
	const struct view *view = in->arg;
	struct will *will = will_of_local(view->wills, local_comm_id);

	return will && will->client == view->client ? &will->is : NULL;
}

static struct cm_record *find_by_remote(const struct cm_arrival *in, uint64_t guid, uint32_t id)
{
	struct will *will = will_of_peer(in->arg, WILL_BY_REMOTE, &guid, id, WILL_IN(IDLE));

	return will ? &will->is : NULL;
}

/* A connection that lives here may be over in the client's core. If it is not, its core will say so
 * with a REJ, and with a DREQ. */
static struct cm_record *find_no_qpn(const struct cm_arrival *in, uint64_t guid, uint32_t qpn)
{
	(void)in, (void)guid, (void)qpn;
	return NULL;
}

static const struct cm_lookups lookups = { find_by_local, find_by_remote, find_no_qpn };

/* --- a new connection ---------------------------------------------------- */

static struct cm_record record_of_req(const struct view *view)
{
	const struct cm_req *req = &view->msg->req;
	struct cm_record is = will_begin(view, CM_RX_REQ);

	is.remote_comm_id = req->local_comm_id;
	is.remote_ca_guid = req->local_ca_guid;
	is.remote_qpn = req->local_qpn;
	return is;
}

static struct cm_record record_of_lookup(const struct view *view)
{
	const struct cm_sidr_req *req = &view->msg->sidr_req;
	struct cm_record is = { .handle = view->port,
				.remote_comm_id = req->request_id,
				.remote_ca_guid = req->service_id,
				.tid = view->msg->hdr.tid,
				.path = *view->path };

	cm_record_begin(&is, CM_RX_SIDR_REQ);
	return is;
}

/* 0 is no comm id: nothing could be found by it, and no answer would reach the peer. */
static int take_request(const struct view *view, enum cm_event event)
{
	struct cm_record is = event == CM_RX_REQ ? record_of_req(view) : record_of_lookup(view);
	struct will *will;

	if (!is.remote_comm_id)
		return 0;
	will = will_add(view->wills, view->client);
	if (!will)
		return -ENOMEM;
	will_replace(view->wills, will, &is);
	return 0;
}

/* --- one that is there --------------------------------------------------- */

static void take_rep(const struct view *view, struct will *will)
{
	const struct cm_rep *rep = &view->msg->rep;
	struct cm_record is = will->is;

	if (!cm_record_step(&is, CM_RX_REP))
		return;
	is.remote_comm_id = rep->local_comm_id;
	is.remote_ca_guid = rep->local_ca_guid;
	is.remote_qpn = cm_rep_qpn(rep);
	is.local_ack_timeout = cm_ack_timeout(rep->target_ack_delay, is.packet_life_time);
	will_replace(view->wills, will, &is);
}

static void take_dreq(const struct view *view, struct will *will)
{
	bool was_told = will_is_in(will, WILL_IN(DREQ_RCVD));

	if (will_step(view->wills, will, CM_RX_DREQ) && !was_told &&
	    will_is_in(will, WILL_IN(DREQ_RCVD)))
		will->is.tid = view->msg->hdr.tid; /* its answer bears it */
}

static void take_stale_rej(const struct view *view, struct will *will)
{
	if (!cm_edge_of((enum cm_state)will->is.state, CM_RX_REJ_STALE)->act)
		return;
	will->is_refused = true;
	will_step(view->wills, will, CM_RX_REJ_STALE);
}

static void happen(const struct view *view, struct will *will, enum cm_event event)
{
	if (event == CM_RX_REP)
		take_rep(view, will);
	else if (event == CM_RX_DREQ)
		take_dreq(view, will);
	else if (event == CM_RX_REJ_STALE)
		take_stale_rej(view, will);
	else
		will_step(view->wills, will, event);
}

static enum cm_event guard(struct view *view, struct cm_found *ret)
{
	struct cm_arrival arrival = { &lookups, view, view->msg, view->peer };

	return cm_guard(&arrival, ret);
}

bool wills_know(struct wills *wills, uint16_t client, const struct mad_path *path,
		const struct cm_msg *msg)
{
	struct view view = { .wills = wills,
			     .client = client,
			     .path = path,
			     .peer = cm_peer_gid(path),
			     .msg = msg };
	struct cm_found found;

	guard(&view, &found);
	return found.is_known && msg->hdr.attr_id != CM_ATTR_SIDR_REP;
}

int wills_received(struct wills *wills, uint16_t client, uint8_t port, const struct mad_path *path,
		   const struct cm_msg *msg)
{
	struct view view = { .wills = wills,
			     .client = client,
			     .port = port,
			     .path = path,
			     .peer = cm_peer_gid(path),
			     .msg = msg };
	struct cm_found found;
	enum cm_event event = guard(&view, &found);

	if (event == CM_NO_EVENT)
		return 0;
	if (!found.record)
		return take_request(&view, event);
	happen(&view, container_of(found.record, struct will, is), event);
	return 0;
}
