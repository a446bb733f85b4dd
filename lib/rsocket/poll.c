/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rpoll() and rselect(): sockets of ours and other descriptors, in one wait. See wait.h for how
 * nobody sleeps through what another thread takes.
 */
#include <errno.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <string.h>

#include "lib/api.h"
#include "lib/rsocket/settings.h"
#include "lib/rsocket/table.h"
#include "lib/rsocket/wait.h"

#define NS_PER_US    1000
#define FEW	     16 /* that need no allocation */
#define POLL_FAILED  (POLLERR | POLLNVAL)
#define READ_EVENTS  (POLLIN | POLLRDNORM | POLLHUP | POLLERR)
#define WRITE_EVENTS (POLLOUT | POLLWRNORM | POLLERR)

/* What we know of one of the program's entries. */
struct member {
	struct rsock *rs; /* NULL: none of ours */
	struct sleeper sleeper;
};

/* A call of rpoll(). */
struct round {
	struct pollfd *fds; /* the program's */
	nfds_t n;
	nfds_t n_ours;
	struct member *member;
	struct pollfd *sleep; /* what poll() gets: as fds, and the waker's at the end */
	struct waker *waker;
};

/* --- looking ------------------------------------------------------------- */

/* One of ours. For a sleep it is armed before it is looked at. */
static short look(struct round *round, nfds_t i, bool for_sleep)
{
	struct rsock *rs = round->member[i].rs;
	short events;

	pthread_mutex_lock(&rs->lock);
	if (for_sleep)
		round->sleep[i].fd = rs->ops->arm(rs, round->fds[i].events);
	rs->ops->progress(rs);
	events = rs->closed ? POLLNVAL : rs->ops->events(rs, round->fds[i].events);
	pthread_mutex_unlock(&rs->lock);
	return events;
}

/* Return: how many of ours are ready. */
static int look_at_ours(struct round *round, bool for_sleep)
{
	int n = 0;

	for (nfds_t i = 0; i < round->n; i++) {
		if (!round->member[i].rs)
			continue;
		round->fds[i].revents = look(round, i, for_sleep);
		n += round->fds[i].revents != 0;
	}
	return n;
}

/* After a poll(): what it says of others is theirs; ours are disarmed. Return: others ready. */
static int take_results(struct round *round)
{
	int n = 0;

	for (nfds_t i = 0; i < round->n; i++) {
		struct rsock *rs = round->member[i].rs;

		if (!rs) {
			round->fds[i].revents = round->sleep[i].revents;
			n += round->fds[i].revents != 0;
		} else if (round->sleep[i].revents) {
			pthread_mutex_lock(&rs->lock);
			watch_disarm(rs, &round->member[i].sleeper.watch);
			pthread_mutex_unlock(&rs->lock);
		}
	}
	return n;
}

static void hide_ours(struct round *round)
{
	for (nfds_t i = 0; i < round->n; i++)
		if (round->member[i].rs)
			round->sleep[i].fd = -1;
}

/* Everything as it is now. Return: how many are ready, or -errno. */
static int look_at_all(struct round *round)
{
	int ours = look_at_ours(round, false);
	int others = 0;

	if (round->n_ours < round->n) {
		hide_ours(round);
		if (poll(round->sleep, round->n, 0) < 0)
			return -errno;
		others = take_results(round);
	}
	return ours + others;
}

/* --- waiting ------------------------------------------------------------- */

static int look_for_a_while(struct round *round, const struct wait_until *until)
{
	struct timespec begin, now;
	int64_t most_ns = (int64_t)settings()->polling_us * NS_PER_US;
	int n;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		n = look_at_all(round);
		if (n || wait_is_over(until))
			return n;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000000000LL + now.tv_nsec - begin.tv_nsec <
		 most_ns);
	return 0;
}

static int sleep_once(struct round *round, const struct wait_until *until)
{
	int ours, others;

	waker_reset(round->waker);
	ours = look_at_ours(round, true);
	if (poll(round->sleep, round->n + 1, ours ? 0 : wait_left_ms(until)) < 0)
		return -errno;
	others = take_results(round);
	return ours + others ? ours + others : look_at_all(round);
}

static void watch_all(struct round *round)
{
	for (nfds_t i = 0; i < round->n; i++) {
		struct member *member = &round->member[i];

		if (!member->rs)
			continue;
		sleeper_init(&member->sleeper, round->waker);
		pthread_mutex_lock(&member->rs->lock);
		watch_add(member->rs, &member->sleeper.watch);
		pthread_mutex_unlock(&member->rs->lock);
	}
}

static void unwatch_all(struct round *round)
{
	for (nfds_t i = 0; i < round->n; i++) {
		struct member *member = &round->member[i];

		if (!member->rs)
			continue;
		pthread_mutex_lock(&member->rs->lock);
		watch_remove(&member->sleeper.watch);
		pthread_mutex_unlock(&member->rs->lock);
	}
}

