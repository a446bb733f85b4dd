/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From an address to a device, a GID and a next hop: rdma_bind_addr() and rdma_resolve_addr(). See
 * resolve.h.
 */
#include "lib/conn/resolve.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "lib/api.h"
#include "lib/conn/hotplug.h"
#include "lib/conn/removal.h"
#include "lib/device/device.h"
#include "lib/diag/failure.h"
#include "lib/id/claims.h"
#include "lib/sync/sync.h"

#define LOOK_AGAIN_NS (250 * CM_NS_PER_MS)

/* --- binding ------------------------------------------------------------- */

static int bind_path(struct id *id, const union addr *addr, struct path *ret)
{
	int err = path_bind(addr, (uint16_t)id->pub.ps, ret);

	if (err)
		failure_of_address(id, addr, err);
	return err;
}

static int claim_port(struct id *id)
{
	int err = claims_bind(id);

	if (err)
		failure_of_port(id, &id->claim.local, err);
	return err;
}

/* No other thread touches the claim until end_binding(). The lock is held. */
static void begin_binding(const struct engine *engine, struct id *id, const union addr *addr)
{
	id->binding = true;
	id->claim.local = *addr;
	id->claim.ps = (uint16_t)id->pub.ps;
	if (addr_is_ib(addr))
		id->claim.ps = (uint16_t)addr_settle_sid(&id->claim.local, id->claim.ps);
	if (!id->option.has_afonly)
		id->claim.afonly = addr->sa.sa_family == AF_INET || engine->limits.v6_only;
}

static bool can_bind(const struct id *id)
{
	return id->state == ID_IDLE && !id->binding;
}

/*
 * An open port reports the removal of its device. If it cannot be opened, the calls that need it
 * fail.
 */
static void open_port(const struct path *path)
{
	struct port *port;

	if (!path->gid.verbs)
		return;
	if (device_port_open(device_of(path->gid.verbs), path->gid.port_num, &port))
		hotplug_settle();
	else
		port_put(port);
}

static void end_binding(struct id *id, const struct path *path, enum id_state next, int err)
{
	struct engine *engine = engine_lock();

	id->binding = false;
	if (!err) {
		id->state = next;
		id->path.gid = path->gid;
		id->path.pkey = path->pkey;
		id->path.pkey_index = path->pkey_index;
		id_use_device(id);
		if (id->device && device_is_gone(id->device))
			removal_of_id(engine, id);
	} else {
		memset(&id->claim.local, 0, sizeof(id->claim.local));
	}
	engine_unlock();
}

/* A service id must be in a port space. */
static int check_sid(const struct id *id, const union addr *addr)
{
	union addr settled = *addr;
	int ps = addr_is_ib(addr) ? addr_settle_sid(&settled, (uint16_t)id->pub.ps) : 0;

	return ps < 0 ? ps : 0;
}

int bind_local(struct id *id, const union addr *addr)
{
	struct path path = { .port = NULL };
	struct engine *engine;
	int err = check_sid(id, addr);

	if (err)
		return err;
	engine = engine_lock();
	if (can_bind(id))
		begin_binding(engine, id, addr);
	else
		err = -EINVAL;
	engine_unlock();
	if (err)
		return err;
	err = bind_path(id, addr, &path);
	if (!err)
		err = claim_port(id);
	if (!err)
		open_port(&path);
	end_binding(id, &path, ID_ADDR_BOUND, err);
	return err;
}

static int bind_addr(struct id *id, const struct sockaddr *sa)
{
	union addr addr;
	int err = addr_copy(sa, &addr);

	device_list_enter();
	if (!err)
		err = bind_local(id, &addr);
	device_list_leave();
	device_close_unused(true);
	if (err)
		return err;
	/*
	 * A listener on all addresses needs all ports. They are opened before the program knows its
	 * port number: it may send that to a peer (qperf does), which connects before rdma_listen()
	 * is done. If none can be opened, rdma_listen() fails.
	 */
	if (addr_is_any(&addr))
		device_open_all_ports();
	id_publish_addrs(id);
	return id->path.gid.verbs ? id_attach(id) : 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	return api_return(id_check(id) ?: bind_addr(id_of(id), addr));
}

/* --- waiting for a neighbour --------------------------------------------- */

void resolve_stop(struct engine *engine, struct id *id)
{
	cm_timer_disarm(&engine->resolutions, &id->resolve_timer);
	hash_remove(&engine->resolving, &id->resolving);
}

static int addr_taken(struct event *event)
{
	int err = id_attach(event->subject);

	if (err)
		id_event_spoil(event, RDMA_CM_EVENT_ADDR_ERROR, err);
	return 0;
}

/* The interface is kept, as in the kernel. */
void resolve_drop_source(struct id *id)
{
	union addr *local = &id->claim.local;
	uint16_t port = addr_port(local);

	addr_set_any(local, local->sa.sa_family);
	addr_set_port(local, port);
	memset(&id->path.gid, 0, sizeof(id->path.gid));
	id->chose_source = false;
}

