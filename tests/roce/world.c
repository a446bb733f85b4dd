/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See world.h.
 */
#include "tests/roce/world.h"

#undef NDEBUG /* assert() must execute its calls in release builds, too */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tools/fabric/roce/icrc.h"
#include "tools/fabric/verbs/carrier.h"
#include "tools/fabric/verbs/context.h"
#include "tools/fabric/verbs/engine.h"
#include "tools/fabric/verbs/qp.h"
#include "tools/fabric/verbs/tick.h"
#include "tools/fabric/verbs/transport.h"

#define FLIGHT_NS    10000
#define OVERTAKEN_NS 35000
#define TIMEOUT	     10 /* 4 ms */
#define DELAYED_NS   6000000
#define EARLY_NS_MIN 200000
#define STEPS_MAX    2000000
#define SOURCE_PORT  0xc0de
#define BIT_AT	     37 /* of a corrupted packet: in its ICRC or before it */

struct world_packet {
	struct list link;
	uint64_t due_ns;
	unsigned int to;
	size_t bytes;
	uint8_t data[ROCE_BYTES_MAX];
};

/* One world at a time. Fuzz targets use it too, so it does not use Check. */
static struct world *the_world;

static union ibv_gid gid_of(unsigned int end)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, 0xff, 192, 0, 2, (uint8_t)(1 + end) } };

	return gid;
}

/* --- the wire ------------------------------------------------------------ */

static void carry_packet(struct world *world, unsigned int to, const uint8_t *data, size_t bytes,
			 uint64_t flight_ns)
{
	struct world_packet *packet = malloc(sizeof(*packet)), *before;
	struct list *node = world->flying.prev;

	assert(packet);
	packet->due_ns = world->now_ns + flight_ns;
	packet->to = to;
	packet->bytes = bytes;
	memcpy(packet->data, data, bytes);
	for (; node != &world->flying; node = node->prev) {
		before = container_of(node, struct world_packet, link);
		if (before->due_ns <= packet->due_ns)
			break;
	}
	list_prepend(node, &packet->link);
}

static void send_bytes(struct world *world, unsigned int to, uint8_t *data, size_t bytes)
{
	unsigned int number = world->n_sent++;
	enum fate fate = world->fate_of ? world->fate_of(number, world->arg) : FATE_ARRIVES;
	uint64_t flight_ns = FLIGHT_NS;

	if (world->now_ns + flight_ns < world->last_due_ns[to] + WORLD_GAP_NS)
		flight_ns = world->last_due_ns[to] + WORLD_GAP_NS - world->now_ns;
	world->last_due_ns[to] = world->now_ns + flight_ns;
	if (fate == FATE_LOST)
		return;
	if (fate == FATE_REPEATED)
		carry_packet(world, to, data, bytes, flight_ns);
	if (fate == FATE_OVERTAKEN)
		flight_ns += OVERTAKEN_NS;
	if (fate == FATE_DELAYED)
		flight_ns += DELAYED_NS;
	if (fate == FATE_CORRUPTED)
		data[(BIT_AT + number) % bytes] ^= (uint8_t)(1 << number % 8);
	carry_packet(world, to, data, bytes, flight_ns);
}

static unsigned int number_of(const struct fab_context *context)
{
	return context == &the_world->end[1].context;
}

static void send_packet(struct fab_context *context, const char *path,
			const struct fab_packet *packet, const void *payload)
{
	struct icrc_flow flow = { &packet->sgid, &packet->dgid, SOURCE_PORT, 0 };
	uint8_t data[ROCE_BYTES_MAX];
	size_t bytes = roce_write(packet, payload, data);

	(void)path;
	assert(bytes > 0);
	icrc_seal(&flow, data, bytes);
	the_world->last = *packet;
	if (the_world->saw)
		the_world->saw(number_of(context), packet);
	the_world->n_cnps += packet->op == FAB_OP_CNP;
	send_bytes(the_world, !number_of(context), data, bytes);
}

static void send_datagram(struct fab_qp *qp, const struct fab_ah *ah, struct fab_packet *packet,
			  const void *payload)
{
	struct fab_context *context = to_context(qp->ex.qp_base.context);

	(void)ah;
	send_packet(context, NULL, packet, payload);
}

