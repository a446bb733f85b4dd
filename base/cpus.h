/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CPUs for the threads of the library (thread.c) and for a cmportd that the library starts.
 * Otherwise they would share the CPU that a program has pinned itself to, and might never leave it.
 */
#ifndef BASE_CPUS_H
#define BASE_CPUS_H

#include <stddef.h>

#define CPUS_MAX     8192 /* the maximum of any kernel */
#define CPUS_IN_LONG (8 * sizeof(unsigned long))

struct cpus {
	size_t bytes;				     /* of mask[], as the kernel uses it */
	unsigned long mask[CPUS_MAX / CPUS_IN_LONG]; /* in the kernel's and cpu_set_t's layout */
};

/**
 * cpus_of_host() - all CPUs but the isolated ones (isolcpus=)
 *
 * The scheduler never moves a process off an isolated CPU. The kernel itself applies the limits of
 * control groups.
 *
 * Return: 0 or -errno.
 */
int cpus_of_host(struct cpus *ret);

/**
 * cpus_remove() - remove a list of CPUs from a set
 * @list: in the kernel's format, such as "1-3,5"; parsing stops at anything else
 */
void cpus_remove(struct cpus *cpus, const char *list);

#endif
