/* SPDX-License-Identifier: BSD-2-Clause */
/* Effects of destroying an id: lib/conn/id_life.c. */
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <sched.h>

#include "tests/unit/lib/rig.h"
#include "tests/unit/steps.h"
#include "tests/unit/test.h"

static void set_up(void)
{
	rig_begin_with(&rig_reporting);
}

FIXTURE(set_up, NULL);

static void destroy(struct id *id)
{
	ck_assert_int_eq(rdma_destroy_id(&id->pub), 0);
}

TEST(destroyed_id_is_not_in_the_engines_list)
{
	destroy(rig_id(RDMA_PS_TCP, ID_IDLE));
	ck_assert(list_is_empty(&engine_held()->ids));
}

TEST(destroying_a_requesting_id_rejects_by_timeout)
{
	struct rdma_conn_param param = { .qp_num = 1 };
	struct id *id = rig_routed(RDMA_PS_TCP);

	ck_assert_int_eq(rdma_connect(&id->pub, &param), 0);
	destroy(id);
	ck_assert_uint_eq(fake_cmportd_message(CM_ATTR_REJ).rej.reason, CM_REJ_TIMEOUT);
}

TEST(destroying_a_connected_id_disconnects)
{
	destroy(rig_connected());
	fake_cmportd_message(CM_ATTR_DREQ);
}

TEST(destroying_a_requested_id_rejects)
{
	rig_listener(1);
	destroy(rig_requested(1));
	ck_assert_uint_eq(fake_cmportd_message(CM_ATTR_REJ).rej.reason, CM_REJ_CONSUMER);
}

TEST(port_number_of_a_destroyed_id_is_released)
{
	union addr any = rig_own(0);
	struct id *id = rig_id(RDMA_PS_TCP, ID_IDLE);

	ck_assert_int_eq(rdma_bind_addr(&id->pub, &any.sa), 0);
	destroy(id);
	ck_assert_uint_eq(fake_cmportd_last(PORTD_RELEASE)->claim.local_port, FAKE_FIRST_PORT);
}

TEST(comm_id_is_freed_after_its_last_message)
{
	struct rdma_conn_param param = { .qp_num = 1 };
	struct id *id = rig_routed(RDMA_PS_TCP);
	uint32_t comm_id;

	ck_assert_int_eq(rdma_connect(&id->pub, &param), 0);
	comm_id = id->conn->local_comm_id;
	destroy(id);
	ck_assert_uint_eq(fake_cmportd_last(PORTD_CLOSE)->close.local_comm_id, comm_id);
	ck_assert_str_eq(portd_type_str(cmportd.said[cmportd.n_said - 1].type), "CLOSE");
}

TEST(events_of_a_destroyed_id_are_dropped)
{
	struct id *gone = rig_id(RDMA_PS_TCP, ID_IDLE), *other = rig_id(RDMA_PS_TCP, ID_IDLE);

	engine_lock();
	id_notify(gone, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	id_notify(other, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	engine_unlock();
	destroy(gone);
	rig_expect(RDMA_CM_EVENT_ADDR_CHANGE, 0);
	rig_expect_nothing();
}

static struct id *withdrawn;
static struct list withdrawn_events;

static void withdraw(void)
{
	channel_withdraw(rig.channel, withdrawn, NULL, &withdrawn_events);
}

/* The measured id has one unread event; @n_others events of another id are queued too. */
static unsigned long steps_beside(unsigned int n_others)
{
	struct id *other = rig_id(RDMA_PS_TCP, ID_IDLE);

	withdrawn = rig_id(RDMA_PS_TCP, ID_IDLE);
	list_init(&withdrawn_events);
	engine_lock();
	while (n_others--)
		id_notify(other, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	id_notify(withdrawn, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	engine_unlock();
	return steps_of(withdraw);
}

TEST(events_of_others_cost_a_destroyed_id_no_steps)
{
	unsigned long few = steps_beside(1), many = steps_beside(1000);

	ck_assert_msg(many <= few + few / 10, "%lu steps beside 1, %lu beside 1000", few, many);
}

TEST(untaken_requests_of_a_destroyed_listener_are_rejected)
{
	struct id *listener = rig_listener(1);
	struct cm_msg req = rig_req(1);

	rig_receive(&req);
	destroy(listener);
	fake_cmportd_message(CM_ATTR_REJ);
	ck_assert(list_is_empty(&engine_held()->ids));
	rig_expect_nothing();
}

TEST(destroyed_listener_gets_no_more_requests)
{
	struct cm_msg req = rig_req(1);

	destroy(rig_listener(1));
	rig_receive(&req);
	rig_expect_nothing();
}

TEST(reference_to_the_port_is_released)
{
	unsigned int before = rig.port->refs;

	destroy(rig_routed(RDMA_PS_TCP));
	ck_assert_uint_eq(rig.port->refs, before);
}

static void *destroy_in_thread(void *id)
{
	destroy(id);
	return NULL;
}

TEST(destroying_waits_for_taken_events)
{
	struct id *id = rig_id(RDMA_PS_TCP, ID_IDLE);
	struct rdma_cm_event *event;
	pthread_t thread;

	engine_lock();
	id_notify(id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	engine_unlock();
	event = rig_next();
	pthread_create(&thread, NULL, destroy_in_thread, id);
	while (!engine_id_is(id, ID_DESTROYING))
		sched_yield();
	ck_assert_int_eq(pthread_tryjoin_np(thread, NULL), EBUSY);
	rdma_ack_cm_event(event);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
