/* SPDX-License-Identifier: BSD-2-Clause */
/* Who may become a client: see admit.h. */
#include "lib/portd/server/clients/admit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/log.h"
#include "lib/portd/proto/datagram.h"
#include "lib/portd/server/clients/user.h"
#include "lib/portd/server/server_state.h"

#define DATA_BUFFER_BYTES (1 << 20)
#define DATA_BUFFER_LEAST (1 << 15)
#define DATA_BUFFERS	  (INT64_C(1) << 29) /* half of what the unit allows */
#define FULL_BUFFERS	  64		     /* clients of a user; above, each gets a smaller one */

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
static struct client *admit(struct server *server, const struct ucred *cred, int fd,
			    void (*ready)(struct watch *watch, uint32_t events))
{
	struct client *client = client_alloc(server);

	if (!client)
		return NULL;
	client->pid = cred->pid;
	client->uid = cred->uid;
	client->net_ns = net_ns_enter(server->home, fd);
	if (client->net_ns && user_enter(server, client, cred->uid)) {
		if (!loop_watch(&server->loop, &client->control, fd, EPOLLIN, ready))
			return client;
		user_leave(client);
	}
	if (client->net_ns)
		net_ns_leave(server->home, client->net_ns);
	free(client);
	return NULL;
}

bool admit_client(struct server *server, int fd,
		  void (*ready)(struct watch *watch, uint32_t events))
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
	client = admit(server, &cred, fd, ready);
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
int admit_buffer_bytes(const struct client *client)
{
	const int its = DATA_BUFFER_BYTES / (1 + (int)client->user->n_clients / FULL_BUFFERS);
	const int64_t left = (DATA_BUFFERS - client->server->n_buffer_bytes) / FULL_BUFFERS;

	if (client->user->uid == 0)
		return DATA_BUFFER_BYTES;
	if (left < DATA_BUFFER_LEAST)
		return DATA_BUFFER_LEAST;
	return left < its ? (int)left : its;
}
