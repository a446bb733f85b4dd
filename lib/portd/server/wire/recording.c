/* SPDX-License-Identifier: BSD-2-Clause */
/* The recording: see recording.h. */
#include "lib/portd/server/wire/recording.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "lib/net/gid_table.h"
#include "lib/portd/server/wire/host_port.h"

static struct mad_gid local_gid(struct host_port *host_port, const struct mad_path *path)
{
	const struct gid_entry *entry = path->grh ? host_port_gid(host_port, path->sgid_index)
						  : NULL;
	struct mad_gid gid = host_port->cm.gid0;

	if (entry)
		memcpy(&gid, &entry->gid, sizeof(gid));
	return gid;
}

void recording_write(struct server *server, struct host_port *host_port, enum portd_way way,
		     const struct client *whose, const struct mad_path *path,
		     const uint8_t mad[MAD_BYTES])
{
	struct trace_entry *entry = trace_ring_begin(&server->recording);

	if (!entry) {
		log_warn("%s" RECORDING_SUFFIX
			 " has no more room: messages are not recorded any more",
			 server->options.path);
		trace_ring_fini(&server->recording);
		return;
	}
	entry->time_ns = clock_ns_of(CLOCK_REALTIME);
	entry->pid = whose ? (uint32_t)whose->pid : 0;
	entry->way = (uint8_t)way;
	entry->port_num = host_port->port_num;
	memcpy(entry->device, host_port->device, sizeof(entry->device));
	entry->local_gid = local_gid(host_port, path);
	entry->path = *path;
	memcpy(entry->mad, mad, MAD_BYTES);
	trace_ring_end(&server->recording);
}

/* A failure to record must not keep clients from connecting. */
void recording_begin(struct server *server, int fd)
{
	const uint32_t n_entries = server->options.n_recorded;
	int err = n_entries ? trace_ring_open(&server->recording, fd, n_entries) : ftruncate(fd, 0);

	if (n_entries && !err)
		return;
	if (err)
		log_warn("%s" RECORDING_SUFFIX ": messages are not recorded: %s",
			 server->options.path, strerror(n_entries ? -err : errno));
	if (!n_entries)
		close(fd);
	trace_ring_fini(&server->recording);
}
