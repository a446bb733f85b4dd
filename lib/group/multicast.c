/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joining and leaving multicast groups: see multicast.h. rdma_join_multicast(),
 * rdma_join_multicast_ex(), rdma_leave_multicast().
 */
#include "lib/group/multicast.h"

#include <errno.h>
#include <infiniband/ib.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "lib/api.h"
#include "lib/diag/lock_order.h"
#include "lib/engine/engine.h"
#include "lib/sync/sync.h"

#define MULTICAST_QPN 0xffffff
#define ALL_ATTRS     (RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS)

/* --- joining ------------------------------------------------------------- */

/* Address size of the families that can name groups; 0 for others. */
static socklen_t name_bytes(const struct sockaddr *sa)
{
	if (!sa)
		return 0;
	return sa->sa_family == AF_IB ? sizeof(struct sockaddr_ib) : addr_bytes(sa);
}

static int group_new(const struct sockaddr *sa, bool send_only, void *context, struct group **ret)
{
	struct group *group;

	if (!name_bytes(sa))
		return -EINVAL;
	group = calloc(1, sizeof(*group));
	if (!group)
		return -ENOMEM;
	list_init(&group->link);
	memcpy(&group->addr, sa, name_bytes(sa));
	group->send_only = send_only;
	group->context = context;
	*ret = group;
	return 0;
}

static bool can_join(const struct id *id)
{
	return id->pub.qp_type == IBV_QPT_UD && id->path.gid.verbs &&
	       (id->state == ID_ADDR_BOUND || id->state == ID_ADDR_RESOLVED);
}

static int may_join(const struct id *id, struct gid_entry *ret)
{
	int err = -EINVAL;

	engine_lock();
	if (can_join(id)) {
		*ret = id->path.gid;
		err = id->path.loopback ? -ENODEV : 0;
	}
	engine_unlock();
	return err;
}

void multicast_fill_event(struct event *event, struct group *group)
{
	struct rdma_ud_param *ud = &event->pub.param.ud;

	event->group = group;
	ud->private_data = group->context;
	ud->ah_attr = group->ah;
	ud->qp_num = MULTICAST_QPN;
	ud->qkey = group->qkey;
}

/* The device may have gone while the group was joined. */
static int announce_group(struct id *id, struct group *group, struct event *event)
{
	int err = 0;

	multicast_fill_event(event, group);
	engine_lock();
	if (can_join(id)) {
		list_append(&id->groups, &group->link);
		id_post(event);
	} else {
		err = -EINVAL;
	}
	engine_unlock();
	return err;
}

/* Messages to the administrator go through the port. */
static int open_port(struct id *id, const struct gid_entry *gid)
{
	struct port *port;
	int err = device_port_open(device_of(gid->verbs), gid->port_num, &port);

	if (err)
		return err;
	engine_lock();
	if (!id->path.port) {
		id->path.port = port;
		port = NULL;
	}
	engine_unlock();
	if (port)
		port_put(port);
	return 0;
}

/* Requires a query of the administrator; the event follows its response. */
static int enter_subnet(struct id *id, struct group *group, const struct gid_entry *gid)
{
	struct portd_record record;
	struct engine *engine;
	int err = open_port(id, gid);

	if (err)
		return err;
	engine = engine_lock();
	err = can_join(id) ? 0 : -EINVAL;
	if (!err) {
		list_append(&id->groups,
			    &group->link); /* before asking: the response may be immediate */
		err = group_ask(engine, group, &record);
	}
	if (err)
		list_remove(&group->link);
	engine_unlock();
	if (!err)
		subnet_send(&record);
	return err;
}

static int enter_now(struct id *id, struct group *group, const struct gid_entry *gid)
{
	struct event *event = id_event(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	int err = event ? group_enter(group, gid) : -ENOMEM;

	if (event)
		event->taken = multicast_joined;
	if (!err)
		err = announce_group(id, group, event);
	if (err)
		id_event_free(event);
	return err;
}

/* How to join, by the type of the local GID. */
static int (*const enter_group[])(struct id *id, struct group *group,
				  const struct gid_entry *gid) = {
	[IBV_GID_TYPE_IB] = enter_subnet,
	[IBV_GID_TYPE_ROCE_V1] = enter_now,
	[IBV_GID_TYPE_ROCE_V2] = enter_now,
};

static int join_group(struct id *id, const struct sockaddr *sa, bool send_only, void *context)
{
	struct gid_entry gid;
	struct group *group;
	int err = group_new(sa, send_only, context, &group);

	if (err)
		return err;
	group->id = id;
	err = may_join(id, &gid);
	if (!err)
		err = enter_group[gid.type](id, group, &gid);
	if (err) {
		group_exit(group);
		free(group);
	}
	return err;
}

static int join_by_attr(struct id *id, const struct rdma_cm_join_mc_attr_ex *attr, void *context)
{
	if (attr->comp_mask > ALL_ATTRS)
		return -EOPNOTSUPP;
	if (attr->comp_mask != ALL_ATTRS || attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return -EINVAL;
	return join_group(id, attr->addr, attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
			  context);
}

int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *mc_join_attr,
			   void *context)
{
	if (!mc_join_attr)
		return api_return(-EINVAL);
	return sync_return(id, join_by_attr(id_of(id), mc_join_attr, context));
}

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = ALL_ATTRS,
		.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER,
		.addr = addr,
	};

	return rdma_join_multicast_ex(id, &attr, context);
}

