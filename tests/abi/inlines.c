/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls every inline function of the public headers over verbs that only log their arguments, and
 * prints the log. tests/abi/twice.py compiles it against our headers and against the
 * distribution's, and compares: what programs have compiled in has to stay the same.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#undef ibv_reg_mr

/* Results of the next calls, one digit each: 'n' none, '1' a completion, 'e' an error. */
static const char *script;
static struct ibv_mr registration = { .lkey = 0x1234 };
static struct ibv_cq send_cq, recv_cq;
static struct ibv_comp_channel send_channel, recv_channel;
static struct rdma_cm_id id;

static char next_answer(void)
{
	return *script ? *script++ : '1';
}

static void show_sgl(const struct ibv_sge *sge, int n)
{
	printf(" n=%d", n);
	for (int i = 0; i < n; i++)
		printf(" [%llx+%x key %x]", (unsigned long long)sge[i].addr, sge[i].length,
		       sge[i].lkey);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	printf("post_send qp=%d next=%d id=%llx op=%d flags=%x", qp == id.qp, wr->next != NULL,
	       (unsigned long long)wr->wr_id, wr->opcode, wr->send_flags);
	show_sgl(wr->sg_list, wr->num_sge);
	if (wr->opcode == IBV_WR_SEND && qp->qp_type == IBV_QPT_UD)
		printf(" ah=%p qpn=%x qkey=%x", (void *)wr->wr.ud.ah, wr->wr.ud.remote_qpn,
		       wr->wr.ud.remote_qkey);
	else if (wr->opcode != IBV_WR_SEND)
		printf(" remote=%llx rkey=%x", (unsigned long long)wr->wr.rdma.remote_addr,
		       wr->wr.rdma.rkey);
	printf("\n");
	*bad = wr;
	return next_answer() == 'e' ? ENOMEM : 0;
}

static int log_recv(const char *queue, struct ibv_recv_wr *wr)
{
	printf("%s next=%d id=%llx", queue, wr->next != NULL, (unsigned long long)wr->wr_id);
	show_sgl(wr->sg_list, wr->num_sge);
	printf("\n");
	return next_answer() == 'e' ? EINVAL : 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	*bad = wr;
	return log_recv(qp == id.qp ? "post_recv" : "post_recv to a stranger", wr);
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	*bad = wr;
	return log_recv(srq == id.srq ? "post_srq_recv" : "post_srq_recv to a stranger", wr);
}

static const char *cq_name(const struct ibv_cq *cq)
{
	return cq == &send_cq ? "send" : "recv";
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	char answer = next_answer();

	printf("poll %s %d -> %c\n", cq_name(cq), n, answer);
	if (answer == '1')
		wc->wr_id = 77;
	/*
	 * Stock overwrites the device's errno with -1, this library keeps it: the one intended
	 * difference.
	 */
	errno = answer == 'e' ? -1 : errno;
	return answer == '1' ? 1 : answer == 'e' ? -1 : 0;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	char answer = next_answer();

	printf("arm %s %d -> %c\n", cq_name(cq), solicited_only, answer);
	return answer == 'e' ? ENOMEM : 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
	char answer = next_answer();

	printf("sleep on %s -> %c\n", channel == &send_channel ? "send" : "recv", answer);
	*cq = channel == &send_channel ? &send_cq : &recv_cq;
	*context = &id;
	errno = answer == 'e' ? EINTR : errno;
	return answer == 'e' ? -1 : 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	printf("ack %s %u\n", cq_name(cq), n);
}

