/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PathRecord, IBTA vol. 1, 15.2.5.16: between any two ports there is one, and it is good.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <string.h>

#include "tools/fabric/host/sa.h"

enum {
	HAS_DGID = 1 << 2,
	HAS_SGID = 1 << 3,
	HAS_DLID = 1 << 4,
	HAS_SLID = 1 << 5,
	HAS_PKEY = 1 << 13,
	HAS_MTU = 3 << 16,
	HAS_RATE = 3 << 18,
	HAS_LIFE_TIME = 3 << 20,
};

#define EXACTLY	    (UMAD_SA_SELECTOR_EXACTLY << UMAD_SA_SELECTOR_SHIFT)
#define HOP_LIMIT   0 /* not beyond this subnet */
#define FULL_MEMBER 0x8000

static bool find(const struct host *host, bool has_gid, const union ibv_gid *gid, bool has_lid,
		 uint16_t lid, struct sa_port *ret)
{
	if (has_gid && !sa_find_gid(host, gid, ret))
		return false;
	if (!has_lid)
		return has_gid;
	/* By both, it must be the same port. */
	if (has_gid)
		return lid >> ret->lmc == ret->lid >> ret->lmc;
	return sa_find_lid(host, lid, ret);
}

static bool suits(const struct ibv_path_record *record, uint64_t mask)
{
	if (mask & HAS_PKEY && ((ntohs(record->pkey) ^ SA_PKEY) & ~FULL_MEMBER))
		return false;
	if ((mask & HAS_MTU) == HAS_MTU && !sa_selects(record->mtu, SA_MTU))
		return false;
	if ((mask & HAS_RATE) == HAS_RATE && !sa_selects(record->rate, SA_RATE))
		return false;
	return (mask & HAS_LIFE_TIME) != HAS_LIFE_TIME ||
	       sa_selects(record->packetlifetime, SA_LIFE_TIME);
}

unsigned int sa_path(struct host *host, struct umad_sa_packet *packet)
{
	uint64_t mask = be64toh(packet->comp_mask);
	struct ibv_path_record record;
	struct sa_port from, to;

	memcpy(&record, packet->data, sizeof(record));
	/* IBTA vol. 1, 15.2.5.16: a source must be named. */
	if (!(mask & (HAS_SGID | HAS_SLID)) || !(mask & (HAS_DGID | HAS_DLID)))
		return UMAD_SA_STATUS_INSUF_COMPS;
	if (!find(host, mask & HAS_SGID, &record.sgid, mask & HAS_SLID, ntohs(record.slid),
		  &from) ||
	    !find(host, mask & HAS_DGID, &record.dgid, mask & HAS_DLID, ntohs(record.dlid), &to) ||
	    !suits(&record, mask))
		return UMAD_SA_STATUS_NO_RECORDS;
	record.sgid = from.gid;
	record.dgid = to.gid;
	record.slid = mask & HAS_SLID ? record.slid : htons(from.lid);
	record.dlid = mask & HAS_DLID ? record.dlid : htons(to.lid);
	record.flowlabel_hoplimit = htonl(HOP_LIMIT);
	record.reversible_numpath = IBV_PATH_RECORD_REVERSIBLE;
	record.pkey = htons(SA_PKEY);
	record.qosclass_sl = 0;
	record.mtu = EXACTLY | SA_MTU;
	record.rate = EXACTLY | SA_RATE;
	record.packetlifetime = EXACTLY | SA_LIFE_TIME;
	memset(packet->data, 0, sizeof(packet->data));
	memcpy(packet->data, &record, sizeof(record));
	return UMAD_SA_STATUS_SUCCESS;
}
