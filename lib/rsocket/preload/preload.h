/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librspreload.so: runs unmodified TCP programs over rsockets. preload.c has the calls that open,
 * connect and close, plain_calls.c those that transfer data, waiting_calls.c those that wait.
 *
 * Peers without RDMA are supported: a connection that fails is retried with TCP, and a listener
 * also listens on a TCP port of the same number. The program sees one descriptor in all cases.
 */
#ifndef PRELOAD_H
#define PRELOAD_H

#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#define EXPORT __attribute__((visibility("default")))

/* --- the C library's functions -------------------------------------------- */

/*
 * The functions of the C library that the preload library replaces, one row each, and the C
 * library's own, which it calls for all other descriptors.
 */

/* clang-format off */
/*
 * Functions with equal arguments and meaning for both kinds: type, name, function that finds the
 * socket behind the descriptor, parameters, and the arguments after the descriptor.
 */
#define REAL_SAME(X)                                                                             \
	X(ssize_t, recv, map_socket, (int fd, void *buf, size_t bytes, int flags),             \
	  buf, bytes, flags)                                                                     \
	X(ssize_t, recvfrom, map_socket,                                                       \
	  (int fd, void *buf, size_t bytes, int flags, struct sockaddr *addr,                    \
	   socklen_t *addr_bytes),                                                               \
	  buf, bytes, flags, addr, addr_bytes)                                                   \
	X(ssize_t, read, map_check, (int fd, void *buf, size_t bytes), buf, bytes)            \
	X(ssize_t, readv, map_check, (int fd, const struct iovec *iov, int n), iov, n)        \
	X(ssize_t, send, map_socket, (int fd, const void *buf, size_t bytes, int flags),         \
	  buf, bytes, flags)                                                                     \
	X(ssize_t, write, map_check, (int fd, const void *buf, size_t bytes), buf, bytes)     \
	X(ssize_t, writev, map_check, (int fd, const struct iovec *iov, int n), iov, n)

