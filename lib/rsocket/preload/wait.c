/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librspreload.so: calls that wait. A listener has two descriptors, one for RDMA and one for TCP; a
 * connection that fails becomes TCP while the program waits for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"
#include "lib/rsocket/preload/preload.h"
#include "lib/rsocket/select.h"
#include "lib/rsocket/wait.h"

#define FEW 16

int __poll_chk(struct pollfd *fds, nfds_t n, int timeout_ms, size_t room);

/* --- poll() -------------------------------------------------------------- */

static nfds_t count_ours(const struct pollfd *fds, nfds_t n)
{
	nfds_t count = 0;

	for (nfds_t i = 0; i < n; i++) {
		fork_settle(fds[i].fd);
		count += map_get(fds[i].fd) != NULL;
	}
	return count;
}

/* As map_check() for all, with one system call: the kernel polls no placeholder. */
static void check_all(struct pollfd *fds, nfds_t n)
{
	real()->poll(fds, n, 0);
	for (nfds_t i = 0; i < n; i++)
		if (!(fds[i].revents & POLLNVAL))
			map_check(fds[i].fd);
}

/*
 * Copies the results. Return: the number of ready entries; -1 if a connection has become TCP and
 * all must be polled again.
 */
static int take_results(struct pollfd *fds, nfds_t n, const struct pollfd *from)
{
	int count = 0;
	bool again = false;

	for (nfds_t i = 0; i < n; i++) {
		struct sock *sock = fork_settled(fds[i].fd);

		fds[i].revents = from[i].revents;
		if (from[n + i].revents & POLLIN)
			fds[i].revents |= fds[i].events & POLLIN;
		if (sock && from[i].revents & POLLERR && fallback_retry(fds[i].fd, sock))
			again = true;
		else if (sock && from[i].revents & POLLOUT)
			sock->target_bytes = 0;
		count += fds[i].revents != 0;
	}
	return again ? -1 : count;
}

/* Gives up connections after their timeout. Return: whether one has become TCP. */
static bool give_up_late(struct pollfd *fds, nfds_t n)
{
	struct cm_time now = clock_now();
	bool again = false;

	for (nfds_t i = 0; i < n; i++) {
		struct sock *sock = fork_settled(fds[i].fd);

		if (sock && sock->target_bytes && cm_time_reached(sock->give_up, now))
			again |= fallback_retry(fds[i].fd, sock);
	}
	return again;
}

/*
 * The second half of @both has the TCP sockets of listeners. An epoll descriptor with rsockets is
 * polled through the instance beside it, which includes the descriptor.
 */
static int poll_both(struct pollfd *fds, nfds_t n, struct pollfd *both, int timeout_ms)
{
	struct cm_time deadline = wait_deadline(timeout_ms);
	int result;

	for (;;) {
		struct cm_time first = deadline;

		for (nfds_t i = 0; i < n; i++) {
			struct sock *sock = map_get(fds[i].fd);

			both[i] = fds[i];
			both[n + i] = (struct pollfd){ .fd = -1, .events = POLLIN };
			if (!sock)
				continue;
			both[i].fd = sock->rs;
			both[n + i].fd = sock->tcp;
			if (!sock->is_repoll && sock->target_bytes)
				first = cm_time_earlier(first, sock->give_up);
		}
		result = rpoll(both, 2 * n, cm_time_ms_until(first, clock_now()));
		if (result < 0)
			return -1;
		result = take_results(fds, n, both);
		if (result > 0)
			return result;
		if (result == 0 && !give_up_late(fds, n) && cm_time_reached(deadline, clock_now()))
			return 0;
	}
}

EXPORT int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	struct pollfd few[2 * FEW];
	struct pollfd *both = few;
	int result;

	if (!count_ours(fds, n))
		return real()->poll(fds, n, timeout_ms);
	check_all(fds, n);
	if (n > FEW)
		both = calloc(2 * n, sizeof(*both));
	if (!both)
		return -1;
	result = poll_both(fds, n, both, timeout_ms);
	if (both != few)
		free(both);
	return result;
}

EXPORT int __poll_chk(struct pollfd *fds, nfds_t n, int timeout_ms, size_t room)
{
	if (n > room / sizeof(*fds))
		abort();
	return poll(fds, n, timeout_ms);
}

