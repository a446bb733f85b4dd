/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The service thread: see service.h.
 */
#include "lib/rsocket/service.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

#define NS_PER_S  1000000000ULL
#define NS_PER_MS 1000000ULL

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Under the lock. */
static int epoll_fd = -1; /* while there is a thread */
static int wake_fd = -1;
static unsigned int n_serviced;
static struct list timed = { &timed, &timed };

void service_lock(void)
{
	pthread_mutex_lock(&lock);
}

void service_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* --- the thread ---------------------------------------------------------- */

/* In the order of their time there would be less to look at, but keepalives are few and slow. */
static int wait_ms(void)
{
	uint64_t first = UINT64_MAX, now = clock_ns(), left_ms;
	struct list *node;

	list_for_each (node, &timed) {
		struct serviced *serviced = container_of(node, struct serviced, timed);

		if (serviced->at_ns < first)
			first = serviced->at_ns;
	}
	if (first == UINT64_MAX)
		return -1;
	if (first <= now)
		return 0;
	left_ms = (first - now + NS_PER_MS - 1) / NS_PER_MS;
	return left_ms < INT_MAX ? (int)left_ms : INT_MAX;
}

/* Return: one whose time has come, or NULL. */
static struct serviced *find_expired(void)
{
	uint64_t now = clock_ns();
	struct list *node;

	list_for_each (node, &timed) {
		struct serviced *serviced = container_of(node, struct serviced, timed);

		if (serviced->at_ns <= now)
			return serviced;
	}
	return NULL;
}

static void run_expired(void)
{
	struct serviced *serviced;

	while ((serviced = find_expired())) {
		service_expire_in(serviced, 0);
		serviced->expired(serviced);
	}
}

static void drain_wake(void)
{
	uint64_t count;

	while (read(wake_fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}

/* One at a time: a callback may remove another, whose event must then not be in our hands. */
static void run_readable(void)
{
	struct epoll_event event;

	for (int i = 0; i < 64 && epoll_wait(epoll_fd, &event, 1, 0) == 1; i++) {
		struct serviced *serviced = event.data.ptr;

		if (serviced)
			serviced->readable(serviced);
		else
			drain_wake();
	}
}

static void end(void)
{
	close(epoll_fd);
	close(wake_fd);
	epoll_fd = -1;
	wake_fd = -1;
}

static void *run(void *unused)
{
	(void)unused;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	service_lock();
	while (n_serviced) {
		int timeout_ms = wait_ms();
		int waits_at = epoll_fd;
		struct epoll_event event;

		service_unlock();
		/* Only waits: what it finds may be gone by the time we have the lock. */
		epoll_wait(waits_at, &event, 1, timeout_ms);
		service_lock();
		run_readable();
		run_expired();
	}
	end();
	service_unlock();
	return NULL;
}

static void wake(void)
{
	uint64_t one = 1;

	while (wake_fd >= 0 && write(wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

/* The thread begins with the lock, which its first client still holds. */
static int begin(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int err;

	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = epoll_fd < 0 || wake_fd < 0 ? -errno : 0;
	if (!err && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, wake_fd, &event))
		err = -errno;
	if (!err)
		err = thread_start(run, NULL);
	if (err)
		end();
	return err;
}

/* --- what it serves ------------------------------------------------------ */

void serviced_init(struct serviced *serviced, void (*readable)(struct serviced *serviced),
		   void (*expired)(struct serviced *serviced))
{
	*serviced = (struct serviced){ .readable = readable, .expired = expired, .fd = -1 };
	list_init(&serviced->timed);
}

static int watch(struct serviced *serviced, int op, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = serviced };

	return epoll_ctl(epoll_fd, op, serviced->fd, &event) ? -errno : 0;
}

int service_add(struct serviced *serviced, int fd)
{
	int err = epoll_fd < 0 ? begin() : 0;

	if (err)
		return err;
	n_serviced++;
	serviced->fd = fd;
	serviced->paused = false;
	err = watch(serviced, EPOLL_CTL_ADD, EPOLLIN);
	if (err) {
		serviced->fd = -1;
		n_serviced--;
		wake();
	}
	return err;
}

void service_remove(struct serviced *serviced)
{
	service_expire_in(serviced, 0);
	if (serviced->fd < 0)
		return;
	watch(serviced, EPOLL_CTL_DEL, 0);
	serviced->fd = -1;
	if (!--n_serviced)
		wake();
}

void service_pause(struct serviced *serviced)
{
	if (!serviced->paused && serviced->fd >= 0)
		watch(serviced, EPOLL_CTL_MOD, 0);
	serviced->paused = true;
}

void service_resume(struct serviced *serviced)
{
	if (serviced->paused && serviced->fd >= 0)
		watch(serviced, EPOLL_CTL_MOD, EPOLLIN);
	serviced->paused = false;
}

void service_expire_in(struct serviced *serviced, uint32_t ms)
{
	list_remove(&serviced->timed);
	serviced->at_ns = 0;
	if (!ms)
		return;
	serviced->at_ns = clock_ns() + ms * NS_PER_MS;
	list_append(&timed, &serviced->timed);
	wake();
}

void service_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	if (epoll_fd >= 0)
		end();
	n_serviced = 0;
	list_init(&timed);
}
