/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for handles: wakeups of sleeping threads, and polling before sleeping. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "lib/rsocket/restart.h"
#include "lib/rsocket/settings.h"
#include "lib/rsocket/wait.h"
#include "tests/unit/test.h"

/* --- substitutes ---------------------------------------------------------- */

#define POLLING_US	 UINT32_C(5000) /* longer than a sleep and its end on a busy machine */
#define WAKE_UP_MS	 1
#define WAKE_UP_NEVER_MS 1000000

int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
const struct settings *__real_settings(void);
const struct settings *__wrap_settings(void);

static bool is_patient; /* selects these settings: */
static struct settings patient;
static time_t ahead_s; /* of the real clock */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	int result = __real_clock_gettime(clock, ret);

	ret->tv_sec += ahead_s;
	return result;
}

const struct settings *__wrap_settings(void)
{
	return is_patient ? &patient : __real_settings();
}

static void set_up(void)
{
	patient = *__real_settings();
	patient.polling_us = POLLING_US;
	patient.wake_up_ms = WAKE_UP_MS;
	is_patient = true;
}

FIXTURE(set_up, NULL);

/* --- wakers and time ------------------------------------------------------ */

static void *write_late(void *waker)
{
	uint64_t one = 1;

	usleep(2000);
	ck_assert_int_eq(write(((struct waker *)waker)->fd, &one, sizeof(one)), sizeof(one));
	return NULL;
}

/* Otherwise the next thread that uses it would never sleep. */
TEST(waker_reset_during_a_set_is_not_left_readable)
{
	struct waker *waker = waker_new();
	struct pollfd poll_fd = { .fd = waker->fd, .events = POLLIN };
	pthread_t thread;

	/* The first step of a wakeup; the second follows. */
	waker->is_set = 1;
	ck_assert_int_eq(pthread_create(&thread, NULL, write_late, waker), 0);
	waker_reset(waker);
	pthread_join(thread, NULL);
	ck_assert_int_eq(poll(&poll_fd, 1, 0), 0);
	waker_free(waker);
}
END_TEST

TEST(passed_deadline_is_over_and_never_is_not)
{
	struct cm_time none = wait_deadline(0);

	ck_assert(wait_is_over(none) && wait_left_ms(none) == 0);
	ck_assert(!wait_is_over(CM_TIME_NEVER) && wait_left_ms(CM_TIME_NEVER) > 0);
}
END_TEST

/* --- polling before sleeping ---------------------------------------------- */

/* A handle whose condition holds once it was armed, which takes slow_s. */
struct fake {
	struct rsock base; /* first */
	time_t slow_s;
	unsigned int n_looks; /* before it was armed */
	bool is_armed;
};

static void fake_progress(struct rsock *rs)
{
	struct fake *fake = (struct fake *)rs;

	if (!fake->is_armed)
		fake->n_looks++;
}

static int fake_arm(struct rsock *rs, short wanted)
{
	struct fake *fake = (struct fake *)rs;

	(void)wanted;
	ahead_s += fake->slow_s;
	fake->is_armed = true;
	return -1;
}

static bool fake_is_ready(struct rsock *rs)
{
	const struct fake *fake = (struct fake *)rs;

	return fake->is_armed || !fake->slow_s;
}

static const struct rsock_ops fake_ops = { .progress = fake_progress, .arm = fake_arm };

/* Return: the number of checks of the handle before the sleep. */
static unsigned int wait_once(struct fake *fake, time_t slow_s)
{
	fake->slow_s = slow_s;
	fake->n_looks = 0;
	fake->is_armed = false;
	ck_assert_int_eq(wait_until_ready(&fake->base, POLLIN, fake_is_ready, CM_TIME_NEVER), 0);
	return fake->n_looks;
}

TEST(after_three_long_waits_a_wait_sleeps_at_once)
{
	struct fake fake = { 0 };

	rsock_init(&fake.base, &fake_ops);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_gt(wait_once(&fake, 1), 0);
	ck_assert_uint_eq(wait_once(&fake, 1), 0);
}
END_TEST

