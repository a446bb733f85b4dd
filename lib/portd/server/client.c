/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client as cmportd sees it: two sockets, a rate, and what waits for it. Nothing that it sends is
 * believed; a client that does not keep to the protocol is disconnected.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "lib/portd/proto/datagram.h"
#include "lib/portd/server/state.h"
#include "lib/portd/server/subnet.h"

#define DATA_BUFFER_BYTES (1 << 20)
#define SPARE_MAX	  64
#define BATCH_MAX	  8
#define ROW_PRICE	  0.0625 /* of a message: it was asked for, and is soon passed on */

/* --- coming and going ---------------------------------------------------- */

static void control_ready(struct watch *watch, uint32_t events);
static void data_ready(struct watch *watch, uint32_t events);

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
	client->batch = 1;
	client->tokens = quota_of(&server->options.quotas, QUOTA_CLIENT_RATE) / 10.;
	client->tokens_at = server->now;
	list_init(&client->backlog);
	list_init(&client->link);
	list_init(&client->asks);
	list_init(&client->stranger);
	return client;
}

/* So that its program can say why it is refused. */
static bool may_be_heard(const struct client *client)
{
	uint32_t quota = quota_of(&client->server->options.quotas, QUOTA_USER_CLIENTS);

	return !client->is_beyond || client->user->n_clients <= quota + BEYOND_MAX;
}

void client_new(struct server *server, int fd)
{
	struct client *client = client_alloc(server);
	struct ucred cred = { .uid = (uid_t)-1 };
	socklen_t bytes = sizeof(cred);

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes);
	if (!client || (cred.uid && server->n_clients >= CLIENTS_MAX - ROOT_CLIENTS) ||
	    !user_enter(server, client, cred.uid)) {
		log_warn("no room for another client: %u are here", server->n_clients);
		close(fd);
		free(client);
		return;
	}
	client->pid = cred.pid;
	client->uid = cred.uid;
	client->is_beyond = !user_may(client, QUOTA_USER_CLIENTS, client->user->n_clients - 1);
	client->net_ns = net_ns_enter(server->home, fd);
	if (!client->net_ns || !may_be_heard(client) ||
	    loop_watch(&server->loop, &client->control, fd, EPOLLIN, control_ready)) {
		if (client->net_ns)
			net_ns_leave(server->home, client->net_ns);
		user_leave(client);
		close(fd);
		free(client);
		return;
	}
	list_append(&server->strangers, &client->stranger);
	client->speaks_until = cm_time_after(
		server->now,
		(uint64_t)quota_of(&server->options.quotas, QUOTA_CLIENT_HELLO) * CM_NS_PER_MS);
	server->client[client->index] = client;
	server->n_clients++;
	log_debug("client %u, pid %d, uid %u", client->index, (int)client->pid,
		  (unsigned int)client->uid);
}