static void take_bytes(struct world *world, unsigned int to, const uint8_t *bytes, size_t n)
{
	struct fab_context *context = &world->end[to].context;
	union ibv_gid sgid = gid_of(!to), dgid = gid_of(to);
	struct icrc_flow flow = { &sgid, &dgid, SOURCE_PORT, 0 };
	const struct fab_qp *qp;
	struct fab_packet packet;
	const uint8_t *payload;

	if (!icrc_holds(&flow, bytes, n) || roce_read(bytes, n, &packet, &payload))
		return;
	packet.sgid = sgid;
	packet.dgid = dgid;
	packet.hop_limit = 64;
	packet.traffic_class = world->is_congested ? FAB_ECN_CE : FAB_ECN_ECT;
	packet.port_num = 1;
	qp = context->qp[packet.dest_qpn % FAB_SLOT_QPS];
	if (qp && packet.op != FAB_OP_DATAGRAM)
		packet.src_qpn = qp->attr.dest_qp_num;
	context_deliver(context, &packet, payload);
	responder_end_turn(context);
}

void world_inject(struct world *world, unsigned int to, const uint8_t *bytes, size_t n)
{
	take_bytes(world, to, bytes, n);
}

void world_inject_packet(struct world *world, unsigned int to, struct fab_packet packet)
{
	union ibv_gid sgid = gid_of(!to), dgid = gid_of(to);
	struct icrc_flow flow = { &sgid, &dgid, SOURCE_PORT, 0 };
	static const uint8_t payload[ROCE_PAYLOAD_BYTES_MAX];
	uint8_t data[ROCE_BYTES_MAX];
	size_t n;

	packet.pkey = FAB_PKEY_DEFAULT;
	packet.dest_qpn = world->end[to].qp->qp_num;
	if (!packet.rkey)
		packet.rkey = world->end[to].mr->rkey;
	n = roce_write(&packet, payload, data);
	if (!n)
		return;
	icrc_seal(&flow, data, n);
	take_bytes(world, to, data, n);
}

/* --- time ---------------------------------------------------------------- */

static uint64_t now_ns(const struct fab_context *context)
{
	(void)context;
	return the_world->now_ns;
}

static uint64_t deadline_of(const struct world *world)
{
	uint64_t first = UINT64_MAX, tick_ns = (world->now_ns / TICK_NS + 1) * TICK_NS;
	unsigned int i;

	for (i = 0; i < 2 * world->n_pairs; i++) {
		struct ibv_qp *qp = world->end[i % 2].pair[i / 2];
		uint64_t deadline_ns = to_qp(qp)->sq.deadline_ns;

		if (deadline_ns && deadline_ns < first)
			first = deadline_ns;
	}
	for (i = 0; i < 2; i++)
		if ((!list_is_empty(&world->end[i].context.deferred) ||
		     world->end[i].context.held) &&
		    tick_ns < first)
			first = tick_ns;
	return first;
}

static void arrive(struct world *world)
{
	struct world_packet *packet = container_of(world->flying.next, struct world_packet, link);

	list_remove(&packet->link);
	world->now_ns = packet->due_ns;
	take_bytes(world, packet->to, packet->data, packet->bytes);
	free(packet);
}

static bool has_pending(const struct world *world, unsigned int i)
{
	return !list_is_empty(&world->end[i].context.unacked);
}

/* Return: false if no event is due before a time. */
static bool step(struct world *world, uint64_t until_ns)
{
	uint64_t deadline_ns = deadline_of(world), due_ns = UINT64_MAX;

	if (has_pending(world, 0) || has_pending(world, 1)) {
		responder_end_turn(&world->end[0].context);
		responder_end_turn(&world->end[1].context);
		return true;
	}
	if (!list_is_empty(&world->flying))
		due_ns = container_of(world->flying.next, struct world_packet, link)->due_ns;
	if ((due_ns < deadline_ns ? due_ns : deadline_ns) > until_ns ||
	    (due_ns == UINT64_MAX && deadline_ns == UINT64_MAX))
		return false;
	if (due_ns <= deadline_ns) {
		arrive(world);
		return true;
	}
	world->now_ns = deadline_ns;
	context_expire(&world->end[0].context);
	context_expire(&world->end[1].context);
	return true;
}

