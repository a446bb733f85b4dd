/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's settings that port_space.c works by, read from /proc/sys and the thread's capability
 * set.
 */
#include "net/port_space.h"

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

static int read_numbers(const char *path, unsigned int *a, unsigned int *b)
{
	FILE *file = fopen(path, "re");
	int n;

	if (!file)
		return 0;
	n = fscanf(file, "%u %u", a, b);
	fclose(file);
	return n;
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
	if (read_numbers("/proc/sys/net/ipv4/ip_local_port_range", &a, &b) == 2 && a >= 1 &&
	    a <= b && b <= UINT16_MAX) {
		ret->ephemeral_first = a;
		ret->ephemeral_last = b;
	}
	if (read_numbers("/proc/sys/net/ipv4/ip_unprivileged_port_start", &a, &b) == 1 &&
	    a <= UINT16_MAX)
		ret->unprivileged_first = a;
	if (read_numbers("/proc/sys/net/ipv6/bindv6only", &a, &b) == 1)
		ret->v6_only = a;
	if (read_numbers("/proc/sys/net/rdma_ucm/max_backlog", &a, &b) == 1)
		ret->max_backlog = a;
	ret->may_bind_low = has_capability(CAP_NET_BIND_SERVICE);
}
