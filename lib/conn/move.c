/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports changed link addresses: see move.h. */
#include "lib/conn/move.h"

#include <errno.h>
#include <string.h>

#include "lib/device/kernel.h"
#include "lib/diag/failure.h"
#include "lib/engine/engine.h"

static bool is_alive(const struct id *id)
{
	return id->state != ID_DEVICE_REMOVAL && id->state != ID_DESTROYING;
}

static bool is_reached_by(const struct id *id, const struct net_event *event)
{
	return id->has_own_route && is_alive(id) && id->path.route.ifindex == event->ifindex &&
	       addr_same_ip(&id->claim.peer, &event->addr);
}

/* A request that was not accepted gets no event. */
static bool is_at(const struct id *id, const struct net_event *event)
{
	return id->path.gid.verbs && is_alive(id) && id->path.gid.ifindex == event->ifindex &&
	       (id->state != ID_CONNECT || id->accepted);
}

/*
 * The first change carries the original address. Return: true if it differs from the present one.
 */
static bool has_other_hw(struct first_hw *first, const struct net_event *event)
{
	if (!first->is_known)
		memcpy(first->hw, event->hw_before, sizeof(first->hw));
	first->is_known = true;
	return memcmp(first->hw, event->hw, sizeof(first->hw)) != 0;
}

static void report_to_peer_of(struct id *id, const struct net_event *event)
{
	if (!is_reached_by(id, event) || !has_other_hw(&id->peer_hw, event))
		return;
	failure_of_move(id, id->peer_hw.hw, event->hw);
	id_notify(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
}

static void report_to_user_of(struct id *id, const struct net_event *event)
{
	if (is_at(id, event) && has_other_hw(&id->own_hw, event))
		id_notify(id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
}

static void report_to_ids(const struct net_event *event,
			  void (*tell)(struct id *id, const struct net_event *event))
{
	static const uint8_t unknown[NET_IPOIB_HW_BYTES];
	struct engine *engine;
	struct id *id;

	if (memcmp(event->hw, unknown, sizeof(unknown)) == 0)
		return;
	engine = engine_lock();
	list_for_each_entry (id, &engine->ids, link)
		tell(id, event);
	engine_unlock();
}

void move_report_peer(const struct net_event *event)
{
	if (kernel_running_habits()->reports_moves)
		report_to_ids(event, report_to_peer_of);
}

void move_report_interface(const struct net_event *event)
{
	report_to_ids(event, report_to_user_of);
}
