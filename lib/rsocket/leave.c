/* SPDX-License-Identifier: BSD-2-Clause */
/* What is sent when a stream socket is shut down or closed: see leave.h. */
#include "lib/rsocket/leave.h"

#include <errno.h>

#include "lib/rsocket/memory.h"
#include "lib/rsocket/wait.h"

#define MOMENT_MS \
	500 /* while no peer is slow; a process that ends by _exit() loses what is unsent */
#define SHORT_MS    2	/* while some are */
#define LEAVING_MAX 256 /* each holds descriptors, registered memory and a queue pair */

/* Protected by the service's lock. */
static struct list leaving = { &leaving, &leaving }; /* the oldest first */
static unsigned int n_leaving;			     /* atomic */
static struct waker *exiting; /* of the thread that ends the process, or NULL */

static bool is_all_sent(struct rsock *rs)
{
	struct stream *s = stream_of(rs);

	return (!s->n_sent && !s->owes) || s->state == STREAM_BROKEN;
}

static void finish_leaving(struct stream *s, int err)
{
	pthread_mutex_lock(&s->base.lock);
	if (err)
		stream_apply(s, STREAM_EV_SEND_FAILED, err);
	else if (s->state == STREAM_DISCONNECTED)
		stream_flush(s);
	pthread_mutex_unlock(&s->base.lock);
}

/* --- in the service thread -------------------------------------------------- */

static void end_leaving(struct stream *s, int err)
{
	finish_leaving(s, err);
	service_remove(&s->leave);
	if (s->base.closed)
		service_remove(&s->cm);
	list_remove(&s->leaving);
	__atomic_sub_fetch(&n_leaving, 1, __ATOMIC_RELAXED);
	if (exiting)
		waker_set(exiting);
	rsock_put(&s->base);
}

/*
 * On a path that loses packets a device may take minutes to send what is left, so each
 * acknowledgement begins the timeout anew.
 */
static void check_leaving(struct stream *s, bool is_over)
{
	bool is_done, has_moved;
	uint32_t n_unsent;

	pthread_mutex_lock(&s->base.lock);
	if (memory_disarm(s))
		watch_notify(&s->base);
	memory_arm(s, true);
	stream_progress(&s->base);
	n_unsent = s->n_sent << 2 | s->owes;
	is_done = is_all_sent(&s->base);
	pthread_mutex_unlock(&s->base.lock);
	has_moved = n_unsent != s->n_unsent;
	s->n_unsent = n_unsent;
	if (is_done || (is_over && !has_moved))
		end_leaving(s, is_done ? 0 : -ETIMEDOUT);
	else if (has_moved)
		service_expire_in(&s->leave, LEAVE_MS);
}

static void look_at_completions(struct serviced *serviced)
{
	check_leaving(container_of(serviced, struct stream, leave), false);
}

static void look_at_timeout(struct serviced *serviced)
{
	check_leaving(container_of(serviced, struct stream, leave), true);
}

void leave_init(struct stream *s)
{
	serviced_init(&s->leave, look_at_completions, look_at_timeout);
	list_init(&s->leaving);
}

/* The service's lock must be held. If all places are taken, the oldest is given up. */
static int leave_to_service(struct stream *s)
{
	int fd, err;

	if (!leave_is_over(s))
		return 0;
	if (n_leaving == LEAVING_MAX)
		end_leaving(container_of(leaving.next, struct stream, leaving), -ETIMEDOUT);
	pthread_mutex_lock(&s->base.lock);
	fd = memory_arm(s, true);
	pthread_mutex_unlock(&s->base.lock);
	err = service_add(&s->leave, fd);
	if (err)
		return err;
	rsock_get(&s->base);
	list_append(&leaving, &s->leaving);
	__atomic_add_fetch(&n_leaving, 1, __ATOMIC_RELAXED);
	s->n_unsent = 0;
	check_leaving(s, false);
	return 0;
}

/* --- in the program's thread ------------------------------------------------ */

static int wait_all_sent(struct stream *s, int most_ms)
{
	struct cm_time until = wait_deadline(most_ms);
	int err;

	do
		err = wait_until_ready(&s->base, POLLOUT, is_all_sent, until);
	while (err == -EINTR);
	return err == -EAGAIN ? -ETIMEDOUT : err;
}

int leave_begin(struct stream *s, int linger_ms)
{
	int moment_ms = __atomic_load_n(&n_leaving, __ATOMIC_RELAXED) ? SHORT_MS : MOMENT_MS;
	int err = wait_all_sent(s, linger_ms < 0 ? moment_ms : linger_ms);

	if (err && linger_ms < 0) { /* not sent in time, or no descriptor to wait with */
		service_lock();
		err = leave_to_service(s);
		service_unlock();
		if (!err)
			return 0;
		err = wait_all_sent(s, LEAVE_MS);
	}
	finish_leaving(s, err == -ETIMEDOUT ? err : 0);
	return err;
}

/*
 * The caller may be a signal handler that calls exit() and has interrupted its own thread in a call
 * that holds the lock, so the lock is only tried.
 */
static void leave_unless_locked(struct stream *s)
{
	bool is_open;

	if (!s->memory.has_qp || pthread_mutex_trylock(&s->base.lock))
		return;
	stream_progress(&s->base);
	is_open = stream_apply(s, STREAM_EV_SHUT_RDWR, 0) >= 0;
	pthread_mutex_unlock(&s->base.lock);
	if (is_open)
		leave_begin(s, -1);
}

void leave_all(void)
{
	struct rsock *rs;
	int fd;

	for (fd = 0; fd < table_end(); fd++) {
		rs = table_get(fd);
		if (rs && rs->ops == &stream_ops)
			leave_unless_locked(stream_of(rs));
		if (rs)
			rsock_put(rs);
	}
}

/*
 * The process ends, and with it what its queue pairs have not sent: so wait, as in rclose(). The
 * list is not looked at under its lock if it is empty: a signal handler may exit.
 */
static void __attribute__((destructor)) wait_at_exit(void)
{
	struct waker waker;
	struct stream *s;

	leave_all();
	if (!__atomic_load_n(&n_leaving, __ATOMIC_RELAXED) || waker_open(&waker))
		return;
	service_lock();
	exiting = &waker;
	/* The program may have read the event of the last completion. */
	list_for_each_entry_safe (s, &leaving, leaving)
		check_leaving(s, false);
	while (n_leaving) {
		service_unlock();
		waker_await(&waker);
		service_lock();
	}
	exiting = NULL;
	service_unlock();
	waker_close(&waker);
}

void leave_after_fork(void)
{
	list_init(&leaving);
	n_leaving = 0;
	exiting = NULL;
}
