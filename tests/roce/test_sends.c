/* SPDX-License-Identifier: BSD-2-Clause */
/* When a requester sends; and sends that fail, are drained or need no packet. */
#include "tests/roce/transcript.h"
#include "tests/unit/test.h"

#define TIMES_MAX  16
#define TIMEOUT_NS (UINT64_C(4096) << 10) /* of the queue pairs */

static struct world *world;
static uint64_t times_ns[TIMES_MAX];
static unsigned int n_times;

static enum fate lose_all(unsigned int number, void *arg)
{
	(void)number;
	(void)arg;
	return FATE_LOST;
}

static void note_time(unsigned int from, const struct fab_packet *packet)
{
	(void)packet;
	if (from == 0 && n_times < TIMES_MAX)
		times_ns[n_times++] = world->now_ns;
}

static void open_noting(uint64_t retry_ns_min)
{
	world = world_open(
		&(struct world_config){ .type = IBV_QPT_RC, .retry_ns_min = retry_ns_min });
	world->saw = note_time;
	n_times = 0;
}

static void post_write(unsigned int flags)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .send_flags = flags };

	ck_assert_int_eq(world_post(world, 0, &wr, 0, 4096, 8), 0);
}

/* IBTA vol. 1, table 46, in microseconds. */
static const uint32_t rnr_us[] = {
	655360, 10,    20,    30,    40,    60,	    80,	    120,    160,    240,    320,
	480,	640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240,  15360,
	20480,	30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
};

TEST_LOOP(requester_waits_as_long_as_the_rnr_timer, 0, 32)
{
	struct fab_packet nak = { .op = FAB_OP_NAK,
				  .syndrome = FAB_NAK_RNR,
				  .rnr_timer = (uint8_t)_i };

	open_noting(0);
	world->fate_of = lose_all;
	post_write(0);
	world_run_for(world, 1000);
	world_inject_packet(world, 0, nak);
	world->fate_of = NULL;
	world_run(world);
	ck_assert_uint_eq(n_times, 2);
	ck_assert_uint_eq(times_ns[1] - times_ns[0] - 1000, rnr_us[_i] * UINT64_C(1000));
	world_close(world);
}

/* 9.7.5.2.8: 7 means for ever, 6 does not. */
TEST_LOOP(rnr_nak_is_retried_rnr_retry_times, 6, 8)
{
	struct fab_packet nak = { .op = FAB_OP_NAK, .syndrome = FAB_NAK_RNR, .rnr_timer = 1 };
	unsigned int i;

	world = transcript_open(
		&(struct world_config){ .type = IBV_QPT_RC, .rnr_retry = (uint8_t)_i });
	world->fate_of = lose_all;
	post_write(0);
	for (i = 0; i < 7; i++) {
		world_inject_packet(world, 0, nak);
		world_run_for(world, 10000);
	}
	transcript_forget();
	world->fate_of = NULL;
	transcript_check(world,
			 _i == 6 ? "done 0 status 13\n"
				 : "> WRITE fla 0 at 4096+8 8 bytes\n< ACK  0 msn 1\ndone 0\n");
	world_close(world);
}

/* Each message has all of its retries: 9.7.5.2.8. */
TEST(progress_resets_the_retries)
{
	struct fab_packet nak = { .op = FAB_OP_NAK, .syndrome = FAB_NAK_RNR, .rnr_timer = 1 };

	world = transcript_open(&(struct world_config){ .type = IBV_QPT_RC, .rnr_retry = 1 });
	for (nak.psn = 0; nak.psn < 3; nak.psn++) {
		world->fate_of = lose_all;
		post_write(0);
		world_inject_packet(world, 0, nak);
		world->fate_of = NULL;
		world_run(world);
	}
	transcript_forget();
	transcript_check(world, "done 0\ndone 0\ndone 0\n");
	world_close(world);
}

/* A late packet is retransmitted after twice the time on each attempt, until the timeout. */
TEST(early_timeout_doubles_up_to_the_timeout)
{
	uint64_t first_ns;
	unsigned int i;

	open_noting(0);
	post_write(0);
	world_run(world);
	n_times = 0;
	world->fate_of = lose_all;
	post_write(0);
	world_run_for(world, TIMEOUT_NS + 1);
	first_ns = times_ns[1] - times_ns[0];
	ck_assert_uint_eq(first_ns, 200000);
	for (i = 1; i + 1 < n_times - 1; i++)
		ck_assert_uint_eq(times_ns[i + 1] - times_ns[i], first_ns << i);
	ck_assert_uint_eq(times_ns[n_times - 1] - times_ns[0], TIMEOUT_NS);
	ck_assert_uint_eq(n_times, 6);
	world->fate_of = NULL;
	world_close(world);
}

/*
 * A peer that is a process may wait longer for a CPU: late packets are retransmitted meanwhile, but
 * only this time counts as a retry.
 */
