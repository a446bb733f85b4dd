/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmportd: start, event loop and shutdown. A turn handles all input first, and responses leave at
 * once; then REQs are sent a few at a time, and each client gets its output in one piece.
 */
#include "lib/portd/server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/log.h"
#include "lib/net/gid_table.h"
#include "lib/net/netlink.h"
#include "lib/portd/server/asks/asks.h"
#include "lib/portd/server/clients/client_out.h"
#include "lib/portd/server/clients/closer.h"
#include "lib/portd/server/clients/user.h"
#include "lib/portd/server/ledger/tracked.h"
#include "lib/portd/server/routing/recovery.h"
#include "lib/portd/server/routing/router.h"
#include "lib/portd/server/sa/subnet_queries.h"
#include "lib/portd/server/server_state.h"
#include "lib/portd/server/wire/host_port.h"
#include "lib/portd/server/wire/unsent.h"
#include "lib/portd/server/wire/waiting.h"

#define STOP_NS		   (2000 * CM_NS_PER_MS)
#define LINGER_NS	   (250 * CM_NS_PER_MS)
#define LISTENING_PAUSE_NS (1000 * CM_NS_PER_MS)
#define GRACE_LOOK_MS	   20
#define CLOSES_BEYOND	   16

/* --- descriptors --------------------------------------------------------- */

static void resume_listening(struct server *server)
{
	server->listens_again_at.ns = 0;
	if (server->listening.fd >= 0)
		loop_change(&server->loop, &server->listening, EPOLLIN);
}

/*
 * Without free descriptors the loop would spin, so no connections are accepted until a client
 * leaves, or for a while, because other processes of the host may have used them up.
 */
static void accept_client(struct watch *watch)
{
	struct server *server = container_of(watch, struct server, listening);
	unsigned int i;
	int fd = -1;

	for (i = 0; i < REFUSALS_MAX; i++) {
		fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 || client_new(server, fd))
			break;
	}
	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
		if (server_says_again(server, server->full_at)) {
			log_warn("no more clients for now: %s", strerror(errno));
			server->full_at = server->now;
		}
		server->listens_again_at = cm_time_after(server->now, LISTENING_PAUSE_NS);
		loop_change(&server->loop, watch, 0);
	}
}

static void begin_to_stop(struct server *server)
{
	server->stop_at = cm_time_after(server->now, STOP_NS);
	server->linger_until = cm_time_after(server->now, LINGER_NS);
}

static void take_stop(struct watch *watch)
{
	struct server *server = container_of(watch, struct server, stop);

	begin_to_stop(server);
	loop_change(&server->loop, watch, 0);
}

struct changes {
	struct server *server;
	bool moved; /* routes to peers */
	bool paths;
	bool gids;
};

static void note_change(const struct net_event *event, void *arg)
{
	struct changes *changes = arg;

	switch (event->change) {
	case NET_CHANGE_NEIGH:
		if (event->neigh == NET_NEIGH_KNOWN)
			waiting_neighbour(changes->server, &event->addr);
		changes->paths = changes->paths || event->hw_changed;
		break;
	case NET_CHANGE_ADDR:
	case NET_CHANGE_LINK:
	case NET_CHANGE_LOST:
		changes->gids = true;
		changes->moved = true;
		break;
	case NET_CHANGE_ROUTE:
		changes->moved = true;
		break;
	}
}

static void read_net_changes(struct watch *watch)
{
	struct server *server = container_of(watch, struct server, net);
	struct changes changes = { .server = server };
	struct host_port *host_port;

	net_watch_drain(note_change, &changes);
	if (changes.gids)
		gid_forget(NULL);
	if (changes.paths || changes.moved)
		for_each_host_port (host_port, server)
			host_port_paths_changed(host_port);
	if (changes.moved)
		waiting_moved(server);
}

/* --- when the next turn is due -------------------------------------------- */

static bool is_idle(const struct server *server)
{
	return server->options.idle_s && server->n_clients == 0 && server->core.n_conns == 0 &&
	       orphans_are_none(server);
}

