/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tracked connections without a client: those of ended clients, until they are disconnected, and
 * those of a previous cmportd, until their client resumes or is known to have ended. Internal to
 * the tracker.
 */
#include <errno.h>
#include <string.h>

#include "lib/portd/server/ledger/tracked_adopt.h"
#include "lib/portd/server/files/tracked_file.h"
#include "lib/portd/server/ledger/tracked_table.h"

/* --- ended clients -------------------------------------------------------- */

static void take_out(struct tracker *tracker, struct tracked *tracked, struct cm_record *ret)
{
	*ret = tracked->is;
	/*
	 * In other states the connection ends with a single message, which has been sent by then.
	 */
	if (tracked_is_in(tracked, TRACKED_IN(ESTABLISHED) | TRACKED_IN(DREQ_SENT)) &&
	    tracked->is.local_comm_id)
		tracked_reap(tracker, tracked);
	else
		tracked_remove(tracker, tracked);
}

bool tracker_take(struct tracker *tracker, uint16_t client, struct cm_record *ret)
{
	struct tracked *tracked;

	if (tracker_count(tracker, client) == 0)
		return false;
	tracked = tracked_at(tracker, tracker->client[client].first - 1);
	if (tracked->is_told) /* as far as we know its peer does not know it */
		tracked->is.state = CM_IDLE;
	take_out(tracker, tracked, ret);
	return true;
}

void tracker_reaped(struct tracker *tracker, uint32_t local_comm_id)
{
	struct tracked *tracked = tracked_left_behind(tracker, local_comm_id);

	if (tracked && !tracked->is_orphan)
		tracked_remove(tracker, tracked);
}

/* --- orphans ------------------------------------------------------------- */

/*
 * Validates every bounded member; the file may be corrupt. Clients get their connections back by
 * their blocks: who has none has answered no request, and its peer sends that again.
 */
static bool is_tracked(const struct tracker *tracker, struct tracked *tracked)
{
	struct tracked_port port;
	uint8_t grh;

	memcpy(&grh, &tracked->is.path.grh, sizeof(grh));
	if (tracked->is.active > 1 || grh > 1 || tracked->is_told || !tracked->owner.block ||
	    !tracker_port(tracker, tracked->is.handle, &port) ||
	    tracked_left_behind(tracker, tracked->is.local_comm_id))
		return false;
	cm_begin_in(&tracked->is, passed_state(tracked->passed, tracked->is.active));
	if (!tracker->store->is_same_view)
		tracked->owner.pid = 0;
	return true;
}

int tracker_keep(struct tracker *tracker, struct tracked_store *store)
{
	tracker->store = store;
	if (!tracked_adopt_chunks(tracker, is_tracked))
		return -ENOMEM;
	if (tracker->n_tracked == 0 && tracker->n_chunks) {
		tracked_forget_chunks(tracker);
		tracked_store_trim(store);
	}
	return 0;
}

int tracker_own(struct tracker *tracker, uint16_t client, const struct tracked_owner *owner)
{
	if (!tracked_has_client(tracker, client))
		return -ENOMEM;
	tracker->client[client].owner = *owner;
	return 0;
}

const struct tracked *tracker_orphan(const struct tracker *tracker, const struct tracked *after)
{
	unsigned int block = after ? after->owner.block : 0;
	const struct tracked *next = after ? tracked_at(tracker, after->client_next) : NULL;

	while (!next && tracker->n_orphans && ++block <= UINT16_MAX)
		next = tracked_at(tracker, tracker->orphans[block] - 1);
	return next;
}

const struct tracked *tracker_orphan_of(const struct tracker *tracker, uint16_t block,
					const struct tracked *after)
{
	return tracked_at(tracker, after ? after->client_next : tracker->orphans[block] - 1);
}

bool tracker_has_orphans(const struct tracker *tracker)
{
	return tracker->n_orphans != 0;
}

bool tracker_awaits_unknown(const struct tracker *tracker)
{
	return tracker->n_unknown != 0;
}

bool tracker_hold_block(const struct tracker *tracker, uint16_t block, bool for_dead)
{
	const struct tracked_left *left = &tracker->left[block];

	return left->n_orphans || (for_dead && left->n_dead);
}

bool tracker_return(struct tracker *tracker, const struct tracked *orphan, uint16_t client)
{
	struct tracked *tracked = tracked_at(tracker, orphan->index);
	const struct cm_record is = tracked->is;

	if (!tracked_has_client(tracker, client))
		return false;
	tracked_hand_over(tracker, tracked, client);
	tracked->is_unconfirmed = true;
	tracked_replace(tracker, tracked, &is, tracked->passed);
	return true;
}

void tracker_confirm(struct tracker *tracker, uint16_t client)
{
	struct tracked *tracked, *next;

	if (!tracker_count(tracker, client))
		return;
	for (tracked = tracked_at(tracker, tracker->client[client].first - 1); tracked;
	     tracked = next) {
		next = tracked_at(tracker, tracked->client_next);
		if (tracked->is_unconfirmed)
			tracked_remove(tracker, tracked);
	}
}

void tracker_adopt(struct tracker *tracker, const struct tracked *orphan, struct cm_record *ret)
{
	take_out(tracker, tracked_at(tracker, orphan->index), ret);
}

/* --- ports --------------------------------------------------------------- */

bool tracker_port(const struct tracker *tracker, uint8_t handle, struct tracked_port *ret)
{
	return tracker->store && tracked_store_port(tracker->store, handle, ret);
}

/* The name, too: devices may have the same GUID, and earlier versions did not store it. */
static bool is_port(const struct tracker *tracker, uint8_t handle, const struct tracked_port *port)
{
	struct tracked_port its;

	return tracker_port(tracker, handle, &its) && its.port_num == port->port_num &&
	       its.guid == port->guid && strcmp(its.device, port->device) == 0;
}

int tracker_handle(struct tracker *tracker, const struct tracked_port *port, uint64_t in_use)
{
	int i, its = -ENOSPC, unknown = -ENOSPC, free_one = -ENOSPC;
	struct tracked_port other;

	for (i = TRACKED_PORTS - 1; i >= 0; i--) {
		if (in_use >> i & 1)
			continue;
		free_one = i;
		if (is_port(tracker, (uint8_t)i, port))
			its = i;
		else if (!tracker_port(tracker, (uint8_t)i, &other))
			unknown = i;
	}
	/* Prefer an unnamed handle: there may be orphans of the others. */
	i = its >= 0 ? its : unknown >= 0 ? unknown : free_one;
	if (i >= 0 && i != its)
		tracker_port_gone(tracker, (uint8_t)i);
	if (i >= 0)
		tracker_rename(tracker, (uint8_t)i, port);
	return i;
}

void tracker_rename(struct tracker *tracker, uint8_t handle, const struct tracked_port *port)
{
	if (tracker->store)
		tracked_store_name_port(tracker->store, handle, port);
}
