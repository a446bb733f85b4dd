/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CPUs for what serves a program and is not the program: threads of the library (thread.c)
 * and a cmportd that the library starts. They would otherwise share the CPU that a
 * program has pinned itself to, and may never leave.
 */
#ifndef BASE_CPUS_H
#define BASE_CPUS_H

#include <stddef.h>

#define CPUS_MAX     8192 /* no kernel is built for more */
#define CPUS_IN_LONG (8 * sizeof(unsigned long))

struct cpus {
	size_t bytes;				     /* of mask[]; as many as the kernel takes */
	unsigned long mask[CPUS_MAX / CPUS_IN_LONG]; /* as the kernel and cpu_set_t have it */
};

/**
 * cpus_of_host() - all but those that the host was booted without (isolcpus=)
 *
 * Nothing moves a process away from an isolated CPU, once it is there. That a control group allows
 * fewer is left to the kernel, which knows.
 *
 * Return: 0, or -errno of asking the kernel.
 */
int cpus_of_host(struct cpus *ret);

/**
 * cpus_remove() - take a list of the kernel's form out of a set
 * @list: "1-3,5"; what is not of that form ends it
 */
void cpus_remove(struct cpus *cpus, const char *list);

#endif
