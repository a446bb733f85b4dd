/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What fork() does to connections, and how other processes get the ends of relays: see preload.h.
 *
 * A child has a control socket to its parent, which keeps a reference to each connection of the
 * time of the fork until the child has asked for its end, or has closed it, or ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/forks.h"
#include "lib/diag/warning.h"
#include "lib/rsocket/preload/relay.h"

enum kind {
	CLAIM, /* answered with the end, or without */
	RELEASE,
};

/* A child's, about what has this index at its parent. */
struct message {
	enum kind kind;
	int index;
};

/* The parent's side. */
struct control {
	struct source source; /* first */
	int fd;
	int n;
	struct sock *held[]; /* by index; NULL: claimed or released */
};

static struct control *forking; /* between the handlers of fork() */
static int child_end = -1;

/* --- the parent's side ----------------------------------------------------- */

static bool send_end(int fd, int end)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} control = { .header = { .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS,
				  .cmsg_len = CMSG_LEN(sizeof(int)) } };
	struct iovec iov = { &(char){ 0 }, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	memcpy(CMSG_DATA(&control.header), &end, sizeof(end));
	if (end >= 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
	}
	return real()->sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

static void drop(struct control *it, int index)
{
	struct sock *sock = it->held[index];

	it->held[index] = NULL;
	if (sock)
		map_release(sock);
}

static void drop_all(struct control *it)
{
	for (int i = 0; i < it->n; i++)
		drop(it, i);
}

static void end_control(struct control *it)
{
	drop_all(it);
	relay_lock();
	list_remove(&it->source.link);
	relay_unlock();
	relay_unwatch(&it->source, it->fd);
	own_close(it->fd);
}

static void answer(struct control *it, struct sock *sock)
{
	relay_lock();
	if (sock && sock->end < 0 && sock->rs >= 0)
		relay_start(sock);
	send_end(it->fd, sock ? sock->end : -1);
	relay_unlock();
}

static void serve_child(struct source *source)
{
	struct control *it = container_of(source, struct control, source);
	struct message msg;
	ssize_t n;

	while ((n = real()->recv(it->fd, &msg, sizeof(msg), MSG_DONTWAIT)) == sizeof(msg)) {
		if (msg.index < 0 || msg.index >= it->n)
			break;
		if (msg.kind == CLAIM)
			answer(it, it->held[msg.index]);
		drop(it, msg.index);
	}
	if (n >= 0 || errno != EAGAIN)
		end_control(it);
}

/* --- the child's side ------------------------------------------------------ */

static int report_to_parent(const struct sock *sock, enum kind kind)
{
	struct message msg = { kind, sock->index };

	return real()->send(sock->control, &msg, sizeof(msg), MSG_NOSIGNAL) == sizeof(msg) ? 0 : -1;
}

void relay_release(const struct sock *sock)
{
	if (sock->control >= 0 && sock->end < 0)
		report_to_parent(sock, RELEASE);
}

/* Return: the end, or -1. */
static int receive_end(int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} control;
	struct iovec iov = { &(char){ 0 }, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	ssize_t n;
	int end;

	do
		n = real()->recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n != 1 || !CMSG_FIRSTHDR(&msg))
		return -1;
	memcpy(&end, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(end));
	return end;
}

/* Return: what stands for a connection that has ended. */
static int make_ended(void)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		return -1;
	real()->close(fds[0]);
	return fds[1];
}

/* A socket that was not connected has no queue pair, and is TCP's in the child. */
static int get_end(const struct sock *sock)
{
	int end = -1;

	if (sock->control >= 0) {
		if (report_to_parent(sock, CLAIM) == 0)
			end = receive_end(sock->control);
		return end >= 0 ? end : make_ended();
	}
	if (sock->tcp < 0)
		return real()->socket(sock->domain, sock->type | SOCK_CLOEXEC, 0);
	real()->fcntl(sock->tcp, F_SETFL, sock->type & SOCK_NONBLOCK ? O_NONBLOCK : 0);
	return real()->fcntl(sock->tcp, F_DUPFD_CLOEXEC, 0);
}

/* --- numbers ---------------------------------------------------------------- */

static int entering; /* protected by the lock */

/* An end that was put into an epoll is there by the number that the program knows. */
static void rename_in_epoll(int fd, struct sock *epoll)
{
	struct sock *sock = map_get(entering);

	(void)fd;
	if (epoll->is_repoll && epoll->epfd >= 0 &&
	    real()->epoll_ctl(epoll->epfd, EPOLL_CTL_DEL, sock->end, NULL) == 0)
		real()->epoll_ctl(epoll->epfd, EPOLL_CTL_ADD, entering, &sock->asked);
}

