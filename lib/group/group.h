/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A multicast group that an id has joined, and what joining means on the link layer of its port:
 * group.c for RoCE, group_ib.c for InfiniBand, a table of both in multicast.c.
 */
#ifndef LIB_GROUP_GROUP_H
#define LIB_GROUP_GROUP_H

#include "base/list.h"
#include "lib/id/id.h"

struct engine;

struct group {
	struct list link;	      /* in its id's list; under the engine's lock */
	struct sockaddr_storage addr; /* as it was joined by, to the byte */
	void *context;		      /* of the program, for the event */
	bool send_only;

	/* What joining has found out. */
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

	/* Events taken, and acknowledged; under the id's lock. */
	unsigned int n_taken;
	unsigned int n_acked;
};

/**
 * group_enter() - become a member on RoCE
 * @group: its address and send_only are set; the rest is filled in
 * @gid:   of the id that joins
 *
 * Asks the kernel: no lock is held.
 *
 * Return: 0; -EINVAL for a zero address; -ENOTSUPP_524 for what RoCE v2 has no groups for;
 * as membership_join().
 */
int group_enter(struct group *group, const struct gid_entry *gid);

/**
 * group_ask() - begin to become a member on an InfiniBand subnet; the engine's lock is held
 * @group:      its address, id and send_only are set, and it is in the id's list
 * @ret_record: to be sent with subnet_send(), when the lock was given up
 *
 * MULTICAST_JOIN or MULTICAST_ERROR follows.
 *
 * Return: 0; -EADDRNOTAVAIL without an IP over InfiniBand interface.
 */
int group_ask(struct engine *engine, struct group *group, struct portd_record *ret_record);

/** group_leave_subnet() - no longer be a member there; no lock is held. */
void group_leave_subnet(struct group *group);

/** group_exit() - no longer be a member; harmless if it is none. No lock is held. */
void group_exit(struct group *group);

/**
 * Where RoCE v2 has no such groups the kernel's connection manager answers with a number of its
 * own, which <errno.h> does not know. Programs see that number.
 */
#define ENOTSUPP_524 524

#endif
