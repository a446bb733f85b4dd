/* SPDX-License-Identifier: BSD-2-Clause */
/* Random packets: see packets.h. */
#include <stdbool.h>
#include <stdlib.h>

#include "tests/roce/packets.h"

#define FIRST FAB_FIRST
#define LAST  FAB_LAST
#define ONLY  (FAB_FIRST | FAB_LAST)
#define IMM   FAB_IMM
#define INV   FAB_INVALIDATE
#define RC    FAB_SERVICE_RC
#define UC    FAB_SERVICE_UC
#define UD    FAB_SERVICE_UD
#define XRC   FAB_SERVICE_XRC

/* IBTA vol. 1, table 38, written independently of codec.c. */
const struct kind kinds[] = {
	{ "RC SEND First", 0x00, RC, FAB_OP_SEND, FIRST, true },
	{ "RC SEND Middle", 0x01, RC, FAB_OP_SEND, 0, true },
	{ "RC SEND Last", 0x02, RC, FAB_OP_SEND, LAST, true },
	{ "RC SEND Last Imm", 0x03, RC, FAB_OP_SEND, LAST | IMM, true },
	{ "RC SEND Only", 0x04, RC, FAB_OP_SEND, ONLY, true },
	{ "RC SEND Only Imm", 0x05, RC, FAB_OP_SEND, ONLY | IMM, true },
	{ "RC WRITE First", 0x06, RC, FAB_OP_WRITE, FIRST, true },
	{ "RC WRITE Middle", 0x07, RC, FAB_OP_WRITE, 0, true },
	{ "RC WRITE Last", 0x08, RC, FAB_OP_WRITE, LAST, true },
	{ "RC WRITE Last Imm", 0x09, RC, FAB_OP_WRITE, LAST | IMM, true },
	{ "RC WRITE Only", 0x0a, RC, FAB_OP_WRITE, ONLY, true },
	{ "RC WRITE Only Imm", 0x0b, RC, FAB_OP_WRITE, ONLY | IMM, true },
	{ "RC READ Request", 0x0c, RC, FAB_OP_READ, ONLY, false },
	{ "RC READ response First", 0x0d, RC, FAB_OP_READ_RESPONSE, FIRST, true },
	{ "RC READ response Middle", 0x0e, RC, FAB_OP_READ_RESPONSE, 0, true },
	{ "RC READ response Last", 0x0f, RC, FAB_OP_READ_RESPONSE, LAST, true },
	{ "RC READ response Only", 0x10, RC, FAB_OP_READ_RESPONSE, ONLY, true },
	{ "RC ACK", 0x11, RC, FAB_OP_ACK, ONLY, false },
	{ "RC NAK", 0x11, RC, FAB_OP_NAK, ONLY, false },
	{ "RC ATOMIC ACK", 0x12, RC, FAB_OP_ATOMIC_RESPONSE, ONLY, false },
	{ "RC COMPARE SWAP", 0x13, RC, FAB_OP_COMPARE_SWAP, ONLY, false },
	{ "RC FETCH ADD", 0x14, RC, FAB_OP_FETCH_ADD, ONLY, false },
	{ "RC SEND Last Inv", 0x16, RC, FAB_OP_SEND, LAST | INV, true },
	{ "RC SEND Only Inv", 0x17, RC, FAB_OP_SEND, ONLY | INV, true },
	{ "RC FLUSH", 0x1c, RC, FAB_OP_FLUSH, ONLY, false },
	{ "RC ATOMIC WRITE", 0x1d, RC, FAB_OP_ATOMIC_WRITE, ONLY, true },
	{ "UC SEND First", 0x20, UC, FAB_OP_SEND, FIRST, true },
	{ "UC SEND Last Imm", 0x23, UC, FAB_OP_SEND, LAST | IMM, true },
	{ "UC WRITE First", 0x26, UC, FAB_OP_WRITE, FIRST, true },
	{ "UC WRITE Only Imm", 0x2b, UC, FAB_OP_WRITE, ONLY | IMM, true },
	{ "UD SEND Only", 0x64, UD, FAB_OP_DATAGRAM, ONLY, true },
	{ "UD SEND Only Imm", 0x65, UD, FAB_OP_DATAGRAM, ONLY | IMM, true },
	{ "XRC SEND First", 0xa0, XRC, FAB_OP_SEND, FIRST, true },
	{ "XRC SEND Middle", 0xa1, XRC, FAB_OP_SEND, 0, true },
	{ "XRC SEND Only Imm", 0xa5, XRC, FAB_OP_SEND, ONLY | IMM, true },
	{ "XRC WRITE First", 0xa6, XRC, FAB_OP_WRITE, FIRST, true },
	{ "XRC WRITE Last Imm", 0xa9, XRC, FAB_OP_WRITE, LAST | IMM, true },
	{ "XRC READ Request", 0xac, XRC, FAB_OP_READ, ONLY, false },
	{ "XRC READ response Only", 0xb0, XRC, FAB_OP_READ_RESPONSE, ONLY, true },
	{ "XRC ACK", 0xb1, XRC, FAB_OP_ACK, ONLY, false },
	{ "XRC ATOMIC ACK", 0xb2, XRC, FAB_OP_ATOMIC_RESPONSE, ONLY, false },
	{ "XRC COMPARE SWAP", 0xb3, XRC, FAB_OP_COMPARE_SWAP, ONLY, false },
	{ "XRC SEND Only Inv", 0xb7, XRC, FAB_OP_SEND, ONLY | INV, true },
	{ "CNP", 0x81, FAB_SERVICE_CNP, FAB_OP_CNP, ONLY, false },
};
const unsigned int n_kinds = sizeof(kinds) / sizeof(kinds[0]);

