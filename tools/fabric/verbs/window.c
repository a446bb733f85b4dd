/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows: see window.h.
 */
#include "tools/fabric/verbs/window.h"

#include <errno.h>
#include <stdlib.h>

#include "tools/fabric/verbs/context.h"
#include "tools/fabric/verbs/memory.h"

#define WRITES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
/*
 * Local write is accepted, as by other devices, without effect: a window grants its own program
 * nothing.
 */
#define GRANTS (WRITES | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE)

static struct fab_window *window_of(struct fab_mr *range)
{
	return container_of(range, struct fab_window, range);
}

static void unbind_window(struct fab_window *window)
{
	if (!window->region)
		return;
	window->region->n_windows--;
	window->region = NULL;
	if (window->qp)
		window->qp->n_windows--;
	window->qp = NULL;
	window->range.qpn = 0;
	window->range.access = 0;
	window->range.ibv.length = 0;
}

struct ibv_mw *window_alloc(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct fab_context *context = to_context(pd->context);
	struct fab_window *window;
	int err;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
		errno = EINVAL;
		return NULL;
	}
	window = calloc(1, sizeof(*window));
	if (!window)
		return NULL;
	window->ibv.context = pd->context;
	window->ibv.pd = pd;
	window->ibv.type = type;
	window->range.ibv.pd = pd;
	window->range.is_window = true;
	pthread_mutex_lock(&context->lock);
	err = memory_take_key(context, &window->range);
	if (!err) {
		window->ibv.rkey = window->range.ibv.rkey;
		window->ibv.handle = context_handle(context);
		to_pd(pd)->refs++;
	}
	pthread_mutex_unlock(&context->lock);
	if (!err)
		return &window->ibv;
	free(window);
	errno = -err;
	return NULL;
}

int window_dealloc(struct ibv_mw *mw)
{
	struct fab_window *window = container_of(mw, struct fab_window, ibv);
	struct fab_context *context = to_context(mw->context);

	pthread_mutex_lock(&context->lock);
	unbind_window(window);
	memory_drop_key(context, &window->range);
	to_pd(mw->pd)->refs--;
	context->n_objects--;
	pthread_mutex_unlock(&context->lock);
	free(window);
	return 0;
}

/* --- binding ------------------------------------------------------------- */

/* IBTA vol. 1, 10.6.7.2.4: the region must permit it, and include what the window grants. */
static struct fab_mr *find_region(struct fab_qp *qp, const struct fab_send *send)
{
	struct fab_mr *region = memory_find(context_of(qp), qp->ex.qp_base.pd, send->bind_lkey,
					    send->remote_addr, 0, IBV_ACCESS_MW_BIND);

	if (!region || !memory_contains(region, send->remote_addr, send->bind_bytes) ||
	    send->bind_access & ~(unsigned int)GRANTS)
		return NULL;
	if (send->bind_access & WRITES && !(region->access & IBV_ACCESS_LOCAL_WRITE))
		return NULL;
	return region;
}

static void bind_to(struct fab_window *window, struct fab_qp *qp, const struct fab_send *send,
		    struct fab_mr *region)
{
	struct fab_mr *range = &window->range;

	window->region = region;
	region->n_windows++;
	range->ibv.addr = memory_at(region, send->remote_addr);
	range->ibv.length = send->bind_bytes;
	range->iova = send->bind_access & IBV_ACCESS_ZERO_BASED ? 0 : send->remote_addr;
	range->access = send->bind_access | (region->access & IBV_ACCESS_ON_DEMAND);
	if (window->ibv.type != IBV_MW_TYPE_2)
		return;
	window->qp = qp;
	range->qpn = qp->ex.qp_base.qp_num;
	qp->n_windows++;
}

bool window_bind(struct fab_qp *qp, const struct fab_send *send)
{
	struct fab_mr *range = memory_of_key(context_of(qp), send->rkey), *region = NULL;
	struct fab_window *window;

	if (!range || !range->is_window || !is_same_domain(range->ibv.pd, qp->ex.qp_base.pd))
		return false;
	window = window_of(range);
	/* A window of type 2 must be invalidated first. */
	if (window->ibv.type == IBV_MW_TYPE_2 && (window->region || !send->bind_bytes))
		return false;
	if (send->bind_bytes) {
		region = find_region(qp, send);
		if (!region)
			return false;
	}
	unbind_window(window);
	range->ibv.lkey = send->rkey;
	range->ibv.rkey = send->rkey;
	if (region)
		bind_to(window, qp, send, region);
	return true;
}

bool window_invalidate(struct fab_qp *qp, uint32_t rkey)
{
	struct fab_mr *range = memory_of_key(context_of(qp), rkey);

	if (!range || range->ibv.rkey != rkey || range->qpn != qp->ex.qp_base.qp_num ||
	    !is_same_domain(range->ibv.pd, qp->ex.qp_base.pd))
		return false;
	unbind_window(window_of(range));
	return true;
}

void window_forget(struct fab_qp *qp)
{
	const struct fab_keys *keys = &context_of(qp)->keys;
	uint32_t i;

	for (i = 0; i < keys->n && qp->n_windows; i++)
		if (keys->mr[i] && keys->mr[i]->qpn == qp->ex.qp_base.qp_num)
			unbind_window(window_of(keys->mr[i]));
}
