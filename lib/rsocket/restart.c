/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleeps that go on after handlers with SA_RESTART: see restart.h.
 */
#include "lib/rsocket/restart.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>

#include "base/fd.h"
#include "lib/rsocket/service_thread.h"
#include "lib/rsocket/settings.h"

/* --- the handlers of the process ------------------------------------------ */

static enum {
	NOT_LOOKED,
	ONE_KIND,
	BOTH_KINDS
} handlers; /* atomic */

/* A fault of the thread itself ends no sleep: many languages have such handlers. */
static bool is_fault(int number)
{
	return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL;
}

bool restart_look(void)
{
	bool has[2] = { false, false };
	struct sigaction action;

	for (int number = 1; number < NSIG; number++)
		if (!is_fault(number) && !sigaction(number, NULL, &action) &&
		    action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN)
			has[!!(action.sa_flags & SA_RESTART)] = true;
	__atomic_store_n(&handlers, has[0] && has[1] ? BOTH_KINDS : ONE_KIND, __ATOMIC_RELAXED);
	return !has[0];
}

bool restart_is_mixed(void)
{
	if (__atomic_load_n(&handlers, __ATOMIC_RELAXED) == NOT_LOOKED)
		restart_look();
	return __atomic_load_n(&handlers, __ATOMIC_RELAXED) == BOTH_KINDS;
}

/* --- a sleep --------------------------------------------------------------- */

struct sleep {
	struct serviced serviced; /* of a copy of the descriptor: others may sleep on it, too */
	int fd;			  /* that copy */
	struct waker *waker;
	bool is_readable, is_over; /* protected by the service's lock */
};

static void end_by_descriptor(struct serviced *serviced)
{
	struct sleep *sleep = container_of(serviced, struct sleep, serviced);

	sleep->is_readable = true;
	service_pause(serviced);
	waker_set(sleep->waker);
}

static void end_by_time(struct serviced *serviced)
{
	struct sleep *sleep = container_of(serviced, struct sleep, serviced);

	sleep->is_over = true;
	waker_set(sleep->waker);
}

static int begin_watching(struct sleep *sleep, int fd)
{
	int err;

	sleep->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (sleep->fd < 0)
		return -errno;
	service_lock();
	err = service_add(&sleep->serviced, sleep->fd);
	if (!err)
		service_expire_in(&sleep->serviced, (uint32_t)settings()->wake_up_ms);
	service_unlock();
	if (err)
		fd_close(&sleep->fd);
	return err;
}

static void end_watching(struct sleep *sleep)
{
	service_lock();
	service_remove(&sleep->serviced);
	service_unlock();
	fd_close(&sleep->fd);
}

int restart_sleep(struct waker *waker, int fd)
{
	struct sleep sleep = { .fd = -1, .waker = waker };
	int err = 0;

	serviced_init(&sleep.serviced, end_by_descriptor, end_by_time);
	if (fd >= 0)
		err = begin_watching(&sleep, fd);
	if (err)
		return err;
	err = waker_await(waker);
	if (fd >= 0)
		end_watching(&sleep);
	if (sleep.is_over)
		restart_look();
	return err ? err : sleep.is_readable;
}
