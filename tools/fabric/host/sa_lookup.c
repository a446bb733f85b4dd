/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Helpers of the subnet administrator: ports by GID or LID, the comparisons that a request may
 * contain, and memory for records.
 */
#include "tools/fabric/host/sa.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "tools/fabric/host/rmpp.h"

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
	default: /* the requester wants the best value */
		return true;
	}
}

static bool has_room(struct sa_answer *answer)
{
	unsigned int room = answer->room ? 2 * answer->room : 16;
	uint8_t *records;

	if ((answer->n + 1) * answer->record_bytes > RMPP_DATA_MAX)
		return false;
	if (answer->n < answer->room)
		return true;
	records = realloc(answer->records, room * answer->record_bytes);
	if (!records)
		return false;
	answer->records = records;
	answer->room = room;
	return true;
}

void sa_answer_add(struct sa_answer *answer, const void *record)
{
	if (has_room(answer))
		memcpy(answer->records + answer->n++ * answer->record_bytes, record,
		       answer->record_bytes);
	else
		answer->is_short = true;
}

bool sa_suits(const struct sa_component *components, uint64_t mask, const uint8_t *asked,
	      const uint8_t *record)
{
	for (; components->mask; components++)
		if (mask & components->mask &&
		    memcmp(asked + components->at, record + components->at, components->bytes) != 0)
			return false;
	return true;
}

bool sa_is_trusted(const struct umad_sa_packet *request)
{
	uint64_t key;

	memcpy(&key, request->sm_key, sizeof(key));
	return be64toh(key) == SA_KEY_TRUSTED;
}
