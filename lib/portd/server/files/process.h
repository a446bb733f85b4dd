/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes, identified by pid and start time, because pids are reused. */
#ifndef LIB_PORTD_SERVER_FILES_PROCESS_H
#define LIB_PORTD_SERVER_FILES_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/time.h"

/* Whether a process existed when it was looked up last. */
struct process_look {
	uint32_t pid;
	uint32_t start;
	struct cm_time at;
	bool is_alive;
};

/** process_start() - the start time in clock ticks since boot, modulo 2^32; 0: unknown */
uint32_t process_start(pid_t pid);

/**
 * process_watch() - get a descriptor that becomes readable when the process ends
 * @start:  an earlier result of process_start(); 0 matches any process
 * @ret_fd: the descriptor, owned by the caller; -1 if the kernel has none
 *
 * Return: false if the process has ended; then @ret_fd is not set.
 */
bool process_watch(pid_t pid, uint32_t start, int *ret_fd);

/** process_has_ended() - return whether the process has ended; @fd is from process_watch() */
bool process_has_ended(pid_t pid, int fd);

/**
 * process_of_socket_has_ended() - return whether the process that connected a unix socket has ended
 *
 * Its pid, which SO_PEERCRED still says, may be another's by now; a pidfd of the socket's cannot.
 *
 * Return: false also on kernels without SO_PEERPIDFD (before 6.5).
 */
bool process_of_socket_has_ended(int fd);

#endif
