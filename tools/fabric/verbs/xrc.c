/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended reliable connections: see xrc.h.
 */
#include "tools/fabric/verbs/xrc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tools/fabric/verbs/context.h"

#define KNOWN_MASK (IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS)

static struct fab_xrcd *to_xrcd(struct ibv_xrcd *xrcd)
{
	return container_of(xrcd, struct fab_xrcd, ibv);
}

static bool is_same(const struct fab_xrcd *a, const struct fab_xrcd *b)
{
	return a == b || (a->has_file && b->has_file && a->dev == b->dev && a->ino == b->ino);
}

static bool domain_exists(struct fab_context *context, const struct fab_xrcd *xrcd)
{
	struct fab_xrcd *other;

	list_for_each_entry (other, &context->xrcds, node)
		if (is_same(other, xrcd))
			return true;
	return false;
}

/* As in open(): O_CREAT for a file that need not exist, with O_EXCL for one that must not. */
static int name_domain(struct fab_context *context, struct fab_xrcd *xrcd,
		       const struct ibv_xrcd_init_attr *attr)
{
	struct stat file;

	if (attr->comp_mask != KNOWN_MASK)
		return EINVAL;
	if (attr->fd == -1)
		return attr->oflags & O_CREAT ? 0 : EINVAL;
	if (fstat(attr->fd, &file))
		return errno;
	xrcd->has_file = true;
	xrcd->dev = file.st_dev;
	xrcd->ino = file.st_ino;
	if (!domain_exists(context, xrcd))
		return attr->oflags & O_CREAT ? 0 : EAGAIN;
	return attr->oflags & O_CREAT && attr->oflags & O_EXCL ? EINVAL : 0;
}

struct ibv_xrcd *xrc_open(struct ibv_context *verbs, struct ibv_xrcd_init_attr *attr)
{
	struct fab_context *context = to_context(verbs);
	struct fab_xrcd *xrcd = calloc(1, sizeof(*xrcd));
	int err;

	if (!xrcd)
		return NULL;
	xrcd->ibv.context = verbs;
	pthread_mutex_lock(&context->lock);
	err = name_domain(context, xrcd, attr);
	if (!err) {
		list_append(&context->xrcds, &xrcd->node);
		context->n_objects++;
	}
	pthread_mutex_unlock(&context->lock);
	if (!err)
		return &xrcd->ibv;
	free(xrcd);
	errno = err;
	return NULL;
}

int xrc_close(struct ibv_xrcd *ibv)
{
	struct fab_context *context = to_context(ibv->context);
	struct fab_xrcd *xrcd = to_xrcd(ibv);

	pthread_mutex_lock(&context->lock);
	if (xrcd->refs) {
		pthread_mutex_unlock(&context->lock);
		return command_return(EBUSY);
	}
	list_remove(&xrcd->node);
	context->n_objects--;
	pthread_mutex_unlock(&context->lock);
	free(xrcd);
	return 0;
}

/* --- shared receive queues ----------------------------------------------- */

int xrc_srq_number(struct ibv_srq *srq, uint32_t *ret)
{
	if (!to_srq(srq)->xrcd)
		return command_return(EINVAL);
	*ret = to_srq(srq)->number;
	return 0;
}

void xrc_add(struct fab_srq *srq, struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	struct fab_context *context = to_context(srq->ibv.context);

	srq->xrcd = to_xrcd(xrcd);
	srq->cq = to_cq(cq);
	srq->xrcd->refs++;
	srq->cq->refs++;
	context->last_srq = (context->last_srq + 1) & FAB_PSN_MASK;
	srq->number = context->last_srq;
	list_append(&context->xrc_srqs, &srq->xrc);
}

void xrc_remove(struct fab_srq *srq)
{
	if (!srq->xrcd)
		return;
	srq->xrcd->refs--;
	srq->cq->refs--;
	list_remove(&srq->xrc);
}

struct fab_srq *xrc_srq(const struct fab_qp *qp, uint32_t srqn)
{
	struct fab_srq *srq;

	if (!qp->xrcd)
		return qp->ex.qp_base.srq ? to_srq(qp->ex.qp_base.srq) : NULL;
	list_for_each_entry (srq, &context_of(qp)->xrc_srqs, xrc) {
		if (srq->number == srqn)
			return is_same(srq->xrcd, qp->xrcd) ? srq : NULL;
	}
	return NULL;
}

struct ibv_pd *xrc_pd(const struct fab_qp *qp, uint32_t srqn)
{
	struct fab_srq *srq;

	if (!qp->xrcd)
		return qp->ex.qp_base.pd;
	srq = xrc_srq(qp, srqn);
	return srq ? srq->ibv.pd : NULL;
}

struct fab_cq *xrc_receive_cq(const struct fab_qp *qp, uint32_t srqn)
{
	struct fab_srq *srq;

	if (!qp->xrcd)
		return to_cq(qp->ex.qp_base.recv_cq);
	srq = xrc_srq(qp, srqn);
	return srq ? srq->cq : NULL;
}
