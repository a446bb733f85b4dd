/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets behind descriptors: see preload.h. */
#include "lib/rsocket/preload/preload.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct sock *socks[MAP_FD_MAX + 1]; /* atomic */
static int n_socks;			   /* the highest that was ever used, plus one; atomic */
static struct sock *spares;		   /* never freed: a call may still use one */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* --- placeholders --------------------------------------------------------- */

/*
 * O_PATH of a socket, which needs /proc; without it of the root folder. The kernel refuses each
 * transfer and each wait, so that a function that is not intercepted fails.
 */
int map_open(int type)
{
	int cloexec = type & SOCK_CLOEXEC ? O_CLOEXEC : 0;
	int fd = real()->socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char path[32];
	int other;

	if (fd < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	other = real()->open(path, O_PATH | O_CLOEXEC);
	if (other < 0)
		other = real()->open("/", O_PATH | O_CLOEXEC);
	/* In place of the socket, which has the lowest number. */
	if (other < 0 || real()->dup3(other, fd, cloexec) < 0) {
		real()->close(fd);
		fd = -1;
	}
	if (other >= 0)
		real()->close(other);
	return fd;
}

/* Sockets and files are not O_PATH, and nobody reads or writes a file that is. */
bool map_is_placeholder(int fd)
{
	int flags = real()->fcntl(fd, F_GETFL);

	return flags >= 0 && flags & O_PATH;
}

/* --- the table ------------------------------------------------------------ */

struct sock *map_get(int fd)
{
	if (fd < 0 || fd > MAP_FD_MAX)
		return NULL;
	return __atomic_load_n(&socks[fd], __ATOMIC_ACQUIRE);
}

static void set_sock(int fd, struct sock *sock)
{
	int n = __atomic_load_n(&n_socks, __ATOMIC_RELAXED);

	while (sock && n <= fd &&
	       !__atomic_compare_exchange_n(&n_socks, &n, fd + 1, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
	__atomic_store_n(&socks[fd], sock, __ATOMIC_RELEASE);
}

void map_for_each(void (*work)(int fd, struct sock *sock))
{
	int n = __atomic_load_n(&n_socks, __ATOMIC_RELAXED);

	for (int fd = 0; fd < n; fd++) {
		struct sock *sock = map_get(fd);

		if (sock)
			work(fd, sock);
	}
}

static struct sock *make_sock(int rs)
{
	struct sock *sock;

	pthread_mutex_lock(&lock);
	sock = spares;
	if (sock)
		spares = sock->next;
	pthread_mutex_unlock(&lock);
	if (!sock)
		sock = malloc(sizeof(*sock));
	if (sock)
		*sock = (struct sock){ .refs = 1,
				       .rs = rs,
				       .tcp = -1,
				       .backlog = -1,
				       .repoll = -1,
				       .epfd = -1,
				       .kick_fd = -1,
				       .end = -1,
				       .control = -1,
				       .index = -1 };
	return sock;
}

int map_new(int fd, int rs, int domain, int type, int protocol)
{
	struct sock *sock = fd > MAP_FD_MAX ? NULL : make_sock(rs);

	if (!sock) {
		real()->close(fd);
		rclose(rs);
		errno = ENOMEM;
		return -1;
	}
	sock->domain = domain;
	sock->type = type;
	sock->protocol = protocol;
	set_sock(fd, sock);
	return fd;
}

struct sock *map_epoll(int epfd)
{
	struct sock *sock = epfd < 0 || epfd > MAP_FD_MAX ? NULL : make_sock(-1);

	if (!sock) {
		errno = epfd < 0 ? EBADF : ENOMEM;
		return NULL;
	}
	sock->is_repoll = true;
	set_sock(epfd, sock);
	return sock;
}

int map_alias(int fd, struct sock *sock)
{
	if (fd > MAP_FD_MAX) {
		real()->close(fd);
		errno = EMFILE;
		return -1;
	}
	__atomic_add_fetch(&sock->refs, 1, __ATOMIC_RELAXED);
	set_sock(fd, sock);
	return 0;
}

/* Another thread may have closed it, and reused its number for another socket. */
static void forget(int fd, struct sock *sock)
{
	struct sock *expected = sock;

	if (!sock || own_is_lent() ||
	    !__atomic_compare_exchange_n(&socks[fd], &expected, NULL, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return;
	fallback_forget(fd);
	map_release(sock);
}

void map_release(struct sock *sock)
{
	if (__atomic_sub_fetch(&sock->refs, 1, __ATOMIC_ACQ_REL))
		return;
	relay_release(sock);
	fallback_forget_epoll(sock);
	if (sock->rs >= 0)
		rclose(sock->rs);
	if (sock->end >= 0)
		own_close(sock->end);
	if (sock->epfd >= 0)
		own_close(sock->epfd);
	if (sock->kick_fd >= 0)
		own_close(sock->kick_fd);
	if (sock->tcp >= 0)
		own_close(sock->tcp);
	pthread_mutex_lock(&lock);
	sock->next = spares;
	spares = sock;
	pthread_mutex_unlock(&lock);
}

void map_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
}

void map_forget(int fd)
{
	forget(fd, map_get(fd));
}

struct sock *map_check(int fd)
{
	struct sock *sock = map_socket(fd);

	if (!sock || map_is_placeholder(fd))
		return sock;
	forget(fd, sock);
	return NULL;
}

int map_swap(int fd, int tcp)
{
	int cloexec = real()->fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;

	map_forget(fd);
	return real()->dup3(tcp, fd, cloexec) < 0 ? -1 : 0;
}
