/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints, for each line of its input, the port that rdma_resolve_addr() of 0.0.0.0 leads to, which
 * is the first active one. It listens itself, to keep the ports open. One binary for both
 * libraries.
 */
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>

#define PATIENCE_MS 20000

static struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = 0 };

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static struct rdma_cm_id *new_id(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		die("rdma_create_id");
	return id;
}

static void print_port(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id = new_id(channel);
	struct rdma_cm_event *event;

	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&any, PATIENCE_MS))
		die("rdma_resolve_addr");
	if (rdma_get_cm_event(channel, &event))
		die("rdma_get_cm_event");
	printf("%s %d\n", rdma_event_str(event->event), id->port_num);
	rdma_ack_cm_event(event);
	rdma_destroy_id(id);
}

int main(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener;
	char line[8];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!channel)
		die("rdma_create_event_channel");
	listener = new_id(channel);
	if (rdma_bind_addr(listener, (struct sockaddr *)&any) || rdma_listen(listener, 1))
		die("rdma_listen");
	while (fgets(line, sizeof(line), stdin))
		print_port(channel);
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(channel);
	return 0;
}
