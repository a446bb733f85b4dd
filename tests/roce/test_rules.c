/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transmissions of an end by the rules of IBTA vol. 1, chapter 9: losses are detected at once,
 * fences and depths are respected, and readers with more outstanding requests than ours get their
 * responses.
 */
#include <string.h>

#include "tests/roce/world.h"
#include "tests/unit/test.h"

#define BYTES	      1200 /* five packets */
#define AT_ONCE_NS    5000 /* before any packet can have arrived */
#define NO_TIMER_NS   1000000
#define FEW_TIMERS_NS 30000000
#define TIMEOUT_NS    (4096 << 10) /* of the queue pairs */
#define SHARED_NS     15000000
#define READ_BYTES    8192 /* 32 packets, more than the responses of a turn */

static unsigned int lost[2];

static enum fate fate_of(unsigned int number, void *arg)
{
	(void)arg;
	return number == lost[0] || number == lost[1] ? FATE_LOST : FATE_ARRIVES;
}

static struct world *open_losing(unsigned int first, unsigned int second, uint8_t max_rd_atomic)
{
	struct world *world = world_open(
		&(struct world_config){ .type = IBV_QPT_RC, .max_rd_atomic = max_rd_atomic });

	lost[0] = first;
	lost[1] = second;
	world->fate_of = fate_of;
	return world;
}

static void post(struct world *world, enum ibv_wr_opcode opcode, unsigned int flags)
{
	struct ibv_send_wr wr = { .opcode = opcode, .send_flags = flags };

	ck_assert_int_eq(world_post(world, 0, &wr, 0, 4096, BYTES), 0);
}

static void check_done(struct world *world, int n)
{
	struct ibv_wc wc[8];
	int i;

	ck_assert_int_eq(ibv_poll_cq(world->end[0].cq, 8, wc), n);
	for (i = 0; i < n; i++)
		ck_assert_int_eq(wc[i].status, IBV_WC_SUCCESS);
}

TEST(lost_packet_is_retransmitted_without_the_timer)
{
	struct world *world = open_losing(1, UINT32_MAX, 0);

	post(world, IBV_WR_RDMA_WRITE, 0);
	world_run(world);
	check_done(world, 1);
	ck_assert_uint_lt(world->now_ns, NO_TIMER_NS);
	world_close(world);
}

/* The NAK of the first gap does not count for the second: 9.7.5.1.1. */
TEST(second_gap_draws_a_nak_as_well)
{
	struct world *world = open_losing(1, UINT32_MAX, 0);

	post(world, IBV_WR_RDMA_WRITE, 0);
	world_run(world);
	lost[1] = world->n_sent + 1;
	post(world, IBV_WR_RDMA_WRITE, 0);
	world_run(world);
	check_done(world, 2);
	ck_assert_uint_lt(world->now_ns, NO_TIMER_NS);
	world_close(world);
}

TEST(lost_response_is_requested_again_without_the_timer)
{
	struct world *world = open_losing(2, UINT32_MAX, 0);

	post(world, IBV_WR_RDMA_READ, 0);
	world_run(world);
	check_done(world, 1);
	ck_assert_uint_lt(world->now_ns, NO_TIMER_NS);
	world_close(world);
}

/* One message measures the round trip; losses of the next one are retransmitted from there. */
static void post_two_losing(struct world *world, unsigned int first, unsigned int second)
{
	post(world, IBV_WR_RDMA_WRITE, 0);
	world_run(world);
	lost[0] = world->n_sent + first;
	lost[1] = world->n_sent + second;
	post(world, IBV_WR_RDMA_WRITE, 0);
}

static const unsigned int losses[][2] = {
	{ 1, 6 },	   /* a packet, and its retransmission: 5 is the NAK */
	{ 1, 5 },	   /* a packet, and the NAK */
	{ 4, UINT32_MAX }, /* the last packet */
	{ 5, UINT32_MAX }, /* the ACK */
};

TEST_LOOP(loss_without_a_nak_is_retransmitted_before_the_timeout, 0, 4)
{
	struct world *world = open_losing(UINT32_MAX, UINT32_MAX, 0);

	post_two_losing(world, losses[_i][0], losses[_i][1]);
	world_run(world);
	check_done(world, 2);
	ck_assert_uint_lt(world->now_ns, NO_TIMER_NS);
	world_close(world);
}

static enum fate lose_all(unsigned int number, void *arg)
{
	(void)number;
	(void)arg;
	return FATE_LOST;
}

