/* SPDX-License-Identifier: BSD-2-Clause */
/* A device that exists in memory only: see fake_verbs.h. */
#include "fake_verbs.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SPARE_WR 3 /* a device gives more than it is asked for */

struct fake_verbs fake;
static struct channel *channel;

static bool fails(void)
{
	errno = FAKE_ERROR;
	return ++fake.n_calls == fake.fail_at;
}

static void *make(size_t size, int *count)
{
	void *made = fails() ? NULL : calloc(1, size);

	*count += made != NULL;
	return made;
}

static int drop(void *made, int *count)
{
	ck_assert_ptr_nonnull(made);
	free(made);
	--*count;
	return 0;
}

/* --- verbs that are functions -------------------------------------------- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	ck_assert_ptr_eq(context, &fake.verbs.context);
	return make(sizeof(struct ibv_comp_channel), &fake.n_channels);
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *made)
{
	return drop(made, &fake.n_channels);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *comp_channel, int comp_vector)
{
	struct ibv_cq *cq = make(sizeof(*cq), &fake.n_cqs);

	ck_assert_ptr_eq(context, &fake.verbs.context);
	ck_assert_int_eq(comp_vector, 0);
	if (!cq)
		return NULL;
	cq->cqe = cqe;
	cq->cq_context = cq_context;
	cq->channel = comp_channel;
	return cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	return drop(cq, &fake.n_cqs);
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp = make(sizeof(*qp), &fake.n_qps);

	ck_assert_ptr_eq(context, &fake.verbs.context);
	fake.qp_asked = *attr;
	if (!qp)
		return NULL;
	attr->cap.max_send_wr += SPARE_WR;
	qp->pd = attr->pd;
	qp->qp_type = attr->qp_type;
	qp->srq = attr->srq;
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
	return drop(qp, &fake.n_qps);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	(void)qp;
	if (fails())
		return FAKE_ERROR;
	ck_assert_int_lt(fake.n_moves, FAKE_MOVES_MAX);
	fake.move[fake.n_moves] = *attr;
	fake.mask[fake.n_moves++] = mask;
	return 0;
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
	ck_assert_ptr_eq(context, &fake.verbs.context);
	ck_assert_int_eq(attr->fd, -1);
	return make(sizeof(struct ibv_xrcd), &fake.n_xrcds);
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

/* --- device and ids ------------------------------------------------------ */

void fake_begin(void)
{
	fake = (struct fake_verbs){
		.verbs = {.create_qp_ex = create_qp_ex,
			   .create_srq_ex = create_srq_ex,
			   .open_xrcd = open_xrcd,
			   .sz = sizeof(fake.verbs),
			   .context.abi_compat = __VERBS_ABI_IS_EXTENDED},
	};
	fake.device.verbs = &fake.verbs.context;
	fake.pd.context = &fake.verbs.context;
	ck_assert_int_eq(channel_new(&channel), 0);
}

void fake_end(void)
{
	channel_close(channel);
	free(fake.device.xrcd);
}

struct id *fake_id(enum ibv_qp_type qp_type)
{
	struct id *id;

	ck_assert_int_eq(id_new(channel, RDMA_PS_IB, &id), 0);
	id->attached = &fake.device;
	id->path.gid.verbs = &fake.verbs.context;
	id->path.gid.port_num = 1;
	id->pub.verbs = &fake.verbs.context;
	id->pub.pd = &fake.pd;
	id->pub.qp_type = qp_type;
	return id;
}

void fake_id_free(struct id *id)
{
	id_free(id);
}

int fake_n_alive(void)
{
	return fake.n_channels + fake.n_cqs + fake.n_qps + fake.n_srqs;
}
