/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The service thread: see service_thread.h.
 */
#include "lib/rsocket/service_thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/thread.h"
#include "lib/rsocket/wait.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Protected by the lock. */
static struct loop loop = { .fd = -1 }; /* open while the thread runs */
static struct waker wakeup = { .fd = -1 };
static struct watch wakeup_watch;
static struct cm_timers timers;
static unsigned int n_serviced;
static struct list works = { &works, &works };
static unsigned int n_workers;

#define WORKERS_MAX 64

void service_lock(void)
{
	pthread_mutex_lock(&lock);
}

void service_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* --- the thread ---------------------------------------------------------- */

static void wake_thread(void)
{
	if (wakeup.fd >= 0)
		waker_set(&wakeup);
}

static void clear_wakeup(struct watch *watch)
{
	(void)watch;
	waker_reset(&wakeup);
}

static void finish_works(void)
{
	while (!list_is_empty(&works)) {
		struct work *work = container_of(works.next, struct work, link);

		list_remove(&work->link);
		service_unlock();
		work->run(work);
		service_lock();
	}
}

static void *run_service(void *unused)
{
	struct cm_timer *timer;

	(void)unused;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	service_lock();
	while (n_serviced) {
		int timeout_ms = cm_time_ms_until(cm_timers_deadline(&timers), clock_now());
		struct pollfd fd = { .fd = loop.fd, .events = POLLIN };

		service_unlock();
		/* The loop runs under the lock, so that any thread may remove a watch. */
		poll(&fd, 1, timeout_ms);
		service_lock();
		loop_turn(&loop, 0);
		while ((timer = cm_timers_pop(&timers, clock_now()))) {
			struct serviced *serviced = container_of(timer, struct serviced, timer);

			serviced->expired(serviced);
		}
		/* A program may forbid further threads, as haproxy does. */
		if (!n_workers)
			finish_works();
	}
	loop_fini(&loop);
	waker_close(&wakeup);
	service_unlock();
	return NULL;
}

static int start_thread(void)
{
	int err = loop_init(&loop);

	if (err)
		return err;
	err = waker_open(&wakeup);
	if (!err)
		err = loop_watch(&loop, &wakeup_watch, wakeup.fd, EPOLLIN, clear_wakeup);
	if (!err)
		err = thread_start(run_service, NULL);
	if (err) {
		loop_fini(&loop);
		waker_close(&wakeup);
	}
	return err;
}

/* --- served descriptors --------------------------------------------------- */

void serviced_init(struct serviced *serviced, void (*readable)(struct serviced *serviced),
		   void (*expired)(struct serviced *serviced))
{
	*serviced = (struct serviced){ .readable = readable,
				       .expired = expired,
				       .watch = { .fd = -1 } };
}

static void call_readable(struct watch *watch)
{
	struct serviced *serviced = container_of(watch, struct serviced, watch);

	serviced->readable(serviced);
}

int service_add(struct serviced *serviced, int fd)
{
	int err = loop.fd < 0 ? start_thread() : 0;

	if (err)
		return err;
	err = loop_watch(&loop, &serviced->watch, fd, EPOLLIN, call_readable);
	if (!err)
		n_serviced++;
	else
		wake_thread(); /* the thread ends if nothing is served */
	return err;
}

void service_remove(struct serviced *serviced)
{
	cm_timer_disarm(&timers, &serviced->timer);
	if (serviced->watch.fd < 0)
		return;
	loop_unwatch(&loop, &serviced->watch);
	if (!--n_serviced)
		wake_thread();
}

void service_pause(struct serviced *serviced)
{
	loop_change(&loop, &serviced->watch, 0);
}

void service_resume(struct serviced *serviced)
{
	if (serviced->watch.fd >= 0)
		loop_change(&loop, &serviced->watch, EPOLLIN);
}

void service_expire_in(struct serviced *serviced, uint32_t ms)
{
	if (!ms) {
		cm_timer_disarm(&timers, &serviced->timer);
		return;
	}
	cm_timer_arm(&timers, &serviced->timer, cm_time_after(clock_now(), ms * CM_NS_PER_MS));
	wake_thread();
}

/* --- steps that may wait -------------------------------------------------- */

static void *run_works(void *unused)
{
	(void)unused;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	service_lock();
	finish_works();
	n_workers--;
	service_unlock();
	return NULL;
}

void service_work(struct work *work)
{
	if (n_workers < WORKERS_MAX && !thread_start(run_works, NULL))
		n_workers++;
	list_append(&works, &work->link);
}

void service_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	/* Closed without changes, because the parent shares the epoll set. */
	loop_fini(&loop);
	waker_close(&wakeup);
	n_serviced = 0;
	n_workers = 0;
	list_init(&works);
	timers = (struct cm_timers){ 0 };
}
