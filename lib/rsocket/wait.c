/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for handles: see wait.h.
 */
#include "lib/rsocket/wait.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/rsocket/settings.h"

static pthread_mutex_t spares_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list spares = { &spares, &spares };

/* --- watches ------------------------------------------------------------- */

void watch_add(struct rsock *rs, struct watch *watch)
{
	list_append(&rs->watches, &watch->link);
}

void watch_remove(struct watch *watch)
{
	list_remove(&watch->link);
}

void watch_tell(struct rsock *rs)
{
	struct list *node;

	list_for_each (node, &rs->watches) {
		struct watch *watch = container_of(node, struct watch, link);

		watch->changed(watch);
	}
}

static void wake(struct watch *watch)
{
	struct waker *waker = container_of(watch, struct sleeper, watch)->waker;
	uint64_t one = 1;

	if (__atomic_exchange_n(&waker->is_set, 1, __ATOMIC_ACQ_REL))
		return;
	while (write(waker->fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void sleeper_init(struct sleeper *sleeper, struct waker *waker)
{
	list_init(&sleeper->watch.link);
	sleeper->watch.changed = wake;
	sleeper->waker = waker;
}

/* --- wakers -------------------------------------------------------------- */

static struct waker *take_spare(void)
{
	struct waker *waker = NULL;

	pthread_mutex_lock(&spares_lock);
	if (!list_is_empty(&spares)) {
		waker = container_of(spares.next, struct waker, spare);
		list_remove(&waker->spare);
	}
	pthread_mutex_unlock(&spares_lock);
	return waker;
}

struct waker *waker_new(void)
{
	struct waker *waker = take_spare();

	if (waker)
		return waker;
	waker = calloc(1, sizeof(*waker));
	if (!waker)
		return NULL;
	list_init(&waker->spare);
	waker->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (waker->fd >= 0)
		return waker;
	free(waker);
	return NULL;
}

void waker_free(struct waker *waker)
{
	waker_reset(waker);
	pthread_mutex_lock(&spares_lock);
	list_prepend(&spares, &waker->spare);
	pthread_mutex_unlock(&spares_lock);
}

void waker_reset(struct waker *waker)
{
	uint64_t count;

	if (!__atomic_load_n(&waker->is_set, __ATOMIC_ACQUIRE))
		return;
	/* Who has set it may not have written yet. Left for later, what he writes would wake
	 * the next sleep, and with nothing set nobody would take it: every sleep, for ever. */
	while (read(waker->fd, &count, sizeof(count)) < 0)
		if (errno == EAGAIN)
			sched_yield();
	__atomic_store_n(&waker->is_set, 0, __ATOMIC_RELEASE);
}

void wait_after_fork(void)
{
	pthread_mutex_init(&spares_lock, NULL);
	list_init(&spares);
}

/* --- time ---------------------------------------------------------------- */

#define NS_PER_S  1000000000
#define NS_PER_MS 1000000

static int64_t ns_until(const struct timespec *at)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)(at->tv_sec - now.tv_sec) * NS_PER_S + at->tv_nsec - now.tv_nsec;
}

static struct timespec ns_from_now(int64_t ns)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += ns / NS_PER_S;
	at.tv_nsec += ns % NS_PER_S;
	if (at.tv_nsec >= NS_PER_S) {
		at.tv_sec++;
		at.tv_nsec -= NS_PER_S;
	}
	return at;
}

struct wait_until wait_for_ms(int timeout_ms)
{
	if (timeout_ms < 0)
		return (struct wait_until){ .is_forever = true };
	return (struct wait_until){ .at = ns_from_now((int64_t)timeout_ms * NS_PER_MS) };
}

bool wait_is_over(const struct wait_until *until)
{
	return !until->is_forever && ns_until(&until->at) <= 0;
}

int wait_left_ms(const struct wait_until *until)
{
	int longest_ms = settings()->wake_up_ms;
	int64_t left_ms;

	if (until->is_forever)
		return longest_ms;
	/* Rounded up, so that nobody wakes just before his time, again and again. */
	left_ms = (ns_until(&until->at) + NS_PER_MS - 1) / NS_PER_MS;
	if (left_ms < 0)
		return 0;
	return left_ms < longest_ms ? (int)left_ms : longest_ms;
}

/* --- one handle ---------------------------------------------------------- */

static bool is_ready(struct rsock *rs, bool (*ready)(struct rsock *rs))
{
	rs->ops->progress(rs);
	return rs->closed || ready(rs);
}

static bool spin(struct rsock *rs, bool (*ready)(struct rsock *rs))
{
	struct timespec end = ns_from_now((int64_t)settings()->polling_us * 1000);
	bool found;

	do {
		pthread_mutex_lock(&rs->lock);
		found = is_ready(rs, ready);
		pthread_mutex_unlock(&rs->lock);
	} while (!found && ns_until(&end) > 0);
	return found;
}

/* Who takes a wake-up looks anyway, and need not tell itself. */
void watch_disarm(struct rsock *rs, struct watch *own)
{
	watch_remove(own);
	rs->ops->disarm(rs);
	watch_add(rs, own);
}

/* One sleep. Return: 0 if the condition holds, -EAGAIN if it is to be asked again, -EINTR. */
static int sleep_once(struct rsock *rs, short wanted, bool (*ready)(struct rsock *rs),
		      struct sleeper *sleeper, const struct wait_until *until)
{
	struct pollfd fds[2] = {
		{.fd = sleeper->waker->fd, .events = POLLIN },
		{ .events = POLLIN			   }
	};
	bool found;
	int n;

	waker_reset(sleeper->waker);
	pthread_mutex_lock(&rs->lock);
	fds[1].fd = rs->ops->arm(rs, wanted);
	found = is_ready(rs, ready);
	pthread_mutex_unlock(&rs->lock);
	if (found)
		return 0;
	n = poll(fds, 2, wait_left_ms(until));
	if (n < 0)
		return -errno;
	/* Looked at before it is armed again: what is there need not wake the next sleep, too. */
	pthread_mutex_lock(&rs->lock);
	if (fds[1].revents)
		watch_disarm(rs, &sleeper->watch);
	found = is_ready(rs, ready);
	pthread_mutex_unlock(&rs->lock);
	return found ? 0 : -EAGAIN;
}

static int sleep_until(struct rsock *rs, short wanted, bool (*ready)(struct rsock *rs),
		       const struct wait_until *until)
{
	struct waker *waker = waker_new();
	struct sleeper sleeper;
	int err;

	if (!waker)
		return -errno;
	sleeper_init(&sleeper, waker);
	pthread_mutex_lock(&rs->lock);
	watch_add(rs, &sleeper.watch);
	pthread_mutex_unlock(&rs->lock);
	do
		err = sleep_once(rs, wanted, ready, &sleeper, until);
	while (err == -EAGAIN && !wait_is_over(until));
	pthread_mutex_lock(&rs->lock);
	watch_remove(&sleeper.watch);
	pthread_mutex_unlock(&rs->lock);
	waker_free(waker);
	return err;
}

int wait_until_ready(struct rsock *rs, short wanted, bool (*ready)(struct rsock *rs),
		     const struct wait_until *until)
{
	int err = spin(rs, ready) ? 0 : sleep_until(rs, wanted, ready, until);
	bool closed;

	pthread_mutex_lock(&rs->lock);
	closed = rs->closed;
	pthread_mutex_unlock(&rs->lock);
	return closed ? -EBADF : err;
}
