/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Services by name or id, which the subnet administrator of an InfiniBand subnet knows (RAI_SA):
 * its ServiceRecords become addresses that rdma_create_ep() takes.
 */
#ifndef LIB_NAMES_SA_SERVICE_H
#define LIB_NAMES_SA_SERVICE_H

#include <rdma/rdma_cma.h>

#include "lib/engine/served_port.h"
#include "lib/path/subnet.h"

/* A query to the administrator of one port; embedded in its owner. */
struct service_query {
	struct subnet_ask ask;
	struct port *port;		   /* a reference */
	struct rdma_addrinfo *list, **end; /* what was found, and where the next one is linked */
	int err;
	/*
	 * Called once with the addresses in list, or an error: -ENOENT, -ETIMEDOUT, -E2BIG,
	 * -ENOMEM, -EINVAL. The engine's lock is held.
	 */
	void (*done)(struct service_query *query, int err);
};

/**
 * service_query_init() - initialise; asks nothing yet
 * @service: a service id, as strtoull() reads it, or a name
 *
 * Return: 0; -EINVAL for a name that is empty or has more than 63 bytes.
 */
int service_query_init(struct service_query *query, const char *service);

/**
 * service_query_begin() - ask; the engine's lock is held
 * @port:       becomes the query's
 * @ret_record: to be sent with subnet_send()
 */
void service_query_begin(struct service_query *query, struct engine *engine, struct port *port,
			 struct portd_record *ret_record);

/**
 * service_query_fini() - cancel the query; the engine's lock is held
 * @ret_drop: to be sent with subnet_send()
 *
 * Return: whether there is something to send.
 */
bool service_query_fini(struct service_query *query, struct portd_record *ret_drop);

/**
 * service_find() - ask at each active InfiniBand port until one knows the service; blocks
 * @cancel_state: of the program, see api.h: while it waits, the thread may be cancelled
 * @ret:          for rdma_freeaddrinfo(); untouched on failure
 *
 * Return: 0; -ENOENT if no port is on a subnet or none knows it; as device_list_load(),
 * device_port_open() or done().
 */
int service_find(const char *service, int cancel_state, struct rdma_addrinfo **ret);

#endif
