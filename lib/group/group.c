/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joins multicast groups on RoCE, and leaves them on each link layer: see group.h.
 *
 * There is no subnet administrator. The MGID is derived from the group's address, and members of an
 * IPv4 group make their host join it by IGMP.
 */
#include "lib/group/group.h"

#include <errno.h>

#include "lib/net/membership.h"
#include "lib/net/mgid.h"

#define HOP_LIMIT_V2 64
#define HOP_LIMIT_V1 1

/* Families and types as in stock; 0.0.0.0/8, :: and an empty GID are no groups. */
static int check_roce(const union addr *addr, bool v2)
{
	bool is_ip4 = addr->sa.sa_family == AF_INET;

	if (addr_is_zero(addr))
		return -EINVAL;
	return addr_is_ib(addr) || (v2 && !is_ip4) ? -ENOTSUPP_524 : 0;
}

int group_enter(struct group *group, const struct gid_entry *gid)
{
	bool v2 = gid->type == IBV_GID_TYPE_ROCE_V2;
	union addr addr = addr_load(&group->addr);
	int err = check_roce(&addr, v2);
	struct path path = { .gid = *gid };

	if (err)
		return err;
	path.dgid = mgid_roce(&addr, v2);
	path.route.hop_limit = v2 ? HOP_LIMIT_V2 : HOP_LIMIT_V1;
	path_to_ah(&path, &group->ah);
	group->qkey = RDMA_UDP_QKEY;
	group->ifindex = gid->ifindex;
	/* As in stock, joining an address that is no group succeeds without effect. */
	if (!v2 || group->send_only || !addr_is_multicast(&addr))
		return 0;
	err = membership_join(group->ifindex, &addr);
	group->is_member = !err;
	return err;
}

void group_exit(struct group *group)
{
	union addr addr = addr_load(&group->addr);

	if (group->is_member)
		membership_leave(group->ifindex, &addr);
	group->is_member = false;
	group_leave_subnet(group);
}
