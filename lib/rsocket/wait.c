/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for handles: see wait.h.
 */
#include "lib/rsocket/wait.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "lib/rsocket/restart.h"
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

void watch_notify(struct rsock *rs)
{
	struct watcher *watch;

	list_for_each_entry (watch, &rs->watches, link)
		watch->changed(watch);
}

/* The caller checks the handle anyway and needs no notification. */
void watch_disarm(struct rsock *rs, struct watcher *own)
{
	watch_remove(own);
	rs->ops->disarm(rs);
	watch_add(rs, own);
}

static void wake_sleeper(struct watcher *watch)
{
	waker_set(container_of(watch, struct sleeper, watch)->waker);
}

void sleeper_init(struct sleeper *sleeper, struct waker *waker)
{
	list_init(&sleeper->watch.link);
	sleeper->watch.changed = wake_sleeper;
	sleeper->waker = waker;
}

/* --- wakers -------------------------------------------------------------- */

int waker_open(struct waker *waker)
{
	*waker = (struct waker){ .fd = eventfd(0, EFD_CLOEXEC) };
	list_init(&waker->spare);
	return waker->fd < 0 ? -errno : 0;
}

void waker_close(struct waker *waker)
{
	fd_close(&waker->fd);
	waker->is_set = 0;
}

struct waker *waker_new(void)
{
	struct waker *waker = NULL;

