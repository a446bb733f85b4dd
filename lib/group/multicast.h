/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast: the groups of an id. The API is in multicast.c; taking events attaches the queue pair,
 * destroying an id and losing a device end its memberships.
 */
#ifndef LIB_GROUP_MULTICAST_H
#define LIB_GROUP_MULTICAST_H

#include "lib/device/device.h"
#include "lib/group/group.h"

/**
 * multicast_joined() - MULTICAST_JOIN is taken: see struct event
 *
 * Attaches the id's queue pair to the group. A member that only sends, or that has no queue pair,
 * needs nothing of it.
 */
int multicast_joined(struct event *event);

/** multicast_fill_event() - the address of a group, for an event about it. */
void multicast_fill_event(struct event *event, struct group *group);

/** multicast_exit_all() - an id goes: it is no member of its groups any more; no lock is held. */
void multicast_exit_all(struct id *id);

/** multicast_free_all() - free the groups of an id whose events are all acknowledged. */
void multicast_free_all(struct id *id);

/** multicast_device_gone() - its ids' memberships end; they keep the groups. No lock is held. */
void multicast_device_gone(const struct device *device);

#endif
