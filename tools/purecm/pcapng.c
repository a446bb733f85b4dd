/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The blocks of pcapng (draft-ietf-opsawg-pcapng) that are used: section header, one interface
 * description for each link type, enhanced packets. In host byte order, as allowed.
 */
#include "tools/purecm/pcapng.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/purecm/subcommand.h"
#include "tools/purecm/observation.h"

#define BLOCK_SECTION	  0x0a0d0d0a
#define BLOCK_INTERFACE	  1
#define BLOCK_PACKET	  6
#define BYTE_ORDER_MAGIC  0x1a2b3c4d
#define OPT_END		  0
#define OPT_COMMENT	  1
#define OPT_TSRESOL	  9
#define TSRESOL_NS	  9
#define LINKS_MAX	  8
#define OPTION_BYTES(n)	  (4 + (((n) + 3) & ~3u))
#define BLOCK_FRAME_BYTES 12

struct pcapng {
	const char *name;
	FILE *file;
	int link_type[LINKS_MAX];
	unsigned int n_links;
};

static void put_u16(struct pcapng *pcapng, unsigned int value)
{
	const uint16_t u16 = (uint16_t)value;

	fwrite(&u16, sizeof(u16), 1, pcapng->file);
}

static void put_u32(struct pcapng *pcapng, uint32_t value)
{
	fwrite(&value, sizeof(value), 1, pcapng->file);
}

static void put_padded(struct pcapng *pcapng, const void *bytes, uint32_t n)
{
	static const uint8_t zero[4];

	fwrite(bytes, 1, n, pcapng->file);
	fwrite(zero, 1, -n & 3u, pcapng->file);
}

static void put_option(struct pcapng *pcapng, unsigned int code, const void *value, uint32_t n)
{
	put_u16(pcapng, code);
	put_u16(pcapng, n);
	put_padded(pcapng, value, n);
}

static void put_section(struct pcapng *pcapng)
{
	const uint32_t bytes = BLOCK_FRAME_BYTES + 16;

	put_u32(pcapng, BLOCK_SECTION);
	put_u32(pcapng, bytes);
	put_u32(pcapng, BYTE_ORDER_MAGIC);
	put_u16(pcapng, 1);
	put_u16(pcapng, 0);
	put_u32(pcapng, UINT32_MAX); /* section length unknown */
	put_u32(pcapng, UINT32_MAX);
	put_u32(pcapng, bytes);
}

static void put_interface(struct pcapng *pcapng, int link_type)
{
	const uint32_t bytes = BLOCK_FRAME_BYTES + 8 + OPTION_BYTES(1) + OPTION_BYTES(0);
	const uint8_t tsresol = TSRESOL_NS;

	put_u32(pcapng, BLOCK_INTERFACE);
	put_u32(pcapng, bytes);
	put_u16(pcapng, (unsigned int)link_type);
	put_u16(pcapng, 0);
	put_u32(pcapng, 0); /* no snap length */
	put_option(pcapng, OPT_TSRESOL, &tsresol, 1);
	put_option(pcapng, OPT_END, "", 0);
	put_u32(pcapng, bytes);
}

/* Return: the interface number of a link type, described now if necessary. */
static unsigned int interface_of(struct pcapng *pcapng, int link_type)
{
	unsigned int i;

	for (i = 0; i < pcapng->n_links; i++) {
		if (pcapng->link_type[i] == link_type)
			return i;
	}
	if (i == LINKS_MAX)
		return LINKS_MAX - 1;
	pcapng->link_type[pcapng->n_links++] = link_type;
	put_interface(pcapng, link_type);
	return i;
}

static void put_packet(struct pcapng *pcapng, unsigned int interface, uint64_t time_ns,
		       const uint8_t *frame, uint32_t n, const char *comment)
{
	const uint32_t comment_bytes = comment ? (uint32_t)strlen(comment) : 0;
	uint32_t bytes = BLOCK_FRAME_BYTES + 20 + ((n + 3) & ~3u);

	if (comment)
		bytes += OPTION_BYTES(comment_bytes) + OPTION_BYTES(0);
	put_u32(pcapng, BLOCK_PACKET);
	put_u32(pcapng, bytes);
	put_u32(pcapng, interface);
	put_u32(pcapng, (uint32_t)(time_ns >> 32));
	put_u32(pcapng, (uint32_t)time_ns);
	put_u32(pcapng, n);
	put_u32(pcapng, n);
	put_padded(pcapng, frame, n);
	if (comment) {
		put_option(pcapng, OPT_COMMENT, comment, comment_bytes);
		put_option(pcapng, OPT_END, "", 0);
	}
	put_u32(pcapng, bytes);
}