int client_open_data(struct server *server, struct client *client, int *ret_fd)
{
	int bytes = DATA_BUFFER_BYTES;
	int pair[2];
	int err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	/* What a storm of requests puts there before the client gets to run. */
	if (setsockopt(pair[0], SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	err = loop_watch(&server->loop, &client->data, pair[0], EPOLLIN, data_ready);
	if (err) {
		close(pair[0]);
		close(pair[1]);
		return err;
	}
	*ret_fd = pair[1];
	return 0;
}

void client_forget(struct server *server, struct client *client)
{
	struct list *node, *after;

	server_close(server, &client->control);
	server_close(server, &client->data);
	fd_close(&client->asked_fd);
	free(client->rest);
	list_for_each_safe (node, after, &client->backlog)
		free(container_of(node, struct batch, link));
	free(client->out);
	list_remove(&client->link);
	host_port_forget_sender(server, client);
	subnet_forget_client(server, client, false);
	if (client->throttled)
		server->n_throttled--;
	if (client->is_tracer)
		server->options.tracing->end(server, client);
	ports_client_gone(client->net_ns->ports, client->index);
	net_ns_leave(server->home, client->net_ns);
	list_remove(&client->stranger);
	client->user->n_queued -= client->n_backlog;
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

void client_after_fork(const struct client *client)
{
	fd_close(&(int){ client->control.fd });
	fd_close(&(int){ client->data.fd });
	fd_close(&(int){ client->asked_fd });
}

static void disconnect(struct server *server, struct client *client, const char *why)
{
	server->count[SERVER_COUNT_PROTOCOL]++;
	log_debug("client %u, pid %d is disconnected: %s", client->index, (int)client->pid, why);
	client->is_disconnected = true;
	close_after_turn(server, client);
}

void client_expire(struct server *server)
{
	struct client *client;

	while (!list_is_empty(&server->strangers)) {
		client = container_of(server->strangers.next, struct client, stranger);
		if (!cm_time_reached(client->speaks_until, server->now))
			return;
		list_remove(&client->stranger);
		server->count[SERVER_COUNT_QUOTA]++;
		disconnect(server, client, "it does not ask for anything");
	}
}

/* --- its rate ------------------------------------------------------------ */

/* A user who has used up his own slows nobody else. */
static bool has_tokens(const struct client *client)
{
	return client->tokens >= 1 && client->user->tokens >= 1;
}

static bool may_send(const struct client *client)
{
	return !client->throttled && client->n_requests < REQUESTS_MAX;
}

static uint32_t wanted_events(const struct client *client)
{
	return (may_send(client) ? EPOLLIN : 0) |
	       (list_is_empty(&client->backlog) ? 0 : (uint32_t)EPOLLOUT);
}

static uint32_t control_events(const struct client *client)
{
	return client->throttled || client->has_asked ? EPOLLHUP : EPOLLIN;
}

static void throttle(struct server *server, struct client *client, bool on)
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
		loop_change(&server->loop, &client->data, wanted_events(client));
}

/* --- requests and replies ------------------------------------------------ */

/* Return: false if the request waits for the end of the grace period, or of the turn. */
static bool handle_request(struct server *server, struct client *client,
			   const struct portd_record *record, int fd)
{
	struct portd_record answer = { .type = PORTD_REPLY };
	struct portd_datagram out; /* large, so not cleared */
	int send_fd[2] = { -1, -1 };
	int err = request_handle(server, client, record, fd, &answer.reply, send_fd);

	if (err == -EAGAIN) {
		client->has_asked = true;
		client->asked = *record;
		client->asked_fd = fd;
		loop_change(&server->loop, &client->control, EPOLLHUP);
		return false;
	}
	if (err) {
		disconnect(server, client, "an unexpected request");
	} else if (!portd_is_one_way(record->type)) {
		out.bytes = 0;
		portd_put(&out, &answer);
		if (portd_datagram_send(client->control.fd, &out, send_fd, MSG_DONTWAIT))
			disconnect(server, client, "it does not take its answers");
	}
	fd_close(&send_fd[0]); /* the client's end of its data socket, or the trace ring */
	fd_close(&send_fd[1]); /* its page */
	return true;
}

/* The requests behind one that waits wait, too. */
static void keep_rest(struct server *server, struct client *client)
{
	const struct portd_datagram *in = &server->in;

	if (in->at == in->bytes)
		return;
	client->rest = malloc(sizeof(*client->rest));
	if (!client->rest) {
		disconnect(server, client, "no memory for its requests");
		return;
	}
	client->rest->at = 0;
	client->rest->bytes = in->bytes - in->at;
	memcpy(client->rest->data, in->data + in->at, client->rest->bytes);
}

/* Those in server->in. */
static void handle_requests(struct server *server, struct client *client, int fd)
{
	struct portd_record record;
	int err = 0;

	while (!client->leaving && (err = portd_get(&server->in, &record)) == 0) {
		user_spend(client, 1);
		if (!portd_is_asked(record.type)) {
			disconnect(server, client, "a record that is not for this socket");
			break;
		}
		if (!handle_request(server, client, &record, fd)) {
			keep_rest(server, client);
			return;
		}
		fd = -1;
	}
	if (err == -EPROTO)
		disconnect(server, client, "not a record");
	fd_close(&fd);
}

void client_ask_again(struct server *server, struct client *client)
{
	struct portd_record record = client->asked;
	int fd = client->asked_fd;

	client->has_asked = false;
	client->asked_fd = -1;
	if (!handle_request(server, client, &record, fd))
		return;
	if (client->rest) {
		server->in.at = 0;
		server->in.bytes = client->rest->bytes;
		memcpy(server->in.data, client->rest->data, client->rest->bytes);
		free(client->rest);
		client->rest = NULL;
		handle_requests(server, client, -1);
	}
	if (!client->has_asked)
		loop_change(&server->loop, &client->control, control_events(client));
}

static void control_ready(struct watch *watch, uint32_t events)
{
	struct client *client = container_of(watch, struct client, control);
	struct server *server = client->server;
	ssize_t n;
	int fd[2];

	if (client->has_asked) {
		if (events & (EPOLLHUP | EPOLLERR))
			close_after_turn(server, client);
		return;
	}
	user_refill(client);
	if (!has_tokens(client) && !(events & (EPOLLHUP | EPOLLERR))) {
		throttle(server, client, true);
		return;
	}
	if (!user_has_turn(client))
		return;
	n = portd_datagram_receive(watch->fd, &server->in, fd, MSG_DONTWAIT);
	list_remove(&client->stranger);
	fd_close(&fd[1]); /* one is enough, but for alignment there is room for two */
	if (n > 0)
		handle_requests(server, client, fd[0]);
	else if (n == 0 || errno != EAGAIN)
		close_after_turn(server, client);
	if (n == 0)
		fd_close(&fd[0]); /* an empty datagram may bring one */
}

/* --- messages from it ---------------------------------------------------- */

void client_may_send(struct server *server, struct client *client)
{
	loop_change(&server->loop, &client->data, wanted_events(client));
}

void client_unthrottle(struct server *server)
{
	struct client *client;
	unsigned int i;

	for (i = 0; server->n_throttled && i < CLIENTS_MAX; i++) {
		client = server->client[i];
		if (!client || !client->throttled)
			continue;
		user_refill(client);
		if (has_tokens(client))
			throttle(server, client, false);
	}
}

static void take_messages(struct server *server, struct client *client)
{
	const struct server_tracing *tracing = server->options.tracing;
	struct portd_record record;
	int err;

	while ((err = portd_get(&server->in, &record)) == 0) {
		user_spend(client, record.type == PORTD_STAT_ID ? ROW_PRICE : 1);
		if (record.type == PORTD_MAD) {
			router_sent(server, client, &record.mad);
		} else if (record.type == PORTD_CLOSE) {
			tracker_close(server->tracker, client->index, &record.close);
		} else if (!(tracing && (tracing->row(server, client, &record) ||
					 tracing->await(server, client, &record))) &&
			   !subnet_record(server, client, &record)) {
			disconnect(server, client, "a record that is not for its data socket");
			return;
		}
	}
	if (err == -EPROTO)
		disconnect(server, client, "not a record");
}

/* Return: as recv(). */
static ssize_t receive_messages(struct server *server, struct client *client)
{
	ssize_t n = portd_datagram_receive(client->data.fd, &server->in, NULL, MSG_DONTWAIT);

	if (n > 0)
		take_messages(server, client);
	return n;
}

/* To find that there is nothing more costs a system call: as many are tried as there were of late.
 */
static unsigned int next_batch(unsigned int n_taken, bool may_be_more)
{
	unsigned int next = may_be_more ? 2 * n_taken : n_taken;

	if (next == 0)
		return 1;
	return next < BATCH_MAX ? next : BATCH_MAX;
}

static void send_backlog(struct server *server, struct client *client);

static void data_ready(struct watch *watch, uint32_t events)
{
	struct client *client = container_of(watch, struct client, data);
	struct server *server = client->server;
	unsigned int i = 0;
	ssize_t n;

	if (events & EPOLLOUT)
		send_backlog(server, client);
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)) || !may_send(client))
		return;
	user_refill(client);
	if (!has_tokens(client)) {
		throttle(server, client, true);
		return;
	}
	if (!user_has_turn(client))
		return;
	do
		n = receive_messages(server, client);
	while (n > 0 && ++i < client->batch && !client->leaving && may_send(client) &&
	       user_has_turn(client));
	client->batch = next_batch(i, n > 0);
	loop_change(&server->loop, &client->data, wanted_events(client));
	if (n == 0 || (n < 0 && errno != EAGAIN))
		close_after_turn(server, client);
}