void world_run(struct world *world)
{
	unsigned int steps = 0;

	while (step(world, UINT64_MAX))
		assert(++steps < STEPS_MAX);
}

void world_run_for(struct world *world, uint64_t ns)
{
	uint64_t until_ns = world->now_ns + ns;

	while (step(world, until_ns))
		continue;
	world->now_ns = until_ns;
}

/* --- the ends ------------------------------------------------------------ */

static uint32_t payload_bytes(const struct fab_context *context, enum ibv_mtu path_mtu)
{
	(void)context;
	return 128u << path_mtu;
}

static int open_nothing(struct fab_context *context)
{
	(void)context;
	return 0;
}

static void close_nothing(struct fab_context *context)
{
	(void)context;
}

static int find_anybody(struct fab_context *context, const struct ibv_ah_attr *attr,
			struct fab_owner *ret)
{
	(void)context;
	(void)attr;
	memset(ret, 0, sizeof(*ret));
	return 0;
}

static struct carrier carrier_world = {
	.window_bytes_min = 512,
	.window_bytes_start = 4096,
	.window_bytes_max = 16384,
	.read_bytes = 1024,
	.ask_ack_bytes = 1024,
	.batch = 64,
	.early_ns_min = EARLY_NS_MIN,
	.now_ns = now_ns,
	.payload_bytes = payload_bytes,
	.open = open_nothing,
	.close = close_nothing,
	.find = find_anybody,
	.send = send_packet,
	.send_datagram = send_datagram,
};

static void open_context(struct world_end *end, unsigned int number)
{
	struct fab_context *context = &end->context;
	static const uint32_t no_limits[FAB_N_LIMITS];

	fab_page_set_limits(&end->page, no_limits);
	end->page.n_ports = 1;
	end->page.port[0].state = IBV_PORT_ACTIVE;
	end->page.port[0].link_layer = IBV_LINK_LAYER_ETHERNET;
	end->page.port[0].mtu = IBV_MTU_4096;
	end->page.port[0].pkey[0] = FAB_PKEY_DEFAULT;
	end->page.port[0].gid[0].gid = gid_of(number);
	end->device.page = &end->page;
	pthread_mutex_init(&context->lock, NULL);
	list_init(&context->active);
	list_init(&context->unacked);
	list_init(&context->deferred);
	list_init(&context->attached);
	list_init(&context->pds);
	assert(event_queue_init(&context->async) == 0);
	context->device = &end->device;
	context->carrier = &carrier_world;
	context->fd = context->wake_fd = context->timer_fd = -1;
	context->has_thread = true; /* the thread of the test */
	context->slot = 1 + number;
	context->qp = calloc(FAB_SLOT_QPS, sizeof(struct fab_qp *));
	context->scratch = malloc(FAB_FRAGMENT_BYTES);
	context->verbs.sz = sizeof(context->verbs);
	context->verbs.context.num_comp_vectors = 1;
	context->verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	context_set_ops(&context->verbs);
}

static void open_objects(struct world_end *end, const struct world_config *config)
{
	struct ibv_context *verbs = &end->context.verbs.context;

	end->pd = ibv_alloc_pd(verbs);
	end->cq = ibv_create_cq(verbs, 256, NULL, NULL, 0);
	assert(end->pd && end->cq);
	end->mr = ibv_reg_mr_iova2(end->pd, end->memory + config->guard_bytes,
				   sizeof(end->memory) - 2 * config->guard_bytes,
				   config->guard_bytes, WORLD_ACCESS);
	assert(end->mr);
}

