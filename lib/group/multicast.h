/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast: the groups of an id. multicast.c has the API; taking an event attaches the queue pair,
 * destroying an id or losing a device ends its memberships.
 */
#ifndef LIB_GROUP_MULTICAST_H
#define LIB_GROUP_MULTICAST_H

#include "lib/device/device.h"
#include "lib/group/group.h"

/**
 * multicast_joined() - taken() of MULTICAST_JOIN: see struct event
 *
 * Attaches the id's queue pair, if any, to the group, unless the member only sends.
 */
int multicast_joined(struct event *event);

/** multicast_fill_event() - store the address of a group in an event. */
void multicast_fill_event(struct event *event, struct group *group);

/** multicast_exit_all() - end all memberships of an id; no lock is held. */
void multicast_exit_all(struct id *id);

/** multicast_free_all() - free the groups of an id after all its events are acknowledged. */
void multicast_free_all(struct id *id);

/**
 * multicast_device_gone() - end the memberships on a device; ids keep the groups. No lock is held.
 */
void multicast_device_gone(const struct device *device);

#endif
