/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PathRecord, IBTA vol. 1, 15.2.5.16: there is one path between any two ports of a partition, with
 * the best values. Paths to other subnets lead through the router.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <string.h>

#include "tools/fabric/host/sa.h"
#include "tools/fabric/host/smi.h"
#include "tools/fabric/wire/route.h"

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

#define EXACTLY		 (UMAD_SA_SELECTOR_EXACTLY << UMAD_SA_SELECTOR_SHIFT)
#define HOP_LIMIT_BEYOND 64 /* 0 within this subnet */

static bool find_port(const struct host *host, bool has_gid, const union ibv_gid *gid, bool has_lid,
		      uint16_t lid, struct fab_port *ret)
{
	if (has_gid && !sa_find_gid(host, gid, ret))
		return false;
	if (!has_lid)
		return has_gid;
	/* GID and LID must be of the same port. */
	if (has_gid)
		return lid >> ret->lmc == ret->lid >> ret->lmc;
	return sa_find_lid(host, lid, ret);
}

static bool path_suits(const struct ibv_path_record *record, uint64_t mask)
{
	if ((mask & HAS_MTU) == HAS_MTU && !sa_selects(record->mtu, SA_MTU))
		return false;
	if ((mask & HAS_RATE) == HAS_RATE && !sa_selects(record->rate, SA_RATE))
		return false;
	return (mask & HAS_LIFE_TIME) != HAS_LIFE_TIME ||
	       sa_selects(record->packetlifetime, SA_LIFE_TIME);
}

static bool is_full_member(const struct fab_port *port, uint16_t pkey)
{
	int i;

	for (i = 0; i < FAB_PKEYS; i++)
		if (port->pkey[i] == (pkey | SA_FULL_MEMBER))
			return true;
	return false;
}

/* Both must be in the partition, at least one as a full member. IBTA vol. 1, 10.9.3. */
static bool may_talk(const struct fab_port *a, const struct fab_port *b, uint16_t pkey)
{
	return sa_has_pkey(a, pkey) && sa_has_pkey(b, pkey) &&
	       (is_full_member(a, pkey) || is_full_member(b, pkey));
}

static void put_way(const struct fab_port *from, const struct fab_port *to, uint64_t mask,
		    struct ibv_path_record *ret)
{
	bool beyond = to->subnet != from->subnet;

	ret->sgid = from->gid[0].gid;
	ret->dgid = to->gid[0].gid;
	ret->slid = mask & HAS_SLID ? ret->slid : htons(from->lid);
	ret->dlid = mask & HAS_DLID ? ret->dlid : htons(beyond ? FAB_LID_ROUTER : to->lid);
	ret->flowlabel_hoplimit = htonl(beyond ? HOP_LIMIT_BEYOND : 0);
}

/* Return: whether a port matches a requested end, which may be any port of our subnet. */
static bool is_end(const struct fab_port *port, bool has_gid, const union ibv_gid *gid,
		   bool has_lid, uint16_t lid)
{
	return (!has_gid || memcmp(&port->gid[0].gid, gid, sizeof(*gid)) == 0) &&
	       (!has_lid || lid >> port->lmc == port->lid >> port->lmc);
}

static void add_path(const struct fab_port *from, const struct fab_port *to,
		     const struct umad_sa_packet *request, struct sa_answer *answer)
{
	uint64_t mask = be64toh(request->comp_mask);
	struct ibv_path_record record;
	uint16_t pkey;

	memcpy(&record, request->data, sizeof(record));
	pkey = mask & HAS_PKEY ? ntohs(record.pkey) : FAB_PKEY_DEFAULT;
	if (!may_talk(from, to, pkey) || !path_suits(&record, mask))
		return;
	put_way(from, to, mask, &record);
	record.reversible_numpath = IBV_PATH_RECORD_REVERSIBLE;
	record.pkey = htons(pkey);
	record.qosclass_sl = 0;
	record.mtu = EXACTLY | SA_MTU;
	record.rate = EXACTLY | SA_RATE;
	record.packetlifetime = EXACTLY | SA_LIFE_TIME;
	sa_answer_add(answer, &record);
}

static unsigned int one_path(struct host *host, const struct umad_sa_packet *request,
			     const struct ibv_path_record *record, uint64_t mask,
			     struct sa_answer *answer)
{
	struct fab_port from, to;

	if (find_port(host, mask & HAS_SGID, &record->sgid, mask & HAS_SLID, ntohs(record->slid),
		      &from) &&
	    find_port(host, mask & HAS_DGID, &record->dgid, mask & HAS_DLID, ntohs(record->dlid),
		      &to) &&
	    from.subnet == host->page->port[0].subnet)
		add_path(&from, &to, request, answer);
	return UMAD_SA_STATUS_SUCCESS;
}

unsigned int sa_path(struct host *host, const struct umad_sa_packet *request,
		     struct sa_answer *answer)
{
	uint64_t mask = be64toh(request->comp_mask);
	static struct smi_subnet subnet; /* large */
	struct ibv_path_record asked;
	const struct fab_port *from, *to;
	unsigned int i, j;

	memcpy(&asked, request->data, sizeof(asked));
	if (mask & (HAS_SGID | HAS_SLID) && mask & (HAS_DGID | HAS_DLID))
		return one_path(host, request, &asked, mask, answer);
	/* IBTA vol. 1, 15.2.5.16 requires a source; OpenSM's tables do not. */
	if (request->mad_hdr.method != UMAD_SA_METHOD_GET_TABLE)
		return UMAD_SA_STATUS_INSUF_COMPS;
	smi_read_subnet(host, host->page->port[0].subnet, &subnet);
	for (i = 0; i < subnet.n_ends; i++)
		for (j = 0; j < subnet.n_ends; j++) {
			from = &subnet.end[i].port;
			to = &subnet.end[j].port;
			if (is_end(from, mask & HAS_SGID, &asked.sgid, mask & HAS_SLID,
				   ntohs(asked.slid)) &&
			    is_end(to, mask & HAS_DGID, &asked.dgid, mask & HAS_DLID,
				   ntohs(asked.dlid)))
				add_path(from, to, request, answer);
		}
	return UMAD_SA_STATUS_SUCCESS;
}
