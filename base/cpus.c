/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CPUs: see cpus.h.
 */
#include "base/cpus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

#define ISOLATED   "/sys/devices/system/cpu/isolated"
#define LIST_BYTES 4096

static void remove_range(struct cpus *cpus, unsigned long first, unsigned long last)
{
	unsigned long i;

	for (i = first; i <= last && i < 8 * cpus->bytes; i++)
		cpus->mask[i / CPUS_IN_LONG] &= ~(1ul << i % CPUS_IN_LONG);
}

void cpus_remove(struct cpus *cpus, const char *list)
{
	unsigned long first, last;
	char *end;

	for (;; list = end + 1) {
		first = last = strtoul(list, &end, 10);
		if (end == list)
			return;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		remove_range(cpus, first, last);
		if (*end != ',')
			return;
	}
}

static void remove_isolated(struct cpus *cpus)
{
	char list[LIST_BYTES];

	fd_read_file(ISOLATED, list, sizeof(list));
	cpus_remove(cpus, list);
}

/* Some C libraries reject a mask that is longer than the kernel's. */
int cpus_of_host(struct cpus *ret)
{
	struct cpus cpus;
	long n = syscall(SYS_sched_getaffinity, 0, sizeof(cpus.mask), cpus.mask);

	if (n < 0)
		return -errno;
	cpus.bytes = (size_t)n;
	memset(cpus.mask, 0xff, sizeof(cpus.mask));
	remove_isolated(&cpus);
	*ret = cpus;
	return 0;
}
