/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asynchronous events: a packet to each process of the host that has its device open.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/fabric/host/host.h"

void events_send(struct host *host, enum ibv_event_type type, uint8_t port_num)
{
	struct fab_packet packet = {
		.magic = FAB_MAGIC,
		.op = FAB_OP_EVENT,
		.syndrome = (uint8_t)type,
		.port_num = port_num,
	};
	char path[FAB_PATH_BYTES];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/hosts/%s/ctx", host->folder.dir, host->folder.host);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		int slot = atoi(entry->d_name);

		if (slot <= 0)
			continue;
		fab_folder_slot(&host->folder, host->folder.host, (unsigned int)slot, path);
		fab_peers_send(&host->peers, path, &packet, NULL);
	}
	if (dir)
		closedir(dir);
}
