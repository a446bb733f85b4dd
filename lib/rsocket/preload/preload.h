/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librspreload.so: runs programs that use TCP over sockets of ours, unchanged. preload.c has the
 * calls that open, connect and close, transfer.c those that transfer data, wait.c those that wait.
 *
 * Peers without RDMA are served, too: a connection that fails is tried with TCP, and a listener
 * also listens on a TCP port of the same number. The program sees one descriptor in all cases.
 */
#ifndef PRELOAD_H
#define PRELOAD_H

#include <poll.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/time.h"

#define EXPORT __attribute__((visibility("default")))

/* --- the C library's functions -------------------------------------------- */

/*
 * The functions of the C library that the preload library replaces, one row each, and the C
 * library's own, which it calls for all that is not a socket of ours.
 */

/* clang-format off */
/*
 * Those that do the same with the same arguments, on either kind: type, name, how the socket behind
 * the descriptor is found, parameters, and the arguments after the descriptor.
 */
#define REAL_SAME(X)                                                                             \
	X(int, shutdown, fork_settled, (int fd, int how), how)                                   \
	X(int, getpeername, map_get, (int fd, struct sockaddr *addr, socklen_t *bytes),          \
	  addr, bytes)                                                                           \
	X(int, getsockname, map_get, (int fd, struct sockaddr *addr, socklen_t *bytes),          \
	  addr, bytes)                                                                           \
	X(int, setsockopt, map_get,                                                              \
	  (int fd, int level, int name, const void *value, socklen_t bytes),                     \
	  level, name, value, bytes)                                                             \
	X(int, getsockopt, map_get,                                                              \
	  (int fd, int level, int name, void *value, socklen_t *bytes),                          \
	  level, name, value, bytes)                                                             \
	X(ssize_t, recv, fork_settled, (int fd, void *buf, size_t bytes, int flags),             \
	  buf, bytes, flags)                                                                     \
	X(ssize_t, recvfrom, fork_settled,                                                       \
	  (int fd, void *buf, size_t bytes, int flags, struct sockaddr *addr,                    \
	   socklen_t *addr_bytes),                                                               \
	  buf, bytes, flags, addr, addr_bytes)                                                   \
	X(ssize_t, read, fork_settled, (int fd, void *buf, size_t bytes), buf, bytes)            \
	X(ssize_t, readv, fork_settled, (int fd, const struct iovec *iov, int n), iov, n)        \
	X(ssize_t, send, fork_settled, (int fd, const void *buf, size_t bytes, int flags),       \
	  buf, bytes, flags)                                                                     \
	X(ssize_t, sendto, fork_settled,                                                         \
	  (int fd, const void *buf, size_t bytes, int flags, const struct sockaddr *addr,        \
	   socklen_t addr_bytes),                                                                \
	  buf, bytes, flags, addr, addr_bytes)                                                   \
	X(ssize_t, sendmsg, fork_settled, (int fd, const struct msghdr *msg, int flags),         \
	  msg, flags)                                                                            \
	X(ssize_t, write, fork_settled, (int fd, const void *buf, size_t bytes), buf, bytes)     \
	X(ssize_t, writev, fork_settled, (int fd, const struct iovec *iov, int n), iov, n)

