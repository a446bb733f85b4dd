/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librspreload.so: calls that make descriptors. See preload.h.
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <rdma/rsocket.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib/rsocket/preload/preload.h"

/* Registers a descriptor that the kernel made as its maker's: the program's or the libraries'. */
#define MADE(made)                                                                       \
	({                                                                               \
		int made_fd = closing_forget(made);                                      \
                                                                                         \
		own_is_inside(__builtin_return_address(0)) ? own_add(made_fd) : made_fd; \
	})

#define GET_MODE(mode, flags)                        \
	do {                                         \
		va_list args;                        \
                                                     \
		va_start(args, flags);               \
		(mode) = va_arg(args, unsigned int); \
		va_end(args);                        \
	} while (0)

EXPORT int open(const char *path, int flags, ...)
{
	unsigned int mode;

	GET_MODE(mode, flags);
	return MADE(real()->open(path, flags, mode));
}

EXPORT int open64(const char *path, int flags, ...)
{
	unsigned int mode;

	GET_MODE(mode, flags);
	return MADE(real()->open64(path, flags, mode));
}

EXPORT int openat(int folder, const char *path, int flags, ...)
{
	unsigned int mode;

	GET_MODE(mode, flags);
	return MADE(real()->openat(folder, path, flags, mode));
}

EXPORT int openat64(int folder, const char *path, int flags, ...)
{
	unsigned int mode;

	GET_MODE(mode, flags);
	return MADE(real()->openat64(folder, path, flags, mode));
}

EXPORT int eventfd(unsigned int value, int flags)
{
	return MADE(real()->eventfd(value, flags));
}

EXPORT int timerfd_create(int clock, int flags)
{
	return MADE(real()->timerfd_create(clock, flags));
}

EXPORT int memfd_create(const char *name, unsigned int flags)
{
	return MADE(real()->memfd_create(name, flags));
}

/* An epoll descriptor may be duplicated, or added to another, before it has a socket. */
static int enter_epoll(int epfd)
{
	if (epfd >= 0 && !own_has(epfd))
		map_epoll(epfd);
	return epfd;
}

EXPORT int epoll_create1(int flags)
{
	return enter_epoll(MADE(real()->epoll_create1(flags)));
}

EXPORT int epoll_create(int size)
{
	return enter_epoll(MADE(real()->epoll_create(size)));
}

EXPORT int pipe2(int fd[2], int flags)
{
	int result = real()->pipe2(fd, flags);

	for (int i = 0; i < 2 && !result; i++)
		fd[i] = MADE(fd[i]);
	return result;
}

/* Return: the descriptors in a part of a message. */
static int *fds_in(struct cmsghdr *control, size_t *n)
{
	bool is_rights = control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS;

	*n = is_rights ? (control->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
	return (int *)(void *)CMSG_DATA(control);
}

void making_give(const struct msghdr *msg)
{
	struct msghdr copy = *msg;
	struct cmsghdr *control = CMSG_FIRSTHDR(msg);

	for (; control; control = CMSG_NXTHDR(&copy, control)) {
		size_t n;
		const int *fds = fds_in(control, &n);

		for (size_t i = 0; i < n; i++)
			relay_give(fds[i]);
	}
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct sock *sock = map_socket(fd);

	if (sock)
		return transfer_send(fd, sock, msg, flags);
	if (msg->msg_controllen)
		making_give(msg);
	return real()->sendmsg(fd, msg, flags);
}

/* Another process may send descriptors. */
EXPORT ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct sock *sock = map_socket(fd);
	ssize_t result = sock ? transfer_receive(fd, sock, msg, flags)
			      : real()->recvmsg(fd, msg, flags);
	struct cmsghdr *control = result < 0 ? NULL : CMSG_FIRSTHDR(msg);

	for (; control; control = CMSG_NXTHDR(msg, control)) {
		size_t n;
		int *fds = fds_in(control, &n);

		for (size_t i = 0; i < n; i++)
			fds[i] = MADE(fds[i]);
	}
	return result;
}

/* Its descriptor is made by ioctl(). */
EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct ibv_comp_channel *channel = real()->ibv_create_comp_channel(context);

	if (channel && !own_has(channel->fd))
		channel->fd = MADE(channel->fd);
	return channel;
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *context = real()->ibv_open_device(device);

	if (context && own_is_inside(__builtin_return_address(0))) {
		own_keep(context->cmd_fd);
		own_keep(context->async_fd);
	}
	return context;
}
