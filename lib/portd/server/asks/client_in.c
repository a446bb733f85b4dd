/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client as seen by cmportd: two sockets, a rate limit, and output queues. Its input is not
 * trusted; a client that violates the protocol is disconnected. A process that may not become a
 * client gets a response that says why.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "lib/portd/proto/datagram.h"
#include "lib/portd/server/asks/asks.h"
#include "lib/portd/server/clients/client_out.h"
#include "lib/portd/server/clients/closer.h"
#include "lib/portd/server/clients/user.h"
#include "lib/portd/server/files/state_file.h"
#include "lib/portd/server/ledger/tracked.h"
#include "lib/portd/server/routing/router.h"
#include "lib/portd/server/sa/subnet_queries.h"
#include "lib/portd/server/server_state.h"
#include "lib/portd/server/wire/host_port.h"
#include "lib/portd/server/wire/unsent.h"
#include "lib/portd/server/wire/waiting.h"

#define BATCH_MAX	  8
#define UNTHROTTLE_NS	  CM_NS_PER_MS

#define DATA_BUFFER_BYTES (1 << 20)
#define DATA_BUFFER_LEAST (1 << 15)
#define DATA_BUFFERS	  (INT64_C(1) << 29) /* half of what the unit allows */
#define FULL_BUFFERS	  64		     /* clients of a user; above, each gets a smaller one */

/* --- connect and disconnect ----------------------------------------------- */

static void control_ready(struct watch *watch);
static void data_ready(struct watch *watch);

/* It may have come from the client. */
static void discard(const struct client *client, int fd)
{
	user_discard(client->server, client->user, fd);
}

static struct client *client_alloc(struct server *server)
{
	struct client *client;
	uint16_t index = 0;

	while (index < CLIENTS_MAX && server->client[index])
		index++;
	client = index < CLIENTS_MAX ? calloc(1, sizeof(*client)) : NULL;
	if (!client)
		return NULL;
	client->server = server;
	client->index = index;
	client->control.fd = client->data.fd = client->asked_fd = -1;
	list_init(&client->backlog);
	list_init(&client->link);
	list_init(&client->asks);
	list_init(&client->stranger);
	list_init(&client->requests);
	return client;
}

/* The program is told why before it asks for anything, so it needs no place. */
static void turn_away(struct server *server, struct user *user, int fd, int err, const char *why)
{
	struct portd_record answer = { .type = PORTD_REPLY, .reply = { .error = (uint16_t)-err } };
	struct portd_datagram out; /* large, so not cleared */

	snprintf(answer.reply.text, sizeof(answer.reply.text), "%s", why);
	out.bytes = 0;
	portd_put(&out, &answer);
	portd_datagram_send(fd, &out, NULL, MSG_DONTWAIT);
	user_hang_up(server, user, fd);
}

/* Return: the client in a place, with its user and its namespace, or NULL. */
static struct client *admit(struct server *server, const struct ucred *cred, int fd)
{
	struct client *client = client_alloc(server);

	if (!client)
		return NULL;
	client->pid = cred->pid;
	client->uid = cred->uid;
	client->net_ns = net_ns_enter(server->home, fd);
	if (client->net_ns && user_enter(server, client, cred->uid)) {
		if (!loop_watch(&server->loop, &client->control, fd, EPOLLIN, control_ready))
			return client;
		user_leave(client);
	}
	if (client->net_ns)
		net_ns_leave(server->home, client->net_ns);
	free(client);
	return NULL;
}

bool client_new(struct server *server, int fd)
{
	struct ucred cred = { .uid = (uid_t)-1 };
	socklen_t bytes = sizeof(cred);
	char why[USER_WHY_BYTES];
	struct client *client;
	struct user *user;
	int err;

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes);
	err = user_may_connect(server, cred.uid, &user, why);
	if (err) {
		turn_away(server, user, fd, err, why);
		return false;
	}
	client = admit(server, &cred, fd);
	if (!client) {
		snprintf(why, sizeof(why), "no room for another client: %u are here",
			 server->n_clients);
		user_turned_away(server, user, cred.uid, why);
		turn_away(server, user, fd, -EAGAIN, why);
		return false;
	}
	list_append(&server->strangers, &client->stranger);
	client->speaks_until = cm_time_after(server->now, HELLO_MS * CM_NS_PER_MS);
	server->client[client->index] = client;
	server->n_clients++;
	log_debug("client %u, pid %d, uid %u", client->index, (int)client->pid,
		  (unsigned int)client->uid);
	return true;
}