int multicast_joined(struct event *event)
{
	struct group *group = event->group;
	struct id *id = event->subject;
	struct ibv_qp_attr attr = { .qkey = group->qkey };
	int err = 0;

	lock_take(&id->qp_lock, LOCK_QP);
	if (id->pub.qp && !group->send_only) {
		command_check();
		/* The queue pair may be older than the id's IP over InfiniBand Q_Key. */
		if (id->claim.ps == RDMA_PS_IPOIB)
			err = ibv_modify_qp(id->pub.qp, &attr, IBV_QP_QKEY);
		if (!err)
			err = ibv_attach_mcast(id->pub.qp, &group->ah.grh.dgid, group->ah.dlid);
		group->is_attached = !err;
	}
	lock_give(&id->qp_lock, LOCK_QP);
	if (err)
		id_event_spoil(event, RDMA_CM_EVENT_MULTICAST_ERROR, -err);
	return 0;
}

/* --- leaving ------------------------------------------------------------- */

/* The most recently joined one, as in stock. */
static struct group *find_group(const struct id *id, const struct sockaddr *sa)
{
	struct group *group, *found = NULL;

	list_for_each_entry (group, &id->groups, link)
		if (memcmp(&group->addr, sa, name_bytes(sa)) == 0)
			found = group;
	return found;
}

/*
 * Removes a group and its events from an id.
 *
 * Return: 0; -EADDRNOTAVAIL if there is no such group; -ENXIO if the device is gone, as in stock.
 */
static int withdraw_group(struct id *id, const struct sockaddr *sa, struct list *events,
			  struct group **ret)
{
	int err = -EADDRNOTAVAIL;
	struct group *group;

	engine_lock();
	group = find_group(id, sa);
	if (group) {
		list_remove(&group->link);
		channel_withdraw(id->channel, id, group, events);
		err = id->device_gone ? -ENXIO : 0;
	}
	engine_unlock();
	*ret = group;
	return err;
}

static void detach_from_group(struct id *id, struct group *group)
{
	lock_take(&id->qp_lock, LOCK_QP);
	command_check();
	if (group->is_attached && id->pub.qp)
		ibv_detach_mcast(id->pub.qp, &group->ah.grh.dgid, group->ah.dlid);
	group->is_attached = false;
	lock_give(&id->qp_lock, LOCK_QP);
}

static int leave_group(struct id *id, const struct sockaddr *sa)
{
	struct group *group;
	struct list events;
	int err;

	if (!name_bytes(sa))
		return -EINVAL;
	list_init(&events);
	err = withdraw_group(id, sa, &events, &group);
	if (!group)
		return err;
	detach_from_group(id, group);
	group_exit(group);
	id_drop_events(&events);
	id_wait_group_acked(id, group);
	/* Another thread may have taken the group's event meanwhile, and attached. */
	detach_from_group(id, group);
	free(group);
	return err;
}

int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	return api_return(id_check(id) ?: leave_group(id_of(id), addr));
}

/* --- removal of ids and devices -------------------------------------------- */

void multicast_exit_all(struct id *id)
{
	struct group *group;

	list_for_each_entry (group, &id->groups, link)
		group_exit(group);
}

void multicast_free_all(struct id *id)
{
	struct group *group;

	list_for_each_entry_safe (group, &id->groups, link)
		free(group);
}

/* Ends one membership on a device; copies it to @ret for leaving it. */
static bool take_membership(const struct device *device, struct group *ret)
{
	struct id *id;
	struct engine *engine = engine_lock();
	bool found = false;
	struct group *group;

	list_for_each_entry (id, &engine->ids, link) {
		if (found || id->path.gid.verbs != device->verbs)
			continue;
		list_for_each_entry (group, &id->groups, link) {
			if (found || !group->is_member)
				continue;
			*ret = *group;
			group->is_member = false;
			found = true;
		}
	}
	engine_unlock();
	return found;
}

void multicast_device_gone(const struct device *device)
{
	struct group copy;

	while (take_membership(device, &copy))
		group_exit(&copy);
}
