/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleeps that go on after a signal handler with SA_RESTART, and only then.
 *
 * Stock librdmacm sleeps in a read(), which the kernel restarts. It never restarts a poll(), and
 * does not report which handler ran. If all handlers of the process are of one kind, that does not
 * matter. In a process with both kinds a thread sleeps in a read() of its waker, and the service
 * thread polls the descriptor for it.
 */
#ifndef LIB_RSOCKET_RESTART_H
#define LIB_RSOCKET_RESTART_H

#include <stdbool.h>

#include "lib/rsocket/wait.h"

/**
 * restart_look() - look at the signal handlers of the process: a system call for each signal
 *
 * Return: whether there is no handler without SA_RESTART, except those of faults.
 */
bool restart_look(void);

/** restart_is_mixed() - whether there were handlers of both kinds at the latest look */
bool restart_is_mixed(void);

/**
 * restart_sleep() - sleep until a waker is set or a descriptor is readable
 * @waker: reset by this
 * @fd:    -1: none
 *
 * Sleeps for the wake-up interval of the settings at most if there is a descriptor.
 *
 * Return: 1 if the descriptor is readable, otherwise 0; -EINTR after a handler without SA_RESTART;
 * -errno if the descriptor cannot be watched.
 */
int restart_sleep(struct waker *waker, int fd);

#endif
