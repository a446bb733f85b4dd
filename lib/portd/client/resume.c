/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a client does when its cmportd has died: it finds or starts the next one, and tells it all
 * that the old one knew. Called by lib/engine/host.c, in the engine's thread.
 */
#include <errno.h>
#include <unistd.h>

#include "lib/portd/client/asking.h"

static void hold_blocks(struct portd_client *client)
{
	struct portd_record record = { .type = PORTD_HOLD_IDS };
	struct portd_reply reply;
	unsigned int i;

	for (i = 0; i < client->n_blocks; i++) {
		record.ids.first = client->block[i];
		asking_exchange(client, &record, -1, &reply, NULL);
	}
}

/* A port is lost when cmportd says so, not when cmportd dies while it is asked. */
static int reopen_ports(struct portd_client *client, const struct portd_memory *memory)
{
	struct portd_record record;
	struct portd_reply reply = { .error = 0 };
	unsigned int i;
	int err = 0;

	for (i = 0; i < client->n_ports && !err; i++) {
		record = open_record(client->port[i].device, client->port[i].port_num);
		err = asking_exchange(client, &record, -1, &reply, NULL);
		if (!err)
			memory->handle_is(client->port[i].device, client->port[i].port_num,
					  reply.error ? -reply.error : reply.handle, memory->arg);
	}
	return err;
}

static int say_resumed(struct portd_client *client)
{
	struct portd_record record = { .type = PORTD_RESUMED };
	struct portd_reply reply;

	return asking_exchange(client, &record, -1, &reply, NULL);
}

static int start_life(struct portd_client *client)
{
	struct portd_why why = { "" };

	return asking_start(client, true, NULL, &why);
}

int portd_resume(struct portd_client *client, const struct portd_memory *memory)
{
	int err;

	pthread_mutex_lock(&client->lock);
	client->broken = true;
	err = start_life(client);
	if (!err) {
		hold_blocks(client);
		err = reopen_ports(client, memory);
	}
	if (!err) {
		memory->tell(client, memory->arg);
		err = say_resumed(client);
	}
	if (!err) {
		client->broken = false;
		client->life++;
		pthread_cond_broadcast(&client->resumed);
	}
	pthread_mutex_unlock(&client->lock);
	return err;
}

int portd_tell_claim(struct portd_client *client, const struct portd_claim *claim, bool listens)
{
	struct portd_record record = { .type = PORTD_BIND, .claim = *claim };
	struct portd_reply reply = { .error = 0 };
	int proof = asking_prove(claim);
	int err = asking_exchange(client, &record, proof, &reply, NULL);

	if (proof >= 0)
		close(proof);
	if (!err && !reply.error && listens) {
		record.type = PORTD_LISTEN;
		err = asking_exchange(client, &record, -1, &reply, NULL);
	}
	return err ? err : -reply.error;
}

void portd_tell_tracked(struct portd_client *client, const struct cm_record *tracked)
{
	struct portd_record record = { .type = PORTD_TRACK, .tracked = *tracked };

	asking_send(client->control_fd, &record, -1);
}
