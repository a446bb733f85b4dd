/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device removal: see removal.h.
 */
#include "lib/removal.h"

#include "lib/engine.h"
#include "lib/log.h"

static void forget_conn(struct cm_conn *conn, void *arg)
{
	struct id *id = conn->owner;

	(void)arg;
	id->conn = NULL;
}

/* Requests that the program has not accepted are not its own yet; it is told all the same, as it
 * may hold the id already. */
static void tell(struct id *id)
{
	if (id->device_gone)
		return;
	id->device_gone = true;
	id->state = ID_DEVICE_REMOVAL;
	list_remove(&id->resolving);
	id_notify(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
}

void removal_of_port(struct port *port)
{
	struct engine *engine = engine_lock();
	struct list *node;
	struct id *id;

	log_warn("RDMA device %s is gone", ibv_get_device_name(port->device->verbs->device));
	cm_core_port_gone(&engine->core, &port->cm, forget_conn, NULL);
	list_for_each (node, &engine->ids) {
		id = container_of(node, struct id, link);
		if (id->path.gid.verbs == port->device->verbs)
			tell(id);
	}
	engine_unlock();
	device_port_gone(port);
}
