/* SPDX-License-Identifier: BSD-2-Clause */
/* A libibverbs without a device: verbs_fake.h. The functions named ibv_* are the real one's. */
#include "verbs_fake.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define QPN 0x77

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
	unsigned int n_events; /* that nobody has taken */
};

struct ah {
	struct ibv_ah ah; /* first */
	struct ibv_ah_attr attr;
};

struct fake_verbs verbs;

static struct verbs_context device;
static struct queue *sends, *receives;
static struct slot rq[FAKE_RQ_MAX];
static unsigned int n_rq_put, n_rq_taken;
static bool is_posted[FAKE_RQ_MAX];

static bool fails(void)
{
	errno = ENOMEM;
	return ++verbs.n_calls == verbs.fails_at;
}

static void *make(size_t bytes)
{
	void *object = fails() ? NULL : calloc(1, bytes);

	verbs.n_made += object != NULL;
	return object;
}

static int give_back(void *object)
{
	ck_assert_ptr_nonnull(object);
	free(object);
	verbs.n_made--;
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

	if (verbs.poll_error)
		return verbs.poll_error;
	if (queue == sends && verbs.slow_polls > 0) {
		verbs.slow_polls--;
		return 0;
	}
	for (n = 0; n < n_max && queue->n_taken != queue->n_put; n++)
		wc[n] = queue->wc[queue->n_taken++ % FAKE_RQ_MAX];
	return n;
}

/* As devices do that count events: to arm a queue before its event was taken has no effect. */
static int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	struct queue *queue = (struct queue *)cq;
	void (*before)(void) = verbs.before_arming;

	ck_assert(!solicited_only);
	if (fails())
		return ENOMEM;
	verbs.before_arming = NULL;
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
		return ENOMEM;
	/* Not ck_assert(), which takes a system call. */
	if (qp->state == IBV_QPS_RESET || wr->next || wr->wr_id >= FAKE_RQ_MAX ||
	    is_posted[wr->wr_id])
		ck_abort_msg("that cannot be posted");
	is_posted[wr->wr_id] = true;
	slot->wr_id = wr->wr_id;
	slot->n_sges = wr->num_sge;
	memcpy(slot->sge, wr->sg_list, wr->num_sge * sizeof(*wr->sg_list));
	n_rq_put++;
	verbs.n_slots++;
	if (verbs.is_flushed)
		flush_queue_pair();
	return 0;
}

static void record(const struct ibv_send_wr *wr)
{
	struct fake_sent *sent = &verbs.sent[verbs.n_sent++];
	const struct ah *ah = (const struct ah *)wr->wr.ud.ah;

	ck_assert_int_le(verbs.n_sent, FAKE_SENT_MAX);
	ck_assert_int_eq(wr->opcode, IBV_WR_SEND);
	ck_assert(wr->send_flags & IBV_SEND_INLINE);
	ck_assert_uint_eq(wr->sg_list[0].length, MAD_BYTES);
	sent->qpn = wr->wr.ud.remote_qpn;
	sent->qkey = wr->wr.ud.remote_qkey;
	sent->ah = ah->attr;
	memcpy(sent->mad, (const void *)(uintptr_t)wr->sg_list[0].addr, MAD_BYTES);
}

static int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ibv_wc wc = { .status = verbs.is_flushed ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS };

	(void)qp;
	for (; wr; wr = wr->next) {
		if (verbs.n_sends_left == 0) {
			*bad = wr;
			return ENOMEM;
		}
		verbs.n_sends_left -= verbs.n_sends_left > 0;
		if (!verbs.is_flushed)
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
	verbs.n_slots--;
	return slot;
}

void flush_queue_pair(void)
{
	struct ibv_wc wc = { .status = IBV_WC_WR_FLUSH_ERR };

	verbs.is_flushed = true;
	while (verbs.n_slots) {
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

void arrive(const uint8_t *head, const void *message, size_t bytes, uint32_t source_qpn,
	    unsigned int flags)
{
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS,
			     .byte_len = (uint32_t)(FAKE_GRH + bytes),
			     .src_qp = source_qpn,
			     .sl = FAKE_WC_SL,
			     .wc_flags = flags };
	struct slot slot;

	ck_assert_int_gt(verbs.n_slots, 0);
	slot = take_slot();
	wc.wr_id = slot.wr_id;
	if (scatter(&slot, 0, head, FAKE_GRH) + scatter(&slot, FAKE_GRH, message, bytes) <
	    FAKE_GRH + bytes)
		wc.status = IBV_WC_LOC_LEN_ERR;
	complete(receives, &wc);
	if (wc.status != IBV_WC_SUCCESS)
		flush_queue_pair();
}

/* --- objects ------------------------------------------------------------- */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = make(sizeof(*pd));

	if (pd)
		pd->context = context;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	ck_assert_int_eq(verbs.n_made, 1);
	return give_back(pd);
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct ibv_comp_channel *channel = make(sizeof(*channel));

	if (!channel)
		return NULL;
	channel->context = context;
	channel->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	close(channel->fd);
	return give_back(channel);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct queue *queue = make(sizeof(*queue));

	(void)comp_vector;
	if (!queue)
		return NULL;
	queue->cq = (struct ibv_cq){
		.context = context, .cqe = cqe, .cq_context = cq_context, .channel = channel
	};
	*(channel ? &receives : &sends) = queue;
	return &queue->cq;
}

