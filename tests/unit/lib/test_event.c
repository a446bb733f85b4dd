/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of ids, made, taken and acknowledged: lib/event/id_event.c and lib/sync/event.c. */
#include "lib/sync/event.h"

#include <rdma/rdma_cma.h>

#include "tests/unit/lib/rig.h"
#include "tests/unit/test.h"

static struct id *id;

static void set_up(void)
{
	rig_begin();
	id = rig_id(RDMA_PS_TCP, ID_IDLE);
}

FIXTURE(set_up, NULL);

static void notify(enum rdma_cm_event_type type, int (*taken)(struct event *event))
{
	engine_lock();
	id_notify_taken(id, type, 0, taken);
	engine_unlock();
}

static unsigned int n_taken;

static int count_taken(struct event *event)
{
	ck_assert_ptr_eq(event->subject, id);
	n_taken++;
	return 0;
}

TEST(effect_of_an_event_is_applied_when_it_is_taken)
{
	notify(RDMA_CM_EVENT_ESTABLISHED, count_taken);
	ck_assert_uint_eq(n_taken, 0);
	rig_expect(RDMA_CM_EVENT_ESTABLISHED, 0);
	ck_assert_uint_eq(n_taken, 1);
}

static int refuse(struct event *event)
{
	id_credit(event->owner, event);
	return -EMFILE;
}

TEST(event_whose_effect_fails_is_an_error_of_the_call)
{
	struct rdma_cm_event *event;

	notify(RDMA_CM_EVENT_CONNECT_REQUEST, refuse);
	rig_expect_errno(rdma_get_cm_event(&rig.channel->pub, &event), EMFILE);
}

static int spoil(struct event *event)
{
	id_event_spoil(event, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
	return 0;
}

TEST(event_may_become_an_error_while_it_is_taken)
{
	notify(RDMA_CM_EVENT_ADDR_RESOLVED, spoil);
	rig_expect(RDMA_CM_EVENT_ADDR_ERROR, -1);
}

static int spoil_by_driver(struct event *event)
{
	id_event_spoil(event, RDMA_CM_EVENT_CONNECT_ERROR, ENOSPC);
	return 0;
}

TEST(error_of_a_driver_is_shown_as_it_is)
{
	notify(RDMA_CM_EVENT_CONNECT_RESPONSE, spoil_by_driver);
	rig_expect(RDMA_CM_EVENT_CONNECT_ERROR, ENOSPC);
}

TEST(connect_error_suppresses_later_errors)
{
	id->connect_error = true;
	notify(RDMA_CM_EVENT_REJECTED, NULL);
	notify(RDMA_CM_EVENT_DISCONNECTED, NULL);
	notify(RDMA_CM_EVENT_TIMEWAIT_EXIT, NULL);
	rig_expect(RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	rig_expect_nothing();
	ck_assert_uint_eq(id->n_acked, id->n_taken);
}

TEST(events_are_counted_when_they_are_taken_and_acknowledged)
{
	struct rdma_cm_event *event;

	notify(RDMA_CM_EVENT_ESTABLISHED, NULL);
	event = rig_next();
	ck_assert_uint_eq(id->n_taken, 1);
	ck_assert_uint_eq(id->n_acked, 0);
	rdma_ack_cm_event(event);
	ck_assert_uint_eq(id->n_acked, 1);
}

TEST(withdrawn_request_destroys_its_new_id)
{
	struct id *child = rig_id(RDMA_PS_TCP, ID_CONNECT);
	struct event *event = id_event(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	struct list withdrawn;

	event->subject = child;
	engine_lock();
	id_post(event);
	engine_unlock();
	list_init(&withdrawn);
	channel_withdraw(rig.channel, id, NULL, &withdrawn);
	id_drop_events(&withdrawn);
	ck_assert_ptr_eq(engine_held()->ids.next, &id->link);
	ck_assert_ptr_eq(engine_held()->ids.prev, &id->link);
}

TEST(events_are_withdrawn_by_owner)
{
	struct id *child = rig_id(RDMA_PS_TCP, ID_CONNECT);
	struct event *event = id_event(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0);

	event->subject = child;
	engine_lock();
	id_post(event);
	id_notify(id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	engine_unlock();
	ck_assert_ptr_eq(channel_withdraw_request(rig.channel, child), event);
	ck_assert_ptr_null(channel_withdraw_request(rig.channel, child));
	rig_expect(RDMA_CM_EVENT_ADDR_CHANGE, 0);
	rig_expect_nothing();
}

/* --- without memory ---------------------------------------------------------- */

TEST(event_without_memory_uses_the_ids_spare)
{
	rig.has_no_memory = true;
	notify(RDMA_CM_EVENT_ESTABLISHED, NULL);
	rig_expect(RDMA_CM_EVENT_ESTABLISHED, 0);
}

TEST(spare_is_returned_by_the_acknowledgement)
{
	rig.has_no_memory = true;
	notify(RDMA_CM_EVENT_ESTABLISHED, NULL);
	rig_expect(RDMA_CM_EVENT_ESTABLISHED, 0);
	notify(RDMA_CM_EVENT_DISCONNECTED, NULL);
	rig_expect(RDMA_CM_EVENT_DISCONNECTED, 0);
}

TEST(second_event_without_memory_is_lost)
{
	rig.has_no_memory = true;
	notify(RDMA_CM_EVENT_ESTABLISHED, NULL);
	notify(RDMA_CM_EVENT_DISCONNECTED, NULL);
	rig_expect(RDMA_CM_EVENT_ESTABLISHED, 0);
	rig_expect_nothing();
}

TEST(user_event_does_not_use_the_spare)
{
	rig.has_no_memory = true;
	rig_expect_errno(rdma_write_cm_event(&id->pub, RDMA_CM_EVENT_USER, 0, 0), ENOMEM);
	ck_assert_ptr_nonnull(id->spare);
}
