/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A multicast group that an id has joined, and how its link layer joins it: group.c for RoCE,
 * group_ib.c for InfiniBand, a table of both in multicast.c.
 */
#ifndef LIB_GROUP_GROUP_H
#define LIB_GROUP_GROUP_H

#include "base/list.h"
#include "lib/id/id.h"

struct engine;

struct group {
	struct list link;	      /* in its id's list; under the engine's lock */
	struct sockaddr_storage addr; /* as passed on joining, for comparison */
	void *context;		      /* the program's, for events */
	bool send_only;

	/* Results of joining. */
	struct ibv_ah_attr ah;
	uint32_t qkey;
	bool is_member; /* by IGMP; under the engine's lock once it is in the list */
	unsigned int ifindex;

	/* InfiniBand: see group_ib.c; under the engine's lock. */
	struct id *id;
	struct subnet_ask ask;
	struct mad_gid mgid;
	uint16_t pkey;
	bool is_announced;

	bool is_attached; /* the queue pair; by the program's threads only */

	/* Events taken and acknowledged. */
	unsigned int n_taken; /* atomic */
	unsigned int n_acked; /* under the id's lock */
};

/**
 * group_enter() - join on RoCE
 * @group: address and send_only are set; the rest is filled in
 * @gid:   of the joining id
 *
 * Calls the kernel: no lock is held.
 *
 * Return: 0; -EINVAL for a zero address; -ENOTSUPP_524 for groups that RoCE v2 cannot represent; as
 * membership_join().
 */
int group_enter(struct group *group, const struct gid_entry *gid);

/**
 * group_ask() - begin to join on an InfiniBand subnet; the engine's lock is held
 * @group:      address, id and send_only are set, and it is in the id's list
 * @ret_record: to be sent with subnet_send() after releasing the lock
 *
 * MULTICAST_JOIN or MULTICAST_ERROR follows.
 *
 * Return: 0; -EADDRNOTAVAIL without an IP over InfiniBand interface.
 */
int group_ask(struct engine *engine, struct group *group, struct portd_record *ret_record);

/** group_leave_subnet() - leave on an InfiniBand subnet; no lock is held. */
void group_leave_subnet(struct group *group);

/** group_exit() - end the membership, if any. No lock is held. */
void group_exit(struct group *group);

/**
 * The kernel's ENOTSUPP, which <errno.h> lacks: its connection manager returns it to programs for
 * groups that RoCE v2 does not support.
 */
#define ENOTSUPP_524 524

#endif
