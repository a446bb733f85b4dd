/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains; thread domains, and the parent domains that combine both. An object of a
 * parent domain belongs to its protection domain. With a thread domain, the program promises to use
 * its objects from one thread at a time; this device makes no use of that.
 */
#include "tools/fabric/verbs/domain.h"

#include <errno.h>
#include <stdlib.h>

#include "tools/fabric/verbs/context.h"

#define KNOWN_PARENT_MASK \
	(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)

struct fab_td {
	struct ibv_td ibv; /* first */
	unsigned int refs;
};

static struct fab_td *to_td(struct ibv_td *td)
{
	return td ? container_of(td, struct fab_td, ibv) : NULL;
}

/* @root: NULL for a protection domain. */
struct ibv_pd *domain_new(struct ibv_context *verbs, struct ibv_pd *root, struct fab_td *td)
{
	struct fab_context *context = to_context(verbs);
	struct fab_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return NULL;
	pthread_mutex_lock(&context->lock);
	pd->ibv.context = verbs;
	pd->ibv.handle = context_handle(context);
	pd->root = root ? to_pd(root)->root : pd;
	pd->td = td;
	if (root)
		pd->root->refs++;
	if (td)
		td->refs++;
	list_append(&context->pds, &pd->known);
	pthread_mutex_unlock(&context->lock);
	return &pd->ibv;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *verbs)
{
	return domain_new(verbs, NULL, NULL);
}

/* The program's own memory for queues is an offer, which a device need not accept. */
struct ibv_pd *domain_alloc_parent(struct ibv_context *verbs,
				   struct ibv_parent_domain_init_attr *attr)
{
	if (!attr->pd || attr->comp_mask & ~(uint32_t)KNOWN_PARENT_MASK) {
		errno = attr->pd ? EOPNOTSUPP : EINVAL;
		return NULL;
	}
	if (IS_FOREIGN(attr->pd, verbs) || IS_FOREIGN(attr->td, verbs)) {
		errno = ENOENT;
		return NULL;
	}
	return domain_new(verbs, attr->pd, to_td(attr->td));
}

int ibv_dealloc_pd(struct ibv_pd *ibv)
{
	struct fab_context *context = to_context(ibv->context);
	struct fab_pd *pd = to_pd(ibv);

	pthread_mutex_lock(&context->lock);
	if (pd->refs) {
		pthread_mutex_unlock(&context->lock);
		return command_return(EBUSY);
	}
	if (pd->root != pd)
		pd->root->refs--;
	if (pd->td)
		pd->td->refs--;
	list_remove(&pd->known);
	context->n_objects--;
	pthread_mutex_unlock(&context->lock);
	free(pd);
	return 0;
}

struct ibv_td *domain_alloc_td(struct ibv_context *verbs, struct ibv_td_init_attr *attr)
{
	struct fab_context *context = to_context(verbs);
	struct fab_td *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ibv.context = verbs;
	pthread_mutex_lock(&context->lock);
	context->n_objects++;
	pthread_mutex_unlock(&context->lock);
	return &td->ibv;
}

int domain_dealloc_td(struct ibv_td *ibv)
{
	struct fab_context *context = to_context(ibv->context);
	struct fab_td *td = to_td(ibv);

	pthread_mutex_lock(&context->lock);
	if (td->refs) {
		pthread_mutex_unlock(&context->lock);
		return command_return(EBUSY);
	}
	context->n_objects--;
	pthread_mutex_unlock(&context->lock);
	free(td);
	return 0;
}
