/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of the library. All are made here, so that none of them depends on what the program has
 * made of the thread that happens to call: stock does this work in the kernel.
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

/**
 * thread_start() - a thread that nobody waits for
 * @run: as of pthread_create()
 *
 * All signals are blocked in it. It is scheduled as SCHED_OTHER, on the CPUs of cpus_of_host(),
 * from its beginning: behind a program that polls with SCHED_FIFO, or beside it on its CPU, it
 * might never get there by itself. Where the kernel refuses that, it is scheduled as its maker is.
 *
 * Return: 0 or -errno.
 */
int thread_start(void *(*run)(void *), void *arg);

#endif
