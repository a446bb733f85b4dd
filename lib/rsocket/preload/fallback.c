/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP in place of RDMA: the second socket of a listener, and the replacement of a connection that
 * fails. See preload.h.
 */
#include "lib/rsocket/preload/preload.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/list.h"
#include "lib/diag/warning.h"
#include "lib/rsocket/roster.h"
#include "lib/rsocket/rsock.h"

static bool is_blocking(const struct sock *sock)
{
	if (sock->rs < 0)
		return sock->is_blocking;
	return !(rfcntl(sock->rs, F_GETFL) & O_NONBLOCK);
}

/* Return: a TCP socket with the options of @sock's rsocket, or -1. */
static int open_tcp(const struct sock *sock, int flags)
{
	static const struct {
		int level, name;
		bool is_v6_only;
	} rows[] = {
		{ SOL_SOCKET, SO_REUSEADDR, false }, { SOL_SOCKET, SO_KEEPALIVE, false },
		{ SOL_SOCKET, SO_LINGER, false },    { SOL_SOCKET, SO_RCVTIMEO, false },
		{ SOL_SOCKET, SO_SNDTIMEO, false },  { SOL_SOCKET, SO_OOBINLINE, false },
		{ IPPROTO_TCP, TCP_NODELAY, false }, { IPPROTO_TCP, TCP_KEEPIDLE, false },
		{ IPPROTO_IP, IP_TOS, false },	     { IPPROTO_IPV6, IPV6_V6ONLY, true },
	};
	int tcp = own_add(real()->socket(sock->domain, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));

	for (size_t i = 0; tcp >= 0 && i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct timeval value; /* the largest */
		socklen_t bytes = sizeof(value);

		if (rows[i].is_v6_only && sock->domain != AF_INET6)
			continue;
		if (rgetsockopt(sock->rs, rows[i].level, rows[i].name, &value, &bytes) == 0)
			real()->setsockopt(tcp, rows[i].level, rows[i].name, &value, bytes);
	}
	if (sock->reuses_port)
		real()->setsockopt(tcp, SOL_SOCKET, SO_REUSEPORT, &(int){ 1 }, sizeof(int));
	return tcp;
}

static void warn_of_tcp(const struct sockaddr *addr, socklen_t bytes, const char *why)
{
	char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";

	getnameinfo(addr, bytes, host, sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV);
	warning_of_tcp(host, port, why);
}

void fallback_note(const struct sock *sock, int tcp, int error)
{
	struct roster_row row = { .error = (uint32_t)error };
	struct stat file;

	if (fstat(tcp, &file) == 0) {
		row.inode = file.st_ino;
		rfcntl(sock->rs, RSOCK_NOTE, &row);
	}
}

/* --- in epolls ------------------------------------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct sock *moving;
static int moving_to;

static void move_in_epoll(int fd, struct sock *epoll)
{
	struct epoll_event asked = moving->asked;

	(void)fd;
	if (!epoll->is_repoll || epoll->rs < 0 ||
	    repoll_ctl(epoll->rs, EPOLL_CTL_DEL, moving->rs, NULL))
		return;
	/* A listener has both. */
	repoll_ctl(epoll->rs, EPOLL_CTL_DEL, moving->tcp, NULL);
	real()->epoll_ctl(epoll->epfd, EPOLL_CTL_ADD, moving_to, &asked);
}

void fallback_move(const struct sock *sock, int fd)
{
	pthread_mutex_lock(&lock);
	moving = sock;
	moving_to = fd;
	map_for_each(move_in_epoll);
	pthread_mutex_unlock(&lock);
}

/*
 * The descriptor becomes the TCP socket, also in its epolls. Return: 0; if there is a target, as
 * connect().
 */
static int swap(int fd, struct sock *sock, const struct sockaddr *target, socklen_t bytes)
{
	int result, error;

	__atomic_add_fetch(&sock->refs, 1, __ATOMIC_RELAXED);
	result = map_swap(fd, sock->tcp);
	if (!result && bytes)
		result = real()->connect(fd, target, bytes);
	error = errno;
	/* Not before: an unconnected TCP socket reports a hang-up in an epoll. */
	fallback_move(sock, fd);
	map_release(sock);
	errno = error;
	return result;
}

/* --- a listener ---------------------------------------------------------- */

/* Binds the RDMA socket to the port number of the TCP socket. */
static int bind_same_port(struct sock *sock, int tcp, const struct sockaddr *addr, socklen_t bytes)
{
	union name name, got;
	socklen_t got_bytes = sizeof(got);

	if (real()->getsockname(tcp, &got.any, &got_bytes))
		return -1;
	bytes = name_unmap(addr, bytes, &name);
	name.v4.sin_port = got.v4.sin_port;
	return rbind(sock->rs, &name.any, bytes);
}

