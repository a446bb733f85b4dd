/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers of datagram sockets, and the address handles to their queue pairs: see dgram.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "lib/id/id.h"
#include "lib/rsocket/connecting.h"
#include "lib/rsocket/dgram.h"

#define TIMEOUT_MS 2000
#define DESTS_MAX  65536
/* Each of them takes a descriptor until the peer answers, or the timeout. */
#define RESOLVING_MAX 64

static void unhold_dest(struct dgram_dest *dest)
{
	pthread_mutex_lock(&dest->owner->base.lock);
	dest->is_held = false;
	pthread_mutex_unlock(&dest->owner->base.lock);
}

static void stop_resolving(struct dgram_dest *dest)
{
	service_remove(&dest->resolving);
	if (dest->id) {
		rdma_destroy_id(dest->id);
		dest->owner->n_resolving--;
	}
	dest->id = NULL;
	unhold_dest(dest);
}

/* --- the address handle -------------------------------------------------- */

static void resolving_readable(struct serviced *serviced)
{
	struct dgram_dest *dest = container_of(serviced, struct dgram_dest, resolving);
	int err = connect_take_event(dest->id);
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;

	if (err == -EAGAIN)
		return;
	if (err) {
		log_debug("socket %d: cannot resolve the address of a peer's queue pair: %s",
			  dest->owner->base.fd, strerror(-err));
	} else {
		path_to_ah(&id_of(dest->id)->path, &attr);
		pthread_mutex_lock(&dest->owner->base.lock);
		ah = ibv_create_ah(dest->qp->id->pd, &attr);
		if (ah && dest->ah)
			ibv_destroy_ah(dest->ah);
		if (ah)
			dest->ah = ah;
		pthread_mutex_unlock(&dest->owner->base.lock);
	}
	stop_resolving(dest);
}

static int begin_resolving(struct dgram_dest *dest)
{
	union addr from = dest->qp->local, to = dest->addr;
	int fd, err;

	from.in4.sin_port = 0;
	if (rdma_create_id(NULL, &dest->id, NULL, RDMA_PS_UDP))
		return -errno;
	dest->owner->n_resolving++;
	fd = dest->id->channel->fd;
	if (fcntl(fd, F_SETFL, O_NONBLOCK))
		return -errno;
	err = service_add(&dest->resolving, fd);
	if (!err && rdma_resolve_addr(dest->id, &from.sa, &to.sa, TIMEOUT_MS) && errno != EAGAIN)
		err = -errno;
	return err;
}

/* A restarted peer has a new queue pair. */
void dgram_dest_resolve(struct dgram_dest *dest, uint32_t qpn)
{
	bool is_known;

	pthread_mutex_lock(&dest->owner->base.lock);
	is_known = dest->ah && dest->qpn == qpn;
	dest->qpn = qpn;
	pthread_mutex_unlock(&dest->owner->base.lock);
	if (dest->id)
		return;
	if (is_known || dest->owner->n_resolving >= RESOLVING_MAX)
		unhold_dest(dest);
	else if (begin_resolving(dest))
		stop_resolving(dest);
}

/* --- the table of peers -------------------------------------------------- */

bool dgram_is_same_peer(const union addr *a, const union addr *b)
{
	return addr_same_ip(a, b) && addr_port(a) == addr_port(b);
}

static void free_dest(struct dgram_dest *dest)
{
	hash_remove(&dest->owner->dests, &dest->node);
	list_remove(&dest->recent);
	if (dest->ah)
		ibv_destroy_ah(dest->ah);
	free(dest);
}

/* Few are held at a time. */
static void forget_oldest(struct dgram *d)
{
	struct list *at = d->recent.prev;

	while (container_of(at, struct dgram_dest, recent)->is_held)
		at = at->prev;
	free_dest(container_of(at, struct dgram_dest, recent));
}

static int add_dest(struct dgram *d, const union addr *addr, uint64_t hash, struct dgram_dest **ret)
{
	struct dgram_dest *dest;
	int err;

	if (d->dests.n_nodes >= DESTS_MAX)
		forget_oldest(d);
	if (hash_reserve(&d->dests, d->dests.n_nodes + 1))
		return -ENOMEM;
	dest = calloc(1, sizeof(*dest));
	if (!dest)
		return -ENOMEM;
	err = dgram_qp_for(d, addr, &dest->qp);
	if (err) {
		free(dest);
		return err;
	}
	dest->addr = *addr;
	dest->owner = d;
	serviced_init(&dest->resolving, resolving_readable, NULL);
	hash_insert(&d->dests, &dest->node, hash);
	list_prepend(&d->recent, &dest->recent);
	*ret = dest;
	return 0;
}

/* Senders choose their addresses, and must not know which collide. */
static uint64_t hash_of(const struct dgram *d, const union addr *addr)
{
	const struct {
		uint64_t secret, port;
		struct mad_gid gid;
	} key = { d->secret, addr_port(addr), addr_to_gid(addr) };

	return hash_bytes(&key, sizeof(key));
}

int dgram_dest_get(struct dgram *d, const union addr *addr, struct dgram_dest **ret)
{
	uint64_t hash = hash_of(d, addr);
	struct dgram_dest *dest;

	hash_for_each_match_entry (dest, &d->dests, hash, node) {
		if (!dgram_is_same_peer(&dest->addr, addr))
			continue;
		list_remove(&dest->recent);
		list_prepend(&d->recent, &dest->recent);
		*ret = dest;
		return 0;
	}
	return add_dest(d, addr, hash, ret);
}

void dgram_dest_stop_all(struct dgram *d)
{
	struct dgram_dest *dest;

	hash_for_each_entry_safe (dest, &d->dests, node)
		stop_resolving(dest);
}

void dgram_dest_free_all(struct dgram *d)
{
	struct dgram_dest *dest;

	hash_for_each_entry_safe (dest, &d->dests, node)
		free_dest(dest);
	hash_fini(&d->dests);
}
