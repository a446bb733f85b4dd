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

void watch_add(struct rsock *rs, struct watcher *watch)
{
	list_append(&rs->watches, &watch->link);
}

void watch_remove(struct watcher *watch)
{
	list_remove(&watch->link);
}

void watch_tell(struct rsock *rs)
{
	struct list *node;

	list_for_each (node, &rs->watches) {
		struct watcher *watch = container_of(node, struct watcher, link);

		watch->changed(watch);
	}
}

static void wake(struct watcher *watch)
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
#define NS_PER_US 1000

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

/* Looking takes the processor from a peer on the same one, and is in vain where answers take longer
 * than a sleep: who has waited long so many times sleeps at once, until something comes quickly. */
#define LONG_WAITS 3

static bool spin(struct rsock *rs, bool (*ready)(struct rsock *rs), const struct timespec *begin)
{
	int64_t polling_ns = (int64_t)settings()->polling_us * NS_PER_US;
	bool found, is_worth_it;

	do {
		pthread_mutex_lock(&rs->lock);
		is_worth_it = rs->n_long < LONG_WAITS;
		found = is_worth_it && is_ready(rs, ready);
		pthread_mutex_unlock(&rs->lock);
	} while (is_worth_it && !found && -ns_until(begin) < polling_ns);
	return found;
}

/* The lock is held. A sleep and its end take about as long as it is worth looking. */
static void remember(struct rsock *rs, const struct timespec *begin)
{
	if (-ns_until(begin) <= 2 * (int64_t)settings()->polling_us * NS_PER_US)
		rs->n_long = 0;
	else if (rs->n_long < LONG_WAITS)
		rs->n_long++;
}

/* Who takes a wake-up looks anyway, and need not tell itself. */
void watch_disarm(struct rsock *rs, struct watcher *own)
{
	watch_remove(own);
	rs->ops->disarm(rs);
	watch_add(rs, own);
}

/* One sleep; the lock is held, and given up to sleep. Return: 0 if the condition holds, -EAGAIN if
 * it is to be asked again, -EINTR. */
static int sleep_once(struct rsock *rs, short wanted, bool (*ready)(struct rsock *rs),
		      struct sleeper *sleeper, const struct wait_until *until)
{
	struct pollfd fds[2] = {
		{.fd = sleeper->waker->fd, .events = POLLIN },
		{ .events = POLLIN			   }
	};
	int n, err;

	if (rs->is_told)
		watch_disarm(rs, &sleeper->watch);
	rs->is_told = false;
	fds[1].fd = rs->ops->arm(rs, wanted);
	if (is_ready(rs, ready))
		return 0;
	pthread_mutex_unlock(&rs->lock);
	n = poll(fds, 2, wait_left_ms(until));
	err = n < 0 ? -errno : -EAGAIN;
	if (fds[0].revents)
		waker_reset(sleeper->waker);
	/* Looked at before it is armed again: what is there need not wake the next sleep, too. */
	pthread_mutex_lock(&rs->lock);
	rs->is_told |= n > 0 && fds[1].revents;
	return is_ready(rs, ready) ? 0 : err;
}

/* The lock is held. */
static int sleep_until(struct rsock *rs, short wanted, bool (*ready)(struct rsock *rs),
		       const struct wait_until *until)
{
	struct waker *waker = waker_new();
	struct sleeper sleeper;
	int err;

	if (!waker)
		return -errno;
	sleeper_init(&sleeper, waker);
	watch_add(rs, &sleeper.watch);
	do
		err = sleep_once(rs, wanted, ready, &sleeper, until);
	while (err == -EAGAIN && !wait_is_over(until));
	watch_remove(&sleeper.watch);
	waker_free(waker);
	return err;
}

int wait_until_ready(struct rsock *rs, short wanted, bool (*ready)(struct rsock *rs),
		     const struct wait_until *until)
{
	struct timespec begin = ns_from_now(0);
	bool found = spin(rs, ready, &begin);
	int err = 0;

	pthread_mutex_lock(&rs->lock);
	if (!found)
		err = sleep_until(rs, wanted, ready, until);
	remember(rs, &begin);
	if (rs->closed)
		err = -EBADF;
	pthread_mutex_unlock(&rs->lock);
	return err;
}
