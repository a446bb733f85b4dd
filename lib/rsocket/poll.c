/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rpoll() and rselect(): rsockets and other descriptors in one wait. See wait.h for how lost
 * wakeups are prevented.
 */
#include <errno.h>
#include <rdma/rsocket.h>
#include <stdlib.h>

#include "base/clock.h"
#include "lib/api.h"
#include "lib/rsocket/select.h"
#include "lib/rsocket/settings.h"
#include "lib/rsocket/wait.h"

#define FEW 16 /* entries that need no allocation */

/* State of one of the program's entries. */
struct member {
	struct rsock *rs; /* NULL: not an rsocket */
	struct sleeper sleeper;
};

/* A call of rpoll(). */
struct round {
	struct pollfd *fds; /* the program's */
	nfds_t n;
	nfds_t n_ours;
	struct member *member;
	struct pollfd *sleep; /* for poll(): as fds, followed by the waker's */
	struct waker *waker;
};

/* With @for_sleep, arms each socket before checking it. Return: the number of ready sockets. */
static int look_at_sockets(struct round *round, bool for_sleep)
{
	int n = 0;

	for (nfds_t i = 0; i < round->n; i++) {
		struct rsock *rs = round->member[i].rs;
		struct pollfd *fd = &round->fds[i];

		if (!rs)
			continue;
		pthread_mutex_lock(&rs->lock);
		if (for_sleep)
			round->sleep[i].fd = rs->ops->arm(rs, fd->events);
		rs->ops->progress(rs);
		fd->revents = rs->closed || rs->moved ? POLLNVAL : rs->ops->events(rs, fd->events);
		pthread_mutex_unlock(&rs->lock);
		n += fd->revents != 0;
	}
	return n;
}

/*
 * Copies poll() results of other descriptors, and disarms sockets with an event. Return: the number
 * of other descriptors that are ready.
 */
static int take_poll_results(struct round *round)
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

/* Return: the number of entries that are ready, or -errno. */
static int look_at_all(struct round *round)
{
	int n = look_at_sockets(round, false);

	if (round->n_ours == round->n)
		return n;
	for (nfds_t i = 0; i < round->n; i++)
		if (round->member[i].rs)
			round->sleep[i].fd = -1;
	if (poll(round->sleep, round->n, 0) < 0)
		return -errno;
	return n + take_poll_results(round);
}

static void watch_sockets(struct round *round, bool add)
{
	for (nfds_t i = 0; i < round->n; i++) {
		struct member *member = &round->member[i];

		if (!member->rs)
			continue;
		if (add)
			sleeper_init(&member->sleeper, round->waker);
		pthread_mutex_lock(&member->rs->lock);
		if (add)
			watch_add(member->rs, &member->sleeper.watch);
		else
			watch_remove(&member->sleeper.watch);
		pthread_mutex_unlock(&member->rs->lock);
	}
}

static int sleep_until_any_ready(struct round *round, struct cm_time deadline)
{
	int n;

	round->waker = waker_new();
	if (!round->waker)
		return -errno;
	round->sleep[round->n] = (struct pollfd){ .fd = round->waker->fd, .events = POLLIN };
	watch_sockets(round, true);
	do {
		waker_reset(round->waker);
		n = look_at_sockets(round, true);
		if (poll(round->sleep, round->n + 1, n ? 0 : wait_left_ms(deadline)) < 0) {
			n = -errno;
			break;
		}
		n += take_poll_results(round);
		if (!n)
			n = look_at_all(round);
	} while (!n && !wait_is_over(deadline));
	watch_sockets(round, false);
	waker_free(round->waker);
	return n;
}

/* Polls for the settings' polling time, then sleeps. Return: as poll(), or -errno. */
static int wait_until_any_ready(struct round *round, int timeout_ms)
{
	struct cm_time deadline = wait_deadline(timeout_ms);
	uint64_t begin_ns = clock_ns(), polling_ns = settings()->polling_us * UINT64_C(1000);
	int n;

	do
		n = look_at_all(round);
	while (!n && !wait_is_over(deadline) && clock_ns() - begin_ns < polling_ns);
	return n || wait_is_over(deadline) ? n : sleep_until_any_ready(round, deadline);
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
	if (!round.member || !round.sleep)
		goto out;
	for (nfds_t i = 0; i < n; i++) {
		round.member[i].rs = fds[i].fd < 0 ? NULL : table_get(fds[i].fd);
		round.sleep[i] = fds[i];
		if (round.member[i].rs) {
			round.sleep[i].events = POLLIN;
			round.n_ours++;
		}
	}
	if (round.n_ours) {
		result = wait_until_any_ready(&round, timeout_ms);
	} else {
		result = poll(fds, n, timeout_ms);
		result = result < 0 ? -errno : result;
	}
	for (nfds_t i = 0; i < n; i++)
		if (round.member[i].rs)
			rsock_put(round.member[i].rs);
out:
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

static int select_all(int n, const struct select_set *sets, const struct timeval *timeout)
{
	struct pollfd *fds;
	nfds_t count;
	int result;

	if (n < 0 || n > FD_SETSIZE || !select_is_valid(timeout))
		return -EINVAL;
	fds = calloc((size_t)n + 1, sizeof(*fds));
	if (!fds)
		return -ENOMEM;
	count = select_to_poll(sets, n, fds);
	result = poll_all(fds, count, select_timeout_ms(timeout));
	if (result >= 0)
		result = select_from_poll(sets, fds, count);
	free(fds);
	return result;
}

int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	const struct select_set sets[SELECT_N_SETS] = {
		{ readfds, POLLIN, POLLIN | POLLRDNORM | POLLHUP | POLLERR },
		{ writefds, POLLOUT, POLLOUT | POLLWRNORM | POLLERR },
		{ exceptfds, POLLPRI, POLLPRI | POLLERR },
	};

	return api_return(select_all(nfds, sets, timeout));
}
