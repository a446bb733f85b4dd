/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resumption after cmportd has died: the client connects to the next one, starting it if necessary,
 * and reports all its state.
 */
#include <errno.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "lib/net/foreign.h"
#include "lib/portd/client/portd_requests.h"

/* A port is lost only if cmportd says so, not if cmportd dies before it responds. */
static int reopen_ports(struct portd_client *client, const struct portd_memory *memory)
{
	struct portd_record record;
	struct portd_reply reply = { .error = 0 };
	int netns = net_foreign_socket();
	unsigned int i;
	int err = 0;

	for (i = 0; i < client->n_ports && !err; i++) {
		memory->ask_name(client->port[i].device, client->port[i].port_num, memory->arg);
		record = open_record(client->port[i].device, client->port[i].port_num);
		err = request_exchange(client, &record, netns, &reply, NULL);
		if (!err)
			memory->handle_is(client->port[i].device, client->port[i].port_num,
					  reply.error ? -reply.error : reply.handle, memory->arg);
	}
	fd_close(&netns);
	return err;
}

static int resume_once(struct portd_client *client, const struct portd_memory *memory)
{
	struct portd_record hold = { .type = PORTD_HOLD_IDS }, resumed = { .type = PORTD_RESUMED };
	struct portd_why why = { "" };
	struct portd_reply reply;
	unsigned int i;
	int err = request_start(client, true, NULL, &why);

	for (i = 0; !err && i < client->n_blocks; i++) {
		hold.ids = client->block[i];
		request_exchange(client, &hold, -1, &reply, NULL);
	}
	if (!err)
		err = reopen_ports(client, memory);
	if (!err) {
		memory->tell(client, memory->arg);
		err = request_exchange(client, &resumed, -1, &reply, NULL);
	}
	return err;
}

/* The next cmportd may be killed as well, while it is told: then it is the one after it. */
int portd_resume(struct portd_client *client, const struct portd_memory *memory)
{
	unsigned int i;
	int err = -EPIPE;

	pthread_mutex_lock(&client->lock);
	client->broken = true;
	for (i = 0; i < REQUEST_TRIES_MAX && request_is_hang_up(err); i++)
		err = resume_once(client, memory);
	if (!err) {
		client->broken = false;
		client->life++;
	} else {
		client->n_failed++;
	}
	pthread_cond_broadcast(&client->resumed);
	pthread_mutex_unlock(&client->lock);
	return err;
}

int portd_tell_claim(struct portd_client *client, const struct portd_claim *claim, bool listens)
{
	struct portd_record record = { .type = PORTD_BIND, .claim = *claim };
	struct portd_reply reply = { .error = 0 };
	int proof = request_prove(claim);
	int err = request_exchange(client, &record, proof, &reply, NULL);

	fd_close(&proof);
	if (!err && !reply.error && listens) {
		record.type = PORTD_LISTEN;
		err = request_exchange(client, &record, -1, &reply, NULL);
	}
	return err ? err : -reply.error;
}

void portd_tell_tracked(struct portd_client *client, const struct cm_record *tracked)
{
	struct portd_record record = { .type = PORTD_TRACK, .tracked = *tracked };

	/* There may be thousands more, and each would wait. */
	if (request_send(client->control_fd, &record, -1))
		shutdown(client->control_fd, SHUT_RDWR);
}