void client_close(struct server *server, struct client *client)
{
	ssize_t n = !client->is_disconnected && client->data.fd >= 0;
	struct cm_record tracked;
	unsigned int i;

	log_debug("client %u, pid %d has gone", client->index, (int)client->pid);
	/* It may have ended its connections itself, with other words than ours. */
	user_refill(client);
	while (n > 0 && has_tokens(client) && !client->is_disconnected)
		n = receive_messages(server, client);
	for (i = 0; i < client->n_blocks; i++)
		server->block_owner[client->block[i]] = NOBODY;
	ports_client_gone(client->net_ns->ports, client->index);
	host_port_forget_sender(server, client); /* what takes back a REQ of it comes after it */
	while (tracker_take(server->tracker, client->index, &tracked))
		router_reap(server, &tracked);
	subnet_forget_client(server, client, true);
	if (server->recovery && client->welcome && !client->visits)
		server->recovery->dismiss(server, client);
	client_forget(server, client);
}

/* --- messages to it ------------------------------------------------------ */

static struct batch *batch_new(struct server *server)
{
	struct batch *batch;

	if (server->n_spare == 0) {
		batch = malloc(sizeof(*batch));
	} else {
		batch = container_of(server->spare.next, struct batch, link);
		list_remove(&batch->link);
		server->n_spare--;
	}
	if (batch) {
		list_init(&batch->link);
		batch->datagram.bytes = 0;
	}
	return batch;
}

