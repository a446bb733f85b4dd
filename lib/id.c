/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of an id: made, charged with events, shown its device, destroyed.
 */
#include "lib/id.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "lib/api.h"
#include "lib/claims.h"
#include "lib/defaults.h"
#include "lib/engine.h"
#include "lib/infiniband.h"
#include "lib/listen.h"
#include "lib/lock_order.h"
#include "lib/lookup.h"
#include "lib/multicast.h"
#include "lib/sync.h"
#include "lib/waiting.h"
#include "lib/warning.h"

#define PSN_MASK 0xffffff

/* --- memory -------------------------------------------------------------- */

static pthread_mutex_t slabs_lock = PTHREAD_MUTEX_INITIALIZER;
static struct slab ids_slab;
static struct slab events_slab; /* long ones */
static struct slab brief_slab;

static void *take_zeroed(struct slab *slab, size_t bytes)
{
	void *object;

	pthread_mutex_lock(&slabs_lock);
	if (!slab->object_bytes)
		slab_init(slab, bytes);
	object = slab_take(slab);
	pthread_mutex_unlock(&slabs_lock);
	if (object)
		memset(object, 0, bytes);
	return object;
}

static void give(struct slab *slab, void *object)
{
	pthread_mutex_lock(&slabs_lock);
	slab_give(slab, object);
	pthread_mutex_unlock(&slabs_lock);
}

void id_after_fork(void)
{
	pthread_mutex_init(&slabs_lock, NULL);
	ids_slab = (struct slab){ 0 };
	events_slab = (struct slab){ 0 };
	brief_slab = (struct slab){ 0 };
}

static struct event *event_new(void)
{
	struct event *event = take_zeroed(&events_slab, sizeof(struct event));

	if (event)
		event->is_long = true;
	return event;
}

/* A thousand events at once are a hundred fresh pages, but forty without private data. */
static struct event *brief_event_new(void)
{
	return take_zeroed(&brief_slab, offsetof(struct event, private_data));
}

static void event_free(struct event *event)
{
	if (event)
		give(event->is_long ? &events_slab : &brief_slab, event);
}

/* --- ids ----------------------------------------------------------------- */

static const char *const state_names[] = {
#define X(name) #name,
	ID_STATES(X)
#undef X
};

const char *id_state_str(enum id_state state)
{
	return state_names[state];
}

static int qp_type_of(enum rdma_port_space ps, enum ibv_qp_type *ret)
{
	switch (ps) {
	case RDMA_PS_TCP:
	case RDMA_PS_IB:
		*ret = IBV_QPT_RC;
		return 0;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		*ret = IBV_QPT_UD;
		return 0;
	}
	return -EINVAL;
}

enum ibv_qp_type id_transport(const struct id *id)
{
	enum ibv_qp_type type = id->pub.qp_type;

	if (id->claim.ps != RDMA_PS_IB)
		qp_type_of((enum rdma_port_space)id->claim.ps, &type);
	return type;
}

int id_new(struct channel *channel, enum rdma_port_space ps, struct id **ret)
{
	enum ibv_qp_type qp_type;
	int err = qp_type_of(ps, &qp_type);
	struct id *id;

	if (err)
		return err;
	id = take_zeroed(&ids_slab, sizeof(*id));
	if (!id)
		return -ENOMEM;
	id->spare = event_new();
	if (!id->spare) {
		give(&ids_slab, id);
		return -ENOMEM;
	}
	id->pub.channel = &channel->pub;
	id->pub.ps = ps;
	id->pub.qp_type = qp_type;
	id->channel = channel;
	channel_get(channel);
	id->claim.ps = (uint16_t)ps;
	id->born = engine_now();
	id->option = *defaults_get();
	id->starting_psn = (uint32_t)engine_random() & PSN_MASK;
	list_init(&id->link);
	list_init(&id->resolving);
	list_init(&id->groups);
	list_init(&id->waiting);
	pthread_mutex_init(&id->lock, NULL);
	pthread_mutex_init(&id->qp_lock, NULL);
	pthread_cond_init(&id->all_acked, NULL);
	*ret = id;
	return 0;
}

void id_free(struct id *id)
{
	multicast_free_all(id);
	free(id->pub.route.path_rec);
	rdma_freeaddrinfo(id->addrinfo);
	free(id->failure);
	free(id->request_qp);
	free(id->prefix);
	event_free(id->spare);
	channel_put(id->channel);
	pthread_cond_destroy(&id->all_acked);
	pthread_mutex_destroy(&id->lock);
	pthread_mutex_destroy(&id->qp_lock);
	give(&ids_slab, id);
}

