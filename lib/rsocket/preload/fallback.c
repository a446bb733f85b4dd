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

#include "base/clock.h"
#include "lib/rsocket/preload/connecting.h"

#define GIVE_UP_MS 3000 /* without an answer: try TCP */

static bool is_stream(const struct sock *sock)
{
	return (sock->type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) == SOCK_STREAM;
}

static bool is_blocking(const struct sock *sock)
{
	return !(rfcntl(sock->rs, F_GETFL) & O_NONBLOCK);
}

/* Return: a TCP socket with the options of the other, or -1. */
static int open_tcp(const struct sock *sock, int flags)
{
	static const struct {
		int level, name;
		bool is_v6_only;
	} rows[] = {
		{SOL_SOCKET,    SO_REUSEADDR, false},
		{ IPPROTO_TCP,  TCP_NODELAY,  false},
		{ IPPROTO_IPV6, IPV6_V6ONLY,  true },
	};
	int tcp = real()->socket(sock->domain, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

	for (size_t i = 0; tcp >= 0 && i < sizeof(rows) / sizeof(rows[0]); i++) {
		int value;
		socklen_t bytes = sizeof(value);

		if (rows[i].is_v6_only && sock->domain != AF_INET6)
			continue;
		if (rgetsockopt(sock->rs, rows[i].level, rows[i].name, &value, &bytes) == 0)
			real()->setsockopt(tcp, rows[i].level, rows[i].name, &value, sizeof(value));
	}
	return tcp;
}

/* --- a listener ---------------------------------------------------------- */

/* Bind the RDMA socket to the port number that TCP got. */
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
	bool waits = is_blocking(sock);
	int tcp;

	if (!is_stream(sock))
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

int fallback_listen(struct sock *sock, int backlog)
{
	int result = real()->listen(sock->tcp, backlog);

	if (!result && sock->repoll >= 0)
		repoll_ctl(sock->repoll, EPOLL_CTL_ADD, sock->tcp, &sock->asked);
	return result;
}

void fallback_control(struct sock *sock, int repoll, int op, struct epoll_event *event)
{
	socklen_t bytes = sizeof(int);
	int listens = 0;

	if (op == EPOLL_CTL_DEL) {
		sock->repoll = -1;
		repoll_ctl(repoll, op, sock->tcp, NULL);
	} else if (event) {
		sock->repoll = repoll;
		sock->asked = *event;
		real()->getsockopt(sock->tcp, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes);
		if (listens && repoll_ctl(repoll, EPOLL_CTL_MOD, sock->tcp, event))
			repoll_ctl(repoll, EPOLL_CTL_ADD, sock->tcp, event);
	}
}

/* --- connect() ----------------------------------------------------------- */

/* Make the descriptor a TCP socket. */
static int swap_for_tcp(int fd, struct sock *sock, bool waits)
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

/* Never blocks in rconnect(): a host without RDMA does not answer at all. Return: as connect(). */
static int connect_rdma(struct sock *sock, const struct sockaddr *addr, socklen_t bytes, bool waits)
{
	struct pollfd fd = { .fd = sock->rs, .events = POLLOUT };
	int result, error = 0;
	socklen_t error_bytes = sizeof(error);

	rfcntl(sock->rs, F_SETFL, O_NONBLOCK);
	result = rconnect(sock->rs, addr, bytes);
	if (result && errno == EINPROGRESS && waits) {
		result = -1;
		if (rpoll(&fd, 1, GIVE_UP_MS) == 1 &&
		    rgetsockopt(sock->rs, SOL_SOCKET, SO_ERROR, &error, &error_bytes) == 0)
			result = error ? -1 : 0;
	}
	if (waits)
		rfcntl(sock->rs, F_SETFL, 0);
	return result;
}

int fallback_connect(int fd, struct sock *sock, const struct sockaddr *addr, socklen_t bytes)
{
	bool waits = is_blocking(sock);
	int result;

	if (!is_stream(sock))
		return rconnect(sock->rs, addr, bytes);
	errno = 0;
	result = connect_rdma(sock, addr, bytes, waits);
	if (!result || errno == EISCONN || errno == EALREADY)
		return result;
	if (errno == EINPROGRESS && !waits) {
		memcpy(&sock->target, addr,
		       bytes < sizeof(sock->target) ? bytes : sizeof(sock->target));
		sock->target_bytes = bytes;
		sock->give_up = cm_time_after(clock_now(), GIVE_UP_MS * CM_NS_PER_MS);
		connecting_note(fd, sock);
		errno = EINPROGRESS;
		return result;
	}
	if (swap_for_tcp(fd, sock, waits))
		return -1;
	return real()->connect(fd, addr, bytes);
}

bool fallback_retry(int fd, struct sock *sock)
{
	struct sockaddr_storage target = sock->target;
	socklen_t bytes = sock->target_bytes;
	struct list taken;
	bool done;

	if (!bytes)
		return false;
	sock->target_bytes = 0;
	connecting_take(fd, &taken);
	done = swap_for_tcp(fd, sock, false) == 0;
	/* In an epoll before it connects, a TCP socket would report a hang-up. */
	if (done)
		real()->connect(fd, (struct sockaddr *)&target, bytes);
	connecting_give(&taken);
	return done;
}
