/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names and services to what rdma_create_ep() takes, and rdma_freeaddrinfo(). The C library
 * resolves names; this converts its first result to queue pair types and port spaces.
 */
#include "lib/names/addrinfo.h"

#include <errno.h>
#include <infiniband/ib.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/api.h"
#include "lib/device/device.h"
#include "lib/names/sa_service.h"
#include "mad/cma_hdr.h"

#define PKEY_DEFAULT 0xffff

/* IBTA vol. 1, annex A11: a service id of the IP port spaces consists of port space and port. */
#define SID_PS_MASK   0xffffffffffff0000ULL
#define SID_PORT_MASK 0x000000000000ffffULL

/* Return: true if the node is the text of a GID. */
static bool wants_gid(const struct rdma_addrinfo *hints)
{
	int flags = RAI_FAMILY | RAI_NUMERICHOST;

	return hints && (hints->ai_flags & flags) == flags && hints->ai_family == AF_IB;
}

static int socktype_of(int qp_type)
{
	switch (qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return SOCK_STREAM;
	case IBV_QPT_UD:
		return SOCK_DGRAM;
	}
	return 0;
}

static int protocol_of(int port_space, int socktype)
{
	switch (port_space) {
	case RDMA_PS_TCP:
		return IPPROTO_TCP;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		return IPPROTO_UDP;
	case RDMA_PS_IB:
		if (socktype == SOCK_STREAM)
			return IPPROTO_TCP;
		return socktype == SOCK_DGRAM ? IPPROTO_UDP : 0;
	}
	return 0;
}

static struct addrinfo to_libc(const struct rdma_addrinfo *hints)
{
	struct addrinfo ai = { .ai_family = hints->ai_family };

	if (hints->ai_flags & RAI_PASSIVE)
		ai.ai_flags |= AI_PASSIVE;
	if (hints->ai_flags & RAI_NUMERICHOST)
		ai.ai_flags |= AI_NUMERICHOST;
	if (hints->ai_family == AF_IB)
		ai.ai_family = wants_gid(hints) ? AF_INET6 : AF_UNSPEC;
	ai.ai_socktype = socktype_of(hints->ai_qp_type);
	ai.ai_protocol = protocol_of(hints->ai_port_space, ai.ai_socktype);
	return ai;
}

static int qp_type_of(const struct addrinfo *ai, const struct rdma_addrinfo *hints)
{
	if (hints && hints->ai_qp_type)
		return hints->ai_qp_type;
	if (ai->ai_socktype == SOCK_STREAM)
		return IBV_QPT_RC;
	return ai->ai_socktype == SOCK_DGRAM ? IBV_QPT_UD : 0;
}

static int port_space_of(const struct addrinfo *ai, const struct rdma_addrinfo *hints)
{
	if (hints && hints->ai_port_space)
		return hints->ai_port_space;
	if (ai->ai_protocol == IPPROTO_TCP)
		return RDMA_PS_TCP;
	return ai->ai_protocol == IPPROTO_UDP ? RDMA_PS_UDP : 0;
}

/* Copies an address to *@ret, its size to *@ret_bytes. Return: 0 or -ENOMEM. */
static int copy_addr(const void *from, socklen_t bytes, struct sockaddr **ret, socklen_t *ret_bytes)
{
	struct sockaddr *copy = malloc(bytes);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, from, bytes);
	*ret = copy;
	*ret_bytes = bytes;
	return 0;
}

struct sockaddr_ib addrinfo_gid_address(const union ibv_gid *gid, int port_space, uint16_t port)
{
	struct sockaddr_ib sib = { .sib_family = AF_IB };

	sib.sib_pkey = htons(PKEY_DEFAULT);
	memcpy(&sib.sib_addr, gid, sizeof(sib.sib_addr));
	sib.sib_sid = htobe64(cma_service_id((uint16_t)port_space, port));
	sib.sib_sid_mask = htobe64((port_space ? SID_PS_MASK : 0) | (port ? SID_PORT_MASK : 0));
	return sib;
}

static int take_address(struct rdma_addrinfo *rai, const struct addrinfo *ai, bool is_gid)
{
	const struct sockaddr_in6 *in6 = (const void *)ai->ai_addr;
	bool passive = rai->ai_flags & RAI_PASSIVE;
	struct sockaddr **addr = passive ? &rai->ai_src_addr : &rai->ai_dst_addr;
	socklen_t *bytes = passive ? &rai->ai_src_len : &rai->ai_dst_len;
	struct sockaddr_ib sib;
	union ibv_gid gid;

	if (!is_gid)
		return copy_addr(ai->ai_addr, ai->ai_addrlen, addr, bytes);
	memcpy(&gid, &in6->sin6_addr, sizeof(gid));
	sib = addrinfo_gid_address(&gid, rai->ai_port_space, ntohs(in6->sin6_port));
	sib.sib_flowinfo = in6->sin6_flowinfo;
	sib.sib_scope_id = in6->sin6_scope_id;
	return copy_addr(&sib, sizeof(sib), addr, bytes);
}