static struct ibv_qp *create_qp(struct world_end *end, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.qp_type = type,
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = { .max_send_wr = 64,
			 .max_recv_wr = 64,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(end->pd, &init);

	assert(qp);
	return qp;
}

static void connect_end(struct world *world, unsigned int number, const struct world_config *config)
{
	bool is_rc = config->type == IBV_QPT_RC, is_ud = config->type == IBV_QPT_UD;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = 0x11,
		.qp_access_flags = WORLD_ACCESS,
		.path_mtu = config->mtu ? config->mtu : IBV_MTU_256,
		.dest_qp_num = world->end[!number].qp->qp_num,
		.rq_psn = config->psn,
		.sq_psn = config->psn,
		.max_rd_atomic = config->max_rd_atomic ? config->max_rd_atomic : 4,
		.max_dest_rd_atomic = config->max_rd_atomic ? config->max_rd_atomic : 4,
		.min_rnr_timer = 1,
		.timeout = TIMEOUT,
		.retry_cnt = 7,
		.rnr_retry = config->rnr_retry ? config->rnr_retry : 7,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 64 } },
	};
	struct ibv_qp *qp = world->end[number].qp;
	int path = is_ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	attr.ah_attr.grh.dgid = gid_of(!number);
	assert(ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
				     (is_ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)) == 0);
	attr.qp_state = IBV_QPS_RTR;
	if (is_rc)
		path |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	assert(ibv_modify_qp(qp, &attr, IBV_QP_STATE | path) == 0);
	attr.qp_state = IBV_QPS_RTS;
	assert(ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_SQ_PSN |
				     (is_rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						      IBV_QP_MAX_QP_RD_ATOMIC
					    : 0)) == 0);
}

void world_choose(struct world *world, unsigned int pair)
{
	world->end[0].qp = world->end[0].pair[pair];
	world->end[1].qp = world->end[1].pair[pair];
}

void world_add_pair(struct world *world, const struct world_config *config)
{
	unsigned int i;

	assert(world->n_pairs < WORLD_PAIRS);
	for (i = 0; i < 2; i++)
		world->end[i].pair[world->n_pairs] = create_qp(&world->end[i], config->type);
	world_choose(world, world->n_pairs++);
	for (i = 0; i < 2; i++)
		connect_end(world, i, config);
}

struct world *world_open(const struct world_config *config)
{
	struct world *world = calloc(1, sizeof(*world));
	unsigned int i;

	assert(world);
	the_world = world;
	list_init(&world->flying);
	world->now_ns = 1;
	carrier_world.retry_ns_min = config->retry_ns_min;
	for (i = 0; i < 2; i++) {
		open_context(&world->end[i], i);
		open_objects(&world->end[i], config);
	}
	world_add_pair(world, config);
	return world;
}

void world_close(struct world *world)
{
	struct world_packet *packet;
	unsigned int i, pair;

	for (i = 0; i < 2; i++) {
		struct world_end *end = &world->end[i];

		for (pair = 0; pair < world->n_pairs; pair++)
			assert(ibv_destroy_qp(end->pair[pair]) == 0);
		assert(ibv_dereg_mr(end->mr) == 0);
		assert(ibv_destroy_cq(end->cq) == 0);
		assert(ibv_dealloc_pd(end->pd) == 0);
		event_queue_fini(&end->context.async);
		free(end->context.qp);
		free(end->context.scratch);
		free(end->context.keys.mr);
		free(end->context.keys.tag);
	}
	list_for_each_entry_safe (packet, &world->flying, link)
		free(packet);
	free(world);
}

void world_receive(struct world *world, unsigned int end, uint64_t wr_id, size_t offset,
		   uint32_t bytes)
{
	struct ibv_sge sge = { offset, bytes, world->end[end].mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert(ibv_post_recv(world->end[end].qp, &wr, &bad) == 0);
}

int world_post(struct world *world, unsigned int end, struct ibv_send_wr *wr, size_t offset,
	       size_t remote_offset, uint32_t bytes)
{
	struct ibv_sge sge = { offset, bytes, world->end[end].mr->lkey };
	bool is_atomic = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
			 wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags |= IBV_SEND_SIGNALED;
	if (is_atomic) {
		wr->wr.atomic.remote_addr = remote_offset;
		wr->wr.atomic.rkey = world->end[!end].mr->rkey;
	} else if (world->end[end].qp->qp_type != IBV_QPT_UD) {
		wr->wr.rdma.remote_addr = remote_offset;
		wr->wr.rdma.rkey = world->end[!end].mr->rkey;
	}
	return ibv_post_send(world->end[end].qp, wr, &bad);
}
