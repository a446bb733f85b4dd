/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An id as an object: allocation, attachment to a device, release. rdma_create_id() and
 * rdma_destroy_id() are in id_life.c.
 */
#include "lib/id/id.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/pool.h"
#include "lib/diag/defaults.h"
#include "lib/engine/engine.h"

#define PSN_MASK 0xffffff

static struct pool ids = POOL_OF(sizeof(struct id));

void id_after_fork(void)
{
	pool_after_fork(&ids);
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

	if (id->pub.ps != RDMA_PS_IB)
		qp_type_of(id->pub.ps, &type);
	return type;
}

int id_new(struct channel *channel, enum rdma_port_space ps, struct id **ret)
{
	enum ibv_qp_type qp_type;
	int err = qp_type_of(ps, &qp_type);
	struct id *id;

	if (err)
		return err;
	id = pool_take(&ids);
	if (!id)
		return -ENOMEM;
	err = id_make_spare(id);
	if (err) {
		pool_give(&ids, id);
		return err;
	}
	id->n_forks = forks_so_far;
	id->pub.channel = &channel->pub;
	id->pub.ps = ps;
	id->pub.qp_type = qp_type;
	id->channel = channel;
	channel_get(channel);
	id->claim.ps = (uint16_t)ps;
	id->born = clock_now();
	id->option = *defaults_get();
	id->starting_psn = (uint32_t)engine_random() & PSN_MASK;
	list_init(&id->link);
	list_init(&id->groups);
	list_init(&id->waiting);
	list_init(&id->unread);
	pthread_mutex_init(&id->lock, NULL);
	pthread_mutex_init(&id->qp_lock, NULL);
	pthread_cond_init(&id->all_acked, NULL);
	*ret = id;
	return 0;
}

void id_free(struct id *id)
{
	free(id->pub.route.path_rec);
	free(id->alternate);
	free(id->failure);
	free(id->request_qp);
	free(id->prefix);
	id_free_spare(id);
	device_put(id->device);
	device_put(id->attached);
	channel_put(id->channel);
	pthread_cond_destroy(&id->all_acked);
	pthread_mutex_destroy(&id->lock);
	pthread_mutex_destroy(&id->qp_lock);
	pool_give(&ids, id);
}

void id_set_channel(struct id *id, struct channel *channel)
{
	channel_get(channel);
	channel_put(id->channel);
	id->channel = channel;
	id->pub.channel = &channel->pub;
}

/* --- the public members ---------------------------------------------------- */

void id_publish_addrs(struct id *id)
{
	struct rdma_addr *shown = &id->pub.route.addr;

	addr_store(&id->claim.local, &shown->src_storage);
	if (id->hides_scope && shown->src_addr.sa_family == AF_INET6)
		shown->src_sin6.sin6_scope_id = 0;
	if (!shown->dst_addr.sa_family)
		shown->dst_addr.sa_family = id->claim.local.sa.sa_family;
}

static void publish_gids(struct id *id)
{
	struct rdma_ib_addr *ibaddr = &id->pub.route.addr.addr.ibaddr;
	union addr dst = addr_load(&id->pub.route.addr.dst_storage);
	struct mad_gid sgid = addr_to_gid(&id->claim.local);
	struct mad_gid dgid = addr_to_gid(&dst);

	memcpy(&ibaddr->sgid, &sgid, sizeof(sgid));
	memcpy(&ibaddr->dgid, &dgid, sizeof(dgid));
	path_fill_ib_addr(&id->path, ibaddr);
}

void id_use_device(struct id *id)
{
	struct device *before = id->device;

	id->device = device_of(id->path.gid.verbs);
	if (id->device)
		device_get(id->device);
	device_put(before);
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
		device_get(device);
		device_see(device);
		id->attached = device;
		id->pub.verbs = device->verbs;
		id->pub.pd = pd;
	}
	id->pub.port_num = id->path.gid.port_num;
	id_publish_addrs(id);
	publish_gids(id);
	return 0;
}

int id_follow_address(struct id *id)
{
	struct path path;
	struct gid_entry gid;
	int err;

	engine_lock();
	path = id->path;
	engine_unlock();
	if (!path.gid.verbs)
		return -EINVAL;
	err = path_follow(&path, &gid);
	if (err)
		return err == -ENODEV ? -ENODATA : err;
	if (gid.gid_index == path.gid.gid_index && gid.as_of.n_edits == path.gid.as_of.n_edits)
		return 0;
	engine_lock();
	id->path.gid.gid_index = gid.gid_index;
	id->path.gid.as_of = gid.as_of;
	if (id->conn)
		id->conn->path.sgid_index = (uint8_t)gid.gid_index;
	engine_unlock();
	return 0;
}
