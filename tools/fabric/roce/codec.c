/* SPDX-License-Identifier: BSD-2-Clause */
/* The fields of the transport headers, and the table of opcodes: see codec.h. */
#include "tools/fabric/roce/codec.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "mad/wire_known.h"

#define OPCODE_SERVICE_SHIFT 5
#define OPCODE_OPERATION     0x1f
#define TVER		     0
#define PAD_BYTES	     4

/* clang-format off */
/* IBTA vol. 1, 9.2 */
static const struct wire_field bth_fields[] = {
	WIRE_ID(roce_bth, opcode, 0, 0, 8),
	WIRE(roce_bth, solicited_event, 1, 0, 1),
	WIRE(roce_bth, mig_req, 1, 1, 1),
	WIRE(roce_bth, pad_cnt, 1, 2, 2),
	WIRE(roce_bth, tver, 1, 4, 4),
	WIRE_ID(roce_bth, pkey, 2, 0, 16),
	WIRE(roce_bth, fecn, 4, 0, 1),
	WIRE(roce_bth, becn, 4, 1, 1),
	WIRE_ID(roce_bth, dest_qp, 5, 0, 24),
	WIRE(roce_bth, ack_req, 8, 0, 1),
	WIRE(roce_bth, psn, 9, 0, 24),
};

/* 9.3.1 */
static const struct wire_field deth_fields[] = {
	WIRE_ID(roce_deth, qkey, 0, 0, 32),
	WIRE_ID(roce_deth, src_qp, 5, 0, 24),
};

/* 9.3.3 */
static const struct wire_field reth_fields[] = {
	WIRE_ID(roce_reth, virtual_address, 0, 0, 64),
	WIRE_ID(roce_reth, rkey, 8, 0, 32),
	WIRE(roce_reth, dma_length, 12, 0, 32),
};

/* 9.3.4 */
static const struct wire_field atomic_eth_fields[] = {
	WIRE_ID(roce_atomic_eth, virtual_address, 0, 0, 64),
	WIRE_ID(roce_atomic_eth, rkey, 8, 0, 32),
	WIRE_ID(roce_atomic_eth, swap_add, 12, 0, 64),
	WIRE_ID(roce_atomic_eth, compare, 20, 0, 64),
};

/* 9.3.5.1 */
static const struct wire_field aeth_fields[] = {
	WIRE(roce_aeth, kind, 0, 0, 3),
	WIRE(roce_aeth, value, 0, 3, 5),
	WIRE(roce_aeth, msn, 1, 0, 24),
};

/* 9.3.5.3 */
static const struct wire_field atomic_ack_eth_fields[] = {
	WIRE_ID(roce_atomic_ack_eth, original, 0, 0, 64),
};

/* 9.3.6 */
static const struct wire_field imm_dt_fields[] = {
	WIRE_BLOB(roce_imm_dt, data, 0),
};

/* 9.3.7 */
static const struct wire_field ieth_fields[] = {
	WIRE_ID(roce_ieth, rkey, 0, 0, 32),
};

/* A19 */
static const struct wire_field feth_fields[] = {
	WIRE(roce_feth, selectivity, 3, 2, 2),
	WIRE(roce_feth, placement, 3, 4, 4),
};

/* A14 */
static const struct wire_field xrceth_fields[] = {
	WIRE_ID(roce_xrceth, srqn, 1, 0, 24),
};
/* clang-format on */

