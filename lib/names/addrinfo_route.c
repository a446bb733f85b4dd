/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adds to an address of rdma_getaddrinfo() what ibacm knows: the source, path records, and with
 * these an entry for native InfiniBand in front. See addrinfo.h.
 */
#include "lib/names/addrinfo.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "lib/net/addr.h"
#include "lib/path/ibacm.h"
#include "mad/cma_hdr.h"

#define FLOW_SHIFT 8 /* the hop limit is below */

/* --- the entry for InfiniBand ---------------------------------------------- */

static uint16_t port_of(const struct sockaddr *sa)
{
	union addr addr;

	return addr_copy(sa, &addr) ? 0 : addr_port(&addr);
}

/* Stores in *@ret an address with the path's partition and flow. Return: false if out of memory. */
static bool add_gid(const union ibv_gid *gid, const struct ibv_path_record *path,
		    const struct rdma_addrinfo *ip, const struct sockaddr *port_from,
		    struct sockaddr **ret, socklen_t *ret_bytes)
{
	struct sockaddr_ib *sib = malloc(sizeof(*sib));

	if (!sib)
		return false;
	*sib = addrinfo_gid_address(gid, ip->ai_port_space, port_of(port_from));
	sib->sib_pkey = path->pkey;
	sib->sib_flowinfo = htobe32(be32toh(path->flowlabel_hoplimit) >> FLOW_SHIFT);
	*ret = (struct sockaddr *)sib;
	*ret_bytes = sizeof(*sib);
	return true;
}

/*
 * A request to an IP address begins its private data with the CMA header, which an AF_IB request
 * would lack. The source port is filled in when the request is sent.
 */
static bool add_header(const struct rdma_addrinfo *ip, struct rdma_addrinfo *ret)
{
	struct cma_hdr hdr = { .ip_version = 0 };
	union addr src, dst;

	if (!addr_copy(ip->ai_dst_addr, &dst))
		hdr.ip_version = addr_pack(&dst, hdr.dst_addr);
	if (!addr_copy(ip->ai_src_addr, &src) && src.sa.sa_family == dst.sa.sa_family)
		addr_pack(&src, hdr.src_addr);
	ret->ai_connect = calloc(1, CMA_HDR_BYTES);
	if (!ret->ai_connect)
		return false;
	ret->ai_connect_len = CMA_HDR_BYTES;
	wire_encode(&cma_hdr_layout, &hdr, ret->ai_connect);
	return true;
}

static bool add_route(const struct ibacm_answer *answer, struct rdma_addrinfo *ret)
{
	size_t bytes = answer->n_paths * sizeof(answer->path[0]);

	ret->ai_route = malloc(bytes);
	if (!ret->ai_route)
		return false;
	memcpy(ret->ai_route, answer->path, bytes);
	ret->ai_route_len = bytes;
	return true;
}

static bool is_ip(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET || sa->sa_family == AF_INET6;
}

/* Return: the entry, or NULL when out of memory. */
static struct rdma_addrinfo *infiniband_entry(const struct rdma_addrinfo *from,
					      const struct ibacm_answer *answer)
{
	const struct ibv_path_record *path = &answer->path[0].path;
	struct rdma_addrinfo *ib = calloc(1, sizeof(*ib));
	bool complete;

	if (!ib)
		return NULL;
	ib->ai_flags = from->ai_flags;
	ib->ai_family = AF_IB;
	ib->ai_qp_type = from->ai_qp_type;
	ib->ai_port_space = from->ai_port_space;
	complete = add_gid(&path->sgid, path, from, from->ai_src_addr, &ib->ai_src_addr,
			   &ib->ai_src_len) &&
		   add_gid(&path->dgid, path, from, from->ai_dst_addr, &ib->ai_dst_addr,
			   &ib->ai_dst_len) &&
		   add_route(answer, ib) && (!is_ip(from->ai_dst_addr) || add_header(from, ib));
	if (complete)
		return ib;
	rdma_freeaddrinfo(ib);
	return NULL;
}

/* The CMA header has both IP addresses, so it needs the source. */
static bool wants_infiniband(const struct rdma_addrinfo *rai, int flags)
{
	if (flags & ADDRINFO_ROUTE_ONLY || !rai->ai_dst_addr)
		return false;
	return rai->ai_src_addr || !is_ip(rai->ai_dst_addr);
}

/* --- queries -------------------------------------------------------------- */

static void take_source(struct rdma_addrinfo *rai, const struct ibacm_answer *answer)
{
	socklen_t bytes = addr_bytes(&answer->src.sa);

	if (!bytes || rai->ai_src_addr)
		return;
	rai->ai_src_addr = malloc(bytes);
	if (!rai->ai_src_addr)
		return;
	memcpy(rai->ai_src_addr, &answer->src, bytes);
	rai->ai_src_len = bytes;
}

void addrinfo_add_route(struct rdma_addrinfo **list, int flags, int cancel_state)
{
	struct rdma_addrinfo *rai = *list;
	struct ibacm_question question = {
		.src = rai->ai_src_addr,
		.dst = rai->ai_dst_addr,
		.no_delay = flags & (RAI_NUMERICHOST | RAI_NOROUTE),
		.may_cancel = cancel_state == PTHREAD_CANCEL_ENABLE,
	};
	struct rdma_addrinfo *ib;
	struct ibacm_answer answer;

	if (ibacm_ask(ibacm_of_host(), &question, &answer))
		return;
	take_source(rai, &answer);
	if (!answer.n_paths || !add_route(&answer, rai) || !wants_infiniband(rai, flags))
		return;
	ib = infiniband_entry(rai, &answer);
	if (!ib)
		return;
	ib->ai_next = rai;
	*list = ib;
}
