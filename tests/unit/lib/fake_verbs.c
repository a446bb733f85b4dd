/* SPDX-License-Identifier: BSD-2-Clause */
/* A device that exists in memory only, in place of libibverbs: see fake_verbs.h. */
#include "tests/unit/lib/fake_verbs.h"

#include <check.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
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

/* --- devices and ports ---------------------------------------------------- */

#undef ibv_get_device_list
struct ibv_device **ibv_get_device_list(int *num)
{
	struct ibv_device **list = calloc((size_t)fake.n_listed + 1, sizeof(*list));
	int i;

	ck_assert_ptr_nonnull(list);
	for (i = 0; i < fake.n_listed; i++)
		list[i] = &fake.listed[i];
	if (num)
		*num = fake.n_listed;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *context;

	if (device == &fake.device_node)
		return &fake.verbs.context;
	context = calloc(1, sizeof(*context));
	ck_assert_ptr_nonnull(context);
	context->device = device;
	return context;
}

int ibv_close_device(struct ibv_context *context)
{
	free(context);
	return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	(void)context;
	*attr = (struct ibv_device_attr){ .phys_port_cnt = fake.n_ports ? fake.n_ports : 1,
					  .max_qp_rd_atom = FAKE_READS,
					  .max_qp_init_rd_atom = FAKE_READS,
					  .local_ca_ack_delay = 15 };
	return 0;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port_num, struct _compat_ibv_port_attr *ret)
{
	(void)context;
	if (port_num > FAKE_PORTS)
		return EINVAL;
	memcpy(ret, &fake.port[port_num - 1], sizeof(fake.port[0]));
	return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *ret)
{
	(void)context, (void)port_num;
	*ret = htobe16(fake.pkey[index]);
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size)
{
	(void)context, (void)flags;
	ck_assert_uint_eq(entry_size, sizeof(fake.gid[0]));
	ck_assert_uint_ge(max_entries, (size_t)fake.n_gids);
	memcpy(entries, fake.gid, (size_t)fake.n_gids * entry_size);
	return fake.n_gids;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	ck_assert_ptr_nonnull(pd);
	pd->context = context;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	free(pd);
	return 0;
}

/* --- what is made through an id ------------------------------------------- */

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
	snprintf(fake.device_node.name, sizeof(fake.device_node.name), "fake0");
	snprintf(fake.device_node.dev_name, sizeof(fake.device_node.dev_name), "uverbs0");
	fake.verbs.context.device = &fake.device_node;
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
