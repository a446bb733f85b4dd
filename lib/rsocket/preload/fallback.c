/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP where there is no RDMA: see fallback.h.
 */
#include "lib/rsocket/preload/fallback.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>
#include <string.h>
#include <time.h>

#include "lib/rsocket/preload/connecting.h"

#define GIVE_UP_MS 3000 /* nobody has answered: is there TCP? */

static void copy_option(const struct sock *sock, int tcp, int level, int name)
{
	int value;
	socklen_t bytes = sizeof(value);

	if (rgetsockopt(sock->rs, level, name, &value, &bytes) == 0)
		real()->setsockopt(tcp, level, name, &value, sizeof(value));
}

/* Return: a TCP socket with the options of the other, or -1. */
static int open_tcp(const struct sock *sock, int flags)
{
	int tcp = real()->socket(sock->domain, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

	if (tcp < 0)
		return -1;
	copy_option(sock, tcp, SOL_SOCKET, SO_REUSEADDR);
	copy_option(sock, tcp, IPPROTO_TCP, TCP_NODELAY);
	if (sock->domain == AF_INET6)
		copy_option(sock, tcp, IPPROTO_IPV6, IPV6_V6ONLY);
	return tcp;
}

/* --- bind() -------------------------------------------------------------- */

/* The port that the one has is the one for the other. */
static int bind_same_port(struct sock *sock, int tcp, const struct sockaddr *addr, socklen_t bytes)
{
	struct sockaddr_in6 whole = { 0 }, got = { 0 };
	socklen_t got_bytes = sizeof(got);

	memcpy(&whole, addr, bytes < sizeof(whole) ? bytes : sizeof(whole));
	if (real()->getsockname(tcp, (struct sockaddr *)&got, &got_bytes))
		return -1;
	whole.sin6_port = got.sin6_port;
	return rbind(sock->rs, (struct sockaddr *)&whole, bytes);
}

int fallback_bind(int fd, struct sock *sock, const struct sockaddr *addr, socklen_t bytes)
{
	bool waits = !(rfcntl(sock->rs, F_GETFL) & O_NONBLOCK);
	int tcp;

	if ((sock->type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) != SOCK_STREAM)
		return rbind(sock->rs, addr, bytes);
	tcp = open_tcp(sock, SOCK_NONBLOCK);
	if (tcp < 0)
		return -1;
	if (real()->bind(tcp, addr, bytes)) {
		real()->close(tcp);
		return -1;
	}
	if (bind_same_port(sock, tcp, addr, bytes) == 0) {
		sock->tcp = tcp;
		return 0;
	}
	if (waits)
		real()->fcntl(tcp, F_SETFL, 0);
	return map_swap(fd, tcp);
}

/* --- listen() ------------------------------------------------------------ */

int fallback_listen(struct sock *sock, int backlog)
{
	int result = real()->listen(sock->tcp, backlog);

	if (!result && sock->repoll >= 0)
		repoll_ctl(sock->repoll, EPOLL_CTL_ADD, sock->tcp, &sock->asked);
	return result;
}

static bool listens(int tcp)
{
	socklen_t bytes = sizeof(int);
	int value = 0;

	return real()->getsockopt(tcp, SOL_SOCKET, SO_ACCEPTCONN, &value, &bytes) == 0 && value;
}

void fallback_control(struct sock *sock, int repoll, int op, struct epoll_event *event)
{
	if (op == EPOLL_CTL_DEL) {
		sock->repoll = -1;
		repoll_ctl(repoll, op, sock->tcp, NULL);
	} else if (event) {
		sock->repoll = repoll;
		sock->asked = *event;
		if (listens(sock->tcp) && repoll_ctl(repoll, EPOLL_CTL_MOD, sock->tcp, event))
			repoll_ctl(repoll, EPOLL_CTL_ADD, sock->tcp, event);
	}
}

/* --- connect() ----------------------------------------------------------- */

/* The descriptor becomes a TCP socket. */
static int swap(int fd, struct sock *sock, bool waits)
{
	int tcp = sock->tcp;

	sock->tcp = -1;
	if (tcp < 0)
		tcp = open_tcp(sock, 0);
	if (tcp < 0)
		return -1;
	real()->fcntl(tcp, F_SETFL, waits ? 0 : O_NONBLOCK);
	return map_swap(fd, tcp);
}

int64_t fallback_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Return: whether the connection is there in time. */
static bool wait_connected(const struct sock *sock)
{
	struct pollfd fd = { .fd = sock->rs, .events = POLLOUT };
	int error = 0;
	socklen_t bytes = sizeof(error);

	if (rpoll(&fd, 1, GIVE_UP_MS) != 1)
		return false;
	return rgetsockopt(sock->rs, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 && !error;
}

/* Begun without waiting in any case: a host that knows nothing of RDMA does not answer at all. */
static int begin(struct sock *sock, const struct sockaddr *addr, socklen_t bytes, bool waits)
{
	int result;

	rfcntl(sock->rs, F_SETFL, O_NONBLOCK);
	result = rconnect(sock->rs, addr, bytes);
	if (result && errno == EINPROGRESS && waits)
		result = wait_connected(sock) ? 0 : -1;
	if (waits)
		rfcntl(sock->rs, F_SETFL, 0);
	return result;
}

static bool is_stream(const struct sock *sock)
{
	return (sock->type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) == SOCK_STREAM;
}

int fallback_connect(int fd, struct sock *sock, const struct sockaddr *addr, socklen_t bytes)
{
	bool waits = !(rfcntl(sock->rs, F_GETFL) & O_NONBLOCK);
	int result;

	if (!is_stream(sock))
		return rconnect(sock->rs, addr, bytes);
	errno = 0;
	result = begin(sock, addr, bytes, waits);
	if (!result || errno == EISCONN || errno == EALREADY)
		return result;
	if (errno == EINPROGRESS && !waits) {
		memcpy(&sock->target, addr,
		       bytes < sizeof(sock->target) ? bytes : sizeof(sock->target));
		sock->target_bytes = bytes;
		sock->give_up_ms = fallback_now_ms() + GIVE_UP_MS;
		connecting_note(fd, sock);
		errno = EINPROGRESS;
		return result;
	}
	if (swap(fd, sock, waits))
		return -1;
	return real()->connect(fd, addr, bytes);
}

bool fallback_retry(int fd, struct sock *sock)
{
	struct sockaddr_storage target = sock->target;
	socklen_t bytes = sock->target_bytes;
	struct connecting *taken;
	bool done;

	if (!bytes)
		return false;
	sock->target_bytes = 0;
	taken = connecting_take(fd);
	done = swap(fd, sock, false) == 0;
	/* Before it connects, a TCP socket hangs up. */
	if (done)
		real()->connect(fd, (struct sockaddr *)&target, bytes);
	connecting_give(taken);
	return done;
}
