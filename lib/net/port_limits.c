/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's settings that port_space.c works by, read from /proc/sys and the thread's capability
 * set.
 */
#include "lib/net/port_space.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's defaults. */
static const struct port_limits defaults = {
	.ephemeral_first = 32768,
	.ephemeral_last = 60999,
	.unprivileged_first = 1024,
	.max_backlog = 1024,
};

#define RANGE_PATH	  "/proc/sys/net/ipv4/ip_local_port_range"
#define UNPRIVILEGED_PATH "/proc/sys/net/ipv4/ip_unprivileged_port_start"

static int read_open(int fd, unsigned int *a, unsigned int *b)
{
	char text[64];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	return sscanf(text, "%u %u", a, b);
}

static int read_numbers(const char *path, unsigned int *a, unsigned int *b)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int n;

	if (fd < 0)
		return 0;
	n = read_open(fd, a, b);
	close(fd);
	return n;
}

/* Return: as read_numbers(), of a file that stays open; -1 in *@fd: it is not yet. */
static int reread_numbers(int *fd, const char *path, unsigned int *a, unsigned int *b)
{
	if (*fd < 0)
		*fd = open(path, O_RDONLY | O_CLOEXEC);
	return *fd < 0 ? 0 : read_open(*fd, a, b);
}

static void set_range(struct port_limits *limits, unsigned int first, unsigned int last)
{
	if (first < 1 || first > last || last > UINT16_MAX)
		return;
	limits->ephemeral_first = first;
	limits->ephemeral_last = last;
}

static bool has_capability(unsigned int cap)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	return data[CAP_TO_INDEX(cap)].effective & CAP_TO_MASK(cap);
}

void port_limits_read(struct port_limits *ret)
{
	unsigned int a, b;

	*ret = defaults;
	if (read_numbers(RANGE_PATH, &a, &b) == 2)
		set_range(ret, a, b);
	if (read_numbers(UNPRIVILEGED_PATH, &a, &b) == 1 && a <= UINT16_MAX)
		ret->unprivileged_first = a;
	if (read_numbers("/proc/sys/net/ipv6/bindv6only", &a, &b) == 1)
		ret->v6_only = a;
	if (read_numbers("/proc/sys/net/rdma_ucm/max_backlog", &a, &b) == 1)
		ret->max_backlog = a;
	ret->may_bind_low = has_capability(CAP_NET_BIND_SERVICE);
}

void port_limits_reread(struct port_limits *limits)
{
	static int range_fd = -1, unprivileged_fd = -1;
	unsigned int a, b;

	if (reread_numbers(&range_fd, RANGE_PATH, &a, &b) == 2)
		set_range(limits, a, b);
	if (reread_numbers(&unprivileged_fd, UNPRIVILEGED_PATH, &a, &b) == 1 && a <= UINT16_MAX)
		limits->unprivileged_first = a;
}