	pthread_mutex_lock(&spares_lock);
	if (!list_is_empty(&spares)) {
		waker = container_of(spares.next, struct waker, spare);
		list_remove(&waker->spare);
	}
	pthread_mutex_unlock(&spares_lock);
	if (waker)
		return waker;
	waker = malloc(sizeof(*waker));
	if (!waker || waker_open(waker) == 0)
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

void waker_set(struct waker *waker)
{
	uint64_t one = 1;

	if (__atomic_exchange_n(&waker->is_set, 1, __ATOMIC_ACQ_REL))
		return;
	while (write(waker->fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void waker_reset(struct waker *waker)
{
	uint64_t count;

	if (!__atomic_load_n(&waker->is_set, __ATOMIC_ACQUIRE))
		return;
	/*
	 * The thread that set the waker may not have written yet. If the write came after this, the
	 * descriptor would stay readable for good: without is_set, no thread reads it.
	 */
	while (read(waker->fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
	__atomic_store_n(&waker->is_set, 0, __ATOMIC_RELEASE);
}

int waker_await(struct waker *waker)
{
	uint64_t count;

	if (read(waker->fd, &count, sizeof(count)) < 0)
		return -errno;
	__atomic_store_n(&waker->is_set, 0, __ATOMIC_RELEASE);
	return 0;
}

void wait_after_fork(void)
{
	pthread_mutex_init(&spares_lock, NULL);
	list_init(&spares);
}

/* --- time ---------------------------------------------------------------- */

bool wait_is_over(struct cm_time deadline)
{
	return deadline.ns != CM_TIME_NEVER.ns && cm_time_reached(deadline, clock_now());
}

int wait_left_ms(struct cm_time deadline)
{
	int longest_ms = settings()->wake_up_ms, left_ms = longest_ms;

	if (deadline.ns != CM_TIME_NEVER.ns)
		left_ms = cm_time_ms_until(deadline, clock_now());
	return left_ms < longest_ms ? left_ms : longest_ms;
}

/* --- one handle ---------------------------------------------------------- */

/*
 * After this many consecutive long waits a thread sleeps at once, until a wait is short again:
 * polling takes the processor from a peer on the same one, and is useless if a response takes
 * longer than a sleep.
 */
#define LONG_WAITS 3

static bool is_ready(struct rsock *rs, bool (*ready)(struct rsock *rs))
{
	rs->ops->progress(rs);
	return rs->closed || ready(rs);
}

/* Polls for the settings' polling time. Return: whether the condition holds. */
static bool spin_until_ready(struct rsock *rs, bool (*ready)(struct rsock *rs), uint64_t begin_ns,
			     uint64_t polling_ns)
{
	bool found, is_worth_it;

	do {
		pthread_mutex_lock(&rs->lock);
		is_worth_it = rs->n_long < LONG_WAITS;
		found = is_worth_it && is_ready(rs, ready);
		pthread_mutex_unlock(&rs->lock);
	} while (is_worth_it && !found && clock_ns() - begin_ns < polling_ns);
	return found;
}

/* A wait: whether it is restarted, and whether it has looked at the signal handlers. */
struct wait {
	struct cm_time deadline;
	bool is_restarted, has_looked;
};

/* A look at the handlers takes longer than a short sleep, so only a longer one has it. */
#define LOOK_MS 10

static int sleep_in_poll(struct wait *wait, struct pollfd fds[2])
{
	int left_ms = wait_left_ms(wait->deadline), n;

	if (wait->is_restarted && !wait->has_looked && left_ms > LOOK_MS)
		left_ms = LOOK_MS;
	n = poll(fds, 2, left_ms) < 0 ? -errno : 0;
	if (wait->is_restarted && !fds[0].revents && !fds[1].revents) {
		wait->has_looked = true;
		if (restart_look())
			n = 0;
	}
	return n;
}

/* Sets revents of the descriptors: a waker's, a handle's. Return: 0, -EINTR. */
static int sleep_once(struct wait *wait, struct waker *waker, struct pollfd fds[2])
{
	int n;

	if (wait->is_restarted && restart_is_mixed()) {
		n = restart_sleep(waker, fds[1].fd);
		fds[1].revents = n > 0 ? POLLIN : 0;
		if (n >= 0 || n == -EINTR)
			return n < 0 ? n : 0;
	}
	return sleep_in_poll(wait, fds);
}

/* The lock must be held, and is released while sleeping. */
static int sleep_until_ready(struct rsock *rs, short wanted, bool (*ready)(struct rsock *rs),
			     struct wait *wait)
{
	struct waker *waker = waker_new();
	struct sleeper sleeper;
	int err;

	if (!waker)
		return -errno;
	sleeper_init(&sleeper, waker);
	watch_add(rs, &sleeper.watch);
	do {
		struct pollfd fds[2] = { { .fd = waker->fd, .events = POLLIN },
					 { .events = POLLIN } };

		if (rs->has_event)
			watch_disarm(rs, &sleeper.watch);
		rs->has_event = false;
		fds[1].fd = rs->ops->arm(rs, wanted);
		err = 0;
		if (is_ready(rs, ready))
			break;
		pthread_mutex_unlock(&rs->lock);
		err = sleep_once(wait, waker, fds);
		waker_reset(waker);
		pthread_mutex_lock(&rs->lock);
		rs->has_event |= fds[1].revents != 0;
		if (is_ready(rs, ready))
			err = 0;
		else if (!err)
			err = -EAGAIN;
	} while (err == -EAGAIN && !wait_is_over(wait->deadline));
	watch_remove(&sleeper.watch);
	waker_free(waker);
	return err;
}

static int wait_for(struct rsock *rs, short wanted, bool (*ready)(struct rsock *rs),
		    struct wait *wait)
{
	uint64_t begin_ns = clock_ns(), polling_ns = settings()->polling_us * UINT64_C(1000);
	bool found = spin_until_ready(rs, ready, begin_ns, polling_ns);
	int err = 0;

	pthread_mutex_lock(&rs->lock);
	if (!found)
		err = sleep_until_ready(rs, wanted, ready, wait);
	/* A sleep and a wake-up take about as long as polling pays off. */
	if (clock_ns() - begin_ns <= 2 * polling_ns)
		rs->n_long = 0;
	else if (rs->n_long < LONG_WAITS)
		rs->n_long++;
	if (rs->closed)
		err = -EBADF;
	pthread_mutex_unlock(&rs->lock);
	return err;
}

int wait_until_ready(struct rsock *rs, short wanted, bool (*ready)(struct rsock *rs),
		     struct cm_time deadline)
{
	return wait_for(rs, wanted, ready, &(struct wait){ .deadline = deadline });
}

int wait_restarted(struct rsock *rs, short wanted, bool (*ready)(struct rsock *rs),
		   struct cm_time deadline)
{
	struct wait wait = { .deadline = deadline,
			     .is_restarted = deadline.ns == CM_TIME_NEVER.ns };

	return wait_for(rs, wanted, ready, &wait);
}