#define REAL_OTHERS(X)                                                                           \
	X(ssize_t, sendto,                                                                       \
	  (int fd, const void *buf, size_t bytes, int flags, const struct sockaddr *addr,        \
	   socklen_t addr_bytes))                                                                \
	X(int, socket, (int domain, int type, int protocol))                                     \
	X(int, setsockopt,                                                                       \
	  (int fd, int level, int name, const void *value, socklen_t bytes))                     \
	X(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *bytes))         \
	X(int, getpeername, (int fd, struct sockaddr *addr, socklen_t *bytes))                   \
	X(int, getsockname, (int fd, struct sockaddr *addr, socklen_t *bytes))                   \
	X(int, bind, (int fd, const struct sockaddr *addr, socklen_t bytes))                     \
	X(int, listen, (int fd, int backlog))                                                    \
	X(int, accept4, (int fd, struct sockaddr *addr, socklen_t *bytes, int flags))            \
	X(int, connect, (int fd, const struct sockaddr *addr, socklen_t bytes))                  \
	X(int, shutdown, (int fd, int how))                                                      \
	X(int, close, (int fd))                                                                  \
	X(int, close_range, (unsigned int first, unsigned int last, int flags))                  \
	X(long, syscall, (long number, ...))                                                     \
	X(int, open, (const char *path, int flags, ...))                                         \
	X(int, open64, (const char *path, int flags, ...))                                       \
	X(int, openat, (int folder, const char *path, int flags, ...))                           \
	X(int, openat64, (int folder, const char *path, int flags, ...))                         \
	X(int, eventfd, (unsigned int value, int flags))                                         \
	X(int, timerfd_create, (int clock, int flags))                                           \
	X(int, memfd_create, (const char *name, unsigned int flags))                             \
	X(int, pipe2, (int fd[2], int flags))                                                    \
	X(struct ibv_comp_channel *, ibv_create_comp_channel, (struct ibv_context * context))    \
	X(struct ibv_context *, ibv_open_device, (struct ibv_device * device))                   \
	X(FILE *, fdopen, (int fd, const char *mode))                                            \
	X(FILE *, freopen, (const char *path, const char *mode, FILE *stream))                   \
	X(int, vdprintf, (int fd, const char *format, va_list args))                             \
	X(int, dup, (int fd))                                                                    \
	X(int, dup2, (int from, int to))                                                         \
	X(int, dup3, (int from, int to, int flags))                                              \
	X(int, fcntl, (int fd, int cmd, ...))                                                    \
	X(int, ioctl, (int fd, unsigned long request, ...))                                      \
	X(ssize_t, recvmsg, (int fd, struct msghdr *msg, int flags))                             \
	X(ssize_t, sendmsg, (int fd, const struct msghdr *msg, int flags))                       \
	X(int, execve, (const char *path, char *const argv[], char *const env[]))                \
	X(int, execvpe, (const char *file, char *const argv[], char *const env[]))               \
	X(int, fexecve, (int fd, char *const argv[], char *const env[]))                         \
	X(int, execveat,                                                                         \
	  (int folder, const char *path, char *const argv[], char *const env[], int flags))      \
	X(int, posix_spawn,                                                                      \
	  (pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,              \
	   const posix_spawnattr_t *attr, char *const argv[], char *const env[]))                \
	X(int, posix_spawnp,                                                                     \
	  (pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,              \
	   const posix_spawnattr_t *attr, char *const argv[], char *const env[]))                \
	X(int, posix_spawn_file_actions_adddup2,                                                 \
	  (posix_spawn_file_actions_t *actions, int from, int to))                               \
	X(int, daemon, (int keeps_folder, int keeps_streams))                                    \
	X(int, system, (const char *command))                                                    \
	X(FILE *, popen, (const char *command, const char *mode))                                \
	X(ssize_t, sendfile, (int out, int in, off_t *offset, size_t bytes))                     \
	X(int, poll, (struct pollfd *fds, nfds_t n, int timeout_ms))                             \
	X(int, ppoll, (struct pollfd *fds, nfds_t n, const struct timespec *timeout,             \
		       const sigset_t *mask))                                                    \
	X(int, pselect, (int n, fd_set *in, fd_set *out, fd_set *err,                            \
			 const struct timespec *timeout, const sigset_t *mask))                  \
	X(int, select, (int n, fd_set *in, fd_set *out, fd_set *err, struct timeval *timeout))   \
	X(int, epoll_create, (int size))                                                         \
	X(int, epoll_create1, (int flags))                                                       \
	X(int, epoll_ctl, (int epfd, int op, int fd, struct epoll_event *event))                 \
	X(int, epoll_pwait, (int epfd, struct epoll_event *events, int n, int timeout_ms,        \
			     const sigset_t *mask))                                              \
	X(int, epoll_pwait2, (int epfd, struct epoll_event *events, int n,                       \
			      const struct timespec *timeout, const sigset_t *mask))             \
	X(int, recvmmsg, (int fd, struct mmsghdr *msg, unsigned int n, int flags,                \
			  struct timespec *timeout))                                             \
	X(int, sendmmsg, (int fd, struct mmsghdr *msg, unsigned int n, int flags))               \
	X(ssize_t, preadv2, (int fd, const struct iovec *iov, int n, off_t offset, int flags))   \
	X(ssize_t, pwritev2, (int fd, const struct iovec *iov, int n, off_t offset, int flags))  \
	X(ssize_t, copy_file_range,                                                              \
	  (int in, off64_t * in_at, int out, off64_t *out_at, size_t bytes, unsigned int flags)) \
	X(ssize_t, splice, (int in, off64_t *in_at, int out, off64_t *out_at, size_t bytes,      \
			    unsigned int flags))
/* clang-format on */

struct ibv_comp_channel;
struct ibv_context;
struct ibv_device;

struct real {
#define X(type, name, find, params, ...) type(*name) params;
	REAL_SAME(X)
#undef X
#define X(type, name, params) type(*name) params;
	REAL_OTHERS(X)
#undef X
};

/** real() - the C library's functions, looked up at the first call */
const struct real *real(void);

/* --- descriptors of the libraries ------------------------------------------ */

/*
 * librdmacm and the libraries that it uses have high numbers, so that the program's descriptors get
 * the low numbers that it expects, and the program cannot close theirs.
 */

/**
 * own_is_inside() - return whether the caller is librdmacm or a library that it uses
 * @caller: __builtin_return_address(0)
 *
 * Their own sockets must not become RDMA sockets, and only they close them.
 */
bool own_is_inside(const void *caller);

/**
 * own_add() - enter a descriptor of theirs, or -1
 *
 * Return: a higher number that replaces it; without a free one, @fd.
 */
int own_add(int fd);

