/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event loop: see loop.h.
 */
#include "base/loop.h"

#include <errno.h>

#include "base/fd.h"

int loop_init(struct loop *loop)
{
	*loop = (struct loop){ .fd = epoll_create1(EPOLL_CLOEXEC) };
	return loop->fd < 0 ? -errno : 0;
}

void loop_fini(struct loop *loop)
{
	loop->n_events = 0;
	fd_close(&loop->fd);
}

static int epoll_control(struct loop *loop, int operation, struct watch *watch, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = watch };

	return epoll_ctl(loop->fd, operation, watch->fd, &event) ? -errno : 0;
}

int loop_watch(struct loop *loop, struct watch *watch, int fd, uint32_t events,
	       void (*ready)(struct watch *watch))
{
	int err;

	if (fd < 0)
		return -EBADF;
	*watch =
		(struct watch){ .fd = fd, .events = events, .is_registered = true, .ready = ready };
	err = epoll_control(loop, EPOLL_CTL_ADD, watch, events);
	if (err)
		*watch = (struct watch){ .fd = -1 };
	return err;
}

/* epoll always reports EPOLLHUP and EPOLLERR, so a paused watch is unregistered. */
int loop_change(struct loop *loop, struct watch *watch, uint32_t events)
{
	int operation = !watch->is_registered ? EPOLL_CTL_ADD
			: events	      ? EPOLL_CTL_MOD
					      : EPOLL_CTL_DEL;
	int err = watch->events == events ? 0 : epoll_control(loop, operation, watch, events);

	if (err)
		return err;
	watch->is_registered = events != 0;
	watch->events = events;
	return 0;
}

static void forget_events(struct loop *loop, const struct watch *watch)
{
	int i;

	for (i = 0; i < loop->n_events; i++)
		if (loop->event[i].data.ptr == watch)
			loop->event[i].data.ptr = NULL;
}

void loop_unwatch(struct loop *loop, struct watch *watch)
{
	if (watch->fd < 0)
		return;
	if (watch->is_registered)
		epoll_control(loop, EPOLL_CTL_DEL, watch, 0);
	forget_events(loop, watch);
	watch->fd = -1;
	watch->is_registered = false;
}

int loop_wait(struct loop *loop, int timeout_ms)
{
	int n = epoll_wait(loop->fd, loop->event, LOOP_EVENTS_MAX, timeout_ms);

	loop->n_events = n < 0 ? 0 : n;
	return n < 0 && errno != EINTR ? -errno : loop->n_events;
}

void loop_dispatch(struct loop *loop)
{
	const int n = loop->n_events;
	int i, at = n ? (int)(loop->n_turns++ % (unsigned int)n) : 0;
	struct watch *watch;

	for (i = 0; i < n; i++) {
		watch = loop->event[at].data.ptr;
		if (watch) {
			watch->came = loop->event[at].events;
			watch->ready(watch);
		}
		if (++at == n)
			at = 0;
	}
	loop->n_events = 0;
}

int loop_turn(struct loop *loop, int timeout_ms)
{
	int n = loop_wait(loop, timeout_ms);

	loop_dispatch(loop);
	return n;
}
