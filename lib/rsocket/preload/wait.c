/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librspreload.so: what waits. A listener is two descriptors to the sockets layer, one of RDMA and
 * one of TCP; a connection that cannot be had becomes TCP while the program waits for it.
 */
#include <errno.h>
#include <pthread.h>
#include <fcntl.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/rsocket/preload/connecting.h"
#include "lib/rsocket/preload/fallback.h"
#include "lib/rsocket/preload/fork.h"
#include "lib/rsocket/preload/real.h"

#define EXPORT __attribute__((visibility("default")))
#define FEW    16

int __poll_chk(struct pollfd *fds, nfds_t n, int timeout_ms, size_t room);

/* --- poll() -------------------------------------------------------------- */

static struct sock *socket_of(int fd)
{
	struct sock *sock = fork_settled(fd);

	return sock && !sock->is_repoll ? sock : NULL;
}

static nfds_t count_ours(const struct pollfd *fds, nfds_t n)
{
	nfds_t count = 0;

	for (nfds_t i = 0; i < n; i++)
		count += fork_settled(fds[i].fd) != NULL;
	return count;
}

/* The second half is for the TCP sockets of listeners. An epoll descriptor that has sockets of ours
 * is the instance beside it, which has what is in the descriptor, too. */
static void to_sockets(const struct pollfd *fds, nfds_t n, struct pollfd *ret)
{
	for (nfds_t i = 0; i < n; i++) {
		struct sock *sock = map_get(fds[i].fd);

		ret[i] = fds[i];
		ret[n + i] = (struct pollfd){ .fd = sock ? sock->tcp : -1, .events = POLLIN };
		if (sock)
			ret[i].fd = sock->rs;
	}
}

