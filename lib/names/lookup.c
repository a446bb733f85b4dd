/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_resolve_addrinfo() and rdma_query_addrinfo(): see lookup.h.
 */
#include "lib/names/lookup.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "lib/api.h"
#include "lib/engine/engine.h"
#include "lib/names/addrinfo.h"
#include "lib/names/sa_service.h"
#include "lib/sync/sync.h"

/* Copies of the arguments, which the program may reuse once the call has returned. */
struct lookup {
	struct id *id; /* NULL once abandoned; under the engine's lock */
	char *node;
	char *service;
	bool has_hints;
	struct rdma_addrinfo hints;
	bool is_at_subnet; /* waits for a subnet administrator only */
	struct service_query query;
};

/* --- arguments ------------------------------------------------------------- */

static void lookup_free(struct lookup *lookup)
{
	free(lookup->node);
	free(lookup->service);
	free(lookup->hints.ai_src_addr);
	free(lookup->hints.ai_dst_addr);
	free(lookup);
}

/* Copies a string, or NULL. Return: false when out of memory. */
static bool copy_string(const char *from, char **ret)
{
	*ret = from ? strdup(from) : NULL;
	return *ret || !from;
}

static bool copy_addr(struct sockaddr **addr, socklen_t bytes)
{
	const struct sockaddr *from = *addr;

	*addr = from && bytes ? malloc(bytes) : NULL;
	if (*addr)
		memcpy(*addr, from, bytes);
	return *addr || !from || !bytes;
}

static struct lookup *lookup_new(struct id *id, const char *node, const char *service,
				 const struct rdma_addrinfo *hints)
{
	struct lookup *lookup = calloc(1, sizeof(*lookup));
	bool complete;

	if (!lookup)
		return NULL;
	lookup->id = id;
	complete = copy_string(node, &lookup->node);
	complete = copy_string(service, &lookup->service) && complete;
	if (hints) {
		lookup->has_hints = true;
		lookup->hints = *hints;
		complete = copy_addr(&lookup->hints.ai_src_addr, hints->ai_src_len) && complete;
		complete = copy_addr(&lookup->hints.ai_dst_addr, hints->ai_dst_len) && complete;
	}
	if (complete)
		return lookup;
	lookup_free(lookup);
	return NULL;
}

/* --- queries --------------------------------------------------------------- */

/* Not EAGAIN: for a synchronous id it would mean that the call is still in progress. */
static int errno_of_eai(int eai)
{
	switch (eai) {
	case EAI_NONAME:
	case EAI_NODATA:
	case EAI_SERVICE:
		return ENOENT;
	case EAI_AGAIN:
		return ETIMEDOUT;
	case EAI_FAMILY:
	case EAI_ADDRFAMILY:
		return EAFNOSUPPORT;
	case EAI_SOCKTYPE:
		return ESOCKTNOSUPPORT;
	case EAI_MEMORY:
		return ENOMEM;
	case EAI_BADFLAGS:
		return EINVAL;
	case EAI_SYSTEM:
		return errno ? errno : EIO;
	}
	return EIO;
}

/* The engine's lock is held. Return: -ENOMEM if there is no event. */
static int post_result(struct id *id, struct rdma_addrinfo *list, int err,
		       int (*taken)(struct event *event))
{
	struct event *event = id_event(
		id, err ? RDMA_CM_EVENT_ADDRINFO_ERROR : RDMA_CM_EVENT_ADDRINFO_RESOLVED, err);

	if (!event)
		return -ENOMEM;
	event->taken = taken;
	id->addrinfo = list;
	id_post(event);
	return 0;
}

/* Within the call a failure is its return value, afterwards an event. */
static int finish_lookup(struct lookup *lookup, struct rdma_addrinfo *list, int err, bool in_call)
{
	bool owned = false;

	engine_lock();
	if (lookup->id) {
		lookup->id->lookup = NULL;
		if (!err || !in_call) {
			owned = !post_result(lookup->id, list, err, NULL);
			err = err || owned ? err : -ENOMEM;
		}
	}
	engine_unlock();
	if (!owned)
		rdma_freeaddrinfo(list);
	lookup_free(lookup);
	return err;
}

static int run_lookup(struct lookup *lookup, bool in_call)
{
	const struct rdma_addrinfo *hints = lookup->has_hints ? &lookup->hints : NULL;
	struct rdma_addrinfo *list = NULL;
	int eai = 0;
	int err = addrinfo_find(lookup->node, lookup->service, hints, PTHREAD_CANCEL_DISABLE, &list,
				&eai);

	return finish_lookup(lookup, list, eai ? -errno_of_eai(eai) : err, in_call);
}

static void *run_thread(void *arg)
{
	run_lookup(arg, false);
	return NULL;
}

/* Numeric addresses are parsed at once. */
static bool needs_server(const struct lookup *lookup)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST };
	struct addrinfo *list;

	if (!lookup->node || lookup->hints.ai_flags & RAI_NUMERICHOST)
		return false;
	if (getaddrinfo(lookup->node, NULL, &hints, &list))
		return true;
	freeaddrinfo(list);
	return false;
}

static int begin_lookup(struct id *id, struct lookup *lookup)
{
	if (id->lookup || id->addrinfo)
		return -EBUSY;
	if (id->state == ID_DESTROYING)
		return -EINVAL;
	id->lookup = lookup;
	return 0;
}

