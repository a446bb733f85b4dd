/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random packets of every kind for tshark_judge.py: writes them to a capture file, by turns over
 * IPv4 and IPv6, and prints the fields of each packet in one line, by tshark's names.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/roce/packets.h"
#include "tools/fabric/roce/icrc.h"

#define ETH_BYTES   14
#define IPV4_BYTES  20
#define IPV6_BYTES  40
#define UDP_BYTES   8
#define SOURCE_PORT 0xc123
#define ROUNDS	    8

static const union ibv_gid v4[2] = {
	{ .raw = { [10] = 0xff, 0xff, 192, 0, 2, 1 } },
	{ .raw = { [10] = 0xff, 0xff, 192, 0, 2, 7 } },
};
static const union ibv_gid v6[2] = {
	{ .raw = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 } },
	{ .raw = { 0x20, 0x01, 0x0d, 0xb8, [15] = 2 } },
};

static uint8_t *put_u16(uint8_t *at, size_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return at + 2;
}

static uint8_t *put_ip(uint8_t *at, const struct icrc_flow *flow, size_t n)
{
	bool is_v4 = fab_gid_is_ipv4(flow->dgid);

	memset(at, 0, IPV6_BYTES);
	if (is_v4) {
		at[0] = 0x45;
		put_u16(at + 2, IPV4_BYTES + UDP_BYTES + n);
		put_u16(at + 4, flow->identification);
		at[6] = 0x40;
		at[8] = 64;
		at[9] = 17;
		memcpy(at + 12, flow->sgid->raw + 12, 4);
		memcpy(at + 16, flow->dgid->raw + 12, 4);
		at += IPV4_BYTES;
	} else {
		at[0] = 0x60;
		put_u16(at + 4, UDP_BYTES + n);
		at[6] = 17;
		at[7] = 64;
		memcpy(at + 8, flow->sgid->raw, 16);
		memcpy(at + 24, flow->dgid->raw, 16);
		at += IPV6_BYTES;
	}
	at = put_u16(at, flow->source_port);
	at = put_u16(at, ROCE_UDP_PORT);
	at = put_u16(at, UDP_BYTES + n);
	return put_u16(at, 0);
}

static void write_packet(FILE *out, const struct icrc_flow *flow, const uint8_t *bytes, size_t n)
{
	uint8_t head[ETH_BYTES + IPV6_BYTES + UDP_BYTES] = { [12] = 0x08 };
	uint32_t record[4] = { 0 };
	size_t n_head;

	if (!fab_gid_is_ipv4(flow->dgid)) {
		head[12] = 0x86;
		head[13] = 0xdd;
	}
	n_head = (size_t)(put_ip(head + ETH_BYTES, flow, n) - head);
	record[2] = record[3] = (uint32_t)(n_head + n);
	fwrite(record, sizeof(record), 1, out);
	fwrite(head, n_head, 1, out);
	fwrite(bytes, n, 1, out);
}

static void print_fields(const struct kind *kind, const struct fab_packet *packet)
{
	bool has_reth = packet->op == FAB_OP_READ || packet->op == FAB_OP_ATOMIC_WRITE ||
			(packet->op == FAB_OP_WRITE && kind->flags & FAB_FIRST);
	bool is_swap = packet->op == FAB_OP_COMPARE_SWAP;
	uint8_t imm[4];

	printf("bth.opcode=%u bth.se=%d bth.m=1 bth.padcnt=%u bth.tver=0 bth.p_key=%u "
	       "bth.destqp=%u bth.a=%d bth.psn=%u",
	       kind->opcode, !!(packet->flags & FAB_SOLICITED), -packet->bytes & 3u, packet->pkey,
	       packet->dest_qpn, !!(packet->flags & FAB_ASK_ACK), packet->psn);
	/* Packets whose extended headers tshark does not know. */
	if (packet->service == FAB_SERVICE_XRC || packet->op == FAB_OP_ATOMIC_WRITE ||
	    packet->op == FAB_OP_FLUSH) {
		printf("\n");
		return;
	}
	if (packet->op == FAB_OP_DATAGRAM)
		printf(" deth.q_key=%u deth.srcqp=%u", packet->qkey, packet->src_qpn);
	if (has_reth)
		printf(" reth.va=%" PRIu64 " reth.r_key=%u reth.dmalen=%u", packet->remote_addr,
		       packet->rkey, packet->dma_bytes);
	if (is_swap || packet->op == FAB_OP_FETCH_ADD)
		printf(" reth.va=%" PRIu64 " reth.r_key=%u atomiceth.swapdt=%" PRIu64
		       " atomiceth.cmpdt=%" PRIu64,
		       packet->remote_addr, packet->rkey,
		       is_swap ? packet->swap : packet->compare_add,
		       is_swap ? packet->compare_add : 0);
	if (packet->op == FAB_OP_ACK || packet->op == FAB_OP_NAK ||
	    packet->op == FAB_OP_ATOMIC_RESPONSE ||
	    (packet->op == FAB_OP_READ_RESPONSE && kind->flags))
		printf(" aeth.msn=%u aeth.syndrome=%u", packet->msn,
		       packet->op != FAB_OP_NAK		 ? 31u
		       : packet->syndrome == FAB_NAK_RNR ? 32u + packet->rnr_timer
							 : 96u + packet->syndrome);
	if (packet->op == FAB_OP_ATOMIC_RESPONSE)
		printf(" atomicacketh.origremdt=%" PRIu64, packet->compare_add);
	memcpy(imm, &packet->imm, sizeof(imm));
	if (kind->flags & FAB_IMM)
		printf(" immdt=%u",
		       (unsigned int)imm[0] << 24 | imm[1] << 16 | imm[2] << 8 | imm[3]);
	if (kind->flags & FAB_INVALIDATE)
		printf(" ieth=%u", packet->rkey);
	printf("\n");
}

int main(int argc, char **argv)
{
	static const uint32_t file_head[] = { 0xa1b2c3d4, 4 << 16 | 2, 0, 0, 65535, 1 };
	uint8_t payload[ROCE_PAYLOAD_BYTES_MAX], bytes[ROCE_BYTES_MAX];
	unsigned int i, number = 0;
	FILE *out;

	if (argc != 3 || !(out = fopen(argv[1], "wb"))) {
		fprintf(stderr, "usage: random_packets FILE SEED\n");
		return 2;
	}
	srandom((unsigned int)atoi(argv[2]));
	fwrite(file_head, sizeof(file_head), 1, out);
	for (i = 0; i < ROUNDS * n_kinds; i++, number++) {
		const union ibv_gid *gid = number % 2 ? v6 : v4;
		struct icrc_flow flow = { &gid[0], &gid[1], SOURCE_PORT, (uint16_t)random() };
		const struct kind *kind = &kinds[i / ROUNDS];
		struct fab_packet packet = random_packet(kind, payload);
		size_t n;

		/* Packets to QP0 and QP1 are decoded as MADs. */
		packet.dest_qpn |= 0x100;
		n = roce_write(&packet, payload, bytes);
		icrc_seal(&flow, bytes, n);
		write_packet(out, &flow, bytes, n);
		print_fields(kind, &packet);
	}
	return fclose(out) ? 1 : 0;
}