/** own_keep() - enter a descriptor of theirs whose number cannot change */
void own_keep(int fd);

/** own_has() - return whether a descriptor is one of theirs */
bool own_has(int fd);

/** own_close() - close() of one of theirs, or any other */
int own_close(int fd);

/** own_memory() - in a forked child, before it closes any: this process has its memory */
void own_memory(void);

/**
 * own_is_lent() - return whether this is a child of vfork(), which has its parent's memory, but
 * descriptors of its own
 */
bool own_is_lent(void);

/* --- what descriptors stand for ------------------------------------------- */

/*
 * The sockets behind the program's descriptors. A descriptor that the preload library creates is a
 * placeholder, which the kernel neither transfers on nor polls, and represents an rsocket, which
 * may change behind it. A listener also has a TCP socket, for peers without RDMA.
 */

#define MAP_FD_MAX 65535

struct sock {
	int refs;	  /* descriptors; atomic */
	int rs;		  /* the rsocket */
	int tcp;	  /* TCP socket on the same port; -1: none */
	int backlog;	  /* of a listener; -1: none */
	bool is_bound;	  /* it may become a listener */
	bool is_awaited;  /* a listener that this process has waited for */
	bool is_blocking; /* a listener without rsocket */
	bool reuses_port; /* of TCP; the first to bind an RDMA port has it alone */
	int domain;
	int type; /* with flags, as requested */
	int protocol;
	int repoll;		  /* instance that has rs, and tcp once it listens; -1: none */
	struct sock *epoll;	  /* that this instance is beside; a forked child makes it anew */
	struct epoll_event asked; /* by epoll_ctl() */
	/*
	 * The descriptor is an epoll one; rs: an instance of repoll beside it, once it has an
	 * rsocket, or -1. epfd is a number of ours for it then, as the program may close the one
	 * that it has used, and kick_fd wakes up threads that wait for it without the instance.
	 */
	bool is_repoll;
	int epfd; /* -1: none */
	int kick_fd;
	int n_waiting;			/* threads; atomic */
	struct sockaddr_storage target; /* of a connect() that did not wait */
	socklen_t target_bytes;		/* 0: there is none */
	struct sock *next;		/* in the list of unused ones */
	bool is_away;			/* from this process: see the relays; atomic */
	int end;			/* of its relay, for the numbers; -1: none */
	int control;			/* to the process that has it; -1: none */
	int index;			/* there; -1: none */
};

/** map_get() - the socket or epoll behind a descriptor; NULL if there is none */
struct sock *map_get(int fd);

/** map_is_away() - return whether a relay has, or is to have, the socket */
static inline bool map_is_away(const struct sock *sock)
{
	return __atomic_load_n(&sock->is_away, __ATOMIC_ACQUIRE);
}

/** relay_enter() - put the end of its relay in place of a number whose socket is away */
void relay_enter(int fd);

/** map_socket() - the socket behind a descriptor; NULL if there is none */
static inline struct sock *map_socket(int fd)
{
	struct sock *sock = map_get(fd);

	if (sock && map_is_away(sock)) {
		relay_enter(fd);
		return NULL;
	}
	return sock && !sock->is_repoll ? sock : NULL;
}

/**
 * map_check() - map_socket(), if the number is still the placeholder's
 *
 * The program may close it by means that this library does not see, and the kernel reuse it, for a
 * file. Costs a system call: for functions that also transfer to files. All other functions get new
 * numbers from calls that this library intercepts.
 */
struct sock *map_check(int fd);

/** map_open() - open a placeholder, for map_new(). Return: it, or -1 with errno set. */
int map_open(int type);

/**
 * map_new() - put a socket behind a placeholder
 * @rs: the socket, closed by map_forget()
 *
 * Return: the descriptor, or -1 with errno set; both are closed then.
 */
int map_new(int fd, int rs, int domain, int type, int protocol);

/**
 * map_epoll() - enter an epoll descriptor, without an instance of repoll
 *
 * Return: the entry; NULL with errno set: EBADF if @epfd is negative, ENOMEM if it exceeds
 * MAP_FD_MAX.
 */
struct sock *map_epoll(int epfd);

/**
 * map_alias() - put the same socket behind a duplicate, which is already open
 *
 * Return: 0; -1 with EMFILE if @fd exceeds MAP_FD_MAX, and is then closed.
 */
int map_alias(int fd, struct sock *sock);