static void batch_free(struct server *server, struct batch *batch)
{
	if (server->n_spare == SPARE_MAX) {
		free(batch);
		return;
	}
	list_append(&server->spare, &batch->link);
	server->n_spare++;
}

/* Return: false if the socket has no room. Data for a disconnected client is discarded. */
static bool send_batch(const struct client *client, const struct batch *batch)
{
	int err = portd_datagram_send(client->data.fd, &batch->datagram, NULL, MSG_DONTWAIT);

	return err != -EAGAIN && err != -ENOBUFS;
}

static void send_backlog(struct server *server, struct client *client)
{
	struct batch *batch;

	while (!list_is_empty(&client->backlog)) {
		batch = container_of(client->backlog.next, struct batch, link);
		if (!send_batch(client, batch))
			return;
		list_remove(&batch->link);
		client->n_backlog--;
		client->user->n_queued--;
		batch_free(server, batch);
	}
	loop_change(&server->loop, &client->data, wanted_events(client));
}

void client_flush(struct server *server, struct client *client)
{
	struct batch *batch = client->out;

	if (!batch)
		return;
	client->out = NULL;
	list_remove(&client->link);
	if (list_is_empty(&client->backlog) && send_batch(client, batch)) {
		batch_free(server, batch);
		return;
	}
	list_append(&client->backlog, &batch->link);
	client->n_backlog++;
	client->user->n_queued++;
	loop_change(&server->loop, &client->data, wanted_events(client));
}

/* A client that does not read loses requests first: their peers retransmit them. It must learn that
 * a port is gone, at most once for each that it has opened. */
enum {
	ROOM_FOR_REQUEST = BACKLOG_MAX / 2,
	ROOM_FOR_MESSAGE = BACKLOG_MAX,
	ROOM_FOR_GONE = INT_MAX,
};

static void put_record(struct server *server, struct client *client,
		       const struct portd_record *record, unsigned int room)
{
	if (client->out && portd_put(&client->out->datagram, record))
		return;
	client_flush(server, client);
	if (client->n_backlog < room &&
	    (room == ROOM_FOR_GONE || user_may(client, QUOTA_USER_QUEUED, client->user->n_queued)))
		client->out = batch_new(server);
	if (!client->out) {
		server->count[SERVER_COUNT_OVERFLOW]++;
		return;
	}
	list_append(&server->filled, &client->link);
	portd_put(&client->out->datagram, record);
}

void client_deliver(struct server *server, struct client *client, const struct host_port *host_port,
		    const struct mad_path *path, const uint8_t mad[MAD_BYTES], bool is_request)
{
	struct portd_record record = {
		.type = PORTD_MAD, .mad = {.port = host_port->handle, .path = *path}
	};

	memcpy(record.mad.mad, mad, MAD_BYTES);
	put_record(server, client, &record, is_request ? ROOM_FOR_REQUEST : ROOM_FOR_MESSAGE);
}

/* No more of these can come than were asked for. */
void client_tell(struct server *server, struct client *client, const struct portd_record *record)
{
	put_record(server, client, record, ROOM_FOR_GONE);
}

void client_show(struct server *server, struct client *client, const struct portd_record *record,
		 unsigned int room)
{
	put_record(server, client, record, room);
}

void client_port_gone(struct server *server, struct client *client, uint8_t handle)
{
	struct portd_record record = { .type = PORTD_GONE, .gone = { .port = handle } };

	if (!(client->host_ports >> handle & 1))
		return;
	client->host_ports &= ~(UINT64_C(1) << handle);
	put_record(server, client, &record, ROOM_FOR_GONE);
}
