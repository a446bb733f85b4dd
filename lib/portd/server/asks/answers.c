/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests on the control socket, one function per record. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/fd.h"
#include "base/log.h"
#include "lib/net/low_port.h"
#include "lib/portd/proto/lease.h"
#include "lib/portd/server/asks/asks.h"
#include "lib/portd/server/clients/user.h"
#include "lib/portd/server/files/port_holders.h"
#include "lib/portd/server/files/state_file.h"
#include "lib/portd/server/ledger/tracked.h"
#include "lib/portd/server/ledger/tracked_adopt.h"
#include "lib/portd/server/routing/recovery.h"
#include "lib/portd/server/server_state.h"
#include "lib/portd/server/wire/host_port.h"

struct request {
	struct server *server;
	struct client *client;
	const struct portd_record *record;
	int fd; /* passed with the record, or -1; a function that keeps it sets -1 */
	struct portd_reply *reply;
	int *reply_fd; /* array of two */
};

/* The text of the reply names the quota and the remedy. */
static int check_quota(struct request *request, enum quota quota)
{
	char why[USER_WHY_BYTES];

	if (user_may(request->client, quota))
		return 0;
	user_why(request->client, quota, why);
	snprintf(request->reply->text, sizeof(request->reply->text), "%s", why);
	return -EDQUOT;
}

/* --- HELLO --------------------------------------------------------------- */

static void take_block(struct request *request, uint16_t block)
{
	struct client *client = request->client;

	request->server->block_owner[block] = client->index;
	client->block[client->n_blocks++] = block;
	if (client->n_blocks == 1)
		ports_identify(client->net_ns->ports, client->index, block);
	if (client->n_blocks == 1)
		recovery_introduce(request->server, client);
}

/* Clients of the previous cmportd reclaim their ids first; one without ids waits. */
static int check_turn(const struct request *request)
{
	const struct client *client = request->client;

	if (client->visits)
		return -EPERM;
	return client->resuming && !client->n_blocks && recovery_in_grace(request->server) ? -EAGAIN
											   : 0;
}

/* Block 0 contains comm id 0, which means none. PORT_HOLDERS_SEVERAL is no number of a block. */
static bool is_free(const struct server *server, uint16_t block, bool for_dead)
{
	return block && block != PORT_HOLDERS_SEVERAL && server->block_owner[block] == NOBODY &&
	       !tracker_hold_block(server->tracker, block, for_dead);
}

/* Return: how many blocks are in use from the next one on; ID_BLOCKS if all are. */
static unsigned int count_used(const struct server *server, bool for_dead)
{
	uint16_t next = state_file_next_block(server->state_file);
	unsigned int n = 0;

	while (n < ID_BLOCKS && !is_free(server, (uint16_t)(next + n), for_dead))
		n++;
	return n;
}

static int lend_block(struct request *request)
{
	struct server *server = request->server;
	struct client *client = request->client;
	unsigned int n_used;
	uint16_t block;
	int err;

	if (client->n_blocks == ID_BLOCKS_MAX)
		return -ENOSPC;
	err = check_turn(request);
	if (err)
		return err;
	n_used = count_used(server, true);
	if (n_used == ID_BLOCKS) /* a user could have one left behind in each block, for minutes */
		n_used = count_used(server, false);
	if (n_used == ID_BLOCKS)
		return -ENOSPC;
	block = state_file_id_block(server->state_file, n_used);
	take_block(request, block);
	request->reply->secret = state_file_lend(server->state_file, block);
	request->reply->first = (uint32_t)block << ID_BLOCK_SHIFT;
	request->reply->count = UINT32_C(1) << ID_BLOCK_SHIFT;
	return 0;
}

static int open_page(struct request *request)
{
	struct client *client = request->client;
	struct ports *ports = client->net_ns->ports;
	int fd;

	if (!ports_share(ports, client->index, &client->user->n_ports))
		return -ENOMEM;
	if (!request->record->hello.resumes) {
		fd = ports_page_new(ports, client->index);
		request->reply_fd[1] = fd;
		return fd < 0 ? fd : 0;
	}
	fd = request->fd;
	if (fd < 0 || !lease_is_page(fd)) /* closing anything else may wait */
		return -EINVAL;
	request->fd = -1;
	return ports_page_resume(ports, client->index, fd);
}

