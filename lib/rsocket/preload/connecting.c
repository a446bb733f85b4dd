/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets in an epoll whose connection is still being made: see connecting.h.
 */
#include "lib/rsocket/preload/connecting.h"

#include <poll.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdlib.h>

#include "lib/rsocket/preload/real.h"

struct connecting {
	struct connecting *next;
	int fd;
	int epfd;
	struct epoll_event asked;
};

static struct connecting *all; /* read without the lock only to see if there is any */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_any(void)
{
	return __atomic_load_n(&all, __ATOMIC_ACQUIRE) != NULL;
}

static struct connecting *unlink_from(struct connecting **place)
{
	struct connecting *it = *place;

	__atomic_store_n(place, it->next, __ATOMIC_RELEASE);
	return it;
}

static struct connecting *add(int fd, int epfd)
{
	struct connecting *it = calloc(1, sizeof(*it));

	if (!it)
		return NULL;
	it->fd = fd;
	it->epfd = epfd;
	it->next = all;
	__atomic_store_n(&all, it, __ATOMIC_RELEASE);
	return it;
}

void connecting_note(int fd, const struct sock *sock)
{
	const struct sock *epoll = map_get(sock->epfd);
	struct connecting *it;

	if (!sock->target_bytes || !epoll || !epoll->is_repoll || epoll->rs != sock->repoll)
		return;
	pthread_mutex_lock(&lock);
	for (it = all; it && (it->fd != fd || it->epfd != sock->epfd);)
		it = it->next;
	if (!it)
		it = add(fd, sock->epfd);
	/* Without memory, it fails as it would without TCP. */
	if (it)
		it->asked = sock->asked;
	pthread_mutex_unlock(&lock);
}

#define ANY -1

static void remove_all(int fd, int epfd)
{
	if (!is_any())
		return;
	pthread_mutex_lock(&lock);
	for (struct connecting **place = &all; *place;)
		if ((fd == ANY || (*place)->fd == fd) && (epfd == ANY || (*place)->epfd == epfd))
			free(unlink_from(place));
		else
			place = &(*place)->next;
	pthread_mutex_unlock(&lock);
}

void connecting_leave(int fd, int epfd)
{
	remove_all(fd, epfd);
}

void connecting_forget(int fd)
{
	remove_all(fd, ANY);
	remove_all(ANY, fd);
}

int64_t connecting_until_ms(int epfd, int64_t end_ms)
{
	if (!is_any())
		return end_ms;
	pthread_mutex_lock(&lock);
	for (const struct connecting *it = all; it; it = it->next) {
		const struct sock *sock = map_get(it->fd);

		if (it->epfd == epfd && sock && sock->target_bytes &&
		    (end_ms < 0 || sock->give_up_ms < end_ms))
			end_ms = sock->give_up_ms;
	}
	pthread_mutex_unlock(&lock);
	return end_ms;
}

/* --- what has become of them --------------------------------------------- */

enum fate {
	PENDING,
	DONE,
	FAILED
};

static int index_of(const struct connecting *it, const struct epoll_event *events, int n)
{
	for (int i = 0; i < n; i++)
		if (events[i].data.u64 == it->asked.data.u64)
			return i;
	return -1;
}

/* The socket itself is asked, too: others may have the same data. */
static enum fate fate_of(const struct sock *sock, const struct epoll_event *event, int64_t now_ms)
{
	struct pollfd fd = { .fd = sock->rs, .events = POLLOUT };
	bool is_late = sock->give_up_ms <= now_ms;

	if (!sock->target_bytes)
		return DONE;
	if (!event && !is_late)
		return PENDING;
	rpoll(&fd, 1, 0);
	if (fd.revents & POLLERR)
		return !event || event->events & EPOLLERR ? FAILED : DONE;
	if (fd.revents & POLLOUT)
		return DONE;
	return is_late ? FAILED : PENDING;
}

/* The lock is held. */
static int find_failed(int epfd, struct epoll_event *events, int *n, int64_t now_ms)
{
	for (struct connecting **place = &all; *place;) {
		struct connecting *it = *place;
		struct sock *sock = map_get(it->fd);
		int i = it->epfd == epfd ? index_of(it, events, *n) : -1;
		enum fate fate = PENDING;

		if (it->epfd == epfd && sock)
			fate = fate_of(sock, i < 0 ? NULL : &events[i], now_ms);
		if (fate == FAILED && i >= 0)
			events[i] = events[--*n];
		if (fate == FAILED)
			return it->fd;
		if (fate == DONE) {
			sock->target_bytes = 0;
			free(unlink_from(place));
		} else {
			place = &it->next;
		}
	}
	return -1;
}

int connecting_failed(int epfd, struct epoll_event *events, int *n, int64_t now_ms)
{
	int fd;

	if (!is_any())
		return -1;
	pthread_mutex_lock(&lock);
	fd = find_failed(epfd, events, n, now_ms);
	pthread_mutex_unlock(&lock);
	return fd;
}

/* --- from one kind to the other ------------------------------------------ */

struct connecting *connecting_take(int fd)
{
	const struct sock *sock = map_get(fd);
	struct connecting *taken = NULL;

	pthread_mutex_lock(&lock);
	for (struct connecting **place = &all; *place;) {
		struct connecting *it = *place;
		const struct sock *epoll = map_get(it->epfd);

		if (it->fd != fd) {
			place = &it->next;
			continue;
		}
		unlink_from(place);
		it->next = taken;
		taken = it;
		if (sock && epoll)
			repoll_ctl(epoll->rs, EPOLL_CTL_DEL, sock->rs, NULL);
	}
	pthread_mutex_unlock(&lock);
	return taken;
}

void connecting_give(struct connecting *taken)
{
	while (taken) {
		struct connecting *it = taken;

		taken = it->next;
		real()->epoll_ctl(it->epfd, EPOLL_CTL_ADD, it->fd, &it->asked);
		free(it);
	}
}
