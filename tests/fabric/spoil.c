/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * To be preloaded: clears the port space of an id that a program destroys, so that a program that
 * uses it afterwards prints another result.
 */
#include <dlfcn.h>
#include <rdma/rdma_cma.h>

__attribute__((visibility("default"))) int rdma_destroy_id(struct rdma_cm_id *id)
{
	int (*destroy)(struct rdma_cm_id * id);

	*(void **)&destroy = dlsym(RTLD_NEXT, "rdma_destroy_id");
	id->ps = 0;
	return destroy(id);
}
