/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wills: see will.h. What messages do to them is in will_sent.c and will_received.c, where
 * they lie in will_table.c.
 */
#include "lib/portd/server/will.h"

#include <errno.h>
#include <string.h>

#include "cm/action.h"
#include "lib/portd/server/will_view.h"

/* --- finding ------------------------------------------------------------- */

struct will *will_of_local(const struct wills *wills, uint32_t local_comm_id)
{
	struct cm_key key = { .id = local_comm_id };
	struct will *will = NULL;

	if (!local_comm_id)
		return NULL;
	do
		will = will_find(wills, WILL_BY_LOCAL, will, &key);
	while (will && (will->is_orphan || will->is_dead));
	return will;
}

struct will *will_left_behind(const struct wills *wills, uint32_t local_comm_id)
{
	struct cm_key key = { .id = local_comm_id };
	struct will *will = NULL;

	if (!local_comm_id)
		return NULL;
	do
		will = will_find(wills, WILL_BY_LOCAL, will, &key);
	while (will && !will->is_orphan && !will->is_dead);
	return will;
}

struct will *will_unnamed(const struct wills *wills, uint16_t client, const struct mad_gid *peer,
			  uint32_t remote_comm_id)
{
	struct cm_key key = { .gid = *peer, .id = remote_comm_id };
	struct will *will = NULL, *over = NULL;

	while ((will = will_find(wills, WILL_BY_REMOTE, will, &key))) {
		if (will->client != client || will->is.local_comm_id ||
		    will_is_in(will, WILLS_OF_LOOKUPS))
			continue;
		if (!will_is_in(will, WILL_IN(IDLE)))
			return will;
		over = will;
	}
	return over;
}

struct will *will_of_peer(const struct view *view, enum will_table table, const uint64_t *ca_guid,
			  uint32_t id, unsigned int except)
{
	struct cm_key key = { .gid = view->peer, .id = id };
	struct will *will = NULL;

	do
		will = will_find(view->wills, table, will, &key);
	while (will && (will->client != view->client || will_is_in(will, except) ||
			(ca_guid && will->is.remote_ca_guid != *ca_guid)));
	return will;
}

bool will_is_of_peer(const struct view *view, const struct will *will)
{
	struct mad_gid peer = cm_peer_gid(&will->is.path);

	return memcmp(&peer, &view->peer, sizeof(peer)) == 0;
}

/* --- changing ------------------------------------------------------------ */

/* In IDLE a peer may use its ids again. A will that never got a local comm id stays in its table
 * all the same: wills_close() has to find it, and not the one of the same REQ come again. */
static unsigned int tables_of(const struct will *will)
{
	bool has_peer = will->is.remote_comm_id != 0 && !will->is_refused;
	unsigned int without_qpn = WILL_IN(IDLE) | WILL_IN(TIMEWAIT) | WILLS_OF_LOOKUPS;
	unsigned int tables = 0;

	if (will->is.local_comm_id)
		tables |= 1u << WILL_BY_LOCAL;
	if (has_peer && (!will_is_in(will, WILL_IN(IDLE)) || !will->is.local_comm_id))
		tables |= 1u << WILL_BY_REMOTE;
	if (has_peer && !will_is_in(will, without_qpn))
		tables |= 1u << WILL_BY_QPN;
	return tables;
}

void will_replace(struct wills *wills, struct will *will, const struct cm_record *is)
{
	will_unseal(will);
	will_place(wills, will, 0);
	will->is = *is;
	will_place(wills, will, tables_of(will));
	will_seal(will);
}

bool will_step(struct wills *wills, struct will *will, enum cm_event event)
{
	if (!cm_record_step(&will->is, event))
		return false;
	will_place(wills, will, tables_of(will));
	return true;
}

static uint8_t round_trip(uint8_t packet_life_time)
{
	return packet_life_time < 31 ? (uint8_t)(packet_life_time + 1) : 31;
}

struct cm_record will_begin(const struct view *view, enum cm_event event)
{
	uint8_t ack_timeout = view->msg->req.primary.local_ack_timeout;
	uint8_t packet_life_time = ack_timeout ? (uint8_t)(ack_timeout - 1) : 0;
	struct cm_record is = {
		.handle = view->port,
		.tid = view->msg->hdr.tid,
		.packet_life_time = packet_life_time,
		.local_ack_timeout = round_trip(packet_life_time),
		.path = *view->path,
	};

