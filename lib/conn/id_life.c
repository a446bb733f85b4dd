/* SPDX-License-Identifier: BSD-2-Clause */
/* Creation and destruction of ids: rdma_create_id(), rdma_destroy_id(). */
#include <errno.h>

#include "lib/api.h"
#include "lib/conn/backlog.h"
#include "lib/conn/listen.h"
#include "lib/conn/resolve.h"
#include "lib/conn/upcalls.h"
#include "lib/engine/engine.h"
#include "lib/group/multicast.h"
#include "lib/id/claims.h"
#include "lib/names/lookup.h"
#include "lib/sync/sync.h"

/* --- destroying ---------------------------------------------------------- */

/* Removes the id from the engine, the core and the channel. */
static void withdraw_id(struct id *id, struct list *events)
{
	struct portd_record drop, lookup_drop;
	struct engine *engine;
	bool is_dropped, is_lookup_dropped;
	struct outbox box;

	outbox_init(&box);
	engine = engine_lock();
	listen_stop(engine, id);
	id->state = ID_DESTROYING;
	list_remove(&id->link);
	resolve_stop(engine, id);
	is_lookup_dropped = lookup_abandon(id, &lookup_drop);
	is_dropped = subnet_drop(&id->route_ask, &drop);
	if (id->conn)
		engine_step(engine, &box, id->conn, CM_CALL_DESTROY, NULL);
	id->conn = NULL;
	channel_withdraw(id->channel, id, NULL, events);
	backlog_drop_all(engine, &box, id, events);
	engine_unlock();
	outbox_flush(&box);
	if (is_dropped)
		subnet_send(&drop);
	if (is_lookup_dropped)
		subnet_send(&lookup_drop);
	claims_release(id);
}

static void destroy_id(struct id *id)
{
	struct list events;

	list_init(&events);
	withdraw_id(id, &events);
	multicast_exit_all(id);
	id_drop_events(&events);
	if (id_is_sync(id))
		sync_drop_event(id);
	id_wait_acked(id);
	if (id_is_sync(id))
		channel_close(id->channel);
	if (id->path.port)
		port_put(id->path.port);
	multicast_free_all(id);
	rdma_freeaddrinfo(id->addrinfo);
	id_free(id);
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	int cancel_state, err = id_check(id);

	/* As in stock, a child succeeds; the parent's id is not touched. */
	if (err)
		return err == -EACCES ? 0 : api_result(err);
	cancel_state = api_enter();
	destroy_id(id_of(id));
	api_leave(cancel_state);
	return 0;
}

/* --- creating ------------------------------------------------------------ */

static int create_id(struct channel *channel, void *context, enum rdma_port_space ps,
		     struct rdma_cm_id **ret)
{
	struct engine *engine;
	struct id *id;
	int err = channel_is_inherited(channel) ? -EACCES : device_list_check();

	if (!err)
		err = upcalls_start();
	if (!err)
		err = id_new(channel, ps, &id);
	if (err)
		return err;
	id->pub.context = context;
	id->destroy = destroy_id;
	engine = engine_lock();
	list_append(&engine->ids, &id->link);
	engine_unlock();
	*ret = &id->pub;
	return 0;
}

/* A synchronous id has a channel of its own. */
static int create_sync_id(void *context, enum rdma_port_space ps, struct rdma_cm_id **ret)
{
	struct channel *own;
	int err = device_list_check();

	if (!err)
		err = channel_new(&own);
	if (err)
		return err;
	err = create_id(own, context, ps, ret);
	if (err)
		channel_close(own);
	else
		id_set_sync(id_of(*ret), true);
	return err;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	if (!id)
		return api_return(-EINVAL);
	if (!channel)
		return api_return(create_sync_id(context, ps, id));
	return api_return(create_id(channel_of(channel), context, ps, id));
}
