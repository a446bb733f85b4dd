/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What clients ask for on their control socket, one function a record. Called by client.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "lib/net/low_port.h"
#include "lib/portd/server/state.h"

struct question {
	struct server *server;
	struct client *client;
	const struct portd_record *record;
	int fd; /* that came along, or -1; whoever takes it leaves -1 */
	struct portd_reply *reply;
	int *reply_fd; /* two */
};

/* --- HELLO --------------------------------------------------------------- */

static void take_block(struct question *q, uint16_t block)
{
	struct client *client = q->client;

	q->server->block_owner[block] = client->index;
	q->server->block_pid[block] = client->pid;
	client->block[client->n_blocks++] = block;
	if (client->n_blocks == 1)
		q->server->options.recovery->introduce(q->server, client);
}

/* The first one has comm id 0, which is that of messages that name nobody. They count up; but who
 * removes the state file has them begin anywhere. */
static int lend_block(struct question *q)
{
	struct server *server = q->server;
	struct client *client = q->client;
	unsigned int tries;
	uint16_t block;

	if (client->n_blocks == ID_BLOCKS_MAX)
		return -ENOSPC;
	for (tries = 0; tries < ID_BLOCKS; tries++) {
		block = server->options.recovery->id_block(server);
		if (block && server->block_owner[block] == NOBODY &&
		    !tracker_hold_block(server->tracker, block))
			break;
	}
	if (tries == ID_BLOCKS)
		return -ENOSPC;
	take_block(q, block);
	q->reply->first = (uint32_t)block << ID_BLOCK_SHIFT;
	q->reply->count = UINT32_C(1) << ID_BLOCK_SHIFT;
	return 0;
}

static int open_page(struct question *q)
{
	int fd;

	if (!q->record->hello.resumes) {
		fd = ports_page_new(q->client->net_ns->ports, q->client->index);
		q->reply_fd[1] = fd;
		return fd < 0 ? fd : 0;
	}
	fd = q->fd;
	q->fd = -1;
	return fd < 0 ? -EINVAL : ports_page_resume(q->client->net_ns->ports, q->client->index, fd);
}

/* So that it may be said again. */
static void undo_hello(struct question *q)
{
	ports_client_gone(q->client->net_ns->ports, q->client->index);
	server_close(q->server, &q->client->data);
	fd_close(&q->reply_fd[0]);
	fd_close(&q->reply_fd[1]);
}

static int answer_hello(struct question *q)
{
	bool resumes = q->record->hello.resumes != 0;
	int err;

	if (q->client->welcome)
		return -EPROTO;
	if (q->record->hello.version != PORTD_VERSION) {
		snprintf(q->reply->text, sizeof(q->reply->text),
			 "this cmportd speaks version %u, the library version %u; "
			 "restart the one that is older",
			 PORTD_VERSION, q->record->hello.version);
		return -EPROTONOSUPPORT;
	}
	q->client->visits = q->record->hello.visits && !resumes;
	if (!resumes && !q->client->visits && server_in_grace(q->server))
		return -EAGAIN;
	err = open_page(q);
	if (!err)
		err = client_open_data(q->server, q->client, &q->reply_fd[0]);
	if (!err && !resumes && !q->client->visits)
		err = lend_block(q);
	if (err) {
		undo_hello(q);
		return err;
	}
	q->client->welcome = true;
	q->client->resuming = resumes;
	if (!q->client->visits)
		q->server->options.recovery->welcome(q->server, q->client);
	q->server->options.recovery->introduce(q->server, q->client);
	return 0;
}

/* --- what an earlier cmportd knew ---------------------------------------- */

/* Of a block that was handed out in our own life we know whose it was: its connections may be
 * ending still, and what their peers say is nobody else's business. */
static int answer_hold_ids(struct question *q)
{
	uint16_t block = (uint16_t)(q->record->ids.first >> ID_BLOCK_SHIFT);
	const struct server *server = q->server;

	if (!q->client->resuming || q->client->n_blocks == ID_BLOCKS_MAX || !block)
		return -EPERM;
	if (server->block_owner[block] != NOBODY)
		return -EEXIST;
	if (server->block_pid[block] && server->block_pid[block] != q->client->pid)
		return -EPERM;
	take_block(q, block);
	return 0;
}

static bool owns(const struct question *q, uint32_t comm_id)
{
	return q->server->block_owner[comm_id >> ID_BLOCK_SHIFT] == q->client->index;
}

static int answer_tracked(struct question *q)
{
	const struct cm_record *tracked = &q->record->tracked;

	if (tracked->handle >= HOST_PORTS_MAX || !(q->client->host_ports >> tracked->handle & 1) ||
	    !q->server->host_port[tracked->handle] || tracked->state >= CM_N_STATES ||
	    !owns(q, tracked->local_comm_id) ||
	    tracker_count(q->server->tracker, q->client->index) >= TRACKED_MAX)
		return -EPERM;
	return tracker_set(q->server->tracker, q->client->index, tracked);
}

static int answer_resumed(struct question *q)
{
	if (q->client->resuming)
		q->server->options.recovery->returned(q->server, q->client);
	q->client->resuming = false;
	return 0;
}

/* --- ports of the host --------------------------------------------------- */

static int answer_open_port(struct question *q)
{
	const struct portd_open_port *wanted = &q->record->open_port;
	struct portd_reply *reply = q->reply;
	char device[PORTD_DEVICE_BYTES];
	struct umad_owner who = { .what = "" };
	struct host_port *host_port;
	int err;

	memcpy(device, wanted->device, sizeof(device));
	device[sizeof(device) - 1] = '\0';
	err = host_port_open(q->server, device, wanted->port_num, &host_port, &who);
	if (err) {
		if (who.what[0])
			snprintf(reply->text, sizeof(reply->text), "%.120s; %.120s", who.what,
				 who.remedy);
		return err;
	}
	q->client->host_ports |= UINT64_C(1) << host_port->handle;
	reply->handle = host_port->handle;
	reply->ca_guid = host_port->cm.ca_guid;
	reply->gid0 = host_port->cm.gid0;
	return 0;
}

