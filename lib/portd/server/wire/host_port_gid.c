/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The source GIDs of messages, by index in the table of a host port. An entry may be replaced while
 * connections use it: a tag in their paths tells which GID they mean.
 */
#include "lib/net/gid.h"
#include "lib/portd/server/server_state.h"
#include "lib/portd/server/wire/host_port.h"

int host_port_gid(struct host_port *host_port, uint8_t index, struct gid_entry *ret)
{
	struct gid_entry *latest = &host_port->latest_gid;
	int err = 0;

	if (latest->gid_index != index || !gid_is_recent(latest))
		err = gid_by_index(host_port->verbs, host_port->port_num, index, latest);
	if (!err)
		*ret = *latest;
	return err;
}

/* InfiniBand GIDs do not change. */
static bool has_gids_that_go(const struct host_port *host_port, const struct mad_path *path)
{
	return path->grh && !host_port->subnet;
}

void host_port_mark_source(struct host_port *host_port, struct mad_path *path,
			   struct gid_entry *ret)
{
	path->sgid_tag = 0;
	ret->verbs = NULL;
	if (!has_gids_that_go(host_port, path))
		return;
	if (host_port_gid(host_port, path->sgid_index, ret))
		ret->verbs = NULL;
	else
		path->sgid_tag = gid_tag(ret);
}

bool host_port_follow_source(struct host_port *host_port, struct mad_path *path,
			     struct gid_entry *ret)
{
	ret->verbs = NULL;
	if (!path->sgid_tag || !has_gids_that_go(host_port, path))
		return true;
	if (!host_port_gid(host_port, path->sgid_index, ret) && gid_tag(ret) == path->sgid_tag)
		return true;
	if (gid_by_tag(host_port->verbs, host_port->port_num, path->sgid_tag, ret))
		return false;
	path->sgid_index = (uint8_t)ret->gid_index;
	return true;
}
