/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The route of an id: from ADDR_RESOLVED to ROUTE_RESOLVED, and what the program is shown of it.
 */
#ifndef LIB_CONN_ROUTE_H
#define LIB_CONN_ROUTE_H

#include "lib/id/id.h"

/**
 * route_set() - the path of an id is what a record says; the engine's lock is held
 *
 * ROUTE_RESOLVED follows.
 */
void route_set(struct id *id, const struct sa_path *record);

/**
 * route_show() - show the program the path, in id->route; in the program's thread
 *
 * Return: 0 or -ENOMEM.
 */
int route_show(struct id *id);

#endif