EXPORT int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	int64_t ms = timeout ? timeout->tv_sec * 1000LL + (timeout->tv_nsec + 999999) / 1000000
			     : -1;
	sigset_t before;
	int result;

	if (!count_ours(fds, n))
		return real()->ppoll(fds, n, timeout, mask);
	if (mask)
		pthread_sigmask(SIG_SETMASK, mask, &before);
	result = poll(fds, n, ms > INT32_MAX ? INT32_MAX : (int)ms);
	if (mask)
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	return result;
}

/* --- select() ------------------------------------------------------------ */

EXPORT int select(int n, fd_set *in, fd_set *out, fd_set *err, struct timeval *timeout)
{
	const struct select_set sets[SELECT_N_SETS] = {
		{ in, POLLIN, POLLIN | POLLHUP | POLLERR },
		{ out, POLLOUT, POLLOUT | POLLERR },
		{ err, POLLPRI, POLLPRI },
	};
	struct pollfd fds[FD_SETSIZE];
	nfds_t count = n >= 0 && n <= FD_SETSIZE ? select_to_poll(sets, n, fds) : 0;
	int result;

	if (!count_ours(fds, count))
		return real()->select(n, in, out, err, timeout);
	result = poll(fds, count, select_timeout_ms(timeout));
	if (result >= 0)
		result = select_from_poll(sets, fds, count);
	if (result != -EBADF)
		return result;
	errno = EBADF;
	return -1;
}

/* --- epoll --------------------------------------------------------------- */

/*
 * The first rsocket creates an instance of repoll beside the epoll descriptor; the instance has the
 * rsockets, and the descriptor for everything else. Return: the instance, or -1.
 */
static int get_repoll_beside(int epfd)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct sock *sock = map_get(epfd);
	int repoll;

	if (sock)
		return sock->is_repoll ? sock->rs : -1;
	repoll = repoll_create(O_CLOEXEC);
	if (repoll < 0)
		return -1;
	if (map_epoll(epfd, repoll)) {
		rclose(repoll);
		return -1;
	}
	event.data.ptr = map_get(epfd);
	errno = repoll_ctl(repoll, EPOLL_CTL_ADD, epfd, &event);
	return errno ? -1 : repoll;
}

EXPORT int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct sock *sock = fork_checked(fd);
	int repoll;

	if (!sock || own_is_inside(__builtin_return_address(0)))
		return real()->epoll_ctl(epfd, op, fd, event);
	repoll = get_repoll_beside(epfd);
	if (repoll < 0)
		return -1;
	errno = repoll_ctl(repoll, op, sock->rs, event);
	if (errno)
		return -1;
	fallback_control(fd, sock, epfd, op, event);
	return 0;
}

/* Replaces the event of the epoll descriptor itself by that descriptor's events. */
static int unfold_epoll(int epfd, const struct sock *sock, struct epoll_event *events, int n,
			int room)
{
	for (int i = 0; i < n; i++) {
		int others;

		if (events[i].data.ptr != sock)
			continue;
		events[i] = events[--n];
		others = real()->epoll_pwait(epfd, &events[n], room - n, 0, NULL);
		return others > 0 ? n + others : n;
	}
	return n;
}

static int wait_for_epoll(int epfd, const struct sock *sock, struct epoll_event *events, int room,
			  int timeout_ms)
{
	struct cm_time deadline = wait_deadline(timeout_ms);

	for (;;) {
		struct cm_time first = fallback_deadline(epfd, deadline);
		int n;

		errno = 0;
		n = repoll_wait(sock->rs, events, room, cm_time_ms_until(first, clock_now()));
		if (errno)
			return -1;
		n = fallback_retry_all(epfd, events, n);
		n = unfold_epoll(epfd, sock, events, n, room);
		if (n || cm_time_reached(deadline, clock_now()))
			return n;
	}
}

EXPORT int epoll_pwait(int epfd, struct epoll_event *events, int room, int timeout_ms,
		       const sigset_t *mask)
{
	struct sock *sock = map_get(epfd);
	sigset_t before;
	int n;

	if (!sock || !sock->is_repoll)
		return real()->epoll_pwait(epfd, events, room, timeout_ms, mask);
	if (mask)
		pthread_sigmask(SIG_SETMASK, mask, &before);
	n = wait_for_epoll(epfd, sock, events, room, timeout_ms);
	if (mask)
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	return n;
}

EXPORT int epoll_wait(int epfd, struct epoll_event *events, int room, int timeout_ms)
{
	return epoll_pwait(epfd, events, room, timeout_ms, NULL);
}
