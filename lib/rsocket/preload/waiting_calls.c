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
#include <sys/eventfd.h>

#include "base/clock.h"
#include "lib/rsocket/preload/preload.h"
#include "lib/rsocket/select.h"
#include "lib/rsocket/wait.h"

#define FEW 16

/* Not declared in any header. */
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout_ms, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
		size_t room);

/* --- signals ------------------------------------------------------------- */

/*
 * The signal mask of ppoll(), pselect() or epoll_pwait() in this thread. librdmacm sleeps in
 * poll(), below, which sets it for the sleep, so that a signal either comes before the sleep and
 * ends it, or during it.
 */
static __thread const sigset_t *sleep_mask;

static int sleep_in_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	struct timespec timeout = { .tv_sec = timeout_ms / 1000,
				    .tv_nsec = timeout_ms % 1000 * 1000000L };

	if (!sleep_mask || !timeout_ms)
		return real()->poll(fds, n, timeout_ms);
	return real()->ppoll(fds, n, timeout_ms < 0 ? NULL : &timeout, sleep_mask);
}

bool timeout_is_valid(const struct timespec *timeout)
{
	return !timeout ||
	       (timeout->tv_sec >= 0 && timeout->tv_nsec >= 0 && timeout->tv_nsec < 1000000000);
}

int timeout_to_ms(const struct timespec *timeout)
{
	struct timeval rounded_up;

	if (!timeout)
		return -1;
	rounded_up = (struct timeval){ timeout->tv_sec, (timeout->tv_nsec + 999) / 1000 };
	return select_timeout_ms(&rounded_up);
}

/* --- poll() -------------------------------------------------------------- */

/* Return: the socket or epoll behind a descriptor; NULL if the kernel can wait for it. */
static struct sock *get_unpollable(int fd)
{
	struct sock *sock = map_get(fd);

	if (sock && map_is_away(sock))
		sock = map_socket(fd);
	return sock && sock->rs >= 0 ? sock : NULL;
}

static struct sock *get_epoll(int epfd);

