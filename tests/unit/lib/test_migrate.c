/* SPDX-License-Identifier: BSD-2-Clause */
/* An id moves between channels with its events: lib/conn/migrate.c. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>

#include "lib/sync/sync.h"
#include "tests/unit/lib/rig.h"
#include "tests/unit/test.h"

static struct channel *other;

static void set_up(void)
{
	rig_begin_with(&rig_reporting);
	ck_assert_int_eq(channel_new(&other), 0);
	fcntl(other->pub.fd, F_SETFL, O_NONBLOCK);
}

FIXTURE(set_up, NULL);

static void move_to(struct id *id, struct channel *to)
{
	ck_assert_int_eq(rdma_migrate_id(&id->pub, to ? &to->pub : NULL), 0);
}

static struct id *new_id(void)
{
	return rig_id(RDMA_PS_TCP, ID_IDLE);
}

static struct id *new_sync_id(void)
{
	struct id *id = new_id();

	move_to(id, NULL);
	return id;
}

static void post(struct id *id, enum rdma_cm_event_type type)
{
	engine_lock();
	id_notify(id, type, 0);
	engine_unlock();
}

/* Return: the next event of the channel, not acknowledged. */
static struct rdma_cm_event *next_of(struct channel *channel)
{
	struct rdma_cm_event *event;

	ck_assert_int_eq(rdma_get_cm_event(&channel->pub, &event), 0);
	return event;
}

static void expect_at(struct channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = next_of(channel);

	ck_assert_str_eq(rdma_event_str(event->event), rdma_event_str(type));
	rdma_ack_cm_event(event);
}

static void *move_to_other(void *id)
{
	move_to(id, other);
	return NULL;
}

/* --- between channels -------------------------------------------------------- */

TEST(unread_events_move_in_their_order)
{
	struct id *id = new_id();

	post(id, RDMA_CM_EVENT_ESTABLISHED);
	post(id, RDMA_CM_EVENT_DISCONNECTED);
	move_to(id, other);
	rig_expect_nothing();
	expect_at(other, RDMA_CM_EVENT_ESTABLISHED);
	expect_at(other, RDMA_CM_EVENT_DISCONNECTED);
}

TEST(events_of_other_ids_stay)
{
	struct id *id = new_id(), *stays = new_id();

	post(stays, RDMA_CM_EVENT_ESTABLISHED);
	post(id, RDMA_CM_EVENT_DISCONNECTED);
	move_to(id, other);
	rig_expect(RDMA_CM_EVENT_ESTABLISHED, 0);
	ck_assert_ptr_eq(stays->pub.channel, &rig.channel->pub);
}

TEST(new_channel_is_readable_if_events_moved)
{
	struct pollfd poller = { .fd = other->pub.fd, .events = POLLIN };
	struct id *id = new_id();

	post(id, RDMA_CM_EVENT_ESTABLISHED);
	move_to(id, other);
	ck_assert_int_eq(poll(&poller, 1, 0), 1);
}

TEST(later_events_go_to_the_new_channel)
{
	struct id *id = new_id();

	move_to(id, other);
	post(id, RDMA_CM_EVENT_ESTABLISHED);
	rig_expect_nothing();
	expect_at(other, RDMA_CM_EVENT_ESTABLISHED);
}

TEST(migration_waits_for_events_to_be_acknowledged)
{
	struct id *id = new_id();
	struct rdma_cm_event *event;
	pthread_t thread;

	post(id, RDMA_CM_EVENT_ESTABLISHED);
	event = rig_next();
	pthread_create(&thread, NULL, move_to_other, id);
	ck_assert_int_eq(pthread_tryjoin_np(thread, NULL), EBUSY);
	rdma_ack_cm_event(event);
	pthread_join(thread, NULL);
	ck_assert_ptr_eq(id->pub.channel, &other->pub);
}

TEST(migrating_null_is_EINVAL)
{
	rig_expect_errno(rdma_migrate_id(NULL, &other->pub), EINVAL);
}

/* --- listeners --------------------------------------------------------------- */

TEST(requests_move_with_their_listener_and_their_ids)
{
	struct id *listener = rig_listener(1);
	struct rdma_cm_event *event;

	rig_request(1);
	rig_request(2); /* waits for room */
	move_to(listener, other);
	for (int i = 0; i < 2; i++) {
		event = next_of(other);
		ck_assert_ptr_eq(event->id->channel, &other->pub);
		rdma_ack_cm_event(event);
	}
}

/* --- synchronous ids ----------------------------------------------------------- */

TEST(id_without_a_channel_is_synchronous)
{
	struct id *id = new_sync_id();

	ck_assert(id_is_sync(id));
	ck_assert_ptr_ne(id->pub.channel, &rig.channel->pub);
}

TEST(synchronous_id_with_a_channel_becomes_asynchronous)
{
	struct id *id = new_sync_id();
	int own = id->pub.channel->fd;

	move_to(id, other);
	ck_assert(!id_is_sync(id));
	rig_expect_errno(fcntl(own, F_GETFD), EBADF);
}

TEST(synchronous_id_cannot_become_synchronous_again)
{
	struct id *id = new_sync_id();
	struct rdma_event_channel *own = id->pub.channel;

	rig_expect_errno(rdma_migrate_id(&id->pub, NULL), EINVAL);
	ck_assert_ptr_eq(id->pub.channel, own);
}

TEST(id_cannot_migrate_to_a_synchronous_ids_channel)
{
	struct id *id = new_sync_id();

	rig_expect_errno(rdma_migrate_id(&id->pub, id->pub.channel), EINVAL);
}

TEST(migration_acknowledges_the_event_of_a_synchronous_id)
{
	struct id *id = new_sync_id();

	post(id, RDMA_CM_EVENT_ADDR_RESOLVED);
	ck_assert_int_eq(sync_complete(id, PTHREAD_CANCEL_DISABLE), 0);
	move_to(id, other);
	ck_assert_ptr_null(id->pub.event);
	ck_assert_uint_eq(id->n_acked, id->n_taken);
}

TEST(request_of_a_migrated_synchronous_listener_can_be_got)
{
	struct id *listener = rig_listener(1);
	struct rdma_cm_id *got;

	rig_request(1);
	move_to(listener, NULL);
	ck_assert_int_eq(rdma_get_request(&listener->pub, &got), 0);
	ck_assert(id_is_sync(id_of(got)));
}
