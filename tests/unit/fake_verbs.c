/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device that exists in memory only, in place of libibverbs: see fake_verbs.h. Its ports and
 * tables are in fake_tables.c.
 */
#include "tests/unit/fake_verbs.h"
#include "tests/unit/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SPARE_WR  3 /* a device may provide more than requested */

#define QPN	  0x77
#define FAKE_LKEY 0x1234

struct slot {
	uint64_t wr_id;
	struct ibv_sge sge[4];
	int n_sges;
};

/* A completion queue; those with a channel can be armed. */
struct queue {
	struct ibv_cq cq; /* first */
	struct ibv_wc wc[FAKE_RQ_MAX];
	unsigned int n_put, n_taken;
	bool is_armed;
	unsigned int n_events; /* not taken yet */
};

struct ah {
	struct ibv_ah ah; /* first */
	struct ibv_ah_attr attr;
};

struct fake_verbs fake;

static struct queue *sends, *receives;
static struct slot rq[FAKE_RQ_MAX];
static unsigned int n_rq_put, n_rq_taken;
static bool is_posted[FAKE_RQ_MAX];

static bool fails(void)
{
	errno = FAKE_ERROR;
	return ++fake.n_calls == fake.fail_at;
}

static void *make(size_t size, int *count)
{
	void *made = fails() ? NULL : calloc(1, size);

	fake.n_made += made != NULL;
	*count += made != NULL;
	return made;
}

static int drop(void *made, int *count)
{
	ck_assert_ptr_nonnull(made);
	free(made);
	fake.n_made--;
	--*count;
	return 0;
}

/* --- completions --------------------------------------------------------- */

static void announce(struct queue *queue)
{
	uint64_t one = 1;

	if (!queue->is_armed)
		return;
	queue->is_armed = false;
	queue->n_events++;
	ck_assert_int_eq(write(queue->cq.channel->fd, &one, sizeof(one)), sizeof(one));
}

static void complete(struct queue *queue, const struct ibv_wc *wc)
{
	if (queue->n_put - queue->n_taken == (unsigned int)queue->cq.cqe)
		ck_abort_msg("a completion queue is full");
	queue->wc[queue->n_put++ % FAKE_RQ_MAX] = *wc;
	announce(queue);
}

static int fake_poll_cq(struct ibv_cq *cq, int n_max, struct ibv_wc *wc)
{
	struct queue *queue = (struct queue *)cq;
	int n;

	if (fake.poll_error)
		return fake.poll_error;
	if (queue == sends && fake.slow_polls > 0) {
		fake.slow_polls--;
		return 0;
	}
	for (n = 0; n < n_max && queue->n_taken != queue->n_put; n++)
		wc[n] = queue->wc[queue->n_taken++ % FAKE_RQ_MAX];
	return n;
}

/* As for devices that count events: arming a queue before its event was taken has no effect. */
static int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	struct queue *queue = (struct queue *)cq;
	void (*before)(void) = fake.before_arming;

	ck_assert(!solicited_only);
	if (fails())
		return FAKE_ERROR;
	fake.before_arming = NULL;
	if (before)
		before();
	queue->is_armed = queue->n_events == 0;
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
	uint64_t one;

	if (read(channel->fd, &one, sizeof(one)) != sizeof(one))
		return -1;
	*cq = &receives->cq;
	*context = receives->cq.cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	((struct queue *)cq)->n_events -= n;
}

/* --- the queue pair ------------------------------------------------------ */

static int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct slot *slot = &rq[n_rq_put % FAKE_RQ_MAX];

	*bad = wr;
	if (fails())
		return FAKE_ERROR;
	/* Not ck_assert(), which makes a system call. */
	if (qp->state == IBV_QPS_RESET || wr->next || wr->wr_id >= FAKE_RQ_MAX ||
	    is_posted[wr->wr_id])
		ck_abort_msg("that cannot be posted");
	is_posted[wr->wr_id] = true;
	slot->wr_id = wr->wr_id;
	slot->n_sges = wr->num_sge;
	memcpy(slot->sge, wr->sg_list, wr->num_sge * sizeof(*wr->sg_list));
	n_rq_put++;
	fake.n_slots++;
	if (fake.is_flushed)
		fake_flush();
	return 0;
}

static void record(const struct ibv_send_wr *wr)
{
	struct fake_sent *sent = &fake.sent[fake.n_sent++];
	const struct ah *ah = (const struct ah *)wr->wr.ud.ah;

	ck_assert_int_le(fake.n_sent, FAKE_SENT_MAX);
	ck_assert_int_eq(wr->opcode, IBV_WR_SEND);
	ck_assert(!(wr->send_flags & IBV_SEND_INLINE)); /* not every device accepts an inline MAD */
	ck_assert_uint_eq(wr->sg_list[0].lkey, FAKE_LKEY);
	ck_assert_uint_eq(wr->sg_list[0].length, MAD_BYTES);
	sent->qpn = wr->wr.ud.remote_qpn;
	sent->qkey = wr->wr.ud.remote_qkey;
	sent->ah = ah->attr;
	memcpy(sent->mad, (const void *)(uintptr_t)wr->sg_list[0].addr, MAD_BYTES);
}

