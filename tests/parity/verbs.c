/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parity: inline functions of <rdma/rdma_verbs.h> and <rdma/rdma_cma.h> in programs. They rely on
 * members of an id: its domain, its queues, the owner of a completion queue.
 */
#include <rdma/rdma_verbs.h>

#include "steps.h"

#define GRH_BYTES 40
#define ROOM	  64
#define N_WR	  4

/* One end of a connection, with a buffer for messages in both directions. */
struct end {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char buffer[ROOM];
};

/* Memory that the other side may read or write. */
struct window {
	uint64_t addr;
	uint32_t rkey;
};

static void make_wide_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = id->qp_type,
		.cap = { N_WR, N_WR, 2, 2, 16 },
		.sq_sig_all = 1,
	};

	if (rdma_create_qp(id, NULL, &attr))
		give_up("rdma_create_qp: %s", strerror(errno));
}

static void register_buffer(struct end *end)
{
	memset(end->buffer, 0, sizeof(end->buffer));
	end->mr = rdma_reg_msgs(end->id, end->buffer, sizeof(end->buffer));
	if (!end->mr)
		give_up("rdma_reg_msgs: %s", strerror(errno));
	SAY("a buffer is registered with the id's domain: %d", end->mr->pd == end->id->pd);
}

/* The other side posts its receives, and meets, once it is connected. */
static void dial_wide(struct scene *s, struct end *end)
{
	struct rdma_conn_param param = usual_param(NULL);

	end->id = dial_ready(s, RDMA_PS_TCP);
	make_wide_qp(end->id);
	register_buffer(end);
	if (rdma_connect(end->id, &param))
		give_up("rdma_connect: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_ESTABLISHED);
	meet(s);
}

static void answer_wide(struct scene *s, struct end *end)
{
	struct rdma_conn_param param = usual_param(NULL);

	end->id = wait_request(s);
	make_wide_qp(end->id);
	register_buffer(end);
	if (rdma_accept(end->id, &param))
		give_up("rdma_accept: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_ESTABLISHED);
}

static void leave(struct end *end)
{
	DO(rdma_dereg_mr(end->mr));
	close_id(end->id);
}

static void show_completion(const char *what, int n, const struct ibv_wc *wc, const void *context)
{
	SAY("%s: %d, status %d, its context %d", what, n, wc->status,
	    wc->wr_id == (uintptr_t)context);
}

static void show_sent(struct end *end, const void *context)
{
	struct ibv_wc wc = { 0 };
	int n = rdma_get_send_comp(end->id, &wc);

	show_completion("rdma_get_send_comp", n, &wc, context);
}

static void show_received(struct end *end, const void *context)
{
	struct ibv_wc wc = { 0 };
	int n = rdma_get_recv_comp(end->id, &wc);

	show_completion("rdma_get_recv_comp", n, &wc, context);
	SAY("  %u bytes", wc.byte_len);
}

/* messages */

static void send_messages(struct scene *s)
{
	struct end end;
	struct ibv_sge parts[2];
	char inlined[] = "without a region";

	dial_wide(s, &end);
	strcpy(end.buffer, "from a region");
	DO(rdma_post_send(end.id, &end, end.buffer, 14, end.mr, 0));
	show_sent(&end, &end);
	DO(rdma_post_send(end.id, s, inlined, 16, NULL, IBV_SEND_INLINE));
	show_sent(&end, s);
	parts[0] = (struct ibv_sge){ (uintptr_t)end.buffer, 5, end.mr->lkey };
	parts[1] = (struct ibv_sge){ (uintptr_t)end.buffer + 7, 6, end.mr->lkey };
	DO(rdma_post_sendv(end.id, NULL, parts, 2, IBV_SEND_SIGNALED));
	show_sent(&end, NULL);
	meet(s);
	leave(&end);
}

static void receive_messages(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 1);
	struct ibv_sge parts[2];
	struct end end;

	answer_wide(s, &end);
	parts[0] = (struct ibv_sge){ (uintptr_t)end.buffer + 32, 4, end.mr->lkey };
	parts[1] = (struct ibv_sge){ (uintptr_t)end.buffer + 40, 16, end.mr->lkey };
	DO(rdma_post_recv(end.id, &end, end.buffer, 16, end.mr));
	DO(rdma_post_recv(end.id, s, end.buffer + 16, 16, end.mr));
	DO(rdma_post_recvv(end.id, NULL, parts, 2));
	meet(s);
	show_received(&end, &end);
	show_received(&end, s);
	show_received(&end, NULL);
	SAY("\"%s\" \"%.16s\" \"%.4s\" \"%s\"", end.buffer, end.buffer + 16, end.buffer + 32,
	    end.buffer + 40);
	meet(s);
	leave(&end);
	close_id(listener);
}

/* reads and writes */

static void access_by(struct scene *s)
{
	struct window mine = { 0 }, theirs[3];
	struct ibv_sge parts[2];
	struct end end;

	dial_wide(s, &end);
	swap(s, &mine, &theirs[0], sizeof(mine));
	swap(s, &mine, &theirs[1], sizeof(mine));
	swap(s, &mine, &theirs[2], sizeof(mine));
	parts[0] = (struct ibv_sge){ (uintptr_t)end.buffer, 8, end.mr->lkey };
	parts[1] = (struct ibv_sge){ (uintptr_t)end.buffer + 32, 8, end.mr->lkey };
	DO(rdma_post_read(end.id, &end, end.buffer, 16, end.mr, 0, theirs[0].addr, theirs[0].rkey));
	show_sent(&end, &end);
	SAY("read: \"%.16s\"", end.buffer);
	DO(rdma_post_readv(end.id, &end, parts, 2, 0, theirs[0].addr + 4, theirs[0].rkey));
	show_sent(&end, &end);
	SAY("read: \"%.8s\" \"%.8s\"", end.buffer, end.buffer + 32);
	strcpy(end.buffer, "written by a peer");
	DO(rdma_post_write(end.id, s, end.buffer, 16, end.mr, 0, theirs[1].addr, theirs[1].rkey));
	show_sent(&end, s);
	DO(rdma_post_writev(end.id, s, parts, 2, 0, theirs[1].addr + 20, theirs[1].rkey));
	show_sent(&end, s);
	meet(s);
	DO(rdma_post_write(end.id, s, end.buffer, 16, end.mr, 0, theirs[2].addr, theirs[2].rkey));
	show_sent(&end, s);
	meet(s);
	leave(&end);
}

static void offer(struct scene *s, const void *buffer, const struct ibv_mr *mr)
{
	struct window mine = { (uintptr_t)buffer, 0 }, theirs;

	if (!mr)
		give_up("cannot register: %s", strerror(errno));
	mine.rkey = mr->rkey;
	swap(s, &mine, &theirs, sizeof(mine));
}

static void await_access(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 1);
	char readable[ROOM] = "to be read from afar", writable[ROOM] = { 0 };
	struct ibv_mr *read_mr, *write_mr;
	struct end end;

	answer_wide(s, &end);
	read_mr = rdma_reg_read(end.id, readable, sizeof(readable));
	write_mr = rdma_reg_write(end.id, writable, sizeof(writable));
	meet(s);
	offer(s, readable, read_mr);
	offer(s, writable, write_mr);
	offer(s, end.buffer, end.mr);
	meet(s);
	SAY("written: \"%.16s\" \"%.16s\"", writable, writable + 20);
	meet(s);
	SAY("what was not offered is as it was: %d", end.buffer[0] == 0);
	DO(rdma_dereg_mr(write_mr));
	DO(rdma_dereg_mr(read_mr));
	leave(&end);
	close_id(listener);
}

