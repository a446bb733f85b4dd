/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of the library. All are created here, so that none inherits the scheduling of the calling
 * thread. The kernel does this work for stock librdmacm.
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

/**
 * thread_start() - start a detached thread
 * @run: as for pthread_create()
 *
 * All signals are blocked in it. It starts as SCHED_OTHER on the CPUs of cpus_of_host(): beside a
 * program that polls with SCHED_FIFO on the same CPU, it might never run to change that itself. If
 * the kernel refuses, the thread inherits the caller's scheduling.
 *
 * Return: 0 or -errno.
 */
int thread_start(void *(*run)(void *), void *arg);

#endif
