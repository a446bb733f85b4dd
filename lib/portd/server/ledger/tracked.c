/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tracked connections: see tracked.h. tracked_sent.c and tracked_received.c have the effects of
 * messages, tracked_table.c the storage.
 */
#include "lib/portd/server/ledger/tracked.h"

#include <errno.h>
#include <string.h>

#include "lib/portd/server/ledger/tracked_table.h"

/* --- lookup --------------------------------------------------------------- */

/* A client may have chosen the comm id of a connection that others have left behind. */
static struct tracked *find_local(const struct tracker *tracker, uint32_t local_comm_id,
				  bool is_left_behind)
{
	struct cm_key key = { .id = local_comm_id };
	struct tracked *tracked = NULL;

	if (!local_comm_id)
		return NULL;
	do
		tracked = tracked_find(tracker, TRACKED_BY_LOCAL, tracked, &key);
	while (tracked && (tracked->is_orphan || tracked->is_dead) != is_left_behind);
	return tracked;
}

struct tracked *tracked_of_local(const struct tracker *tracker, uint32_t local_comm_id)
{
	return find_local(tracker, local_comm_id, false);
}

struct tracked *tracked_left_behind(const struct tracker *tracker, uint32_t local_comm_id)
{
	return find_local(tracker, local_comm_id, true);
}

struct tracked *tracked_answered(const struct tracker *tracker, uint16_t client,
				 const struct mad_gid *peer, uint32_t remote_comm_id)
{
	struct cm_key key = { .gid = *peer, .id = remote_comm_id };
	struct tracked *tracked = NULL, *over = NULL, *named = NULL;

	while ((tracked = tracked_find(tracker, TRACKED_BY_REMOTE, tracked, &key))) {
		if (tracked->client != client || tracked_is_in(tracked, TRACKED_LOOKUPS))
			continue;
		if (tracked->is.local_comm_id)
			named = named ? named : tracked;
		else if (tracked_is_in(tracked, TRACKED_IN(IDLE)))
			over = tracked;
		else
			return tracked;
	}
	return over ? over : named;
}

struct tracked *tracked_of_peer(const struct view *view, uint64_t ca_guid, uint32_t remote_comm_id,
				unsigned int except)
{
	struct cm_key key = { .gid = view->peer, .id = remote_comm_id };
	struct tracked *tracked = NULL;

	do
		tracked = tracked_find(view->tracker, TRACKED_BY_REMOTE, tracked, &key);
	while (tracked && (tracked->client != view->client || tracked_is_in(tracked, except) ||
			   tracked->is.remote_ca_guid != ca_guid));
	return tracked;
}

bool tracked_is_of_peer(const struct view *view, const struct tracked *tracked)
{
	struct mad_gid peer = mad_path_peer(&tracked->is.path);

	return memcmp(&peer, &view->peer, sizeof(peer)) == 0;
}

/* --- updates -------------------------------------------------------------- */

/*
 * In IDLE the peer may reuse its ids. An entry that never got a local comm id stays in its table
 * all the same: tracker_close() must find it, and not the entry of a duplicate of its REQ.
 */
static unsigned int tables_of(const struct tracked *tracked)
{
	bool has_peer = tracked->is.remote_comm_id != 0;
	unsigned int without_qpn = TRACKED_IN(IDLE) | TRACKED_IN(TIMEWAIT) | TRACKED_LOOKUPS;
	unsigned int tables = 0;

	if (tracked->is.local_comm_id)
		tables |= 1u << TRACKED_BY_LOCAL;
	if (tracked->is_told)
		return tables;
	if (has_peer && (!tracked_is_in(tracked, TRACKED_IN(IDLE)) || !tracked->is.local_comm_id))
		tables |= 1u << TRACKED_BY_REMOTE;
	if (has_peer && !tracked_is_in(tracked, without_qpn))
		tables |= 1u << TRACKED_BY_QPN;
	if (tracked_has_own_qpn(tracked))
		tables |= 1u << TRACKED_BY_OWN_QPN;
	return tables;
}

/* Return: the tables in which a record is found by the same ids and the same GID as another. */
static unsigned int tables_alike(const struct cm_record *a, const struct cm_record *b)
{
	const struct mad_gid peer_a = mad_path_peer(&a->path), peer_b = mad_path_peer(&b->path);
	unsigned int tables = a->local_comm_id == b->local_comm_id ? 1u << TRACKED_BY_LOCAL : 0;

	if (memcmp(&peer_a, &peer_b, sizeof(peer_a)) != 0)
		return tables;
	if (a->remote_comm_id == b->remote_comm_id)
		tables |= 1u << TRACKED_BY_REMOTE;
	if (a->remote_qpn == b->remote_qpn)
		tables |= 1u << TRACKED_BY_QPN;
	if (a->local_qpn == b->local_qpn)
		tables |= 1u << TRACKED_BY_OWN_QPN;
	return tables;
}

