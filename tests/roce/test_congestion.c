/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of congestion.c: the window of a requester (RFC 5681) and its estimate of the round
 * trip (RFC 6298), in packets, with the parameters of tests/roce/world.h.
 */
#include "tools/fabric/verbs/congestion.h"

#include "tests/roce/world.h"
#include "tests/unit/test.h"

#define START	   16 /* packets of 256 bytes: initial, minimum and maximum window */
#define LEAST	   2
#define MOST	   64
#define EARLY_NS   200000
#define TIMEOUT_NS (4096ull << 10)

static struct world *world;
static struct fab_qp *qp;
static struct fab_send_queue *sq;

static void open_world(void)
{
	world = world_open(&(struct world_config){ .type = IBV_QPT_RC });
	qp = to_qp(world->end[0].qp);
	sq = &qp->sq;
}

/* Acknowledges so many packets, sent now for the first time, after a while. */
static void send_and_acknowledge(uint32_t n, uint64_t ns)
{
	struct fab_packet packet = { .op = FAB_OP_WRITE, .flags = FAB_ASK_ACK };

	sq->send_psn = sq->begun_psn = sq->una;
	congestion_sent(qp, &packet);
	sq->send_psn = sq->begun_psn = sq->una + n;
	world->now_ns += ns;
	congestion_acked(qp, sq->una + n);
	sq->una += n;
}

/* Loses all outstanding packets, after @n packets had been sent. */
static void lose(uint32_t n, bool late)
{
	sq->send_psn = sq->begun_psn = sq->una + n;
	congestion_lost(qp, late);
}

TEST(window_doubles_in_a_round_trip_up_to_its_limit)
{
	open_world();
	ck_assert_uint_eq(sq->window, START);
	send_and_acknowledge(START, 1);
	ck_assert_uint_eq(sq->window, 2 * START);
	send_and_acknowledge(2 * START - 1, 1);
	ck_assert_uint_eq(sq->window, MOST - 1);
	send_and_acknowledge(MOST, 1);
	ck_assert_uint_eq(sq->window, MOST);
	world_close(world);
}

TEST(window_grows_by_one_in_a_round_trip_after_a_loss)
{
	open_world();
	lose(START, false);
	ck_assert_uint_eq(sq->window, START / 2);
	send_and_acknowledge(START / 2 - 1, 1);
	ck_assert_uint_eq(sq->window, START / 2);
	send_and_acknowledge(1, 1);
	ck_assert_uint_eq(sq->window, START / 2 + 1);
	send_and_acknowledge(START / 2, 1);
	ck_assert_uint_eq(sq->window, START / 2 + 1);
	send_and_acknowledge(1, 1);
	ck_assert_uint_eq(sq->window, START / 2 + 2);
	world_close(world);
}

TEST(losses_of_one_window_count_once)
{
	open_world();
	lose(START, false);
	lose(START, false);
	sq->una += START - 1;
	lose(1, false);
	ck_assert_uint_eq(sq->window, START / 2);
	sq->una++;
	lose(1, false);
	ck_assert_uint_eq(sq->window, START / 4);
	world_close(world);
}

TEST(window_is_never_smaller_than_two_packets)
{
	unsigned int i;

	open_world();
	for (i = 0; i < 5; i++) {
		lose(1, false);
		sq->una++;
	}
	ck_assert_uint_eq(sq->window, LEAST);
	ck_assert_uint_eq(sq->window_slow, LEAST);
	world_close(world);
}

/* It doubles again, up to half of its previous size. */
TEST(timeout_resets_the_window)
{
	open_world();
	lose(START, true);
	ck_assert_uint_eq(sq->window, LEAST);
	send_and_acknowledge(LEAST, 1);
	ck_assert_uint_eq(sq->window, 2 * LEAST);
	send_and_acknowledge(2 * LEAST, 1);
	ck_assert_uint_eq(sq->window, START / 2);
	send_and_acknowledge(START / 2, 1);
	ck_assert_uint_eq(sq->window, START / 2 + 1);
	world_close(world);
}

TEST(second_timeout_keeps_the_growth_limit)
{
	open_world();
	lose(START, false);
	lose(START, true);
	ck_assert_uint_eq(sq->window, LEAST);
	ck_assert_uint_eq(sq->window_slow, START / 2);
	world_close(world);
}

TEST(loss_resets_the_progress_of_the_window)
{
	open_world();
	lose(START, false);
	send_and_acknowledge(START, 1); /* beyond the lost packets: eight of nine make one more */
	ck_assert_uint_eq(sq->window, START / 2 + 1);
	send_and_acknowledge(START / 2, 1);
	lose(1, false);
	ck_assert_uint_eq(sq->window, START / 4);
	send_and_acknowledge(START / 4 - 1, 1);
	ck_assert_uint_eq(sq->window, START / 4);
	world_close(world);
}

