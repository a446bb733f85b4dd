/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A multicast group that an id has joined, and what joining means on the link layer of its port:
 * that is decided in group.c alone. multicast.c joins and leaves, and keeps the groups of an id.
 */
#ifndef LIB_GROUP_H
#define LIB_GROUP_H

#include "cm/list.h"
#include "lib/id.h"

struct group {
	struct list link;	      /* in its id's list; under the engine's lock */
	struct sockaddr_storage addr; /* as it was joined by, to the byte */
	void *context;		      /* of the program, for the event */
	bool send_only;

	/* What group_enter() found out. */
	struct ibv_ah_attr ah;
	uint32_t qkey;
	bool is_member; /* by IGMP; under the engine's lock once it is in the list */
	unsigned int ifindex;

	bool is_attached; /* the queue pair; by the program's threads only */

	/* Events taken, and acknowledged; under the id's lock. */
	unsigned int n_taken;
	unsigned int n_acked;
};

/**
 * group_enter() - become a member, as the link layer has it
 * @group: its address and send_only are set; the rest is filled in
 * @gid:   of the id that joins
 *
 * Asks the kernel: no lock is held.
 *
 * Return: 0; -EINVAL for a zero address; -ENOTSUPP_524 for what RoCE v2 has no groups for;
 * -EOPNOTSUPP on InfiniBand; as membership_join().
 */
int group_enter(struct group *group, const struct gid_entry *gid);

/** group_exit() - no longer be a member; harmless if it is none. No lock is held. */
void group_exit(struct group *group);

/**
 * Where RoCE v2 has no such groups the kernel's connection manager answers with a number of its
 * own, which <errno.h> does not know. Programs see that number.
 */
#define ENOTSUPP_524 524

#endif
