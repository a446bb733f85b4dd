/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports changed link addresses of peers: see move.h. */
#include "lib/conn/move.h"

#include <errno.h>
#include <string.h>

#include "lib/device/kernel.h"
#include "lib/diag/failure.h"
#include "lib/engine/engine.h"

static bool is_reached_by(const struct id *id, const struct net_event *event)
{
	return id->has_own_route && id->state != ID_DEVICE_REMOVAL && id->state != ID_DESTROYING &&
	       id->path.route.ifindex == event->ifindex &&
	       addr_same_ip(&id->claim.peer, &event->addr);
}

/* The first change after the route was resolved tells which link address the route had. */
static void report(struct id *id, const struct net_event *event)
{
	if (!id->has_moved)
		memcpy(id->peer_hw, event->hw_before, sizeof(id->peer_hw));
	id->has_moved = true;
	if (memcmp(id->peer_hw, event->hw, sizeof(id->peer_hw)) == 0)
		return;
	failure_of_move(id, id->peer_hw, event->hw);
	id_notify(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
}

void move_report(const struct net_event *event)
{
	static const uint8_t unknown[NET_ETHERNET_HW_BYTES];
	struct engine *engine;
	struct list *node;
	struct id *id;

	if (memcmp(event->hw, unknown, sizeof(unknown)) == 0 ||
	    !kernel_running_habits()->reports_moves)
		return;
	engine = engine_lock();
	list_for_each (node, &engine->ids) {
		id = container_of(node, struct id, link);
		if (is_reached_by(id, event))
			report(id, event);
	}
	engine_unlock();
}
