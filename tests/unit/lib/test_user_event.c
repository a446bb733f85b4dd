/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_write_cm_event() (lib/sync/user_event.c), with ids without a device, and events of the test.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/conn/upcalls.h"
#include "lib/engine/engine.h"
#include "tests/unit/lib/threads.h"
#include "tests/unit/test.h"

#define N_SIGNALS 5

static struct channel *channel;
static struct id *id;

static struct id *new_id(void)
{
	struct engine *engine;
	struct id *made;

	ck_assert_int_eq(id_new(channel, RDMA_PS_TCP, &made), 0);
	engine = engine_lock();
	list_append(&engine->ids, &made->link);
	engine_unlock();
	return made;
}

static void setup(void)
{
	ck_assert_int_eq(upcalls_start(), 0);
	ck_assert_int_eq(channel_new(&channel), 0);
	fcntl(channel->pub.fd, F_SETFL, O_NONBLOCK);
	id = new_id();
}

static void teardown(void)
{
	if (id)
		rdma_destroy_id(&id->pub);
	channel_close(channel);
}

FIXTURE(setup, teardown);

static void write_user(struct id *of, int status, uint64_t arg)
{
	ck_assert_int_eq(rdma_write_cm_event(&of->pub, RDMA_CM_EVENT_USER, status, arg), 0);
}

static struct rdma_cm_event *take(void)
{
	struct rdma_cm_event *event;

	ck_assert_int_eq(rdma_get_cm_event(&channel->pub, &event), 0);
	return event;
}

static bool is_readable(void)
{
	struct pollfd poller = { .fd = channel->pub.fd, .events = POLLIN };

	return poll(&poller, 1, 0) == 1;
}

TEST(event_is_read_as_it_was_written)
{
	struct rdma_cm_event *event;

	write_user(id, -77, UINT64_MAX - 1);
	event = take();
	ck_assert_int_eq(event->event, RDMA_CM_EVENT_USER);
	ck_assert_ptr_eq(event->id, &id->pub);
	ck_assert_ptr_null(event->listen_id);
	ck_assert_int_eq(event->status, -77);
	ck_assert_uint_eq(event->param.arg, UINT64_MAX - 1);
	rdma_ack_cm_event(event);
}