/*
 * cmportd's memory: 220 MiB for a user with 1,024 clients, and not much more than DATA_BUFFERS for
 * all users.
 */
static int buffer_bytes(const struct client *client)
{
	const int its = DATA_BUFFER_BYTES / (1 + (int)client->user->n_clients / FULL_BUFFERS);
	const int64_t left = (DATA_BUFFERS - client->server->n_buffer_bytes) / FULL_BUFFERS;

	if (client->user->uid == 0)
		return DATA_BUFFER_BYTES;
	if (left < DATA_BUFFER_LEAST)
		return DATA_BUFFER_LEAST;
	return left < its ? (int)left : its;
}

int client_open_data(struct server *server, struct client *client, int *ret_fd)
{
	int bytes = buffer_bytes(client);
	int pair[2];
	int err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	/* Must hold what a burst of requests queues before the client runs. */
	setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	err = loop_watch(&server->loop, &client->data, pair[0], EPOLLIN, data_ready);
	if (err) {
		close(pair[0]);
		close(pair[1]);
		return err;
	}
	server->n_buffer_bytes += bytes - client->n_buffer_bytes; /* of a HELLO that was refused */
	client->n_buffer_bytes = bytes;
	*ret_fd = pair[1];
	return 0;
}

/* There may be descriptors in its queue. The client must notice at once. */
static void hang_up(struct server *server, struct client *client, struct watch *watch)
{
	int fd = watch->fd;

	if (fd < 0)
		return;
	loop_unwatch(&server->loop, watch);
	user_hang_up(server, client->user, fd);
}

void client_forget(struct server *server, struct client *client)
{
	struct batch *batch;

	hang_up(server, client, &client->control);
	hang_up(server, client, &client->data);
	discard(client, client->asked_fd);
	list_for_each_entry_safe (batch, &client->backlog, link)
		free(batch);
	free(client->out);
	list_remove(&client->link);
	waiting_forget_sender(server, client);
	unsent_forget_sender(server, client);
	host_port_left(server, client);
	subnet_forget_client(client);
	if (client->throttled)
		server->n_throttled--;
	ports_client_gone(client->net_ns->ports, client->index);
	net_ns_leave(server->home, client->net_ns);
	list_remove(&client->stranger);
	client->user->n_queued -= client->n_backlog;
	server->n_buffer_bytes -= client->n_buffer_bytes;
	tracker_share(server->tracker, client->index, NULL);
	user_leave(client);
	server->client[client->index] = NULL;
	server->n_clients--;
	server->idle_since = server->now;
	free(client);
}

static void close_after_turn(struct server *server, struct client *client)
{
	client->leaving = true;
	server->any_leaving = true;
}

void client_expire(struct server *server)
{
	struct client *client;

	while (!list_is_empty(&server->strangers)) {
		client = container_of(server->strangers.next, struct client, stranger);
		if (!cm_time_reached(client->speaks_until, server->now))
			return;
		list_remove(&client->stranger);
		client_disconnect(server, client, "it does not ask for anything");
	}
}

/* --- rate limit ----------------------------------------------------------- */

/* If they were sent faster than they can be closed, they would use up all of ours. */
static bool has_too_many_fds(const struct client *client)
{
	return closer_count(client->user->closing) > CLOSER_MANY;
}

/* A user's excess slows down only that user's clients. */
static bool may_be_read(const struct client *client)
{
	return user_has_rate(client) && !has_too_many_fds(client);
}

static uint32_t control_events(const struct client *client)
{
	return client->throttled || client->has_asked ? EPOLLHUP : EPOLLIN;
}

static void set_throttled(struct server *server, struct client *client, bool on)
{
	if (client->throttled == on)
		return;
	client->throttled = on;
	if (on)
		server->n_throttled++;
	else
		server->n_throttled--;
	loop_change(&server->loop, &client->control, control_events(client));
	if (client->data.fd >= 0)
		client_watch_data(server, client);
}

