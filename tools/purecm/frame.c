/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decoding by layer: each function takes its header off the rest of the packet and passes on the
 * remainder. Numbers are those of IEEE 802.3, RFC 791, RFC 8200, IBTA vol. 1 (chapter 7, annexes
 * A16 and A17), and of the ERF format.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/purecm/observation.h"

#define MAC_BYTES	 12
#define VLAN_BYTES	 4
#define IP6_BYTES	 40
#define UDP_BYTES	 8
#define LRH_BYTES	 8
#define GRH_BYTES	 40
#define BTH_BYTES	 12
#define DETH_BYTES	 8
#define IMM_BYTES	 4
#define SLL_BYTES	 16
#define SLL2_BYTES	 20
#define ERF_BYTES	 16
#define ERF_EXT_BYTES	 8
#define ERF_ETH_PAD	 2

#define PROTO_UDP	 17
#define UD_SEND_ONLY	 0x64
#define UD_SEND_ONLY_IMM 0x65
#define QPN_GSI		 1
#define QKEY_GSI	 0x80010000
#define LNH_LOCAL	 2
#define LNH_GLOBAL	 3

#define ERF_TYPE_ETH	 2
#define ERF_TYPE_IB	 21
#define ERF_TYPE_IB_LINK 25
#define ERF_TYPE_MORE	 0x80 /* extension headers follow */

/* The rest of a packet. */
struct rest {
	const uint8_t *at;
	size_t bytes;
	struct observation *ret;
};