/* a shared receive queue takes precedence over the queue pair's own */

static void send_one(struct scene *s)
{
	struct end end;

	dial_wide(s, &end);
	strcpy(end.buffer, "to whom it concerns");
	DO(rdma_post_send(end.id, NULL, end.buffer, 20, end.mr, 0));
	show_sent(&end, NULL);
	meet(s);
	leave(&end);
}

static void receive_shared(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 1);
	struct rdma_conn_param param = usual_param(NULL);
	struct ibv_srq_init_attr init = { .attr = { .max_wr = N_WR, .max_sge = 1 } };
	struct end end = { .id = wait_request(s) };

	DO(rdma_create_srq(end.id, NULL, &init));
	make_wide_qp(end.id);
	register_buffer(&end);
	DO(rdma_post_recv(end.id, &end, end.buffer, sizeof(end.buffer), end.mr));
	if (rdma_accept(end.id, &param))
		give_up("rdma_accept: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_ESTABLISHED);
	meet(s);
	show_received(&end, &end);
	SAY("\"%s\"", end.buffer);
	meet(s);
	DO(rdma_dereg_mr(end.mr));
	rdma_destroy_qp(end.id);
	rdma_destroy_srq(end.id);
	DO(rdma_destroy_id(end.id));
	close_id(listener);
}