/* libpcap refuses a file with several link types. tshark decodes InfiniBand in ERF records only. */
static enum link_type wrapping_of(const struct pcapng *pcapng,
				  const struct observation *observation)
{
	if (pcapng->n_links)
		return (enum link_type)pcapng->link_type[0];
	return observation->network == NETWORK_INFINIBAND ? LINK_ERF : LINK_ETHERNET;
}

void pcapng_put(struct pcapng *pcapng, const struct observation *observation, const char *comment)
{
	const uint8_t *frame = observation->frame;
	size_t bytes = observation->frame_bytes;
	int link_type = observation->link_type;
	uint8_t wrapped[WRAP_BYTES_MAX];

	if (!frame) {
		link_type = wrapping_of(pcapng, observation);
		frame = wrapped;
		bytes = wrap_mad(observation, link_type, wrapped);
	}
	put_packet(pcapng, interface_of(pcapng, link_type), observation->time_ns, frame,
		   (uint32_t)bytes, comment);
}

int pcapng_open(const char *path, struct pcapng **ret)
{
	const bool is_stdout = strcmp(path, "-") == 0;
	struct pcapng *pcapng = calloc(1, sizeof(*pcapng));
	int err;

	if (!pcapng)
		return -ENOMEM;
	if (is_stdout && isatty(STDOUT_FILENO)) {
		complain("a capture is nothing for a terminal; name a file or a pipe");
		free(pcapng);
		return -EINVAL;
	}
	pcapng->name = is_stdout ? "standard output" : path;
	pcapng->file = is_stdout ? stdout : command_create(path);
	if (!pcapng->file) {
		err = -errno;
		complain("%s cannot be written: %s", path, strerror(errno));
		free(pcapng);
		return err;
	}
	put_section(pcapng);
	*ret = pcapng;
	return 0;
}

int pcapng_close(struct pcapng *pcapng)
{
	bool is_broken;

	if (!pcapng)
		return 0;
	is_broken = fflush(pcapng->file) || ferror(pcapng->file);
	if (is_broken)
		complain("%s: not all of it could be written: %s", pcapng->name, strerror(errno));
	if (pcapng->file != stdout)
		fclose(pcapng->file);
	free(pcapng);
	return is_broken ? -EIO : 0;
}

/* --- headers of a MAD, which frame.c decodes ------------------------------- */

#define MAC_BYTES    12
#define IP4_BYTES    20
#define UDP_BYTES    8
#define LRH_BYTES    8
#define GRH_BYTES    40
#define ERF_BYTES    16
#define ERF_VARYING  4 /* length of records */
#define ERF_TYPE_ETH 2
#define ERF_TYPE_IB  21
#define BTH_BYTES    12
#define DETH_BYTES   8
#define ICRC_BYTES   4
#define ROCE_BYTES   (UDP_BYTES + BTH_BYTES + DETH_BYTES + MAD_BYTES + ICRC_BYTES)
#define IB_BYTES     (BTH_BYTES + DETH_BYTES + MAD_BYTES + ICRC_BYTES)
#define PROTO_UDP    17
#define PROTO_IB     27
#define HOP_LIMIT    64
#define UD_SEND_ONLY 0x64
#define QPN_GSI	     1
#define LNH_LOCAL    2
#define LNH_GLOBAL   3
#define SPORT	     0xc000 /* of RoCE v2: any port from here on */

static const uint8_t qkey_gsi[4] = { 0x80, 0x01 };

static uint8_t *put_bytes(uint8_t *at, const void *bytes, size_t n)
{
	memcpy(at, bytes, n);
	return at + n;
}

static uint8_t *put16(uint8_t *at, unsigned int value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return at + 2;
}

static uint8_t *put24(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 16);
	return put16(at + 1, value & 0xffff);
}

