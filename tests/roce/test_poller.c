/* SPDX-License-Identifier: BSD-2-Clause */
/* The handler of packets: the context's thread, or a program that polls; see poller.h. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/roce/world.h"
#include "tests/unit/test.h"
#include "tools/fabric/verbs/poller.h"

#define US	 1000
#define MS	 1000000
#define MANY	 200 /* a sufficient number of polls in vain */
#define TICK_MS	 5
#define BEGIN_NS 1000000000

static struct world *open_world(void)
{
	struct world *world = world_open(&(struct world_config){ .type = IBV_QPT_RC });

	world->now_ns = BEGIN_NS;
	world->end[0].context.wake_fd = eventfd(0, EFD_NONBLOCK);
	return world;
}

static void close_world(struct world *world)
{
	close(world->end[0].context.wake_fd);
	world_close(world);
}

static void poll_without_result(struct world *world, unsigned int times, uint64_t every_ns)
{
	struct ibv_wc wc;

	for (; times; times--, world->now_ns += every_ns)
		ck_assert_int_eq(ibv_poll_cq(world->end[0].cq, 1, &wc), 0);
}

static bool thread_is_woken(struct world *world)
{
	eventfd_t count;

	return eventfd_read(world->end[0].context.wake_fd, &count) == 0;
}

TEST(packets_are_left_to_a_program_that_polls)
{
	struct world *world = open_world();

	ck_assert(!poller_has_packets(&world->end[0].context));
	poll_without_result(world, MANY, US);
	ck_assert(poller_has_packets(&world->end[0].context));
	close_world(world);
}

TEST(packets_are_not_left_to_a_program_that_polls_rarely)
{
	struct world *world = open_world();

	poll_without_result(world, MANY, MS);
	ck_assert(!poller_has_packets(&world->end[0].context));
	close_world(world);
}

TEST(the_thread_is_woken_when_a_program_that_polled_waits)
{
	struct world *world = open_world();

	poll_without_result(world, MANY, US);
	ck_assert(!thread_is_woken(world));
	ck_assert_int_eq(ibv_req_notify_cq(world->end[0].cq, 0), 0);
	ck_assert(thread_is_woken(world));
	ck_assert(!poller_has_packets(&world->end[0].context));
	close_world(world);
}

TEST(thread_takes_over_when_the_program_stops_polling)
{
	struct world *world = open_world();

	poll_without_result(world, MANY, US);
	world->now_ns += TICK_MS * MS;
	poller_ticked(&world->end[0].context);
	ck_assert(poller_has_packets(
		&world->end[0].context)); /* the program polled since the last tick */
	world->now_ns += TICK_MS * MS;
	poller_ticked(&world->end[0].context);
	ck_assert(poller_has_packets(
		&world->end[0].context)); /* it may have waited for a processor */
	world->now_ns += TICK_MS * MS;
	poller_ticked(&world->end[0].context);
	ck_assert(!poller_has_packets(&world->end[0].context));
	close_world(world);
}

TEST(a_program_that_waited_for_a_processor_keeps_its_packets)
{
	struct world *world = open_world();
	unsigned int i;

	poll_without_result(world, MANY, US);
	for (i = 0; i < 20; i++) {
		world->now_ns += TICK_MS * MS;
		poller_ticked(&world->end[0].context);
		poll_without_result(world, i % 2 ? MANY : 0, US);
	}
	ck_assert(poller_has_packets(&world->end[0].context));
	close_world(world);
}

static void poll_no_more(struct world *world)
{
	unsigned int i;

	for (i = 0; i < 3; i++) {
		world->now_ns += TICK_MS * MS;
		poller_ticked(&world->end[0].context);
	}
}

TEST(a_program_that_polls_in_bursts_must_poll_more_the_next_time)
{
	struct world *world = open_world();
	unsigned int i;

	for (i = 0; i < 8; i++) {
		poll_without_result(world, 2 * MANY, US);
		poll_no_more(world);
	}
	poll_without_result(world, MANY, US);
	ck_assert(!poller_has_packets(&world->end[0].context));
	close_world(world);
}

static void find_one(struct world *world)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_wc wc;

	ck_assert_int_eq(world_post(world, 0, &wr, 0, 512, 16), 0);
	world_run_for(world, MS);
	ck_assert_int_eq(ibv_poll_cq(world->end[0].cq, 1, &wc), 1);
}

TEST(completion_leaves_the_packets_to_a_program_that_always_polls)
{
	struct world *world = open_world();

	poll_without_result(world, MANY, US);
	find_one(world);
	ck_assert(poller_has_packets(&world->end[0].context));
	close_world(world);
}

/* As ib_write_lat: it polls until its write is complete, then reads its memory. */
TEST(program_that_watched_its_memory_has_the_packets_only_while_polling)
{
	struct world *world = open_world();

	poll_without_result(world, MANY, US);
	poll_no_more(world);
	ck_assert(!poller_has_packets(&world->end[0].context));
	poll_without_result(world, 4, US);
	ck_assert(poller_has_packets(&world->end[0].context));
	find_one(world);
	ck_assert(!poller_has_packets(&world->end[0].context));
	poll_without_result(world, 4, US);
	ck_assert(poller_has_packets(&world->end[0].context));
	close_world(world);
}

static bool has_packets_after_many(struct world *world, bool thread_takes_some)
{
	unsigned int i;

	poll_without_result(world, MANY, US);
	poll_no_more(world);
	for (i = 0; i < MANY; i++) {
		poll_without_result(world, 4, US);
		find_one(world);
		if (thread_takes_some)
			poller_thread_took(&world->end[0].context);
	}
	return poller_has_packets(&world->end[0].context);
}

TEST(program_that_seemed_to_watch_its_memory_gets_the_packets_again)
{
	struct world *world = open_world();

	ck_assert(has_packets_after_many(world, false));
	close_world(world);
}

/* As fi_pingpong, which has done something else while it connected. */
TEST(program_that_polls_while_the_thread_takes_packets_gets_them_again)
{
	struct world *world = open_world();
	unsigned int i;

	poll_without_result(world, MANY, US);
	poll_no_more(world);
	for (i = 0; i < MANY; i++) {
		poll_without_result(world, 2, US);
		poller_thread_took(&world->end[0].context);
		find_one(world);
	}
	poll_without_result(world, MANY, US);
	find_one(world);
	ck_assert(poller_has_packets(&world->end[0].context));
	close_world(world);
}

TEST(program_that_repeatedly_watches_its_memory_does_not_get_the_packets)
{
	struct world *world = open_world();

	ck_assert(!has_packets_after_many(world, true));
	close_world(world);
}

TEST(program_without_a_cpu_gets_the_packets_again)
{
	struct world *world = open_world();
	unsigned int i;

	for (i = 0; i < 5; i++) {
		poll_without_result(world, MANY, US);
		poll_no_more(world);
	}
	for (i = 0; i < MANY; i++) {
		poll_without_result(world, 4, US);
		find_one(world);
		poller_thread_took(&world->end[0].context);
	}
	poll_without_result(world, 4, US);
	ck_assert(poller_has_packets(&world->end[0].context));
	close_world(world);
}
