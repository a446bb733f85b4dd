/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A malicious peer on RoCE v2: packets with the right ICRC and any opcode, PSN, length, address and
 * key, or any bytes at all, while the program sends and receives. Nothing is stored outside of
 * registered memory, sent packets are well-formed, and all activity ends.
 */
#include <assert.h>
#include <string.h>

#include "tests/fuzz/input.h"
#include "tests/roce/world.h"
#include "tools/fabric/roce/icrc.h"

#define GUARD_BYTES 4096
#define GUARD	    0xa5
#define REST_NS	    60000000000ull
#define SOURCE_PORT 0xc0de

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static struct world *world;
static struct input in;

static enum fate fate_of(unsigned int number, void *arg)
{
	(void)number;
	(void)arg;
	return next_byte(&in) % 8 == 1 ? FATE_LOST : FATE_ARRIVES;
}

static uint64_t any_address(void)
{
	switch (next_byte(&in) % 4) {
	case 0:
		return next_word(&in);
	case 1: /* near the end of the region */
		return WORLD_BYTES - GUARD_BYTES - next_byte(&in);
	case 2:
		return UINT64_MAX - next_byte(&in);
	default:
		return GUARD_BYTES + next_word(&in) % (WORLD_BYTES - 2 * GUARD_BYTES);
	}
}

static void seal_and_inject(unsigned int to, uint8_t *bytes, size_t n)
{
	struct icrc_flow flow = { .sgid = &world->end[!to].page.port[0].gid[0].gid,
				  .dgid = &world->end[to].page.port[0].gid[0].gid,
				  .source_port = SOURCE_PORT };

	if (n >= ROCE_BYTES_MIN)
		icrc_seal(&flow, bytes, n);
	world_inject(world, to, bytes, n);
}

/* A valid packet except for some of its fields. */
static void inject_packet(void)
{
	static uint8_t payload[ROCE_PAYLOAD_BYTES_MAX];
	unsigned int to = next_byte(&in) & 1;
	const struct fab_qp *qp = to_qp(world->end[to].qp);
	uint8_t how = next_byte(&in), bytes[ROCE_BYTES_MAX];
	struct fab_packet packet = {
		.op = next_byte(&in) % (FAB_OP_DATAGRAM + 1),
		.flags = next_byte(&in),
		.service = how & 1 ? next_byte(&in) & 7 : 0,
		.pkey = how & 2 ? (uint16_t)next_word(&in) : 0xffff,
		.dest_qpn = qp->ex.qp_base.qp_num,
		.src_qpn = world->end[!to].qp->qp_num,
		.qkey = how & 4 ? next_word(&in) : 0x11,
		.syndrome = next_byte(&in) % 5,
		.rnr_timer = next_byte(&in) & 31,
		.msn = next_byte(&in),
		.rkey = how & 8 ? next_word(&in) : world->end[to].mr->rkey,
		.remote_addr = any_address(),
		.dma_bytes = how & 16 ? next_word(&in) : next_word(&in) % 4096,
		.compare_add = next_byte(&in),
		.bytes = how & 32 ? next_word(&in) % (ROCE_PAYLOAD_BYTES_MAX + 1) : 256,
	};
	size_t n;

	if (qp->init.qp_type != IBV_QPT_RC && !(how & 1))
		packet.service = qp->init.qp_type == IBV_QPT_UC ? FAB_SERVICE_UC : FAB_SERVICE_UD;
	if (packet.op == FAB_OP_CNP && !(how & 1))
		packet.service = FAB_SERVICE_CNP;
	world->is_congested = how & 128;
	if (packet.op != FAB_OP_SEND && packet.op != FAB_OP_WRITE &&
	    packet.op != FAB_OP_READ_RESPONSE && packet.op != FAB_OP_DATAGRAM)
		packet.bytes = 0;
	packet.psn = (packet.op == FAB_OP_ACK || packet.op == FAB_OP_NAK ||
				      packet.op == FAB_OP_READ_RESPONSE ||
				      packet.op == FAB_OP_ATOMIC_RESPONSE
			      ? (uint32_t)qp->sq.una
			      : qp->responder.psn) +
		     (uint32_t)(int8_t)(how & 64 ? next_byte(&in) : 0);
	packet.psn &= FAB_PSN_MASK;
	memset(payload, next_byte(&in), sizeof(payload));
	n = roce_write(&packet, payload, bytes);
	if (n)
		seal_and_inject(to, bytes, n);
}

static void inject_bytes(void)
{
	unsigned int to = next_byte(&in) & 1;
	uint8_t bytes[512];
	size_t n = next_byte(&in) * 2u;
	uint32_t qpn = world->end[to].qp->qp_num;

	next_bytes(&in, bytes, n);
	if (n >= ROCE_BYTES_MIN && next_byte(&in) % 4) {
		bytes[5] = (uint8_t)(qpn >> 16);
		bytes[6] = (uint8_t)(qpn >> 8);
		bytes[7] = (uint8_t)qpn;
	}
	seal_and_inject(to, bytes, n);
}

static void receive(void)
{
	struct ibv_sge sge = { GUARD_BYTES, next_byte(&in) * 16u, 0 };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	unsigned int end = next_byte(&in) & 1;

	sge.lkey = world->end[end].mr->lkey;
	ibv_post_recv(world->end[end].qp, &wr, &bad);
}

static void post(void)
{
	struct ibv_send_wr wr = { .opcode = next_byte(&in) % (IBV_WR_ATOMIC_FETCH_AND_ADD + 1),
				  .send_flags = next_byte(&in) & 1 ? IBV_SEND_FENCE : 0 };
	uint32_t bytes = next_byte(&in) * 16u;

	/* A datagram needs an address handle. */
	if (world->end[0].qp->qp_type == IBV_QPT_UD)
		return;
	if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		bytes = 8;
	world_post(world, next_byte(&in) & 1, &wr, GUARD_BYTES + 8 * next_byte(&in), any_address(),
		   bytes);
}

static void pass_time(void)
{
	world_run_for(world, next_byte(&in) * 100000ull);
}

static void poll(void)
{
	struct ibv_wc wc;

	ibv_poll_cq(world->end[next_byte(&in) & 1].cq, 1, &wc);
}

static void check_guards(void)
{
	unsigned int i, end;

	for (end = 0; end < 2; end++)
		for (i = 0; i < GUARD_BYTES; i++) {
			assert(world->end[end].memory[i] == GUARD);
			assert(world->end[end].memory[WORLD_BYTES - 1 - i] == GUARD);
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static void (*const does[])(void) = { inject_packet, inject_packet, inject_packet,
					      inject_bytes,  receive,	    post,
					      pass_time,     poll };
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
	struct world_config config = { .guard_bytes = GUARD_BYTES, .rnr_retry = 3 };
	unsigned int end;

	in = (struct input){ data, bytes };
	config.type = types[next_byte(&in) % 4];
	config.psn = next_byte(&in) & 1 ? FAB_PSN_MASK : 0;
	world = world_open(&config);
	world->fate_of = fate_of;
	for (end = 0; end < 2; end++) {
		memset(world->end[end].memory, GUARD, GUARD_BYTES);
		memset(world->end[end].memory + WORLD_BYTES - GUARD_BYTES, GUARD, GUARD_BYTES);
	}
	while (in.left)
		does[next_byte(&in) % (sizeof(does) / sizeof(does[0]))]();
	world_run_for(world, REST_NS);
	assert(list_is_empty(&world->flying));
	check_guards();
	world_close(world);
	return 0;
}
