/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * select() in terms of poll(). Inline, because rselect() and the preload library's select() are in
 * different shared libraries.
 */
#ifndef LIB_RSOCKET_SELECT_H
#define LIB_RSOCKET_SELECT_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/select.h>

#define SELECT_N_SETS 3

/* One of the sets of select(). */
struct select_set {
	fd_set *fds;	/* or NULL */
	short asked;	/* poll() events to request for a member */
	short reported; /* poll() results that keep a member in the set */
};

/* FD_ISSET() and FD_CLR() for sets that are larger than fd_set, where those may abort. */
static inline fd_mask *select_word(fd_set *fds, int fd)
{
	return &((fd_mask *)(void *)fds)[fd / NFDBITS];
}

static inline fd_mask select_bit(int fd)
{
	return (fd_mask)(1UL << fd % NFDBITS);
}

/**
 * select_to_poll() - convert descriptors below @n; @ret has room for @n. Return: the number in any
 * set.
 */
static inline nfds_t select_to_poll(const struct select_set sets[SELECT_N_SETS], int n,
				    struct pollfd *ret)
{
	nfds_t count = 0;

	for (int fd = 0; fd < n; fd++) {
		short events = 0;

		for (int i = 0; i < SELECT_N_SETS; i++)
			if (sets[i].fds && *select_word(sets[i].fds, fd) & select_bit(fd))
				events |= sets[i].asked;
		if (events)
			ret[count++] = (struct pollfd){ .fd = fd, .events = events };
	}
	return count;
}

/** select_from_poll() - convert results. Return: as select(); -EBADF with unchanged sets. */
static inline int select_from_poll(const struct select_set sets[SELECT_N_SETS],
				   const struct pollfd *fds, nfds_t n)
{
	int count = 0;

	for (nfds_t i = 0; i < n; i++)
		if (fds[i].revents & POLLNVAL)
			return -EBADF;
	for (int i = 0; i < SELECT_N_SETS; i++)
		for (nfds_t j = 0; j < n; j++) {
			if (!(fds[j].events & sets[i].asked))
				continue;
			if (fds[j].revents & sets[i].reported)
				count++;
			else
				*select_word(sets[i].fds, fds[j].fd) &= ~select_bit(fds[j].fd);
		}
	return count;
}

/** select_is_valid() - return whether the kernel accepts a timeout of select() */
static inline bool select_is_valid(const struct timeval *timeout)
{
	return !timeout || (timeout->tv_sec >= 0 && timeout->tv_usec >= 0);
}

/** select_timeout_ms() - a valid timeout for poll(); -1 for NULL */
static inline int select_timeout_ms(const struct timeval *timeout)
{
	int64_t ms;

	if (!timeout)
		return -1;
	if (timeout->tv_sec > INT32_MAX / 1000)
		return INT32_MAX;
	ms = (int64_t)timeout->tv_sec * 1000 + timeout->tv_usec / 1000 +
	     (timeout->tv_usec % 1000 != 0);
	return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

#endif
