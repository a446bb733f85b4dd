/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GIDs of our ports in the fabric: the links that others find a port by.
 */
#include <string.h>
#include <unistd.h>

#include "tools/fabric/host/host.h"

void names_enter(const struct host *host, uint8_t port_num, const union ibv_gid *gid)
{
	char path[FAB_PATH_BYTES];
	struct fab_owner owner;

	fab_place_gid(&host->place, gid, path);
	if (!fab_place_own(&host->place, port_num, path) ||
	    fab_place_owner_of(&host->place, gid, &owner))
		return;
	if (strcmp(owner.host, host->place.host) != 0)
		host_say(host, "host %s has the same address: %s", owner.host,
			 strrchr(path, '/') + 1);
}

void names_leave(const struct host *host, uint8_t port_num, const union ibv_gid *gid)
{
	char path[FAB_PATH_BYTES];
	struct fab_owner owner;

	if (fab_place_owner_of(&host->place, gid, &owner) || owner.port_num != port_num ||
	    strcmp(owner.host, host->place.host) != 0)
		return;
	fab_place_gid(&host->place, gid, path);
	unlink(path);
}