static uint64_t random_u64(void)
{
	return (uint64_t)random() << 42 ^ (uint64_t)random() << 21 ^ (uint64_t)random();
}

static bool is_answer(const struct kind *kind)
{
	return kind->op == FAB_OP_ACK || kind->op == FAB_OP_NAK ||
	       kind->op == FAB_OP_READ_RESPONSE || kind->op == FAB_OP_ATOMIC_RESPONSE;
}

static void fill_fields(struct fab_packet *packet, const struct kind *kind)
{
	bool is_write_start = (kind->op == FAB_OP_WRITE && kind->flags & FAB_FIRST) ||
			      kind->op == FAB_OP_ATOMIC_WRITE;
	bool is_atomic = kind->op == FAB_OP_COMPARE_SWAP || kind->op == FAB_OP_FETCH_ADD;

	bool has_range = is_write_start || kind->op == FAB_OP_READ || kind->op == FAB_OP_FLUSH;

	if (has_range || is_atomic) {
		packet->remote_addr = random_u64();
		packet->rkey = (uint32_t)random_u64();
	}
	if (has_range)
		packet->dma_bytes = (uint32_t)random_u64();
	if (is_atomic || kind->op == FAB_OP_ATOMIC_RESPONSE)
		packet->compare_add = random_u64();
	if (kind->op == FAB_OP_FLUSH)
		packet->flush = random() & 0x3f;
	if (kind->op == FAB_OP_COMPARE_SWAP)
		packet->swap = random_u64();
	if (kind->flags & FAB_INVALIDATE)
		packet->rkey = (uint32_t)random_u64();
	if (kind->flags & FAB_IMM)
		packet->imm = (uint32_t)random_u64();
	if (kind->op == FAB_OP_ACK || kind->op == FAB_OP_NAK ||
	    kind->op == FAB_OP_ATOMIC_RESPONSE || (kind->op == FAB_OP_READ_RESPONSE && kind->flags))
		packet->msn = (uint32_t)random_u64() & FAB_PSN_MASK;
	if (kind->op == FAB_OP_NAK)
		packet->syndrome = (uint8_t)(random() % (FAB_NAK_RNR + 1));
	if (kind->op == FAB_OP_NAK && packet->syndrome == FAB_NAK_RNR)
		packet->rnr_timer = (uint8_t)(random() % 32);
	if (kind->service == XRC && !is_answer(kind))
		packet->srqn = (uint32_t)random_u64() & FAB_PSN_MASK;
	if (kind->service == FAB_SERVICE_UD) {
		packet->qkey = (uint32_t)random_u64();
		packet->src_qpn = (uint32_t)random_u64() & FAB_PSN_MASK;
	}
}

struct fab_packet random_packet(const struct kind *kind, uint8_t payload[ROCE_PAYLOAD_BYTES_MAX])
{
	struct fab_packet packet = {
		.magic = FAB_MAGIC,
		.service = kind->service,
		.op = kind->op,
		.flags = (uint8_t)(kind->flags | FAB_GRH),
		.pkey = (uint16_t)random(),
		.dest_qpn = (uint32_t)random() & FAB_PSN_MASK,
		.psn = (uint32_t)random() & FAB_PSN_MASK,
	};
	uint32_t i;

	if (random() % 2)
		packet.flags |= FAB_SOLICITED;
	if (random() % 2)
		packet.flags |= FAB_ASK_ACK;
	if (kind->has_payload)
		packet.bytes = (uint32_t)(random() % (ROCE_PAYLOAD_BYTES_MAX + 1));
	for (i = 0; i < packet.bytes; i++)
		payload[i] = (uint8_t)random();
	fill_fields(&packet, kind);
	return packet;
}
