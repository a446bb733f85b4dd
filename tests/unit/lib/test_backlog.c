/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests beyond the backlog of their listener: lib/conn/backlog.c. */
#include <rdma/rdma_cma.h>

#include "tests/unit/lib/rig.h"
#include "tests/unit/test.h"

#define ID 0x51

static void set_up(void)
{
	rig_begin_with(&rig_reporting);
}

FIXTURE(set_up, NULL);

TEST(request_beyond_the_backlog_waits_for_room)
{
	struct id *listener = rig_listener(1);

	rig_request(ID);
	rig_request(ID + 1);
	ck_assert_uint_eq(listener->n_requests, 1);
	ck_assert_uint_eq(listener->n_waiting, 1);
	rig_expect(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	rig_expect(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	rig_expect_nothing();
}

TEST(taken_request_makes_room_for_another)
{
	struct id *listener = rig_listener(1);

	rig_request(ID);
	rig_expect(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	rig_request(ID + 1);
	ck_assert_uint_eq(listener->n_requests, 1);
	ck_assert_uint_eq(listener->n_waiting, 0);
}

TEST(requests_wait_in_order_of_arrival)
{
	struct rdma_cm_event *event;

	rig_listener(1);
	for (uint32_t i = 0; i < 3; i++)
		rig_request(ID + i);
	for (uint32_t i = 0; i < 3; i++) {
		event = rig_next();
		ck_assert_uint_eq(id_of(event->id)->conn->remote_comm_id, ID + i);
	}
}

TEST(request_that_waited_for_too_long_is_dropped_unanswered)
{
	unsigned int n_sent;

	rig_listener(1);
	rig_request(ID);
	rig_request(ID + 1);
	n_sent = fake_cmportd_count(PORTD_MAD);
	rig.now_ns += 1000 * CM_NS_PER_MS;
	rig_expect(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	rig_expect_nothing();
	ck_assert_uint_eq(fake_cmportd_count(PORTD_MAD), n_sent);
}

TEST(requests_wait_while_the_program_takes_others)
{
	rig_listener(1);
	for (uint32_t i = 0; i < 4; i++)
		rig_request(ID + i);
	for (int i = 0; i < 4; i++) {
		rig.now_ns += 90 * CM_NS_PER_MS;
		rig_expect(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	}
}

/* One is taken every 90 ms: those that have waited for 900 ms or more are dropped. */
TEST(request_older_than_its_retransmission_is_dropped)
{
	struct rdma_cm_event *event;
	int n_taken = 0;

	rig_listener(1);
	for (uint32_t i = 0; i < 15; i++)
		rig_request(ID + i);
	while ((event = rig_next())) {
		rdma_ack_cm_event(event);
		rig.now_ns += 90 * CM_NS_PER_MS;
		n_taken++;
	}
	ck_assert_int_eq(n_taken, 11);
}

TEST(excess_waiting_requests_are_dropped)
{
	struct id *listener = rig_listener(1);
	unsigned int n_waiting;

	for (uint32_t i = 0; i < 200; i++)
		rig_request(ID + i);
	n_waiting = listener->n_waiting;
	ck_assert_uint_lt(n_waiting, 199);
	rig_request(ID + 200);
	ck_assert_uint_eq(listener->n_waiting, n_waiting);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_MAD), 0);
}

TEST(waiting_requests_of_a_destroyed_listener_are_dropped)
{
	struct id *listener = rig_listener(1);

	rig_request(ID);
	rig_request(ID + 1);
	ck_assert_int_eq(rdma_destroy_id(&listener->pub), 0);
	ck_assert(list_is_empty(&engine_held()->ids));
	ck_assert_uint_eq(engine_held()->core.n_conns, 0);
}
