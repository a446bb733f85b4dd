/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The common part of all handles of the socket layer: stream sockets, datagram sockets and
 * instances of repoll. The public calls find a handle by its descriptor and use its operations;
 * wait.h implements waiting.
 *
 * A handle has two counts. The table and each call in progress hold a reference, so that a socket
 * that is closed while a thread waits ends when that thread has returned. A hold keeps only the
 * memory and the lock.
 *
 * Locks nest in this order: service (service_thread.h), a handle's tokens, a handle's lock, the
 * engine's.
 */
#ifndef LIB_RSOCKET_RSOCK_H
#define LIB_RSOCKET_RSOCK_H

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/list.h"
#include "lib/api.h"

struct rsock;

/*
 * Commands of rfcntl() for the preload library. RSOCK_MOVE: the socket moves to a relay, so calls
 * that wait to receive end with EBADF, and rpoll() with POLLNVAL; from then on only calls with the
 * flag receive, and they do not wait. RSOCK_HURRY: rconnect() fails with ETIMEDOUT if a host does
 * not answer soon, and with EHOSTDOWN if it did not lately. RSOCK_NOTE: enter a struct roster_row
 * for the TCP connection that this socket has become or accepted. RSOCK_ACCEPT: raccept() without
 * waiting: another thread may have accepted the connection that rpoll() reported, and the caller
 * waits for connections over TCP, too. RSOCK_UNREAD: the number of bytes that can be read at once.
 * RSOCK_RESTART: restart_look(), of any socket. RSOCK_FAILED: 1 if rconnect() has failed;
 * 0 otherwise, also after the failure of an established connection.
 */
#define RSOCK_MOVE    0x72736d76
#define RSOCK_HURRY   0x72736875
#define RSOCK_NOTE    0x72736e6f
#define RSOCK_ACCEPT  0x72736163
#define RSOCK_UNREAD  0x7273756e
#define RSOCK_RESTART 0x72737265
#define RSOCK_FAILED  0x72736661
#define RSOCK_TAKE    0x08000000 /* beside MSG_DONTWAIT */

/* The arguments of sendmsg() or recvmsg(). */
struct rs_transfer {
	const struct iovec *iov;
	int n_iov;
	int flags;
	struct sockaddr *addr; /* a datagram's receiver, or room for the sender's, or NULL */
	socklen_t addr_bytes;  /* size of that room; after receiving, of the address */
};

/*
 * The operations of a kind of handle. A missing operation means -EOPNOTSUPP. All return 0 or more,
 * or -errno, and are called without the lock unless stated otherwise.
 */
struct rsock_ops {
	int (*bind)(struct rsock *rs, const struct sockaddr *addr, socklen_t bytes);
	int (*listen)(struct rsock *rs, int backlog);
	int (*accept)(struct rsock *rs, struct sockaddr *addr, socklen_t *bytes);
	int (*connect)(struct rsock *rs, const struct sockaddr *addr, socklen_t bytes);
	int (*shutdown)(struct rsock *rs, int how);
	ssize_t (*send)(struct rsock *rs, const struct rs_transfer *out);
	/* Disables cancellation itself while it waits. */
	ssize_t (*recv)(struct rsock *rs, struct rs_transfer *in);
	int (*sockname)(struct rsock *rs, struct sockaddr_storage *ret);
	int (*peername)(struct rsock *rs, struct sockaddr_storage *ret);
	int (*setopt)(struct rsock *rs, int level, int name, const void *value, socklen_t bytes);
	int (*getopt)(struct rsock *rs, int level, int name, void *value, socklen_t *bytes);

	/* Locked: handle completions, without waiting. */
	void (*progress)(struct rsock *rs);
	/* Locked: the poll() events of @wanted that hold now, and POLLERR and POLLHUP. */
	short (*events)(struct rsock *rs, short wanted);
	/*
	 * Locked: request an event when one of these poll() events may hold; spurious events are
	 * allowed. Return: the descriptor that will be readable, or -1.
	 */
	int (*arm)(struct rsock *rs, short wanted);
	/* Locked: read the event from the descriptor. */
	void (*disarm)(struct rsock *rs);

	/*
	 * Called when the handle has left the table: wake up all waiting threads, end the
	 * connection.
	 */
	void (*close)(struct rsock *rs);
	/* Called for the last reference: free everything except the handle's own memory. */
	void (*end)(struct rsock *rs);
};

