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
#include "lib/sync/sync.h"

/* Copies of the arguments, which the program may reuse once the call has returned. */
struct lookup {
	struct id *id; /* NULL once abandoned; under the engine's lock */
	char *node;
	char *service;
	bool has_hints;
	struct rdma_addrinfo hints;
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
static int post_result(struct id *id, struct rdma_addrinfo *list, int err)
{
	struct event *event = id_event(
		id, err ? RDMA_CM_EVENT_ADDRINFO_ERROR : RDMA_CM_EVENT_ADDRINFO_RESOLVED, err);

	if (!event)
		return -ENOMEM;
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
			owned = !post_result(lookup->id, list, err);
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
	int err = addrinfo_find(lookup->node, lookup->service, hints, &list, &eai);

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

/* --- the calls ----------------------------------------------------------- */

/* Service records exist on InfiniBand subnets only. */
static int check_service_query(struct id *id, const char *node, const char *service, int flags)
{
	bool has_device;

	if (node || flags & RAI_DNS)
		return -ENOTSUP;
	engine_lock();
	has_device = id->path.gid.verbs;
	engine_unlock();
	/* Here the id is bound to a RoCE port, which has no subnet administrator. */
	return has_device && service ? -EOPNOTSUPP : -EINVAL;
}

static int begin_lookup(struct id *id, struct lookup *lookup)
{
	int err = 0;

	engine_lock();
	if (id->lookup || id->addrinfo)
		err = -EBUSY;
	else if (id->state == ID_DESTROYING)
		err = -EINVAL;
	else
		id->lookup = lookup;
	engine_unlock();
	return err;
}

static int resolve_addrinfo(struct id *id, const char *node, const char *service,
			    const struct rdma_addrinfo *hints)
{
	struct lookup *lookup;
	int err;

	if (!node && !service && !hints)
		return -EINVAL;
	if (hints && hints->ai_flags & RAI_SA)
		return check_service_query(id, node, service, hints->ai_flags);
	lookup = lookup_new(id, node, service, hints);
	if (!lookup)
		return -ENOMEM;
	err = begin_lookup(id, lookup);
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
	return sync_return(id_of(id),
			   id ? resolve_addrinfo(id_of(id), node, service, hints) : -EINVAL);
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
	if (!id || !info)
		return api_return(-EINVAL);
	return api_return(take_result(id_of(id), info));
}

void lookup_abandon(struct id *id)
{
	if (id->lookup)
		id->lookup->id = NULL;
	id->lookup = NULL;
}