#define REAL_OTHERS(X)                                                                           \
	X(int, socket, (int domain, int type, int protocol))                                     \
	X(int, bind, (int fd, const struct sockaddr *addr, socklen_t bytes))                     \
	X(int, listen, (int fd, int backlog))                                                    \
	X(int, accept4, (int fd, struct sockaddr *addr, socklen_t *bytes, int flags))            \
	X(int, connect, (int fd, const struct sockaddr *addr, socklen_t bytes))                  \
	X(int, close, (int fd))                                                                  \
	X(int, dup, (int fd))                                                                    \
	X(int, dup2, (int from, int to))                                                         \
	X(int, dup3, (int from, int to, int flags))                                              \
	X(int, fcntl, (int fd, int cmd, ...))                                                    \
	X(int, ioctl, (int fd, unsigned long request, ...))                                      \
	X(ssize_t, recvmsg, (int fd, struct msghdr *msg, int flags))                             \
	X(ssize_t, sendfile, (int out, int in, off_t *offset, size_t bytes))                     \
	X(int, poll, (struct pollfd *fds, nfds_t n, int timeout_ms))                             \
	X(int, ppoll, (struct pollfd *fds, nfds_t n, const struct timespec *timeout,             \
		       const sigset_t *mask))                                                    \
	X(int, select, (int n, fd_set *in, fd_set *out, fd_set *err, struct timeval *timeout))   \
	X(int, epoll_create1, (int flags))                                                       \
	X(int, epoll_ctl, (int epfd, int op, int fd, struct epoll_event *event))                 \
	X(int, epoll_pwait, (int epfd, struct epoll_event *events, int n, int timeout_ms,        \
			     const sigset_t *mask))
/* clang-format on */

struct real {
#define X(type, name, find, params, ...) type(*name) params;
	REAL_SAME(X)
#undef X
#define X(type, name, params) type(*name) params;
	REAL_OTHERS(X)
#undef X
};

/** real() - Return: all of them, looked up at the first call. */
const struct real *real(void);

/**
 * real_is_inside() - does librdmacm make this call?
 * @caller: __builtin_return_address(0)
 *
 * Its own sockets must not become RDMA sockets.
 */
bool real_is_inside(const void *caller);

/* --- what descriptors stand for ------------------------------------------- */

/*
 * Which socket each of the program's descriptors stands for. One that the preload library made is
 * open on /dev/null and stands for a socket of ours, which may change behind it. A listener has a
 * TCP socket besides, for peers without RDMA.
 */

#define MAP_FD_MAX 65535

struct sock {
	int refs; /* atomic: descriptors that stand for it */
	int rs;	  /* the socket of ours */
	int tcp;  /* TCP socket on the same port; -1: none */
	int domain;
	int type; /* with flags, as the program said */
	int protocol;
	int repoll;		  /* that has it, and tcp once it listens; -1: none */
	int epfd;		  /* beside which that instance is */
	struct epoll_event asked; /* by epoll_ctl() */
	bool is_repoll; /* the descriptor is an epoll one; rs: an instance of repoll beside it */
	struct sockaddr_storage target; /* of a pending connect() */
	socklen_t target_bytes;		/* 0: there is none */
	struct cm_time give_up;		/* when to try TCP */
	struct sock *next;		/* in the list of unused ones */
};

/** map_get() - Return: what a descriptor stands for, or NULL if for itself. */
struct sock *map_get(int fd);

/**
 * map_new() - a descriptor that stands for a socket
 * @rs: the socket, closed by map_forget()
 *
 * Return: the descriptor, or -1 with errno set; the socket is then still the caller's.
 */
int map_new(int rs, int domain, int type, int protocol);

/** map_become() - a TCP descriptor stands for a socket from now on. Return: 0, or -1; as it was. */
int map_become(int fd, int rs);

/** map_epoll() - an instance of repoll beside an epoll descriptor. Return: 0, or -1. */
int map_epoll(int epfd, int repoll);

/**
 * map_alias() - a duplicate, which is open already, stands for the same
 *
 * Return: 0; -1 with EMFILE if its number is beyond MAP_FD_MAX: it is closed then.
 */
int map_alias(int fd, struct sock *sock);

/** map_forget() - the descriptor stands for itself; the last closes the sockets behind. */
void map_forget(int fd);

/** map_swap() - from now on, the descriptor is this TCP socket, whose own number is closed. */
int map_swap(int fd, int tcp);

/* --- configuration -------------------------------------------------------- */

/*
 * /etc/rdma/rsocket/preload_config says which sockets of which programs use RDMA, a line each:
 *
 *     program domain type protocol
 *
 * A program is given by the beginning of its name; "*" means any. Without the file, or without a
 * line in it, all streams become ours.
 */