/* Called with the engine's lock held, as is the next function. */
static void end_resolution(struct engine *engine, struct id *id, int status)
{
	if (!status)
		status = path_set_peer(&id->path, &id->claim.peer);
	resolve_stop(engine, id);
	if (status && id->chose_source)
		resolve_drop_source(id);
	id->state = status ? ID_ADDR_BOUND : ID_ADDR_RESOLVED;
	if (status)
		id_notify(id, RDMA_CM_EVENT_ADDR_ERROR, status);
	else
		id_notify_taken(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, addr_taken);
}

static void look_at_neighbour(struct engine *engine, struct id *id, struct cm_time now)
{
	switch (net_neigh_state(&id->path.route)) {
	case NET_NEIGH_KNOWN:
		end_resolution(engine, id, 0);
		return;
	case NET_NEIGH_PENDING:
		break;
	case NET_NEIGH_FAILED:
	case NET_NEIGH_NONE:
		net_neigh_ask(&id->path.route);
		break;
	}
	if (cm_time_reached(id->resolve_give_up, now)) {
		failure_of_neighbour(id);
		end_resolution(engine, id, -ETIMEDOUT);
		return;
	}
	cm_timer_arm(&engine->resolutions, &id->resolve_timer,
		     cm_time_earlier(id->resolve_give_up, cm_time_after(now, LOOK_AGAIN_NS)));
}

void resolve_expire(struct cm_time now)
{
	struct engine *engine = engine_lock();
	struct cm_timer *timer;

	while ((timer = cm_timers_pop(&engine->resolutions, now)))
		look_at_neighbour(engine, container_of(timer, struct id, resolve_timer), now);
	engine_unlock();
}

static uint64_t hash_of_hop(unsigned int ifindex, const union addr *hop)
{
	struct {
		struct mad_gid gid;
		uint32_t ifindex;
	} key = { addr_to_gid(hop), ifindex };

	return hash_bytes(&key, sizeof(key));
}

void resolve_neigh_changed(const struct net_event *event)
{
	uint64_t hash = hash_of_hop(event->ifindex, &event->addr);
	struct engine *engine = engine_lock();
	struct hash_node *node, *next;
	struct cm_time now = clock_now();
	struct id *id;

	for (node = hash_first(&engine->resolving, hash); node; node = next) {
		next = hash_next(node);
		id = container_of(node, struct id, resolving);
		if (id->path.route.ifindex == event->ifindex &&
		    addr_same_ip(&id->path.route.next_hop, &event->addr))
			look_at_neighbour(engine, id, now);
	}
	engine_unlock();
}

/* --- resolving ----------------------------------------------------------- */

/*
 * The interface by which the route must leave: that of a link-local source, of the device that a
 * bound source identifies, or of an earlier attempt. 0: any.
 */
static unsigned int choose_interface(const struct id *id)
{
	unsigned int ifindex = addr_scope(&id->claim.local);

	if (!ifindex && !addr_is_any(&id->claim.local))
		ifindex = id->path.gid.ifindex;
	return ifindex ? ifindex : id->path.route.ifindex;
}

static int find_path(struct id *id, struct path *path, int *ret_status)
{
	struct path_query query = {
		.claim = &id->claim,
		.ifindex = choose_interface(id),
	};
	int err = path_find(&query, path, ret_status);

	if (err)
		failure_of_route(id, &id->claim.peer, err);
	else if (*ret_status)
		failure_of_device(id, &id->claim.peer, &path->route, *ret_status);
	return err;
}

/*
 * A source that was chosen for a wildcard without scope is shown without scope, too. The peer is
 * shown as it was given; here it is in the scope of the route. A route has no flow information, so
 * that of the source is kept.
 */
static void set_addrs(struct id *id, const struct path *path)
{
	union addr *local = &id->claim.local;
	const uint32_t flow_info = local->in6.sin6_flowinfo;
	uint16_t port = addr_port(local);

	id->chose_source = addr_is_any(local) && !addr_is_ib(local);
	id->hides_scope = id->chose_source && local->sa.sa_family == AF_INET6 &&
			  !local->in6.sin6_scope_id;
	*local = path->route.src;
	addr_set_port(local, port);
	if (local->sa.sa_family == AF_INET6)
		local->in6.sin6_flowinfo = flow_info;
	if (addr_is_link_local(&id->claim.peer))
		id->claim.peer.in6.sin6_scope_id = path->route.ifindex;
}