TEST(after_a_short_wait_a_wait_polls_again)
{
	struct fake fake = { 0 };

	rsock_init(&fake.base, &fake_ops);
	fake.base.n_long = 3;
	/* On a busy machine, no wait needs to be short at the first attempt. */
	for (int i = 0; i < 100000 && fake.base.n_long; i++)
		wait_once(&fake, 0);
	ck_assert_uint_eq(fake.base.n_long, 0);
	ck_assert_uint_gt(wait_once(&fake, 1), 0);
}
END_TEST

/* --- after a sleep ------------------------------------------------------- */

/* A handle whose descriptor is always readable, and whose condition holds after a sleep. */
struct woken {
	struct rsock base; /* first */
	int fd;
	unsigned int n_looks;
	unsigned int n_taken;
};

static void woken_progress(struct rsock *rs)
{
	((struct woken *)rs)->n_looks++;
}

static int woken_arm(struct rsock *rs, short wanted)
{
	struct woken *woken = (struct woken *)rs;

	(void)wanted;
	woken->n_looks = 0;
	return woken->fd;
}

static void woken_disarm(struct rsock *rs)
{
	((struct woken *)rs)->n_taken++;
}

/* wait_until_ready() calls it once before the sleep, and once after it. */
static bool woken_is_ready(struct rsock *rs)
{
	return ((struct woken *)rs)->n_looks == 2;
}

static const struct rsock_ops woken_ops = { .progress = woken_progress,
					    .arm = woken_arm,
					    .disarm = woken_disarm };

TEST(event_is_read_before_the_next_sleep)
{
	struct woken woken = { .fd = eventfd(1, EFD_CLOEXEC) };

	rsock_init(&woken.base, &woken_ops);
	woken.base.n_long = 3;
	for (unsigned int n = 0; n < 3; n++) {
		ck_assert_int_eq(
			wait_until_ready(&woken.base, POLLIN, woken_is_ready, CM_TIME_NEVER), 0);
		ck_assert_uint_eq(woken.n_taken, n);
		woken.base.n_long = 3;
	}
	close(woken.fd);
}
END_TEST

/* Stock sleeps without limit: with a device that loses an event, both ends hang. */
TEST(sleeper_without_a_wakeup_checks_again)
{
	struct woken woken = { .fd = eventfd(0, EFD_CLOEXEC) };

	rsock_init(&woken.base, &woken_ops);
	ck_assert_int_eq(wait_until_ready(&woken.base, POLLIN, woken_is_ready, CM_TIME_NEVER), 0);
	ck_assert_uint_eq(woken.n_taken, 0);
	close(woken.fd);
}
END_TEST

/* --- signals ------------------------------------------------------------- */

#define N_SIGNALS 3

static volatile sig_atomic_t n_handled;

static void on_signal(int number)
{
	(void)number;
	n_handled++;
}

static void handle(int number, int flags)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };

	ck_assert_int_eq(sigaction(number, &action, NULL), 0);
}

static void set_default_handlers(void)
{
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL); /* Check installs handlers */
}

TEST(check_of_the_handlers_finds_both_kinds)
{
	set_default_handlers();
	ck_assert(restart_look() && !restart_is_mixed());
	handle(SIGUSR1, SA_RESTART);
	handle(SIGRTMAX, SA_RESTART | SA_NODEFER);
	ck_assert(restart_look() && !restart_is_mixed());
	handle(SIGUSR2, 0);
	ck_assert(!restart_look() && restart_is_mixed());
	signal(SIGUSR2, SIG_IGN);
	ck_assert(restart_look() && !restart_is_mixed());
	handle(SIGRTMAX, 0);
	ck_assert(!restart_look() && restart_is_mixed());
	signal(SIGUSR1, SIG_DFL);
	ck_assert(!restart_look() && !restart_is_mixed());
}
END_TEST

