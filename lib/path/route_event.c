/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ROUTE_RESOLVED: see route_event.h.
 */
#include "lib/path/route_event.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/path/roce.h"

int route_show(struct id *id)
{
	struct rdma_route *route = &id->pub.route;
	struct ibv_sa_path_rec *rec = realloc(route->path_rec, sizeof(*rec));

	if (!rec)
		return -ENOMEM;
	roce_path_record(id, rec);
	route->path_rec = rec;
	route->num_paths = 1;
	return 0;
}

static int route_taken(struct event *event)
{
	int err = route_show(event->subject);

	if (err)
		id_event_spoil(event, RDMA_CM_EVENT_ROUTE_ERROR, err);
	return 0;
}

void route_event_post(struct id *id)
{
	id->state = ID_ROUTE_RESOLVED;
	id_notify_taken(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, route_taken);
}