/* The real one waits for those who have taken events. */
int ibv_destroy_cq(struct ibv_cq *cq)
{
	return give_back(cq);
}

struct ibv_mr *(ibv_reg_mr)(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_mr *mr = make(sizeof(*mr));

	ck_assert(access & IBV_ACCESS_LOCAL_WRITE);
	verbs.registered_at = (uintptr_t)addr;
	if (mr)
		*mr = (struct ibv_mr){ .pd = pd, .addr = addr, .length = length };
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
	return give_back(mr);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp *qp = make(sizeof(*qp));

	if (!qp)
		return NULL;
	qp->context = pd->context;
	qp->qp_num = QPN;
	verbs.n_slots = 0;
	n_rq_put = 0;
	n_rq_taken = 0;
	memset(is_posted, 0, sizeof(is_posted));
	init->cap.max_inline_data = verbs.max_inline;
	return qp;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	ck_assert(mask & IBV_QP_STATE);
	if (fails())
		return ENOMEM;
	qp->state = attr->qp_state;
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	verbs.n_cut_off = sends->n_put - sends->n_taken;
	return give_back(qp);
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ah *ah = verbs.has_no_ah ? NULL : make(sizeof(*ah));

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
	return give_back(ah);
}

/* --- the port ------------------------------------------------------------ */

static int fake_query_port(struct ibv_context *context, uint8_t port_num,
			   struct ibv_port_attr *attr, size_t bytes)
{
	struct ibv_port_attr port = { .state = IBV_PORT_ACTIVE, .link_layer = verbs.link_layer };

	(void)context;
	memcpy(attr, &port, bytes);
	return port_num == 1 ? 0 : EINVAL;
}

int(ibv_query_port)(struct ibv_context *context, uint8_t port_num,
		    struct _compat_ibv_port_attr *attr)
{
	(void)context;
	(void)port_num;
	(void)attr;
	return EINVAL;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_bytes)
{
	(void)context;
	verbs.n_looks++;
	if (flags || (size_t)verbs.n_gids > max_entries)
		return -EINVAL;
	memcpy(entries, verbs.gid, verbs.n_gids * entry_bytes);
	return verbs.n_gids;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_bytes)
{
	(void)context;
	(void)flags;
	for (int i = 0; i < verbs.n_gids; i++) {
		if (verbs.gid[i].gid_index != gid_index || verbs.gid[i].port_num != port_num)
			continue;
		memcpy(entry, &verbs.gid[i], entry_bytes);
		return 0;
	}
	return ENODATA;
}

struct mad_gid gid_of(const char *address)
{
	struct mad_gid gid = { 0 };

	if (strchr(address, ':')) {
		ck_assert_int_eq(inet_pton(AF_INET6, address, gid.raw), 1);
		return gid;
	}
	memset(gid.raw + 10, 0xff, 2);
	ck_assert_int_eq(inet_pton(AF_INET, address, gid.raw + 12), 1);
	return gid;
}

void add_gid(const char *address, uint32_t index, enum ibv_gid_type type)
{
	struct mad_gid gid = gid_of(address);
	struct ibv_gid_entry *entry = &verbs.gid[verbs.n_gids++];

	*entry = (struct ibv_gid_entry){ .gid_index = index, .port_num = 1, .gid_type = type };
	memcpy(&entry->gid, &gid, sizeof(gid));
}

struct ibv_context *set_up_fake_verbs(void)
{
	memset(&verbs, 0, sizeof(verbs));
	verbs.link_layer = IBV_LINK_LAYER_ETHERNET;
	verbs.max_inline = MAD_BYTES;
	verbs.n_sends_left = -1;
	memset(&device, 0, sizeof(device));
	device.sz = sizeof(device);
	device.query_port = fake_query_port;
	device.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	device.context.ops.poll_cq = fake_poll_cq;
	device.context.ops.req_notify_cq = fake_req_notify_cq;
	device.context.ops.post_recv = fake_post_recv;
	device.context.ops.post_send = fake_post_send;
	return &device.context;
}
