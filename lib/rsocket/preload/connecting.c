/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets in an epoll whose connection is still being set up: see connecting.h.
 */
#include "lib/rsocket/preload/connecting.h"

#include <poll.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdlib.h>

#include "lib/rsocket/preload/real.h"

struct connecting {
	struct list link;
	int fd;
	int epfd;
	struct epoll_event asked;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list all = { &all, &all };
static unsigned int n_all; /* atomic: read without the lock to see if there is any */

static bool is_any(void)
{
	return __atomic_load_n(&n_all, __ATOMIC_ACQUIRE) != 0;
}

static void unlink_one(struct connecting *it)
{
	list_remove(&it->link);
	__atomic_sub_fetch(&n_all, 1, __ATOMIC_RELEASE);
}

void connecting_note(int fd, const struct sock *sock)
{
	const struct sock *epoll = map_get(sock->epfd);
	struct connecting *it = NULL, *each;

	if (!sock->target_bytes || !epoll || !epoll->is_repoll || epoll->rs != sock->repoll)
		return;
	pthread_mutex_lock(&lock);
	list_for_each_entry (each, &all, link)
		if (each->fd == fd && each->epfd == sock->epfd)
			it = each;
	if (!it) {
		/* Out of memory, the connection fails as it would without TCP. */
		it = calloc(1, sizeof(*it));
		if (it) {
			it->fd = fd;
			it->epfd = sock->epfd;
			list_prepend(&all, &it->link);
			__atomic_add_fetch(&n_all, 1, __ATOMIC_RELEASE);
		}
	}
	if (it)
		it->asked = sock->asked;
	pthread_mutex_unlock(&lock);
}

#define ANY -1

static void remove_matching(int fd, int epfd)
{
	struct connecting *it;

	if (!is_any())
		return;
	pthread_mutex_lock(&lock);
	list_for_each_entry_safe (it, &all, link) {
		if ((fd == ANY || it->fd == fd) && (epfd == ANY || it->epfd == epfd)) {
			unlink_one(it);
			free(it);
		}
	}
	pthread_mutex_unlock(&lock);
}

void connecting_leave(int fd, int epfd)
{
	remove_matching(fd, epfd);
}

void connecting_forget(int fd)
{
	remove_matching(fd, ANY);
	remove_matching(ANY, fd);
}

struct cm_time connecting_deadline(int epfd, struct cm_time deadline)
{
	const struct connecting *it;

	if (!is_any())
		return deadline;
	pthread_mutex_lock(&lock);
	list_for_each_entry (it, &all, link) {
		const struct sock *sock = map_get(it->fd);

		if (it->epfd == epfd && sock && sock->target_bytes)
			deadline = cm_time_earlier(deadline, sock->give_up);
	}
	pthread_mutex_unlock(&lock);
	return deadline;
}

/* --- the end of a connect() ---------------------------------------------- */

enum outcome {
	PENDING,
	DONE,
	FAILED
};

/* The socket itself is asked, too: others may have the same epoll data. */
static enum outcome outcome_of(const struct sock *sock, const struct epoll_event *event,
			       struct cm_time now)
{
	struct pollfd fd = { .fd = sock->rs, .events = POLLOUT };
	bool is_late = cm_time_reached(sock->give_up, now);

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

int connecting_take_failed(int epfd, struct epoll_event *events, int *n, struct cm_time now)
{
	int fd = -1;
	struct connecting *it;

	if (!is_any())
		return -1;
	pthread_mutex_lock(&lock);
	list_for_each_entry_safe (it, &all, link) {
		struct sock *sock = it->epfd == epfd ? map_get(it->fd) : NULL;
		enum outcome outcome;
		int i = 0;

		if (!sock)
			continue;
		while (i < *n && events[i].data.u64 != it->asked.data.u64)
			i++;
		outcome = outcome_of(sock, i < *n ? &events[i] : NULL, now);
		if (outcome == FAILED) {
			if (i < *n)
				events[i] = events[--*n];
			fd = it->fd;
			break;
		}
		if (outcome == DONE) {
			sock->target_bytes = 0;
			unlink_one(it);
			free(it);
		}
	}
	pthread_mutex_unlock(&lock);
	return fd;
}

/* --- from one kind to the other ------------------------------------------ */

void connecting_take(int fd, struct list *ret)
{
	const struct sock *sock = map_get(fd);
	struct connecting *it;

	list_init(ret);
	pthread_mutex_lock(&lock);
	list_for_each_entry_safe (it, &all, link) {
		const struct sock *epoll = map_get(it->epfd);

		if (it->fd != fd)
			continue;
		unlink_one(it);
		list_append(ret, &it->link);
		if (sock && epoll)
			repoll_ctl(epoll->rs, EPOLL_CTL_DEL, sock->rs, NULL);
	}
	pthread_mutex_unlock(&lock);
}

void connecting_give(struct list *taken)
{
	struct connecting *it;

	list_for_each_entry_safe (it, taken, link) {
		real()->epoll_ctl(it->epfd, EPOLL_CTL_ADD, it->fd, &it->asked);
		free(it);
	}
}