static int take_name(struct rdma_addrinfo *rai, const char *name)
{
	bool passive = rai->ai_flags & RAI_PASSIVE;
	char **copy = passive ? &rai->ai_src_canonname : &rai->ai_dst_canonname;

	*copy = name ? strdup(name) : NULL;
	return name && !*copy ? -ENOMEM : 0;
}

static int from_libc(struct rdma_addrinfo *rai, const struct addrinfo *ai,
		     const struct rdma_addrinfo *hints)
{
	bool gid = wants_gid(hints);
	int rc;

	rai->ai_flags = hints ? hints->ai_flags & RAI_PASSIVE : 0;
	rai->ai_family = gid ? AF_IB : ai->ai_family;
	rai->ai_qp_type = qp_type_of(ai, hints);
	rai->ai_port_space = port_space_of(ai, hints);
	rc = take_address(rai, ai, gid);
	return rc ? rc : take_name(rai, ai->ai_canonname);
}

static void free_entry(void *rai)
{
	rdma_freeaddrinfo(rai);
}

/* The thread may be cancelled here, as with stock. */
static int call_libc(const char *node, const char *service, const struct addrinfo *hints,
		     int cancel_state, struct rdma_addrinfo *rai, struct addrinfo **ret)
{
	int eai;

	pthread_cleanup_push(free_entry, rai);
	api_leave(cancel_state);
	eai = getaddrinfo(node, service, hints, ret);
	api_enter();
	pthread_cleanup_pop(0);
	return eai;
}

/* Return: 0, -errno, or the EAI_ code in *@eai. */
static int ask_libc(const char *node, const char *service, const struct rdma_addrinfo *hints,
		    int cancel_state, struct rdma_addrinfo *rai, int *eai)
{
	struct addrinfo libc_hints;
	struct addrinfo *list;
	int rc;

	if (hints)
		libc_hints = to_libc(hints);
	*eai = call_libc(node, service, hints ? &libc_hints : NULL, cancel_state, rai, &list);
	if (*eai)
		return 0;
	rc = from_libc(rai, list, hints);
	freeaddrinfo(list);
	return rc;
}

/* Without a name, returns the addresses of the hints. */
static int take_hints(struct rdma_addrinfo *rai, const struct rdma_addrinfo *hints)
{
	rai->ai_flags = hints->ai_flags;
	rai->ai_family = hints->ai_family;
	rai->ai_qp_type = hints->ai_qp_type;
	rai->ai_port_space = hints->ai_port_space;
	if (!hints->ai_dst_len)
		return 0;
	return copy_addr(hints->ai_dst_addr, hints->ai_dst_len, &rai->ai_dst_addr,
			 &rai->ai_dst_len);
}

static int resolve_name(const char *node, const char *service, const struct rdma_addrinfo *hints,
			int cancel_state, struct rdma_addrinfo *rai, int *eai)
{
	int rc;

	if (node || service)
		rc = ask_libc(node, service, hints, cancel_state, rai, eai);
	else
		rc = take_hints(rai, hints);
	if (rc || *eai || !hints || !hints->ai_src_len || rai->ai_src_len)
		return rc;
	return copy_addr(hints->ai_src_addr, hints->ai_src_len, &rai->ai_src_addr,
			 &rai->ai_src_len);
}

/* The thread may be cancelled here, as with stock. */
static void add_route(struct rdma_addrinfo **list, int flags, int cancel_state)
{
	pthread_cleanup_push(free_entry, *list);
	addrinfo_add_route(list, flags, cancel_state);
	pthread_cleanup_pop(0);
}

/* The subnet administrator knows nothing of names of hosts. */
static int find_service(const char *node, const char *service, int flags, int cancel_state,
			struct rdma_addrinfo **ret)
{
	if (node || flags & RAI_DNS)
		return -EOPNOTSUPP;
	return service ? service_find(service, cancel_state, ret) : -EINVAL;
}

int addrinfo_find(const char *node, const char *service, const struct rdma_addrinfo *hints,
		  int cancel_state, struct rdma_addrinfo **ret, int *ret_eai)
{
	struct rdma_addrinfo *rai;
	int rc = !node && !service && !hints ? -EINVAL : 0;

	*ret_eai = 0;
	/* Addresses are useless without a device, so fail early. */
	if (!rc)
		rc = device_list_check();
	if (rc)
		return rc;
	if (hints && hints->ai_flags & RAI_SA)
		return find_service(node, service, hints->ai_flags, cancel_state, ret);
	rai = calloc(1, sizeof(*rai));
	if (!rai)
		return -ENOMEM;
	rc = resolve_name(node, service, hints, cancel_state, rai, ret_eai);
	if (rc || *ret_eai) {
		rdma_freeaddrinfo(rai);
		return rc;
	}
	if (!(rai->ai_flags & RAI_PASSIVE))
		add_route(&rai, hints ? hints->ai_flags : 0, cancel_state);
	*ret = rai;
	return 0;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	struct rdma_addrinfo *next;

	for (; res; res = next) {
		next = res->ai_next;
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
	}
}