static void begin_waiting(struct engine *engine, struct id *id, int timeout_ms)
{
	const struct net_route *hop = &id->path.route;
	struct cm_time now = clock_now();

	id->resolve_give_up = CM_TIME_NEVER;
	if (timeout_ms >= 0)
		id->resolve_give_up = cm_time_after(now, (uint64_t)timeout_ms * CM_NS_PER_MS);
	/* Without memory the chains get longer. */
	hash_reserve(&engine->resolving, engine->resolving.n_nodes + 1);
	hash_insert(&engine->resolving, &id->resolving, hash_of_hop(hop->ifindex, &hop->next_hop));
	look_at_neighbour(engine, id, now);
	engine_wake();
}

static void take_path(struct id *id, struct path *path, int status, int timeout_ms)
{
	struct device *device = path->port ? path->port->device : device_of(path->gid.verbs);
	struct port *before = path->port;
	struct portd_claim claim;
	bool is_claimed = false;
	struct engine *engine = engine_lock();

	if (!status && device_is_gone(device))
		status = -ENODEV;
	if (id->state != ID_ADDR_QUERY) {
		/* its device went away meanwhile */
	} else if (status) {
		id->path.route.ifindex = path->route.ifindex; /* kept, as in the kernel */
		end_resolution(engine, id, status);
	} else {
		before = id->path.port;
		id->path = *path;
		id->is_looked_up = false;
		id_use_device(id);
		set_addrs(id, path);
		is_claimed = claims_state(id, &claim);
		if (path->loopback || path->route.resolved)
			end_resolution(engine, id, 0);
		else
			begin_waiting(engine, id, timeout_ms);
	}
	engine_unlock(); /* from here on another thread may take the event and destroy the id */
	if (is_claimed)
		claims_changed(&claim);
	if (before)
		port_put(before);
}

/* The id is in ADDR_QUERY. */
static int resolve_peer(struct id *id, const union addr *dst, int timeout_ms)
{
	struct path path = { .port = NULL };
	int status, err;

	id->claim.peer = *dst;
	err = find_path(id, &path, &status);
	if (path.loopback)
		open_port(&path);
	if (err) {
		engine_lock();
		if (id->state == ID_ADDR_QUERY) /* its device may have gone meanwhile */
			id->state = ID_ADDR_BOUND;
		engine_unlock();
		return err;
	}
	addr_store(dst, &id->pub.route.addr.dst_storage);
	take_path(id, &path, status, timeout_ms);
	return 0;
}

/*
 * The address to bind an unbound id to: the given source, else the wildcard. A source of an unknown
 * family is an error even if it is not used.
 */
static int choose_source(const struct sockaddr *src, const union addr *dst, union addr *ret)
{
	if (src)
		return addr_copy(src, ret);
	addr_set_any(ret, dst->sa.sa_family);
	if (addr_is_link_local(dst))
		ret->in6.sin6_scope_id = dst->in6.sin6_scope_id;
	return 0;
}

static bool same_family(const union addr *a, const union addr *b)
{
	return a->sa.sa_family == b->sa.sa_family;
}

/* A program may take another record than the first that a lookup has found. */
static bool may_query(const struct id *id)
{
	return id->state == ID_ADDR_BOUND || (id->state == ID_ADDR_RESOLVED && id->is_looked_up);
}

/* If the id is already bound, the source is ignored. */
static int begin_query(struct id *id, const union addr *src, const union addr *dst, bool *ret_binds)
{
	struct engine *engine = engine_lock();
	bool binds = can_bind(id);
	int err = 0;

	if (binds)
		begin_binding(engine, id, src);
	else if (may_query(id) && same_family(&id->claim.local, dst))
		id->state = ID_ADDR_QUERY;
	else
		err = -EINVAL;
	engine_unlock();
	*ret_binds = binds;
	return err;
}

/* Follows begin_query(). A source of the wrong family is bound nevertheless, as in stock. */
static int bind_source(struct id *id, const union addr *dst)
{
	bool resolvable = same_family(&id->claim.local, dst);
	struct path path = { .port = NULL };
	int err = bind_path(id, &id->claim.local, &path);

	if (!err)
		err = claim_port(id);
	if (!err)
		open_port(&path);
	end_binding(id, &path, resolvable ? ID_ADDR_QUERY : ID_ADDR_BOUND, err);
	return err || resolvable ? err : -EINVAL;
}

static int resolve_addr(struct id *id, const struct sockaddr *src_sa, const struct sockaddr *dst_sa,
			int timeout_ms)
{
	union addr src, dst;
	bool binds;
	int err = addr_copy(dst_sa, &dst);

	if (!err)
		err = choose_source(src_sa, &dst, &src);
	if (!err)
		err = check_sid(id, &src);
	if (err)
		return err;
	err = begin_query(id, &src, &dst, &binds);
	device_list_enter();
	if (!err && binds)
		err = bind_source(id, &dst);
	if (!err)
		err = resolve_peer(id, &dst, timeout_ms);
	device_list_leave();
	device_close_unused(true);
	return err;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr,
		      int timeout_ms)
{
	return sync_return(id, resolve_addr(id_of(id), src_addr, dst_addr, timeout_ms));
}