static uint16_t get_u16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t get_u24(const uint8_t *at)
{
	return (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
}

static uint32_t get_u32(const uint8_t *at)
{
	return (uint32_t)get_u16(at) << 16 | get_u16(at + 2);
}

/* Takes a header off. Return: the header; NULL if the packet is shorter. */
static const uint8_t *take_header(struct rest *rest, size_t bytes)
{
	const uint8_t *header = rest->at;

	if (rest->bytes < bytes)
		return NULL;
	rest->at += bytes;
	rest->bytes -= bytes;
	return header;
}

/* --- InfiniBand ---------------------------------------------------------- */

static int take_mad(struct rest rest)
{
	if (rest.bytes < 2)
		return 0;
	if (rest.at[1] != MAD_CLASS_CM && rest.at[1] != MAD_CLASS_SA)
		return 0;
	if (rest.bytes < MAD_BYTES)
		return -EMSGSIZE;
	memcpy(rest.ret->mad, rest.at, MAD_BYTES);
	return 1;
}

static int take_bth(struct rest rest)
{
	const uint8_t *bth = take_header(&rest, BTH_BYTES);
	const uint8_t *deth = take_header(&rest, DETH_BYTES);

	if (!bth || !deth || (bth[0] != UD_SEND_ONLY && bth[0] != UD_SEND_ONLY_IMM))
		return 0;
	/*
	 * A sender with its own queue pair gets the response there; the Q_Key is QP1's in any case.
	 */
	if (get_u24(bth + 5) != QPN_GSI && get_u32(deth) != QKEY_GSI)
		return 0;
	if (bth[0] == UD_SEND_ONLY_IMM && !take_header(&rest, IMM_BYTES))
		return 0;
	rest.ret->pkey = get_u16(bth + 2);
	rest.ret->src_qpn = get_u24(deth + 5);
	return take_mad(rest);
}

static int take_grh(struct rest rest)
{
	const uint8_t *grh = take_header(&rest, GRH_BYTES);

	if (!grh)
		return 0;
	memcpy(rest.ret->src.raw, grh + 8, 16);
	memcpy(rest.ret->dst.raw, grh + 24, 16);
	return take_bth(rest);
}

static int take_lrh(struct rest rest)
{
	const uint8_t *lrh = take_header(&rest, LRH_BYTES);

	if (!lrh)
		return 0;
	rest.ret->network = NETWORK_INFINIBAND;
	rest.ret->dst = observation_gid_of_lid(get_u16(lrh + 2));
	rest.ret->src = observation_gid_of_lid(get_u16(lrh + 6));
	if ((lrh[1] & 3) == LNH_LOCAL)
		return take_bth(rest);
	return (lrh[1] & 3) == LNH_GLOBAL ? take_grh(rest) : 0;
}

/* --- IP ------------------------------------------------------------------ */

static int take_udp(struct rest rest)
{
	const uint8_t *udp = take_header(&rest, UDP_BYTES);

	rest.ret->network = NETWORK_ROCE_V2;
	return udp && get_u16(udp + 2) == ROCE_UDP_PORT ? take_bth(rest) : 0;
}

static int take_ip4(struct rest rest)
{
	size_t bytes = rest.bytes ? (size_t)(rest.at[0] & 15) * 4 : 0;
	const uint8_t *ip = bytes >= 20 ? take_header(&rest, bytes) : NULL;

	/* A fragment other than the first has no UDP header, and RoCE does not fragment. */
	if (!ip || ip[9] != PROTO_UDP || (get_u16(ip + 6) & 0x1fff))
		return 0;
	rest.ret->src = observation_gid_of_ip4(ip + 12);
	rest.ret->dst = observation_gid_of_ip4(ip + 16);
	return take_udp(rest);
}

static int take_ip6(struct rest rest)
{
	const uint8_t *ip = take_header(&rest, IP6_BYTES);

	if (!ip || ip[6] != PROTO_UDP)
		return 0;
	memcpy(rest.ret->src.raw, ip + 8, 16);
	memcpy(rest.ret->dst.raw, ip + 24, 16);
	return take_udp(rest);
}

static int take_raw_ip(struct rest rest)
{
	if (!rest.bytes)
		return 0;
	switch (rest.at[0] >> 4) {
	case 4:
		return take_ip4(rest);
	case 6:
		return take_ip6(rest);
	}
	return 0;
}

/* --- links --------------------------------------------------------------- */

static int take_ether_type(struct rest rest, uint16_t type)
{
	const uint8_t *vlan;

	switch (type) {
	case 0x0800:
		return take_ip4(rest);
	case 0x86dd:
		return take_ip6(rest);
	case 0x8915:
		rest.ret->network = NETWORK_ROCE_V1;
		return take_grh(rest);
	case 0x8100:
	case 0x88a8:
	case 0x9100:
		vlan = take_header(&rest, VLAN_BYTES);
		return vlan ? take_ether_type(rest, get_u16(vlan + 2)) : 0;
	}
	return 0;
}

static int take_ethernet(struct rest rest)
{
	const uint8_t *type;

	if (!take_header(&rest, MAC_BYTES))
		return 0;
	type = take_header(&rest, 2);
	return type ? take_ether_type(rest, get_u16(type)) : 0;
}

static int take_sll(struct rest rest)
{
	const uint8_t *sll = take_header(&rest, SLL_BYTES);

	return sll ? take_ether_type(rest, get_u16(sll + 14)) : 0;
}

static int take_sll2(struct rest rest)
{
	const uint8_t *sll = take_header(&rest, SLL2_BYTES);

	return sll ? take_ether_type(rest, get_u16(sll)) : 0;
}

static int take_erf(struct rest rest)
{
	const uint8_t *erf = take_header(&rest, ERF_BYTES);
	const uint8_t *ext;
	uint8_t more;

	if (!erf)
		return 0;
	for (more = erf[8]; more & ERF_TYPE_MORE; more = ext[0]) {
		ext = take_header(&rest, ERF_EXT_BYTES);
		if (!ext)
			return 0;
	}
	switch (erf[8] & ~ERF_TYPE_MORE) {
	case ERF_TYPE_ETH:
		return take_header(&rest, ERF_ETH_PAD) ? take_ethernet(rest) : 0;
	case ERF_TYPE_IB:
	case ERF_TYPE_IB_LINK:
		return take_lrh(rest);
	}
	return 0;
}

/* clang-format off */
static const struct link {
	enum link_type type;
	int (*take)(struct rest rest);
} links[] = {
	{ LINK_ETHERNET, take_ethernet },
	{ LINK_RAW_IP_DLT, take_raw_ip },
	{ LINK_RAW_IP, take_raw_ip },
	{ LINK_SLL, take_sll },
	{ LINK_ERF, take_erf },
	{ LINK_INFINIBAND, take_lrh },
	{ LINK_SLL2, take_sll2 },
};
/* clang-format on */

static const struct link *find_link(int link_type)
{
	size_t i;

	for (i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		if ((int)links[i].type == link_type)
			return &links[i];
	}
	return NULL;
}

bool frame_link_is_known(int link_type)
{
	return find_link(link_type);
}

int frame_find_mad(int link_type, const uint8_t *frame, size_t bytes, struct observation *ret)
{
	const struct link *link = find_link(link_type);

	return link ? link->take((struct rest){ frame, bytes, ret }) : 0;
}

/* --- the class, the sender and the receiver of a MAD ---------------------- */

#define MAD_CLASS_AT  1
#define LID_AT	      14
#define IPV4_AT	      12
#define MARK_OF_A_LID 0xfc /* 0xfc00::/8 is not assigned */

static const uint8_t ipv4_prefix[IPV4_AT] = { [10] = 0xff, 0xff };
static const uint8_t lid_prefix[LID_AT] = { MARK_OF_A_LID, 'L', 'I', 'D' };

bool observation_is_cm(const struct observation *observation)
{
	return observation->mad[MAD_CLASS_AT] == MAD_CLASS_CM;
}

bool gid_is_zero(const void *gid)
{
	static const struct mad_gid zero;

	return gid_is_same(gid, &zero);
}

bool gid_is_same(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct mad_gid)) == 0;
}

