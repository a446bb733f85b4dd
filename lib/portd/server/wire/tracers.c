/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shows all messages of this host to tracers such as `purecm trace`, in a ring that they have
 * mapped, and records the latest messages in a file beside the socket. A message costs no system
 * call unless a tracer sleeps.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "lib/net/gid_table.h"
#include "lib/portd/server/wire/tracers.h"
#include "lib/portd/server/clients/client_out.h"
#include "lib/portd/server/server_state.h"
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

static void wake_tracer(struct server *server, struct client *client)
{
	const struct portd_record record = { .type = PORTD_SEEN,
					     .seen = { .number = server->n_seen } };

	list_remove(&client->asleep);
	client_show(server, client, &record, BACKLOG_MAX);
}

/* Return: the message's number in the ring; 0 if its file has no room. */
static uint64_t append_entry(struct trace_ring *ring, struct host_port *host_port,
			     enum portd_way way, const struct client *whose,
			     const struct mad_path *path, const uint8_t mad[MAD_BYTES])
{
	struct trace_entry *entry = trace_ring_begin(ring);

	if (!entry)
		return 0;
	entry->time_ns = clock_ns_of(CLOCK_REALTIME);
	entry->pid = whose ? (uint32_t)whose->pid : 0;
	entry->way = (uint8_t)way;
	entry->port_num = host_port->port_num;
	memcpy(entry->device, host_port->device, sizeof(entry->device));
	entry->local_gid = local_gid(host_port, path);
	entry->path = *path;
	memcpy(entry->mad, mad, MAD_BYTES);
	return trace_ring_end(ring);
}

void tracer_write(struct server *server, struct host_port *host_port, enum portd_way way,
		  const struct client *whose, const struct mad_path *path,
		  const uint8_t mad[MAD_BYTES])
{
	struct trace_ring *recording = &server->recording;
	struct client *client;

	if (recording->ring && !append_entry(recording, host_port, way, whose, path, mad)) {
		log_warn("%s" RECORDING_SUFFIX
			 " has no more room: messages are not recorded any more",
			 server->options.path);
		trace_ring_fini(recording);
	}
	if (!server->n_tracers)
		return;
	server->n_seen = append_entry(&server->trace_ring, host_port, way, whose, path, mad);
	list_for_each_entry_safe (client, &server->asleep, asleep)
		wake_tracer(server, client);
}

/* A failure to record must not keep clients from connecting. */
void tracer_record(struct server *server, int fd)
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

bool tracer_await(struct server *server, struct client *client, const struct portd_record *record)
{
	if (record->type != PORTD_AWAIT || !client->is_tracer)
		return false;
	list_remove(&client->asleep);
	list_append(&server->asleep, &client->asleep);
	if (server->n_seen > record->seen.number)
		wake_tracer(server, client);
	return true;
}

void tracer_end(struct server *server, struct client *client)
{
	if (!client->is_tracer)
		return;
	client->is_tracer = false;
	list_remove(&client->asleep);
	if (--server->n_tracers == 0)
		trace_ring_fini(&server->trace_ring);
}

/* Messages of other users are visible only to root and to the user that cmportd runs as. */
int tracer_begin(struct server *server, struct client *client)
{
	int err, fd;

	if (client->uid != 0 && client->uid != geteuid())
		return -EPERM;
	if (!server->n_tracers) {
		err = trace_ring_init(&server->trace_ring);
		if (err) {
			trace_ring_fini(&server->trace_ring);
			return err;
		}
		server->n_seen = 0;
	}
	if (!client->is_tracer) {
		client->is_tracer = true;
		list_init(&client->asleep);
		server->n_tracers++;
	}
	fd = fcntl(server->trace_ring.fd, F_DUPFD_CLOEXEC, 0);
	if (fd >= 0)
		return fd;
	err = -errno;
	tracer_end(server, client);
	return err;
}