struct rsock {
	const struct rsock_ops *ops;
	int fd;
	unsigned int refs;  /* atomic */
	unsigned int holds; /* atomic; all references count as one */
	int nonblocking;    /* atomic: set by the program with O_NONBLOCK */
	pthread_mutex_t lock;
	struct list watches; /* struct watcher, notified of changes */
	unsigned int n_long; /* number of consecutive long waits: see wait.c */
	bool has_event;	     /* to be read before the next sleep: see wait.c */
	bool closed;	     /* by rclose() */
	bool moved;	     /* by RSOCK_MOVE */
	bool hurries;	     /* by RSOCK_HURRY */
};

/**
 * rsock_init() - initialize a handle with one reference, owned by the caller
 * @rs: first member of zeroed memory from calloc(), which is freed with the last hold
 */
void rsock_init(struct rsock *rs, const struct rsock_ops *ops);

/** rsock_end() - internal to rsock_put(); cancellation must be disabled */
void rsock_end(struct rsock *rs);

/** rsock_get() - take a reference, to be released with rsock_put(); the last ends the handle */
static inline void rsock_get(struct rsock *rs)
{
	__atomic_add_fetch(&rs->refs, 1, __ATOMIC_RELAXED);
}

static inline void rsock_put(struct rsock *rs)
{
	if (__atomic_sub_fetch(&rs->refs, 1, __ATOMIC_ACQ_REL) == 0)
		rsock_end(rs);
}

/** rsock_hold() - keep the memory and the lock until rsock_unhold() */
void rsock_hold(struct rsock *rs);
void rsock_unhold(struct rsock *rs);

/**
 * rsock_verbs_error() - the -errno of a failed libibverbs call, which may not set errno: clear it
 * before
 */
static inline int rsock_verbs_error(void)
{
	return errno ? -errno : -ENOMEM;
}

/** rs_transfer_bytes() - the total size of all buffers */
size_t rs_transfer_bytes(const struct rs_transfer *transfer);

/* A position in the program's buffers. */
struct rs_cursor {
	const struct iovec *iov;
	size_t at; /* in the first of them */
};

/**
 * rs_advance() - advance by up to *bytes, but not beyond a buffer. Return: the old position;
 * *bytes.
 */
void *rs_advance(struct rs_cursor *cursor, uint32_t *bytes);

/**
 * rs_gather(), rs_scatter() - copy @bytes from and to the program's buffers, which must be large
 * enough
 */
void rs_gather(struct rs_cursor *from, uint8_t *to, uint32_t bytes);
void rs_scatter(struct rs_cursor *to, const uint8_t *from, uint32_t bytes);

/** rsock_is_nonblocking() - return whether a call with these MSG_ flags must not block */
bool rsock_is_nonblocking(const struct rsock *rs, int flags);

/* The handle table: the descriptors of this process that are rsockets. */

#define TABLE_FD_MAX 65535

/**
 * table_add() - enter a handle under rs->fd
 *
 * The table takes over the caller's reference until table_take().
 *
 * Return: 0; -ENOMEM, as stock, for a descriptor that is too large.
 */
int table_add(struct rsock *rs);

/**
 * table_get() - Return: the handle, to be released with rsock_put(); NULL if it is not an rsocket.
 */
struct rsock *table_get(int fd);

/** table_end() - Return: a descriptor above those of all handles. */
int table_end(void);

/** table_take() - remove a handle. Return: the handle with the table's reference, or NULL. */
struct rsock *table_take(int fd);

/** table_after_fork() - in a forked child: release the locks, and drop the parent's sockets */
void table_after_fork(void);

/**
 * rsock_with() - evaluate a call with the handle of a descriptor, which it refers to as rs
 *
 * The call disables cancellation itself while it waits. Return: its result, or -1 with errno set:
 * EBADF if the descriptor is not an rsocket.
 */
#define rsock_with(socket, call)                                      \
	({                                                            \
		struct rsock *rs = table_get(socket);                 \
		__typeof__(call) rsock_result = rs ? (call) : -EBADF; \
                                                                      \
		if (rs)                                               \
			rsock_put(rs);                                \
		if (rsock_result < 0) {                               \
			errno = (int)-rsock_result;                   \
			rsock_result = -1;                            \
		}                                                     \
		rsock_result;                                         \
	})

/** rsock_call() - like rsock_with(), with cancellation disabled */
#define rsock_call(socket, call)                                       \
	({                                                             \
		int rsock_cancel_state = api_enter();                  \
		__auto_type rsock_returned = rsock_with(socket, call); \
                                                                       \
		api_leave(rsock_cancel_state);                         \
		rsock_returned;                                        \
	})

#endif
