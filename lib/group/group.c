/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What joining a multicast group means on each link layer: see group.h.
 *
 * RoCE has no subnet administrator to ask. The MGID is the group's address in another form, and
 * members of an IPv4 group have their host ask for its packets with IGMP.
 */
#include "lib/group/group.h"

#include <errno.h>
#include <infiniband/ib.h>
#include <string.h>

#include "lib/net/membership.h"
#include "lib/net/mgid.h"

#define HOP_LIMIT_V2 64
#define HOP_LIMIT_V1 1

static bool is_v4(const struct group *group)
{
	return group->addr.ss_family == AF_INET;
}

static union addr addr_of(const struct group *group)
{
	return addr_load(&group->addr);
}

/* The families and types that stock has groups for; 0.0.0.0/8, :: and an empty GID are none. */
static int check_roce(const struct group *group, const struct gid_entry *gid)
{
	static const struct sockaddr_ib none;
	const struct sockaddr_ib *ib = (const void *)&group->addr;
	union addr addr = addr_of(group);

	if (addr_is_zero(&addr))
		return -EINVAL;
	if (group->addr.ss_family == AF_IB &&
	    memcmp(&ib->sib_addr, &none.sib_addr, sizeof(none.sib_addr)) == 0)
		return -EINVAL;
	if (group->addr.ss_family == AF_IB || (gid->type == IBV_GID_TYPE_ROCE_V2 && !is_v4(group)))
		return -ENOTSUPP_524;
	return 0;
}

static void fill_ah(struct group *group, const struct gid_entry *gid)
{
	bool v2 = gid->type == IBV_GID_TYPE_ROCE_V2;
	union addr addr = addr_of(group);
	struct mad_gid mgid = mgid_roce(&addr, v2);

	group->ah.is_global = 1;
	group->ah.port_num = gid->port_num;
	memcpy(&group->ah.grh.dgid, &mgid, sizeof(mgid));
	group->ah.grh.sgid_index = (uint8_t)gid->gid_index;
	group->ah.grh.hop_limit = v2 ? HOP_LIMIT_V2 : HOP_LIMIT_V1;
	group->qkey = RDMA_UDP_QKEY;
}

/* As with stock, an address that is no group's can be joined, to no effect. */
static bool wants_igmp(const struct group *group, const struct gid_entry *gid)
{
	union addr addr = addr_of(group);

	return gid->type == IBV_GID_TYPE_ROCE_V2 && is_v4(group) && !group->send_only &&
	       addr_is_multicast(&addr);
}

static int enter_roce(struct group *group, const struct gid_entry *gid)
{
	union addr addr = addr_of(group);
	int err = check_roce(group, gid);

	if (err)
		return err;
	fill_ah(group, gid);
	group->ifindex = gid->ifindex;
	if (wants_igmp(group, gid)) {
		err = membership_join(group->ifindex, &addr);
		group->is_member = !err;
	}
	return err;
}

int group_enter(struct group *group, const struct gid_entry *gid)
{
	switch (gid->type) {
	case IBV_GID_TYPE_ROCE_V1:
	case IBV_GID_TYPE_ROCE_V2:
		return enter_roce(group, gid);
	case IBV_GID_TYPE_IB:
		break;
	}
	return -EINVAL;
}

void group_exit(struct group *group)
{
	union addr addr = addr_of(group);

	if (group->is_member)
		membership_leave(group->ifindex, &addr);
	group->is_member = false;
	group_leave_subnet(group);
}