/* Return: how many are ready; -1 if one has changed to TCP and all are to be asked again. */
static int from_sockets(struct pollfd *fds, nfds_t n, const struct pollfd *from)
{
	int count = 0;
	bool again = false;

	for (nfds_t i = 0; i < n; i++) {
		struct sock *sock = socket_of(fds[i].fd);

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

/* Connections that nobody has answered for long. Return: whether one has changed to TCP. */
static bool give_up(struct pollfd *fds, nfds_t n)
{
	int64_t now_ms = fallback_now_ms();
	bool again = false;

	for (nfds_t i = 0; i < n; i++) {
		struct sock *sock = socket_of(fds[i].fd);

		if (sock && sock->target_bytes && sock->give_up_ms <= now_ms)
			again |= fallback_retry(fds[i].fd, sock);
	}
	return again;
}

static int left_ms(int64_t end_ms)
{
	int64_t now_ms = fallback_now_ms();

	if (end_ms < 0)
		return -1;
	return end_ms > now_ms ? (int)(end_ms - now_ms) : 0;
}

/* How long to wait: until the program's time is up, or that of a connection. */
static int wait_ms(const struct pollfd *fds, nfds_t n, int64_t end_ms)
{
	for (nfds_t i = 0; i < n; i++) {
		const struct sock *sock = socket_of(fds[i].fd);

		if (sock && sock->target_bytes && (end_ms < 0 || sock->give_up_ms < end_ms))
			end_ms = sock->give_up_ms;
	}
	return left_ms(end_ms);
}

static int poll_sockets(struct pollfd *fds, nfds_t n, struct pollfd *both, int timeout_ms)
{
	int64_t end_ms = timeout_ms < 0 ? -1 : fallback_now_ms() + timeout_ms;

	for (;;) {
		int result;

		to_sockets(fds, n, both);
		result = rpoll(both, 2 * n, wait_ms(fds, n, end_ms));
		if (result < 0)
			return -1;
		result = from_sockets(fds, n, both);
		if (result > 0)
			return result;
		if (result == 0 && !give_up(fds, n) && end_ms >= 0 && end_ms <= fallback_now_ms())
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
	if (n > FEW)
		both = calloc(2 * n, sizeof(*both));
	if (!both)
		return -1;
	result = poll_sockets(fds, n, both, timeout_ms);
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

static bool is_in(int fd, const fd_set *set)
{
	return set && FD_ISSET(fd, set);
}

static nfds_t from_sets(int n, const fd_set *in, const fd_set *out, const fd_set *err,
			struct pollfd *fds)
{
	nfds_t count = 0;

	for (int fd = 0; fd < n; fd++) {
		int events = (is_in(fd, in) ? POLLIN : 0) | (is_in(fd, out) ? POLLOUT : 0) |
			     (is_in(fd, err) ? POLLPRI : 0);

		if (events)
			fds[count++] = (struct pollfd){ .fd = fd, .events = (short)events };
	}
	return count;
}

static int put(const struct pollfd *fd, int asked, int events, fd_set *set)
{
	if (!(fd->events & asked))
		return 0;
	if (!(fd->revents & events)) {
		FD_CLR(fd->fd, set);
		return 0;
	}
	return 1;
}

static int to_sets(const struct pollfd *fds, nfds_t n, fd_set *in, fd_set *out, fd_set *err)
{
	int count = 0;

	for (nfds_t i = 0; i < n; i++) {
		if (fds[i].revents & POLLNVAL) {
			errno = EBADF;
			return -1;
		}
		count += put(&fds[i], POLLIN, POLLIN | POLLHUP | POLLERR, in);
		count += put(&fds[i], POLLOUT, POLLOUT | POLLERR, out);
		count += put(&fds[i], POLLPRI, POLLPRI, err);
	}
	return count;
}

static int timeout_of(const struct timeval *timeout)
{
	int64_t ms = timeout ? timeout->tv_sec * 1000LL + (timeout->tv_usec + 999) / 1000 : -1;

	return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

EXPORT int select(int n, fd_set *in, fd_set *out, fd_set *err, struct timeval *timeout)
{
	struct pollfd fds[FD_SETSIZE];
	nfds_t count = n >= 0 && n <= FD_SETSIZE ? from_sets(n, in, out, err, fds) : 0;
	int result;

	if (!count_ours(fds, count))
		return real()->select(n, in, out, err, timeout);
	result = poll(fds, count, timeout_of(timeout));
	return result < 0 ? result : to_sets(fds, count, in, out, err);
}

/* --- epoll --------------------------------------------------------------- */

/* An epoll descriptor that is given a socket of ours gets an instance of repoll beside it, which
 * has the sockets, and the descriptor itself for all else. Return: the instance, or -1. */
static int repoll_beside(int epfd)
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
	struct sock *sock = socket_of(fd);
	int repoll;

	if (!sock || real_is_inside(__builtin_return_address(0)))
		return real()->epoll_ctl(epfd, op, fd, event);
	repoll = repoll_beside(epfd);
	if (repoll < 0)
		return -1;
	fallback_control(sock, repoll, op, event);
	errno = repoll_ctl(repoll, op, sock->rs, event);
	if (errno)
		return -1;
	sock->epfd = epfd;
	if (op == EPOLL_CTL_DEL)
		connecting_leave(fd, epfd);
	else
		connecting_note(fd, sock);
	return 0;
}

/* What the epoll descriptor itself has, in place of the event that says that it has something. */
static int unfold(int epfd, const struct sock *sock, struct epoll_event *events, int n, int room)
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

/* What cannot be had is TCP's from now on. Return: how many events are left, for the program. */
static int settle_failed(int epfd, struct epoll_event *events, int n)
{
	int64_t now_ms = fallback_now_ms();
	int fd;

	while ((fd = connecting_failed(epfd, events, &n, now_ms)) >= 0) {
		struct sock *sock = socket_of(fd);

		if (sock)
			fallback_retry(fd, sock);
	}
	return n;
}

static int wait_for_epoll(int epfd, const struct sock *sock, struct epoll_event *events, int room,
			  int timeout_ms)
{
	int64_t end_ms = timeout_ms < 0 ? -1 : fallback_now_ms() + timeout_ms;

	for (;;) {
		int n;

		errno = 0;
		n = repoll_wait(sock->rs, events, room, left_ms(connecting_until_ms(epfd, end_ms)));
		if (errno)
			return -1;
		n = settle_failed(epfd, events, n);
		n = unfold(epfd, sock, events, n, room);
		if (n || (end_ms >= 0 && end_ms <= fallback_now_ms()))
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
