/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers of datagram sockets, and how their queue pairs are reached: see dgram.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "lib/api.h"
#include "lib/conn/report.h"
#include "lib/rsocket/dgram.h"
#include "lib/rsocket/wait.h"
#include "lib/sync/sync.h"

#define TIMEOUT_MS 2000
#define DESTS_MAX  65536 /* anyone can send */

static struct list *bucket_of(struct dgram *d, const union addr *addr)
{
	uint32_t sum = addr_port(addr);

	if (addr->sa.sa_family == AF_INET)
		sum += ntohl(addr->in4.sin_addr.s_addr);
	else
		sum += ntohl(addr->in6.sin6_addr.s6_addr32[3]);
	return &d->dests[(sum * 2654435761U >> 16) % DGRAM_BUCKETS];
}

static void stop(struct dgram_dest *dest)
{
	service_remove(&dest->finding);
	if (dest->id)
		rdma_destroy_id(dest->id);
	dest->id = NULL;
}

/* --- the address handle -------------------------------------------------- */

static void found(struct dgram_dest *dest)
{
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;

	path_to_ah(&id_of(dest->id)->path, &attr);
	pthread_mutex_lock(&dest->owner->base.lock);
	ah = ibv_create_ah(dest->qp->id->pd, &attr);
	if (ah && dest->ah)
		ibv_destroy_ah(dest->ah);
	if (ah)
		dest->ah = ah;
	pthread_mutex_unlock(&dest->owner->base.lock);
}

static void readable(struct serviced *serviced)
{
	struct dgram_dest *dest = container_of(serviced, struct dgram_dest, finding);
	int cancel_state = api_enter();
	int err = sync_complete(id_of(dest->id), cancel_state);

	api_leave(cancel_state);
	if (err == -EAGAIN)
		return;
	if (!err)
		found(dest);
	else
		log_debug("socket %d: no way to the queue pair of a peer: %s", dest->owner->base.fd,
			  strerror(-err));
	stop(dest);
}

static int resolve(struct dgram_dest *dest, const union addr *where)
{
	union addr from = dest->qp->local, to = *where;
	int fd, err;

	from.in4.sin_port = 0;
	/* A port that is none of the peer's datagrams: only the way is asked for. */
	to.in4.sin_port = dest->addr.in4.sin_port;
	if (rdma_create_id(NULL, &dest->id, NULL, RDMA_PS_UDP))
		return -errno;
	fd = dest->id->channel->fd;
	if (fcntl(fd, F_SETFL, O_NONBLOCK))
		return -errno;
	err = service_add(&dest->finding, fd);
	if (!err && rdma_resolve_addr(dest->id, &from.sa, &to.sa, TIMEOUT_MS) && errno != EAGAIN)
		err = -errno;
	return err;
}

/* A peer that has come again has another queue pair. */
void dgram_dest_find(struct dgram_dest *dest, const union addr *where, uint32_t qpn)
{
	bool is_known;

	pthread_mutex_lock(&dest->owner->base.lock);
	is_known = dest->ah && dest->qpn == qpn;
	dest->qpn = qpn;
	pthread_mutex_unlock(&dest->owner->base.lock);
	if (is_known || dest->id)
		return;
	if (resolve(dest, where))
		stop(dest);
}

/* --- the table of peers -------------------------------------------------- */

static bool is_same(const union addr *a, const union addr *b)
{
	return addr_same_ip(a, b) && addr_port(a) == addr_port(b);
}

int dgram_dest_get(struct dgram *d, const union addr *addr, struct dgram_dest **ret)
{
	struct list *bucket = bucket_of(d, addr);
	struct dgram_dest *dest;
	struct list *node;
	int err;

	list_for_each (node, bucket) {
		dest = container_of(node, struct dgram_dest, link);
		if (is_same(&dest->addr, addr)) {
			*ret = dest;
			return 0;
		}
	}
	dest = d->n_dests < DESTS_MAX ? calloc(1, sizeof(*dest)) : NULL;
	if (!dest)
		return -ENOMEM;
	err = dgram_qp_for(d, addr, &dest->qp);
	if (err) {
		free(dest);
		return err;
	}
	dest->addr = *addr;
	dest->owner = d;
	serviced_init(&dest->finding, readable, NULL);
	list_append(bucket, &dest->link);
	d->n_dests++;
	*ret = dest;
	return 0;
}

void dgram_dest_stop_all(struct dgram *d)
{
	struct list *node;

	for (int i = 0; i < DGRAM_BUCKETS; i++)
		list_for_each (node, &d->dests[i])
			stop(container_of(node, struct dgram_dest, link));
}

void dgram_dest_free_all(struct dgram *d)
{
	for (int i = 0; i < DGRAM_BUCKETS; i++)
		while (!list_is_empty(&d->dests[i])) {
			struct dgram_dest *dest =
				container_of(d->dests[i].next, struct dgram_dest, link);

			list_remove(&dest->link);
			if (dest->ah)
				ibv_destroy_ah(dest->ah);
			free(dest);
		}
}