static struct cm_time idle_deadline(const struct server *server)
{
	return cm_time_after(server->idle_since,
			     (uint64_t)server->options.idle_s * 1000 * CM_NS_PER_MS);
}

/*
 * The clients may have been terminated by the same signal, as by systemd when it stops a service.
 * Those that remain after a moment will resume with the next cmportd.
 */
static struct cm_time stop_deadline(const struct server *server)
{
	if (server->core.n_conns || !unsent_are_none(server))
		return server->stop_at;
	return server->n_clients ? server->linger_until : server->now;
}

static struct cm_time earlier_ms(const struct server *server, struct cm_time deadline, int ms)
{
	return cm_time_earlier(deadline, cm_time_after(server->now, (uint64_t)ms * CM_NS_PER_MS));
}

static bool has_more_to_do(const struct server *server)
{
	return server->requests_left || (server->asks_again && !server->grace_until.ns) ||
	       server->any_leaving || server->any_unread || !list_is_empty(&server->tellers);
}

static struct cm_time next_deadline(const struct server *server)
{
	struct cm_time deadline = cm_core_deadline(&server->core);
	struct host_port *host_port;

	deadline = cm_time_earlier(deadline, orphans_deadline(server));
	for_each_host_port (host_port, server) {
		deadline = cm_time_earlier(deadline, subnet_deadline(host_port));
		deadline = cm_time_earlier(deadline, host_port_deadline(host_port));
		if (host_port->probes_at.ns)
			deadline = cm_time_earlier(deadline, host_port->probes_at);
	}
	if (server->stop_at.ns)
		deadline = cm_time_earlier(deadline, stop_deadline(server));
	if (is_idle(server))
		deadline = cm_time_earlier(deadline, idle_deadline(server));
	if (!list_is_empty(&server->strangers))
		deadline = cm_time_earlier(
			deadline, container_of(server->strangers.next, struct client, stranger)
					  ->speaks_until);
	if (server->listens_again_at.ns)
		deadline = cm_time_earlier(deadline, server->listens_again_at);
	deadline = cm_time_earlier(deadline, server->opens_again_at);
	if (server->grace_until.ns)
		deadline = earlier_ms(server, deadline, GRACE_LOOK_MS);
	if (server->n_throttled)
		deadline = cm_time_earlier(deadline, server->unthrottle_at);
	deadline = cm_time_earlier(deadline, server->waiting.look_at);
	if (!list_is_empty(&server->holders))
		deadline = cm_time_earlier(deadline, server->resume_at);
	return deadline;
}

/* --- a turn -------------------------------------------------------------- */

/*
 * Return: whether all that was ready in an earlier turn has been read from. A user may keep as many
 * descriptors ready as a turn reads from, but the kernel lists each of them in turn: two of each
 * client, four of each port, and our own.
 */
static bool has_read_since(const struct server *server, uint64_t turn_no, int n_events)
{
	const unsigned int n_descriptors = 2 * server->n_clients + 4 * (server->n_host_ports + 1);
	const uint64_t n_turns = server->turn_no - turn_no;

	return n_turns && (n_events < LOOP_EVENTS_MAX || n_turns * LOOP_EVENTS_MAX > n_descriptors);
}

static bool opens_later(const struct client *client)
{
	return client->has_asked && client->asked.type == PORTD_OPEN_PORT;
}

/* At the end of the grace period, all clients of a user may have one. */
static void answer_kept_requests(struct server *server, int n_events)
{
	struct client *client;

	server->asks_again = false;
	for_each_client (client, server) {
		if (!client->has_asked || opens_later(client))
			continue;
		if (user_has_turn(client) && has_read_since(server, client->asked_turn, n_events))
			client_ask_again(server, client);
		else
			server->asks_again = true;
	}
}

/* Also during the grace period: these clients cannot resume, and so end it, without the port. */
static void open_again(struct server *server)
{
	struct client *client;

	server->opens_again_at = CM_TIME_NEVER;
	for_each_client (client, server) {
		if (!opens_later(client))
			continue;
		if (cm_time_reached(client->opens_at, server->now) && user_has_turn(client))
			client_ask_again(server, client);
		else
			server->opens_again_at =
				cm_time_earlier(server->opens_again_at, client->opens_at);
	}
}