static int handle_hello(struct request *request)
{
	bool resumes = request->record->hello.resumes != 0;
	int err;

	if (request->record->hello.version != PORTD_VERSION) {
		snprintf(request->reply->text, sizeof(request->reply->text),
			 "this cmportd speaks version %u, the library version %u; "
			 "restart the one that is older",
			 PORTD_VERSION, request->record->hello.version);
		return -EPROTONOSUPPORT;
	}
	request->client->visits = request->record->hello.visits && !resumes;
	if (!resumes && !request->client->visits && recovery_in_grace(request->server))
		return -EAGAIN;
	err = open_page(request);
	if (!err && !tracker_share(request->server->tracker, request->client->index,
				   &request->client->user->n_tracked))
		err = -ENOMEM;
	if (!err)
		err = client_open_data(request->server, request->client, &request->reply_fd[0]);
	if (!err && !resumes && !request->client->visits)
		err = lend_block(request);
	if (err) { /* so that HELLO may be sent again */
		ports_client_gone(request->client->net_ns->ports, request->client->index);
		server_close(request->server, &request->client->data);
		fd_close(&request->reply_fd[0]);
		fd_close(&request->reply_fd[1]);
		return err;
	}
	request->client->welcome = true;
	request->client->n_stats_before = request->server->n_stats;
	request->client->resuming = resumes;
	if (!request->client->visits)
		recovery_welcome(request->server, request->client);
	recovery_introduce(request->server, request->client);
	return 0;
}

/* --- resumption ----------------------------------------------------------- */

/* Logged once for each user, who may connect CONNECTS_S times a second. */
static int refuse_claim(struct request *request, const char *what)
{
	struct client *client = request->client;

	if (!client->user->has_lied)
		log_warn("pid %d, uid %u, has reported %s that it does not have; it is not said "
			 "again",
			 (int)client->pid, (unsigned int)client->uid, what);
	client->user->has_lied = true;
	return -EPERM;
}

/* Not before the client has shown which ports are reserved for it. */
static void resume_leases(const struct client *client)
{
	ports_resume_leases(client->net_ns->ports, client->index,
			    user_room(client, QUOTA_USER_PORTS));
}

static int handle_hold_ids(struct request *request)
{
	uint16_t block = (uint16_t)(request->record->ids.first >> ID_BLOCK_SHIFT);
	struct server *server = request->server;
	uint16_t owner = server->block_owner[block];

	if (!request->client->resuming || request->client->n_blocks == ID_BLOCKS_MAX || !block)
		return -EPERM;
	/* The program's previous client may still have connections to be ended. */
	if (owner != NOBODY && server->client[owner]->leaving) {
		server->asks_again = true;
		return -EAGAIN;
	}
	if (owner != NOBODY)
		return -EEXIST;
	if (!state_file_was_lent(server->state_file, block, request->record->ids.secret))
		return refuse_claim(request, "comm ids");
	take_block(request, block);
	if (request->client->n_blocks > 1)
		return 0;
	resume_leases(request->client);
	recovery_return(request->server, request->client);
	return 0;
}

static int handle_tracked(struct request *request)
{
	struct cm_record tracked = request->record->tracked;
	struct server *server = request->server;
	struct client *client = request->client;
	struct host_port *host_port = client_host_port(server, client, tracked.handle);
	int err = -EPERM;

	if (host_port &&
	    server->block_owner[tracked.local_comm_id >> ID_BLOCK_SHIFT] == client->index) {
		host_port_mark_source(host_port, &tracked.path);
		if (!tracked.path.sgid_tag && !host_port->subnet)
			user_end_turn(client);
		err = tracker_set(server->tracker, client->index, &tracked,
				  (server->has_one_client || client->resuming) &&
					  user_may(client, QUOTA_USER_CONNS));
	}
	return err ? refuse_claim(request, "a connection") : 0;
}

static int handle_resumed(struct request *request)
{
	if (request->client->resuming && !request->client->n_blocks)
		resume_leases(request->client);
	if (request->client->resuming)
		recovery_resumed(request->server, request->client);
	request->client->resuming = false;
	return 0;
}

/* --- ports of the host --------------------------------------------------- */

