/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In the stead of recovery.c, for a server without a socket directory: nothing outlives it, and
 * nobody comes back to it.
 */
#include <errno.h>

#include "lib/portd/server/state.h"

static int open_nothing(struct server *server)
{
	(void)server;
	return 0;
}

static void free_tracked(struct server *server)
{
	tracker_free(server->tracker);
	server->tracker = NULL;
}

static void do_nothing(struct server *server)
{
	(void)server;
}

/* From a random one on: peers may remember those of the process that was here before. */
static uint16_t next_block(struct server *server)
{
	return server->next_block++;
}

static void welcome(struct server *server, struct client *client)
{
	(void)server;
	(void)client;
}

static void ignore(struct server *server, const struct client *client)
{
	(void)server;
	(void)client;
}

static bool awaits_nobody(struct server *server)
{
	(void)server;
	return false;
}

static bool is_none(const struct server *server)
{
	(void)server;
	return true;
}

static struct cm_time no_deadline(const struct server *server)
{
	(void)server;
	return CM_TIME_NEVER;
}

static int free_handle(struct server *server, const char *device, uint8_t port_num)
{
	int i;

	(void)device;
	(void)port_num;
	for (i = 0; i < HOST_PORTS_MAX; i++)
		if (!server->host_port[i])
			return i;
	return -ENOSPC;
}

const struct server_recovery server_recovery_none = {
	.open = open_nothing,
	.close = free_tracked,
	.leave = do_nothing,
	.id_block = next_block,
	.welcome = welcome,
	.introduce = ignore,
	.dismiss = ignore,
	.returned = ignore,
	.awaits = awaits_nobody,
	.is_none = is_none,
	.settle = do_nothing,
	.deadline = no_deadline,
	.handle = free_handle,
};