/* datagrams */

static void send_datagram(struct scene *s)
{
	struct end end = { .id = dial_ready(s, RDMA_PS_UDP) };
	struct rdma_conn_param param = { 0 };
	struct rdma_cm_event *event;
	struct ibv_ah *ah;
	uint32_t qpn;

	make_qp(end.id);
	register_buffer(&end);
	DO(rdma_connect(end.id, &param));
	event = wait_event(s->channel);
	qpn = event->param.ud.qp_num;
	ah = ibv_create_ah(end.id->pd, &event->param.ud.ah_attr);
	if (!ah)
		give_up("ibv_create_ah: %s", strerror(errno));
	rdma_ack_cm_event(event);
	strcpy(end.buffer, "a datagram");
	meet(s);
	DO(rdma_post_ud_send(end.id, &end, end.buffer, 11, end.mr, 0, ah, qpn));
	show_sent(&end, &end);
	meet(s);
	ibv_destroy_ah(ah);
	leave(&end);
}

static void receive_datagram(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_UDP, 1);
	struct rdma_conn_param param = { 0 };
	struct end end = { .id = wait_request(s) };

	make_qp(end.id);
	register_buffer(&end);
	DO(rdma_post_recv(end.id, s, end.buffer, sizeof(end.buffer), end.mr));
	param.qp_num = end.id->qp->qp_num;
	DO(rdma_accept(end.id, &param));
	meet(s);
	show_received(&end, s);
	SAY("\"%s\"", end.buffer + GRH_BYTES);
	meet(s);
	leave(&end);
	close_id(listener);
}

/* members of an id, and errno */

static void show_ends(struct rdma_cm_id *id)
{
	show_address("local", rdma_get_local_addr(id));
	show_address("peer", rdma_get_peer_addr(id));
}

static void show_both_ends(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "new", RDMA_PS_TCP);

	show_ends(id);
	close_id(id);
	id = dial(s);
	show_ends(id);
	DO(rdma_seterrno(0));
	DO(rdma_seterrno(ENOSYS));
	meet(s);
	close_id(id);
}

static void show_ends_here(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 1);
	struct rdma_cm_id *id = answer(s);

	show_ends(listener);
	show_ends(id);
	meet(s);
	close_id(id);
	close_id(listener);
}

const struct scenario verbs_scenarios[] = {
	PAIR("verbs-messages", send_messages, receive_messages, 0,
	     "messages from a region, inline and in parts, and their completions"),
	PAIR("verbs-remote", access_by, await_access, 0,
	     "reads and writes of what the peer offers, and of what it does not"),
	PAIR("verbs-shared", send_one, receive_shared, 0,
	     "a message comes into the id's shared receive queue"),
	PAIR("verbs-datagram", send_datagram, receive_datagram, 0,
	     "a datagram to the queue pair that was looked up"),
	PAIR("verbs-ends", show_both_ends, show_ends_here, 0,
	     "local and peer address of new, listening and connected ids"),
	LAST_SCENARIO,
};
