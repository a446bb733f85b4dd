/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The source GIDs of messages, by index in the table of a host port. An entry may be replaced while
 * connections use it: a tag in their paths tells which GID they mean.
 */
#include "lib/net/gid_table.h"
#include "lib/portd/server/wire/host_port.h"

const struct gid_entry *host_port_gid(struct host_port *host_port, uint8_t index)
{
	struct gid_entry *latest = &host_port->latest_gid;

	if (latest->gid_index == index && gid_is_recent(latest))
		return latest;
	return gid_by_index(host_port->verbs, host_port->port_num, index, latest) ? NULL : latest;
}

/* InfiniBand GIDs do not change. */
static bool has_gids_that_go(const struct host_port *host_port, const struct mad_path *path)
{
	return path->grh && !host_port->subnet;
}

void host_port_mark_source(struct host_port *host_port, struct mad_path *path)
{
	const struct gid_entry *gid = NULL;

	if (has_gids_that_go(host_port, path))
		gid = host_port_gid(host_port, path->sgid_index);
	path->sgid_tag = gid ? gid_tag(gid) : 0;
}

bool host_port_follow_source(struct host_port *host_port, struct mad_path *path)
{
	const struct gid_entry *gid;

	if (!path->sgid_tag || !has_gids_that_go(host_port, path))
		return true;
	gid = host_port_gid(host_port, path->sgid_index);
	if (gid && gid_tag(gid) == path->sgid_tag)
		return true;
	if (gid_by_tag(host_port->verbs, host_port->port_num, path->sgid_tag,
		       &host_port->latest_gid))
		return false;
	path->sgid_index = (uint8_t)host_port->latest_gid.gid_index;
	return true;
}