/*
 * A user's other clients may use up each of his turns, so a few leaving clients go on after the end
 * of the turn.
 */
static void close_leaving_clients(struct server *server)
{
	unsigned int n_beyond = 0;
	struct client *client;

	server->any_leaving = false;
	for_each_client (client, server) {
		if (!client->leaving)
			continue;
		if ((!user_has_turn(client) && n_beyond++ >= CLOSES_BEYOND) ||
		    !client_close(server, client))
			server->any_leaving = true;
	}
	resume_listening(server);
	if (server->has_one_client && !server->n_clients)
		begin_to_stop(server);
}

static void receive_unread(struct server *server)
{
	struct host_port *host_port;

	server->any_unread = false;
	for_each_host_port (host_port, server)
		if (host_port->has_unread)
			host_port_receive_inbox(server, host_port);
}

static void follow_device_events(struct server *server)
{
	struct host_port *host_port;

	server->any_port_news = false;
	for_each_host_port (host_port, server) {
		if (host_port->has_moved)
			host_port_paths_changed(host_port);
		host_port->has_moved = false;
		if (host_port->is_gone)
			host_port_close(server, host_port);
	}
}

/* A deadline that is set in this turn is handled in the next one, whose wait it ends. */
static void expire(struct server *server)
{
	struct host_port *host_port;

	client_expire(server);
	host_port_expire(server);
	if (server->listens_again_at.ns && cm_time_reached(server->listens_again_at, server->now))
		resume_listening(server);
	if (cm_time_reached(server->opens_again_at, server->now))
		open_again(server);
	orphans_end(server);
	client_unthrottle(server);
	router_expire(server);
	for_each_host_port (host_port, server)
		subnet_expire(server, host_port);
	waiting_look(server);
}

void server_turn(struct server *server)
{
	bool keeps = server->grace_until.ns != 0 || server->asks_again;
	const struct cm_time due_at = next_deadline(server);
	const int ms = has_more_to_do(server) ? 0 : cm_time_ms_until(due_at, server->now);
	struct host_port *host_port;
	struct client *client;
	int n;

	n = loop_wait(&server->loop, ms);
	server->now = clock_now();
	server->turn_no++;
	gid_read_again_after(GIDS_AGAIN_NS);
	if (server->any_unread)
		receive_unread(server);
	loop_dispatch(&server->loop);
	if (server->any_port_news)
		follow_device_events(server);
	if (server->any_leaving)
		close_leaving_clients(server);
	if (keeps && !recovery_in_grace(server))
		answer_kept_requests(server, n);
	if (cm_time_reached(due_at, server->now))
		expire(server);
	subnet_tell(server);
	unsent_send(server);
	for_each_host_port (host_port, server)
		host_port_flush(server, host_port);
	list_for_each_entry_safe (client, &server->filled, link)
		client_flush(server, client);
}

/* --- beginning and end --------------------------------------------------- */

static void forget_reaped(struct cm_core *core, const struct cm_conn *conn)
{
	tracker_reaped(container_of(core, struct server, core)->tracker, conn->local_comm_id);
}

static int make_tables(struct server *server)
{
	uint64_t secret[7];
	int err;

	if (getrandom(secret, sizeof(secret), 0) != sizeof(secret))
		return -errno;
	hash_set_secret(secret[6]); /* users choose the keys under which mad/ stores peers */
	err = cm_core_init(&server->core, secret[0]);
	if (!err)
		err = waiting_init(&server->waiting, secret[5]);
	if (!err)
		err = cm_index_init(&server->lanes, secret[5]);
	if (!err)
		err = cm_index_init(&server->asks, secret[5]);
	if (err)
		return err;
	server->core.released = forget_reaped;
	server->tracker = tracker_new(secret[1]);
	server->home = net_ns_home(secret[2]);
	return server->tracker && server->home ? 0 : -ENOMEM;
}