/* 9.7.6.1.3: seven retries, each after its timeout, however often packets were sent. */
TEST(early_retransmission_is_no_retry)
{
	struct world *world = open_losing(UINT32_MAX, UINT32_MAX, 0);
	uint64_t begin_ns;
	struct ibv_wc wc;

	post(world, IBV_WR_RDMA_WRITE, 0);
	world_run(world);
	check_done(world, 1);
	world->fate_of = lose_all;
	begin_ns = world->now_ns;
	post(world, IBV_WR_RDMA_WRITE, 0);
	world_run(world);
	ck_assert_int_eq(ibv_poll_cq(world->end[0].cq, 1, &wc), 1);
	ck_assert_int_eq(wc.status, IBV_WC_RETRY_EXC_ERR);
	ck_assert_uint_eq(world->now_ns - begin_ns, 8 * TIMEOUT_NS);
	world_close(world);
}

static enum fate lose_every_ninth(unsigned int number, void *arg)
{
	(void)arg;
	return number % 9 == 1 ? FATE_LOST : FATE_ARRIVES;
}

/* Whatever the window is, its last packet requests an ACK; otherwise only the timer would help. */
TEST(window_that_shrank_does_not_wait_for_the_timer)
{
	struct world *world = open_losing(UINT32_MAX, UINT32_MAX, 0);
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };

	world->fate_of = lose_every_ninth;
	ck_assert_int_eq(world_post(world, 0, &wr, 0, 32768, 32768), 0);
	world_run(world);
	check_done(world, 1);
	ck_assert_uint_lt(world->now_ns, FEW_TIMERS_NS);
	world_close(world);
}

/* 10.8.3.3 */
TEST(fenced_send_waits_for_the_reads_before_it)
{
	struct world *world = open_losing(UINT32_MAX, UINT32_MAX, 0);
	unsigned int n_before;

	post(world, IBV_WR_RDMA_READ, 0);
	n_before = world->n_sent;
	post(world, IBV_WR_RDMA_WRITE, IBV_SEND_FENCE);
	world_run_for(world, AT_ONCE_NS);
	ck_assert_uint_eq(world->n_sent, n_before);
	world_run(world);
	check_done(world, 2);
	world_close(world);
}

/* 9.4.4: a read of 1200 bytes needs two requests here. */
TEST_LOOP(outstanding_reads_are_limited_by_the_peer, 1, 5)
{
	struct world *world = open_losing(UINT32_MAX, UINT32_MAX, (uint8_t)_i);
	unsigned int i;

	for (i = 0; i < 4; i++)
		post(world, IBV_WR_RDMA_READ, 0);
	world_run_for(world, AT_ONCE_NS);
	ck_assert_uint_eq(world->n_sent, (unsigned int)_i);
	world_run(world);
	check_done(world, 4);
	world_close(world);
}

static void ask(struct world *world, uint32_t psn, uint64_t address, uint32_t bytes)
{
	world_inject_packet(world, 1,
			    (struct fab_packet){ .op = FAB_OP_READ,
						 .psn = psn,
						 .remote_addr = address,
						 .dma_bytes = bytes });
}

