/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: devices and protection domains are the same objects wherever they appear. */
#include "steps.h"

static void devices_are_the_ids_contexts(struct scene *s)
{
	struct rdma_cm_id *one = open_id(s, "one", RDMA_PS_TCP);
	struct rdma_cm_id *two = open_id(s, "two", RDMA_PS_UDP);
	struct ibv_context **list, **again;
	int n = -1;

	DO(rdma_bind_addr(one, at(&s->self, 0)));
	DO(rdma_bind_addr(two, at(&s->self, 0)));
	list = rdma_get_devices(&n);
	again = rdma_get_devices(NULL);
	SAY("devices %d ends with NULL %d first has a name %d", n, list && !list[n],
	    list && list[0] && *ibv_get_device_name(list[0]->device));
	SAY("ids share a context %d a protection domain %d", one->verbs == two->verbs,
	    one->pd == two->pd);
	SAY("the list has it too %d again %d", list && list[0] == one->verbs,
	    again && again[0] == one->verbs);
	rdma_free_devices(again);
	rdma_free_devices(list);
	SAY("context stays usable %d", !ibv_query_gid(one->verbs, 1, 0, &(union ibv_gid){ 0 }));
	close_id(two);
	close_id(one);
}

static void context_outlives_every_id(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);
	struct ibv_context *verbs;

	DO(rdma_bind_addr(id, at(&s->self, 0)));
	verbs = id->verbs;
	close_id(id);
	SAY("usable without ids %d", !ibv_query_gid(verbs, 1, 0, &(union ibv_gid){ 0 }));
	id = open_id(s, "id", RDMA_PS_TCP);
	DO(rdma_bind_addr(id, at(&s->self, 0)));
	SAY("same context %d", id->verbs == verbs);
	close_id(id);
}

static void list_keeps_the_protection_domain(struct scene *s)
{
	struct ibv_context **list = rdma_get_devices(NULL);
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);
	struct ibv_pd *pd;

	DO(rdma_bind_addr(id, at(&s->self, 0)));
	pd = id->pd;
	close_id(id);
	id = open_id(s, "id", RDMA_PS_TCP);
	DO(rdma_bind_addr(id, at(&s->self, 0)));
	SAY("same protection domain %d", id->pd == pd);
	close_id(id);
	rdma_free_devices(list);
}

const struct scenario identity_scenarios[] = {
	LOCAL("identity-devices", devices_are_the_ids_contexts, 0,
	      "rdma_get_devices gives the contexts that ids have"),
	LOCAL("identity-context", context_outlives_every_id, 0,
	      "a context stays open when its last id is gone"),
	LOCAL("identity-pd", list_keeps_the_protection_domain, 0,
	      "the default protection domain lives as long as the device list"),
	LAST_SCENARIO,
};
