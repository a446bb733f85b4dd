/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every kind of handle of the socket layer has: stream sockets, datagram sockets and the
 * instances of repoll. The public calls find a handle in the table (table.h) and go through its
 * operations; what waits does so by wait.h.
 *
 * A handle is counted twice. The table holds one reference, each call inside another, so that a
 * socket that is closed under a waiting thread ends when that thread has left it. Whoever only
 * remembers it keeps its memory by a hold.
 *
 * Locks nest in this order: service (service.h), a handle's turns, a handle's lock, the engine's.
 */
#ifndef LIB_RSOCKET_RSOCK_H
#define LIB_RSOCKET_RSOCK_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/list.h"

struct rsock;

/* A datagram's or a stream's piece on its way: what sendmsg() and recvmsg() say of it. */
struct rs_transfer {
	const struct iovec *iov;
	int n_iov;
	int flags;
	struct sockaddr
		*addr; /* or NULL; of a receiver when sending, of the sender when receiving */
	socklen_t addr_bytes; /* room at addr; after receiving, the address's size */
};

/*
 * What a kind of handle can do. A missing row is -EOPNOTSUPP; all return 0 or more, or -errno, and
 * are called without the lock, except for the three that say otherwise.
 */
struct rsock_ops {
	int (*bind)(struct rsock *rs, const struct sockaddr *addr, socklen_t bytes);
	int (*listen)(struct rsock *rs, int backlog);
	int (*accept)(struct rsock *rs, struct sockaddr *addr, socklen_t *bytes);
	int (*connect)(struct rsock *rs, const struct sockaddr *addr, socklen_t bytes);
	int (*shutdown)(struct rsock *rs, int how);
	ssize_t (*send)(struct rsock *rs, const struct rs_transfer *out);
	/* May be cancelled unless it puts that off: a receive of what is there has no need to. */
	ssize_t (*recv)(struct rsock *rs, struct rs_transfer *in);
	int (*sockname)(struct rsock *rs, struct sockaddr_storage *ret);
	int (*peername)(struct rsock *rs, struct sockaddr_storage *ret);
	int (*setopt)(struct rsock *rs, int level, int name, const void *value, socklen_t bytes);
	int (*getopt)(struct rsock *rs, int level, int name, void *value, socklen_t *bytes);

	/* Locked: take what the device has completed, without waiting. */
	void (*progress)(struct rsock *rs);
	/* Locked: of these poll() events, which hold now; POLLERR and POLLHUP unasked. */
	short (*events)(struct rsock *rs, short wanted);
	/*
	 * Locked: ask for a wake-up when one of these poll() events may hold; one of others may
	 * come, too. Return: the descriptor that will be readable, or -1.
	 */
	int (*arm)(struct rsock *rs, short wanted);
	/* Locked: the descriptor was readable: take the wake-up off it. */
	void (*disarm)(struct rsock *rs);

	/* The table has let go: wake who waits, end the conversation. 0, or -errno: stays open. */
	int (*close)(struct rsock *rs);
	/* The last reference is gone: give up all but the memory of the handle itself. */
	void (*end)(struct rsock *rs);
};

struct rsock {
	const struct rsock_ops *ops;
	int fd;
	unsigned int refs;  /* atomic */
	unsigned int holds; /* atomic; the references together are one */
	int nonblocking;    /* atomic: O_NONBLOCK was set by the program */
	pthread_mutex_t lock;
	struct list watches; /* struct watcher: who wants to know of changes */
	unsigned int n_long; /* the last so many waits in a row were long: see wait.c */
	bool has_event;	     /* there is a wake-up to be taken before the next sleep: see wait.c */
	bool closed;	     /* by rclose() */
};

/**
 * rsock_init() - a handle with one reference, its maker's
 * @rs: first member of memory from malloc(), which is freed with the last hold
 */
void rsock_init(struct rsock *rs, const struct rsock_ops *ops);

/** rsock_end() - for rsock_put() alone; not cancelled. */
void rsock_end(struct rsock *rs);

/** rsock_get() - one reference more; rsock_put() for each, the last ends the handle. */
static inline void rsock_get(struct rsock *rs)
{
	__atomic_add_fetch(&rs->refs, 1, __ATOMIC_RELAXED);
}

static inline void rsock_put(struct rsock *rs)
{
	if (__atomic_sub_fetch(&rs->refs, 1, __ATOMIC_ACQ_REL) == 0)
		rsock_end(rs);
}

/** rsock_hold() - keep the memory and the lock; rsock_unhold() for each. */
void rsock_hold(struct rsock *rs);
void rsock_unhold(struct rsock *rs);

/** rsock_is_nonblocking() - for a call with these MSG_ flags. */
bool rsock_is_nonblocking(const struct rsock *rs, int flags);

#endif