void id_set_channel(struct id *id, struct channel *channel)
{
	channel_get(channel);
	channel_put(id->channel);
	id->channel = channel;
	id->pub.channel = &channel->pub;
}

/* --- events -------------------------------------------------------------- */

void id_charge(const struct event *event)
{
	struct id *id = event->owner;

	lock_take(&id->lock, LOCK_ID);
	id->n_taken++;
	if (event->group)
		event->group->n_taken++;
	lock_give(&id->lock, LOCK_ID);
}

/* Return: what is left to be freed. */
static struct event *keep_spare(struct id *id, struct event *event)
{
	if (id->spare || !event->is_long)
		return event;
	id->spare = event;
	return NULL;
}

void id_credit(struct id *id, struct event *event)
{
	struct group *group = event->group;
	bool done;

	lock_take(&id->lock, LOCK_ID);
	event = keep_spare(id, event);
	done = ++id->n_acked == id->n_taken;
	if (group && ++group->n_acked == group->n_taken)
		done = true;
	if (done)
		pthread_cond_broadcast(&id->all_acked);
	lock_give(&id->lock, LOCK_ID);
	event_free(event);
}

void id_wait_acked(struct id *id)
{
	lock_take(&id->lock, LOCK_ID);
	while (id->n_acked != id->n_taken)
		pthread_cond_wait(&id->all_acked, &id->lock);
	lock_give(&id->lock, LOCK_ID);
}

void id_wait_group_acked(struct id *id, const struct group *group)
{
	lock_take(&id->lock, LOCK_ID);
	while (group->n_acked != group->n_taken)
		pthread_cond_wait(&id->all_acked, &id->lock);
	lock_give(&id->lock, LOCK_ID);
}

/* A program waits for the event of what it began: with no memory left for it, it would wait for
 * ever. One in reserve will do, as it comes back with the acknowledgement. */
static struct event *take_spare(struct id *id)
{
	struct event *event;

	lock_take(&id->lock, LOCK_ID);
	event = id->spare;
	id->spare = NULL;
	lock_give(&id->lock, LOCK_ID);
	if (event)
		*event = (struct event){ .is_long = true };
	return event;
}

void id_event_free(struct event *event)
{
	struct id *owner;

	if (!event)
		return;
	owner = event->owner;
	lock_take(&owner->lock, LOCK_ID);
	event = keep_spare(owner, event);
	lock_give(&owner->lock, LOCK_ID);
	event_free(event);
}

static void describe(struct event *event, struct id *id, enum rdma_cm_event_type type, int status)
{
	event->owner = id;
	event->subject = id;
	event->pub.id = &id->pub;
	event->pub.event = type;
	event->pub.status = status;
}

/* @event: new, or NULL if memory has run out. */
static struct event *about(struct event *event, struct id *id, enum rdma_cm_event_type type,
			   int status)
{
	if (!event)
		event = take_spare(id);
	if (!event) {
		warning_of_event(type);
		return NULL;
	}
	describe(event, id, type, status);
	return event;
}

struct event *id_event(struct id *id, enum rdma_cm_event_type type, int status)
{
	return about(event_new(), id, type, status);
}

struct event *id_user_event(struct id *id, int status, uint64_t arg)
{
	struct event *event = brief_event_new();

	if (!event)
		return NULL;
	describe(event, id, RDMA_CM_EVENT_USER, status);
	event->pub.param.arg = arg;
	return event;
}

void id_post(struct event *event)
{
	channel_post(event->owner->channel, event);
}

void id_notify(struct id *id, enum rdma_cm_event_type type, int status)
{
	struct event *event = about(brief_event_new(), id, type, status);

	if (event)
		id_post(event);
}

/* --- what the program is shown ------------------------------------------- */

void id_show_addrs(struct id *id)
{
	struct rdma_addr *shown = &id->pub.route.addr;

	addr_store(&id->claim.local, &shown->src_storage);
	if (id->hides_scope && shown->src_addr.sa_family == AF_INET6)
		shown->src_sin6.sin6_scope_id = 0;
	if (!shown->dst_addr.sa_family)
		shown->dst_addr.sa_family = id->claim.local.sa.sa_family;
}