/** map_for_each() - call a function for each descriptor of a socket or an epoll */
void map_for_each(void (*work)(int fd, struct sock *sock));

/** map_is_placeholder() - return whether the kernel's descriptor is still one of map_open() */
bool map_is_placeholder(int fd);

/** map_forget() - detach a descriptor */
void map_forget(int fd);

/** map_release() - drop a reference; the last one closes the sockets behind it */
void map_release(struct sock *sock);

/** map_after_fork() - in a forked child: reset the lock, which another thread may have held */
void map_after_fork(void);

/** map_swap() - replace a descriptor by a duplicate of a TCP socket. Return: 0, or -1. */
int map_swap(int fd, int tcp);

/* --- closing and duplicating ---------------------------------------------- */

/** closing_forget() - detach a number that is to be closed, or is new. Return: @fd, or -1. */
int closing_forget(int fd);

/** closing_alias() - put the same socket behind a new duplicate. Return: @to, or -1. */
int closing_alias(int from, int to);

/* --- transferring ----------------------------------------------------------- */

/** sock_is_stream() - return whether a socket is one of SOCK_STREAM */
static inline bool sock_is_stream(const struct sock *sock)
{
	return (sock->type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) == SOCK_STREAM;
}

/** transfer_send() - sendmsg() of a socket; as TCP's, a stream ignores an address */
ssize_t transfer_send(int fd, struct sock *sock, const struct msghdr *msg, int flags);

/** transfer_receive() - recvmsg() of a socket */
ssize_t transfer_receive(int fd, struct sock *sock, struct msghdr *msg, int flags);

/** making_give() - prepare the descriptors in a message for the process that receives it */
void making_give(const struct msghdr *msg);

/* --- addresses -------------------------------------------------------------- */

/* An IPv4 address may be mapped into IPv6, which RDMA devices do not know. */
union name {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_storage whole;
};

/** name_unmap() - copy an address, as IPv4 if it is mapped. Return: its size. */
socklen_t name_unmap(const struct sockaddr *addr, socklen_t bytes, union name *ret);

/**
 * name_get() - give the program an address of a socket, mapped if it is of AF_INET6
 * @get: rgetsockname() or rgetpeername()
 *
 * Return: as @get.
 */
int name_get(const struct sock *sock, int (*get)(int rs, struct sockaddr *addr, socklen_t *bytes),
	     struct sockaddr *addr, socklen_t *bytes);

/**
 * name_bind() - give a unix socket a name that has both addresses of a socket
 *
 * Its peer, which the program has instead, has these addresses then, in each process.
 */
void name_bind(int fd, const struct sock *sock);

/**
 * name_get_relayed() - an address of the peer of such a socket
 * @is_peer: that of getpeername()
 *
 * Return: its size; 0 if it is another descriptor.
 */
socklen_t name_get_relayed(int fd, bool is_peer, union name *ret);

/* --- configuration -------------------------------------------------------- */

/*
 * /etc/rdma/rsocket/preload_config determines which sockets of which programs use RDMA, a line
 * each:
 *
 *     program domain type protocol
 *
 * program is a prefix of the program's name, or "*". Without the file, or without entries in it,
 * all stream sockets use RDMA.
 */

/** config_wants() - return whether a socket of this kind, without SOCK_ flags, uses RDMA */
bool config_wants(int domain, int type, int protocol);

/**
 * config_matches() - return whether a line selects this socket of this program
 * @is_entry: set to false for an empty line or a comment
 */
bool config_matches(const char *line, const char *program, int domain, int type, int protocol,
		    bool *is_entry);

/* --- TCP where there is no RDMA ------------------------------------------- */

/**
 * fallback_bind() - bind() both sockets to one port; TCP only, if the address has no RDMA device
 */
int fallback_bind(int fd, struct sock *sock, const struct sockaddr *addr, socklen_t bytes);

/** fallback_connect() - connect(), with TCP if RDMA fails or the peer does not answer in time. */
int fallback_connect(int fd, struct sock *sock, const struct sockaddr *addr, socklen_t bytes);

/**
 * fallback_retry() - retry a pending connect() that has failed with TCP, without blocking
 *
 * Return: false if none has failed, or TCP was tried before; else the descriptor is a TCP socket.
 */
bool fallback_retry(int fd, struct sock *sock);

/** fallback_become_tcp() - make the descriptor a TCP socket. Return: 0, or -1 with errno set. */
int fallback_become_tcp(int fd, struct sock *sock, bool waits);