static nfds_t count_ours(struct pollfd *fds, nfds_t n)
{
	nfds_t count = 0;

	for (nfds_t i = 0; i < n; i++) {
		listener_get(fds[i].fd);
		get_epoll(fds[i].fd);
		count += get_unpollable(fds[i].fd) != NULL;
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

/* A call of poll() that has a socket. */
struct round {
	struct pollfd *fds; /* the program's */
	nfds_t n;
	struct pollfd *both; /* for rpoll(): as fds, followed by the TCP sockets of listeners */
	nfds_t n_both;
	nfds_t *owner; /* index of the listener of each of those */
};

/*
 * Another socket that has been bound has a TCP socket too, which reports a hang-up. An epoll
 * descriptor with rsockets is polled through the instance beside it, which includes the descriptor.
 */
static void list_both(struct round *round)
{
	round->n_both = round->n;
	for (nfds_t i = 0; i < round->n; i++) {
		struct sock *sock = get_unpollable(round->fds[i].fd);

		round->both[i] = round->fds[i];
		if (!sock)
			continue;
		round->both[i].fd = sock->rs;
		if (sock->backlog < 0 || sock->tcp < 0)
			continue;
		round->owner[round->n_both - round->n] = i;
		round->both[round->n_both++] =
			(struct pollfd){ .fd = sock->tcp, .events = round->fds[i].events & POLLIN };
	}
}

/*
 * Copies the results. Return: the number of ready entries; -1 if a connection has become TCP or a
 * relay's, and all must be polled again.
 */
static int take_results(struct round *round)
{
	struct pollfd *from = round->both;
	int count = 0;
	bool again = false;

	for (nfds_t i = round->n; i < round->n_both; i++)
		from[round->owner[i - round->n]].revents |= from[i].revents & (POLLIN | POLLHUP);
	for (nfds_t i = 0; i < round->n; i++) {
		struct pollfd *fd = &round->fds[i];
		struct sock *sock = map_socket(fd->fd);

		fd->revents = from[i].revents;
		if (sock && from[i].revents & POLLERR && fallback_retry(fd->fd, sock))
			again = true;
		else if (from[i].revents & POLLNVAL && from[i].fd != fd->fd && !map_get(fd->fd))
			again = true;
		count += fd->revents != 0;
	}
	return again ? -1 : count;
}

static int poll_both(struct round *round, int timeout_ms)
{
	struct cm_time deadline = wait_deadline(timeout_ms);
	int result;

	for (;;) {
		list_both(round);
		result = rpoll(round->both, round->n_both, cm_time_ms_until(deadline, clock_now()));
		if (result < 0)
			return -1;
		result = take_results(round);
		if (result > 0)
			return result;
		if (result == 0 && cm_time_reached(deadline, clock_now()))
			return 0;
	}
}

EXPORT int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	struct pollfd few[2 * FEW];
	nfds_t few_owners[FEW];
	struct round round = { .fds = fds, .n = n, .both = few, .owner = few_owners };
	int result = -1;

	if (!count_ours(fds, n))
		return sleep_in_poll(fds, n, timeout_ms);
	check_all(fds, n);
	if (n > FEW) {
		round.both = calloc(2 * n, sizeof(*round.both));
		round.owner = calloc(n, sizeof(*round.owner));
	}
	if (round.both && round.owner)
		result = poll_both(&round, timeout_ms);
	if (n > FEW) {
		free(round.both);
		free(round.owner);
	}
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
	int result;

	if (!timeout_is_valid(timeout) || !count_ours(fds, n))
		return real()->ppoll(fds, n, timeout, mask);
	sleep_mask = mask;
	result = poll(fds, n, timeout_to_ms(timeout));
	sleep_mask = NULL;
	return result;
}

EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		       const sigset_t *mask, size_t room)
{
	if (n > room / sizeof(*fds))
		abort();
	return ppoll(fds, n, timeout, mask);
}

/* --- select() ------------------------------------------------------------ */

/* @fds has room for @n. Return: as select(); -ENOENT if no socket is in a set. */
static int select_by_poll(int n, const struct select_set sets[SELECT_N_SETS], struct pollfd *fds,
			  int timeout_ms)
{
	nfds_t count = select_to_poll(sets, n, fds);
	int result;

	if (!count_ours(fds, count))
		return -ENOENT;
	result = poll(fds, count, timeout_ms);
	if (result >= 0)
		result = select_from_poll(sets, fds, count);
	if (result != -EBADF)
		return result;
	errno = EBADF;
	return -1;
}

static int select_ours(int n, fd_set *in, fd_set *out, fd_set *err, int timeout_ms)
{
	const struct select_set sets[SELECT_N_SETS] = {
		{ in, POLLIN, POLLIN | POLLHUP | POLLERR },
		{ out, POLLOUT, POLLOUT | POLLERR },
		{ err, POLLPRI, POLLPRI },
	};
	struct pollfd few[FD_SETSIZE];
	struct pollfd *fds = few;
	int result;

	if (n > FD_SETSIZE)
		fds = calloc((size_t)n, sizeof(*fds));
	result = fds ? select_by_poll(n, sets, fds, timeout_ms) : -1;
	if (fds != few)
		free(fds);
	return result;
}

EXPORT int select(int n, fd_set *in, fd_set *out, fd_set *err, struct timeval *timeout)
{
	int result = -ENOENT;

	if (select_is_valid(timeout))
		result = select_ours(n, in, out, err, select_timeout_ms(timeout));
	return result == -ENOENT ? real()->select(n, in, out, err, timeout) : result;
}

EXPORT int pselect(int n, fd_set *in, fd_set *out, fd_set *err, const struct timespec *timeout,
		   const sigset_t *mask)
{
	int result = -ENOENT;

	sleep_mask = mask;
	if (timeout_is_valid(timeout))
		result = select_ours(n, in, out, err, timeout_to_ms(timeout));
	sleep_mask = NULL;
	return result == -ENOENT ? real()->pselect(n, in, out, err, timeout, mask) : result;
}

