/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A member of a multicast group on an InfiniBand subnet, with AF_IB addresses only: binds to a GID,
 * joins, sends one datagram to the group or waits for one, and leaves. Run by programs.py on a soft
 * fabric.
 *
 *   group GID MGID send|receive|silence      silence: waits for 10 s only
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>

#define TEXT	   "to whom it may concern"
#define GRH_BYTES  40
#define ROOM_BYTES 256
#define TRIES	   600
#define FEW_TRIES  100
#define PAUSE_MS   100

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static char room[ROOM_BYTES];
static int tries = TRIES;

static void die(const char *what)
{
	fprintf(stderr, "group: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct sockaddr_ib address(const char *gid)
{
	struct sockaddr_ib ib = { .sib_family = AF_IB, .sib_pkey = htobe16(0xffff) };

	if (inet_pton(AF_INET6, gid, &ib.sib_addr) != 1)
		die(gid);
	return ib;
}

static void open_id(const char *gid)
{
	struct sockaddr_ib ib = address(gid);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 }
	};

	channel = rdma_create_event_channel();
	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_UDP))
		die("rdma_create_id");
	if (rdma_bind_addr(id, (struct sockaddr *)&ib))
		die("rdma_bind_addr");
	cq = ibv_create_cq(id->verbs, 2, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = cq;
	if (!cq || rdma_create_qp(id, NULL, &attr))
		die("rdma_create_qp");
	mr = ibv_reg_mr(id->pd, room, sizeof(room), IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		die("ibv_reg_mr");
}

/* The caller limits the duration of the completion by that of the program. */
static void wait_for(enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;
	int i, n = 0;

	for (i = 0; i < tries && n == 0; i++) {
		n = ibv_poll_cq(cq, 1, &wc);
		if (n == 0)
			poll(NULL, 0, PAUSE_MS);
	}
	errno = n ? EIO : ETIMEDOUT;
	if (n != 1 || wc.status || wc.opcode != opcode)
		die(opcode == IBV_WC_RECV ? "nothing came" : "nothing was sent");
}

static void post_receive(void)
{
	struct ibv_sge sge = { (uintptr_t)room, sizeof(room), mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(id->qp, &wr, &bad))
		die("ibv_post_recv");
}

static void send_to(const struct rdma_ud_param *to)
{
	struct ibv_ah_attr attr = to->ah_attr;
	struct ibv_ah *ah = ibv_create_ah(id->pd, &attr);
	struct ibv_sge sge = { (uintptr_t)room, sizeof(TEXT), mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	if (!ah)
		die("ibv_create_ah");
	memcpy(room, TEXT, sizeof(TEXT));
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = to->qp_num;
	wr.wr.ud.remote_qkey = to->qkey;
	if (ibv_post_send(id->qp, &wr, &bad))
		die("ibv_post_send");
	wait_for(IBV_WC_SEND);
	ibv_destroy_ah(ah);
}

static void join(struct sockaddr_ib *group, struct rdma_ud_param *ret)
{
	struct rdma_cm_event *event;

	if (rdma_join_multicast(id, (struct sockaddr *)group, &group))
		die("rdma_join_multicast");
	if (rdma_get_cm_event(channel, &event))
		die("rdma_get_cm_event");
	errno = -event->status;
	if (event->event != RDMA_CM_EVENT_MULTICAST_JOIN)
		die(rdma_event_str(event->event));
	*ret = event->param.ud;
	rdma_ack_cm_event(event);
}

int main(int argc, char **argv)
{
	struct rdma_ud_param param;
	struct sockaddr_ib group;

	if (argc != 4)
		return 2;
	if (strcmp(argv[3], "silence") == 0)
		tries = FEW_TRIES;
	group = address(argv[2]);
	open_id(argv[1]);
	post_receive();
	join(&group, &param);
	printf("joined: LID 0x%x, queue key 0x%x\n", param.ah_attr.dlid, param.qkey);
	fflush(stdout);
	if (!strcmp(argv[3], "send")) {
		send_to(&param);
	} else {
		wait_for(IBV_WC_RECV);
		printf("got: %s\n", room + GRH_BYTES);
	}
	if (rdma_leave_multicast(id, (struct sockaddr *)&group))
		die("rdma_leave_multicast");
	rdma_destroy_qp(id);
	ibv_dereg_mr(mr);
	ibv_destroy_cq(cq);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	return 0;
}
