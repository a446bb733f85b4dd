/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the answers of the subnet administrator are made of: ports, found by their GID or LID, and
 * the comparisons that a request may ask for.
 */
#include "tools/fabric/host/sa.h"

#include <string.h>

bool sa_read_page(const struct host *host, const struct fab_owner *owner, struct fab_page *ret)
{
	struct fab_folder folder = host->folder;
	const struct fab_page *page;
	char path[FAB_PATH_BYTES];

	memcpy(folder.host, owner->host, sizeof(folder.host));
	fab_folder_page(&folder, path);
	if (fab_page_open(path, &page))
		return false;
	fab_page_read(page, ret);
	fab_page_close(page);
	return true;
}

static bool read_port(const struct host *host, const struct fab_owner *owner, struct fab_port *ret)
{
	struct fab_page page;
	bool is_read = sa_read_page(host, owner, &page);

	if (is_read)
		*ret = page.port[owner->port_num - 1];
	return is_read;
}

bool sa_find_gid(const struct host *host, const union ibv_gid *gid, struct fab_port *ret)
{
	struct fab_owner owner;

	return !fab_folder_owner_of(&host->folder, gid, &owner) && read_port(host, &owner, ret);
}

bool sa_find_lid(const struct host *host, uint16_t lid, struct fab_port *ret)
{
	struct fab_owner owner;

	return !fab_folder_owner_of_lid(&host->folder, host->page->port[0].subnet, lid, &owner) &&
	       read_port(host, &owner, ret);
}

bool sa_has_pkey(const struct fab_port *port, uint16_t pkey)
{
	int i;

	for (i = 0; i < FAB_PKEYS; i++)
		if (port->pkey[i] && ((port->pkey[i] ^ pkey) & ~SA_FULL_MEMBER) == 0)
			return true;
	return false;
}

bool sa_selects(uint8_t asked, uint8_t value)
{
	uint8_t limit = asked & UMAD_SA_RATE_MTU_PKT_LIFE_MASK;

	switch (asked >> UMAD_SA_SELECTOR_SHIFT) {
	case UMAD_SA_SELECTOR_GREATER_THAN:
		return value > limit;
	case UMAD_SA_SELECTOR_LESS_THAN:
		return value < limit;
	case UMAD_SA_SELECTOR_EXACTLY:
		return value == limit;
	default: /* the best there is */
		return true;
	}
}
