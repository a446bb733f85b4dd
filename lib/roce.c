/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCE paths: see roce.h.
 */
#include "lib/roce.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/sa.h>
#include <string.h>

#define PACKET_LIFE_TIME      18   /* 4.096 us * 2^18, about a second: the kernel's value */
#define PACKET_LIFE_TIME_MASK 0x3f /* the field's six bits */
#define HEADERS_BYTES	      96   /* what RoCE may need of an interface's MTU */
#define FLOW_LABEL_MASK	      0xfffff
#define EXACTLY		      2 /* path record selector */
#define PREFERENCE_DEFAULT    0x2b

static int mtu_of(unsigned int iface_mtu, uint8_t *ret)
{
	static const struct {
		unsigned int bytes;
		enum ibv_mtu mtu;
	} mtus[] = {
		{4096,	IBV_MTU_4096},
		{ 2048, IBV_MTU_2048},
		{ 1024, IBV_MTU_1024},
		{ 512,  IBV_MTU_512 },
		{ 256,  IBV_MTU_256 },
	};
	size_t i;

	for (i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++) {
		if (iface_mtu >= mtus[i].bytes + HEADERS_BYTES) {
			*ret = (uint8_t)mtus[i].mtu;
			return 0;
		}
	}
	return -EINVAL;
}

/* Spreads connections over equal paths, and is the same each time for the same ports. */
static uint32_t flow_label_of(const struct id *id)
{
	const union addr *src = &id->claim.local;
	const union addr *dst = &id->claim.peer;

	if (src->sa.sa_family == AF_INET6 && src->in6.sin6_flowinfo)
		return be32toh(src->in6.sin6_flowinfo) & FLOW_LABEL_MASK;
	return (addr_port(src) * 31u + addr_port(dst)) & FLOW_LABEL_MASK;
}

int roce_make_path(struct id *id)
{
	struct net_iface iface;
	int err = net_iface_get(id->path.route.ifindex, &iface);

	if (!err)
		err = mtu_of(iface.mtu, &id->path.mtu);
	if (err)
		return err;
	id->path.packet_life_time = PACKET_LIFE_TIME;
	if (id->option.has_ack_timeout && id->option.ack_timeout)
		id->path.packet_life_time = (uint8_t)(id->option.ack_timeout - 1);
	id->path.flow_label = flow_label_of(id);
	id->path.sl = 0;
	return 0;
}

void roce_path_record(const struct id *id, struct ibv_sa_path_rec *ret)
{
	struct mad_gid dgid = addr_to_gid(&id->claim.peer);

	memset(ret, 0, sizeof(*ret));
	memcpy(&ret->dgid, &dgid, sizeof(dgid));
	ret->sgid = id->path.gid.gid;
	ret->flow_label = htobe32(id->path.flow_label);
	ret->hop_limit = id->path.route.hop_limit;
	ret->traffic_class = id->option.tos;
	ret->reversible = 1;
	ret->numb_path = 1;
	ret->pkey = htobe16(0xffff);
	ret->sl = id->path.sl;
	ret->mtu_selector = EXACTLY;
	ret->mtu = id->path.mtu;
	ret->rate_selector = EXACTLY;
	ret->rate = 0;
	ret->packet_life_time_selector = EXACTLY;
	ret->packet_life_time = id->path.packet_life_time & PACKET_LIFE_TIME_MASK;
	ret->preference = PREFERENCE_DEFAULT;
}
