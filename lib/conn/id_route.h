/* SPDX-License-Identifier: BSD-2-Clause */
/* The route of an id: from ADDR_RESOLVED to ROUTE_RESOLVED, and its public form. */
#ifndef LIB_CONN_ID_ROUTE_H
#define LIB_CONN_ID_ROUTE_H

#include "lib/id/id.h"

/**
 * route_set() - set the path of an id from a record; the engine's lock is held
 * @pkey_index: from path_find_pkey()
 *
 * Posts ROUTE_RESOLVED.
 */
void route_set(struct id *id, const struct sa_path *record, uint16_t pkey_index);

/**
 * route_publish() - store the path in id->route; in the program's thread
 *
 * Return: 0 or -ENOMEM.
 */
int route_publish(struct id *id);

#endif