/* --- epoll --------------------------------------------------------------- */

static struct sock *renewed; /* protected by the lock of get_repoll_beside() */

/* A listener that was in the epoll of a forked child's parent. */
static void add_again(int fd, struct sock *sock)
{
	struct epoll_event asked = sock->asked;

	if (sock->epoll != renewed || sock->backlog < 0)
		return;
	sock = listener_get(fd);
	if (!sock)
		real()->epoll_ctl(renewed->epfd, EPOLL_CTL_ADD, fd, &asked);
	else if (!repoll_ctl(renewed->rs, EPOLL_CTL_ADD, sock->rs, &asked))
		fallback_control(fd, sock, renewed, EPOLL_CTL_ADD, &asked);
}

/*
 * The first rsocket creates an instance of repoll beside the epoll descriptor; the instance has the
 * rsockets, and the descriptor for everything else.
 */
static int make_repoll(struct sock *epoll, int epfd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = epoll };
	int repoll;

	if (epoll->epfd < 0)
		epoll->epfd = own_add(real()->fcntl(epfd, F_DUPFD_CLOEXEC, 0));
	repoll = epoll->epfd < 0 ? -1 : repoll_create(O_CLOEXEC);
	if (repoll < 0)
		return -1;
	errno = repoll_ctl(repoll, EPOLL_CTL_ADD, epoll->epfd, &event);
	if (errno) {
		rclose(repoll);
		return -1;
	}
	__atomic_store_n(&epoll->rs, repoll, __ATOMIC_SEQ_CST);
	/* Waiting threads have not polled the instance yet: each wakes up the next. */
	if (__atomic_load_n(&epoll->n_waiting, __ATOMIC_SEQ_CST)) {
		event.events = EPOLLIN | EPOLLET;
		epoll->kick_fd = own_add(real()->eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
		real()->epoll_ctl(epoll->epfd, EPOLL_CTL_ADD, epoll->kick_fd, &event);
	}
	renewed = epoll;
	map_for_each(add_again);
	return 0;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of get_repoll_beside() */

void waiting_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
}

/* Return: an epoll with an instance of repoll, or NULL. */
static struct sock *get_repoll_beside(int epfd)
{
	struct sock *epoll;
	int err;

	pthread_mutex_lock(&lock);
	epoll = map_get(epfd) ?: map_epoll(epfd);
	err = epoll && epoll->is_repoll && epoll->rs < 0 ? make_repoll(epoll, epfd) : 0;
	pthread_mutex_unlock(&lock);
	return epoll && epoll->is_repoll && !err ? epoll : NULL;
}

/* Return: the epoll behind a descriptor, or NULL. A forked child's gets an instance of its own. */
static struct sock *get_epoll(int epfd)
{
	struct sock *epoll = map_get(epfd);

	if (!epoll || !epoll->is_repoll)
		return NULL;
	if (epoll->epfd >= 0 && __atomic_load_n(&epoll->rs, __ATOMIC_SEQ_CST) < 0)
		get_repoll_beside(epfd);
	return epoll;
}

/* The kernel has the descriptor too, and detects cycles. */
static int control_nested(int epfd, int op, int fd, const struct epoll_event *event)
{
	struct epoll_event nothing = { .events = 0 };

	if (!get_repoll_beside(fd))
		return -1;
	return real()->epoll_ctl(epfd, op, fd, event ? &nothing : NULL);
}