	cm_record_begin(&is, event);
	return is;
}

/* --- told by the client -------------------------------------------------- */

/* What a client tells comes on another way than its messages, and may come after what its core did
 * next: a state goes forward only. */
static bool is_outdated(const struct will *will, const struct cm_record *told)
{
	if (!told->remote_comm_id || told->remote_comm_id != will->is.remote_comm_id)
		return false;
	return told->state != CM_IDLE &&
	       (will_is_in(will, WILL_IN(IDLE)) || told->state < will->is.state);
}

static bool is_anothers_peer(const struct wills *wills, uint16_t client,
			     const struct cm_record *told)
{
	struct mad_gid peer = cm_peer_gid(&told->path);
	const struct will *holder;

	if (!told->remote_comm_id || told->state == CM_IDLE)
		return false;
	holder = wills_of_remote(wills, &peer, told->remote_ca_guid, told->remote_comm_id);
	return holder && holder->client != client;
}

/* Of a connection there is one will, whenever we are killed; but whose client was gone before, that
 * is going to be ended, whatever it says. */
static struct will *come_back(struct wills *wills, uint16_t client, const struct cm_record *told)
{
	struct will *will = will_left_behind(wills, told->local_comm_id);

	if (!will || !will->is_orphan || will->is_dead || !will_has_client(wills, client))
		return NULL;
	will_hand_over(wills, will, client);
	return will;
}

int wills_set(struct wills *wills, uint16_t client, const struct cm_record *told)
{
	struct will *will = will_of_local(wills, told->local_comm_id);
	struct mad_gid peer = cm_peer_gid(&told->path);

	if (!told->local_comm_id || told->state >= CM_N_STATES ||
	    (will && will->client != client) || is_anothers_peer(wills, client, told))
		return -EPERM;
	if (will && is_outdated(will, told))
		return 0;
	if (!will && told->remote_comm_id)
		will = will_unnamed(wills, client, &peer, told->remote_comm_id);
	if (!will)
		will = come_back(wills, client, told);
	if (!will)
		will = will_add(wills, client);
	if (!will)
		return -ENOMEM;
	will_replace(wills, will, told);
	return 0;
}

void wills_close(struct wills *wills, uint16_t client, const struct portd_close *close)
{
	struct cm_key key = { .gid = close->peer_gid,
			      .guid = close->remote_ca_guid,
			      .id = close->remote_comm_id };
	struct will *will = will_of_local(wills, close->local_comm_id), *other = NULL;

	if (!will && close->remote_comm_id) {
		/* One that is over first: who has dropped a REQ gets to see it again. */
		while ((other = will_find(wills, WILL_BY_REMOTE, other, &key)))
			if (other->client == client && !other->is.local_comm_id &&
			    (!will || will_is_in(other, WILL_IN(IDLE))))
				will = other;
	}
	if (will && will->client == client)
		will_remove(wills, will);
}

/* --- asked by the router ------------------------------------------------- */

const struct will *wills_of_local(const struct wills *wills, uint32_t local_comm_id)
{
	return will_of_local(wills, local_comm_id);
}

static const struct will *find_not_in(const struct wills *wills, enum will_table table,
				      const struct cm_key *key, unsigned int except)
{
	struct will *will = NULL;

	do
		will = will_find(wills, table, will, key);
	while (will && will_is_in(will, except));
	return will;
}

const struct will *wills_of_remote(const struct wills *wills, const struct mad_gid *peer,
				   uint64_t ca_guid, uint32_t remote_comm_id)
{
	struct cm_key key = { .gid = *peer, .guid = ca_guid, .id = remote_comm_id };

	return find_not_in(wills, WILL_BY_REMOTE, &key, WILL_IN(IDLE));
}

const struct will *wills_of_qpn(const struct wills *wills, const struct mad_gid *peer,
				uint64_t ca_guid, uint32_t remote_qpn)
{
	struct cm_key key = { .gid = *peer, .guid = ca_guid, .id = remote_qpn };

	return find_not_in(wills, WILL_BY_QPN, &key, WILL_IN(DREQ_SENT));
}
