/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes by their number and their start, which tells one from a later one of the same number.
 */
#ifndef LIB_PORTD_SERVER_PROCESS_H
#define LIB_PORTD_SERVER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** process_start() - clock ticks from boot to its start, the last 32 bits; 0: unknown. */
uint32_t process_start(pid_t pid);

/**
 * process_watch() - have a descriptor that is readable once the process has ended
 * @start:  as process_start() said once; 0: any
 * @ret_fd: the descriptor, owned by the caller; -1 if the kernel has none
 *
 * Return: false if there is no such process any more; then @ret_fd is not set.
 */
bool process_watch(pid_t pid, uint32_t start, int *ret_fd);

/** process_has_ended() - has it? @fd is of process_watch(). */
bool process_has_ended(pid_t pid, int fd);

#endif
