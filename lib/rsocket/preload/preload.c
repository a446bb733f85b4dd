/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librspreload.so: calls that open, connect and close. See preload.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/env.h"
#include "lib/rsocket/preload/preload.h"
#include "lib/rsocket/rsock.h"
#include "lib/rsocket/select.h"

#define TYPE_FLAGS (SOCK_CLOEXEC | SOCK_NONBLOCK)

/* --- opening and closing ------------------------------------------------- */

/* Sizes from the environment, as in stock's preload library. */
static void set_sizes(int rs)
{
	static const struct {
		const char *variable;
		int option;
	} rows[] = {
		{ "RS_SQ_SIZE", RDMA_SQSIZE },
		{ "RS_RQ_SIZE", RDMA_RQSIZE },
		{ "RS_INLINE", RDMA_INLINE },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *text = env_get(rows[i].variable);
		int value = text ? atoi(text) : 0;

		if (text)
			rsetsockopt(rs, SOL_RDMA, rows[i].option, &value, sizeof(value));
	}
}

EXPORT int socket(int domain, int type, int protocol)
{
	int kind = type & ~TYPE_FLAGS;
	int fd, rs = -1;

	if (own_is_inside(__builtin_return_address(0)))
		return own_add(real()->socket(domain, type, protocol));
	if (domain == AF_UNIX || domain == AF_NETLINK || !config_wants(domain, kind, protocol))
		return closing_forget(real()->socket(domain, type, protocol));
	fd = map_open(type);
	if (fd >= 0)
		rs = rsocket(domain, type | SOCK_CLOEXEC, protocol);
	if (fd >= 0 && rs < 0)
		real()->close(fd);
	if (rs < 0)
		return closing_forget(real()->socket(domain, type, protocol));
	set_sizes(rs);
	return map_new(fd, rs, domain, type, protocol);
}

/* --- connecting ---------------------------------------------------------- */

EXPORT int bind(int fd, const struct sockaddr *addr, socklen_t bytes)
{
	struct sock *sock = map_socket(fd);

	return sock ? fallback_bind(fd, sock, addr, bytes) : real()->bind(fd, addr, bytes);
}

EXPORT int listen(int fd, int backlog)
{
	struct sock *sock = map_socket(fd);

	return sock ? listener_start(sock, backlog) : real()->listen(fd, backlog);
}

static int accept_rdma(struct sock *sock, struct sockaddr *addr, socklen_t *bytes, int flags)
{
	/* Before: without a free descriptor the connection waits for the next call, as TCP's. */
	int fd = map_open(flags), rs;

	if (fd < 0)
		return -1;
	rs = rfcntl(sock->rs, RSOCK_ACCEPT);
	if (rs < 0) {
		real()->close(fd);
		return -1;
	}
	/* It may have inherited O_NONBLOCK; TCP's never do. */
	rfcntl(rs, F_SETFL, flags & SOCK_NONBLOCK ? O_NONBLOCK : 0);
	fd = map_new(fd, rs, sock->domain, SOCK_STREAM | flags, sock->protocol);
	if (fd >= 0 && addr)
		getpeername(fd, addr, bytes);
	return fd;
}

/* Return: whether a signal interrupted a wait that accept() of a TCP socket would restart. */
static bool is_restarted(const struct sock *sock, int timeout_ms)
{
	int error = errno;
	bool is = timeout_ms < 0 && error == EINTR && rfcntl(sock->rs, RSOCK_RESTART) > 0;

	errno = error;
	return is;
}

/* Accepts the first connection over RDMA or TCP. */
static int accept_either(struct sock *sock, struct sockaddr *addr, socklen_t *bytes, int flags)
{
	struct pollfd both[2] = { { .fd = sock->rs, .events = POLLIN },
				  { .fd = sock->tcp, .events = POLLIN } };
	bool waits = !(rfcntl(sock->rs, F_GETFL) & O_NONBLOCK);
	struct timeval limit = { 0 };
	socklen_t limit_bytes = sizeof(limit);
	int timeout_ms = waits ? -1 : 0;

	if (waits && rgetsockopt(sock->rs, SOL_SOCKET, SO_RCVTIMEO, &limit, &limit_bytes) == 0 &&
	    (limit.tv_sec || limit.tv_usec))
		timeout_ms = select_timeout_ms(&limit);
	for (;;) {
		int fd = -1, n = rpoll(both, 2, timeout_ms);

		if (n < 0 && is_restarted(sock, timeout_ms))
			continue;
		if (n < 0)
			return -1;
		if (n && both[0].revents)
			fd = accept_rdma(sock, addr, bytes, flags);
		else if (n)
			fd = closing_forget(real()->accept4(sock->tcp, addr, bytes, flags));
		if (fd >= 0 && !both[0].revents)
			fallback_note(sock, fd, 0);
		if (fd >= 0)
			return fd;
		if (n == 0)
			errno = EAGAIN;
		if (n == 0 || !waits || errno != EAGAIN)
			return -1;
	}
}