/* All processes of the host have been searched for the port's holder. */
static int open_later(const struct request *request)
{
	struct server *server = request->server;
	const struct cm_time at = cm_time_after(server->now, OPEN_AGAIN_NS);

	request->client->opens_at = at;
	server->opens_again_at = cm_time_earlier(server->opens_again_at, at);
	user_end_turn(request->client);
	return -EAGAIN;
}

static int handle_open_port(struct request *request)
{
	const struct portd_open_port *wanted = &request->record->open_port;
	struct portd_reply *reply = request->reply;
	char device[PORTD_DEVICE_BYTES];
	struct umad_owner who = { .what = "" };
	struct host_port *host_port;
	int err;

	memcpy(device, wanted->device, sizeof(device));
	device[sizeof(device) - 1] = '\0';
	err = host_port_open(request->server, device, wanted->port_num, &host_port, &who);
	if (recovery_port_is_closing(request->server, err))
		return open_later(request);
	if (err == -EAGAIN) /* from a driver; the request is not tried again */
		err = -EBUSY;
	if (err) {
		if (who.what[0])
			snprintf(reply->text, sizeof(reply->text), "%.120s; %.120s", who.what,
				 who.remedy);
		return err;
	}
	host_port_taken(request->client, host_port);
	ports_count_event(request->client->net_ns->ports, request->client->index,
			  host_port->handle);
	if (request->fd >= 0 && net_ns_show(request->server->home, request->client->net_ns,
					    request->fd, request->client->uid))
		request->fd = -1;
	reply->handle = host_port->handle;
	reply->ca_guid = host_port->cm.ca_guid;
	reply->gid0 = host_port->cm.gid0;
	reply->tos = host_port->tos;
	if (request->client->resuming) /* ids that resume do not open the port again */
		port_defaults_tell(request->server, request->client, host_port);
	return 0;
}

/* --- port spaces --------------------------------------------------------- */

/*
 * As in stock, the kernel's check applies in our own network namespace and below its first
 * unprivileged port. A user can create other namespaces and bind any port there, so there the uid
 * of the connection decides.
 */
static bool may_bind_low(const struct request *request)
{
	const struct net_ns *net_ns = request->client->net_ns;
	uint16_t first = ports_limits(net_ns->ports)->unprivileged_first;
	uint16_t port = low_port_proved(request->fd);

	if (!port)
		return false;
	if (net_ns == request->server->home && net_ns->cookie && first > 1)
		return net_ns_made(net_ns, request->fd) && port < first;
	return request->client->uid == 0;
}

static void refresh_limits(struct request *request, uint16_t port)
{
	struct port_limits *limits = ports_limits(request->client->net_ns->ports);
	bool is_low = port && port < PORT_PRIVILEGED;

	port_limits_reread(limits);
	limits->may_bind_low = is_low && may_bind_low(request);
	/* The program may have been started before this cmportd was installed. */
	if (is_low && !limits->may_bind_low && request->fd < 0 && request->client->uid == 0)
		log_warn("pid %d may not have port %u: it did not prove CAP_NET_BIND_SERVICE; "
			 "if it has that, its library is an older one: restart it",
			 (int)request->client->pid, port);
}

/* Each program leases 256 ports at once, so 96 of them have all that a user may have. */
static void take_back_leases(const struct request *request)
{
	struct client *other;

	for_each_client (other, request->server)
		if (other->user == request->client->user)
			ports_take_back(other->net_ns->ports, other->index);
	user_end_turn(request->client);
}

static int check_ports(struct request *request)
{
	int err = check_turn(request);

	if (err)
		return err;
	if (!user_room(request->client, QUOTA_USER_PORTS))
		take_back_leases(request);
	return check_quota(request, QUOTA_USER_PORTS);
}

static int handle_bind(struct request *request)
{
	const struct portd_claim *claim = &request->record->claim;
	int err = check_ports(request);

	if (err)
		return err;
	if (ports_is_reserved(request->client->net_ns->ports, request->client->index, claim->ps,
			      claim->local_port))
		return -EAGAIN; /* until the grace period is over */
	refresh_limits(request, claim->local_port);
	return ports_bind(request->client->net_ns->ports, request->client->index, claim,
			  &request->reply->port);
}

static int handle_listen(struct request *request)
{
	return ports_listen(request->client->net_ns->ports, request->client->index,
			    &request->record->claim);
}

static int handle_update(struct request *request)
{
	ports_update(request->client->net_ns->ports, request->client->index,
		     &request->record->claim);
	return 0;
}

