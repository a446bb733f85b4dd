/* SPDX-License-Identifier: BSD-2-Clause */
/* What sysfs shows of a device that is not open: the interfaces and GIDs of its ports. */
#ifndef LIB_DEVICE_DEVICE_SYSFS_H
#define LIB_DEVICE_DEVICE_SYSFS_H

#include <infiniband/verbs.h>
#include <net/if.h>
#include <stdbool.h>

#include "lib/net/addr.h"

/* The address that a device is needed for. */
struct device_want {
	char iface[2][IF_NAMESIZE]; /* RoCE: its interface, and the one below that; or "" */
	struct mad_gid gid;	    /* InfiniBand: its GID; zero for RoCE */
};

/* Part of the GID table of each port. */
enum device_gids {
	DEVICE_GIDS_OF_PORT, /* the first ones, with the port's own interface, or its own GID */
	DEVICE_GIDS_FURTHER, /* some of the others, such as those of VLANs */
};

/** device_sysfs_has() - true if a GID table shows the interface, the one below it, or the GID. */
bool device_sysfs_has(const struct ibv_device *device, const struct device_want *want,
		      enum device_gids which);

#endif
