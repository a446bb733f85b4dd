/* SPDX-License-Identifier: BSD-2-Clause */
/* GIDs of our ports in the fabric: the links for other hosts. */
#include <string.h>
#include <unistd.h>

#include "tools/fabric/host/host.h"

void names_enter(const struct host *host, uint8_t port_num, const union ibv_gid *gid)
{
	char path[FAB_PATH_BYTES];
	struct fab_owner owner;

	fab_folder_gid(&host->folder, gid, path);
	if (!fab_folder_link_owner(&host->folder, port_num, path) ||
	    fab_folder_owner_of(&host->folder, gid, &owner))
		return;
	if (strcmp(owner.host, host->folder.host) != 0)
		host_log(host, "host %s has the same address: %s", owner.host,
			 strrchr(path, '/') + 1);
}

void names_leave(const struct host *host, uint8_t port_num, const union ibv_gid *gid)
{
	char path[FAB_PATH_BYTES];
	struct fab_owner owner;

	if (fab_folder_owner_of(&host->folder, gid, &owner) || owner.port_num != port_num ||
	    strcmp(owner.host, host->folder.host) != 0)
		return;
	fab_folder_gid(&host->folder, gid, path);
	unlink(path);
}