/* Of the addresses, even where these are no addresses of a device; and a P_Key only where no
 * interface says that RoCE has none: as the stock library shows it. */
static void show_gids(struct id *id)
{
	struct rdma_ib_addr *ibaddr = &id->pub.route.addr.addr.ibaddr;
	union addr dst = addr_load(&id->pub.route.addr.dst_storage);
	struct mad_gid sgid = addr_to_gid(&id->claim.local);
	struct mad_gid dgid = addr_to_gid(&dst);

	if (infiniband_is(&id->path)) {
		memcpy(&sgid, &id->path.gid.gid, sizeof(sgid));
		dgid = infiniband_peer(id);
	}
	memcpy(&ibaddr->sgid, &sgid, sizeof(sgid));
	memcpy(&ibaddr->dgid, &dgid, sizeof(dgid));
	ibaddr->pkey = id->path.loopback ? htobe16(0xffff) : 0;
	if (infiniband_is(&id->path))
		ibaddr->pkey = htobe16(id->path.pkey);
}

int id_attach(struct id *id)
{
	struct device *device = device_of(id->path.gid.verbs);
	struct ibv_pd *pd;
	int err;

	if (!device)
		return -ENODEV;
	if (!id->attached) {
		err = device_pd(device, &pd);
		if (err)
			return err;
		id->attached = device;
		id->pub.verbs = device->verbs;
		id->pub.pd = pd;
	}
	id->pub.port_num = id->path.gid.port_num;
	id_show_addrs(id);
	show_gids(id);
	return 0;
}

/* --- create and destroy -------------------------------------------------- */

static int create(struct channel *channel, void *context, enum rdma_port_space ps,
		  struct rdma_cm_id **ret)
{
	struct engine *engine;
	struct id *id;
	int err = device_list_load();

	if (!err)
		err = engine_start();
	if (!err)
		err = id_new(channel, ps, &id);
	if (err)
		return err;
	id->pub.context = context;
	engine = engine_lock();
	list_append(&engine->ids, &id->link);
	engine_unlock();
	*ret = &id->pub;
	return 0;
}

/* A synchronous id has a channel for itself. */
static int create_sync(void *context, enum rdma_port_space ps, struct rdma_cm_id **ret)
{
	struct channel *own;
	int err = device_list_load();

	if (!err)
		err = channel_new(&own);
	if (err)
		return err;
	err = create(own, context, ps, ret);
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
		return api_return(create_sync(context, ps, id));
	return api_return(create(channel_of(channel), context, ps, id));
}

/* From here on the engine, the core and the channel know nothing of the id. */
static void withdraw(struct id *id, struct list *events)
{
	struct portd_record drop;
	struct engine *engine;
	bool is_dropped;
	struct outbox box;

	outbox_init(&box);
	engine = engine_lock();
	listen_stop(engine, id);
	id->state = ID_DESTROYING;
	list_remove(&id->link);
	list_remove(&id->resolving);
	cm_timer_disarm(&engine->resolutions, &id->resolve_timer);
	lookup_abandon(id);
	is_dropped = subnet_drop(&id->route_ask, &drop);
	if (id->conn)
		engine_step(engine, &box, id->conn, CM_CALL_DESTROY, NULL);
	id->conn = NULL;
	channel_withdraw(id->channel, id, events);
	waiting_drop_all(engine, &box, id, events);
	engine_unlock();
	outbox_flush(&box);
	if (is_dropped)
		subnet_send(&drop);
	claims_release(id);
}

static void destroy(struct id *id);

/* Requests that nobody took are refused: their ids were never shown to the program. */
void id_drop_events(struct list *events)
{
	struct list *node, *after;
	struct event *event;

	list_for_each_safe (node, after, events) {
		event = container_of(node, struct event, link);
		if (event->subject != event->owner)
			destroy(event->subject);
		event_free(event);
	}
}

static void destroy(struct id *id)
{
	struct list events;

	list_init(&events);
	withdraw(id, &events);
	multicast_exit_all(id);
	id_drop_events(&events);
	if (id_is_sync(id))
		sync_drop_event(id);
	id_wait_acked(id);
	if (id_is_sync(id))
		channel_close(id->channel);
	if (id->path.port)
		port_put(id->path.port);
	id_free(id);
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	int cancel_state;

	if (!id)
		return api_return(-EINVAL);
	cancel_state = api_enter();
	destroy(id_of(id));
	api_leave(cancel_state);
	return 0;
}