/* The lock must be held. */
static void enter(int fd, struct sock *sock)
{
	int cloexec = real()->fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;

	if (sock->end < 0 && map_is_placeholder(fd))
		sock->end = own_add(get_end(sock));
	if (sock->end >= 0 && map_is_placeholder(fd) &&
	    real()->dup3(sock->end, fd, cloexec) == fd) {
		entering = fd;
		map_for_each(rename_in_epoll);
	}
	map_forget(fd);
}

void relay_enter(int fd)
{
	int before = errno;
	struct sock *sock;

	relay_lock();
	sock = map_get(fd);
	if (sock && sock->is_away)
		enter(fd, sock);
	relay_unlock();
	errno = before;
}

static bool is_stream(const struct sock *sock)
{
	return !sock->is_repoll && !listener_may_be(sock) &&
	       (sock->type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) == SOCK_STREAM;
}

static bool is_connected(const struct sock *sock)
{
	union name name;
	socklen_t bytes = sizeof(name);

	return sock->rs >= 0 && is_stream(sock) && !rgetpeername(sock->rs, &name.any, &bytes);
}

void relay_give(int fd)
{
	struct sock *sock = map_socket(fd);

	if (!sock)
		return;
	if (!is_connected(sock)) {
		bool waits = sock->rs < 0 ? sock->is_blocking
					  : !(rfcntl(sock->rs, F_GETFL) & O_NONBLOCK);

		if (sock->backlog >= 0)
			warning_of_tcp_listener(fd, -ENOTSUP);
		if (sock->tcp >= 0 || is_stream(sock))
			fallback_become_tcp(fd, sock, waits);
		return;
	}
	relay_lock();
	if (!sock->is_away)
		relay_start(sock);
	relay_unlock();
	relay_enter(fd);
}

/* --- fork() ---------------------------------------------------------------- */

/* What this process has by relays, it has before a child has it. */
static void settle(int fd, struct sock *sock)
{
	if (sock->is_away)
		enter(fd, sock);
	else
		sock->index = -1;
}

static int n_shared;

static void count(int fd, struct sock *sock)
{
	(void)fd;
	if (sock->index < 0 && is_connected(sock))
		sock->index = n_shared++;
}

static void hold(int fd, struct sock *sock)
{
	(void)fd;
	if (sock->index < 0 || forking->held[sock->index])
		return;
	forking->held[sock->index] = sock;
	__atomic_add_fetch(&sock->refs, 1, __ATOMIC_RELAXED);
}

/* Of another child. Ends that are kept for such are no numbers of the program. */
static void close_control(struct source *source)
{
	struct control *it = container_of(source, struct control, source);

	own_close(it->fd);
	for (int i = 0; i < it->n; i++) {
		if (it->held[i] && it->held[i]->end >= 0) {
			own_close(it->held[i]->end);
			it->held[i]->end = -1;
		}
	}
}

static void before_fork(void)
{
	int fds[2];

	relay_lock();
	forking = NULL;
	child_end = -1;
	n_shared = 0;
	map_for_each(settle);
	map_for_each(count);
	if (!n_shared || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return;
	child_end = own_add(fds[1]);
	forking = calloc(1, sizeof(*forking) + (size_t)n_shared * sizeof(forking->held[0]));
	if (!forking) {
		own_close(child_end);
		real()->close(fds[0]);
		return;
	}
	forking->fd = own_add(fds[0]);
	forking->n = n_shared;
	forking->source = (struct source){ .ready = serve_child, .close = close_control };
	map_for_each(hold);
}

static void after_fork_in_parent(void)
{
	if (forking) {
		own_close(child_end);
		if (relay_watch(&forking->source, forking->fd, EPOLLIN)) {
			/* Nobody would answer: the connections end in the child. */
			drop_all(forking);
			own_close(forking->fd);
			free(forking);
		}
	}
	relay_unlock();
}

static void count_no_holders(int fd, struct sock *sock)
{
	(void)fd;
	sock->refs = 0;
}

static void inherit(int fd, struct sock *sock)
{
	(void)fd;
	sock->refs++;
	if (!is_stream(sock))
		return;
	sock->is_away = true;
	sock->target_bytes = 0;
	sock->end = -1;
	sock->control = sock->index < 0 ? -1 : child_end;
}

static void after_fork_in_child(void)
{
	own_memory();
	map_after_fork();
	fallback_after_fork();
	relay_close_all();
	if (forking)
		own_close(forking->fd);
	map_for_each(count_no_holders);
	map_for_each(inherit);
}

__attribute__((constructor)) static void register_handlers(void)
{
	forks_watch(before_fork, after_fork_in_parent, after_fork_in_child);
}
