/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: states of a program that ends without cleanup: see doomed.h. */
#include "doomed.h"
#include "steps.h"

#define REJECTION_MS 2000 /* until the rejection of a request has come, on a busy host, too */

void connect_only(struct scene *s)
{
	dial(s);
	meet(s);
}

void accept_only(struct scene *s)
{
	listen_here(s, RDMA_PS_TCP, 0);
	answer(s);
	meet(s);
}

void send_request_only(struct scene *s)
{
	struct rdma_conn_param param = usual_param("soon dead");
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);

	param.qp_num = unused_qpn();
	DO(rdma_connect(id, &param));
	meet(s);
}

void take_request_only(struct scene *s)
{
	listen_here(s, RDMA_PS_TCP, 0);
	wait_request(s);
}

void ask_to_disconnect_only(struct scene *s)
{
	DO(rdma_disconnect(dial(s)));
}

/* A program learns that the peer has withdrawn its request only from rdma_accept(). */
void watch_request(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = wait_request(s);
	struct rdma_conn_param param = usual_param("late");

	meet(s);
	meet(s);
	pause_ms(REJECTION_MS);
	show_quiet(s->channel);
	param.qp_num = unused_qpn();
	DO(rdma_accept(child, &param));
	close_id(child);
	close_id(listener);
}