TEST(retry_has_a_minimum_time)
{
	const uint64_t retry_ns = 16 * TIMEOUT_NS;
	struct ibv_wc wc;

	open_noting(retry_ns);
	world->fate_of = lose_all;
	post_write(0);
	world_run(world);
	ck_assert_uint_eq(times_ns[1] - times_ns[0], TIMEOUT_NS);
	ck_assert_uint_eq(times_ns[2] - times_ns[1], 2 * TIMEOUT_NS);
	ck_assert_uint_eq(times_ns[4] - times_ns[0], 15 * TIMEOUT_NS);
	ck_assert_uint_eq(times_ns[5] - times_ns[0], retry_ns);
	ck_assert_int_eq(ibv_poll_cq(world->end[0].cq, 1, &wc), 1);
	ck_assert_int_eq(wc.status, IBV_WC_RETRY_EXC_ERR);
	ck_assert_uint_eq(world->now_ns - times_ns[0], 8 * retry_ns);
	world_close(world);
}

/* 10.8.3.2: requests before a bad one are executed, later ones are flushed. */
TEST(bad_key_flushes_later_sends)
{
	struct ibv_sge sge = { 0, 300, 0x777 };
	struct ibv_send_wr bad = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 }, *which;

	world = transcript_open(&(struct world_config){ .type = IBV_QPT_RC });
	post_write(0);
	ck_assert_int_eq(ibv_post_send(world->end[0].qp, &bad, &which), 0);
	post_write(0);
	transcript_check(world, "> WRITE fla 0 at 4096+8 8 bytes\n< ACK  0 msn 1\n"
				"done 0\ndone 0 status 4\ndone 0 status 5\n");
	world_close(world);
}

static void drain(bool tell)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = tell };

	ck_assert_int_eq(
		ibv_modify_qp(world->end[0].qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
		0);
}

/* 10.3.1.5: once, when all started requests are acknowledged. */
TEST_LOOP(drained_queue_pair_reports_it_on_request, 0, 2)
{
	world = transcript_open(&(struct world_config){ .type = IBV_QPT_RC });
	post_write(0);
	drain(_i);
	transcript_check(world, _i ? "> WRITE fla 0 at 4096+8 8 bytes\n< ACK  0 msn 1\ndone 0\n"
				     "event 0: send queue drained\n"
				   : "> WRITE fla 0 at 4096+8 8 bytes\n< ACK  0 msn 1\ndone 0\n");
	post_write(0);
	transcript_check(world, "");
	world_close(world);
}

static uint32_t bind_window(struct ibv_mw *mw, unsigned int end)
{
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { .mw = mw,
			     .rkey = rkey,
			     .bind_info = { world->end[end].mr, 0, 64, IBV_ACCESS_REMOTE_WRITE } },
	}, *bad;

	ck_assert_int_eq(ibv_post_send(world->end[end].qp, &wr, &bad), 0);
	return rkey;
}

static void invalidate(enum ibv_wr_opcode opcode, unsigned int end, uint32_t rkey)
{
	struct ibv_send_wr wr = { .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED,
				  .invalidate_rkey = rkey },
			   *bad;

	ck_assert_int_eq(ibv_post_send(world->end[end].qp, &wr, &bad), 0);
}

static struct ibv_mw *open_with_window(void)
{
	struct ibv_mw *mw;

	world = transcript_open(&(struct world_config){ .type = IBV_QPT_RC });
	ck_assert_int_eq(ibv_rereg_mr(world->end[1].mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      WORLD_ACCESS | IBV_ACCESS_MW_BIND),
			 0);
	mw = ibv_alloc_mw(world->end[1].pd, IBV_MW_TYPE_2);
	ck_assert_ptr_nonnull(mw);
	return mw;
}

/* 10.6.6.3: no packet; 9.4.1.1.2: the peer's send ends the window. */
TEST(window_is_bound_and_ended_by_the_peer)
{
	struct ibv_mw *mw = open_with_window();
	uint32_t rkey = bind_window(mw, 1);

	transcript_check(world, "done 1\n");
	ck_assert_uint_eq(rkey, 0x202);
	world_receive(world, 1, 1, 0, 8);
	invalidate(IBV_WR_SEND_WITH_INV, 0, rkey);
	world_run(world);
	ck_assert_uint_eq(world->n_sent, 2);
	transcript_forget();
	world_receive(world, 1, 1, 0, 8);
	invalidate(IBV_WR_SEND_WITH_INV, 0, rkey);
	transcript_check(world, "> SEND flav 1\n< NAK  1 why 2 msn 1\n"
				"done 0\ndone 0 status 10\n"
				"done 1 received 0 invalidated 202\ndone 1 status 5\n"
				"event 1: local access violation work queue error\n");
	ck_assert_int_eq(ibv_dealloc_mw(mw), 0);
	world_close(world);
}

/* Invalidates after requests that use the key; an error if there is no window. */
TEST(window_is_ended_once)
{
	struct ibv_mw *mw = open_with_window();
	uint32_t rkey = bind_window(mw, 1);
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };

	transcript_check(world, "done 1\n");
	ck_assert_int_eq(world_post(world, 1, &wr, 0, 4096, 8), 0);
	invalidate(IBV_WR_LOCAL_INV, 1, rkey);
	invalidate(IBV_WR_LOCAL_INV, 1, rkey);
	ck_assert_int_eq(world_post(world, 1, &wr, 0, 4096, 8), 0);
	transcript_check(world, "< WRITE fla 0 at 4096+8 8 bytes\n> ACK  0 msn 1\n"
				"done 1\ndone 1\ndone 1 status 6\ndone 1 status 5\n");
	ck_assert_int_eq(ibv_dealloc_mw(mw), 0);
	world_close(world);
}
