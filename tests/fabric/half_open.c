/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to a listening stream socket that are never completed:
 *
 *     half_open ADDRESS PORT COUNT
 *
 * Sends COUNT requests as a stream socket does, but no RTU. Prints "asked" when all were sent and
 * the first was answered, then sleeps.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TIMEOUT_MS  20000
#define RETRY_COUNT 7

/* The hello of lib/rsocket/stream_wire.h: version 1, 64 credits, a table of two entries. */
static const uint8_t hello[40] = { [0] = 1, [3] = 64, [23] = 2 };

static struct rdma_event_channel *channel;

static void check(int result, const char *what)
{
	if (!result)
		return;
	perror(what);
	exit(1);
}

/* Takes an event. Return: whether it is the response to a request. */
static int next_is_answer(void)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	check(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	type = event->event;
	check(rdma_ack_cm_event(event), "rdma_ack_cm_event");
	return type == RDMA_CM_EVENT_CONNECT_RESPONSE || type == RDMA_CM_EVENT_REJECTED;
}

static int answers_before(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type got;
	int n = 0;

	do {
		check(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
		got = event->event;
		check(rdma_ack_cm_event(event), "rdma_ack_cm_event");
		n += got == RDMA_CM_EVENT_CONNECT_RESPONSE;
	} while (got != type);
	return n;
}

static int ask(struct sockaddr_in *to, uint32_t qpn)
{
	struct rdma_conn_param param = { .qp_num = qpn,
					 .private_data = hello,
					 .private_data_len = sizeof(hello),
					 .flow_control = 1,
					 .retry_count = RETRY_COUNT,
					 .rnr_retry_count = RETRY_COUNT };
	struct rdma_cm_id *id;
	int n;

	check(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	check(rdma_resolve_addr(id, NULL, (struct sockaddr *)to, TIMEOUT_MS), "rdma_resolve_addr");
	n = answers_before(RDMA_CM_EVENT_ADDR_RESOLVED);
	check(rdma_resolve_route(id, TIMEOUT_MS), "rdma_resolve_route");
	n += answers_before(RDMA_CM_EVENT_ROUTE_RESOLVED);
	check(rdma_connect(id, &param), "rdma_connect");
	return n;
}

int main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	int n_answers = 0;

	if (argc != 4)
		return 2;
	inet_pton(AF_INET, argv[1], &to.sin_addr);
	to.sin_port = htons((uint16_t)atoi(argv[2]));
	channel = rdma_create_event_channel();
	check(!channel, "rdma_create_event_channel");
	for (int i = 0; i < atoi(argv[3]); i++)
		n_answers += ask(&to, 0x100 + (uint32_t)i);
	while (!n_answers)
		n_answers += next_is_answer();
	puts("asked");
	fflush(stdout);
	for (;;)
		pause();
}
