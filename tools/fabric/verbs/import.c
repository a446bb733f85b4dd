/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Import of protection domains and regions by their handles. What is imported stands for the object
 * that was created, in this process; to free or to deregister it ends the import only. A domain is
 * busy while there are imports of it, a region is not: its keys end with it.
 */
#include <errno.h>
#include <stdlib.h>

#include "tools/fabric/verbs/context.h"
#include "tools/fabric/verbs/domain.h"

static struct ibv_pd *find_pd(struct fab_context *context, uint32_t handle)
{
	struct ibv_pd *found = NULL;
	struct fab_pd *pd;

	pthread_mutex_lock(&context->lock);
	list_for_each_entry (pd, &context->pds, known)
		if (pd->ibv.handle == handle)
			found = &pd->root->ibv;
	pthread_mutex_unlock(&context->lock);
	return found;
}

struct ibv_pd *ibv_import_pd(struct ibv_context *verbs, uint32_t pd_handle)
{
	struct ibv_pd *first = find_pd(to_context(verbs), pd_handle), *pd;

	if (!first) {
		errno = EINVAL;
		return NULL;
	}
	pd = domain_new(verbs, first, NULL);
	if (pd)
		pd->handle = pd_handle;
	return pd;
}

/* Leaked if objects still point to it. */
void ibv_unimport_pd(struct ibv_pd *pd)
{
	ibv_dealloc_pd(pd);
}

/* Locked. */
static struct fab_mr *find_mr(struct fab_context *context, struct ibv_pd *pd, uint32_t handle)
{
	struct fab_mr *mr;
	uint32_t i;

	for (i = 0; i < context->keys.n; i++) {
		mr = context->keys.mr[i];
		if (mr && !mr->is_window && mr->ibv.handle == handle &&
		    is_same_domain(mr->ibv.pd, pd))
			return mr;
	}
	return NULL;
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct fab_context *context = to_context(pd->context);
	struct fab_mr *mr = calloc(1, sizeof(*mr)), *first;

	if (!mr)
		return NULL;
	pthread_mutex_lock(&context->lock);
	first = find_mr(context, pd, mr_handle);
	if (first) {
		mr->ibv = first->ibv;
		mr->ibv.addr = NULL;
		mr->ibv.pd = pd;
		mr->is_import = true;
		to_pd(pd)->refs++;
		context->n_objects++;
	}
	pthread_mutex_unlock(&context->lock);
	if (first)
		return &mr->ibv;
	free(mr);
	errno = EINVAL;
	return NULL;
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
	ibv_dereg_mr(mr);
}
