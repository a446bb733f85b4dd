/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses, see address.h, and address handles. */
#include "tools/fabric/verbs/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "tools/fabric/verbs/carrier.h"
#include "tools/fabric/verbs/context.h"
#include "tools/fabric/wire/quirks.h"
#include "tools/fabric/wire/route.h"

#define IPV4_AT 20 /* in a GRH */

int address_check(struct fab_context *context, const struct ibv_ah_attr *attr,
		  union ibv_gid *ret_sgid)
{
	const struct fab_page *page = context->device->page;
	struct fab_gid sgid;

	if (attr->port_num == 0 || attr->port_num > page->n_ports)
		return EINVAL;
	if (!attr->is_global && fab_needs_grh(page, attr->port_num))
		return EINVAL;
	if (attr->is_global && attr->grh.sgid_index >= FAB_GIDS)
		return EINVAL;
	if (!fab_page_gid(page, attr->port_num, attr->is_global ? attr->grh.sgid_index : 0, &sgid))
		return ENODATA; /* as Linux, for any device */
	*ret_sgid = sgid.gid;
	return 0;
}

static void count_held(struct fab_device *device, const struct fab_held *held, int by)
{
	uint32_t *count = &device->held[held->port_num][held->index];
	bool was_held = *count;

	if (held->port_num == 0)
		return;
	*count += (uint32_t)by;
	if (was_held != !!*count)
		fab_page_hold_gid(device->page_fd, held->port_num, held->index, *count);
}

void address_hold(struct fab_device *device, struct fab_held *held, const struct ibv_ah_attr *attr)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct fab_held next = { .port_num = 0 };

	if (attr && attr->is_global && attr->port_num <= FAB_PORTS &&
	    attr->grh.sgid_index < FAB_GIDS)
		next = (struct fab_held){ attr->port_num, attr->grh.sgid_index };
	pthread_mutex_lock(&lock);
	count_held(device, &next, 1);
	count_held(device, held, -1);
	*held = next;
	pthread_mutex_unlock(&lock);
}

static bool is_multicast(const struct ibv_ah_attr *attr)
{
	return attr->is_global ? fab_gid_is_group(&attr->grh.dgid) : attr->dlid >= FAB_LID_MCAST;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct fab_context *context = to_context(pd->context);
	struct fab_ah *ah = calloc(1, sizeof(*ah));
	int err;

	if (!ah)
		return NULL;
	context_command(pd->context);
	ah->attr = *attr;
	err = address_check(context, attr, &ah->sgid);
	if (!err && !is_multicast(attr))
		err = context->carrier->find(context, attr, &ah->to);
	if (err) {
		free(ah);
		errno = err;
		return NULL;
	}
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	pthread_mutex_lock(&context->lock);
	ah->ibv.handle = context_handle(context);
	to_pd(pd)->refs++;
	pthread_mutex_unlock(&context->lock);
	return &ah->ibv;
}

int ibv_destroy_ah(struct ibv_ah *ibv)
{
	struct fab_context *context = to_context(ibv->context);

	pthread_mutex_lock(&context->lock);
	to_pd(ibv->pd)->refs--;
	context->n_objects--;
	pthread_mutex_unlock(&context->lock);
	free(to_ah(ibv));
	return 0;
}

/* RoCE v2, A17.4.5: an IPv4 header is in the second half of the 40 bytes of a GRH. */
static void gids_of(const struct ibv_grh *grh, union ibv_gid *ret_from, union ibv_gid *ret_to)
{
	const uint8_t *v4 = (const uint8_t *)grh + IPV4_AT;

	if (grh->version_tclass_flow) {
		*ret_from = grh->sgid;
		*ret_to = grh->dgid;
		return;
	}
	*ret_from = fab_gid_of_ipv4(v4 + 12);
	*ret_to = fab_gid_of_ipv4(v4 + 16);
}

/*
 * Find the source GID of the response: the GID that the packet was sent to, or, if that is a group,
 * our first GID of the same IP version. Return: its index, or -1.
 */
static int find_receiver(const struct fab_page *page, uint8_t port_num, const union ibv_gid *to)
{
	struct fab_gid entry;
	uint32_t i;

	if (!fab_gid_is_group(to))
		return fab_page_find_gid(page, port_num, to);
	for (i = 0; i < FAB_GIDS; i++)
		if (fab_page_gid(page, port_num, i, &entry) &&
		    fab_gid_is_ipv4(&entry.gid) == fab_gid_is_ipv4(to))
			return (int)i;
	return -1;
}

int ibv_init_ah_from_wc(struct ibv_context *verbs, uint8_t port_num, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *ret)
{
	const struct fab_page *page = to_context(verbs)->device->page;
	union ibv_gid from, to;
	int index;

	memset(ret, 0, sizeof(*ret));
	ret->dlid = wc->slid;
	ret->sl = wc->sl;
	ret->src_path_bits = wc->dlid_path_bits;
	ret->port_num = port_num;
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	gids_of(grh, &from, &to);
	index = find_receiver(page, port_num, &to);
	if (index < 0) {
		errno = EINVAL;
		return -1;
	}
	ret->is_global = 1;
	ret->grh.dgid = from;
	ret->grh.sgid_index = (uint8_t)index;
	if (!grh->version_tclass_flow) {
		ret->grh.traffic_class = ((const uint8_t *)grh)[IPV4_AT + 1];
		ret->grh.hop_limit = ((const uint8_t *)grh)[IPV4_AT + 8];
	} else {
		ret->grh.hop_limit = 0xff;
		ret->grh.flow_label = ntohl(grh->version_tclass_flow) & 0xfffff;
		ret->grh.traffic_class = ntohl(grh->version_tclass_flow) >> 20 & 0xff;
	}
	return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port_num)
{
	struct ibv_ah_attr attr;

	return ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr)
		       ? NULL
		       : ibv_create_ah(pd, &attr);
}