EXPORT int accept4(int fd, struct sockaddr *addr, socklen_t *bytes, int flags)
{
	struct sock *sock = listener_get(fd);

	if (sock)
		return accept_either(sock, addr, bytes, flags);
	return closing_forget(real()->accept4(fd, addr, bytes, flags));
}

EXPORT int accept(int fd, struct sockaddr *addr, socklen_t *bytes)
{
	return accept4(fd, addr, bytes, 0);
}

EXPORT int connect(int fd, const struct sockaddr *addr, socklen_t bytes)
{
	struct sock *sock = map_socket(fd);

	return sock ? fallback_connect(fd, sock, addr, bytes) : real()->connect(fd, addr, bytes);
}

/* A listener has two sockets, or only that of TCP. */
EXPORT int shutdown(int fd, int how)
{
	struct sock *sock = map_socket(fd);
	int result = sock ? rshutdown(sock->rs, how) : -1;

	if (!sock || (result && relay_has_taken(fd, sock)))
		return real()->shutdown(fd, how);
	if (sock->tcp >= 0 && (result || sock->backlog >= 0))
		result = real()->shutdown(sock->tcp, how);
	return result;
}

/* --- names --------------------------------------------------------------- */

/* The end of a relay has the names of its socket. Return: 0. */
static int get_relayed(int fd, bool is_peer, struct sockaddr *addr, socklen_t room,
		       socklen_t *bytes)
{
	union name name;
	socklen_t name_bytes = name_get_relayed(fd, is_peer, &name);

	if (name_bytes) {
		memcpy(addr, &name, name_bytes < room ? name_bytes : room);
		*bytes = name_bytes;
	}
	return 0;
}

EXPORT int getsockname(int fd, struct sockaddr *addr, socklen_t *bytes)
{
	const struct sock *sock = map_socket(fd);
	socklen_t room = bytes ? *bytes : 0;

	if (sock && listener_has_left(sock))
		return real()->getsockname(sock->tcp, addr, bytes);
	if (sock)
		return name_get(sock, rgetsockname, addr, bytes);
	if (real()->getsockname(fd, addr, bytes))
		return -1;
	return addr->sa_family == AF_UNIX ? get_relayed(fd, false, addr, room, bytes) : 0;
}

EXPORT int getpeername(int fd, struct sockaddr *addr, socklen_t *bytes)
{
	const struct sock *sock = map_socket(fd);
	socklen_t room = bytes ? *bytes : 0;

	if (sock)
		return name_get(sock, rgetpeername, addr, bytes);
	if (real()->getpeername(fd, addr, bytes))
		return -1;
	return addr->sa_family == AF_UNIX ? get_relayed(fd, true, addr, room, bytes) : 0;
}

/* --- options -------------------------------------------------------------- */

static bool is_tcp_level(int level)
{
	return level == IPPROTO_TCP || level == IPPROTO_IP || level == IPPROTO_IPV6;
}

/*
 * Return: whether an option only controls TCP segments, and so has no effect over RDMA. Stock's
 * rsetsockopt() refuses it.
 */
static bool is_hint(const struct sock *sock, int level, int name)
{
	return sock_is_stream(sock) && level == IPPROTO_TCP &&
	       (name == TCP_CORK || name == TCP_QUICKACK || name == TCP_DEFER_ACCEPT);
}

static int set_option(struct sock *sock, int level, int name, const void *value, socklen_t bytes)
{
	if (level == SOL_SOCKET && name == SO_REUSEPORT && bytes >= sizeof(int)) {
		sock->reuses_port = *(const int *)value;
		return 0;
	}
	if (listener_has_left(sock))
		return real()->setsockopt(sock->tcp, level, name, value, bytes);
	if (is_hint(sock, level, name))
		return 0;
	return rsetsockopt(sock->rs, level, name, value, bytes);
}