static struct ibv_mr *log_reg(struct ibv_pd *pd, size_t length, unsigned int access)
{
	printf("reg_mr pd=%d length=%zu access=%x\n", pd == id.pd, length, access);
	return &registration;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	(void)addr;
	return log_reg(pd, length, (unsigned int)access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	(void)addr;
	(void)iova;
	return log_reg(pd, length, access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	printf("dereg_mr %d\n", mr == &registration);
	return next_answer() == 'e' ? EBUSY : 0;
}

#define SHOW(answers, call)                                                    \
	do {                                                                   \
		script = answers;                                              \
		errno = 0;                                                     \
		int ret = call;                                                \
		printf("%s [%s] = %d errno %d\n", #call, answers, ret, errno); \
	} while (0)

static void call_memory_functions(void)
{
	char buf[8];

	printf("%d\n", rdma_reg_msgs(&id, buf, 8) == &registration);
	printf("%d\n", rdma_reg_read(&id, buf, 8) == &registration);
	printf("%d\n", rdma_reg_write(&id, buf, 8) == &registration);
	SHOW("n", rdma_dereg_mr(&registration));
	SHOW("e", rdma_dereg_mr(&registration));
	SHOW("", rdma_seterrno(0));
	SHOW("", rdma_seterrno(ENOENT));
}

static void call_post_functions(struct ibv_mr *mr)
{
	void *context = (void *)0xc0ffee, *buf = (void *)0x10000;
	struct ibv_sge sgl[2] = { { 0x1000, 16, 1 }, { 0x2000, 32, 2 } };

	registration.addr = buf;
	registration.length = 4096;
	SHOW("n", rdma_post_recvv(&id, context, sgl, 2));
	SHOW("n", rdma_post_sendv(&id, context, sgl, 2, IBV_SEND_SIGNALED));
	SHOW("n", rdma_post_readv(&id, context, sgl, 2, 0, 0x123456789abcdefULL, 9));
	SHOW("n", rdma_post_writev(&id, context, sgl, 2, IBV_SEND_FENCE, 0xfedcba9876543210ULL, 8));
	SHOW("n", rdma_post_recv(&id, context, buf, 100, &registration));
	SHOW("n", rdma_post_send(&id, context, buf, 100, mr, IBV_SEND_INLINE));
	SHOW("n", rdma_post_read(&id, context, buf, 100, &registration, 0, 0x42, 7));
	SHOW("n", rdma_post_write(&id, context, buf, 100, mr, IBV_SEND_SOLICITED, 0x43, 6));
	SHOW("e", rdma_post_sendv(&id, context, sgl, 0, 0));
	SHOW("e", rdma_post_recvv(&id, context, sgl, 0));
	id.qp->qp_type = IBV_QPT_UD;
	SHOW("n", rdma_post_ud_send(&id, context, buf, 5, mr, 0, (struct ibv_ah *)0x99, 0x123));
	id.qp->qp_type = IBV_QPT_RC;
}

static void call_completion_functions(void)
{
	struct ibv_wc wc = { .wr_id = 0 };

	SHOW("1", rdma_get_send_comp(&id, &wc));
	SHOW("nn1", rdma_get_send_comp(&id, &wc));
	SHOW("nnnn1", rdma_get_send_comp(&id, &wc));
	SHOW("nnnnnnnn1", rdma_get_recv_comp(&id, &wc));
	SHOW("e", rdma_get_recv_comp(&id, &wc));
	SHOW("nne", rdma_get_recv_comp(&id, &wc));
	SHOW("ne", rdma_get_send_comp(&id, &wc));
	SHOW("nnne", rdma_get_send_comp(&id, &wc));
	printf("wr_id %llu\n", (unsigned long long)wc.wr_id);
}

static void call_address_functions(void)
{
	struct ib_addr a = { .sib_raw = { 0 } }, b = a;

	printf("local %td peer %td\n", (char *)rdma_get_local_addr(&id) - (char *)&id,
	       (char *)rdma_get_peer_addr(&id) - (char *)&id);
	printf("any %d loopback %d\n", !!ib_addr_any(&a), !!ib_addr_loopback(&a));
	ib_addr_set(&a, 0, 0, 0, htonl(1));
	printf("any %d loopback %d\n", !!ib_addr_any(&a), !!ib_addr_loopback(&a));
	ib_addr_set(&b, htonl(0xfe800000), 2, 3, htonl(1));
	printf("any %d loopback %d\n", !!ib_addr_any(&b), !!ib_addr_loopback(&b));
	printf("cmp %d %d %d\n", ib_addr_cmp(&a, &b) < 0, ib_addr_cmp(&b, &a) > 0,
	       ib_addr_cmp(&a, &a) == 0);
	for (int i = 0; i < 16; i++)
		printf("%02x", b.sib_addr8[i]);
	printf("\n");
}

int main(void)
{
	static struct ibv_context context = {
		.ops = { .post_send = post_send,
			 .post_recv = post_recv,
			 .post_srq_recv = post_srq_recv,
			 .poll_cq = poll_cq,
			 .req_notify_cq = req_notify_cq },
	};
	static struct ibv_qp qp = { .context = &context, .qp_type = IBV_QPT_RC };
	static struct ibv_srq srq = { .context = &context };
	static struct ibv_pd pd;

	send_cq.context = recv_cq.context = &context;
	id = (struct rdma_cm_id){ .qp = &qp,
				  .pd = &pd,
				  .send_cq = &send_cq,
				  .send_cq_channel = &send_channel,
				  .recv_cq = &recv_cq,
				  .recv_cq_channel = &recv_channel };
	call_memory_functions();
	call_post_functions(&registration);
	call_post_functions(NULL);
	id.srq = &srq;
	call_post_functions(NULL);
	call_completion_functions();
	call_address_functions();
	return 0;
}