/* A connection that only its client knows is in the state that the client tells. */
static void set_passed(struct tracked *tracked, uint8_t passed)
{
	tracked->passed = passed;
	if (!tracked->is_told)
		cm_begin_in(&tracked->is, passed_state(passed, tracked->is.active));
}

void tracked_replace(struct tracker *tracker, struct tracked *tracked, const struct cm_record *is,
		     uint8_t passed)
{
	tracked_index(tracker, tracked, tracked->in & tables_alike(&tracked->is, is));
	/* A cmportd that is killed from here on loses the connection. */
	tracked_unseal(tracked);
	if (is->local_comm_id && !tracked->is.local_comm_id) /* its client has a block by now */
		tracked->owner = tracker->client[tracked->client].owner;
	tracked->is = *is;
	set_passed(tracked, passed);
	tracked_seal(tracked);
	tracked_index(tracker, tracked, tables_of(tracked));
}

uint8_t tracked_after(const struct tracked *tracked, enum cm_event event)
{
	return passed_after(tracked->passed, (enum cm_state)tracked->is.state, tracked->is.active,
			    event);
}

void tracked_pass(struct tracker *tracker, struct tracked *tracked, enum cm_event event)
{
	const uint8_t passed = tracked_after(tracked, event);

	if (passed == tracked->passed)
		return;
	set_passed(tracked, passed);
	tracked_index(tracker, tracked, tables_of(tracked));
}

/* The peer may have given up as well, with a REJ that the core has not found a connection for. */
void tracked_take_back_rep(struct tracker *tracker, struct tracked *tracked)
{
	struct cm_record is = tracked->is;

	is.remote_comm_id = 0;
	tracked_replace(tracker, tracked, &is, 0);
}

struct cm_record tracked_begin(const struct view *view)
{
	uint8_t ack_timeout = view->msg->req.primary.local_ack_timeout;
	uint8_t packet_life_time = ack_timeout ? (uint8_t)(ack_timeout - 1) : 0;

	return (struct cm_record){
		.handle = view->port,
		.tid = view->msg->hdr.tid,
		.packet_life_time = packet_life_time,
		.local_ack_timeout = cm_round_trip(packet_life_time),
		.path = *view->path,
	};
}

/* --- reported by the client ----------------------------------------------- */

/*
 * The peer's half is taken from its messages. A core may have dropped a tracked REP, and then has
 * no comm id of the peer; it cannot have the comm id of a REP that never passed.
 */
static bool is_credible(const struct tracked *tracked, const struct cm_record *told)
{
	const struct mad_gid its = mad_path_peer(&tracked->is.path);
	const struct mad_gid peer = mad_path_peer(&told->path);

	if (told->handle != tracked->is.handle || memcmp(&its, &peer, sizeof(its)) != 0)
		return false;
	if (told->remote_comm_id)
		return told->remote_comm_id == tracked->is.remote_comm_id;
	return tracked->is.active && !(tracked->passed & PASSED_RTU) &&
	       told->state != CM_ESTABLISHED;
}

/*
 * Without the peer's comm id there is nothing to end, and an ended connection may have been closed.
 */
static bool needs_no_record(const struct cm_record *told)
{
	return !told->remote_comm_id || told->state == CM_IDLE || told->state == CM_TIMEWAIT;
}

static int add_as_told(struct tracker *tracker, uint16_t client, const struct cm_record *told)
{
	struct tracked *tracked = tracked_add(tracker, client);

	if (!tracked)
		return -ENOMEM;
	tracked->is_told = true;
	tracked_replace(tracker, tracked, told, 0);
	return 0;
}