static int watch_own_descriptors(struct server *server)
{
	int err = 0;

	if (server->options.stop_fd >= 0)
		err = loop_watch(&server->loop, &server->stop, server->options.stop_fd, EPOLLIN,
				 take_stop);
	if (!err)
		err = net_watch_open(NET_WATCH_ALL);
	return err ? err
		   : loop_watch(&server->loop, &server->net, net_watch_fd(), EPOLLIN,
				read_net_changes);
}

/* The client sees the end of our copy of its socket, in server_end(), when the ports are free. */
static int let_one_in(struct server *server, int client_fd)
{
	int fd = fcntl(client_fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0 || fcntl(client_fd, F_SETFD, FD_CLOEXEC) || fcntl(fd, F_SETFL, O_NONBLOCK))
		return -errno;
	server->has_one_client = true;
	client_new(server, fd);
	return server->n_clients ? 0 : -ENOMEM;
}

static int let_clients_in(struct server *server)
{
	if (server->options.client_fd >= 0)
		return let_one_in(server, server->options.client_fd);
	recovery_begin(server);
	return loop_watch(&server->loop, &server->listening, server->listening.fd, EPOLLIN,
			  accept_client);
}

int server_begin(struct server *server)
{
	unsigned int i;
	int err, users_err;

	server->received = router_received;
	server->stop.fd = server->net.fd = server->listening.fd = server->reload.fd = -1;
	server->now = clock_now();
	server->idle_since = server->begun_at = server->now;
	server->opens_again_at = CM_TIME_NEVER;
	list_init(&server->senders);
	list_init(&server->holders);
	list_init(&server->tellers);
	user_init(&server->nobody, (uid_t)-1);
	list_init(&server->strangers);
	list_init(&server->filled);
	server->recording.fd = -1;
	for (i = 0; i < ID_BLOCKS; i++)
		server->block_owner[i] = NOBODY;
	users_err = users_init(&server->users); /* in any case, as server_end() ends both */
	err = loop_init(&server->loop);
	if (!err)
		err = users_err;
	if (!err)
		err = make_tables(server);
	if (!err && server->options.client_fd < 0 && !(server->closer = closer_new()))
		err = -ENOMEM;
	if (!err)
		err = watch_own_descriptors(server);
	if (!err)
		err = recovery_open(server);
	if (!err)
		err = port_defaults_begin(server);
	if (!err)
		err = let_clients_in(server);
	if (!err && server->options.opens_ports)
		host_port_open_all(server);
	return err;
}

void server_end(struct server *server)
{
	struct host_port *host_port;
	struct client *client;

	if (server->home)
		ports_keep_holders(server->home->ports,
				   NULL); /* the next cmportd needs the table */
	for_each_client (client, server)
		client_forget(server, client);
	server->core.released = NULL;
	tracker_free(server->tracker);
	server->tracker = NULL;
	for_each_host_port (host_port, server)
		host_port_close(server, host_port);
	free(server->spare);
	users_fini(server);
	closer_free(server->closer);
	net_ns_home_free(server->home);
	cm_core_fini(&server->core);
	waiting_fini(&server->waiting);
	cm_index_fini(&server->lanes);
	cm_index_fini(&server->asks);
	recovery_close(server);
	trace_ring_fini(&server->recording);
	net_watch_close();
	fd_close(&server->options.client_fd);
	loop_fini(&server->loop);
}

bool server_is_over(const struct server *server)
{
	if (server->stop_at.ns)
		return cm_time_reached(stop_deadline(server), server->now);
	return is_idle(server) && cm_time_reached(idle_deadline(server), server->now);
}

int server_run(const struct server_options *options)
{
	struct server *server = calloc(1, sizeof(*server));
	int err;

	if (!server)
		return -ENOMEM;
	server->options = *options;
	err = server_begin(server);
	if (!err) {
		log_debug("at %s", options->path ? options->path : "one client");
		if (options->serves)
			options->serves();
		while (!server_is_over(server))
			server_turn(server);
	}
	server_end(server);
	free(server);
	return err;
}
