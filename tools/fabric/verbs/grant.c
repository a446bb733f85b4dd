/* SPDX-License-Identifier: BSD-2-Clause */
/* Grants to peers: see grant.h. */
#include "tools/fabric/verbs/grant.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

#include "tools/fabric/wire/quirks.h"

void grants_open(struct fab_context *context)
{
	const struct fab_device *device = context->device;
	char path[FAB_PATH_BYTES];

	/* A capture has all writes. */
	if (context->capture.is_open || fab_has_quirk(device->page, FAB_QUIRK_NO_DIRECT))
		return;
	fab_folder_grants(&device->folder, device->folder.host, context->slot, path);
	context->granted = calloc(FAB_GRANTS, sizeof(struct fab_qp *));
	if (context->granted && fab_grants_create(path, &context->grants))
		context->grants = NULL;
}

void grants_close(struct fab_context *context)
{
	fab_grants_close(context->grants);
	context->grants = NULL;
	free(context->granted);
	context->granted = NULL;
}

/* --- rings ---------------------------------------------------------------- */

struct taking {
	struct fab_context *context;
	deliver_fn *deliver;
};

static void deliver_taken(void *arg, const struct fab_packet *packet, const void *payload)
{
	const struct taking *taking = arg;

	fab_count_received(taking->context->counters, packet);
	taking->deliver(taking->context, packet, payload);
}

bool grants_take_packets(struct fab_context *context, deliver_fn *deliver)
{
	struct taking taking = { context, deliver };

	return context->grants && fab_rings_take(&context->grants->rings, deliver_taken, &taking);
}

/* The thread takes what a peer has left there meanwhile. */
void grants_set_polled(struct fab_context *context, bool is_polled)
{
	if (context->grants && fab_rings_set_polled(&context->grants->rings, is_polled) &&
	    !is_polled)
		eventfd_write(context->wake_fd, 1);
}

/* --- grants --------------------------------------------------------------- */

/* Return: NULL if it has none. */
static struct fab_grant *grant_of(const struct fab_qp *qp)
{
	const struct fab_context *context = context_of(qp);

	/* The grants of a forked child's queue pairs belong to its parent. */
	if (!context->grants || context->granted[qp->grant] != qp)
		return NULL;
	return &context->grants->grant[qp->grant];
}

/*
 * Permits access where Yama restricts it; elsewhere this has no effect. Not in grants_open():
 * cmportd's filter refuses this call, and cmportd gives no grants.
 */
static void permit_access(void)
{
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

/* Return: NULL if all are given. */
static struct fab_grant *take_grant(struct fab_qp *qp)
{
	struct fab_context *context = context_of(qp);
	unsigned int i;

	for (i = 0; i < FAB_GRANTS; i++) {
		if (context->granted[i])
			continue;
		permit_access();
		context->granted[i] = qp;
		qp->grant = i;
		return &context->grants->grant[i];
	}
	return NULL;
}

static void withdraw_all(struct fab_grant *grant)
{
	memset(grant->region, 0, sizeof(grant->region));
}

static bool is_same(const struct fab_grant *grant, const struct fab_packet *header, uint32_t turn)
{
	return grant->turn == turn && memcmp(&grant->header, header, sizeof(*header)) == 0;
}

void grant_publish(struct fab_qp *qp, const struct fab_packet *packet, const struct fab_mr *mr,
		   uint32_t turn)
{
	unsigned int right = packet->op == FAB_OP_READ ? FAB_RIGHT_READ : FAB_RIGHT_WRITE;
	struct fab_grant *grant = grant_of(qp);
	struct fab_packet header;

	if (!context_of(qp)->grants)
		return;
	fab_grant_header(packet, &header);
	if (grant && is_same(grant, &header, turn) && grant->region[right].rkey == mr->ibv.rkey) {
		fab_grant_free_lock(grant);
		return;
	}
	if (!grant)
		grant = take_grant(qp);
	if (!grant || !fab_grant_lock(grant))
		return;
	if (!is_same(grant, &header, turn))
		withdraw_all(grant);
	memcpy(&grant->header, &header, sizeof(header));
	grant->turn = turn;
	grant->psn = qp->responder.psn;
	grant->region[right] = (struct fab_granted){ .rkey = mr->ibv.rkey,
						     .iova = mr->iova,
						     .bytes = mr->ibv.length,
						     .at = (uintptr_t)mr->ibv.addr };
	fab_grant_unlock(grant);
}

void grant_advance(const struct fab_qp *qp)
{
	struct fab_grant *grant = grant_of(qp);

	if (grant)
		__atomic_store_n(&grant->psn, qp->responder.psn, __ATOMIC_RELEASE);
}

bool grant_is_given(const struct fab_qp *qp)
{
	return grant_of(qp);
}

static void invalidate_grant(struct fab_grant *grant)
{
	bool locked = fab_grant_lock(grant);

	withdraw_all(grant);
	if (locked)
		fab_grant_unlock(grant);
}

void grant_end(struct fab_qp *qp)
{
	struct fab_grant *grant = grant_of(qp);

	if (!grant)
		return;
	invalidate_grant(grant);
	context_of(qp)->granted[qp->grant] = NULL;
}

void grant_end_region(struct fab_context *context, const struct fab_mr *mr)
{
	unsigned int i, right;

	for (i = 0; context->grants && i < FAB_GRANTS; i++)
		for (right = 0; context->granted[i] && right < FAB_RIGHTS; right++)
			if (context->grants->grant[i].region[right].rkey == mr->ibv.rkey)
				invalidate_grant(&context->grants->grant[i]);
}