static int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ibv_wc wc = { .status = fake.is_flushed ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS };

	(void)qp;
	for (; wr; wr = wr->next) {
		if (fake.n_sends_left == 0) {
			*bad = wr;
			return FAKE_ERROR;
		}
		fake.n_sends_left -= fake.n_sends_left > 0;
		if (!fake.is_flushed)
			record(wr);
		wc.wr_id = wr->wr_id;
		complete(sends, &wc);
	}
	return 0;
}

static struct slot take_slot(void)
{
	struct slot slot = rq[n_rq_taken++ % FAKE_RQ_MAX];

	is_posted[slot.wr_id] = false;
	fake.n_slots--;
	return slot;
}

void fake_flush(void)
{
	struct ibv_wc wc = { .status = IBV_WC_WR_FLUSH_ERR };

	fake.is_flushed = true;
	while (fake.n_slots) {
		wc.wr_id = take_slot().wr_id;
		complete(receives, &wc);
	}
}

static size_t scatter(const struct slot *slot, size_t at, const uint8_t *data, size_t bytes)
{
	size_t i, n, skip = at, n_done = 0;

	for (i = 0; i < (size_t)slot->n_sges && n_done < bytes; i++) {
		const struct ibv_sge *sge = &slot->sge[i];

		if (skip >= sge->length) {
			skip -= sge->length;
			continue;
		}
		n = sge->length - skip < bytes - n_done ? sge->length - skip : bytes - n_done;
		memcpy((uint8_t *)(uintptr_t)sge->addr + skip, data + n_done, n);
		n_done += n;
		skip = 0;
	}
	return n_done;
}

void fake_arrive(const uint8_t *head, const void *message, size_t bytes, uint32_t source_qpn,
		 unsigned int flags)
{
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS,
			     .byte_len = (uint32_t)(FAKE_GRH + bytes),
			     .src_qp = source_qpn,
			     .sl = FAKE_WC_SL,
			     .wc_flags = flags };
	struct slot slot;

	ck_assert_int_gt(fake.n_slots, 0);
	slot = take_slot();
	wc.wr_id = slot.wr_id;
	if (scatter(&slot, 0, head, FAKE_GRH) + scatter(&slot, FAKE_GRH, message, bytes) <
	    FAKE_GRH + bytes)
		wc.status = IBV_WC_LOC_LEN_ERR;
	complete(receives, &wc);
	if (wc.status != IBV_WC_SUCCESS)
		fake_flush();
}

/* --- objects ------------------------------------------------------------- */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = make(sizeof(*pd), &fake.n_pds);

	if (pd)
		pd->context = context;
	return pd;
}

/* Freed last. */
int ibv_dealloc_pd(struct ibv_pd *pd)
{
	ck_assert_int_eq(fake.n_made, fake.n_pds);
	return drop(pd, &fake.n_pds);
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct ibv_comp_channel *channel = make(sizeof(*channel), &fake.n_channels);

	ck_assert_ptr_eq(context, &fake.verbs.context);
	if (!channel)
		return NULL;
	channel->context = context;
	channel->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	close(channel->fd);
	return drop(channel, &fake.n_channels);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct queue *queue = make(sizeof(*queue), &fake.n_cqs);

	ck_assert_ptr_eq(context, &fake.verbs.context);
	ck_assert_int_eq(comp_vector, 0);
	if (!queue)
		return NULL;
	queue->cq = (struct ibv_cq){
		.context = context, .cqe = cqe, .cq_context = cq_context, .channel = channel
	};
	*(channel ? &receives : &sends) = queue;
	return &queue->cq;
}

/* The real function waits until taken events are acknowledged. */
int ibv_destroy_cq(struct ibv_cq *cq)
{
	if (sends && cq == &sends->cq)
		sends = NULL;
	return drop(cq, &fake.n_cqs);
}

