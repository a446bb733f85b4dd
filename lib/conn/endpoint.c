/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints: rdma_create_ep() and rdma_destroy_ep() take a synchronous id through the public calls
 * that a program would make.
 */
#include <errno.h>
#include <rdma/rdma_verbs.h>
#include <stdlib.h>
#include <string.h>

#include "lib/api.h"
#include "lib/sync/sync.h"

#define RESOLVE_TIMEOUT_MS 2000

/* Return: 0, or -errno of a public call. */
static int errno_of(int result)
{
	return result ? -errno : 0;
}

/* Copies bytes to *@ret, which is untouched if there are none. Return: 0 or -ENOMEM. */
static int copy_bytes(const void *from, size_t bytes, void **ret)
{
	void *copy;

	if (!from || !bytes)
		return 0;
	copy = malloc(bytes);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, from, bytes);
	*ret = copy;
	return 0;
}

/* The size given with an address must be that of its family. */
static bool is_whole(const struct sockaddr *addr, socklen_t bytes)
{
	return !addr || bytes == addr_bytes(addr);
}

/* Keeps the queue pair attributes for the ids of requests. */
static int make_passive(struct id *id, const struct rdma_addrinfo *info, struct ibv_pd *pd,
			const struct ibv_qp_init_attr *attr)
{
	void *copy = NULL;
	int err;

	if (!is_whole(info->ai_src_addr, info->ai_src_len))
		return -EINVAL;
	err = errno_of(rdma_bind_addr(&id->pub, info->ai_src_addr));
	if (!err)
		err = copy_bytes(attr, sizeof(*attr), &copy);
	if (err)
		return err;
	id->request_qp = copy;
	if (id->request_qp)
		id->request_qp->qp_type = info->ai_qp_type;
	if (pd)
		id->pub.pd = pd;
	return 0;
}

/*
 * A path that came with the address replaces resolution; rdma_set_option() leaves its event in the
 * channel.
 */
static int resolve_endpoint_route(struct id *id, const struct rdma_addrinfo *info)
{
	int err, cancel_state;

	if (!info->ai_route_len)
		return errno_of(rdma_resolve_route(&id->pub, RESOLVE_TIMEOUT_MS));
	err = errno_of(rdma_set_option(&id->pub, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH,
				       info->ai_route, info->ai_route_len));
	if (err)
		return err;
	cancel_state = api_enter();
	err = sync_complete(id, cancel_state);
	api_leave(cancel_state);
	return err;
}

static int make_active(struct id *id, const struct rdma_addrinfo *info, struct ibv_pd *pd,
		       struct ibv_qp_init_attr *attr)
{
	int err;

	if (!is_whole(info->ai_src_addr, info->ai_src_len) ||
	    !is_whole(info->ai_dst_addr, info->ai_dst_len))
		return -EINVAL;
	err = errno_of(rdma_resolve_addr(&id->pub, info->ai_src_addr, info->ai_dst_addr,
					 RESOLVE_TIMEOUT_MS));
	if (!err)
		err = resolve_endpoint_route(id, info);
	if (!err && attr) {
		attr->qp_type = info->ai_qp_type;
		err = errno_of(rdma_create_qp(&id->pub, pd, attr));
	}
	if (!err)
		err = copy_bytes(info->ai_connect, info->ai_connect_len, &id->prefix);
	if (!err && id->prefix)
		id->prefix_bytes = info->ai_connect_len;
	return err;
}

/* It does not use api_return(), which would disable cancellation of the waits in here. */
int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *qp_init_attr)
{
	struct rdma_cm_id *made;
	int err;

	if (!id || !res)
		return api_return(-EINVAL);
	err = errno_of(rdma_create_id(NULL, &made, NULL, res->ai_port_space));
	if (err)
		return api_result(err);
	made->qp_type = res->ai_qp_type;
	if (res->ai_flags & RAI_PASSIVE)
		err = make_passive(id_of(made), res, pd, qp_init_attr);
	else
		err = make_active(id_of(made), res, pd, qp_init_attr);
	if (err)
		rdma_destroy_ep(made);
	else
		*id = made;
	return api_result(err);
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}