int fallback_bind(int fd, struct sock *sock, const struct sockaddr *addr, socklen_t bytes)
{
	bool waits = is_blocking(sock);
	int tcp;

	if (!sock_is_stream(sock))
		return rbind(sock->rs, addr, bytes);
	if (sock->tcp >= 0) /* bound before, which is an error */
		return real()->bind(sock->tcp, addr, bytes);
	tcp = open_tcp(sock, SOCK_NONBLOCK);
	if (tcp < 0)
		return -1;
	if (real()->bind(tcp, addr, bytes)) {
		own_close(tcp);
		return -1;
	}
	sock->tcp = tcp;
	if (bind_same_port(sock, tcp, addr, bytes) == 0) {
		sock->is_bound = true;
		return 0;
	}
	if (waits)
		real()->fcntl(tcp, F_SETFL, 0);
	return swap(fd, sock, NULL, 0);
}

int fallback_rebind(const struct sock *sock, int rs)
{
	union name tcp, name;
	socklen_t bytes = sizeof(tcp);

	if (real()->getsockname(sock->tcp, &tcp.any, &bytes))
		return -1;
	bytes = name_unmap(&tcp.any, bytes, &name);
	return rbind(rs, &name.any, bytes);
}

int fallback_listen(struct sock *sock, int backlog)
{
	int result = real()->listen(sock->tcp, backlog);

	if (!result && sock->repoll >= 0)
		repoll_ctl(sock->repoll, EPOLL_CTL_ADD, sock->tcp, &sock->asked);
	return result;
}

/* --- sockets being connected, in an epoll --------------------------------- */

/* A socket in an epoll, being connected. */
struct connecting {
	struct list link;
	int fd;
	const struct sock *epoll;
	struct epoll_event asked;
};

static struct list all = { &all, &all };
static unsigned int n_all; /* number of them; atomic, read without the lock */

static bool is_any(void)
{
	return __atomic_load_n(&n_all, __ATOMIC_ACQUIRE) != 0;
}

static void unlink_one(struct connecting *it)
{
	list_remove(&it->link);
	__atomic_sub_fetch(&n_all, 1, __ATOMIC_RELEASE);
}

static void note_connecting(int fd, const struct sock *sock)
{
	const struct sock *epoll = sock->epoll;
	struct connecting *it = NULL, *each;

	if (!sock->target_bytes || !epoll || !epoll->is_repoll || epoll->rs != sock->repoll)
		return;
	pthread_mutex_lock(&lock);
	list_for_each_entry (each, &all, link)
		if (each->fd == fd && each->epoll == epoll)
			it = each;
	if (!it) {
		/* Out of memory: the connection fails as it would without TCP. */
		it = calloc(1, sizeof(*it));
		if (it) {
			it->fd = fd;
			it->epoll = epoll;
			list_prepend(&all, &it->link);
			__atomic_add_fetch(&n_all, 1, __ATOMIC_RELEASE);
		}
	}
	if (it)
		it->asked = sock->asked;
	pthread_mutex_unlock(&lock);
}

#define ANY -1

/* @epoll: NULL: any */
static void remove_connecting(int fd, const struct sock *epoll)
{
	struct connecting *it;

	if (!is_any())
		return;
	pthread_mutex_lock(&lock);
	list_for_each_entry_safe (it, &all, link) {
		if ((fd == ANY || it->fd == fd) && (!epoll || it->epoll == epoll)) {
			unlink_one(it);
			free(it);
		}
	}
	pthread_mutex_unlock(&lock);
}

void fallback_forget(int fd)
{
	remove_connecting(fd, NULL);
}

static const struct sock *ending; /* protected by the lock */

static void forget_member(int fd, struct sock *sock)
{
	(void)fd;
	if (sock->epoll == ending)
		sock->epoll = NULL;
}

void fallback_forget_epoll(const struct sock *epoll)
{
	if (epoll->is_repoll) {
		pthread_mutex_lock(&lock);
		ending = epoll;
		map_for_each(forget_member);
		pthread_mutex_unlock(&lock);
	}
	remove_connecting(ANY, epoll);
}

void fallback_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	list_init(&all);
	n_all = 0;
}

enum outcome {
	PENDING,
	DONE,
	FAILED
};

/* Polls the socket too, because several sockets may have the same epoll data. */
static enum outcome outcome_of(const struct sock *sock, const struct epoll_event *event)
{
	struct pollfd fd = { .fd = sock->rs, .events = POLLOUT };

	if (!sock->target_bytes)
		return DONE;
	if (!event)
		return PENDING;
	rpoll(&fd, 1, 0);
	if (fd.revents & POLLERR && rfcntl(sock->rs, RSOCK_FAILED) > 0)
		return event->events & EPOLLERR ? FAILED : DONE;
	return fd.revents ? DONE : PENDING;
}

