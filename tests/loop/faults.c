/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes the n-th call of the C library that can fail fail. Linked (--wrap, see meson.build) with
 * the code under test: the library, under a program of tests/luck, which sets n; or cmportd, where
 * FAULT_NTH in the environment sets it. Prints the name of the failed call on standard error.
 *
 * The errors are those of exhausted resources. Calls that only a bug could make fail (close(),
 * epoll_ctl() to remove) are left alone.
 */
#include <errno.h>
#include <netlink/msg.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT void failmem_nth(long n);
EXPORT long failmem_count(void);

static atomic_long left = -1; /* calls before the failing one; negative: none fails */
static atomic_long n_failed;

void failmem_nth(long n)
{
	atomic_store(&n_failed, 0);
	atomic_store(&left, n);
}

long failmem_count(void)
{
	return atomic_load(&n_failed);
}

static void __attribute__((constructor)) read_environment(void)
{
	const char *n = getenv("FAULT_NTH");

	if (n)
		failmem_nth(atol(n));
}

static bool fails(const char *name, int err)
{
	if (atomic_load(&left) < 0 || atomic_fetch_sub(&left, 1) != 0)
		return false;
	atomic_fetch_add(&n_failed, 1);
	dprintf(STDERR_FILENO, "fault: %s\n", name);
	errno = err;
	return true;
}

#define WRAP(type, name, params, args, error, failure)                     \
	type __real_##name params;                                         \
	EXPORT type __wrap_##name params;                                  \
	type __wrap_##name params                                          \
	{                                                                  \
		return fails(#name, error) ? failure : __real_##name args; \
	}

/* clang-format off */
WRAP(void *, malloc, (size_t n), (n), ENOMEM, NULL)
WRAP(void *, calloc, (size_t n, size_t m), (n, m), ENOMEM, NULL)
WRAP(void *, realloc, (void *p, size_t n), (p, n), ENOMEM, NULL)
WRAP(char *, strdup, (const char *s), (s), ENOMEM, NULL)
WRAP(struct nl_msg *, nlmsg_alloc_simple, (int t, int f), (t, f), ENOMEM, NULL)

WRAP(int, socket, (int f, int t, int p), (f, t, p), EMFILE, -1)
WRAP(int, socketpair, (int f, int t, int p, int *r), (f, t, p, r), EMFILE, -1)
WRAP(int, bind, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n), ENOMEM, -1)
WRAP(int, connect, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n), ENOMEM, -1)
WRAP(int, listen, (int fd, int n), (fd, n), EADDRINUSE, -1)
WRAP(int, accept4, (int fd, struct sockaddr *a, socklen_t *n, int f), (fd, a, n, f), EMFILE, -1)
WRAP(int, setsockopt, (int fd, int l, int o, const void *v, socklen_t n), (fd, l, o, v, n), ENOMEM, -1)
WRAP(int, getsockopt, (int fd, int l, int o, void *v, socklen_t *n), (fd, l, o, v, n), ENOBUFS, -1)
WRAP(ssize_t, send, (int fd, const void *p, size_t n, int f), (fd, p, n, f), ENOBUFS, -1)
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *m, int f), (fd, m, f), ENOBUFS, -1)
WRAP(ssize_t, recv, (int fd, void *p, size_t n, int f), (fd, p, n, f), ENOBUFS, -1)
WRAP(ssize_t, recvmsg, (int fd, struct msghdr *m, int f), (fd, m, f), ENOBUFS, -1)
WRAP(ssize_t, recvfrom, (int fd, void *p, size_t n, int f, struct sockaddr *a, socklen_t *m), (fd, p, n, f, a, m), ENOBUFS, -1)

WRAP(int, epoll_create1, (int f), (f), EMFILE, -1)
WRAP(int, epoll_wait, (int fd, struct epoll_event *e, int n, int t), (fd, e, n, t), EINTR, -1)
WRAP(int, poll, (struct pollfd *p, nfds_t n, int t), (p, n, t), EINTR, -1)
WRAP(int, eventfd, (unsigned int n, int f), (n, f), EMFILE, -1)
WRAP(int, timerfd_create, (int c, int f), (c, f), EMFILE, -1)
WRAP(int, memfd_create, (const char *s, unsigned int f), (s, f), EMFILE, -1)
WRAP(int, ftruncate64, (int fd, off_t n), (fd, n), ENOSPC, -1)
WRAP(int, pipe2, (int *r, int f), (r, f), EMFILE, -1)
WRAP(int, dup3, (int fd, int to, int f), (fd, to, f), EMFILE, -1)
WRAP(int, open64, (const char *s, int f, mode_t m), (s, f, m), EMFILE, -1)
WRAP(int, openat64, (int d, const char *s, int f, mode_t m), (d, s, f, m), EMFILE, -1)
WRAP(FILE *, fopen64, (const char *s, const char *m), (s, m), EMFILE, NULL)
WRAP(ssize_t, read, (int fd, void *p, size_t n), (fd, p, n), EINTR, -1)
WRAP(ssize_t, pwrite64, (int fd, const void *p, size_t n, off_t o), (fd, p, n, o), ENOSPC, -1)
WRAP(void *, mmap64, (void *p, size_t n, int r, int f, int fd, off_t o), (p, n, r, f, fd, o), ENOMEM, MAP_FAILED)
WRAP(int, pthread_create, (pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *v), (t, a, f, v), EAGAIN, EAGAIN)
WRAP(ssize_t, getrandom, (void *p, size_t n, unsigned int f), (p, n, f), EAGAIN, -1)

ssize_t __real_write(int fd, const void *bytes, size_t n);
EXPORT ssize_t __wrap_write(int fd, const void *bytes, size_t n);
int __real_epoll_ctl(int fd, int op, int of, struct epoll_event *event);
EXPORT int __wrap_epoll_ctl(int fd, int op, int of, struct epoll_event *event);
/* clang-format on */

int __wrap_epoll_ctl(int fd, int op, int of, struct epoll_event *event)
{
	return op == EPOLL_CTL_ADD && fails("epoll_ctl", ENOSPC)
		       ? -1
		       : __real_epoll_ctl(fd, op, of, event);
}

/* Writes to an eventfd do not fail. */
ssize_t __wrap_write(int fd, const void *bytes, size_t n)
{
	return n != sizeof(uint64_t) && fails("write", ENOSPC) ? -1 : __real_write(fd, bytes, n);
}
