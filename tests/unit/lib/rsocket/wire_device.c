/* SPDX-License-Identifier: BSD-2-Clause */
/* A device in memory that transfers data: see wire_device.h. */
#include "wire_device.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/id/id.h"
#include "tests/unit/test.h"

#undef ibv_reg_mr

#define N_MRS	    16384
#define INLINE_MAX  256
#define QUEUE_DEPTH 1024
#define MAX_QP_WR   512

#define EVENTS_MAX  8 /* two completion queues, each armed once */

struct wire_channel {
	struct ibv_comp_channel channel;
	struct ibv_cq *event[EVENTS_MAX];
	unsigned int first, n;
};

struct wire_cq {
	struct ibv_cq cq;
	struct ibv_wc wc[4 * QUEUE_DEPTH];
	unsigned int first, n;
	bool armed;
};

struct request {
	struct ibv_send_wr wr;
	struct ibv_sge sge[2];
	uint8_t data[INLINE_MAX];
};

struct wire_qp {
	struct ibv_qp qp;
	struct wire_qp *peer;
	struct wire_cq *send_cq, *recv_cq;
	struct request *queue; /* a ring of QUEUE_DEPTH */
	unsigned int first, n;
	uint64_t recv[QUEUE_DEPTH]; /* a ring: wr_id */
	unsigned int first_recv, n_recvs;
	unsigned int n_max_send, n_sending, n_quiet;
	bool is_held, is_dead;
	uint32_t flood;
	unsigned int n_flood;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct verbs_context verbs;
static struct device device;
static struct ibv_pd pd;
static struct channel *channel;
static struct ibv_mr *mrs[N_MRS];
static int access_of[N_MRS];
static int n_alive;
static bool lies_are_allowed;

/* --- completions --------------------------------------------------------- */

static void complete(struct wire_cq *cq, const struct ibv_wc *wc)
{
	struct wire_channel *wakes = (struct wire_channel *)cq->cq.channel;
	uint64_t one = 1;

	ck_assert_uint_lt(cq->n, 4 * QUEUE_DEPTH);
	cq->wc[(cq->first + cq->n++) % (4 * QUEUE_DEPTH)] = *wc;
	if (!cq->armed)
		return;
	cq->armed = false;
	ck_assert_uint_lt(wakes->n, EVENTS_MAX);
	wakes->event[(wakes->first + wakes->n++) % EVENTS_MAX] = &cq->cq;
	ck_assert_int_eq(write(cq->cq.channel->fd, &one, sizeof(one)), sizeof(one));
}

static int poll_cq(struct ibv_cq *pub, int most, struct ibv_wc *wc)
{
	struct wire_cq *cq = (struct wire_cq *)pub;
	int n = 0;

	pthread_mutex_lock(&lock);
	for (; n < most && cq->n; n++, cq->n--) {
		wc[n] = cq->wc[cq->first];
		cq->first = (cq->first + 1) % (4 * QUEUE_DEPTH);
	}
	pthread_mutex_unlock(&lock);
	return n;
}

static int req_notify_cq(struct ibv_cq *pub, int solicited_only)
{
	(void)solicited_only;
	pthread_mutex_lock(&lock);
	((struct wire_cq *)pub)->armed = true;
	pthread_mutex_unlock(&lock);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *comp, struct ibv_cq **cq, void **context)
{
	struct wire_channel *wakes = (struct wire_channel *)comp;
	uint64_t count;

	if (read(comp->fd, &count, sizeof(count)) != sizeof(count))
		return -1;
	pthread_mutex_lock(&lock);
	*cq = wakes->event[wakes->first];
	*context = (*cq)->cq_context;
	wakes->first = (wakes->first + 1) % EVENTS_MAX;
	wakes->n--;
	pthread_mutex_unlock(&lock);
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	(void)cq;
	(void)n;
}

/* --- execution ----------------------------------------------------------- */

/* A forbidden write is an error of the test, whichever end causes it. */
static uint8_t *target(uint32_t rkey, uint64_t addr, uint64_t bytes, int needed)
{
	const struct ibv_mr *mr = rkey < N_MRS ? mrs[rkey] : NULL;

	ck_assert_ptr_nonnull(mr);
	ck_assert_int_eq(access_of[rkey] & needed, needed);
	ck_assert_uint_ge(addr, (uintptr_t)mr->addr);
	ck_assert_uint_le(addr + bytes, (uintptr_t)mr->addr + mr->length);
	return (uint8_t *)(uintptr_t)addr;
}

static bool may_write(const struct request *request)
{
	const struct ibv_mr *mr = NULL;
	uint64_t at = request->wr.wr.rdma.remote_addr, bytes = 0;
	uint32_t key = request->wr.wr.rdma.rkey;

	for (int i = 0; i < request->wr.num_sge; i++)
		bytes += request->sge[i].length;
	if (key < N_MRS && access_of[key] & IBV_ACCESS_REMOTE_WRITE)
		mr = mrs[key];
	return !bytes || (mr && at >= (uintptr_t)mr->addr && at + bytes >= at &&
			  at + bytes <= (uintptr_t)mr->addr + mr->length);
}

/* As a device does: whole words, in order. Sent data may be read before its message arrives. */
static void write_words(uint8_t *to, const uint8_t *from, uint64_t bytes)
{
	uint64_t word;

	if (bytes % sizeof(word) || (uintptr_t)to % sizeof(word)) {
		memcpy(to, from, bytes);
		return;
	}
	for (uint64_t at = 0; at < bytes; at += sizeof(word)) {
		memcpy(&word, from + at, sizeof(word));
		__atomic_store_n((uint64_t *)(void *)(to + at), word, __ATOMIC_RELEASE);
	}
}

static void write_out(const struct request *request)
{
	uint64_t at = request->wr.wr.rdma.remote_addr;
	const uint8_t *inlined = request->data;

	for (int i = 0; i < request->wr.num_sge; i++) {
		const struct ibv_sge *sge = &request->sge[i];
		uint8_t *to =
			target(request->wr.wr.rdma.rkey, at, sge->length, IBV_ACCESS_REMOTE_WRITE);

		if (request->wr.send_flags & IBV_SEND_INLINE) {
			write_words(to, inlined, sge->length);
			inlined += sge->length;
		} else {
			write_words(to, target(sge->lkey, sge->addr, sge->length, 0), sge->length);
		}
		at += sge->length;
	}
}

/* A completion frees the slots of all earlier requests. */
static void done(struct wire_qp *qp, const struct request *request, enum ibv_wc_status status)
{
	qp->n_quiet++;
	if (status == IBV_WC_SUCCESS && !(request->wr.send_flags & IBV_SEND_SIGNALED))
		return;
	complete(qp->send_cq, &(struct ibv_wc){ .wr_id = request->wr.wr_id,
						.status = status,
						.opcode = IBV_WC_RDMA_WRITE });
	qp->n_sending -= qp->n_quiet;
	qp->n_quiet = 0;
}

static uint64_t take_recv(struct wire_qp *qp)
{
	uint64_t wr_id = qp->recv[qp->first_recv];

	qp->first_recv = (qp->first_recv + 1) % QUEUE_DEPTH;
	qp->n_recvs--;
	return wr_id;
}

static void deliver(struct wire_qp *to, uint32_t imm)
{
	complete(to->recv_cq, &(struct ibv_wc){ .wr_id = take_recv(to),
						.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
						.imm_data = imm });
}

static bool needs_recv(const struct request *request)
{
	return request->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static void kill_qp(struct wire_qp *qp);

static void carry_out(struct wire_qp *qp)
{
	while (qp->n && !qp->is_held && (qp->is_dead || qp->peer)) {
		struct request *request = &qp->queue[qp->first];
		bool fails = qp->is_dead || qp->peer->is_dead;

		if (!fails && needs_recv(request) && !qp->peer->n_recvs)
			return;
		if (!fails && lies_are_allowed && !may_write(request)) {
			kill_qp(qp->peer);
			kill_qp(qp);
			return;
		}
		if (!fails)
			write_out(request);
		if (!fails && needs_recv(request))
			deliver(qp->peer, request->wr.imm_data);
		done(qp, request,
		     qp->is_dead ? IBV_WC_WR_FLUSH_ERR
		     : fails	 ? IBV_WC_RETRY_EXC_ERR
				 : IBV_WC_SUCCESS);
		qp->first = (qp->first + 1) % QUEUE_DEPTH;
		qp->n--;
	}
}

static void kill_qp(struct wire_qp *qp)
{
	if (qp->is_dead)
		return;
	qp->is_dead = true;
	qp->is_held = false;
	while (qp->n_recvs)
		complete(qp->recv_cq,
			 &(struct ibv_wc){ .wr_id = take_recv(qp), .status = IBV_WC_WR_FLUSH_ERR });
	carry_out(qp);
}

/* --- posting ------------------------------------------------------------- */

static void copy_inline(struct request *request)
{
	uint32_t at = 0;

	for (int i = 0; i < request->wr.num_sge; i++) {
		const struct ibv_sge *sge = &request->sge[i];

		ck_assert_uint_le(at + sge->length, INLINE_MAX);
		memcpy(request->data + at, (const void *)(uintptr_t)sge->addr, sge->length);
		at += sge->length;
	}
}

static void check_sges(const struct ibv_sge *sge, int n)
{
	for (int i = 0; i < n; i++)
		target(sge[i].lkey, sge[i].addr, sge[i].length, 0);
}

static int post_send(struct ibv_qp *pub, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct wire_qp *qp = (struct wire_qp *)pub;
	struct request *request;

	(void)bad;
	pthread_mutex_lock(&lock);
	ck_assert_ptr_null(wr->next);
	ck_assert_uint_lt(qp->n_sending, qp->n_max_send);
	request = &qp->queue[(qp->first + qp->n++) % QUEUE_DEPTH];
	request->wr = *wr;
	memcpy(request->sge, wr->sg_list, sizeof(struct ibv_sge) * (size_t)wr->num_sge);
	if (wr->send_flags & IBV_SEND_INLINE)
		copy_inline(request);
	else
		check_sges(wr->sg_list, wr->num_sge);
	qp->n_sending++;
	carry_out(qp);
	pthread_mutex_unlock(&lock);
	return 0;
}

static int post_recv(struct ibv_qp *pub, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct wire_qp *qp = (struct wire_qp *)pub;

	(void)bad;
	pthread_mutex_lock(&lock);
	for (; wr; wr = wr->next) {
		check_sges(wr->sg_list, wr->num_sge);
		ck_assert_uint_lt(qp->n_recvs, QUEUE_DEPTH);
		qp->recv[(qp->first_recv + qp->n_recvs++) % QUEUE_DEPTH] = wr->wr_id;
	}
	if (qp->peer)
		carry_out(qp->peer);
	while (qp->n_flood && qp->n_recvs) {
		qp->n_flood--;
		deliver(qp, htobe32(qp->flood));
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

/* --- objects ------------------------------------------------------------- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct wire_channel *made = calloc(1, sizeof(*made));

	made->channel.context = context;
	made->channel.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	n_alive++;
	return &made->channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *made)
{
	close(made->fd);
	free(made);
	n_alive--;
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *comp, int comp_vector)
{
	struct wire_cq *made = calloc(1, sizeof(*made));

	(void)cqe;
	(void)comp_vector;
	made->cq.context = context;
	made->cq.cq_context = cq_context;
	made->cq.channel = comp;
	n_alive++;
	return &made->cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	free(cq);
	n_alive--;
	return 0;
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct wire_qp *made = calloc(1, sizeof(*made));

	made->queue = calloc(QUEUE_DEPTH, sizeof(*made->queue));
	made->qp.context = context;
	made->qp.pd = attr->pd;
	made->qp.qp_type = attr->qp_type;
	made->send_cq = (struct wire_cq *)attr->send_cq;
	made->recv_cq = (struct wire_cq *)attr->recv_cq;
	made->n_max_send = attr->cap.max_send_wr;
	n_alive++;
	return &made->qp;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *of, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = { 0 };

	memcpy(&ex, attr, sizeof(*attr));
	ex.pd = of;
	return create_qp_ex(of->context, &ex);
}

int ibv_destroy_qp(struct ibv_qp *pub)
{
	struct wire_qp *qp = (struct wire_qp *)pub;

	pthread_mutex_lock(&lock);
	if (qp->peer) {
		qp->peer->peer = NULL;
		kill_qp(qp->peer);
	}
	pthread_mutex_unlock(&lock);
	free(qp->queue);
	free(qp);
	n_alive--;
	return 0;
}

int ibv_modify_qp(struct ibv_qp *pub, struct ibv_qp_attr *attr, int mask)
{
	pthread_mutex_lock(&lock);
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_ERR)
		kill_qp((struct wire_qp *)pub);
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		((struct wire_qp *)pub)->is_dead = false;
	pthread_mutex_unlock(&lock);
	return 0;
}

static struct ibv_mr *reg_mr(void *addr, size_t length, int access)
{
	struct ibv_mr *made = calloc(1, sizeof(*made));
	static uint32_t key;

	pthread_mutex_lock(&lock);
	do
		key = key % (N_MRS - 1) + 1;
	while (mrs[key]);
	*made = (struct ibv_mr){
		.pd = &pd, .addr = addr, .length = length, .lkey = key, .rkey = key
	};
	mrs[key] = made;
	access_of[key] = access;
	pthread_mutex_unlock(&lock);
	return made;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *of, void *addr, size_t length, int access)
{
	(void)of;
	return reg_mr(addr, length, access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *of, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	(void)of;
	ck_assert_uint_eq(iova, (uintptr_t)addr);
	return reg_mr(addr, length, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	pthread_mutex_lock(&lock);
	mrs[mr->lkey] = NULL;
	pthread_mutex_unlock(&lock);
	free(mr);
	return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	(void)context;
	(void)attr;
	ck_abort_msg("it may be a command of firmware, and the limits are known");
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	(void)ece;
	return EOPNOTSUPP;
}

/* --- control by tests ---------------------------------------------------- */

void wire_begin(void)
{
	verbs = (struct verbs_context){ .create_qp_ex = create_qp_ex,
					.sz = sizeof(verbs),
					.context.abi_compat = __VERBS_ABI_IS_EXTENDED,
					.context.ops = { .poll_cq = poll_cq,
							 .req_notify_cq = req_notify_cq,
							 .post_send = post_send,
							 .post_recv = post_recv } };
	device.verbs = &verbs.context;
	device.attr.max_qp_wr = MAX_QP_WR;
	pd.context = &verbs.context;
	n_alive = 0;
	lies_are_allowed = false;
	ck_assert_int_eq(channel_new(&channel), 0);
}

void wire_end(void)
{
	ck_assert_int_eq(n_alive, 0);
	for (int i = 0; i < N_MRS; i++)
		ck_assert_ptr_null(mrs[i]);
	channel_close(channel);
}

struct rdma_cm_id *wire_id(void)
{
	struct id *id;

	ck_assert_int_eq(id_new(channel, RDMA_PS_TCP, &id), 0);
	id->attached = &device;
	id->path.gid.verbs = &verbs.context;
	id->path.gid.port_num = 1;
	id->pub.verbs = &verbs.context;
	id->pub.pd = &pd;
	return &id->pub;
}

void wire_id_free(struct rdma_cm_id *id)
{
	id_free(id_of(id));
}

void wire_pair(struct ibv_qp *a, struct ibv_qp *b)
{
	((struct wire_qp *)a)->peer = (struct wire_qp *)b;
	((struct wire_qp *)b)->peer = (struct wire_qp *)a;
}

void wire_cut(struct ibv_qp *pub)
{
	struct wire_qp *qp = (struct wire_qp *)pub;

	pthread_mutex_lock(&lock);
	kill_qp(qp->peer);
	kill_qp(qp);
	pthread_mutex_unlock(&lock);
}

void wire_allow_lies(void)
{
	lies_are_allowed = true;
}

void wire_inject(struct ibv_qp *pub, uint32_t message)
{
	struct wire_qp *qp = (struct wire_qp *)pub;

	pthread_mutex_lock(&lock);
	if (qp->n_recvs)
		deliver(qp, htobe32(message));
	pthread_mutex_unlock(&lock);
}

void wire_flood(struct ibv_qp *pub, uint32_t message, unsigned int n)
{
	struct wire_qp *qp = (struct wire_qp *)pub;

	pthread_mutex_lock(&lock);
	qp->flood = message;
	qp->n_flood = n;
	while (qp->n_flood && qp->n_recvs) {
		qp->n_flood--;
		deliver(qp, htobe32(message));
	}
	pthread_mutex_unlock(&lock);
}

unsigned int wire_flood_left(struct ibv_qp *pub)
{
	return ((struct wire_qp *)pub)->n_flood;
}

void wire_hold(struct ibv_qp *pub, bool hold)
{
	struct wire_qp *qp = (struct wire_qp *)pub;

	pthread_mutex_lock(&lock);
	qp->is_held = hold;
	carry_out(qp);
	pthread_mutex_unlock(&lock);
}
