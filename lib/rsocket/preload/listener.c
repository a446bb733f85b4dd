/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners, and what fork() does to sockets: see preload.h. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <string.h>

#include "base/forks.h"
#include "lib/diag/warning.h"
#include "lib/rsocket/preload/preload.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of await_connections() */

/* --- fork() --------------------------------------------------------------- */

/* Before fork(): a listener that this process has not waited for leaves the RDMA port. */
static void leave_port(int fd, struct sock *sock)
{
	(void)fd;
	if (!listener_may_be(sock) || sock->rs < 0)
		return;
	sock->is_blocking = !(rfcntl(sock->rs, F_GETFL) & O_NONBLOCK);
	if (sock->is_awaited)
		return;
	rclose(sock->rs);
	sock->rs = -1;
}

static void leave_ports(void)
{
	map_for_each(leave_port);
}

/* In a child, which has none of its parent's rsockets. */
static void drop_rsocket(int fd, struct sock *sock)
{
	(void)fd;
	sock->rs = -1;
	sock->repoll = -1;
	sock->is_awaited = false;
	sock->n_waiting = 0;
}

static void drop_rsockets(void)
{
	pthread_mutex_init(&lock, NULL);
	waiting_after_fork();
	map_for_each(drop_rsocket);
}

__attribute__((constructor)) static void register_handlers(void)
{
	forks_watch(leave_ports, NULL, drop_rsockets);
}

/* --- listeners ------------------------------------------------------------ */

int listener_start(struct sock *sock, int backlog)
{
	if (!listener_has_left(sock) && rlisten(sock->rs, backlog))
		return -1;
	sock->backlog = backlog > 0 ? backlog : 0;
	return sock->tcp < 0 ? 0 : fallback_listen(sock, backlog);
}

/* Return: an rsocket that listens on the port of the TCP socket, or -1 with errno set. */
static int listen_again(const struct sock *sock)
{
	int flags = SOCK_STREAM | SOCK_CLOEXEC | (sock->is_blocking ? 0 : SOCK_NONBLOCK);
	int rs = rsocket(sock->domain, flags, 0);

	if (rs < 0)
		return -1;
	if (fallback_rebind(sock, rs) == 0 && rlisten(rs, sock->backlog) == 0)
		return rs;
	rclose(rs);
	return -1;
}

static void await_connections(int fd, struct sock *sock)
{
	pthread_mutex_lock(&lock);
	if (sock->rs < 0 && sock->tcp >= 0 && !sock->is_awaited) {
		sock->rs = listen_again(sock);
		if (sock->rs < 0) {
			warning_of_tcp_listener(fd, -errno);
			fallback_become_tcp(fd, sock, sock->is_blocking);
		}
	}
	sock->is_awaited = true;
	pthread_mutex_unlock(&lock);
}

struct sock *listener_get(int fd)
{
	struct sock *sock = map_socket(fd);

	if (!sock || sock->backlog < 0 || sock->is_awaited)
		return sock;
	await_connections(fd, sock);
	return map_socket(fd);
}