bool observation_decode(const struct observation *observation, struct cm_msg *ret)
{
	return observation_is_cm(observation) && !cm_msg_decode(observation->mad, MAD_BYTES, ret);
}

struct mad_gid observation_gid_of_ip4(const uint8_t ip[4])
{
	struct mad_gid gid;

	memcpy(gid.raw, ipv4_prefix, sizeof(ipv4_prefix));
	memcpy(gid.raw + IPV4_AT, ip, 4);
	return gid;
}

bool observation_is_ip4(const struct mad_gid *gid)
{
	return memcmp(gid->raw, ipv4_prefix, sizeof(ipv4_prefix)) == 0;
}

struct mad_gid observation_gid_of_lid(uint16_t lid)
{
	struct mad_gid gid = { .raw = { 0 } };

	memcpy(gid.raw, lid_prefix, sizeof(lid_prefix));
	gid.raw[LID_AT] = (uint8_t)(lid >> 8);
	gid.raw[LID_AT + 1] = (uint8_t)lid;
	return gid;
}

uint16_t observation_lid(const struct mad_gid *gid)
{
	if (memcmp(gid->raw, lid_prefix, sizeof(lid_prefix)) != 0)
		return 0;
	return (uint16_t)(gid->raw[LID_AT] << 8 | gid->raw[LID_AT + 1]);
}

int observation_parse_gid(const char *text, struct mad_gid *ret)
{
	unsigned int lid;
	uint8_t ip[4];

	if (sscanf(text, "lid %u", &lid) == 1 && lid && lid <= UINT16_MAX)
		*ret = observation_gid_of_lid((uint16_t)lid);
	else if (inet_pton(AF_INET, text, ip) == 1)
		*ret = observation_gid_of_ip4(ip);
	else if (inet_pton(AF_INET6, text, ret->raw) != 1)
		return -EINVAL;
	return 0;
}

const char *who_str(const struct mad_gid *gid, char buf[WHO_BYTES])
{
	if (observation_lid(gid))
		snprintf(buf, WHO_BYTES, "lid %u", observation_lid(gid));
	else if (observation_is_ip4(gid))
		inet_ntop(AF_INET, gid->raw + IPV4_AT, buf, WHO_BYTES);
	else
		inet_ntop(AF_INET6, gid->raw, buf, WHO_BYTES);
	return buf;
}