/* --- requests and replies ------------------------------------------------ */

/* Return: false if the request is deferred to the end of the grace period, or to the next turn. */
static bool handle_request(struct server *server, struct client *client,
			   const struct portd_record *record, int fd)
{
	struct portd_record answer = { .type = PORTD_REPLY };
	struct portd_datagram out; /* large, so not cleared */
	int send_fd[2] = { -1, -1 };
	int err = answers_handle(server, client, record, fd, &answer.reply, send_fd);

	if (err == -EAGAIN) {
		client->has_asked = true;
		client->asked = *record;
		client->asked_fd = fd;
		client->asked_turn = server->turn_no;
		loop_change(&server->loop, &client->control, EPOLLHUP);
		return false;
	}
	if (err) {
		client_disconnect(server, client, "an unexpected request");
	} else if (!portd_is_one_way(record->type)) {
		out.bytes = 0;
		portd_put(&out, &answer);
		if (portd_datagram_send(client->control.fd, &out, send_fd, MSG_DONTWAIT))
			client_disconnect(server, client, "it does not take its answers");
	}
	fd_close(&send_fd[0]); /* the client's end of the data socket */
	fd_close(&send_fd[1]); /* the page of leases */
	return true;
}

/* Handles the request in server->in. One to a datagram, so that a turn can end after each. */
static void handle_datagram(struct server *server, struct client *client, int fd)
{
	struct portd_record record;

	user_spend(client);
	if (portd_get(&server->in, &record) || server->in.at < server->in.bytes)
		client_disconnect(server, client, "not one record");
	else if (!portd_is_asked(record.type))
		client_disconnect(server, client, "a record that is not for this socket");
	if (client->leaving)
		discard(client, fd);
	else
		handle_request(server, client, &record, fd);
}

void client_ask_again(struct server *server, struct client *client)
{
	struct portd_record record = client->asked;
	int fd = client->asked_fd;

	client->has_asked = false;
	client->asked_fd = -1;
	if (handle_request(server, client, &record, fd))
		loop_change(&server->loop, &client->control, control_events(client));
}

static void discard_all(const struct client *client, const int *fds)
{
	for (; *fds >= 0; fds++)
		discard(client, *fds);
}

static void control_ready(struct watch *watch)
{
	struct client *client = container_of(watch, struct client, control);
	struct server *server = client->server;
	int fd[PORTD_FDS_MAX + 1];
	ssize_t n;

	if (client->has_asked) {
		if (watch->came & (EPOLLHUP | EPOLLERR))
			close_after_turn(server, client);
		return;
	}
	if (!may_be_read(client) && !(watch->came & (EPOLLHUP | EPOLLERR))) {
		set_throttled(server, client, true);
		return;
	}
	if (has_too_many_fds(client)) { /* and has gone: what it asks for does not matter */
		close_after_turn(server, client);
		return;
	}
	if (!user_has_turn(client))
		return;
	n = portd_datagram_receive_all(watch->fd, &server->in, fd);
	list_remove(&client->stranger);
	if (n < 0 && errno == EAGAIN)
		return;
	if (fd[0] >= 0)
		discard_all(client, fd + 1); /* one descriptor per datagram */
	if (n > 0) {
		handle_datagram(server, client, fd[0]);
		return;
	}
	discard(client, fd[0]); /* an empty datagram may pass one */
	close_after_turn(server, client);
}

/* --- messages from the client --------------------------------------------- */

/* Not in each turn: there may be a thousand of them, and a turn may be for one message of others.
 */
void client_unthrottle(struct server *server)
{
	struct client *client;

	if (!server->n_throttled || !cm_time_reached(server->unthrottle_at, server->now))
		return;
	server->unthrottle_at = cm_time_after(server->now, UNTHROTTLE_NS);
	for_each_client (client, server) {
		if (!client->throttled)
			continue;
		if (may_be_read(client))
			set_throttled(server, client, false);
	}
}