/* Those of TCP and IP are accepted of a relay's end, and have no effect. */
EXPORT int setsockopt(int fd, int level, int name, const void *value, socklen_t bytes)
{
	struct sock *sock = map_socket(fd);
	union name relayed;
	int result;

	if (sock)
		return set_option(sock, level, name, value, bytes);
	result = real()->setsockopt(fd, level, name, value, bytes);
	if (result && is_tcp_level(level) && name_get_relayed(fd, true, &relayed))
		return 0;
	return result;
}

/* Return: 0 if it is a relay's end, which answers as TCP's socket; else @result. */
static int get_as_tcp(int fd, int level, int name, void *value, socklen_t *bytes, int result)
{
	bool is_kind = level == SOL_SOCKET;
	union name relayed;
	int answer = 0, before = errno;

	if (*bytes < sizeof(answer) || !name_get_relayed(fd, true, &relayed)) {
		errno = before;
		return result;
	}
	if (is_kind)
		answer = name == SO_DOMAIN ? relayed.any.sa_family : IPPROTO_TCP;
	memcpy(value, &answer, sizeof(answer));
	*bytes = level == IPPROTO_IP && name == IP_OPTIONS ? 0 : sizeof(answer);
	return 0;
}

static int get_option(const struct sock *sock, int level, int name, void *value, socklen_t *bytes)
{
	bool is_reuse = level == SOL_SOCKET && name == SO_REUSEPORT;
	int answer = is_reuse && sock->reuses_port;

	if ((is_reuse || is_hint(sock, level, name)) && *bytes >= sizeof(answer)) {
		memcpy(value, &answer, sizeof(answer));
		*bytes = sizeof(answer);
		return 0;
	}
	if (listener_has_left(sock))
		return real()->getsockopt(sock->tcp, level, name, value, bytes);
	return rgetsockopt(sock->rs, level, name, value, bytes);
}

EXPORT int getsockopt(int fd, int level, int name, void *value, socklen_t *bytes)
{
	const struct sock *sock = map_socket(fd);
	bool is_kind = level == SOL_SOCKET && (name == SO_DOMAIN || name == SO_PROTOCOL);
	int result;

	if (sock)
		return get_option(sock, level, name, value, bytes);
	result = real()->getsockopt(fd, level, name, value, bytes);
	if (is_kind ? result : !result || !is_tcp_level(level))
		return result;
	return get_as_tcp(fd, level, name, value, bytes, result);
}

/* --- fcntl(), ioctl() ---------------------------------------------------- */

static int control_flags(struct sock *sock, int cmd, long flags)
{
	if (!listener_has_left(sock))
		return rfcntl(sock->rs, cmd, flags);
	if (cmd == F_GETFL)
		return O_RDWR | (sock->is_blocking ? 0 : O_NONBLOCK);
	sock->is_blocking = !(flags & O_NONBLOCK);
	return 0;
}

EXPORT int fcntl(int fd, int cmd, ...)
{
	struct sock *sock = map_check(fd);
	va_list args;
	long arg;

	va_start(args, cmd);
	arg = va_arg(args, long);
	va_end(args);
	if (sock && (cmd == F_GETFL || cmd == F_SETFL))
		return control_flags(sock, cmd, arg);
	if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC)
		return closing_alias(fd, real()->fcntl(fd, cmd, arg));
	/* Other commands concern the descriptor itself. */
	return real()->fcntl(fd, cmd, arg);
}

EXPORT int fcntl64(int fd, int cmd, ...) __attribute__((alias("fcntl")));

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	struct sock *sock = map_check(fd);
	va_list args;
	void *arg;
	int n;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (sock && request == FIONBIO)
		return control_flags(sock, F_SETFL, *(int *)arg ? O_NONBLOCK : 0);
	if (!sock || request != FIONREAD)
		return real()->ioctl(fd, request, arg);
	n = rfcntl(sock->rs, RSOCK_UNREAD);
	if (n < 0 && relay_has_taken(fd, sock))
		return real()->ioctl(fd, request, arg);
	*(int *)arg = n > 0 ? n : 0;
	return 0;
}