/* Forgets established connections. Return: a failed connection, whose event is removed; or -1. */
static int take_failed(const struct sock *epoll, struct epoll_event *events, int *n)
{
	int fd = -1;
	struct connecting *it;

	if (!is_any())
		return -1;
	pthread_mutex_lock(&lock);
	list_for_each_entry_safe (it, &all, link) {
		struct sock *sock = it->epoll == epoll ? map_get(it->fd) : NULL;
		enum outcome outcome;
		int i = 0;

		if (!sock)
			continue;
		while (i < *n && events[i].data.u64 != it->asked.data.u64)
			i++;
		outcome = outcome_of(sock, i < *n ? &events[i] : NULL);
		if (outcome == FAILED) {
			if (i < *n)
				events[i] = events[--*n];
			fd = it->fd;
			break;
		}
		if (outcome == DONE) {
			sock->target_bytes = 0;
			unlink_one(it);
			free(it);
		}
	}
	pthread_mutex_unlock(&lock);
	return fd;
}

void fallback_control(int fd, struct sock *sock, struct sock *epoll, int op,
		      struct epoll_event *event)
{
	int repoll = epoll->rs;
	socklen_t bytes = sizeof(int);
	int listens = 0;

	if (op == EPOLL_CTL_DEL) {
		sock->repoll = -1;
		sock->epoll = NULL;
		repoll_ctl(repoll, op, sock->tcp, NULL);
		remove_connecting(fd, epoll);
		return;
	}
	sock->repoll = repoll;
	sock->epoll = epoll;
	sock->asked = *event;
	real()->getsockopt(sock->tcp, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes);
	if (listens && repoll_ctl(repoll, EPOLL_CTL_MOD, sock->tcp, event))
		repoll_ctl(repoll, EPOLL_CTL_ADD, sock->tcp, event);
	note_connecting(fd, sock);
}

/* --- connect() ----------------------------------------------------------- */

static int prepare_tcp(struct sock *sock, bool waits, int error)
{
	if (sock->tcp < 0)
		sock->tcp = open_tcp(sock, 0);
	if (sock->tcp < 0)
		return -1;
	real()->fcntl(sock->tcp, F_SETFL, waits ? 0 : O_NONBLOCK);
	if (error)
		fallback_note(sock, sock->tcp, error);
	return 0;
}

int fallback_become_tcp(int fd, struct sock *sock, bool waits)
{
	return prepare_tcp(sock, waits, 0) ? -1 : swap(fd, sock, NULL, 0);
}

static int get_error(int rs)
{
	socklen_t bytes = sizeof(int);
	int error = 0;

	rgetsockopt(rs, SOL_SOCKET, SO_ERROR, &error, &bytes);
	return error;
}

/* Return: 0; -1 with errno set. */
static int await_connection(int rs)
{
	struct pollfd fd = { .fd = rs, .events = POLLOUT };
	int n;

	do
		n = rpoll(&fd, 1, -1);
	while (n < 0 && errno == EINTR);
	if (n == 1)
		errno = get_error(rs);
	return n == 1 && !errno ? 0 : -1;
}

/* Never blocks in rconnect(), which a signal would end. Return: as connect(). */
static int connect_rdma(struct sock *sock, const struct sockaddr *addr, socklen_t bytes, bool waits)
{
	union name name;
	int result;

	rfcntl(sock->rs, RSOCK_HURRY);
	rfcntl(sock->rs, F_SETFL, O_NONBLOCK);
	bytes = name_unmap(addr, bytes, &name);
	result = rconnect(sock->rs, &name.any, bytes);
	if (result && errno == EINPROGRESS && waits)
		result = await_connection(sock->rs);
	if (waits)
		rfcntl(sock->rs, F_SETFL, 0);
	return result;
}

int fallback_connect(int fd, struct sock *sock, const struct sockaddr *addr, socklen_t bytes)
{
	bool waits = is_blocking(sock);
	int result, error;

	sock->is_bound = false;
	if (!sock_is_stream(sock))
		return rconnect(sock->rs, addr, bytes);
	result = connect_rdma(sock, addr, bytes, waits);
	if (!result || errno == EISCONN || errno == EALREADY)
		return result;
	if (errno == EINPROGRESS && !waits) {
		memcpy(&sock->target, addr,
		       bytes < sizeof(sock->target) ? bytes : sizeof(sock->target));
		sock->target_bytes = bytes;
		note_connecting(fd, sock);
		errno = EINPROGRESS;
		return result;
	}
	error = errno;
	warn_of_tcp(addr, bytes, strerror(error));
	return prepare_tcp(sock, waits, error) ? -1 : swap(fd, sock, addr, bytes);
}

bool fallback_retry(int fd, struct sock *sock)
{
	struct sockaddr_storage target = sock->target;
	socklen_t bytes = sock->target_bytes;
	int error;

	if (!bytes || rfcntl(sock->rs, RSOCK_FAILED) <= 0)
		return false;
	error = get_error(sock->rs);
	warn_of_tcp((struct sockaddr *)&target, bytes, strerror(error));
	sock->target_bytes = 0;
	if (prepare_tcp(sock, false, error))
		return false;
	swap(fd, sock, (struct sockaddr *)&target, bytes);
	return true;
}

int fallback_retry_all(const struct sock *epoll, struct epoll_event *events, int n)
{
	int fd;

	while ((fd = take_failed(epoll, events, &n)) >= 0) {
		struct sock *sock = map_get(fd);

		if (sock)
			fallback_retry(fd, sock);
	}
	return n;
}