static int sleep_until(struct round *round, const struct wait_until *until)
{
	int n;

	round->waker = waker_new();
	if (!round->waker)
		return -errno;
	round->sleep[round->n] = (struct pollfd){ .fd = round->waker->fd, .events = POLLIN };
	watch_all(round);
	do
		n = sleep_once(round, until);
	while (!n && !wait_is_over(until));
	unwatch_all(round);
	waker_free(round->waker);
	return n;
}

/* --- rpoll() ------------------------------------------------------------- */

static void find_ours(struct round *round)
{
	for (nfds_t i = 0; i < round->n; i++) {
		struct rsock *rs = round->fds[i].fd < 0 ? NULL : table_get(round->fds[i].fd);

		round->member[i].rs = rs;
		round->sleep[i] = round->fds[i];
		if (rs) {
			round->sleep[i].events = POLLIN;
			round->n_ours++;
		}
	}
}

static void let_go(struct round *round)
{
	for (nfds_t i = 0; i < round->n; i++)
		if (round->member[i].rs)
			rsock_put(round->member[i].rs);
}

static int run(struct round *round, int timeout_ms)
{
	struct wait_until until = wait_for_ms(timeout_ms);
	int n;

	find_ours(round);
	if (!round->n_ours) {
		n = poll(round->fds, round->n, timeout_ms);
		return n < 0 ? -errno : n;
	}
	n = look_for_a_while(round, &until);
	if (!n && !wait_is_over(&until))
		n = sleep_until(round, &until);
	let_go(round);
	return n;
}

static int poll_all(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	struct member few_members[FEW];
	struct pollfd few_sleeps[FEW + 1];
	struct round round = { .fds = fds, .n = n, .member = few_members, .sleep = few_sleeps };
	int result = -ENOMEM;

	if (n > FEW) {
		round.member = calloc(n, sizeof(*round.member));
		round.sleep = calloc(n + 1, sizeof(*round.sleep));
	}
	if (round.member && round.sleep)
		result = run(&round, timeout_ms);
	if (n > FEW) {
		free(round.member);
		free(round.sleep);
	}
	return result;
}

int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	return api_return(poll_all(fds, nfds, timeout));
}

/* --- rselect() ----------------------------------------------------------- */

static bool is_in(int fd, const fd_set *set)
{
	return set && FD_ISSET(fd, set);
}

static short wanted(int fd, const fd_set *in, const fd_set *out, const fd_set *err)
{
	return (short)((is_in(fd, in) ? POLLIN : 0) | (is_in(fd, out) ? POLLOUT : 0) |
		       (is_in(fd, err) ? POLLPRI : 0));
}

static nfds_t from_sets(int n, const fd_set *in, const fd_set *out, const fd_set *err,
			struct pollfd *fds)
{
	nfds_t count = 0;

	for (int fd = 0; fd < n; fd++) {
		short events = wanted(fd, in, out, err);

		if (events)
			fds[count++] = (struct pollfd){ .fd = fd, .events = events };
	}
	return count;
}

static void clear(fd_set *set)
{
	if (set)
		FD_ZERO(set);
}

static int put(const struct pollfd *fd, short asked, short events, fd_set *set)
{
	if (!set || !(fd->events & asked) || !(fd->revents & events))
		return 0;
	FD_SET(fd->fd, set);
	return 1;
}

static int to_sets(const struct pollfd *fds, nfds_t n, fd_set *in, fd_set *out, fd_set *err)
{
	int count = 0;

	clear(in);
	clear(out);
	clear(err);
	for (nfds_t i = 0; i < n; i++) {
		if (fds[i].revents & POLLNVAL)
			return -EBADF;
		count += put(&fds[i], POLLIN, READ_EVENTS, in);
		count += put(&fds[i], POLLOUT, WRITE_EVENTS, out);
		count += put(&fds[i], POLLPRI, POLLPRI | POLL_FAILED, err);
	}
	return count;
}

static int timeout_of(const struct timeval *timeout)
{
	int64_t ms;

	if (!timeout)
		return -1;
	ms = (int64_t)timeout->tv_sec * 1000 + (timeout->tv_usec + 999) / 1000;
	return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

static int select_all(int n, fd_set *in, fd_set *out, fd_set *err, const struct timeval *timeout)
{
	struct pollfd *fds;
	nfds_t count;
	int result;

	if (n < 0 || n > FD_SETSIZE)
		return -EINVAL;
	fds = calloc((size_t)n + 1, sizeof(*fds));
	if (!fds)
		return -ENOMEM;
	count = from_sets(n, in, out, err, fds);
	result = poll_all(fds, count, timeout_of(timeout));
	if (result >= 0)
		result = to_sets(fds, count, in, out, err);
	free(fds);
	return result;
}

int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	return api_return(select_all(nfds, readfds, writefds, exceptfds, timeout));
}