static void take_messages(struct server *server, struct client *client)
{
	struct portd_record record;
	int err;

	user_spend(client); /* a datagram counts, and each of its messages */
	while ((err = portd_get(&server->in, &record)) == 0) {
		user_spend(client);
		if (record.type == PORTD_MAD) {
			router_sent(server, client, &record.mad);
		} else if (record.type == PORTD_CLOSE) {
			tracker_close(server->tracker, client->index, &record.close);
		} else if (!stat_row(server, client, &record) &&
			   !subnet_record(server, client, &record)) {
			client_disconnect(server, client,
					  "a record that is not for its data socket");
			return;
		}
	}
	if (err == -EPROTO)
		client_disconnect(server, client, "not a record");
}

/* Return: as recv(). */
static ssize_t receive_messages(struct server *server, struct client *client)
{
	int fd[PORTD_FDS_MAX + 1];
	ssize_t n = portd_datagram_receive_all(client->data.fd, &server->in, fd);

	const int err = errno;

	discard_all(client, fd); /* no message has any */
	errno = err;
	if (n > 0)
		take_messages(server, client);
	return n;
}

static void data_ready(struct watch *watch)
{
	struct client *client = container_of(watch, struct client, data);
	struct server *server = client->server;
	unsigned int i = 0;
	ssize_t n;

	if (watch->came & EPOLLOUT)
		client_send_backlog(server, client);
	if (!(watch->came & (EPOLLIN | EPOLLHUP | EPOLLERR)) || !client_may_send(client))
		return;
	if (!may_be_read(client)) {
		set_throttled(server, client, true);
		return;
	}
	if (!user_has_turn(client))
		return;
	do
		n = receive_messages(server, client);
	while (n > 0 && ++i < read_batch_size(&client->batch) && !client->leaving &&
	       client_may_send(client) && user_has_turn(client));
	read_batch_note(&client->batch, i, n <= 0, BATCH_MAX);
	client_watch_data(server, client);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		close_after_turn(server, client);
}

/* End one connection or query, or release some ports. Return: false if nothing is left. */
static bool end_next(struct server *server, struct client *client)
{
	struct cm_record tracked;

	if (ports_client_goes(client->net_ns->ports, client->index) || subnet_client_goes(client))
		return true;
	if (!tracker_take(server->tracker, client->index, &tracked))
		return false;
	router_reap(server, &tracked, client->user->number);
	return true;
}

/*
 * It may have ended its connections itself, with other words than ours. Return: false if there may
 * be more of them, for the next turn.
 */
static bool hear_last_words(struct server *server, struct client *client)
{
	ssize_t n = !client->is_disconnected && client->data.fd >= 0;

	if (n)
		shutdown(client->data.fd, SHUT_RD); /* who has inherited it says no more */
	while (n > 0 && !client->is_disconnected && may_be_read(client)) {
		if (!user_has_turn(client))
			return false;
		n = receive_messages(server, client);
	}
	return true;
}

/* It is sent nothing more. Return: false if this goes on in the next turn. */
static bool begin_end(struct server *server, struct client *client)
{
	if (!hear_last_words(server, client))
		return false;
	log_debug("client %u, pid %d has gone", client->index, (int)client->pid);
	set_throttled(server, client, false);
	client->is_disconnected = client->is_ending = true;
	client->has_asked = false;
	waiting_forget_sender(server, client);
	unsent_forget_sender(server, client); /* what takes back a REQ of it comes after it */
	hang_up(server, client, &client->control);
	hang_up(server, client, &client->data);
	return true;
}

bool client_close(struct server *server, struct client *client)
{
	unsigned int i;
	bool is_over;

	if (!client->is_ending && !begin_end(server, client))
		return false;
	/* 65,536 connections at once would take a quarter of a second. */
	do {
		is_over = !end_next(server, client);
		user_spend(client);
		if (!is_over)
			continue;
		user_end_turn(client); /* sockets and a page are closed */
		for (i = 0; i < client->n_blocks; i++) {
			server->block_owner[client->block[i]] = NOBODY;
			router_left(server, (uint32_t)client->block[i] << ID_BLOCK_SHIFT);
		}
		if (client->welcome && !client->visits)
			state_file_remove_client(server->state_file, client->pid);
		client_forget(server, client);
		return true;
	} while (user_has_turn(client));
	return false;
}
