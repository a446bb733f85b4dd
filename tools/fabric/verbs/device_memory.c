/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device memory: programs access it by copying, and by keys of regions that begin at address 0.
 * Each context has its own.
 */
#include "tools/fabric/verbs/device_memory.h"

#include <errno.h>
#include <stdlib.h>

#include "tools/fabric/verbs/context.h"
#include "tools/fabric/verbs/memory.h"

#define LOG_ALIGN_MAX 12 /* a page */

struct fab_dm {
	struct ibv_dm ibv; /* first */
	size_t bytes;
	unsigned int refs; /* regions, and imports */
	char *memory;
	struct fab_dm *root; /* of an import: the one that was allocated, else itself */
	struct list known;   /* in context->dms, unless it is an import */
};

static struct fab_dm *to_dm(struct ibv_dm *dm)
{
	return container_of(dm, struct fab_dm, ibv);
}

static bool is_inside(const struct fab_dm *dm, uint64_t offset, size_t bytes)
{
	return bytes <= dm->bytes && offset <= dm->bytes - bytes;
}

/* Copies are in words of 4 bytes. */
static bool may_copy(const struct fab_dm *dm, uint64_t offset, size_t bytes)
{
	return is_inside(dm, offset, bytes) && offset % 4 == 0 && bytes % 4 == 0;
}

static int copy_to(struct ibv_dm *ibv, uint64_t offset, const void *from, size_t bytes)
{
	if (!may_copy(to_dm(ibv), offset, bytes))
		return command_return(EINVAL);
	memory_store_at(to_dm(ibv)->memory + offset, from, bytes);
	return 0;
}

static int copy_from(void *to, struct ibv_dm *ibv, uint64_t offset, size_t bytes)
{
	if (!may_copy(to_dm(ibv), offset, bytes))
		return command_return(EINVAL);
	memcpy(to, to_dm(ibv)->memory + offset, bytes);
	return 0;
}

/* Locked. Takes free device memory. */
static bool take_share(struct fab_context *context, size_t bytes)
{
	if (bytes > FAB_DM_MAX - context->dm_bytes)
		return false;
	context->dm_bytes += bytes;
	return true;
}

struct ibv_dm *device_memory_alloc(struct ibv_context *verbs, struct ibv_alloc_dm_attr *attr)
{
	struct fab_context *context = to_context(verbs);
	struct fab_dm *dm;
	bool has_share;

	if (attr->comp_mask || !attr->length || attr->length > FAB_DM_MAX ||
	    attr->log_align_req > LOG_ALIGN_MAX) {
		errno = EINVAL;
		return NULL;
	}
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;
	dm->bytes = attr->length;
	dm->root = dm;
	list_init(&dm->known);
	dm->ibv = (struct ibv_dm){ .context = verbs,
				   .memcpy_to_dm = copy_to,
				   .memcpy_from_dm = copy_from };
	pthread_mutex_lock(&context->lock);
	has_share = take_share(context, dm->bytes);
	if (has_share) {
		dm->ibv.handle = context_handle(context);
		list_append(&context->dms, &dm->known);
	}
	pthread_mutex_unlock(&context->lock);
	if (has_share && !posix_memalign((void **)&dm->memory, 1u << LOG_ALIGN_MAX, dm->bytes)) {
		memset(dm->memory, 0, dm->bytes);
		return &dm->ibv;
	}
	if (has_share)
		device_memory_free(&dm->ibv);
	else
		free(dm);
	errno = ENOMEM;
	return NULL;
}

int device_memory_free(struct ibv_dm *ibv)
{
	struct fab_context *context = to_context(ibv->context);
	struct fab_dm *dm = to_dm(ibv);

	if (dm->root != dm) {
		ibv_unimport_dm(ibv);
		return 0;
	}
	pthread_mutex_lock(&context->lock);
	if (dm->refs) {
		pthread_mutex_unlock(&context->lock);
		return command_return(EBUSY);
	}
	context->dm_bytes -= dm->bytes;
	context->n_objects--;
	list_remove(&dm->known);
	pthread_mutex_unlock(&context->lock);
	free(dm->memory);
	free(dm);
	return 0;
}

struct ibv_mr *device_memory_reg(struct ibv_pd *pd, struct ibv_dm *ibv, uint64_t offset,
				 size_t bytes, unsigned int access)
{
	struct fab_dm *dm = to_dm(ibv);
	struct ibv_mr *mr;

	if (IS_FOREIGN(ibv, pd->context)) {
		errno = ENOENT;
		return NULL;
	}
	if (!(access & IBV_ACCESS_ZERO_BASED) || !is_inside(dm, offset, bytes)) {
		errno = EINVAL;
		return NULL;
	}
	mr = ibv_reg_mr_iova2(pd, dm->memory + offset, bytes, 0, access);
	if (mr)
		memory_use(mr, &dm->root->refs);
	return mr;
}

struct ibv_dm *ibv_import_dm(struct ibv_context *verbs, uint32_t dm_handle)
{
	struct fab_context *context = to_context(verbs);
	struct fab_dm *imported = calloc(1, sizeof(*imported)), *dm, *found = NULL;

	if (!imported)
		return NULL;
	pthread_mutex_lock(&context->lock);
	list_for_each_entry (dm, &context->dms, known)
		if (dm->ibv.handle == dm_handle)
			found = dm;
	if (found) {
		*imported = *found;
		imported->refs = 0;
		list_init(&imported->known);
		found->refs++;
		context->n_objects++;
	}
	pthread_mutex_unlock(&context->lock);
	if (found)
		return &imported->ibv;
	free(imported);
	errno = EINVAL;
	return NULL;
}

void ibv_unimport_dm(struct ibv_dm *ibv)
{
	struct fab_context *context = to_context(ibv->context);

	pthread_mutex_lock(&context->lock);
	to_dm(ibv)->root->refs--;
	context->n_objects--;
	pthread_mutex_unlock(&context->lock);
	free(to_dm(ibv));
}