/* --- port spaces --------------------------------------------------------- */

/*
 * The kernel's check counts where it says what stock's does: in our own network namespace, and
 * below the ports that are everybody's there. Elsewhere a user may have a namespace of his own, in
 * which he may bind anything: there the user counts that connected.
 */
static bool may_bind_low(const struct question *q)
{
	const struct net_ns *net_ns = q->client->net_ns;
	uint16_t first = ports_limits(net_ns->ports)->unprivileged_first;
	uint16_t port = low_port_proved(q->fd);

	if (!port)
		return false;
	if (net_ns == q->server->home && net_ns->cookie && first > 1)
		return net_ns_made(net_ns, q->fd) && port < first;
	return q->client->uid == 0;
}

/* Root is told, as it may be a program that was started before this cmportd was installed. */
static void explain_low(const struct question *q, uint16_t port)
{
	if (q->fd < 0 && q->client->uid == 0)
		log_warn("pid %d may not have port %u: it did not prove CAP_NET_BIND_SERVICE; "
			 "if it has that, its library is an older one: restart it",
			 (int)q->client->pid, port);
}

static void refresh_limits(struct question *q, uint16_t port)
{
	struct port_limits *limits = ports_limits(q->client->net_ns->ports);
	bool is_low = port && port < PORT_PRIVILEGED;

	port_limits_reread(limits);
	limits->may_bind_low = is_low && may_bind_low(q);
	if (is_low && !limits->may_bind_low)
		explain_low(q, port);
}

static int answer_bind(struct question *q)
{
	const struct portd_claim *claim = &q->record->claim;

	refresh_limits(q, claim->local_port);
	return ports_bind(q->client->net_ns->ports, q->client->index, claim, &q->reply->port);
}

static int answer_listen(struct question *q)
{
	return ports_listen(q->client->net_ns->ports, q->client->index, &q->record->claim);
}

static int answer_update(struct question *q)
{
	ports_update(q->client->net_ns->ports, q->client->index, &q->record->claim);
	return 0;
}

static int answer_release(struct question *q)
{
	ports_release(q->client->net_ns->ports, q->client->index, q->record->claim.claim_id);
	return 0;
}

static int answer_lease_ports(struct question *q)
{
	const struct portd_lease_ports *wanted = &q->record->lease_ports;
	int n;

	refresh_limits(q, 0);
	n = ports_lease(q->client->net_ns->ports, q->client->index, wanted->ps, wanted->count,
			&q->reply->port);
	q->reply->count = n > 0 ? (uint32_t)n : 0;
	return n < 0 ? n : 0;
}

static int answer_trace(struct question *q)
{
	const struct server_tracing *tracing = q->server->options.tracing;
	const int fd = tracing ? tracing->begin(q->server, q->client) : -EOPNOTSUPP;

	q->reply_fd[0] = fd < 0 ? -1 : fd;
	return fd < 0 ? fd : 0;
}

static int answer_stat(struct question *q)
{
	const struct server_tracing *tracing = q->server->options.tracing;

	if (!tracing)
		return -EOPNOTSUPP;
	return tracing->ask(q->server, q->client, q->record->stat.pid, q->reply);
}

/* --- which ---------------------------------------------------------------- */

static int (*const answers[PORTD_N_TYPES])(struct question *) = {
	[PORTD_HELLO] = answer_hello,
	[PORTD_OPEN_PORT] = answer_open_port,
	[PORTD_BIND] = answer_bind,
	[PORTD_LISTEN] = answer_listen,
	[PORTD_UPDATE] = answer_update,
	[PORTD_RELEASE] = answer_release,
	[PORTD_LEASE_PORTS] = answer_lease_ports,
	[PORTD_LEASE_AHEAD] = answer_lease_ports,
	[PORTD_LEASE_IDS] = lend_block,
	[PORTD_HOLD_IDS] = answer_hold_ids,
	[PORTD_TRACK] = answer_tracked,
	[PORTD_RESUMED] = answer_resumed,
	[PORTD_TRACE] = answer_trace,
	[PORTD_STAT] = answer_stat,
};

/* Whoever holds the port may have let go of it already, by a record or an end that we have not come
 * to: a server that is started again must not meet its own shadow. */
static bool is_worth_another_look(struct question *q, int err)
{
	bool is_conflict = err == -EADDRINUSE || err == -EADDRNOTAVAIL;

	q->client->looked_again = is_conflict && !q->client->looked_again;
	if (q->client->looked_again)
		q->server->asks_again = true;
	return q->client->looked_again;
}

int answer_ask(struct server *server, struct client *client, const struct portd_record *record,
	       int fd, struct portd_reply *ret, int ret_fd[2])
{
	struct question q = { .server = server,
			      .client = client,
			      .record = record,
			      .fd = fd,
			      .reply = ret,
			      .reply_fd = ret_fd };
	int err = -EPROTO;

	if (client->welcome != (record->type == PORTD_HELLO))
		err = answers[record->type](&q);
	if (is_worth_another_look(&q, err))
		err = -EAGAIN;
	if (err == -EAGAIN)
		return err; /* with the descriptor, for the next time */
	fd_close(&q.fd);
	if (err == -EPROTO)
		return err;
	ret->error = (uint16_t)-err;
	if (err)
		log_debug("client %u, pid %d: %s: %s", client->index, (int)client->pid,
			  portd_type_str(record->type), strerror(-err));
	return 0;
}