/** config_wants() - does a socket of this kind, without SOCK_ flags, become ours? */
bool config_wants(int domain, int type, int protocol);

/**
 * config_matches() - does a line select this socket of this program?
 * @is_entry: whether it is an entry, not empty and not a comment
 */
bool config_matches(const char *line, const char *program, int domain, int type, int protocol,
		    bool *is_entry);

/* --- TCP where there is no RDMA ------------------------------------------- */

/** fallback_bind() - bind(), both sockets to one port; only TCP if the address has no RDMA. */
int fallback_bind(int fd, struct sock *sock, const struct sockaddr *addr, socklen_t bytes);

/** fallback_connect() - connect(), with TCP if RDMA fails or the peer does not answer in time. */
int fallback_connect(int fd, struct sock *sock, const struct sockaddr *addr, socklen_t bytes);

/**
 * fallback_retry() - a pending connect() has failed: try TCP, without waiting
 *
 * Return: false if none was pending, or TCP was tried before; else the descriptor is TCP's.
 */
bool fallback_retry(int fd, struct sock *sock);

/** fallback_listen() - listen() on the TCP socket of a listener. Return: as listen(). */
int fallback_listen(struct sock *sock, int backlog);

/**
 * fallback_control() - epoll_ctl() has succeeded for a socket of ours
 * @epfd: has an instance of repoll beside it, which has the socket
 *
 * The TCP socket of a listener follows. Until it listens it reports a hang-up, which epoll cannot
 * mask: it is added when it listens. A socket whose connection fails becomes TCP and stays in its
 * epolls: what they ask of it is noted while a connect() is pending.
 */
void fallback_control(int fd, struct sock *sock, int epfd, int op, struct epoll_event *event);

/** fallback_forget() - a descriptor is closed, a socket or an epoll. */
void fallback_forget(int fd);

/** fallback_deadline() - Return: when to give up the first connect() in an epoll, or @deadline. */
struct cm_time fallback_deadline(int epfd, struct cm_time deadline);

/**
 * fallback_retry_all() - fallback_retry() of what has failed, or is late, in an epoll
 * @events: what the instance beside it reports, @n of them
 *
 * Return: how many events remain; those of connections that are retried with TCP are removed.
 */
int fallback_retry_all(int epfd, struct epoll_event *events, int n);

/* --- fork mode ------------------------------------------------------------ */

/*
 * Fork mode, for servers that fork after accept(): RDMAV_FORK_SAFE is set to a number that is not
 * 0, at both ends. A child process cannot use its parent's queue pair, so connections are made over
 * TCP and are moved to RDMA by the process that first transfers data.
 *
 * The accepting end then listens on the RDMA port of the same number, sends four zero bytes over
 * TCP, and accepts one connection; the other end waits for the zeros, and connects. Until then a
 * descriptor is plain TCP, and it stays so if the other end is not in fork mode.
 */

/** fork_mode() - is it on? */
bool fork_mode(void);

/**
 * fork_note_socket(), fork_note_connect(), fork_note_accept() - record what a TCP descriptor is
 *
 * A socket that would be ours; one whose connect() has begun; one from accept() on @listener. A
 * descriptor that was not noted as a socket stays TCP.
 */
void fork_note_socket(int fd);
void fork_note_connect(int fd);
void fork_note_accept(int listener, int fd);

/** fork_forget() - the descriptor is closed, or something else now. */
void fork_forget(int fd);

/** fork_alias() - a duplicate stands for the same; the one used first becomes RDMA. */
void fork_alias(int from, int to);

/**
 * fork_settle() - the descriptor is about to be used: make it RDMA if possible
 *
 * Waits for the other end's first use, 10 s on the connecting end. errno is kept.
 */
void fork_settle(int fd);

/** fork_settled() - map_get() of a descriptor that is about to be used. */
static inline struct sock *fork_settled(int fd)
{
	fork_settle(fd);
	return map_get(fd);
}

#endif