struct ibv_mr *(ibv_reg_mr)(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_mr *mr = make(sizeof(*mr), &fake.n_mrs);

	(void)access;
	fake.registered_at = (uintptr_t)addr;
	if (mr)
		*mr = (struct ibv_mr){
			.pd = pd, .addr = addr, .length = length, .lkey = FAKE_LKEY
		};
	return mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	(void)iova;
	return (ibv_reg_mr)(pd, addr, length, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	return drop(mr, &fake.n_mrs);
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp = make(sizeof(*qp), &fake.n_qps);

	ck_assert_ptr_eq(context, &fake.verbs.context);
	fake.qp_asked = *attr;
	if (!qp)
		return NULL;
	attr->cap.max_send_wr += SPARE_WR;
	qp->context = context;
	qp->qp_num = QPN;
	qp->pd = attr->pd;
	qp->qp_type = attr->qp_type;
	qp->srq = attr->srq;
	fake.n_slots = 0;
	n_rq_put = 0;
	n_rq_taken = 0;
	memset(is_posted, 0, sizeof(is_posted));
	return qp;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = { 0 };
	struct ibv_qp *qp;

	memcpy(&ex, attr, sizeof(*attr));
	ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	ex.pd = pd;
	qp = create_qp_ex(pd->context, &ex);
	attr->cap = ex.cap;
	return qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	if (sends)
		fake.n_cut_off = sends->n_put - sends->n_taken;
	return drop(qp, &fake.n_qps);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	if (fails())
		return FAKE_ERROR;
	if (mask & IBV_QP_STATE)
		qp->state = attr->qp_state;
	if (fake.n_moves < FAKE_MOVES_MAX) {
		fake.move[fake.n_moves] = *attr;
		fake.mask[fake.n_moves] = mask;
	}
	fake.n_moves++;
	return 0;
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp;
	if (fails())
		return FAKE_ERROR;
	fake.attached = *gid;
	fake.attached_lid = lid;
	fake.n_attached++;
	return 0;
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp, (void)gid, (void)lid;
	fake.n_attached--;
	return 0;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ah *ah = fake.has_no_ah ? NULL : make(sizeof(*ah), &fake.n_ahs);

	if (!ah) {
		errno = EINVAL;
		return NULL;
	}
	ah->ah.pd = pd;
	ah->attr = *attr;
	return &ah->ah;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	return drop(ah, &fake.n_ahs);
}

static struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq *srq = make(sizeof(*srq), &fake.n_srqs);

	(void)context;
	fake.srq_asked = *attr;
	if (!srq)
		return NULL;
	attr->attr.max_wr += SPARE_WR;
	srq->pd = attr->pd;
	return srq;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = { .attr = attr->attr, .pd = pd };
	struct ibv_srq *srq = create_srq_ex(pd->context, &ex);

	attr->attr = ex.attr;
	return srq;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	return drop(srq, &fake.n_srqs);
}

static struct ibv_xrcd *open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	struct ibv_xrcd *xrcd = make(sizeof(*xrcd), &fake.n_xrcds);

	ck_assert_ptr_eq(context, &fake.verbs.context);
	ck_assert_int_eq(attr->fd, -1);
	if (xrcd)
		xrcd->context = context;
	return xrcd;
}

static int close_xrcd(struct ibv_xrcd *xrcd)
{
	return drop(xrcd, &fake.n_xrcds);
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	if (!fake.knows_ece)
		return EOPNOTSUPP;
	if (fails())
		return FAKE_ERROR;
	*ece = fake.offer;
	return 0;
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	if (!fake.knows_ece)
		return EOPNOTSUPP;
	if (fails())
		return FAKE_ERROR;
	fake.told = *ece;
	fake.n_told++;
	fake.offer.options &= ece->options;
	return 0;
}

struct ibv_context *fake_verbs_begin(void)
{
	fake = (struct fake_verbs){
		.verbs = { .create_qp_ex = create_qp_ex,
			   .create_srq_ex = create_srq_ex,
			   .open_xrcd = open_xrcd,
			   .close_xrcd = close_xrcd,
			   .sz = sizeof(fake.verbs),
			   .context.abi_compat = __VERBS_ABI_IS_EXTENDED,
			   .context.ops = { .poll_cq = fake_poll_cq,
					    .req_notify_cq = fake_req_notify_cq,
					    .post_recv = fake_post_recv,
					    .post_send = fake_post_send } },
		.n_sends_left = -1,
	};
	snprintf(fake.device_node.name, sizeof(fake.device_node.name), "fake0");
	snprintf(fake.device_node.dev_name, sizeof(fake.device_node.dev_name), "uverbs0");
	fake.verbs.context.device = &fake.device_node;
	fake.pd.context = &fake.verbs.context;
	return &fake.verbs.context;
}

struct ibv_context *fake_roce_begin(void)
{
	struct ibv_context *context = fake_verbs_begin();

	fake.port[0].state = IBV_PORT_ACTIVE;
	fake.port[0].link_layer = IBV_LINK_LAYER_ETHERNET;
	return context;
}

int fake_n_alive(void)
{
	return fake.n_channels + fake.n_cqs + fake.n_qps + fake.n_srqs;
}
