/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ids on an interface that fails over, as a bond does: failover OWN PEER COMMAND. Prints the port
 * of an id that is resolved to PEER before and after COMMAND, and the events that it and a listener
 * at OWN get.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>

#define PORT	    7471
#define PATIENCE_MS 20000
#define N_IDS	    2

static struct rdma_event_channel *channel;

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static struct sockaddr_in address(const char *text)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	if (inet_pton(AF_INET, text, &addr.sin_addr) != 1)
		exit(2);
	return addr;
}

/* Prints the next event and the name of its id. */
static void receive_event(void)
{
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	if (poll(&fd, 1, PATIENCE_MS) != 1) {
		printf("nobody hears anything\n");
		return;
	}
	if (rdma_get_cm_event(channel, &event))
		die("rdma_get_cm_event");
	printf("%s hears %s, status %d\n", (const char *)event->id->context,
	       rdma_event_str(event->event), event->status);
	rdma_ack_cm_event(event);
}

static struct rdma_cm_id *new_id(const char *name)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, (void *)(uintptr_t)name, RDMA_PS_TCP))
		die("rdma_create_id");
	return id;
}

static struct rdma_cm_id *new_listener(const char *own)
{
	struct sockaddr_in addr = address(own);
	struct rdma_cm_id *id = new_id("listener");

	if (rdma_bind_addr(id, (struct sockaddr *)&addr) || rdma_listen(id, 1))
		die(own);
	return id;
}

static struct rdma_cm_id *new_client(const char *name, const char *peer)
{
	struct sockaddr_in addr = address(peer);
	struct rdma_cm_id *id = new_id(name);

	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, PATIENCE_MS))
		die(peer);
	receive_event();
	printf("%s is at port %u\n", name, id->port_num);
	return id;
}

int main(int argc, char **argv)
{
	struct rdma_cm_id *listener, *before, *after;
	int i;

	if (argc != 4)
		return 2;
	channel = rdma_create_event_channel();
	if (!channel)
		die("rdma_create_event_channel");
	listener = new_listener(argv[1]);
	before = new_client("client", argv[2]);
	if (system(argv[3]))
		return 2;
	for (i = 0; i < N_IDS; i++)
		receive_event();
	after = new_client("later client", argv[2]);
	rdma_destroy_id(after);
	rdma_destroy_id(before);
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(channel);
	return 0;
}