static int handle_release(struct request *request)
{
	ports_release(request->client->net_ns->ports, request->client->index,
		      request->record->claim.claim_id);
	return 0;
}

static int handle_lease_ports(struct request *request)
{
	const struct portd_lease_ports *wanted = &request->record->lease_ports;
	const struct client *client = request->client;
	int n = check_ports(request);
	uint32_t room;

	if (n)
		return n;
	refresh_limits(request, 0);
	room = user_room(client, QUOTA_USER_PORTS);
	n = ports_lease(client->net_ns->ports, client->index, wanted->ps,
			wanted->count < room ? wanted->count : room, &request->reply->port);
	request->reply->count = n > 0 ? (uint32_t)n : 0;
	return n < 0 ? n : 0;
}

static int handle_stat(struct request *request)
{
	return stat_ask(request->server, request->client, request->record->stat.pid,
			request->reply);
}

/* --- dispatch ------------------------------------------------------------- */

/*
 * A request takes long if it creates sockets or files, or searches tables. So does each one that
 * fails, as it may have searched everything.
 */
static const struct {
	int (*handle)(struct request *);
	bool takes_long;
} rows[PORTD_N_TYPES] = {
	[PORTD_HELLO] = { handle_hello, true },
	[PORTD_OPEN_PORT] = { handle_open_port, true },
	[PORTD_BIND] = { handle_bind, false },
	[PORTD_LISTEN] = { handle_listen, false },
	[PORTD_UPDATE] = { handle_update, false },
	[PORTD_RELEASE] = { handle_release, false },
	[PORTD_LEASE_PORTS] = { handle_lease_ports, true },
	[PORTD_LEASE_AHEAD] = { handle_lease_ports, true },
	[PORTD_LEASE_IDS] = { lend_block, true },
	[PORTD_HOLD_IDS] = { handle_hold_ids, true },
	[PORTD_TRACK] = { handle_tracked, false },
	[PORTD_RESUMED] = { handle_resumed, true },
	[PORTD_STAT] = { handle_stat, true },
};

/* A cmportd that programs start cannot exceed the hard limits of the first one. */
static void explain_limit(struct portd_reply *reply, enum __rlimit_resource resource,
			  const char *option)
{
	struct rlimit limit;

	if (!getrlimit(resource, &limit) && limit.rlim_cur != RLIM_INFINITY)
		snprintf(reply->text, sizeof(reply->text),
			 "cmportd has reached a limit, `ulimit %s` of the program that started it; "
			 "start it where that is higher",
			 option);
}

int answers_handle(struct server *server, struct client *client, const struct portd_record *record,
		   int fd, struct portd_reply *ret, int ret_fd[2])
{
	struct request request = { .server = server,
				   .client = client,
				   .record = record,
				   .fd = fd,
				   .reply = ret,
				   .reply_fd = ret_fd };
	int err = -EPROTO;

	if (client->welcome != (record->type == PORTD_HELLO))
		err = rows[record->type].handle(&request);
	/*
	 * The port's holder may have released it with a record, or by disconnecting, that has not
	 * been read yet: a restarted server must not get EADDRINUSE from its own previous instance,
	 * nor a resuming client EEXIST.
	 */
	client->looked_again = (err == -EADDRINUSE || err == -EADDRNOTAVAIL || err == -EEXIST) &&
			       record->type != PORTD_OPEN_PORT && !client->looked_again;
	if (client->looked_again) {
		server->asks_again = true;
		user_end_turn(client);
		err = -EAGAIN;
	}
	if (err == -EAGAIN)
		return err; /* with the descriptor, which is kept for the next time */
	if (client->resuming && client->n_blocks)
		recovery_await_more(server);
	user_discard(server, client->user, request.fd);
	if (err == -EPROTO)
		return err;
	if (err || rows[record->type].takes_long)
		user_end_turn(client);
	ret->error = (uint16_t)-err;
	if (err == -EMFILE)
		explain_limit(ret, RLIMIT_NOFILE, "-Hn");
	else if (err == -ENOMEM)
		explain_limit(ret, RLIMIT_AS, "-Hv");
	if (err)
		log_debug("client %u, pid %d: %s: %s", client->index, (int)client->pid,
			  portd_type_str(record->type), strerror(-err));
	return 0;
}
