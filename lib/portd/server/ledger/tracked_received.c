/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message that is delivered to a client: the guards of cm/guard.c find its connection, which
 * stores the peer's ids. Internal to the tracker.
 */
#include <errno.h>

#include "cm/action.h"
#include "cm/guard.h"
#include "lib/portd/server/ledger/tracked_table.h"

/* --- how the guards find the client's connections ------------------------- */

static struct cm_record *find_by_local(const struct cm_arrival *in, uint32_t local_comm_id)
{
	const struct view *view = in->arg;
	struct tracked *tracked = tracked_of_local(view->tracker, local_comm_id);

	return tracked && tracked->client == view->client ? &tracked->is : NULL;
}

static struct cm_record *find_by_remote(const struct cm_arrival *in, uint64_t guid, uint32_t id)
{
	struct tracked *tracked = tracked_of_peer(in->arg, guid, id, TRACKED_IN(IDLE));

	return tracked ? &tracked->is : NULL;
}

/*
 * The client's core may have ended a connection that is live here. If it has not, the core itself
 * sends a REJ and a DREQ.
 */
static struct cm_record *find_no_qpn(const struct cm_arrival *in, uint64_t guid, uint32_t qpn)
{
	(void)in, (void)guid, (void)qpn;
	return NULL;
}

static const struct cm_lookups lookups = { find_by_local, find_by_remote, find_no_qpn };

/* --- a new connection ---------------------------------------------------- */

static struct cm_record record_of_lookup(const struct view *view)
{
	const struct cm_sidr_req *req = &view->msg->sidr_req;

	return (struct cm_record){ .handle = view->port,
				   .remote_comm_id = req->request_id,
				   .remote_ca_guid = req->service_id,
				   .tid = view->msg->hdr.tid,
				   .path = *view->path };
}

/* See tracker_close(). */
static void number_request(const struct view *view, struct tracked *tracked)
{
	if (!tracked->is.local_comm_id)
		tracked->handed = view->tracker->client[view->client].n_handed + 1;
}

static int track_request(const struct view *view, enum cm_event event)
{
	const struct cm_req *req = &view->msg->req;
	unsigned int tables = 1u << TRACKED_BY_REMOTE;
	struct tracked *tracked;
	struct cm_record is;

	if (event == CM_RX_REQ) {
		tables |= 1u << TRACKED_BY_QPN;
		is = tracked_begin(view);
		is.remote_comm_id = req->local_comm_id;
		is.remote_ca_guid = req->local_ca_guid;
		is.remote_qpn = req->local_qpn;
	} else {
		is = record_of_lookup(view);
	}
	if (!is.remote_comm_id)
		return 0;
	tracked = tracked_add(view->tracker, view->client);
	if (!tracked)
		return -ENOMEM;
	tracked_replace(view->tracker, tracked, &is, event == CM_RX_REQ ? 0 : PASSED_LOOKUP);
	/*
	 * No peer has several connections with the same id or queue pair; duplicates are compared
	 * one by one.
	 */
	if ((tracked->in & tables) != tables) {
		tracked_remove(view->tracker, tracked);
		return -ENOSPC;
	}
	number_request(view, tracked);
	return 0;
}

/* --- existing connections ------------------------------------------------- */

static void note_rep(const struct view *view, struct tracked *tracked)
{
	const uint8_t passed = tracked_after(tracked, CM_RX_REP);
	const struct cm_rep *rep = &view->msg->rep;
	struct cm_record is = tracked->is;

	if (passed == tracked->passed)
		return;
	is.remote_comm_id = rep->local_comm_id;
	is.remote_ca_guid = rep->local_ca_guid;
	is.remote_qpn = cm_rep_qpn(rep);
	is.local_ack_timeout = cm_ack_timeout(rep->target_ack_delay, is.packet_life_time);
	tracked_replace(view->tracker, tracked, &is, passed);
}

static void note_dreq(const struct view *view, struct tracked *tracked)
{
	const uint8_t passed = tracked->passed;

	tracked_pass(view->tracker, tracked, CM_RX_DREQ);
	if (tracked->passed != passed)
		tracked->is.tid = view->msg->hdr.tid; /* its response has this transaction id */
}

int tracker_received(struct tracker *tracker, uint16_t client, uint8_t port,
		     const struct mad_path *path, const struct cm_msg *msg, bool *ret_is_known)
{
	struct view view = { .tracker = tracker,
			     .client = client,
			     .port = port,
			     .path = path,
			     .peer = mad_path_peer(path),
			     .msg = msg };
	struct cm_arrival arrival = { &lookups, &view, msg, view.peer };
	struct cm_found found;
	enum cm_event event = cm_guard(&arrival, &found);
	struct tracked *tracked;

	*ret_is_known = found.is_known && msg->hdr.attr_id != CM_ATTR_SIDR_REP;
	if (event == CM_NO_EVENT)
		return 0;
	if (!found.record)
		return track_request(&view, event);
	tracked = container_of(found.record, struct tracked, is);
	number_request(&view, tracked);
	if (event == CM_RX_REP)
		note_rep(&view, tracked);
	else if (event == CM_RX_DREQ)
		note_dreq(&view, tracked);
	else
		tracked_pass(tracker, tracked, event);
	return 0;
}
