/* SPDX-License-Identifier: BSD-2-Clause */
/* The guards, one function per kind of message: see guard.h. */
#include "cm/guard.h"

#include <string.h>

#include "cm/action.h"

/* --- the connection that a message names --------------------------------- */

/*
 * Finds the connection with this local comm id if its peer sent the message: comm ids travel in the
 * clear and can be guessed.
 */
static bool names_local(const struct cm_arrival *in, uint32_t local_comm_id, struct cm_found *ret)
{
	struct cm_record *record = in->lookups->by_local(in, local_comm_id);
	struct mad_gid peer;

	if (!record)
		return false;
	peer = mad_path_peer(&record->path);
	if (memcmp(&in->peer, &peer, sizeof(peer)) != 0) {
		ret->why = CM_COUNT_ALIEN;
		return false;
	}
	ret->record = record;
	return true;
}

static bool names_pair(const struct cm_arrival *in, uint32_t local_comm_id, uint32_t remote_comm_id,
		       struct cm_found *ret)
{
	if (!names_local(in, local_comm_id, ret))
		return false;
	ret->is_known = ret->record->remote_comm_id == remote_comm_id;
	if (!ret->is_known)
		ret->record = NULL;
	return ret->is_known;
}

/* The peer's comm id is unknown until REP arrives. */
static bool names_unanswered(const struct cm_arrival *in, uint32_t local_comm_id,
			     struct cm_found *ret)
{
	return names_pair(in, local_comm_id, 0, ret);
}

static bool names_remote(const struct cm_arrival *in, uint64_t guid, uint32_t remote_comm_id,
			 struct cm_found *ret)
{
	ret->record = in->lookups->by_remote(in, guid, remote_comm_id);
	return ret->record;
}

/* --- one guard per message ------------------------------------------------ */

/*
 * The queue pair that a REQ or REP names cannot belong to a live connection: the peer has lost that
 * one.
 */
static enum cm_event guard_req(const struct cm_arrival *in, struct cm_found *ret)
{
	const struct cm_req *req = &in->msg->req;

	if (names_remote(in, req->local_ca_guid, req->local_comm_id, ret))
		return CM_RX_REQ_DUP;
	ret->stale = in->lookups->by_qpn(in, req->local_ca_guid, req->local_qpn);
	return CM_RX_REQ;
}

static enum cm_event guard_rep(const struct cm_arrival *in, struct cm_found *ret)
{
	const struct cm_rep *rep = &in->msg->rep;
	uint32_t known;

	if (!names_local(in, rep->remote_comm_id, ret))
		return CM_NO_EVENT;
	known = ret->record->remote_comm_id;
	ret->is_known = !known || known == rep->local_comm_id;
	if (known)
		return ret->is_known ? CM_RX_REP_DUP : CM_NO_EVENT;
	if (in->lookups->by_remote(in, rep->local_ca_guid, rep->local_comm_id))
		return CM_NO_EVENT;
	ret->stale = in->lookups->by_qpn(in, rep->local_ca_guid, cm_rep_qpn(rep));
	return ret->stale ? CM_RX_REP_STALE : CM_RX_REP;
}

static enum cm_event guard_rtu(const struct cm_arrival *in, struct cm_found *ret)
{
	const struct cm_rtu *rtu = &in->msg->rtu;

	return names_pair(in, rtu->remote_comm_id, rtu->local_comm_id, ret) ? CM_RX_RTU
									    : CM_NO_EVENT;
}

static enum cm_event guard_mra(const struct cm_arrival *in, struct cm_found *ret)
{
	const struct cm_mra *mra = &in->msg->mra;

	if (mra->message == CM_ANSWERED_REQ)
		return names_unanswered(in, mra->remote_comm_id, ret) ? CM_RX_MRA_REQ : CM_NO_EVENT;
	if (!names_pair(in, mra->remote_comm_id, mra->local_comm_id, ret))
		return CM_NO_EVENT;
	if (mra->message == CM_ANSWERED_REP)
		return CM_RX_MRA_REP;
	ret->why = CM_COUNT_UNEXPECTED; /* MRA for a LAP, which we never send */
	return CM_NO_EVENT;
}

void cm_rej_timeout(struct cm_rej *rej, uint64_t ca_guid)
{
	int i;

	rej->reason = CM_REJ_TIMEOUT;
	rej->ari_bytes = sizeof(ca_guid);
	for (i = 0; i < rej->ari_bytes; i++)
		rej->ari[i] = (uint8_t)(ca_guid >> (56 - 8 * i));
}

