/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device removal: see removal.h.
 */
#include "lib/conn/removal.h"

#include <errno.h>

#include "lib/conn/backlog.h"
#include "lib/conn/resolve.h"
#include "lib/diag/warning.h"
#include "lib/engine/engine.h"
#include "lib/engine/cmportd.h"
#include "lib/group/multicast.h"

static void forget_conn(struct cm_conn *conn, void *arg)
{
	struct id *id = conn->owner;

	(void)arg;
	id->conn = NULL;
}

/*
 * Drops a request that was not taken, and all that wait for room in its listener's backlog: their
 * peers retransmit them, and the backlog then has room.
 */
static void withdraw_request(struct engine *engine, struct outbox *box, struct id *child,
			     struct list *dropped)
{
	struct event *event = channel_withdraw_request(child->channel, child);

	if (!event)
		return;
	event->owner->n_requests--;
	backlog_drop_all(engine, box, event->owner, dropped);
	list_append(dropped, &event->link);
}

/*
 * As in the kernel, a request that was not accepted gets no event; its id is unusable. An id whose
 * address is being resolved is on no device yet, unless it was bound to one.
 */
static void report_removal(struct engine *engine, struct outbox *box, struct id *id,
			   struct list *dropped)
{
	struct portd_record unsent;
	bool gets_event = id->state != ID_CONNECT || id->accepted;

	if (id->device_gone)
		return;
	resolve_stop(engine, id);
	subnet_drop(&id->route_ask, &unsent); /* cmportd has dropped it with the port */
	if (id->state == ID_ADDR_QUERY && !id->attached) {
		if (id->chose_source)
			resolve_drop_source(id);
		id->state = ID_ADDR_BOUND;
		id->path.gid.verbs = NULL;
		id_notify(id, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
		return;
	}
	id->device_gone = true;
	id->state = ID_DEVICE_REMOVAL;
	if (gets_event)
		id_notify(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	else
		withdraw_request(engine, box, id, dropped);
}

void removal_of_id(struct engine *engine, struct id *id)
{
	report_removal(engine, NULL, id, NULL);
}

static void drop_port(struct port *port)
{
	struct engine *engine = engine_lock();

	cm_core_port_gone(&engine->core, &port->cm, forget_conn, NULL);
	engine_unlock();
	cmportd_close_port(port);
	port_put(port);
}

void removal_of_device(struct device *device)
{
	struct engine *engine;
	struct outbox box;
	struct list dropped;
	struct port *port;
	struct id *id;

	list_init(&dropped);
	outbox_init(&box);
	warning_of_removal(ibv_get_device_name(device->verbs->device));
	while ((port = device_take_port(device)))
		drop_port(port);
	engine = engine_lock();
	list_for_each_entry (id, &engine->ids, link)
		if (id->path.gid.verbs == device->verbs)
			report_removal(engine, &box, id, &dropped);
	engine_unlock();
	outbox_flush(&box);
	multicast_device_gone(device);
	id_drop_events(&dropped);
}
