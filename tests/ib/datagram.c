/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of a datagram service in RDMA_PS_IPOIB by IP addresses. Prints the Q_Key of its queue
 * pair, as soon as there is one. Run by programs.py on a soft fabric.
 *
 *   datagram ADDRESS          waits for a request and accepts it
 *   datagram ADDRESS SERVER   requests the service
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#define PORT	   7174
#define TIMEOUT_MS 2000

static struct rdma_event_channel *channel;

__attribute__((noreturn)) static void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static struct sockaddr_in address(const char *text, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (inet_pton(AF_INET, text, &in.sin_addr) != 1)
		die(text);
	return in;
}

static struct rdma_cm_event *expect(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(channel, &event))
		die("rdma_get_cm_event");
	if (event->event != type) {
		printf("%s, error: %d\n", rdma_event_str(event->event), event->status);
		exit(1);
	}
	return event;
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 }
	};
	struct ibv_qp_attr attr;

	if (rdma_create_qp(id, NULL, &init) || ibv_query_qp(id->qp, &attr, IBV_QP_QKEY, &init))
		die("rdma_create_qp");
	printf("queue key %#06x\n", attr.qkey);
}

static void serve(struct rdma_cm_id *id, struct sockaddr_in here)
{
	struct rdma_conn_param param = { 0 };
	struct rdma_cm_event *event;

	if (rdma_bind_addr(id, (struct sockaddr *)&here) || rdma_listen(id, 1))
		die("rdma_listen");
	event = expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	make_qp(event->id);
	param.qp_num = event->id->qp->qp_num;
	if (rdma_accept(event->id, &param))
		die("rdma_accept");
}

static void ask(struct rdma_cm_id *id, struct sockaddr_in here, struct sockaddr_in there)
{
	struct rdma_conn_param param = { 0 };

	if (rdma_resolve_addr(id, (struct sockaddr *)&here, (struct sockaddr *)&there, TIMEOUT_MS))
		die("rdma_resolve_addr");
	rdma_ack_cm_event(expect(RDMA_CM_EVENT_ADDR_RESOLVED));
	if (rdma_resolve_route(id, TIMEOUT_MS))
		die("rdma_resolve_route");
	rdma_ack_cm_event(expect(RDMA_CM_EVENT_ROUTE_RESOLVED));
	make_qp(id);
	if (rdma_connect(id, &param))
		die("rdma_connect");
	printf("established, queue key %#06x\n", expect(RDMA_CM_EVENT_ESTABLISHED)->param.ud.qkey);
}

int main(int argc, char **argv)
{
	struct rdma_cm_id *id;

	if (argc < 2)
		return 2;
	channel = rdma_create_event_channel();
	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_IPOIB))
		die("rdma_create_id");
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 2)
		ask(id, address(argv[1], 0), address(argv[2], PORT));
	else
		serve(id, address(argv[1], PORT));
	return 0;
}