TEST(user_events_keep_their_place_among_others)
{
	const enum rdma_cm_event_type order[] = { RDMA_CM_EVENT_USER, RDMA_CM_EVENT_ADDR_CHANGE,
						  RDMA_CM_EVENT_USER };
	struct rdma_cm_event *event;
	unsigned int i;

	write_user(id, 0, 0);
	engine_lock();
	id_notify(id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	engine_unlock();
	write_user(id, 0, 2);
	for (i = 0; i < 3; i++) {
		event = take();
		ck_assert_int_eq(event->event, order[i]);
		rdma_ack_cm_event(event);
	}
}

TEST(channel_is_readable_while_a_user_event_waits)
{
	ck_assert(!is_readable());
	write_user(id, 0, 0);
	ck_assert(is_readable());
	rdma_ack_cm_event(take());
	ck_assert(!is_readable());
}

static void expect_refusal(int type)
{
	ck_assert_int_eq(rdma_write_cm_event(&id->pub, (enum rdma_cm_event_type)type, 0, 0), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert(!is_readable());
}

TEST_LOOP(types_of_the_library_are_refused, 0, RDMA_CM_EVENT_USER)
{
	expect_refusal(_i);
}

TEST_LOOP(unknown_types_are_refused, RDMA_CM_EVENT_INTERNAL, 32)
{
	expect_refusal(_i);
}

TEST(null_id_is_refused)
{
	ck_assert_int_eq(rdma_write_cm_event(NULL, RDMA_CM_EVENT_USER, 0, 0), -1);
	ck_assert_int_eq(errno, EINVAL);
}

TEST(untaken_user_events_are_freed_with_their_id)
{
	struct id *other = new_id();
	struct rdma_cm_event *event;

	write_user(other, 0, 1);
	write_user(id, 0, 2);
	write_user(other, 0, 3);
	ck_assert_int_eq(rdma_destroy_id(&other->pub), 0);
	event = take();
	ck_assert_uint_eq(event->param.arg, 2);
	rdma_ack_cm_event(event);
	ck_assert(!is_readable());
}

static void *destroy(void *arg)
{
	rdma_destroy_id(arg);
	return NULL;
}

static struct id *being_destroyed(pthread_t *thread, struct rdma_cm_event **held)
{
	struct id *gone = id;

	write_user(id, 0, 0);
	*held = take();
	id = NULL;
	ck_assert_int_eq(pthread_create(thread, NULL, destroy, &gone->pub), 0);
	while (!engine_id_is(gone, ID_DESTROYING))
		sched_yield();
	return gone;
}

TEST(destroying_waits_for_a_taken_user_event)
{
	struct rdma_cm_event *event;
	pthread_t thread;

	being_destroyed(&thread, &event);
	ck_assert_int_eq(pthread_tryjoin_np(thread, NULL), EBUSY);
	rdma_ack_cm_event(event);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

static atomic_uint n_handled;

static void handle(int number)
{
	(void)number;
	n_handled++;
}

static void handle_signals(void)
{
	struct sigaction action = { .sa_handler = handle }; /* without SA_RESTART */

	sigaction(SIGUSR1, &action, NULL);
}

TEST(signals_do_not_end_the_wait_for_acknowledgements)
{
	struct rdma_cm_event *event;
	pthread_t thread;
	unsigned int i;

	handle_signals();
	being_destroyed(&thread, &event);
	for (i = 0; i < N_SIGNALS; i++) {
		pthread_kill(thread, SIGUSR1);
		while (n_handled <= i)
			sched_yield();
		threads_wait_asleep();
		ck_assert_int_eq(pthread_tryjoin_np(thread, NULL), EBUSY);
	}
	rdma_ack_cm_event(event);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

TEST(id_being_destroyed_refuses_events)
{
	struct rdma_cm_event *event;
	pthread_t thread;
	struct id *gone = being_destroyed(&thread, &event);

	ck_assert_int_eq(rdma_write_cm_event(&gone->pub, RDMA_CM_EVENT_USER, 0, 0), -1);
	ck_assert_int_eq(errno, EINVAL);
	rdma_ack_cm_event(event);
	pthread_join(thread, NULL);
	ck_assert(!is_readable());
}

#define N_WRITERS 4
#define N_EACH	  500

static void *write_many(void *arg)
{
	uint64_t who = (uintptr_t)arg, i;

	for (i = 0; i < N_EACH; i++)
		write_user(id, 0, who << 32 | i);
	return NULL;
}

TEST(events_of_many_threads_arrive_in_order_per_thread)
{
	uint64_t next[N_WRITERS] = { 0 };
	pthread_t thread[N_WRITERS];
	struct rdma_cm_event *event;
	uintptr_t i;

	fcntl(channel->pub.fd, F_SETFL, 0);
	for (i = 0; i < N_WRITERS; i++)
		pthread_create(&thread[i], NULL, write_many, (void *)i);
	for (i = 0; i < N_WRITERS * N_EACH; i++) {
		event = take();
		ck_assert_uint_eq((uint32_t)event->param.arg, next[event->param.arg >> 32]++);
		rdma_ack_cm_event(event);
	}
	for (i = 0; i < N_WRITERS; i++)
		pthread_join(thread[i], NULL);
	ck_assert(!is_readable());
}

#define N_READERS 4
#define N_ROUNDS  2000

static atomic_uint n_read;

static void *read_events(void *arg)
{
	struct rdma_cm_event *event;

	(void)arg;
	for (;;) {
		if (rdma_get_cm_event(&channel->pub, &event)) {
			ck_assert_int_eq(errno, EINTR);
			continue;
		}
		rdma_ack_cm_event(event);
		n_read++;
	}
	return NULL;
}

/* A thread that still waits while the others sleep would wait until Check ends it. */
TEST(no_event_remains_while_readers_sleep)
{
	pthread_t reader[N_READERS];
	unsigned int i;

	handle_signals();
	fcntl(channel->pub.fd, F_SETFL, 0);
	for (i = 0; i < N_READERS; i++)
		pthread_create(&reader[i], NULL, read_events, NULL);
	for (i = 1; i <= N_ROUNDS; i++) {
		write_user(id, 0, i);
		write_user(id, 0, i);
		pthread_kill(reader[i % N_READERS], SIGUSR1);
		while (n_read < 2 * i)
			sched_yield();
	}
	for (i = 0; i < N_READERS; i++) {
		pthread_cancel(reader[i]);
		pthread_join(reader[i], NULL);
	}
	ck_assert(!is_readable());
}

/* --- pollers beside a thread that waits ----------------------------------- */

#define N_WAITS 100

static void *read_one(void *arg)
{
	struct rdma_cm_event *event;
	int err = rdma_get_cm_event(&channel->pub, &event) ? errno : 0;

	(void)arg;
	if (!err)
		rdma_ack_cm_event(event);
	return (void *)(intptr_t)err;
}

static pthread_t start_waiting(void)
{
	pthread_t reader;

	fcntl(channel->pub.fd, F_SETFL, 0);
	pthread_create(&reader, NULL, read_one, NULL);
	threads_wait_asleep();
	return reader;
}

static void expect_read(pthread_t reader)
{
	void *result;

	pthread_join(reader, &result);
	ck_assert_ptr_null(result);
	ck_assert(!is_readable());
}

TEST(event_for_which_a_thread_is_woken_wakes_no_poller)
{
	pthread_t reader;
	int i;

	for (i = 0; i < N_WAITS; i++) {
		reader = start_waiting();
		write_user(id, 0, 0);
		ck_assert(!is_readable());
		expect_read(reader);
	}
}

TEST(second_event_for_one_waiting_thread_wakes_pollers)
{
	pthread_t reader = start_waiting();

	write_user(id, 0, 0);
	write_user(id, 0, 0);
	pthread_join(reader, NULL);
	ck_assert(is_readable());
	rdma_ack_cm_event(take());
	ck_assert(!is_readable());
}

static void expect_readable_if(bool is_left)
{
	ck_assert_int_eq(is_readable(), is_left);
	if (is_left)
		rdma_ack_cm_event(take());
	ck_assert(!is_readable());
}

TEST(pollers_see_the_event_of_an_interrupted_thread)
{
	pthread_t reader;
	void *result;
	int i;

	handle_signals();
	for (i = 0; i < N_WAITS; i++) {
		reader = start_waiting();
		write_user(id, 0, 0);
		pthread_kill(reader, SIGUSR1);
		pthread_join(reader, &result);
		expect_readable_if((intptr_t)result == EINTR);
	}
}

TEST(pollers_see_the_event_of_a_cancelled_thread)
{
	pthread_t reader;
	void *result;
	int i;

	for (i = 0; i < N_WAITS; i++) {
		reader = start_waiting();
		write_user(id, 0, 0);
		pthread_cancel(reader);
		pthread_join(reader, &result);
		expect_readable_if(result == PTHREAD_CANCELED);
	}
}