uint16_t check_sum(const uint8_t *bytes, size_t n)
{
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i < n; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static uint8_t *put_ip4(uint8_t *at, const struct observation *observation)
{
	uint8_t *ip = at;

	memset(ip, 0, IP4_BYTES);
	ip[0] = 0x45;
	put16(ip + 2, IP4_BYTES + ROCE_BYTES);
	ip[6] = 0x40; /* don't fragment */
	ip[8] = HOP_LIMIT;
	ip[9] = PROTO_UDP;
	put_bytes(ip + 12, observation->src.raw + 12, 4);
	put_bytes(ip + 16, observation->dst.raw + 12, 4);
	put16(ip + 10, check_sum(ip, IP4_BYTES));
	return ip + IP4_BYTES;
}

/* A GRH has the same layout. */
static uint8_t *put_ip6(uint8_t *at, const struct observation *observation, unsigned int bytes,
			uint8_t next_header)
{
	const uint8_t head[8] = { 0x60, [4] = (uint8_t)(bytes >> 8), (uint8_t)bytes, next_header,
				  HOP_LIMIT };

	at = put_bytes(at, head, sizeof(head));
	at = put_bytes(at, observation->src.raw, 16);
	return put_bytes(at, observation->dst.raw, 16);
}

/* Ethernet, IP and UDP; RoCE v2 allows a zero UDP checksum. */
static uint8_t *put_roce(uint8_t *at, const struct observation *observation)
{
	const bool ip4 = observation_is_ip4(&observation->src) &&
			 observation_is_ip4(&observation->dst);

	memset(at, 0, MAC_BYTES);
	at = put16(at + MAC_BYTES, ip4 ? 0x0800 : 0x86dd);
	at = ip4 ? put_ip4(at, observation) : put_ip6(at, observation, ROCE_BYTES, PROTO_UDP);
	at = put16(at, SPORT);
	at = put16(at, ROCE_UDP_PORT);
	at = put16(at, ROCE_BYTES);
	return put16(at, 0);
}

/* An end without a LID has a GID and needs a GRH, which has a GID made of the LID of the other. */
static uint8_t *put_infiniband(uint8_t *at, const struct observation *observation)
{
	const uint16_t dlid = observation_lid(&observation->dst);
	const uint16_t slid = observation_lid(&observation->src);
	const bool is_local = dlid && slid;

	at[0] = 0;
	at[1] = is_local ? LNH_LOCAL : LNH_GLOBAL;
	at = put16(at + 2, dlid);
	at = put16(at, (LRH_BYTES + (is_local ? 0 : GRH_BYTES) + IB_BYTES) / 4);
	at = put16(at, slid);
	return is_local ? at : put_ip6(at, observation, IB_BYTES, PROTO_IB);
}

static uint8_t *put_bth(uint8_t *at, const struct observation *observation)
{
	memset(at, 0, BTH_BYTES);
	at[0] = UD_SEND_ONLY;
	put16(at + 2, observation->pkey);
	put24(at + 5, QPN_GSI);
	at = put_bytes(at + BTH_BYTES, qkey_gsi, sizeof(qkey_gsi));
	*at++ = 0;
	return put24(at, observation->src_qpn);
}

/* @bytes: of the whole record */
static void put_erf(uint8_t *erf, const struct observation *observation, uint8_t type, size_t bytes)
{
	const uint64_t s = observation->time_ns / CLOCK_NS_PER_S;
	const uint64_t ns = observation->time_ns % CLOCK_NS_PER_S;
	const uint64_t time = s << 32 | (ns << 32) / CLOCK_NS_PER_S;
	unsigned int i;

	memset(erf, 0, ERF_BYTES);
	for (i = 0; i < 8; i++)
		erf[i] = (uint8_t)(time >> 8 * i);
	erf[8] = type;
	erf[9] = ERF_VARYING;
	put16(erf + 10, (unsigned int)bytes);
	put16(erf + 14, (unsigned int)bytes - ERF_BYTES);
}

size_t wrap_mad(const struct observation *observation, enum link_type link_type,
		uint8_t ret_packet[WRAP_BYTES_MAX])
{
	const bool is_erf = link_type == LINK_ERF;
	const bool is_infiniband = is_erf && observation->network == NETWORK_INFINIBAND;
	uint8_t *at = ret_packet + (is_erf ? ERF_BYTES : 0);

	if (is_infiniband)
		at = put_infiniband(at, observation);
	else
		at = put_roce(is_erf ? put16(at, 0) : at, observation);
	at = put_bth(at, observation);
	at = put_bytes(at, observation->mad, MAD_BYTES);
	memset(at, 0, ICRC_BYTES);
	at += ICRC_BYTES;
	if (is_erf)
		put_erf(ret_packet, observation, is_infiniband ? ERF_TYPE_IB : ERF_TYPE_ETH,
			(size_t)(at - ret_packet));
	return (size_t)(at - ret_packet);
}
