/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of rdma_resolve_route(): ROUTE_RESOLVED, and what the program is shown of the path.
 */
#ifndef LIB_PATH_ROUTE_EVENT_H
#define LIB_PATH_ROUTE_EVENT_H

#include "lib/id/id.h"

/** route_event_post() - the id has its route; the engine's lock is held. */
void route_event_post(struct id *id);

/**
 * route_show() - show the program the path, in id->route; in the program's thread
 *
 * Return: 0 or -ENOMEM.
 */
int route_show(struct id *id);

#endif
