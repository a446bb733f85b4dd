/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joins multicast groups on an InfiniBand subnet: see group.h. First queries the record of the
 * partition's broadcast group, which has the parameters that all IP over InfiniBand groups share;
 * then asks the administrator for the membership. Both go through cmportd, which counts members,
 * and leaves on behalf of processes that have died.
 */
#include <errno.h>
#include <string.h>

#include "lib/engine/engine.h"
#include "lib/group/group.h"
#include "lib/group/multicast.h"
#include "lib/net/mgid.h"
#include "lib/path/partition.h"

#define TIMEOUT_MS 3000

#define JOIN_MASK                                                                         \
	(SA_MEMBER_MGID | SA_MEMBER_PORT_GID | SA_MEMBER_QKEY | SA_MEMBER_TRAFFIC_CLASS | \
	 SA_MEMBER_PKEY | SA_MEMBER_SL | SA_MEMBER_FLOW_LABEL | SA_MEMBER_JOIN_STATE)
/* IP over InfiniBand's own groups use the parameters of the broadcast group. */
#define IPOIB_MASK                                                                           \
	(SA_MEMBER_MTU_SELECTOR | SA_MEMBER_MTU | SA_MEMBER_RATE_SELECTOR | SA_MEMBER_RATE | \
	 SA_MEMBER_HOP_LIMIT)

static bool is_gone(const struct group *group)
{
	return list_is_empty(&group->link) || group->id->state == ID_DESTROYING ||
	       group->id->device_gone;
}

static struct mad_gid mgid_of_group(const struct group *group, const struct partition *part)
{
	union addr addr = addr_load(&group->addr);

	if (addr_is_ib(&addr))
		return addr_to_gid(&addr);
	return mgid_ipoib(&addr, part->scope, part->pkey, group->id->claim.ps == RDMA_PS_UDP);
}

static uint32_t qkey_of_group(const struct id *id, const struct sa_member *broadcast)
{
	if (id->claim.ps == RDMA_PS_IPOIB)
		return broadcast->qkey;
	return id->qkey ? id->qkey : RDMA_UDP_QKEY;
}

/* --- the membership -------------------------------------------------------- */

static void fill_group_ah(struct group *group, const struct sa_member *member)
{
	struct path path = {
		.gid = group->id->path.gid,
		.dgid = member->mgid,
		.dlid = member->mlid,
		.sl = member->sl,
		.rate = member->rate,
		.flow_label = member->flow_label,
		.hop_limit = member->hop_limit,
		.traffic_class = member->traffic_class,
	};

	path_to_ah(&path, &group->ah);
	group->qkey = member->qkey;
}

static void announce_group(struct group *group, const struct sa_member *member)
{
	struct event *event = id_event(group->id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);

	fill_group_ah(group, member);
	if (group->id->claim.ps == RDMA_PS_IPOIB)
		group->id->qkey = member->qkey;
	if (!event)
		return;
	multicast_fill_event(event, group);
	event->taken = multicast_joined;
	id_post(event);
}

static void announce_failure(struct group *group, int err)
{
	struct event *event = id_event(group->id, RDMA_CM_EVENT_MULTICAST_ERROR, err);

	if (!event)
		return;
	event->group = group;
	event->pub.param.ud.private_data = group->context;
	id_post(event);
}

/* Called again when the membership is lost, or the next cmportd has joined again. */
static bool group_joined(struct subnet_ask *ask, int err, const struct sa_msg *answer)
{
	struct group *group = container_of(ask, struct group, ask);

	if (is_gone(group))
		return false;
	if (err)
		announce_failure(group, err);
	else if (!group->is_announced)
		announce_group(group, &answer->member);
	group->is_announced = true;
	return false;
}

/* --- the broadcast group -------------------------------------------------- */

static void put_join(struct group *group, const struct sa_member *broadcast)
{
	struct sa_msg *msg = &group->ask.msg;
	struct sa_member *member = &msg->member;

	sa_msg_init(msg, SA_METHOD_SET, SA_ATTR_MCMEMBER_RECORD, JOIN_MASK, 0);
	*member = *broadcast;
	if (group->id->claim.ps == RDMA_PS_IPOIB)
		msg->sa.comp_mask |= IPOIB_MASK;
	member->mgid = group->mgid;
	memcpy(&member->port_gid, &group->id->path.gid.gid, sizeof(member->port_gid));
	member->qkey = qkey_of_group(group->id, broadcast);
	member->pkey = group->pkey;
	member->mlid = 0;
	member->join_state = group->send_only ? SA_JOIN_SEND_ONLY_FULL : SA_JOIN_FULL;
	member->proxy_join = 0;
}

/* Without a broadcast group there is no IP over InfiniBand; only AF_IB does not need it. */
static bool broadcast_answered(struct subnet_ask *ask, int err, const struct sa_msg *answer)
{
	static const struct sa_member none;
	struct group *group = container_of(ask, struct group, ask);

	if (is_gone(group))
		return false;
	if (err == -EINVAL && group->addr.ss_family != AF_IB)
		err = -EADDRNOTAVAIL;
	if (err && err != -EINVAL) {
		announce_failure(group, err);
		return false;
	}
	put_join(group, err ? &none : &answer->member);
	ask->done = group_joined;
	return true;
}

int group_ask(struct engine *engine, struct group *group, struct portd_record *ret_record)
{
	struct partition part;
	int err = partition_of(&group->id->claim.local, group->id->path.gid.ifindex, &part);

	if (err)
		return err;
	group->pkey = part.pkey;
	group->mgid = mgid_of_group(group, &part);
	sa_msg_init(&group->ask.msg, SA_METHOD_GET, SA_ATTR_MCMEMBER_RECORD, SA_MEMBER_MGID, 0);
	group->ask.msg.member.mgid = part.broadcast;
	group->ask.timeout_ms = TIMEOUT_MS;
	group->ask.done = broadcast_answered;
	subnet_ask(engine, &group->ask, group->id->path.port, ret_record);
	return 0;
}

void group_leave_subnet(struct group *group)
{
	struct portd_record record;
	bool is_member;

	engine_lock();
	is_member = subnet_drop(&group->ask, &record);
	engine_unlock();
	if (is_member)
		subnet_send(&record);
}
