/* SPDX-License-Identifier: BSD-2-Clause */
/* Synchronous ids (lib/sync/sync.h) by themselves: the tests post the events of the calls. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "lib/conn/listen.h"
#include "lib/engine/engine.h"
#include "lib/sync/event.h"
#include "lib/sync/sync.h"
#include "tests/unit/lib/fake_id.h"
#include "tests/unit/test.h"

static struct channel *channel;
static struct id *id;
static struct id *child; /* of id, if a test makes one */

static void destroy_id(struct id *old)
{
	ck_assert_int_eq(rdma_destroy_id(&old->pub), 0);
}

static struct id *new_id(struct channel *of)
{
	struct id *new = NULL;

	ck_assert_int_eq(id_new(of, RDMA_PS_TCP, &new), 0);
	new->destroy = destroy_id;
	return new;
}

static void setup(void)
{
	fake_verbs_begin();
	ck_assert_int_eq(channel_new(&channel), 0);
	id = new_id(channel);
	child = NULL;
	ck_assert_int_eq(rdma_migrate_id(&id->pub, NULL), 0);
}

static void end_id(struct id *ended)
{
	if (!ended)
		return;
	sync_drop_event(ended);
	if (ended->is_sync)
		channel_close(ended->channel);
	id_free(ended);
}

static void teardown(void)
{
	end_id(child);
	end_id(id);
	channel_close(channel);
}

FIXTURE(setup, teardown);

static void post(enum rdma_cm_event_type type, int status)
{
	engine_lock();
	id_notify(id, type, status);
	engine_unlock();
}

static void post_request(void)
{
	struct event *event = id_event(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0);

	ck_assert_ptr_nonnull(event);
	event->taken = listen_request_taken;
	child = new_id(id->channel);
	child->pub.qp_type = IBV_QPT_UD;
	child->path.gid.verbs = fake_device_list()->verbs;
	event->subject = child;
	event->pub.id = &child->pub;
	event->pub.listen_id = &id->pub;
	engine_lock();
	id_post(event);
	engine_unlock();
}

static int complete(void)
{
	return sync_complete(id, PTHREAD_CANCEL_DISABLE);
}

static void stop_blocking(void)
{
	fcntl(id->pub.channel->fd, F_SETFL, O_NONBLOCK);
}

static bool is_readable(const struct rdma_event_channel *of)
{
	struct pollfd poller = { .fd = of->fd, .events = POLLIN };

	return poll(&poller, 1, 0) == 1;
}

static const struct outcome {
	enum rdma_cm_event_type type;
	int status;
	int result;
} outcomes[] = {
	{ RDMA_CM_EVENT_ESTABLISHED, 0, 0 },
	{ RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, 0 },
	{ RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, -ETIMEDOUT },
	{ RDMA_CM_EVENT_REJECTED, 28, -ECONNREFUSED },
	{ RDMA_CM_EVENT_REJECTED, 0, 0 },
	{ RDMA_CM_EVENT_UNREACHABLE, 2, -2 },
};

TEST_LOOP(status_of_the_next_event_is_the_result, 0,
	  sizeof(outcomes) / sizeof(outcomes[0])) /* loop test: _i is the row */
{
	post(outcomes[_i].type, outcomes[_i].status);
	ck_assert_int_eq(complete(), outcomes[_i].result);
	ck_assert_int_eq(id->pub.event->event, outcomes[_i].type);
	ck_assert_int_eq(id->pub.event->status, outcomes[_i].status);
}

TEST(event_is_acknowledged_by_the_next)
{
	post(RDMA_CM_EVENT_ADDR_RESOLVED, -EAGAIN);
	complete();
	ck_assert_uint_eq(id->n_taken - id->n_acked, 1);
	post(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	complete();
	ck_assert_uint_eq(id->n_taken, 2);
	ck_assert_uint_eq(id->n_acked, 1);
}

TEST(nonblocking_call_is_eagain_without_an_event)
{
	stop_blocking();
	ck_assert_int_eq(complete(), -EAGAIN);
	post(RDMA_CM_EVENT_ESTABLISHED, 0);
	ck_assert_int_eq(complete(), 0);
}

TEST(nonblocking_call_never_completes_at_once)
{
	stop_blocking();
	post(RDMA_CM_EVENT_ESTABLISHED, 0);
	ck_assert_int_eq(sync_finish(id, false, PTHREAD_CANCEL_DISABLE), -EAGAIN);
	ck_assert_ptr_null(id->pub.event);
	ck_assert(is_readable(id->pub.channel));
	ck_assert_int_eq(complete(), 0);
}

TEST(nonblocking_call_uses_an_earlier_event)
{
	stop_blocking();
	post(RDMA_CM_EVENT_DISCONNECTED, 0);
	ck_assert_int_eq(sync_finish(id, true, PTHREAD_CANCEL_DISABLE), 0);
	ck_assert_int_eq(id->pub.event->event, RDMA_CM_EVENT_DISCONNECTED);
}

TEST(request_has_a_synchronous_id)
{
	struct rdma_cm_id *got;

	post_request();
	ck_assert_int_eq(rdma_get_request(&id->pub, &got), 0);
	ck_assert_ptr_eq(got, &child->pub);
	ck_assert(child->is_sync);
	ck_assert_ptr_ne(got->channel, id->pub.channel);
	ck_assert_int_eq(got->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	ck_assert_ptr_null(id->pub.event);
}

TEST(request_is_charged_to_the_listener_until_its_id_is_acknowledged)
{
	struct rdma_cm_id *got;

	post_request();
	ck_assert_int_eq(rdma_get_request(&id->pub, &got), 0);
	ck_assert_uint_eq(id->n_taken - id->n_acked, 1);
	ck_assert_uint_eq(child->n_taken, 0);
	sync_drop_event(child);
	ck_assert_uint_eq(id->n_acked, id->n_taken);
}

/* The id needs a descriptor. */
TEST(request_that_cannot_be_attached_is_dropped)
{
	struct rdma_cm_id *got = NULL;
	struct rlimit none = { .rlim_cur = 0 };

	post_request();
	getrlimit(RLIMIT_NOFILE, &none);
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	ck_assert_int_eq(rdma_get_request(&id->pub, &got), -1);
	ck_assert_int_eq(errno, EMFILE);
	child = NULL;
	none.rlim_cur = none.rlim_max;
	setrlimit(RLIMIT_NOFILE, &none);
	ck_assert_ptr_null(got);
	ck_assert_uint_eq(id->n_acked, id->n_taken);
}

TEST(asynchronous_listener_has_no_requests_to_get)
{
	struct rdma_cm_id *got;

	ck_assert_int_eq(rdma_migrate_id(&id->pub, &channel->pub), 0);
	ck_assert_int_eq(rdma_get_request(&id->pub, &got), -1);
	ck_assert_int_eq(errno, EINVAL);
}

TEST(other_event_is_stored_in_the_listener)
{
	struct rdma_cm_id *got = NULL;

	post(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	ck_assert_int_eq(rdma_get_request(&id->pub, &got), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_ptr_null(got);
	ck_assert_int_eq(id->pub.event->event, RDMA_CM_EVENT_DEVICE_REMOVAL);
}