/* --- services of a subnet ------------------------------------------------ */

/*
 * An id that was bound to a GID gets the first address that was found as its destination: as with
 * stock, its route can be resolved at once.
 */
static int start_first_lookup(struct event *event)
{
	struct id *id = event->subject;
	struct path path = { .port = NULL };
	struct port_claim claim;
	struct port *before;
	int err, status;

	engine_lock();
	claim = id->claim;
	if (id->state != ID_ADDR_BOUND || !addr_is_ib(&claim.local) || !id->addrinfo ||
	    addr_copy(id->addrinfo->ai_dst_addr, &claim.peer)) {
		engine_unlock();
		return 0;
	}
	engine_unlock();
	device_list_enter();
	err = path_find(&(struct path_query){ .claim = &claim }, &path, &status);
	if (err || status)
		goto out; /* the addresses are reported nevertheless */
	engine_lock();
	before = path.port;
	if (id->state == ID_ADDR_BOUND) {
		before = id->path.port;
		id->path = path;
		id_use_device(id);
		id->claim.peer = claim.peer;
		id->state = ID_ADDR_RESOLVED;
		id->is_looked_up = true;
		addr_store(&claim.peer, &id->pub.route.addr.dst_storage);
	}
	engine_unlock();
	if (before)
		port_put(before);
out:
	device_list_leave();
	return 0;
}

static void service_found(struct service_query *query, int err)
{
	struct lookup *lookup = container_of(query, struct lookup, query);
	struct portd_record none;

	lookup->id->lookup = NULL;
	if (!post_result(lookup->id, err ? NULL : query->list, err, start_first_lookup) && !err)
		query->list = NULL;
	service_query_fini(query, &none);
	lookup_free(lookup);
}

/* Return: 0, and the id's end of a path, which is on an InfiniBand subnet. */
static int find_own_end(struct id *id, const char *node, const char *service, int flags,
			struct gid_entry *ret)
{
	if (node || flags & RAI_DNS)
		return -ENOTSUP;
	engine_lock();
	*ret = id->path.gid;
	engine_unlock();
	if (!ret->verbs || !service)
		return -EINVAL;
	return ret->type == IBV_GID_TYPE_IB ? 0 : -EOPNOTSUPP;
}

static int begin_service_lookup(struct id *id, struct lookup *lookup, struct port *port)
{
	struct portd_record question = { .type = PORTD_NONE };
	struct engine *engine = engine_lock();
	int err = begin_lookup(id, lookup);

	if (!err)
		service_query_begin(&lookup->query, engine, port, &question);
	engine_unlock();
	subnet_send(&question);
	return err;
}

static int resolve_service(struct id *id, const char *node, const char *service, int flags)
{
	struct lookup *lookup;
	struct gid_entry gid;
	struct port *port;
	int err = find_own_end(id, node, service, flags, &gid);

	if (err)
		return err;
	lookup = calloc(1, sizeof(*lookup));
	if (!lookup)
		return -ENOMEM;
	lookup->id = id;
	lookup->is_at_subnet = true;
	err = service_query_init(&lookup->query, service);
	lookup->query.done = service_found;
	if (!err)
		err = device_port_open(device_of(gid.verbs), gid.port_num, &port);
	if (err) {
		lookup_free(lookup);
		return err;
	}
	err = begin_service_lookup(id, lookup, port);
	if (err) {
		port_put(port);
		lookup_free(lookup);
	}
	return err;
}

/* --- the calls ----------------------------------------------------------- */

static int resolve_addrinfo(struct id *id, const char *node, const char *service,
			    const struct rdma_addrinfo *hints)
{
	struct lookup *lookup;
	int err;

	if (!node && !service && !hints)
		return -EINVAL;
	if (hints && hints->ai_flags & RAI_SA)
		return resolve_service(id, node, service, hints->ai_flags);
	lookup = lookup_new(id, node, service, hints);
	if (!lookup)
		return -ENOMEM;
	engine_lock();
	err = begin_lookup(id, lookup);
	engine_unlock();
	if (err) {
		lookup_free(lookup);
		return err;
	}
	if (needs_server(lookup) && thread_start(run_thread, lookup) == 0)
		return 0;
	return run_lookup(lookup, true);
}

int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
			  const struct rdma_addrinfo *hints)
{
	return sync_return(id, resolve_addrinfo(id_of(id), node, service, hints));
}

static int take_result(struct id *id, struct rdma_addrinfo **ret)
{
	struct rdma_addrinfo *list;

	engine_lock();
	list = id->addrinfo;
	id->addrinfo = NULL;
	engine_unlock();
	if (!list)
		return -ENOENT;
	*ret = list;
	return 0;
}

int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info)
{
	if (!info)
		return api_return(-EINVAL);
	return api_return(id_check(id) ?: take_result(id_of(id), info));
}

bool lookup_abandon(struct id *id, struct portd_record *ret_drop)
{
	struct lookup *lookup = id->lookup;
	bool is_dropped = false;

	id->lookup = NULL;
	if (!lookup)
		return false;
	lookup->id = NULL;
	if (lookup->is_at_subnet) {
		is_dropped = service_query_fini(&lookup->query, ret_drop);
		lookup_free(lookup);
	}
	return is_dropped;
}