uint64_t cm_rej_guid(const struct cm_rej *rej)
{
	uint64_t guid = 0;
	unsigned int i;

	for (i = 0; i < sizeof(guid); i++)
		guid = guid << 8 | rej->ari[i];
	return guid;
}

/* REJ with reason 4 names the sender's CA: the sender knows no comm id of the receiver. */
static bool names_rejected(const struct cm_arrival *in, struct cm_found *ret)
{
	const struct cm_rej *rej = &in->msg->rej;

	if (rej->reason == CM_REJ_TIMEOUT)
		return names_remote(in, cm_rej_guid(rej), rej->local_comm_id, ret);
	if (rej->message == CM_ANSWERED_REQ)
		return names_unanswered(in, rej->remote_comm_id, ret);
	return names_pair(in, rej->remote_comm_id, rej->local_comm_id, ret);
}

static enum cm_event guard_rej(const struct cm_arrival *in, struct cm_found *ret)
{
	if (!names_rejected(in, ret))
		return CM_NO_EVENT;
	return in->msg->rej.reason == CM_REJ_STALE_CONNECTION ? CM_RX_REJ_STALE : CM_RX_REJ;
}

/* A DREQ carries the receiver's QPN; a mismatch means that it is not for this connection. */
static enum cm_event guard_dreq(const struct cm_arrival *in, struct cm_found *ret)
{
	const struct cm_dreq *dreq = &in->msg->dreq;

	if (!names_pair(in, dreq->remote_comm_id, dreq->local_comm_id, ret))
		return CM_NO_EVENT;
	return dreq->remote_qpn == ret->record->local_qpn ? CM_RX_DREQ : CM_NO_EVENT;
}

static enum cm_event guard_drep(const struct cm_arrival *in, struct cm_found *ret)
{
	const struct cm_drep *drep = &in->msg->drep;

	return names_pair(in, drep->remote_comm_id, drep->local_comm_id, ret) ? CM_RX_DREP
									      : CM_NO_EVENT;
}

static enum cm_event guard_sidr_req(const struct cm_arrival *in, struct cm_found *ret)
{
	const struct cm_sidr_req *req = &in->msg->sidr_req;

	return names_remote(in, req->service_id, req->request_id, ret) ? CM_RX_SIDR_REQ_DUP
								       : CM_RX_SIDR_REQ;
}

/*
 * The request id is the receiver's comm id. If it names a connection other than a lookup, its state
 * refuses this event.
 */
static enum cm_event guard_sidr_rep(const struct cm_arrival *in, struct cm_found *ret)
{
	ret->is_known = names_local(in, in->msg->sidr_rep.request_id, ret);
	return ret->is_known ? CM_RX_SIDR_REP : CM_NO_EVENT;
}

static enum cm_event guard_unsupported(const struct cm_arrival *in, struct cm_found *ret)
{
	(void)in;
	ret->why = CM_COUNT_UNSUPPORTED;
	return CM_NO_EVENT;
}

static const struct {
	enum cm_event (*guard)(const struct cm_arrival *in, struct cm_found *ret);
	enum cm_event call;
} kinds[] = {
	[CM_ATTR_REQ] = { guard_req, CM_CALL_REQ },
	[CM_ATTR_MRA] = { guard_mra, CM_CALL_MRA },
	[CM_ATTR_REJ] = { guard_rej, CM_CALL_REJ },
	[CM_ATTR_REP] = { guard_rep, CM_CALL_REP },
	[CM_ATTR_RTU] = { guard_rtu, CM_CALL_RTU },
	[CM_ATTR_DREQ] = { guard_dreq, CM_CALL_DREQ },
	[CM_ATTR_DREP] = { guard_drep, CM_CALL_DREP },
	[CM_ATTR_SIDR_REQ] = { guard_sidr_req, CM_CALL_SIDR_REQ },
	[CM_ATTR_SIDR_REP] = { guard_sidr_rep, CM_CALL_SIDR_REP },
	[CM_ATTR_LAP] = { guard_unsupported, CM_NO_EVENT },
	[CM_ATTR_APR] = { guard_unsupported, CM_NO_EVENT },
};

enum cm_event cm_guard(const struct cm_arrival *in, struct cm_found *ret)
{
	*ret = (struct cm_found){ .why = CM_COUNT_UNKNOWN };
	return kinds[in->msg->hdr.attr_id].guard(in, ret);
}

enum cm_event cm_call_of(const struct cm_msg *msg)
{
	return kinds[msg->hdr.attr_id].call;
}