TEST(large_window_is_halved_while_round_trips_take_a_quarter_of_the_timeout)
{
	open_world();
	send_and_acknowledge(1, 1048576);
	send_and_acknowledge(START, 1048576);
	ck_assert_uint_eq(sq->window, 2 * START + 1);
	send_and_acknowledge(1, 1048592);
	ck_assert_uint_eq(sq->window, START + 1);
	send_and_acknowledge(START - 2, 1048592);
	ck_assert_uint_eq(sq->window, START + 1);
	send_and_acknowledge(3, 1048592);
	ck_assert_uint_eq(sq->window, START + 2);
	world_close(world);
}

TEST(window_is_large_from_twice_its_start)
{
	open_world();
	send_and_acknowledge(START - 1, 1048592);
	ck_assert_uint_eq(sq->window, 2 * START - 1);
	send_and_acknowledge(1, 1048592);
	ck_assert_uint_eq(sq->window, START);
	world_close(world);
}

/* RFC 6298, 2.2 and 2.3. */
TEST(early_timeout_follows_the_round_trips)
{
	open_world();
	ck_assert_uint_eq(congestion_patience_ns(qp), TIMEOUT_NS);
	send_and_acknowledge(1, 800000);
	ck_assert_uint_eq(congestion_patience_ns(qp), 800000 + 4 * 400000);
	send_and_acknowledge(1, 800000);
	ck_assert_uint_eq(congestion_patience_ns(qp), 800000 + 4 * 300000);
	send_and_acknowledge(1, 1600000); /* 800 us more */
	ck_assert_uint_eq(congestion_patience_ns(qp), 900000 + 4 * 425000);
	send_and_acknowledge(
		1, 100000); /* For packets larger than that, and before the path MTU is known. */
	ck_assert_uint_eq(congestion_patience_ns(qp), 800000 + 4 * 518750);
	world_close(world);
}

TEST(early_timeout_has_a_minimum)
{
	open_world();
	send_and_acknowledge(1, 1000);
	ck_assert_uint_eq(congestion_patience_ns(qp), EARLY_NS);
	world_close(world);
}

static uint64_t measured_since(uint8_t op, uint32_t flags, uint64_t begun_psn)
{
	struct fab_packet packet = { .op = op, .flags = flags };
	uint64_t measured_ns;

	sq->send_psn = 5;
	sq->begun_psn = begun_psn;
	world->now_ns++;
	congestion_sent(qp, &packet);
	measured_ns = sq->measured_ns;
	sq->measured_ns = 0;
	return measured_ns;
}

TEST(first_transmission_with_an_immediate_answer_is_measured)
{
	open_world();
	ck_assert_uint_eq(measured_since(FAB_OP_WRITE, FAB_ASK_ACK, 5), world->now_ns);
	ck_assert_uint_eq(measured_since(FAB_OP_READ, 0, 5), world->now_ns);
	ck_assert_uint_eq(measured_since(FAB_OP_WRITE, FAB_FIRST, 5), 0);
	ck_assert_uint_eq(measured_since(FAB_OP_WRITE, FAB_ASK_ACK, 6), 0);
	world_close(world);
}

TEST(one_packet_at_a_time_is_measured_until_it_is_acknowledged)
{
	struct fab_packet packet = { .op = FAB_OP_WRITE, .flags = FAB_ASK_ACK };

	open_world();
	sq->send_psn = sq->begun_psn = 1;
	congestion_sent(qp, &packet);
	sq->send_psn = sq->begun_psn = 2;
	world->now_ns += 1000000;
	congestion_sent(qp, &packet);
	congestion_acked(qp, 1);
	ck_assert_uint_eq(congestion_patience_ns(qp), TIMEOUT_NS);
	congestion_acked(qp, 2);
	ck_assert_uint_eq(congestion_patience_ns(qp), 3 * 1000000);
	ck_assert_uint_eq(sq->measured_ns, 0);
	world_close(world);
}

TEST(new_psns_restart_the_measurement)
{
	open_world();
	send_and_acknowledge(1, 1000000);
	lose(START, true);
	sq->measured_ns = 1;
	sq->window_progress = 1;
	sq->una = 1000;
	congestion_reset(qp);
	ck_assert_uint_eq(sq->window, START);
	ck_assert_uint_eq(sq->window_slow, MOST);
	ck_assert_uint_eq(sq->window_progress, 0);
	ck_assert_uint_eq(sq->recover_psn, 1000);
	ck_assert_uint_eq(sq->measured_ns, 0);
	ck_assert_uint_eq(congestion_patience_ns(qp), TIMEOUT_NS);
	world_close(world);
}

/* Where a packet is larger than that, and before the path MTU is known. */
TEST(any_number_of_bytes_is_at_least_one_packet)
{
	open_world();
	ck_assert_uint_eq(congestion_psns(qp, 1024), 4);
	ck_assert_uint_eq(congestion_psns(qp, 100), 1);
	qp->payload_bytes = 0;
	ck_assert_uint_eq(congestion_psns(qp, 1024), 1);
	world_close(world);
}