/* A handle that becomes ready when another thread has sent signals to the waiting one. */
struct late {
	struct rsock base; /* first */
	int fd;		   /* -1: watches are notified instead */
	bool is_ready;	   /* atomic */
	pthread_t waiting;
	pid_t tid;
	int number; /* of the last signal; 0: none, and the handle becomes ready */
};

static void late_progress(struct rsock *rs)
{
	(void)rs;
}

static int late_arm(struct rsock *rs, short wanted)
{
	(void)wanted;
	return ((struct late *)rs)->fd;
}

static bool late_is_ready(struct rsock *rs)
{
	return __atomic_load_n(&((struct late *)rs)->is_ready, __ATOMIC_ACQUIRE);
}

static const struct rsock_ops late_ops = { .progress = late_progress,
					   .arm = late_arm,
					   .disarm = late_progress };

static void await_sleep(pid_t tid)
{
	char path[64], text[512], *state;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	do {
		FILE *file = fopen(path, "r");

		usleep(1000);
		ck_assert(file && fgets(text, sizeof(text), file));
		fclose(file);
		state = strrchr(text, ')');
	} while (!state || state[2] != 'S');
}

static void make_ready(struct late *late)
{
	uint64_t one = 1;

	__atomic_store_n(&late->is_ready, true, __ATOMIC_RELEASE);
	if (late->fd >= 0) {
		ck_assert_int_eq(write(late->fd, &one, sizeof(one)), sizeof(one));
		return;
	}
	pthread_mutex_lock(&late->base.lock);
	watch_notify(&late->base);
	pthread_mutex_unlock(&late->base.lock);
}

static void *send_signals(void *arg)
{
	struct late *late = arg;
	int i;

	for (i = 1; i <= N_SIGNALS; i++) {
		await_sleep(late->tid);
		pthread_kill(late->waiting, SIGUSR1);
		while (n_handled < i)
			usleep(1000);
	}
	await_sleep(late->tid);
	if (late->number)
		pthread_kill(late->waiting, late->number);
	else
		make_ready(late);
	return NULL;
}

static int wait_amid_signals(int fd, int last)
{
	struct late late = { .fd = fd, .waiting = pthread_self(), .tid = gettid(), .number = last };
	pthread_t thread;
	int result;

	rsock_init(&late.base, &late_ops);
	n_handled = 0;
	ck_assert_int_eq(pthread_create(&thread, NULL, send_signals, &late), 0);
	result = wait_restarted(&late.base, POLLIN, late_is_ready, CM_TIME_NEVER);
	pthread_join(thread, NULL);
	return result;
}

/* Stock's read() continues after the first handler, and is ended by the second. */
TEST(with_handlers_of_both_kinds_only_that_without_sa_restart_ends_a_wait)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	patient.wake_up_ms = WAKE_UP_NEVER_MS;
	set_default_handlers();
	handle(SIGUSR1, SA_RESTART);
	handle(SIGUSR2, 0);
	ck_assert_int_eq(wait_amid_signals(fd, 0), 0);
	ck_assert_int_eq(n_handled, N_SIGNALS);
	ck_assert_int_eq(wait_amid_signals(-1, 0), 0);
	ck_assert_int_eq(n_handled, N_SIGNALS);
	ck_assert_int_eq(wait_amid_signals(-1, SIGUSR2), -EINTR);
	close(fd);
	fd = eventfd(0, EFD_CLOEXEC);
	ck_assert_int_eq(wait_amid_signals(fd, SIGUSR2), -EINTR);
	ck_assert_int_eq(n_handled, N_SIGNALS + 1);
	close(fd);
}
END_TEST

TEST(a_wait_continues_if_all_handlers_have_sa_restart)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	set_default_handlers();
	handle(SIGUSR1, SA_RESTART);
	restart_look();
	ck_assert_int_eq(wait_amid_signals(fd, 0), 0);
	close(fd);
}
END_TEST