static enum ibv_qp_state state_of(struct world *world, unsigned int end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ck_assert_int_eq(ibv_query_qp(world->end[end].qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

TEST(long_read_is_answered_in_one_part_per_turn)
{
	struct world *world = open_losing(UINT32_MAX, UINT32_MAX, 0);
	unsigned int n_first;

	ask(world, 0, 0, READ_BYTES);
	n_first = world->n_sent;
	ck_assert_uint_eq(n_first, 8); /* with the request, and at the end of its turn */
	world_run(world);
	ck_assert_uint_eq(world->n_sent, READ_BYTES / 256);
	world_close(world);
}

TEST(duplicate_atomic_write_is_answered_but_not_stored)
{
	struct world *world = open_losing(UINT32_MAX, UINT32_MAX, 0);
	uint8_t *memory = world->end[1].memory;
	struct fab_packet packet = {
		.op = FAB_OP_ATOMIC_WRITE,
		.flags = FAB_FIRST | FAB_LAST,
		.dma_bytes = 8,
		.bytes = 8,
	};

	memset(memory, 1, 16);
	world_inject_packet(world, 1, packet); /* a packet of zeros */
	ck_assert_uint_eq(world->n_sent, 1);
	ck_assert_int_eq(world->last.op, FAB_OP_READ_RESPONSE);
	ck_assert(memory[0] == 0 && memory[7] == 0 && memory[8] == 1);
	memory[0] = 2;
	world_inject_packet(world, 1, packet);
	ck_assert_uint_eq(world->n_sent, 2);
	ck_assert_int_eq(world->last.op, FAB_OP_READ_RESPONSE);
	ck_assert_int_eq(memory[0], 2);
	world_close(world);
}

TEST(long_read_restarts_at_the_requested_psn)
{
	struct world *world = open_losing(UINT32_MAX, UINT32_MAX, 0);
	unsigned int n_first;

	ask(world, 0, 0, READ_BYTES);
	n_first = world->n_sent;
	ask(world, 1, 256, READ_BYTES - 256);
	world_run(world);
	ck_assert_uint_ge(world->n_sent, n_first + READ_BYTES / 256 - 1);
	ck_assert_uint_lt(world->n_sent, 2 * (READ_BYTES / 256));
	world_close(world);
}

/* 9.7.4.1.2: the queue pair is in error. */
TEST(more_reads_than_agreed_are_refused)
{
	struct world *world = open_losing(UINT32_MAX, UINT32_MAX, 1);

	ask(world, 0, 0, READ_BYTES);
	ask(world, READ_BYTES / 256, 0, READ_BYTES);
	world_run(world);
	ck_assert_int_eq(state_of(world, 1), IBV_QPS_ERR);
	/* Requests within the agreed depth were answered before the NAK. */
	ck_assert_uint_eq(world->n_sent, READ_BYTES / 256 + 1);
	ck_assert_int_eq(world->last.op, FAB_OP_NAK);
	world_close(world);
}

TEST(read_of_deregistered_memory_is_refused)
{
	struct world *world = open_losing(UINT32_MAX, UINT32_MAX, 0);

	ask(world, 0, 0, READ_BYTES);
	ck_assert_int_eq(ibv_dereg_mr(world->end[1].mr), 0);
	world_run(world);
	ck_assert_int_eq(state_of(world, 1), IBV_QPS_ERR);
	world->end[1].mr = ibv_reg_mr_iova2(world->end[1].pd, world->end[1].memory, WORLD_BYTES, 0,
					    WORLD_ACCESS);
	world_close(world);
}

/* An ACK proves that the responses before it were sent: 9.7.5.1.2. */
TEST(ack_does_not_overtake_the_responses_before_it)
{
	struct world *world = open_losing(UINT32_MAX, UINT32_MAX, 0);

	ask(world, 0, 0, READ_BYTES);
	world_inject_packet(world, 1,
			    (struct fab_packet){ .op = FAB_OP_WRITE,
						 .flags = FAB_FIRST | FAB_LAST | FAB_ASK_ACK,
						 .psn = READ_BYTES / 256 });
	world_run(world);
	ck_assert_uint_eq(world->n_sent, READ_BYTES / 256 + 1);
	ck_assert_int_eq(world->last.op, FAB_OP_ACK);
	world_close(world);
}

/* 9.7.4.1.6 */
TEST_LOOP(write_with_another_length_than_announced_is_refused, 0, 2)
{
	struct world *world = open_losing(UINT32_MAX, UINT32_MAX, 0);

	world_inject_packet(world, 1,
			    (struct fab_packet){ .op = FAB_OP_WRITE,
						 .flags = FAB_FIRST | FAB_LAST,
						 .dma_bytes = _i ? 128 : 256,
						 .bytes = _i ? 256 : 128 });
	ck_assert_int_eq(state_of(world, 1), IBV_QPS_ERR);
	ck_assert_int_eq(world->last.op, FAB_OP_NAK);
	world_close(world);
}

static const struct {
	uint8_t flags;
	uint32_t bytes;
} lengths[] = {
	{ FAB_FIRST, 128 },
	{ FAB_FIRST, 512 },
	{ FAB_FIRST | FAB_LAST, 512 },
};

TEST_LOOP(packet_of_another_length_than_the_path_mtu_is_refused, 0,
	  sizeof(lengths) / sizeof(lengths[0]))
{
	struct world *world = open_losing(UINT32_MAX, UINT32_MAX, 0);

	world_receive(world, 1, 1, 0, 4096);
	world_inject_packet(world, 1,
			    (struct fab_packet){ .op = FAB_OP_SEND,
						 .flags = lengths[_i].flags,
						 .bytes = lengths[_i].bytes });
	ck_assert_int_eq(state_of(world, 1), IBV_QPS_ERR);
	ck_assert_int_eq(world->last.op, FAB_OP_NAK);
	world_close(world);
}

/* No window has this key. */
TEST(send_that_invalidates_an_unknown_key_is_refused)
{
	struct world *world = open_losing(UINT32_MAX, UINT32_MAX, 0);

	world_receive(world, 1, 1, 0, 4096);
	world_inject_packet(world, 1,
			    (struct fab_packet){ .op = FAB_OP_SEND,
						 .flags = FAB_FIRST | FAB_LAST | FAB_INVALIDATE });
	ck_assert_int_eq(state_of(world, 1), IBV_QPS_ERR);
	ck_assert_int_eq(world->last.op, FAB_OP_NAK);
	world_close(world);
}

TEST(nak_of_acknowledged_packets_is_ignored)
{
	struct world *world = open_losing(UINT32_MAX, UINT32_MAX, 0);
	unsigned int n_sent;

	post(world, IBV_WR_RDMA_WRITE, 0);
	world_run(world);
	post(world, IBV_WR_RDMA_WRITE, 0);
	n_sent = world->n_sent;
	world_inject_packet(
		world, 0,
		(struct fab_packet){ .op = FAB_OP_NAK, .syndrome = FAB_NAK_SEQUENCE, .psn = 1 });
	ck_assert_uint_eq(world->n_sent, n_sent);
	world_run(world);
	check_done(world, 2);
	world_close(world);
}

/* 9.7.7.1: the read is requested in two parts. */
TEST(ack_has_the_number_of_complete_messages)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						      IBV_WR_RDMA_WRITE };
	static const uint32_t complete[] = { 1, 3, 4 };
	struct world *world = open_losing(UINT32_MAX, UINT32_MAX, 0);
	unsigned int i;

	for (i = 0; i < 3; i++) {
		post(world, opcodes[i], 0);
		world_run(world);
		ck_assert_uint_eq(world->last.msn, complete[i]);
	}
	check_done(world, 3);
	world_close(world);
}

/* 9.7.5.2.8: after the timer of the queue pair without a receive, 0.01 ms here. */
TEST(rnr_nak_has_the_timer)
{
	struct world *world = open_losing(UINT32_MAX, UINT32_MAX, 0);
	uint64_t refused_ns;

	post(world, IBV_WR_SEND, 0);
	while (world->last.op != FAB_OP_NAK)
		world_run_for(world, 100);
	ck_assert_uint_eq(world->last.syndrome, FAB_NAK_RNR);
	ck_assert_uint_eq(world->last.rnr_timer, 1);
	ck_assert_uint_eq(world->last.msn, 0);
	refused_ns = world->now_ns;
	world_receive(world, 1, 1, 0, 4096);
	world_run(world);
	check_done(world, 1);
	ck_assert_uint_gt(world->now_ns, refused_ns + 10000);
	ck_assert_uint_lt(world->now_ns, refused_ns + 100000);
	world_close(world);
}

static uint32_t window_of(const struct world *world)
{
	return to_qp(world->end[0].qp)->sq.window;
}

static struct world *open_congested(void)
{
	struct world *world = world_open(&(struct world_config){ .type = IBV_QPT_RC });

	world->is_congested = true;
	return world;
}

/* A17.9 */
TEST(marked_requests_cause_cnps_that_halve_the_window)
{
	struct world *world = open_congested();
	uint32_t before = window_of(world);

	post(world, IBV_WR_RDMA_WRITE, 0);
	world_run(world);
	check_done(world, 1);
	ck_assert_uint_eq(world->n_cnps, 1);
	ck_assert_uint_ge(window_of(world), before / 2);
	ck_assert_uint_lt(window_of(world), before);
	world_close(world);
}

TEST(cnps_are_fifty_microseconds_apart)
{
	static const uint64_t at_ns[] = { 1, 50000, 50001, 100000, 100001 };
	struct world *world = open_congested();
	struct fab_packet packet = { .op = FAB_OP_WRITE, .flags = FAB_FIRST | FAB_LAST };
	unsigned int i;

	for (i = 0; i < 5; i++, packet.psn++) {
		world->now_ns = at_ns[i];
		world_inject_packet(world, 1, packet);
		ck_assert_uint_eq(world->n_cnps, i / 2 + 1);
	}
	world_close(world);
}

TEST(next_cnp_is_sent_after_an_interval)
{
	struct world *world = open_congested();
	unsigned int i;

	for (i = 0; i < 3; i++) {
		post(world, IBV_WR_RDMA_WRITE, 0);
		world_run(world); /* 20 us */
	}
	ck_assert_uint_eq(world->n_cnps, 1);
	world_run_for(world, 50000);
	post(world, IBV_WR_RDMA_WRITE, 0);
	world_run(world);
	ck_assert_uint_eq(world->n_cnps, 2);
	world_close(world);
}

TEST(marked_responses_halve_the_requesters_window)
{
	struct world *world = open_congested();
	uint32_t before = window_of(world);

	post(world, IBV_WR_RDMA_READ, 0);
	world_run(world);
	check_done(world, 1);
	ck_assert_uint_eq(world->n_cnps, 0);
	ck_assert_uint_lt(window_of(world), before);
	world_close(world);
}

TEST(cnp_of_another_host_is_ignored)
{
	struct world *world = world_open(&(struct world_config){ .type = IBV_QPT_RC });
	uint32_t before = window_of(world);
	union ibv_gid *peer = &to_qp(world->end[0].qp)->attr.ah_attr.grh.dgid;
	struct fab_packet cnp = { .service = FAB_SERVICE_CNP, .op = FAB_OP_CNP };

	peer->raw[15]++;
	world_inject_packet(world, 0, cnp);
	ck_assert_uint_eq(window_of(world), before);
	peer->raw[15]--;
	world_inject_packet(world, 0, cnp);
	ck_assert_uint_lt(window_of(world), before);
	world_close(world);
}

static uint64_t router_ns;

/* A router that queues a limited number and drops the rest; responses fit. */
static enum fate fate_at_router(unsigned int number, void *arg)
{
	const struct world *world = arg;

	(void)number;
	return world->last.op == FAB_OP_WRITE && world->last_due_ns[1] > world->now_ns + router_ns
		       ? FATE_LOST
		       : FATE_ARRIVES;
}

/* Return: number of packets of a pair that arrived in a time, while all pairs have more to send. */
static void send_for(struct world *world, uint64_t ns, uint64_t ret_sent[WORLD_PAIRS])
{
	uint64_t end_ns = world->now_ns + ns, before[WORLD_PAIRS];
	struct ibv_wc wc;
	unsigned int i;

	for (i = 0; i < world->n_pairs; i++)
		before[i] = to_qp(world->end[0].pair[i])->sq.una;
	while (world->now_ns < end_ns) {
		for (i = 0; i < world->n_pairs; i++) {
			world_choose(world, i);
			while (to_qp(world->end[0].qp)->sq.count < 32)
				post(world, IBV_WR_RDMA_WRITE, 0);
		}
		world_run_for(world, AT_ONCE_NS);
		while (ibv_poll_cq(world->end[0].cq, 1, &wc))
			ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	}
	for (i = 0; i < world->n_pairs; i++)
		ret_sent[i] = to_qp(world->end[0].pair[i])->sq.una - before[i];
}

static const struct {
	uint64_t router_ns;
	unsigned int percent; /* of the path, which all pairs together use at least */
} routers[] = {
	{ 12000, 35 },
	{ 20000, 50 },
	{ 30000, 65 },
};

/* One begins alone, and has the largest window when the others start. */
TEST_LOOP(queue_pairs_that_share_a_path_share_it_evenly, 0, 3)
{
	struct world_config config = { .type = IBV_QPT_RC };
	struct world *world = world_open(&config);
	uint64_t sent[WORLD_PAIRS], least = UINT64_MAX, most = 0, all = 0;
	unsigned int i;

	router_ns = routers[_i].router_ns;
	world->fate_of = fate_at_router;
	world->arg = world;
	send_for(world, 1000000, sent);
	while (world->n_pairs < WORLD_PAIRS)
		world_add_pair(world, &config);
	send_for(world, SHARED_NS, sent);
	send_for(world, SHARED_NS, sent);
	for (i = 0; i < WORLD_PAIRS; i++) {
		least = sent[i] < least ? sent[i] : least;
		most = sent[i] > most ? sent[i] : most;
		all += sent[i];
	}
	ck_assert_uint_le(most, 2 * least);
	ck_assert_uint_ge(all, SHARED_NS / WORLD_GAP_NS * routers[_i].percent / 100);
	world_close(world);
}
