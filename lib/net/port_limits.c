/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the limits for port_space.c from /proc/sys and the thread's capabilities. */
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

/* Return: number of integers read. @kept_fd: descriptor of a file to keep open, or -1. */
static int read_numbers(const char *path, int *kept_fd, unsigned int *a, unsigned int *b)
{
	int fd = kept_fd && *kept_fd >= 0 ? *kept_fd : open(path, O_RDONLY | O_CLOEXEC);
	char text[64];
	ssize_t n;

	if (fd < 0)
		return 0;
	n = pread(fd, text, sizeof(text) - 1, 0);
	if (kept_fd)
		*kept_fd = fd;
	else
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return sscanf(text, "%u %u", a, b);
}

static bool has_capability(unsigned int cap)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	return data[CAP_TO_INDEX(cap)].effective & CAP_TO_MASK(cap);
}

/* Settings that may change between two binds. @fds: descriptors to keep open, or NULL. */
static void read_ports(struct port_limits *limits, int *fds)
{
	unsigned int a, b;

	if (read_numbers("/proc/sys/net/ipv4/ip_local_port_range", fds, &a, &b) == 2 && a >= 1 &&
	    a <= b && b <= UINT16_MAX) {
		limits->ephemeral_first = a;
		limits->ephemeral_last = b;
	}
	if (read_numbers("/proc/sys/net/ipv4/ip_unprivileged_port_start", fds ? fds + 1 : NULL, &a,
			 &b) == 1 &&
	    a <= UINT16_MAX)
		limits->unprivileged_first = a;
}

void port_limits_read(struct port_limits *ret)
{
	unsigned int a, b;

	*ret = defaults;
	read_ports(ret, NULL);
	if (read_numbers("/proc/sys/net/ipv6/bindv6only", NULL, &a, &b) == 1)
		ret->v6_only = a;
	if (read_numbers("/proc/sys/net/rdma_ucm/max_backlog", NULL, &a, &b) == 1)
		ret->max_backlog = a;
	ret->may_bind_low = has_capability(CAP_NET_BIND_SERVICE);
}

void port_limits_reread(struct port_limits *limits)
{
	static int fds[] = { -1, -1 };

	read_ports(limits, fds);
}