EXPORT int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct sock *sock = map_check(fd) ? listener_get(fd) : map_get(fd);
	struct sock *epoll;

	if (!sock || own_is_inside(__builtin_return_address(0)))
		return real()->epoll_ctl(epfd, op, fd, event);
	if (sock->is_repoll && control_nested(epfd, op, fd, event))
		return -1;
	epoll = get_repoll_beside(epfd);
	if (!epoll)
		return -1;
	errno = repoll_ctl(epoll->rs, op, sock->rs, event);
	if (errno)
		return -1;
	if (!sock->is_repoll)
		fallback_control(fd, sock, epoll, op, event);
	return 0;
}

/* Removes the event of the descriptor that wakes up waiting threads, and wakes up the next. */
static int pass_kick(struct sock *sock, struct epoll_event *events, int n)
{
	for (int i = 0; i < n; i++) {
		if (events[i].data.ptr != sock)
			continue;
		if (__atomic_load_n(&sock->n_waiting, __ATOMIC_SEQ_CST))
			eventfd_write(sock->kick_fd, 1);
		events[i] = events[--n];
	}
	return n;
}

/* Replaces the event of the epoll descriptor itself by that descriptor's events. */
static int unfold_epoll(int epfd, struct sock *sock, struct epoll_event *events, int n, int room)
{
	for (int i = 0; i < n; i++) {
		int others;

		if (events[i].data.ptr != sock)
			continue;
		events[i] = events[--n];
		others = real()->epoll_pwait(epfd, &events[n], room - n, 0, NULL);
		return others > 0 ? n + pass_kick(sock, &events[n], others) : n;
	}
	return n;
}

static int wait_for_epoll(int epfd, struct sock *sock, struct epoll_event *events, int room,
			  struct cm_time deadline)
{
	for (;;) {
		int n;

		errno = 0;
		n = repoll_wait(sock->rs, events, room, cm_time_ms_until(deadline, clock_now()));
		if (errno)
			return -1;
		n = fallback_retry_all(sock, events, n);
		n = unfold_epoll(epfd, sock, events, n, room);
		if (n || cm_time_reached(deadline, clock_now()))
			return n;
	}
}

/*
 * Waits in the kernel, while the epoll has no rsocket. Return: as epoll_pwait(); -EAGAIN if it has
 * one.
 */
static int wait_in_kernel(int epfd, struct sock *sock, struct epoll_event *events, int room,
			  int timeout_ms, const sigset_t *mask)
{
	int n = 0;

	__atomic_add_fetch(&sock->n_waiting, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&sock->rs, __ATOMIC_SEQ_CST) < 0)
		n = real()->epoll_pwait(epfd, events, room, timeout_ms, mask);
	__atomic_sub_fetch(&sock->n_waiting, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&sock->rs, __ATOMIC_SEQ_CST) < 0 || n < 0)
		return n;
	n = pass_kick(sock, events, n);
	return n ? n : -EAGAIN;
}

EXPORT int epoll_pwait(int epfd, struct epoll_event *events, int room, int timeout_ms,
		       const sigset_t *mask)
{
	struct cm_time deadline = wait_deadline(timeout_ms);
	struct sock *sock = get_epoll(epfd);
	int n;

	if (!sock)
		return real()->epoll_pwait(epfd, events, room, timeout_ms, mask);
	n = wait_in_kernel(epfd, sock, events, room, timeout_ms, mask);
	if (n != -EAGAIN)
		return n;
	sleep_mask = mask;
	n = wait_for_epoll(epfd, sock, events, room, deadline);
	sleep_mask = NULL;
	return n;
}

EXPORT int epoll_wait(int epfd, struct epoll_event *events, int room, int timeout_ms)
{
	return epoll_pwait(epfd, events, room, timeout_ms, NULL);
}

EXPORT int epoll_pwait2(int epfd, struct epoll_event *events, int room,
			const struct timespec *timeout, const sigset_t *mask)
{
	const struct sock *sock = map_get(epfd);

	if (!sock || !sock->is_repoll || !timeout_is_valid(timeout))
		return real()->epoll_pwait2(epfd, events, room, timeout, mask);
	return epoll_pwait(epfd, events, room, timeout_to_ms(timeout), mask);
}