#define LAYOUT(title, name, bytes)                      \
	static const struct wire_layout name##_layout = \
		WIRE_LAYOUT(title, roce_##name, name##_fields, bytes)

LAYOUT("BTH", bth, BTH_BYTES);
LAYOUT("DETH", deth, DETH_BYTES);
LAYOUT("RETH", reth, RETH_BYTES);
LAYOUT("AtomicETH", atomic_eth, ATOMIC_ETH_BYTES);
LAYOUT("AETH", aeth, AETH_BYTES);
LAYOUT("AtomicAckETH", atomic_ack_eth, ATOMIC_ACK_ETH_BYTES);
LAYOUT("ImmDt", imm_dt, IMM_DT_BYTES);
LAYOUT("IETH", ieth, IETH_BYTES);
LAYOUT("XRCETH", xrceth, XRCETH_BYTES);
LAYOUT("FETH", feth, FETH_BYTES);

/* Extended headers, in the order of their appearance after the BTH. */
enum {
	DETH = 1,
	RETH = 2,
	ATOMIC_ETH = 4,
	AETH = 8,
	ATOMIC_ACK_ETH = 16,
	IMM_DT = 32,
	IETH = 64,
	CNP_RESERVED = 128,
	XRCETH = 256,
	FETH = 512,
};

struct opcode {
	bool is_known;
	bool has_payload;
	uint8_t op;
	uint8_t flags; /* of enum fab_flag: SHAPE */
	uint16_t headers;
};

#define SHAPE (FAB_FIRST | FAB_LAST | FAB_IMM | FAB_INVALIDATE)
#define DATA(...)                       \
	{                               \
		true, true, __VA_ARGS__ \
	}
#define PLAIN(...)                       \
	{                                \
		true, false, __VA_ARGS__ \
	}

/* Table 38, indexed by the lower five bits. A datagram is always a SEND, with a DETH. */
static const struct opcode opcodes[OPCODE_OPERATION + 1] = {
	[0] = DATA(FAB_OP_SEND, FAB_FIRST, 0),
	[1] = DATA(FAB_OP_SEND, 0, 0),
	[2] = DATA(FAB_OP_SEND, FAB_LAST, 0),
	[3] = DATA(FAB_OP_SEND, FAB_LAST | FAB_IMM, IMM_DT),
	[4] = DATA(FAB_OP_SEND, FAB_FIRST | FAB_LAST, 0),
	[5] = DATA(FAB_OP_SEND, FAB_FIRST | FAB_LAST | FAB_IMM, IMM_DT),
	[6] = DATA(FAB_OP_WRITE, FAB_FIRST, RETH),
	[7] = DATA(FAB_OP_WRITE, 0, 0),
	[8] = DATA(FAB_OP_WRITE, FAB_LAST, 0),
	[9] = DATA(FAB_OP_WRITE, FAB_LAST | FAB_IMM, IMM_DT),
	[10] = DATA(FAB_OP_WRITE, FAB_FIRST | FAB_LAST, RETH),
	[11] = DATA(FAB_OP_WRITE, FAB_FIRST | FAB_LAST | FAB_IMM, RETH | IMM_DT),
	[12] = PLAIN(FAB_OP_READ, FAB_FIRST | FAB_LAST, RETH),
	[13] = DATA(FAB_OP_READ_RESPONSE, FAB_FIRST, AETH),
	[14] = DATA(FAB_OP_READ_RESPONSE, 0, 0),
	[15] = DATA(FAB_OP_READ_RESPONSE, FAB_LAST, AETH),
	[16] = DATA(FAB_OP_READ_RESPONSE, FAB_FIRST | FAB_LAST, AETH),
	[17] = PLAIN(FAB_OP_ACK, FAB_FIRST | FAB_LAST, AETH),
	[18] = PLAIN(FAB_OP_ATOMIC_RESPONSE, FAB_FIRST | FAB_LAST, AETH | ATOMIC_ACK_ETH),
	[19] = PLAIN(FAB_OP_COMPARE_SWAP, FAB_FIRST | FAB_LAST, ATOMIC_ETH),
	[20] = PLAIN(FAB_OP_FETCH_ADD, FAB_FIRST | FAB_LAST, ATOMIC_ETH),
	[22] = DATA(FAB_OP_SEND, FAB_LAST | FAB_INVALIDATE, IETH),
	[23] = DATA(FAB_OP_SEND, FAB_FIRST | FAB_LAST | FAB_INVALIDATE, IETH),
	[28] = PLAIN(FAB_OP_FLUSH, FAB_FIRST | FAB_LAST, FETH | RETH), /* A19 */
	[29] = DATA(FAB_OP_ATOMIC_WRITE, FAB_FIRST | FAB_LAST, RETH),
};

/* A17.9.3 */
static const struct opcode cnp = PLAIN(FAB_OP_CNP, FAB_FIRST | FAB_LAST, CNP_RESERVED);

#define CNP_OPERATION	   1
#define CNP_RESERVED_BYTES 16
#define UC_OPERATIONS_MAX  11
#define UD_ONLY		   4
#define UD_ONLY_IMM	   5

static bool has_operation(unsigned int service, unsigned int operation)
{
	if (!opcodes[operation].is_known)
		return false;
	if (service == FAB_SERVICE_UD)
		return operation == UD_ONLY || operation == UD_ONLY_IMM;
	return service != FAB_SERVICE_UC || operation <= UC_OPERATIONS_MAX;
}

/* Return: the headers of the operation and of the service, a bitmap. */
static uint16_t headers_of(const struct opcode *opcode, unsigned int service)
{
	bool is_answer = opcode->op == FAB_OP_READ_RESPONSE || opcode->op == FAB_OP_ACK ||
			 opcode->op == FAB_OP_ATOMIC_RESPONSE;

	if (service == FAB_SERVICE_UD)
		return opcode->headers | DETH;
	return service == FAB_SERVICE_XRC && !is_answer ? opcode->headers | XRCETH
							: opcode->headers;
}

static const struct opcode *find_opcode(unsigned int service, unsigned int operation)
{
	if (service == FAB_SERVICE_CNP)
		return operation == CNP_OPERATION ? &cnp : NULL;
	return has_operation(service, operation) ? &opcodes[operation] : NULL;
}

/* Return: the operation of a packet, or -1. */
static int find_operation(const struct fab_packet *packet)
{
	uint8_t op = packet->op, flags = packet->flags & SHAPE;
	unsigned int i;

	if (packet->service == FAB_SERVICE_CNP)
		return op == FAB_OP_CNP ? CNP_OPERATION : -1;
	if (op == FAB_OP_DATAGRAM)
		op = FAB_OP_SEND;
	else if (op == FAB_OP_NAK)
		op = FAB_OP_ACK;
	if (op != FAB_OP_SEND && op != FAB_OP_WRITE && op != FAB_OP_READ_RESPONSE)
		flags = FAB_FIRST | FAB_LAST;
	for (i = 0; i <= OPCODE_OPERATION; i++)
		if (opcodes[i].op == op && opcodes[i].flags == flags &&
		    has_operation(packet->service, i))
			return (int)i;
	return -1;
}

/* --- encoding ------------------------------------------------------------- */

static struct roce_aeth aeth_of(const struct fab_packet *packet)
{
	struct roce_aeth aeth = { .kind = AETH_ACK, .value = AETH_NO_CREDITS, .msn = packet->msn };

	if (packet->op != FAB_OP_NAK)
		return aeth;
	aeth.kind = packet->syndrome == FAB_NAK_RNR ? AETH_RNR_NAK : AETH_NAK;
	aeth.value = packet->syndrome == FAB_NAK_RNR ? packet->rnr_timer : packet->syndrome;
	return aeth;
}

static struct roce_feth feth_of(const struct fab_packet *packet)
{
	return (struct roce_feth){
		.selectivity = packet->flush >> FETH_PLACEMENT_BITS,
		.placement = packet->flush & ((1 << FETH_PLACEMENT_BITS) - 1),
	};
}

/* Return: the end of the data written. */
static uint8_t *write_extended(const struct fab_packet *packet, uint16_t headers, uint8_t *at)
{
	struct roce_deth deth = { packet->qkey, packet->src_qpn };
	struct roce_reth reth = { packet->remote_addr, packet->rkey, packet->dma_bytes };
	bool is_swap = packet->op == FAB_OP_COMPARE_SWAP;
	struct roce_atomic_eth atomic = {
		.virtual_address = packet->remote_addr,
		.rkey = packet->rkey,
		.swap_add = is_swap ? packet->swap : packet->compare_add,
		.compare = is_swap ? packet->compare_add : 0,
	};
	struct roce_aeth aeth = aeth_of(packet);
	struct roce_atomic_ack_eth atomic_ack = { packet->compare_add };
	struct roce_ieth ieth = { packet->rkey };
	struct roce_xrceth xrceth = { packet->srqn };
	struct roce_feth feth = feth_of(packet);
	struct roce_imm_dt imm;

	memcpy(imm.data, &packet->imm, sizeof(imm.data));
#define PUT(bit, layout, header)                             \
	if (headers & (bit)) {                               \
		memset(at, 0, (layout).wire_bytes);          \
		wire_encode_known(&(layout), &(header), at); \
		at += (layout).wire_bytes;                   \
	}
	PUT(DETH, deth_layout, deth)
	PUT(XRCETH, xrceth_layout, xrceth)
	PUT(FETH, feth_layout, feth)
	PUT(RETH, reth_layout, reth)
	PUT(ATOMIC_ETH, atomic_eth_layout, atomic)
	PUT(AETH, aeth_layout, aeth)
	PUT(ATOMIC_ACK_ETH, atomic_ack_eth_layout, atomic_ack)
	PUT(IMM_DT, imm_dt_layout, imm)
	PUT(IETH, ieth_layout, ieth)
#undef PUT
	if (headers & CNP_RESERVED)
		at = (uint8_t *)memset(at, 0, CNP_RESERVED_BYTES) + CNP_RESERVED_BYTES;
	return at;
}

size_t roce_write(const struct fab_packet *packet, const void *payload, uint8_t ret[ROCE_BYTES_MAX])
{
	int operation = find_operation(packet);
	uint8_t *at = ret + BTH_BYTES;
	const struct opcode *opcode;
	struct roce_bth bth = {
		.solicited_event = packet->flags & FAB_SOLICITED ? 1 : 0,
		.mig_req = 1,
		.pad_cnt = (uint8_t)(-packet->bytes & (PAD_BYTES - 1)),
		.pkey = packet->pkey,
		.becn = packet->op == FAB_OP_CNP,
		.dest_qp = packet->dest_qpn,
		.ack_req = packet->flags & FAB_ASK_ACK ? 1 : 0,
		.psn = packet->psn,
	};

	if (operation < 0)
		return 0;
	opcode = find_opcode(packet->service, (unsigned int)operation);
	if (packet->bytes > ROCE_PAYLOAD_BYTES_MAX || (packet->bytes && !opcode->has_payload))
		return 0;
	bth.opcode = (uint8_t)(packet->service << OPCODE_SERVICE_SHIFT | operation);
	memset(ret, 0, BTH_BYTES);
	wire_encode_known(&bth_layout, &bth, ret);
	at = write_extended(packet, headers_of(opcode, packet->service), at);
	if (packet->bytes)
		memcpy(at, payload, packet->bytes);
	at += packet->bytes;
	memset(at, 0, bth.pad_cnt + (size_t)ICRC_BYTES);
	return (size_t)(at - ret) + bth.pad_cnt + ICRC_BYTES;
}

/* --- decoding ------------------------------------------------------------- */

static size_t extended_bytes(uint16_t headers)
{
	return (headers & DETH ? DETH_BYTES : 0) + (headers & XRCETH ? XRCETH_BYTES : 0) +
	       (headers & FETH ? FETH_BYTES : 0) + (headers & RETH ? RETH_BYTES : 0) +
	       (headers & ATOMIC_ETH ? ATOMIC_ETH_BYTES : 0) + (headers & AETH ? AETH_BYTES : 0) +
	       (headers & ATOMIC_ACK_ETH ? ATOMIC_ACK_ETH_BYTES : 0) +
	       (headers & IMM_DT ? IMM_DT_BYTES : 0) + (headers & IETH ? IETH_BYTES : 0) +
	       (headers & CNP_RESERVED ? CNP_RESERVED_BYTES : 0);
}

static void take_atomic_eth(const struct roce_atomic_eth *atomic, struct fab_packet *ret)
{
	bool is_swap = ret->op == FAB_OP_COMPARE_SWAP;

	ret->remote_addr = atomic->virtual_address;
	ret->rkey = atomic->rkey;
	ret->swap = is_swap ? atomic->swap_add : 0;
	ret->compare_add = is_swap ? atomic->compare : atomic->swap_add;
}

/*
 * The credits of an ACK are not kept: without any, a requester may send one packet, and a responder
 * without a receive answers that by an RNR NAK, as it does here. IBTA vol. 1, 9.7.7.2.
 *
 * Return: false for a syndrome that is reserved, or invalid for this operation.
 */
static bool take_aeth(const struct roce_aeth *aeth, struct fab_packet *ret)
{
	ret->msn = aeth->msn;
	if (aeth->kind == AETH_ACK)
		return true;
	if (ret->op != FAB_OP_ACK)
		return false;
	ret->op = FAB_OP_NAK;
	if (aeth->kind == AETH_RNR_NAK) {
		ret->syndrome = FAB_NAK_RNR;
		ret->rnr_timer = aeth->value;
		return true;
	}
	ret->syndrome = aeth->value;
	return aeth->kind == AETH_NAK && aeth->value <= FAB_NAK_REMOTE_OPERATION;
}

static bool read_extended(const uint8_t *at, uint16_t headers, struct fab_packet *ret)
{
#define GET(bit, layout, type, name)                     \
	struct type name = { 0 };                        \
	if (headers & (bit)) {                           \
		wire_decode_known(&(layout), at, &name); \
		at += (layout).wire_bytes;               \
	}
	GET(DETH, deth_layout, roce_deth, deth)
	GET(XRCETH, xrceth_layout, roce_xrceth, xrceth)
	GET(FETH, feth_layout, roce_feth, feth)
	GET(RETH, reth_layout, roce_reth, reth)
	GET(ATOMIC_ETH, atomic_eth_layout, roce_atomic_eth, atomic)
	GET(AETH, aeth_layout, roce_aeth, aeth)
	GET(ATOMIC_ACK_ETH, atomic_ack_eth_layout, roce_atomic_ack_eth, atomic_ack)
	GET(IMM_DT, imm_dt_layout, roce_imm_dt, imm)
	GET(IETH, ieth_layout, roce_ieth, ieth)
#undef GET
	ret->qkey = deth.qkey;
	ret->src_qpn = deth.src_qp;
	ret->srqn = xrceth.srqn;
	ret->remote_addr = reth.virtual_address;
	ret->rkey = headers & IETH ? ieth.rkey : reth.rkey;
	ret->dma_bytes = reth.dma_length;
	if (headers & FETH)
		ret->flush = (uint8_t)(feth.selectivity << FETH_PLACEMENT_BITS | feth.placement);
	if (headers & ATOMIC_ETH)
		take_atomic_eth(&atomic, ret);
	if (headers & ATOMIC_ACK_ETH)
		ret->compare_add = atomic_ack.original;
	memcpy(&ret->imm, imm.data, sizeof(ret->imm));
	return !(headers & AETH) || take_aeth(&aeth, ret);
}

static void take_bth(const struct roce_bth *bth, struct fab_packet *ret)
{
	ret->magic = FAB_MAGIC;
	ret->service = bth->opcode >> OPCODE_SERVICE_SHIFT;
	ret->flags = FAB_GRH;
	if (bth->solicited_event)
		ret->flags |= FAB_SOLICITED;
	if (bth->ack_req)
		ret->flags |= FAB_ASK_ACK;
	ret->pkey = bth->pkey;
	ret->dest_qpn = bth->dest_qp;
	ret->psn = bth->psn;
}

static bool is_service(unsigned int service)
{
	return service == FAB_SERVICE_RC || service == FAB_SERVICE_UC ||
	       service == FAB_SERVICE_UD || service == FAB_SERVICE_XRC;
}

int roce_read(const uint8_t *bytes, size_t n, struct fab_packet *ret, const uint8_t **ret_payload)
{
	struct roce_bth bth = { 0 };
	const struct opcode *opcode;
	size_t n_headers, n_left;
	uint16_t headers;

	memset(ret, 0, sizeof(*ret));
	if (n < ROCE_BYTES_MIN || n > ROCE_BYTES_MAX || n % PAD_BYTES)
		return -EBADMSG;
	wire_decode_known(&bth_layout, bytes, &bth);
	take_bth(&bth, ret);
	opcode = find_opcode(ret->service, bth.opcode & OPCODE_OPERATION);
	if (bth.tver != TVER || (!is_service(ret->service) && opcode != &cnp))
		return -EBADMSG;
	*ret_payload = bytes + BTH_BYTES;
	if (!opcode) {
		ret->op = FAB_OP_UNKNOWN;
		return 0;
	}
	ret->op = ret->service == FAB_SERVICE_UD ? FAB_OP_DATAGRAM : opcode->op;
	ret->flags |= opcode->flags;
	headers = headers_of(opcode, ret->service);
	n_headers = BTH_BYTES + extended_bytes(headers);
	if (n < n_headers + bth.pad_cnt + ICRC_BYTES)
		return -EBADMSG;
	n_left = n - n_headers - bth.pad_cnt - ICRC_BYTES;
	if (n_left > ROCE_PAYLOAD_BYTES_MAX || (n_left && !opcode->has_payload))
		return -EBADMSG;
	ret->bytes = (uint32_t)n_left;
	*ret_payload = bytes + n_headers;
	return read_extended(bytes + BTH_BYTES, headers, ret) ? 0 : -EBADMSG;
}

uint32_t roce_dest_qpn(const uint8_t *bytes)
{
	return (uint32_t)bytes[5] << 16 | (uint32_t)bytes[6] << 8 | bytes[7];
}
