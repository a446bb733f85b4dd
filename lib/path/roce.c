/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCE paths: see roce.h.
 */
#include "lib/path/roce.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "lib/device/kernel.h"
#include "lib/path/infiniband.h"

#define SIX_BITS	   0x3f /* a path record's MTU, rate and packet life time: no selector */
#define SL_MASK		   0xf
#define HOP_LIMIT_BITS	   8
#define HEADERS_BYTES	   96 /* what RoCE may need of an interface's MTU */
#define FLOW_LABEL_MASK	   0xfffff
#define EXACTLY		   2 /* path record selector */
#define PREFERENCE_DEFAULT 0x2b
#define PKEY_DEFAULT	   0xffff

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
	id->path.packet_life_time = kernel_running_life_time();
	if (id->option.has_ack_timeout && id->option.ack_timeout)
		id->path.packet_life_time = (uint8_t)(id->option.ack_timeout - 1);
	id->path.flow_label = flow_label_of(id);
	id->path.sl = 0;
	id->path.traffic_class = id->option.tos;
	id->path.pkey = PKEY_DEFAULT;
	return 0;
}

void roce_take_path(struct id *id, const struct ibv_path_record *given)
{
	uint32_t flow_and_hops = be32toh(given->flowlabel_hoplimit);
	struct id_path *path = &id->path;

	path->mtu = given->mtu & SIX_BITS;
	path->packet_life_time = given->packetlifetime & SIX_BITS;
	path->sl = (uint8_t)(be16toh(given->qosclass_sl) & SL_MASK);
	path->traffic_class = given->tclass;
	path->flow_label = flow_and_hops >> HOP_LIMIT_BITS & FLOW_LABEL_MASK;
	path->rate = given->rate & SIX_BITS;
	path->pkey = be16toh(given->pkey);
	path->is_given = true;
	path->given = (struct ibv_sa_path_rec){
		.dgid = given->dgid,
		.sgid = given->sgid,
		.hop_limit = (uint8_t)flow_and_hops,
		.reversible = given->reversible_numpath >> 7,
	};
	if (!infiniband_is(path))
		return;
	path->dlid = be16toh(given->dlid);
	path->slid = be16toh(given->slid);
	path->given.dlid = given->dlid;
	path->given.slid = given->slid;
}

/* What a path of our own making says where a given one says what it likes. */
static struct ibv_sa_path_rec own_path(const struct id *id)
{
	struct mad_gid dgid = addr_to_gid(&id->claim.peer);
	struct ibv_sa_path_rec rec = {
		.sgid = id->path.gid.gid,
		.hop_limit = id->path.route.hop_limit,
		.reversible = 1,
	};

	memcpy(&rec.dgid, &dgid, sizeof(dgid));
	return rec;
}

void roce_path_record(const struct id *id, struct ibv_sa_path_rec *ret)
{
	*ret = id->path.is_given ? id->path.given : own_path(id);
	ret->flow_label = htobe32(id->path.flow_label);
	ret->traffic_class = id->path.traffic_class;
	ret->numb_path = 1;
	ret->pkey = htobe16(id->path.pkey);
	ret->sl = id->path.sl;
	ret->mtu_selector = EXACTLY;
	ret->mtu = id->path.mtu;
	ret->rate_selector = EXACTLY;
	ret->rate = id->path.rate;
	ret->packet_life_time_selector = EXACTLY;
	ret->packet_life_time = id->path.packet_life_time & SIX_BITS;
	ret->preference = PREFERENCE_DEFAULT;
}