/**
 * fallback_note() - note a connection over TCP for `purecm stat --sockets`
 * @sock:  has the rsocket that has become it, or has accepted it
 * @error: why, positive errno; 0: it was the peer's choice
 */
void fallback_note(const struct sock *sock, int tcp, int error);

/** fallback_rebind() - bind an rsocket to the address of a listener's TCP socket */
int fallback_rebind(const struct sock *sock, int rs);

/** fallback_listen() - listen() on the TCP socket of a listener. Return: as listen(). */
int fallback_listen(struct sock *sock, int backlog);

/**
 * fallback_control() - note a successful epoll_ctl() of a socket
 * @epoll: the instance of repoll beside it has the socket
 *
 * A listener's TCP socket is added too, but only when it listens: before, it reports a hang-up,
 * which epoll cannot mask. A socket being connected is noted, because it becomes TCP while the
 * program waits for the epoll if that fails.
 */
void fallback_control(int fd, struct sock *sock, struct sock *epoll, int op,
		      struct epoll_event *event);

/** fallback_move() - replace a socket in all its epolls by a descriptor, with the events asked */
void fallback_move(const struct sock *sock, int fd);

/** fallback_forget() - forget a closed descriptor of a socket */
void fallback_forget(int fd);

/** fallback_forget_epoll() - remove all references to an epoll whose last descriptor is closed */
void fallback_forget_epoll(const struct sock *epoll);

/** fallback_after_fork() - in a forked child: forget what its parent connects */
void fallback_after_fork(void);

/**
 * fallback_retry_all() - fallback_retry() all failed connections in an epoll
 * @events: @n events from the instance beside it
 *
 * Return: the number of events left; those of connections that are retried with TCP are removed.
 */
int fallback_retry_all(const struct sock *epoll, struct epoll_event *events, int n);

/* --- listeners and fork() ---------------------------------------------------- */

/*
 * Sockets do not survive a fork(). Afterwards a listener uses TCP in both processes, and RDMA too
 * in the first one that waits for connections, so that clients of a server whose children accept do
 * not wait for its parent. A listener for which the parent has waited before keeps RDMA in the
 * parent.
 */

/** listener_start() - listen() of a socket. Return: as listen(). */
int listener_start(struct sock *sock, int backlog);

/** listener_may_be() - return whether a socket listens, or may do so later in another process */
static inline bool listener_may_be(const struct sock *sock)
{
	return sock->backlog >= 0 || sock->is_bound;
}

/**
 * listener_has_left() - return whether a listener has no rsocket since a fork(), as nobody has
 * waited for it in this process
 */
static inline bool listener_has_left(const struct sock *sock)
{
	return sock->rs < 0 && sock->tcp >= 0;
}

/** timeout_is_valid() - return whether the kernel accepts a timeout; NULL is valid */
bool timeout_is_valid(const struct timespec *timeout);

/** timeout_to_ms() - convert a valid timeout for poll(); -1 for NULL */
int timeout_to_ms(const struct timespec *timeout);

/** waiting_after_fork() - in a forked child: reset the lock of waiting_calls.c */
void waiting_after_fork(void);

/** listener_get() - map_socket() for a program that waits; for connections, if it listens */
struct sock *listener_get(int fd);

/* --- relays ------------------------------------------------------------------ */

/*
 * Only the process that has its queue pair can use a connection. If another one needs it, a thread
 * copies between the rsocket and one end of a pair of unix sockets, and the other end replaces the
 * program's numbers: from then on the kernel does what is done to them. The end is made when a
 * forked child first uses the connection, which it asks for over a control socket; when a
 * descriptor is sent to another process; and before exec(). Until then the parent uses RDMA
 * directly, and the child's number is a placeholder. The socket is closed when no number of the
 * parent and no child has it.
 */

/** relay_has_taken() - return whether a call failed because its socket moved to a relay */
static inline bool relay_has_taken(int fd, const struct sock *sock)
{
	return map_is_away(sock) && !map_socket(fd);
}

/** relay_give() - prepare a number for another process: by a relay, or TCP without a connection */
void relay_give(int fd);

/** relay_is_any() - return whether this process has a relay */
bool relay_is_any(void);

/** relay_release() - report to the process that has the socket that this one has closed it */
void relay_release(const struct sock *sock);

#endif