int tracker_set(struct tracker *tracker, uint16_t client, const struct cm_record *told,
		bool may_add)
{
	struct tracked *tracked = tracked_of_local(tracker, told->local_comm_id);
	struct mad_gid peer = mad_path_peer(&told->path);

	if (!told->local_comm_id || told->state >= CM_N_STATES)
		return -EPERM;
	if (!tracked && told->remote_comm_id) {
		tracked = tracked_answered(tracker, client, &peer, told->remote_comm_id);
		if (tracked && tracked->is.local_comm_id) /* another one of the same REQ */
			tracked = NULL;
	}
	if (!tracked && needs_no_record(told))
		return 0;
	if (!tracked)
		return may_add ? add_as_told(tracker, client, told) : -EPERM;
	if (tracked->client != client || !is_credible(tracked, told))
		return -EPERM;
	tracked->is_unconfirmed = false;
	if (told->state == CM_ESTABLISHED)
		tracked_pass(tracker, tracked, CM_CALL_ESTABLISH);
	if (!told->remote_comm_id && tracked->is.remote_comm_id)
		tracked_take_back_rep(tracker, tracked);
	return 0;
}

/* The client has read past the latest delivery, so what it has closed covers all of them. */
static bool was_heard(const struct tracked *tracked, const struct portd_close *close)
{
	return tracked_is_in(tracked, TRACKED_IN(IDLE)) ||
	       (int32_t)(close->n_heard - tracked->handed) >= 0;
}

void tracker_handed(struct tracker *tracker, uint16_t client)
{
	if (tracked_has_client(tracker, client))
		tracker->client[client].n_handed++;
}

void tracker_close(struct tracker *tracker, uint16_t client, const struct portd_close *close)
{
	struct cm_key key = { .gid = close->peer_gid,
			      .guid = close->remote_ca_guid,
			      .id = close->remote_comm_id };
	struct tracked *tracked = tracked_of_local(tracker, close->local_comm_id), *other = NULL;

	if (!tracked && close->remote_comm_id) {
		/*
		 * Ended entries first: a client that has dropped a REQ receives its retransmission.
		 */
		while ((other = tracked_find(tracker, TRACKED_BY_REMOTE, other, &key)))
			if (other->client == client && !other->is.local_comm_id &&
			    was_heard(other, close) &&
			    (!tracked || tracked_is_in(other, TRACKED_IN(IDLE))))
				tracked = other;
	}
	if (tracked && tracked->client == client)
		tracked_remove(tracker, tracked);
}

/* --- lookup by the router ------------------------------------------------- */

const struct tracked *tracker_of_local(const struct tracker *tracker, uint32_t local_comm_id)
{
	return tracked_of_local(tracker, local_comm_id);
}

static const struct tracked *find_not_in(const struct tracker *tracker, enum tracked_table table,
					 const struct cm_key *key, unsigned int except)
{
	struct tracked *tracked = NULL;

	do
		tracked = tracked_find(tracker, table, tracked, key);
	while (tracked && tracked_is_in(tracked, except));
	return tracked;
}

const struct tracked *tracker_of_remote(const struct tracker *tracker, const struct mad_gid *peer,
					uint64_t ca_guid, uint32_t remote_comm_id)
{
	struct cm_key key = { .gid = *peer, .guid = ca_guid, .id = remote_comm_id };

	return find_not_in(tracker, TRACKED_BY_REMOTE, &key, TRACKED_IN(IDLE));
}

const struct tracked *tracker_of_qpn(const struct tracker *tracker, const struct mad_gid *peer,
				     uint64_t ca_guid, uint32_t remote_qpn)
{
	struct cm_key key = { .gid = *peer, .guid = ca_guid, .id = remote_qpn };

	return find_not_in(tracker, TRACKED_BY_QPN, &key, TRACKED_IN(DREQ_SENT));
}

static uint16_t user_of(const struct tracker *tracker, uint16_t client)
{
	return client < tracker->n_clients ? tracker->client[client].owner.user : 0;
}

bool tracker_may_name(const struct tracker *tracker, const struct tracked_naming *naming)
{
	const struct cm_key key = { .gid = naming->peer, .id = naming->qpn };
	const struct tracked *tracked = NULL;

	while ((tracked = tracked_find(tracker, TRACKED_BY_OWN_QPN, tracked, &key))) {
		if (naming->of_device >> tracked->is.handle & 1 &&
		    (tracked->is_orphan ||
		     user_of(tracker, tracked->client) != user_of(tracker, naming->client)))
			return false;
	}
	return true;
}

bool tracker_is_outdated(const struct tracker *tracker, const uint8_t mad[MAD_BYTES])
{
	const struct tracked *tracked;
	struct cm_msg msg;

	if (cm_msg_decode(mad, MAD_BYTES, &msg) || msg.hdr.attr_id != CM_ATTR_REQ)
		return false;
	tracked = tracker_of_local(tracker, msg.req.local_comm_id);
	return !tracked || !tracked_is_in(tracked, TRACKED_IN(REQ_SENT) | TRACKED_IN(MRA_REQ_RCVD));
}
